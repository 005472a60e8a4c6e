"""Pieces of images: connected regions in front of the background, of one colour each or whole."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

SEEN = 0.08
"""A pixel this far from the background shows something, where there is no noise."""
NOISE = 4.0
"""Standard deviations of the noise that a pixel has to be away."""
SAME_COLOUR = 0.2
"""Neighbouring pixels of one colour differ in chroma (brightness set aside) by less than this."""
DARK = 0.1
"""Below this brightness a pixel has no chroma: it is black."""
LEAST = 8
"""Pixels of the smallest piece."""
BRIGHTEST = 0.25
"""Share of a piece's pixels that say what colour it has."""


@dataclass(frozen=True)
class Piece:
    """A region of an image, cut to its box."""

    image: int
    """Which of the images it was cut from."""
    mask: Tensor
    """(height, width): 1 inside."""
    straight: Tensor
    """(channels, height, width): the image there."""
    colour: Tensor
    """(channels): what its brightest pixels show."""
    whole: bool
    """It does not touch the border of the image."""

    @property
    def area(self) -> float:
        """Pixels."""
        return float(self.mask.sum())

    def relative(self) -> Tensor:
        """(1, height, width): brightness relative to its colour; 1 where that is black."""
        power = float(self.colour.square().sum())
        if power < DARK * DARK:
            return torch.ones_like(self.straight[:1])
        return ((self.straight * self.colour[:, None, None]).sum(0, keepdim=True) / power).clamp(0, 1)


def threshold(images: Sequence[Tensor]) -> float:
    """How far from the background a pixel shows something: above the noise, which differences of neighbours tell."""
    steps = torch.cat([(image[:, :, 1:] - image[:, :, :-1]).abs().flatten()[:4096] for image in images])
    noise = float(steps.median()) / (0.6745 * 2**0.5)
    return max(SEEN, NOISE * noise)


def cut(image: Tensor, behind: Tensor, number: int, seen: float, one_colour: bool) -> list[Piece]:
    """The pieces of an image (channels, height, width) in front of a background of the same size."""
    shown = (image - behind).abs().amax(0) > seen
    right, down, falling, rising = _links(image, shown, one_colour)
    labels = label(shown, right, down, falling, rising)
    height, width = shown.shape
    pieces = []
    for value in labels.unique().tolist():
        if value == 0:
            continue
        inside = labels == value
        rows, columns = inside.nonzero().unbind(1)
        if len(rows) < LEAST:
            continue
        top, left, bottom, end = int(rows.min()), int(columns.min()), int(rows.max()) + 1, int(columns.max()) + 1
        mask = inside[top:bottom, left:end]
        straight = image[:, top:bottom, left:end]
        whole = top > 0 and left > 0 and bottom < height and end < width
        pieces.append(Piece(number, mask.float(), straight.clone(), _colour(straight[:, mask]), whole))
    return pieces


def _colour(pixels: Tensor) -> Tensor:
    """The mean of the brightest pixels (channels, n)."""
    order = pixels.sum(0).argsort(descending=True)
    return pixels[:, order[: max(1, int(len(order) * BRIGHTEST))]].mean(1)


def _links(image: Tensor, shown: Tensor, one_colour: bool) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Which neighbours belong together: to the right, below, below right, below left."""
    bright = image.amax(0)
    chroma = image / bright.clamp_min(1e-3)
    dark = bright < DARK

    def linked(a: tuple[slice, slice], b: tuple[slice, slice]) -> Tensor:
        both = shown[a] & shown[b]
        if not one_colour:
            return both
        near = (chroma[(slice(None), *a)] - chroma[(slice(None), *b)]).abs().amax(0) < SAME_COLOUR
        return both & (dark[a] == dark[b]) & (near | dark[a])

    start, end, every = slice(None, -1), slice(1, None), slice(None)
    # Of one colour, corners do not connect: pieces of one colour that touch at a corner are two.
    corners = torch.zeros_like(shown[1:, 1:])
    return (
        linked((every, start), (every, end)),
        linked((start, every), (end, every)),
        corners if one_colour else linked((start, start), (end, end)),
        corners if one_colour else linked((start, end), (end, start)),
    )


def label(shown: Tensor, right: Tensor, down: Tensor, falling: Tensor, rising: Tensor) -> Tensor:
    """(height, width): one number for all pixels that are linked, directly or through others; 0 where nothing is shown."""
    height, width = shown.shape
    labels = (torch.arange(height * width, device=shown.device) + 1).view(height, width) * shown
    pairs = (
        ((slice(None), slice(None, -1)), (slice(None), slice(1, None)), right.long()),
        ((slice(None, -1), slice(None)), (slice(1, None), slice(None)), down.long()),
        ((slice(None, -1), slice(None, -1)), (slice(1, None), slice(1, None)), falling.long()),
        ((slice(None, -1), slice(1, None)), (slice(1, None), slice(None, -1)), rising.long()),
    )
    none = torch.zeros(1, dtype=labels.dtype, device=labels.device)
    while True:
        new = labels.clone()
        for a, b, link in pairs:
            first, second = new[a] * link, new[b] * link
            new[a] = torch.maximum(new[a], second)
            new[b] = torch.maximum(new[b], first)
        # Each takes the label that the owner of its label has by now: paths halve, whatever their length.
        new = torch.maximum(new, torch.cat([none, new.flatten()])[new])
        if torch.equal(new, labels):
            return labels
        labels = new
