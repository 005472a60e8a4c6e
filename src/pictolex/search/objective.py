"""What a search maximises: squared error saved, or the normalised cross-correlation of the paper."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor

from pictolex.formation import Context, Formation, Forms
from pictolex.settings import Correlation, SquaredError


@dataclass(frozen=True)
class Sums:
    """What the score needs of the image itself, per batch item."""

    image: Tensor
    """`|I|^2`."""
    rebuilt: Tensor
    """`|R|^2` without the element."""
    inner: Tensor
    """`<I, R>` without the element."""

    def take(self, index: Tensor | slice) -> Sums:
        """Some items of the batch."""
        return Sums(self.image[index], self.rebuilt[index], self.inner[index])


class Objective(ABC):
    """Scores a placement from the squared error it saves and its inner product with the image."""

    needs_inner: bool

    @abstractmethod
    def score(self, gain: Tensor, inner: Tensor | None, sums: Sums) -> Tensor:
        """Scores of (colours, batch, ...)."""

    @abstractmethod
    def start(self, sums: Sums) -> Tensor:
        """The score of leaving the element out, per batch item."""

    def inner(self, formation: Formation, image: Tensor, weight: Tensor, context: Context) -> Forms | None:
        """The forms of `<I, effect>` where needed."""
        return formation.inner(image * weight, context) if self.needs_inner else None


class Squared(Objective):
    """The squared error saved."""

    needs_inner = False

    def score(self, gain: Tensor, inner: Tensor | None, sums: Sums) -> Tensor:
        """The gain."""
        return gain

    def start(self, sums: Sums) -> Tensor:
        """Nothing saved."""
        return torch.zeros_like(sums.image)


class CrossCorrelation(Objective):
    """`<I, R> / |I| |R|` of the whole rebuilt image; 0 where either is black (0/0)."""

    needs_inner = True

    def score(self, gain: Tensor, inner: Tensor | None, sums: Sums) -> Tensor:
        """With the effect e of the element: `|R + e|^2 = |R|^2 + 2 <I, e> - gain`."""
        if inner is None:
            raise ValueError("the normalised cross-correlation needs the inner products")
        shape = (-1, *([1] * (gain.ndim - 2)))
        squared = sums.rebuilt.view(shape) + 2 * inner - gain
        return _ratio(sums.inner.view(shape) + inner, squared, sums.image.view(shape))

    def start(self, sums: Sums) -> Tensor:
        """The correlation without the element."""
        return _ratio(sums.inner, sums.rebuilt, sums.image)


def _ratio(inner: Tensor, squared: Tensor, image: Tensor) -> Tensor:
    power = squared * image
    return torch.where((squared > 1e-6) & (image > 1e-6), inner / power.clamp_min(1e-12).sqrt(), torch.zeros_like(inner))


def sums(image: Tensor, weight: Tensor, rebuilt: Tensor) -> Sums:
    """The sums over all pixels and channels."""
    dims = (-3, -2, -1)
    return Sums((weight * image * image).sum(dims), (weight * rebuilt * rebuilt).sum(dims), (weight * image * rebuilt).sum(dims))


_KINDS: dict[str, Callable[[], Objective]] = {"squared": Squared, "ncc": CrossCorrelation}


def create(setting: SquaredError | Correlation) -> Objective:
    """The objective that a setting names."""
    return _KINDS[setting.kind]()
