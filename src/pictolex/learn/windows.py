"""Windows of images that recur, for pictures whose pieces touch: what all places with the same middle have in common is a kind."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional

from pictolex.learn.pieces import label
from pictolex.learn.survey import Survey

CANDIDATES = 160
"""Windows that are tried."""
PIXELS = 150_000
"""Pixels that they are looked for in."""
CORE = 0.3
"""Radius of the middle that has to match, in sides of the window."""
MATCH = 0.15
"""Squared difference from the middle of a window, as a share of what it shows, that is a match."""
FULL = 0.3
"""Share of a middle that has to show something."""
AGREE = 0.3
"""Mean difference between the places, as a share of what is shown there, up to which a pixel belongs to the kind."""
FEWEST = 3
"""Places of a kind."""
RECENTRED = 3


@dataclass(frozen=True)
class Window:
    """What recurs: straight colour and alpha (channels + 1, side, side), how many places have it, and how much it explains."""

    patch: Tensor
    places: int
    pixels: float


@dataclass(frozen=True)
class _Place:
    """Where windows of a kind are: their middles (image, y, x), and how near each is (1: the same)."""

    where: list[tuple[int, int, int]]
    score: float


def recurring_windows(survey: Survey, side: int, most: int) -> list[Window]:
    """Kinds of windows (sides are made odd), that which explains most first."""
    side = side + 1 - side % 2
    images, planes = _some(survey)
    if min(min(i.shape[1:]) for i in images) < side:
        return []
    shown = [(i - p).abs().amax(0) > survey.seen for i, p in zip(images, planes, strict=True)]
    free = [s.clone() for s in shown]
    generator = np.random.default_rng([survey.seed, 2])
    candidates = _candidates(shown, side, generator)
    disc = _disc(side)
    squares = [functional.conv2d(i.square().sum(0)[None, None], disc[None, None], padding=side // 2)[0, 0] for i in images]
    found: list[Window] = []
    while candidates and len(found) < most:
        places = [_places(images, planes, free, squares, candidate, side) for candidate in candidates]
        best = int(np.argmax([p.score for p in places]))
        if len(places[best].where) < FEWEST:
            break
        made = _kind(images, planes, places[best].where, survey.seen, side)
        if made is None:
            candidates.pop(best)
            continue
        patch, where = made
        found.append(Window(patch, len(where), _claim(free, patch, where, side)))
        candidates = [(i, y, x) for i, y, x in candidates if bool(free[i][y, x])]
    return found


def _some(survey: Survey) -> tuple[list[Tensor], list[Tensor]]:
    """As many images as are looked through."""
    images, planes, pixels = [], [], 0
    for image, plane in zip(survey.images, survey.planes, strict=True):
        images.append(image)
        planes.append(plane)
        pixels += image[0].numel()
        if pixels > PIXELS:
            break
    return images, planes


def _disc(side: int) -> Tensor:
    steps = torch.arange(side) - side // 2
    return ((steps[:, None] ** 2 + steps[None, :] ** 2) <= (CORE * side) ** 2).float()


def _candidates(shown: list[Tensor], side: int, generator: np.random.Generator) -> list[tuple[int, int, int]]:
    """Middles of windows that lie within their image and show enough."""
    disc, half = _disc(side), side // 2
    found: list[tuple[int, int, int]] = []
    for number, one in enumerate(shown):
        full = functional.conv2d(one[None, None].float(), disc[None, None])[0, 0] / disc.sum() > FULL
        where = (full & one[half:-half, half:-half]).nonzero() + half
        found += [(number, int(y), int(x)) for y, x in where.tolist()]
    order = generator.permutation(len(found))[:CANDIDATES]
    return [found[k] for k in sorted(order.tolist())]


def _places(
    images: list[Tensor], planes: list[Tensor], free: list[Tensor], squares: list[Tensor], candidate: tuple[int, int, int], side: int
) -> _Place:
    """Where the middle of a window comes again, in what no kind has explained yet."""
    number, y, x = candidate
    half, disc = side // 2, _disc(side)
    part = (slice(None), slice(y - half, y + half + 1), slice(x - half, x + half + 1))
    template = images[number][part]
    power = float((disc * (template - planes[number][part]).square()).sum())
    weighted = (disc * template).unsqueeze(0)
    own = float((disc * template.square()).sum())
    where: list[tuple[int, int, int]] = []
    score = 0.0
    for k, (image, one) in enumerate(zip(images, free, strict=True)):
        cross = functional.conv2d(image.unsqueeze(0), weighted, padding=half)[0, 0]
        apart = (squares[k] - 2 * cross + own) / max(power, 1e-6)
        # Beyond the border nothing is known: only middles within the image whose disc is.
        edge = int(CORE * side) + 1
        known = torch.zeros_like(apart, dtype=torch.bool)
        known[edge:-edge, edge:-edge] = True
        near = torch.where(known & one, apart, torch.full_like(apart, torch.inf))
        low = -functional.max_pool2d(-near[None, None], side // 2 * 2 + 1, 1, side // 2)[0, 0]
        hits = ((near == low) & (near < MATCH)).nonzero()
        where += [(k, int(a), int(b)) for a, b in hits.tolist()]
        score += float((1 - near[hits[:, 0], hits[:, 1]] / MATCH).sum()) if len(hits) else 0.0
    return _Place(where, score * power)


def _kind(
    images: list[Tensor], planes: list[Tensor], where: list[tuple[int, int, int]], seen: float, side: int
) -> tuple[Tensor, list[tuple[int, int, int]]] | None:
    """What the places have in common, its middle in the middle."""
    for _ in range(RECENTRED):
        windows, behind, known = _gathered(images, planes, where, side)
        median = torch.where(known.unsqueeze(1), windows, torch.nan).nanmedian(0).values
        shown = (median - behind.median(0).values).nan_to_num(0).abs().amax(0)
        spread = torch.where(known, (windows - median).abs().amax(1), 0).sum(0) / known.sum(0).clamp_min(1)
        belongs = (shown > seen) & (spread < AGREE * shown) & (known.sum(0) >= min(FEWEST, len(where)))
        part = _largest_part(belongs)
        if not bool(part.any()):
            return None
        rows, columns = part.nonzero().unbind(1)
        down = (int(rows.min()) + int(rows.max())) // 2 - side // 2
        across = (int(columns.min()) + int(columns.max())) // 2 - side // 2
        if down == 0 and across == 0:
            break
        where = [(k, y + down, x + across) for k, y, x in where]
    return torch.cat([median.nan_to_num(0), part.float().unsqueeze(0)]), where


def _gathered(images: list[Tensor], planes: list[Tensor], where: list[tuple[int, int, int]], side: int) -> tuple[Tensor, Tensor, Tensor]:
    """Windows and what is behind them (places, channels, side, side), and which of their pixels are in the image."""
    cut = []
    for k, y, x in where:
        all_three = torch.cat([images[k], planes[k], torch.ones_like(images[k][:1])])
        padded = functional.pad(all_three, (side, side, side, side))
        corner = [max(0, min(at + side - side // 2, n - side)) for at, n in zip((y, x), padded.shape[1:], strict=True)]
        cut.append(padded[:, corner[0] : corner[0] + side, corner[1] : corner[1] + side])
    stack, channels = torch.stack(cut), images[0].shape[0]
    return stack[:, :channels], stack[:, channels:-1], stack[:, -1] > 0


def _largest_part(belongs: Tensor) -> Tensor:
    """The largest connected part."""
    right, down = belongs[:, 1:] & belongs[:, :-1], belongs[1:] & belongs[:-1]
    falling, rising = belongs[1:, 1:] & belongs[:-1, :-1], belongs[:-1, 1:] & belongs[1:, :-1]
    labels = label(belongs, right, down, falling, rising)
    values, counts = labels[labels > 0].unique(return_counts=True)
    return labels == values[counts.argmax()] if len(values) else belongs


def _claim(free: list[Tensor], patch: Tensor, where: list[tuple[int, int, int]], side: int) -> float:
    """Take what a kind explains from what is free; how many pixels that were."""
    half = side // 2
    before = sum(int(one.sum()) for one in free)
    alpha = functional.max_pool2d(patch[-1:][None], 3, 1, 1)[0, 0] > 0
    for k, y, x in where:
        height, width = free[k].shape
        top, left, bottom, right = max(0, y - half), max(0, x - half), min(height, y + half + 1), min(width, x + half + 1)
        if bottom > top and right > left:
            inner = alpha[top - y + half : bottom - y + half, left - x + half : right - x + half]
            free[k][top:bottom, left:right] &= ~inner
    return float(before - sum(int(one.sum()) for one in free))
