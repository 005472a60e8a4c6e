"""Checkpoints: everything that the rest of a learning run depends on, in one file that is written whole or not at all."""

from __future__ import annotations

import hashlib
import warnings
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from pictolex.errors import FormatError, InputError, SettingError
from pictolex.model import Dictionary, Lineage
from pictolex.model.files import Format, atomic, dictionary_of, dictionary_parts, fitting, read_tensors, tensor_bytes
from pictolex.settings import Settings
from pictolex.sources import Source

CHECKPOINT = Format("pictolex checkpoint")
KEEP = 2
"""Checkpoints that stay: the newest, and one before it in case that is damaged."""
FREE_TO_CHANGE = frozenset({"device", "workers", "learning.epochs"})
"""Settings that a resumed run may have otherwise."""
LOOKED_AT = 16
"""Images whose pixels tell whether the data are the same."""


class DamagedCheckpointWarning(UserWarning):
    """The newest checkpoint could not be read; learning goes on from the one before."""


@dataclass
class Position:
    """Where learning is: between two groups of images."""

    dictionary: Dictionary
    """As it was when the step last started or ended an epoch: its form, names and lineage."""
    epoch: int = 0
    group: int = 0
    """Groups of this epoch that are done."""
    limit: float = 0.0
    """What an image may cost before it is searched again, in this epoch."""
    error: float = 0.0
    values: float = 0.0
    elements: float = 0.0
    images: int = 0
    seconds: float = 0.0
    """That all sessions before this one took."""
    step: dict[str, Tensor] = field(default_factory=dict)
    kept: dict[str, Tensor] = field(default_factory=dict)

    def begin(self, limit: float) -> None:
        """A new epoch."""
        self.limit = limit
        self.error = self.values = self.elements = 0.0
        self.images = 0

    def add(self, error: float, values: int, elements: float, images: int) -> None:
        """A group is done."""
        self.error, self.values = self.error + error, self.values + values
        self.elements, self.images = self.elements + elements, self.images + images
        self.group += 1

    @property
    def mean_error(self) -> float:
        """Squared error per value in this epoch."""
        return self.error / self.values if self.values else float("nan")

    @property
    def mean_elements(self) -> float:
        """Elements an image in this epoch."""
        return self.elements / self.images if self.images else float("nan")


_NUMBERS = ("epoch", "group", "limit", "error", "values", "elements", "images", "seconds")


class Checkpoints:
    """The checkpoints of a run; in memory there are none."""

    def __init__(self, folder: Path | None, source: str) -> None:
        self.folder = None if folder is None else folder / "checkpoints"
        self.source = source

    def save(self, position: Position, settings: Settings) -> None:
        """Write where learning is; older checkpoints go."""
        if self.folder is None:
            return
        tensors, content = dictionary_parts(position.dictionary)
        tensors = {f"dictionary.{name}": value for name, value in tensors.items()}
        for part in ("step", "kept"):
            tensors |= {f"{part}.{name}": value.detach().cpu().numpy() for name, value in getattr(position, part).items()}
        content |= {name: float(getattr(position, name)) for name in _NUMBERS}
        content |= {"lineage": position.dictionary.lineage.to_json(), "source": self.source, "settings": _digest(settings)}
        path = self.folder / f"{position.epoch:06d}-{position.group:06d}.safetensors"
        with atomic(path) as file:
            file.write(tensor_bytes(CHECKPOINT, content, tensors))
        for old in self._all()[:-KEEP]:
            old.unlink(missing_ok=True)

    def newest(self, settings: Settings) -> Position | None:
        """Where learning was when it last was kept; None where nothing was. One that is damaged is passed over, with a warning."""
        damaged: list[FormatError] = []
        for path in reversed(self._all()):
            try:
                content, tensors = read_tensors(path, CHECKPOINT)
            except FormatError as error:
                damaged.append(error)
                continue
            if content["settings"] != _digest(settings):
                raise _other_settings(path.parent.parent)
            if content["source"] != self.source:
                raise InputError(f"{path.parent.parent}: the run learned from other images; resume it with the same source")
            if damaged:
                warnings.warn(f"{damaged[0]}; going on from the checkpoint before it", DamagedCheckpointWarning, stacklevel=1)
            with fitting(path):
                return _position(content, tensors)
        if damaged:
            raise FormatError(f"{damaged[0]}; the run has no other checkpoint: learn again, with overwrite (--overwrite)")
        return None

    def _all(self) -> list[Path]:
        return [] if self.folder is None else sorted(self.folder.glob("??????-??????.safetensors"))


def _position(content: Mapping[str, Any], tensors: Mapping[str, NDArray[Any]]) -> Position:
    def part(name: str) -> dict[str, NDArray[Any]]:
        return {key.removeprefix(f"{name}."): value for key, value in tensors.items() if key.startswith(f"{name}.")}

    dictionary = dictionary_of(part("dictionary"), content, Lineage.from_json(content["lineage"]))
    numbers = {name: content[name] for name in _NUMBERS}
    position = Position(dictionary, **(numbers | {name: int(numbers[name]) for name in ("epoch", "group", "images")}))
    for name in ("step", "kept"):
        setattr(position, name, {key: torch.from_numpy(np.array(value)) for key, value in part(name).items()})
    return position


def require_same(settings: Settings, run: Settings, folder: Path | None) -> None:
    """Refuse settings that a run cannot be resumed with, and name what differs."""
    wanted, own = _decisive(settings), _decisive(run)
    other = [f"{name} {own.get(name)}, not {wanted.get(name)}" for name in sorted(own | wanted) if own.get(name) != wanted.get(name)]
    if other:
        raise _other_settings(folder, f" ({', '.join(other[:3])}{', ...' if len(other) > 3 else ''})")


def _other_settings(folder: Path | None, which: str = "") -> SettingError:
    own = "resume it with its own (leave the options out), or learn into another folder"
    return SettingError(f"{folder}: the run was made with other settings{which}; {own}")


def _decisive(settings: Settings) -> dict[str, Any]:
    """What decides a run, by dotted name."""
    values: dict[str, Any] = {}
    for name, value in settings.model_dump(mode="json").items():
        values |= {f"{name}.{leaf}": inner for leaf, inner in value.items()} if isinstance(value, dict) else {name: value}
    return {name: value for name, value in values.items() if name not in FREE_TO_CHANGE}


def _digest(settings: Settings) -> str:
    """What decides a run, as a checksum."""
    return hashlib.sha256(repr(sorted(_decisive(settings).items())).encode()).hexdigest()


def fingerprint(source: Source) -> str:
    """A checksum that tells one set of images from another: how many, and some of them."""
    digest = hashlib.sha256(str(len(source)).encode())
    for i in np.linspace(0, len(source) - 1, min(LOOKED_AT, len(source))).astype(int).tolist():
        try:
            pixels = source.read(i).pixels
        except InputError:
            continue
        digest.update(f"{i} {pixels.shape}".encode())
        digest.update(np.ascontiguousarray(pixels).data)
    return digest.hexdigest()
