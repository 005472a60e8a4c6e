"""The elements of a batch of images as tensors: a fixed number of slots an image, front to back, empty where the concept is -1."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor


@dataclass(frozen=True)
class Layout:
    """Elements of (batch) images in (slots)."""

    concept: Tensor
    """(batch, slots): position in the dictionary, -1 where empty."""
    pose: Tensor
    """(batch, slots, 5): x, y, rotation, log scale, mirror."""
    hue: Tensor
    """(batch, slots): index of the hue, -1 where there is none."""
    colour: Tensor
    """(batch, slots, channels)."""

    @staticmethod
    def empty(batch: int, slots: int, channels: int, device: torch.device) -> Layout:
        """No elements at all."""
        none = torch.full((batch, slots), -1, dtype=torch.long, device=device)
        return Layout(none, torch.zeros(batch, slots, 5, device=device), none.clone(), torch.ones(batch, slots, channels, device=device))

    @property
    def used(self) -> Tensor:
        """(batch, slots): where there is an element."""
        return self.concept >= 0

    @property
    def count(self) -> Tensor:
        """(batch): elements of each image."""
        return self.used.sum(1)

    def take(self, index: Tensor | slice) -> Layout:
        """Some images."""
        return self._each(lambda t: t[index])

    def clone(self) -> Layout:
        """A copy that differentiation may use."""
        return self._each(Tensor.clone)

    def order(self, index: Tensor) -> Layout:
        """Slots in another order, or some of them: `index` (batch, m)."""
        return self._each(lambda t: t.gather(1, index if t.ndim == 2 else index.unsqueeze(-1).expand(-1, -1, t.shape[-1])))

    def compact(self) -> Layout:
        """Empty slots moved to the back, the order of the others kept."""
        return self.order(torch.argsort((~self.used).to(torch.int8), dim=1, stable=True))

    def put(self, slot: int, other: Layout) -> Layout:
        """This, with slot `slot` replaced by the only slot of `other`."""

        def mix(mine: Tensor, theirs: Tensor) -> Tensor:
            mixed = mine.clone()
            mixed[:, slot] = theirs[:, 0]
            return mixed

        return self._each(mix, other)

    def replace(self, index: Tensor, part: Layout) -> Layout:
        """With the images at `index` replaced."""

        def mix(mine: Tensor, theirs: Tensor) -> Tensor:
            mixed = mine.clone()
            mixed[index] = theirs
            return mixed

        return self._each(mix, part)

    def without(self, where: Tensor) -> Layout:
        """With the slots `where` (batch, slots, bool) emptied."""
        return Layout(torch.where(where, torch.full_like(self.concept, -1), self.concept), self.pose, self.hue, self.colour)

    def pad(self, slots: int) -> Layout:
        """With empty slots added at the back up to `slots`."""
        more = slots - self.concept.shape[1]
        if more <= 0:
            return self
        return Layout.join([self, Layout.empty(self.concept.shape[0], more, self.colour.shape[-1], self.concept.device)])

    @staticmethod
    def join(parts: list[Layout]) -> Layout:
        """Slots of several layouts of the same images, one after the other."""
        return parts[0]._each(lambda *tensors: torch.cat(tensors, 1), *parts[1:])

    @staticmethod
    def stack(parts: list[Layout]) -> Layout:
        """Images of several layouts one after the other; shorter ones are padded."""
        slots = max(p.concept.shape[1] for p in parts)
        padded = [p.pad(slots) for p in parts]
        return padded[0]._each(lambda *tensors: torch.cat(tensors), *padded[1:])

    def flatten(self, slots: int) -> Layout:
        """(batch, sets * slots) read as (batch * sets, slots)."""
        return self._each(lambda t: t.reshape(-1, slots, *t.shape[2:]))

    def _each(self, change: Callable[..., Tensor], *others: Layout) -> Layout:
        """The same done to every tensor, with its like in `others`."""
        return Layout(*(change(*(getattr(one, name) for one in (self, *others))) for name in ("concept", "pose", "hue", "colour")))
