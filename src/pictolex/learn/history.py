"""The history of a run: the dictionary and the elements of a few fixed images at every stage, for videos and the lineage."""

from __future__ import annotations

from pathlib import Path

import torch

from pictolex.decompose import Layout
from pictolex.learn.kept import Kept
from pictolex.model import Dictionary
from pictolex.model.files import Format, atomic, dictionary_parts, tensor_bytes

HISTORY = Format("pictolex history")


class History:
    """Writes one file a stage: concepts, hues, background, and where the fixed images' elements were by then."""

    def __init__(self, folder: Path | None, images: int) -> None:
        self.folder = None if folder is None else folder / "history"
        self.images = images

    def keep(self, epoch: int, group: int, dictionary: Dictionary, kept: Kept) -> None:
        """One stage, named by its epoch and the groups of it that are done."""
        if self.folder is None:
            return
        tensors, content = dictionary_parts(dictionary)
        index = list(range(min(self.images, len(kept.energy))))
        if index:
            layout: Layout = kept.get(index, dictionary.ids, torch.device("cpu"))
            ids = torch.tensor([*dictionary.ids, -1])
            found = {"concept": ids[layout.concept], "pose": layout.pose, "hue": layout.hue, "colour": layout.colour}
            tensors = {**tensors, **{f"elements.{name}": value.numpy() for name, value in found.items()}}
        path = self.folder / f"{epoch:06d}-{group:06d}.safetensors"
        with atomic(path) as file:
            file.write(tensor_bytes(HISTORY, {**content, "epoch": epoch, "group": group}, tensors))
