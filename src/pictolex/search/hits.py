"""What is searched and what is found."""

from __future__ import annotations

from dataclasses import dataclass

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
        colour = self.colour.gather(1, order.unsqueeze(-1).expand(-1, -1, self.colour.shape[-1]))
        names = ("kernel", "left", "top", "score", "choice", "gain")
        picked = {name: getattr(self, name).gather(1, order) for name in names}
        return Hits(colour=colour, **picked)

    @staticmethod
    def stack(parts: list[Hits]) -> Hits:
        """Searches of one part of the batch after the other."""
        names = ("kernel", "left", "top", "score", "choice", "colour", "gain")
        return Hits(**{name: torch.cat([getattr(p, name) for p in parts], dim=0) for name in names})

    @staticmethod
    def join(parts: list[Hits]) -> Hits:
        """All of several searches of the same batch."""
        names = ("kernel", "left", "top", "score", "choice", "colour", "gain")
        return Hits(**{name: torch.cat([getattr(p, name) for p in parts], dim=1) for name in names})


@dataclass(frozen=True)
class Query:
    """What to search: images, their pixel weights and the contexts of the element, all (batch, channels, height, width)."""

    image: Tensor
    weight: Tensor
    context: Context

    def take(self, index: Tensor | slice) -> Query:
        """Some items of the batch."""
        return Query(self.image[index], self.weight[index], self.context.take(index))
