"""The elements of every image, kept between epochs: by the ids of their concepts, which stay when positions shift."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from pictolex.decompose import Layout


@dataclass(frozen=True)
class Move:
    """What becomes of a concept's elements: another concept's, their pose changed by where and how that one lies in the old patch."""

    concept: int
    x: float = 0.0
    y: float = 0.0
    rotation: float = 0.0
    log_scale: float = 0.0

    def then(self, next: Move | None) -> Move:
        """This, and after it a move of the concept that it leads to."""
        if next is None:
            return self
        scale = math.exp(self.log_scale)
        cos, sin = math.cos(self.rotation) * scale, math.sin(self.rotation) * scale
        x, y = self.x + cos * next.x + sin * next.y, self.y + cos * next.y - sin * next.x
        return Move(next.concept, x, y, self.rotation + next.rotation, self.log_scale + next.log_scale)


class Kept:
    """Layouts of images (by their index in the source) and what they cost; on the CPU, a few numbers an element."""

    def __init__(self, images: int, slots: int, channels: int) -> None:
        self.concept = torch.full((images, slots), -1, dtype=torch.long)
        self.pose = torch.zeros(images, slots, 5)
        self.hue = torch.full((images, slots), -1, dtype=torch.long)
        self.colour = torch.ones(images, slots, channels)
        self.energy = torch.full((images,), torch.nan)
        self.stale = torch.ones(images, dtype=torch.bool)

    def put(self, index: Sequence[int], layout: Layout, energy: Tensor, ids: Sequence[int]) -> None:
        """Keep the layouts of some images."""
        where = torch.tensor(index)
        slots = self.concept.shape[1]
        layout = layout.compact().pad(slots)
        narrow = layout.order(torch.arange(slots, device=layout.concept.device).expand(len(index), -1))
        table = torch.tensor([*ids, -1])
        self.concept[where] = table[narrow.concept.cpu()]
        self.pose[where], self.hue[where] = narrow.pose.cpu(), narrow.hue.cpu()
        self.colour[where] = narrow.colour.cpu()
        self.energy[where] = energy.cpu()
        self.stale[where] = False

    def get(self, index: Sequence[int], ids: Sequence[int], device: torch.device) -> Layout:
        """The layouts of some images, by the concepts' places among `ids`; elements of concepts that went are gone."""
        where = torch.tensor(index)
        kept = self.concept[where]
        place = torch.full((max([*ids, int(self.concept.max()), 0]) + 2,), -1, dtype=torch.long)
        place[torch.tensor(list(ids), dtype=torch.long)] = torch.arange(len(ids))
        place[-1] = -1
        layout = Layout(place[kept], self.pose[where], self.hue[where], self.colour[where])
        return Layout(*(t.to(device) for t in (layout.concept, layout.pose, layout.hue, layout.colour))).compact()

    def seen(self, index: Sequence[int]) -> Tensor:
        """Which images have been decomposed before."""
        return ~self.energy[torch.tensor(index)].isnan()

    def uses(self) -> dict[int, int]:
        """How often each concept is used."""
        ids, counts = self.concept[self.concept >= 0].unique(return_counts=True)
        return dict(zip(ids.tolist(), counts.tolist(), strict=True))

    def follow(self, moves: Mapping[int, Move | None]) -> None:
        """Elements follow their concepts, all at once; those of concepts that went (None) leave their images to be searched again."""
        before = self.concept.clone()
        for id, move in moves.items():
            which = before == id
            if move is None:
                self.stale |= which.any(1)
                self.concept[which] = -1
                continue
            pose = self.pose[which]
            rotation, scale = pose[:, 2], torch.exp(pose[:, 3])
            # Where the new centre lies: (x, y) in the patch's own axes, turned and scaled with the element; y is down.
            across, down = move.x * (1 - 2 * pose[:, 4]), torch.full_like(rotation, move.y)
            cos, sin = torch.cos(rotation) * scale, torch.sin(rotation) * scale
            pose[:, 0] += cos * across + sin * down
            pose[:, 1] += cos * down - sin * across
            pose[:, 2] += move.rotation * (1 - 2 * pose[:, 4])
            pose[:, 3] += move.log_scale
            self.pose[which] = pose
            self.concept[which] = move.concept

    def state(self) -> dict[str, Tensor]:
        """All of it, as tensors."""
        return dict(vars(self))

    def resume(self, state: Mapping[str, Tensor]) -> None:
        """Take up what `state` gave."""
        for name, tensor in state.items():
            setattr(self, name, tensor.clone())
