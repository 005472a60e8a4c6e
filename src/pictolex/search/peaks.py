"""Coarse search: the peaks over all shifts of the pooled scores of all kernels on a shelf."""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn import functional

from pictolex.search.bank import Shelf
from pictolex.search.correlate import Box, Plan, combine, correlate, lines, phased, pooled
from pictolex.search.cost import CostModel
from pictolex.search.hits import Hits
from pictolex.search.objective import Sums
from pictolex.search.score import Scorer

BUCKETS = 32
"""Sets of kernels whose peaks compete separately, so that one that is second best at a place still gets its chance."""
FIRST_LOOK = 48
"""Shifts with the most error in their window, looked at first to learn which others are worth it."""
BLURRED_SIDE = 14
"""Kernels from this side on are first held against pooled windows, at every shift."""
BLURRED_SLACK = 0.45
"""Share of the best score by which a shift may fall behind there and still be looked at closely."""
FEW_KERNELS = 64
"""Fewer pooled kernels than this are looked at everywhere."""
CACHE = 24 * 2**20
"""Bytes of working arrays on a CPU: what its caches hold, and what the allocator gives back without asking the system."""


@dataclass(frozen=True)
class Coarse:
    """One coarse search."""

    scorer: Scorer
    shelf: Shelf
    request: Plan
    totals: Sums
    error: Tensor
    """(batch, height, width): what is there to be saved."""
    box: Box
    pool: int
    cost: CostModel
    memory: int

    @property
    def working(self) -> int:
        """Bytes for working arrays."""
        return self.memory // 2 if self.error.is_cuda else min(self.memory // 2, CACHE)


def all_peaks(coarse: Coarse, count: int, labels: Tensor | None, *, exact: bool) -> Hits:
    """The best peaks over all kernels, or `count` for each label, from the scores of every kernel at every shift."""
    request, shelf, pool = coarse.request, coarse.shelf, coarse.pool
    padded, first = pooled(request.maps, pool, shelf.size, coarse.box)
    kernel = (shelf.size[0] // pool, shelf.size[1] // pool)
    down, right = padded.shape[-2] - kernel[0] + 1, padded.shape[-1] - kernel[1] + 1
    batch = padded.shape[0]
    image = (padded.shape[-2], padded.shape[-1])
    method = coarse.cost.choose(batch, len(request.names), len(shelf), kernel, image) if exact else "shared"
    each = 4 * down * right * (request.forms + 1)
    step = max(1, coarse.working // (each * len(shelf)))
    found = []
    for start in range(0, batch, step):
        part = slice(start, start + step)
        totals = coarse.totals.take(part)
        pieces = []
        for index in _chunks(len(shelf), labels, coarse.memory // 2 // (each * len(padded[part]))):
            outputs = correlate(request, padded[part], shelf, index, pool, method, coarse.cost.half)
            scores = coarse.scorer.best(outputs, totals, request.gains)
            pieces.append(_tops(scores, shelf, index, None if labels is None else labels[index], count, pool, first))
        joined = Hits.join(pieces)
        found.append(joined if labels is not None or len(pieces) == 1 else joined.best(count))
    return Hits.stack(found)


def likely_peaks(coarse: Coarse, count: int) -> Hits | None:
    """The same as `all_peaks` without labels, but only where a window holds more error than the best score found: nothing else can win.

    None where there are few kernels and they are pooled: then looking everywhere is cheaper.
    """
    shelf, pool = coarse.shelf, coarse.pool
    if len(shelf) < FEW_KERNELS and pool > 1:
        return None
    padded, first = pooled(coarse.request.maps, pool, shelf.size, coarse.box)
    errors, _ = pooled(coarse.error.unsqueeze(1), pool, shelf.size, coarse.box)
    kernel = (shelf.size[0] // pool, shelf.size[1] // pool)
    # A box filter, first along columns, then along rows.
    within = functional.avg_pool2d(functional.avg_pool2d(errors, (kernel[0], 1), stride=1), (1, kernel[1]), stride=1)[:, 0]
    within = within * (kernel[0] * kernel[1] * pool * pool)
    shifts = within.shape[1] * within.shape[2]
    each = 4 * shifts * (len(shelf) * coarse.request.forms + 2 * kernel[0] * kernel[1]) // 5 + 4 * shifts * 3 * BUCKETS
    step = max(1, 3 * coarse.working // each)
    found = [_look(coarse, padded[s : s + step], within[s : s + step], count, first) for s in range(0, len(padded), step)]
    return Hits.stack(found)


def _look(coarse: Coarse, padded: Tensor, within: Tensor, count: int, first: tuple[int, int]) -> Hits:
    """Score the shifts with the most error in their window, then all others that could still win."""
    batch, down, right = within.shape
    shelf, device, shifts = coarse.shelf, within.device, down * right
    within = within.flatten(1)
    fine = Windows.of(padded, coarse.pool, 1)
    offsets = torch.arange(batch, device=device).unsqueeze(1) * shifts
    early = within.topk(min(FIRST_LOOK, shifts), dim=1).indices
    best = _scores_at(coarse, fine, (early + offsets).flatten(), right).amax(0).view(batch, -1).amax(1, keepdim=True)
    rows = (within > best.float().clamp_min(0) * 0.98).flatten().nonzero()[:, 0]
    if not len(rows):
        rows = early[:, 0] + offsets[:, 0]
    if coarse.pool == 1 and min(shelf.size) >= BLURRED_SIDE and shelf.pool > 1:
        rows = _promising(coarse, Windows.of(padded, 1, 2), rows, right, shifts)
    scores = _scores_at(coarse, fine, rows, right)
    buckets = _blocks(len(shelf))
    grouped = torch.full((len(buckets), batch * shifts), -math.inf, device=device)
    grouped[:, rows] = _bucket_best(scores.unsqueeze(0).unsqueeze(-1), buckets)[0, ..., 0].float()
    ranked = grouped.view(-1, batch, down, right).transpose(0, 1)
    ranked = torch.where(ranked >= _neighbourhood(ranked), ranked, torch.full_like(ranked, -math.inf)).flatten(1)
    score, place = ranked.topk(min(count, ranked.shape[1]), dim=1)
    bucket, position = torch.div(place, shifts, rounding_mode="floor"), place % shifts
    column = torch.zeros(batch * shifts, dtype=torch.long, device=device)
    column[rows] = torch.arange(len(rows), device=device)
    table = _table(buckets, len(shelf), device)[bucket]
    inside = scores[table, column[position + offsets].unsqueeze(-1)]
    chosen = table.gather(2, inside.argmax(2, keepdim=True)).squeeze(2)
    return _as_hits(shelf.number[chosen], position, right, score, coarse.pool, first)


def _promising(coarse: Coarse, blurred: Windows, rows: Tensor, right: int, shifts: int) -> Tensor:
    """Of some shifts, those whose best score seen through pooled windows comes near the best of their image."""
    scores = _scores_at(coarse, blurred, rows, right).amax(0).float()
    item = torch.div(rows, shifts, rounding_mode="floor")
    best = torch.full((int(item.max()) + 1,), -math.inf, device=rows.device).scatter_reduce(0, item, scores, "amax")
    return rows[scores >= best[item] - BLURRED_SLACK * best[item].abs()]


@dataclass(frozen=True)
class Windows:
    """Padded maps, laid out so that the window at any shift is copied in whole rows."""

    maps: Tensor
    """(batch, rows, phases, columns, pairs)."""
    level: int
    """Pooling of the maps themselves: shifts are multiples of it."""
    blur: int
    """Pooling of the windows, on top of it: shifts are not bound to it."""

    @staticmethod
    def of(padded: Tensor, level: int, blur: int) -> Windows:
        """Of maps that `pooled` has pooled by `level` and padded."""
        return Windows(phased(padded, blur, 0), level, blur)

    def take(self, pairs: slice, rows: Tensor, right: int, size: tuple[int, int]) -> Tensor:
        """(rows, values): windows of kernels of `size` pixels at shifts numbered over the whole batch."""
        tall, phases, columns = self.maps.shape[1:4]
        pool = self.level * self.blur
        high, wide = size[0] // pool, size[1] // pool
        shifts = (tall - size[0] // self.level + 1) * right
        item, shift = torch.div(rows, shifts, rounding_mode="floor"), rows % shifts
        x, y = shift % right, torch.div(shift, right, rounding_mode="floor")
        corner = ((item * tall + y) * phases + x % phases) * columns + torch.div(x, phases, rounding_mode="floor")
        across = phases * columns * self.blur
        index = (corner.unsqueeze(1) + torch.arange(high, device=rows.device) * across).flatten()
        return lines(self.maps[..., pairs], wide).index_select(0, index).view(len(rows), -1)


def _scores_at(coarse: Coarse, windows: Windows, rows: Tensor, right: int) -> Tensor:
    """(kernels, rows): scores of all kernels at some shifts, numbered over the whole batch."""
    request, shelf = coarse.request, coarse.shelf
    pool = windows.level * windows.blur
    outputs = []
    for form in range(request.forms):
        pairs = request.pairs(form)
        if pairs.stop == pairs.start:
            outputs.append(torch.zeros(len(shelf), len(rows), device=rows.device))
            continue
        taken = windows.take(pairs, rows, right, shelf.size)
        outputs.append(combine(shelf.stacked(request.names[pairs], pool) * (pool * pool), taken.T, coarse.cost.half))
    stacked = outputs[0].unsqueeze(0) if len(outputs) == 1 else torch.stack([o.float() for o in outputs])
    return coarse.scorer.best(stacked, coarse.totals, request.gains)


def _tops(scores: Tensor, shelf: Shelf, index: slice, labels: Tensor | None, count: int, pool: int, first: tuple[int, int]) -> Hits:
    """Local maxima over shifts of the best score in each bucket of kernels: the best over all buckets, or of each label."""
    batch, kernels, down, right = scores.shape
    buckets = _by_label(labels) if labels is not None else _blocks(kernels)
    grouped = _bucket_best(scores, buckets)
    ranked = torch.where(grouped >= _neighbourhood(grouped), grouped, torch.full_like(grouped, -math.inf)).flatten(2)
    take = min(count, down * right * (1 if labels is not None else len(buckets)))
    if labels is not None:
        score, position = ranked.topk(take, dim=2)
        bucket = torch.arange(len(buckets), device=scores.device).repeat_interleave(take).expand(batch, -1)
        score, position = score.flatten(1), position.flatten(1)
    else:
        score, place = ranked.flatten(1).topk(take, dim=1)
        bucket, position = torch.div(place, down * right, rounding_mode="floor"), place % (down * right)
    table = _table(buckets, kernels, scores.device)[bucket]
    item = torch.arange(batch, device=scores.device)[:, None, None]
    inside = scores.flatten(2)[item, table, position.unsqueeze(-1)]
    kernel = table.gather(2, inside.argmax(2, keepdim=True)).squeeze(2)
    return _as_hits(shelf.number[index][kernel], position, right, score, pool, first)


def _as_hits(kernel: Tensor, position: Tensor, across: int, score: Tensor, pool: int, first: tuple[int, int]) -> Hits:
    top = torch.div(position, across, rounding_mode="floor") * pool + first[0]
    left = position % across * pool + first[1]
    score = score.float()
    return Hits(kernel, left, top, score, torch.zeros_like(kernel), torch.zeros(*kernel.shape, 1, device=kernel.device), score)


def _chunks(kernels: int, labels: Tensor | None, step: int) -> list[slice]:
    """Ranges of about `step` kernels; a label is never cut."""
    step = max(1, step)
    if kernels <= step:
        return [slice(0, kernels)]
    if labels is None:
        return [slice(s, min(s + step, kernels)) for s in range(0, kernels, step)]
    chunks, start = [], 0
    for label in _by_label(labels):
        if label.stop - start > step and label.start > start:
            chunks.append(slice(start, label.start))
            start = label.start
    return [*chunks, slice(start, kernels)]


def _by_label(labels: Tensor) -> list[slice]:
    """The kernels of each label; labels stand in runs."""
    edges = [0, *((labels[1:] != labels[:-1]).nonzero()[:, 0] + 1).tolist(), len(labels)]
    return [slice(a, b) for a, b in itertools.pairwise(edges)]


def _blocks(kernels: int) -> list[slice]:
    """About `BUCKETS` runs of kernels of one length."""
    length = -(-kernels // BUCKETS)
    return [slice(s, min(s + length, kernels)) for s in range(0, kernels, length)]


def _bucket_best(scores: Tensor, buckets: list[slice]) -> Tensor:
    """(batch, buckets, down, right): the best score over each bucket's kernels."""
    length = buckets[0].stop - buckets[0].start
    same = 0
    while same < len(buckets) and buckets[same].stop - buckets[same].start == length:
        same += 1
    batch, _, down, right = scores.shape
    first = scores[:, : same * length].reshape(batch, same, length, down, right)
    parts = [first.amax(2) if length > 1 else first[:, :, 0]]
    parts += [scores[:, b].amax(1, keepdim=True) for b in buckets[same:]]
    return torch.cat(parts, dim=1) if len(parts) > 1 else parts[0]


def _neighbourhood(scores: Tensor) -> Tensor:
    """The maximum over each 3 x 3 neighbourhood."""
    rows = scores.clone()
    rows[..., 1:, :] = torch.maximum(rows[..., 1:, :], scores[..., :-1, :])
    rows[..., :-1, :] = torch.maximum(rows[..., :-1, :], scores[..., 1:, :])
    both = rows.clone()
    both[..., 1:] = torch.maximum(both[..., 1:], rows[..., :-1])
    both[..., :-1] = torch.maximum(both[..., :-1], rows[..., 1:])
    return both


def _table(buckets: list[slice], kernels: int, device: torch.device) -> Tensor:
    """(buckets, most members): the members of each bucket, short rows filled with their first."""
    rows = [list(range(*b.indices(kernels))) for b in buckets]
    longest = max(len(r) for r in rows)
    return torch.tensor([r + r[:1] * (longest - len(r)) for r in rows], device=device)
