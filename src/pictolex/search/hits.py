"""What is searched and what is found."""

from __future__ import annotations

from dataclasses import dataclass, fields

import torch
from torch import Tensor

from pictolex.formation import Context


@dataclass(frozen=True)
class Hits:
    """Places found, the same number for every batch item, best first: all tensors (batch, n)."""

    kernel: Tensor
    """Number in the bank."""
    left: Tensor
    top: Tensor
    """Top left corner of the kernel's window in the image."""
    score: Tensor
    """What the objective gives it."""
    choice: Tensor
    """Index of the colour chosen."""
    colour: Tensor
    """(batch, n, channels)."""
    gain: Tensor
    """Squared error saved."""

    def best(self, count: int) -> Hits:
        """The best few of each item."""
        order = self.score.topk(min(count, self.score.shape[1]), dim=1).indices
        return self.pick(order)

    def pick(self, order: Tensor) -> Hits:
        """Those at `order` (batch, m)."""
        wide = order.unsqueeze(-1).expand(-1, -1, self.colour.shape[-1])
        return Hits(**{name: getattr(self, name).gather(1, wide if name == "colour" else order) for name in FIELDS})

    @staticmethod
    def stack(parts: list[Hits]) -> Hits:
        """Searches of one part of the batch after the other."""
        return Hits._cat(parts, 0)

    @staticmethod
    def join(parts: list[Hits]) -> Hits:
        """All of several searches of the same batch."""
        return Hits._cat(parts, 1)

    @staticmethod
    def _cat(parts: list[Hits], dim: int) -> Hits:
        return parts[0] if len(parts) == 1 else Hits(**{name: torch.cat([getattr(p, name) for p in parts], dim) for name in FIELDS})


FIELDS = tuple(field.name for field in fields(Hits))


@dataclass(frozen=True)
class Query:
    """What to search: images, their pixel weights and the contexts of the element, all (batch, channels, height, width)."""

    image: Tensor
    weight: Tensor
    context: Context

    def take(self, index: Tensor | slice) -> Query:
        """Some items of the batch."""
        return Query(self.image[index], self.weight[index], self.context.take(index))
