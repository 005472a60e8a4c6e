"""How alike pieces are: pixel by pixel, or up to rotation and scale; and which of them recur."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn import functional

RINGS, SPOKES = 20, 64
FINE = 512
"""Spokes where an angle is wanted exactly."""
SYMMETRIC, EVEN = 0.97, 0.01
"""A picture is its own mirror image if it correlates with that so well; axes within so much of the best are as good."""
REACH = 2.2
"""Radius that is looked at, in radii of a disc as far spread."""
ALIKE = 0.06
"""Two pieces whose squared difference is below this share of their power are one kind."""
DOUBLET = 0.5
TURNED = 0.02
"""A piece is turned if turning it lowers the difference by more than this."""
OFTEN = 0.2
"""A transformation is in use if more than this share of the pieces needs it."""
SPREAD = 1.06
"""Sizes in a kind that differ by more than this factor are scales."""
PAIRS = 2**20
"""Values of cross-correlations that are held at once."""


@dataclass(frozen=True)
class Likeness:
    """All pairs of pieces compared."""

    distance: Tensor
    """(pieces, pieces): squared difference as a share of the power of both, at the best angle."""
    angle: Tensor
    """(pieces, pieces): radians by which the second is turned against the first, counter-clockwise as seen."""
    upright: Tensor
    """(pieces, pieces): the difference without turning."""
    quarter: Tensor
    """(pieces, pieces): at the best quarter turn."""


def centre_and_radius(mask: Tensor) -> tuple[float, float, float]:
    """x, y of the centre of mass, and the radius of the disc that is as far spread around its own."""
    area = float(mask.sum())
    rows, columns = (torch.arange(n, dtype=mask.dtype) + 0.5 for n in mask.shape)
    across, down = mask.sum(0), mask.sum(1)
    x, y = float((across * columns).sum()) / area, float((down * rows).sum()) / area
    spread = float((across * (columns - x).square()).sum() + (down * (rows - y).square()).sum()) / area
    return x, y, math.sqrt(2 * spread)


def turnable(stacks: Sequence[Tensor]) -> Likeness:
    """Compare premultiplied stacks (channels + 1, h, w; alpha last) up to rotation and scale, on rings around their centres."""
    rings = torch.stack([_rings(stack) for stack in stacks])
    count = len(rings)
    power = rings.square().sum((1, 2, 3))
    waves = torch.fft.rfft(rings, dim=3).flatten(1, 2)
    both = power[:, None] + power[None]
    distance, angle, upright, quarter = (torch.empty(count, count) for _ in range(4))
    at_once = max(1, PAIRS // (count * SPOKES))
    for start in range(0, count, at_once):
        part = slice(start, start + at_once)
        cross = torch.einsum("ick,jck->ijk", waves[part].conj(), waves)
        match = torch.fft.irfft(cross, n=SPOKES, dim=2)
        apart = (both[part].unsqueeze(2) - 2 * match) / both[part].unsqueeze(2).clamp_min(1e-9)
        least = apart.min(2)
        distance[part] = least.values
        angle[part] = least.indices * (2 * math.pi / SPOKES)
        upright[part] = apart[..., 0]
        quarter[part] = apart[..., :: SPOKES // 4].amin(2)
    return Likeness(distance, angle, upright, quarter)


def _rings(stack: Tensor, spokes: int = SPOKES) -> Tensor:
    """(channels + 1, rings, spokes): sampled around the centre of mass, weighted by area."""
    height, width = stack.shape[1:]
    x, y, radius = centre_and_radius(stack[-1])
    steps = (torch.arange(RINGS) + 0.5) / RINGS
    turn = torch.arange(spokes) * (2 * math.pi / spokes)
    away = steps[:, None] * REACH * radius
    across, down = x + away * torch.cos(turn), y - away * torch.sin(turn)
    grid = torch.stack([across * (2 / width) - 1, down * (2 / height) - 1], dim=-1).unsqueeze(0)
    seen = functional.grid_sample(stack.unsqueeze(0), grid, mode="bilinear", padding_mode="zeros", align_corners=False)[0]
    return seen * steps.sqrt()[None, :, None]


def upright_angle(stack: Tensor) -> float:
    """By how much a premultiplied stack is turned, counter-clockwise as seen, against how it is best shown.

    A mirror image of itself stands with its axis upright; of several axes that which gives the smallest box, as for anything else.
    """
    if float(stack[-1].max()) <= 0.5:
        return 0.0
    rings = _rings(stack, FINE)
    waves = torch.fft.rfft(rings, dim=2)
    # sum over t of a(t) a(s - t): how much it is its own mirror image about the axis s / 2.
    mirror = torch.fft.irfft(waves * waves, n=FINE, dim=2).sum((0, 1)) / rings.square().sum().clamp_min(1e-9)
    before, after = mirror.roll(1), mirror.roll(-1)
    peaks = ((mirror >= before) & (mirror > after) & (mirror > mirror.max() - EVEN)).nonzero()[:, 0]
    if float(mirror.max()) > SYMMETRIC and len(peaks) < FINE // 8:
        bend = (before + after - 2 * mirror)[peaks]
        offset = torch.where(bend < 0, (before - after)[peaks] / (2 * bend), torch.zeros_like(bend))
        axes = (peaks + offset) * (math.pi / FINE)
        angles = [float(a) - math.pi / 2 for a in axes]
    else:
        angles = [k * math.pi / 2 / 60 for k in range(60)]
    return min(angles, key=lambda angle: (round(_box(stack[-1], angle)), abs(angle)))


def _box(alpha: Tensor, angle: float) -> float:
    """Area of the box around what is shown, if it were turned back by an angle."""
    rows, columns = (alpha > 0.5).nonzero().to(alpha.dtype).unbind(1)
    cos, sin = math.cos(angle), math.sin(angle)
    across, down = cos * columns - sin * rows, sin * columns + cos * rows
    return float((across.max() - across.min() + 1) * (down.max() - down.min() + 1))


def upright(stacks: Sequence[Tensor]) -> Likeness:
    """Compare premultiplied stacks pixel by pixel, the middles of their boxes together."""
    side = [max(s.shape[d] for s in stacks) for d in (1, 2)]
    values = torch.stack([centred(stack, side[0], side[1]).flatten() for stack in stacks])
    power = values.square().sum(1)
    both = power[:, None] + power[None]
    distance = ((both - 2 * values @ values.mT) / both.clamp_min(1e-9)).clamp_min(0)
    return Likeness(distance, torch.zeros_like(distance), distance, distance)


def centred(stack: Tensor, height: int, width: int) -> Tensor:
    """A stack in the middle of a patch at least as large."""
    top, left = (height - stack.shape[1]) // 2, (width - stack.shape[2]) // 2
    return functional.pad(stack, (left, width - stack.shape[2] - left, top, height - stack.shape[1] - top))


@dataclass(frozen=True)
class Kind:
    """Pieces that are one picture."""

    exemplar: int
    members: Tensor
    """(n): which pieces, the exemplar among them."""
    score: float
    """How many pieces it explains, each by the share that it explains of it."""


def recurring(likeness: Likeness, most: int, least: float) -> list[Kind]:
    """Kinds of pieces, the one that explains most first; none that explains fewer than `least` pieces."""
    left = torch.ones(len(likeness.distance), dtype=torch.bool)
    worth = (1 - likeness.distance / ALIKE).clamp_min(0)
    kinds: list[Kind] = []
    while len(kinds) < most and bool(left.any()):
        score = (worth * left).sum(1) * left
        best = int(score.argmax())
        if float(score[best]) < least:
            break
        members = ((likeness.distance[best] < ALIKE) & left).nonzero()[:, 0]
        kinds.append(Kind(best, members, float(score[best])))
        left[members] = False
    return kinds


@dataclass(frozen=True)
class Turns:
    """Which transformations the members of some kinds need."""

    free: bool
    """Any rotation."""
    quarter: bool
    """Quarter turns at least."""
    scales: tuple[float, float]
    """Smallest and largest size, relative to the largest."""


def needed(likeness: Likeness, kinds: Sequence[Kind], radius: Tensor) -> Turns:
    """What happens to the pieces within their kinds."""
    free = quarter = total = 0
    low = 1.0
    for kind in kinds:
        row, members = kind.exemplar, kind.members
        best = likeness.distance[row, members]
        close = members[best < ALIKE * DOUBLET]
        if not len(close):
            continue
        best = likeness.distance[row, close]
        free += int((likeness.quarter[row, close] > best + TURNED).sum())
        quarter += int((likeness.upright[row, close] > best + TURNED).sum())
        total += len(close)
        ends = torch.quantile(radius[close], torch.tensor([0.03, 0.97]))
        low = min(low, float(ends[0] / ends[1]))
    scaled = low < 1 / SPREAD
    return Turns(free > OFTEN * total, quarter > OFTEN * total, (low, 1.0) if scaled else (1.0, 1.0))
