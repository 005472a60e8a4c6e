"""What learning changes: shapes, alphas, hues and background, each a free number x behind a value `sin(30 x) / 2 + 1 / 2` in [0, 1]."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from pictolex.formation import Patches
from pictolex.model import Background, Concept, Dictionary

FREQUENCY = 30.0
CLIP = 0.02
"""The sine has no slope at 0 and 1: values start at least this far inside, or they could never leave."""


def to_value(free: Tensor) -> Tensor:
    """The value of a free number."""
    return torch.sin(FREQUENCY * free) * 0.5 + 0.5


def to_free(value: Tensor) -> Tensor:
    """The free number nearest to zero of a value, clipped to where the sine has a slope."""
    return torch.arcsin(value.clamp(CLIP, 1 - CLIP) * 2 - 1) / FREQUENCY


def padded(dictionary: Dictionary, device: torch.device) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Straight shapes, alphas, and 1 where a patch is (concepts, channels, height, width; padded to one size); sizes (concepts, 2)."""
    concepts = dictionary.concepts
    channels = max(c.shape.shape[-1] for c in concepts)
    height, width = (max(c.alpha.shape[d] for c in concepts) for d in (0, 1))
    shape = np.zeros((len(concepts), channels, height, width), np.float32)
    alpha = np.zeros((len(concepts), 1, height, width), np.float32)
    inside = np.zeros_like(alpha)
    for j, c in enumerate(concepts):
        h, w = c.alpha.shape
        shape[j, :, :h, :w] = np.moveaxis(c.shape, -1, 0)
        alpha[j, 0, :h, :w] = c.alpha
        inside[j, 0, :h, :w] = 1
    on = [torch.from_numpy(values).to(device) for values in (shape, alpha, inside)]
    return on[0], on[1], on[2], torch.tensor([c.alpha.shape for c in concepts], device=device)


@dataclass
class Parameters:
    """The free numbers of a dictionary, and which pixels of the padded patches belong to it."""

    shape: Tensor
    """(concepts, channels, height, width)."""
    alpha: Tensor
    """(concepts, 1, height, width)."""
    inside: Tensor
    """(concepts, 1, height, width): 1 on the concept's own patch."""
    size: Tensor
    """(concepts, 2): own height and width."""
    hues: Tensor | None
    background: Tensor | None
    template: Dictionary

    @staticmethod
    def of(dictionary: Dictionary, device: torch.device) -> Parameters:
        """The free numbers that give a dictionary's values."""
        shape, alpha, inside, size = padded(dictionary, device)

        def free(values: NDArray[np.float32] | None) -> Tensor | None:
            return None if values is None else to_free(torch.tensor(values, device=device)).requires_grad_()

        return Parameters(
            to_free(shape).requires_grad_(),
            to_free(alpha).requires_grad_(),
            inside,
            size,
            free(dictionary.hues),
            free(dictionary.background.values),
            dictionary,
        )

    def free(self) -> list[Tensor]:
        """All that an optimiser changes."""
        return [t for t in (self.shape, self.alpha, self.hues, self.background) if t is not None]

    def patches(self) -> Patches:
        """Premultiplied values, differentiable."""
        alpha = to_value(self.alpha) * self.inside
        return Patches(torch.cat([to_value(self.shape) * alpha, alpha], dim=1), self.size.flip(1).float() / 2, self.size)

    def colours(self) -> Tensor | None:
        """The hues, differentiable."""
        return None if self.hues is None else to_value(self.hues)

    def behind(self) -> Tensor | None:
        """The learned background (channels or channels, height, width), differentiable."""
        if self.background is None:
            return None
        value = to_value(self.background)
        return value.movedim(-1, 0) if value.ndim == 3 else value

    def dictionary(self, frozen: frozenset[int] = frozenset()) -> Dictionary:
        """The values as they are now, frozen concepts as they were."""
        with torch.no_grad():
            shape, alpha = to_value(self.shape).cpu().numpy(), to_value(self.alpha).cpu().numpy()
            hues = None if self.hues is None else to_value(self.hues).cpu().numpy()
            background = None if self.background is None else to_value(self.background).cpu().numpy()
        concepts = []
        for j, old in enumerate(self.template.concepts):
            h, w = old.alpha.shape
            made = Concept(old.id, np.moveaxis(shape[j, :, :h, :w], 0, -1), alpha[j, 0, :h, :w], old.name)
            concepts.append(old if old.id in frozen else made)
        kept = self.template.background
        return replace(
            self.template,
            concepts=tuple(concepts),
            hues=hues,
            background=kept if background is None else Background(kept.kind, background),
        )
