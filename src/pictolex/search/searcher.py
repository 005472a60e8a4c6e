"""Searching the whole grid (concept x rotation x scale x hue x every shift) for the best places of one element.

Coarse to fine: correlate pooled maps with pooled kernels, take the peaks over all kernels, refine each at the next finer
level among neighbouring shifts and rotations. Exhaustive: the same at full resolution, nothing to refine.
"""

from __future__ import annotations

import itertools
import math
import warnings
from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor

from pictolex.formation import Context, Form, Formation
from pictolex.search.bank import Bank, Shelf
from pictolex.search.colour import Colour
from pictolex.search.correlate import CostModel, Plan, correlate, margin, plan, pooled, smoothed
from pictolex.search.objective import Objective, Sums, sums

BUCKETS = 32
"""Sets of kernels whose peaks compete separately at the coarse level."""
CACHE = 24 * 2**20
"""Bytes of working arrays on a CPU: what its caches hold, and what the allocator gives back without asking the system."""


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


class Searcher:
    """Searches a bank under one formation, colour and objective, within a byte budget."""

    def __init__(
        self,
        bank: Bank,
        formation: Formation,
        colour: Colour,
        objective: Objective,
        *,
        method: str = "auto",
        keep: int = 16,
        memory: int = 512 * 2**20,
        cost: CostModel | None = None,
    ) -> None:
        self.bank = bank
        self.formation = formation
        self.colour = colour
        self.objective = objective
        self.method = method
        self.keep = keep
        self.memory = memory
        self.cost = cost or CostModel()

    def best(self, query: Query, count: int = 1) -> Hits:
        """The best `count` places over the whole bank."""
        found = self._over_batch(query, lambda part: self._search(part, max(self.keep, count), None, 0.0).best(count))
        return found

    def diverse(self, query: Query, per_group: int, charge: float = 0.0) -> Hits:
        """The best places of every (concept, scale, mirror) group.

        `charge`: rank with the error left under the element's own alpha charged so many times; nothing placed behind can mend it.
        """
        return self._over_batch(query, lambda part: self._search(part, per_group, self.bank.group, charge))

    def _over_batch(self, query: Query, work: Callable[[Query], Hits]) -> Hits:
        """Work on as many images at once as the budget allows; on a full GPU, on fewer."""
        size = query.image.shape[0]
        step = min(size, self._batch(query))
        parts: list[Hits] = []
        start = 0
        while start < size:
            try:
                parts.append(work(query.take(slice(start, start + step))))
            except torch.cuda.OutOfMemoryError:
                if step == 1:
                    raise
                step = max(1, step // 2)
                torch.cuda.empty_cache()
                warnings.warn(f"the GPU is out of memory: searching {step} images at once from here on", stacklevel=2)
                self.memory //= 2
                continue
            start += step
        if len(parts) == 1:
            return parts[0]
        names = ("kernel", "left", "top", "score", "choice", "colour", "gain")
        return Hits(**{name: torch.cat([getattr(p, name) for p in parts], dim=0) for name in names})

    def _batch(self, query: Query) -> int:
        """Images at once: at most a quarter of the budget for padded maps of the largest shelf."""
        largest = max((s.size for s in self.bank.shelves), default=(4, 4))
        high, wide = query.image.shape[-2] + 2 * largest[0], query.image.shape[-1] + 2 * largest[1]
        maps = 4 * high * wide * (6 * query.image.shape[-3] + 8)
        return max(1, int(self.memory / 4 // maps))

    def _search(self, query: Query, count: int, partition: Tensor | None, charge: float) -> Hits:
        totals = sums(query.image, query.weight, query.context.rebuilt)
        request = self._plan(query, charge)
        exact = self._plan(query, 0.0) if charge else request
        parts = []
        for number, shelf in enumerate(self.bank.shelves):
            labels = None if partition is None else partition[shelf.number]
            parts.append(self._search_shelf(request, exact, totals, shelf, number, count, labels))
        return Hits.join(parts)

    def _plan(self, query: Query, charge: float) -> Plan:
        gain = self.formation.gain(query.image, query.weight, query.context)
        gains = self.colour.split(gain)
        if charge:
            error = (query.weight * (query.image - query.context.rebuilt).square()).sum(-3)
            under: Form = self.formation.covered(error)
            last = {name: image for name, image in gains[-1].items()}
            for name, image in under.items():
                last[name] = last.get(name, torch.zeros_like(image)) - image * (1 - 1 / charge)
            gains = [*gains[:-1], last]
        inner = self.objective.inner(self.formation, query.image, query.weight, query.context)
        return plan(gains, [] if inner is None else self.colour.split(inner), self.bank.alias)

    def _scores(self, outputs: Tensor, totals: Sums, gains: int) -> Tensor:
        """Objective values (colours, batch, ...) of correlations (forms, batch, ...), the first `gains` of which are the gain's."""
        gain, inner = self.colour.evaluate(*_halves(outputs, gains))
        return self.objective.score(gain, inner, totals)

    def _search_shelf(self, request: Plan, exact: Plan, totals: Sums, shelf: Shelf, number: int, count: int, labels: Tensor | None) -> Hits:
        if self.method == "exhaustive":
            hits = self._peaks(request, totals, shelf, count, labels, 1)
            return self._refine(exact, totals, shelf, hits, 1, 0)
        hits = self._peaks(request, totals, shelf, count, labels, shelf.pool)
        pool, keep = shelf.pool, count
        while pool > 1:
            hits = self._refine(request, totals, shelf, hits, pool, max(1, pool // 2))
            pool //= 2
            if labels is None:
                keep = max(4, keep // 4)
                hits = hits.best(keep)
        return self._refine(exact, totals, shelf, hits, 1, 1)

    def _peaks(self, request: Plan, totals: Sums, shelf: Shelf, count: int, labels: Tensor | None, pool: int) -> Hits:
        """The peaks of the pooled scores: over all kernels, or over the kernels of each label."""
        padded = pooled(request.maps, pool, *shelf.size)
        kernel = (shelf.size[0] // pool, shelf.size[1] // pool)
        down, right = padded.shape[-2] - kernel[0] + 1, padded.shape[-1] - kernel[1] + 1
        batch = padded.shape[0]
        method = "shared"
        if self.method == "exhaustive":
            method = self.cost.choose(batch, len(request.names), len(shelf), kernel, (padded.shape[-2], padded.shape[-1]))
        each = 4 * down * right * (request.forms + 1)
        working = self.memory / 2 if padded.is_cuda else min(self.memory / 2, CACHE)
        step = max(1, int(working // (each * len(shelf))))
        found = []
        for start in range(0, batch, step):
            part = slice(start, start + step)
            few = Sums(totals.image[part], totals.rebuilt[part], totals.inner[part])
            pieces = []
            for index in self._chunks(len(shelf), labels, each * len(padded[part])):
                outputs = correlate(request, padded[part], shelf, index, pool, method)
                scores = self._scores(outputs, few, request.gains)
                scores = scores[0] if scores.shape[0] == 1 else scores.amax(0)
                pieces.append(self._tops(scores, shelf, index, None if labels is None else labels[index], count, pool))
            joined = pieces[0] if len(pieces) == 1 else Hits.join(pieces)
            found.append(joined if labels is not None or len(pieces) == 1 else joined.best(count))
        return found[0] if len(found) == 1 else Hits.stack(found)

    def _chunks(self, kernels: int, labels: Tensor | None, each: int) -> list[slice]:
        """Ranges of kernels within the budget; a label is never cut."""
        step = max(1, int(self.memory / 2 // each))
        if kernels <= step:
            return [slice(0, kernels)]
        if labels is None:
            return [slice(s, min(s + step, kernels)) for s in range(0, kernels, step)]
        edges = [0, *((labels[1:] != labels[:-1]).nonzero()[:, 0] + 1).tolist(), kernels]
        chunks, start = [], 0
        for previous, edge in itertools.pairwise(edges):
            if edge - start > step and previous > start:
                chunks.append(slice(start, previous))
                start = previous
        return [*chunks, slice(start, kernels)]

    def _tops(self, scores: Tensor, shelf: Shelf, index: slice, labels: Tensor | None, count: int, pool: int) -> Hits:
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
        top = (torch.div(position, right, rounding_mode="floor") - margin(shelf.size[0], pool)) * pool
        left = (position % right - margin(shelf.size[1], pool)) * pool
        blank = torch.zeros(*kernel.shape, 1, device=scores.device)
        return Hits(shelf.number[index][kernel], left, top, score, torch.zeros_like(kernel), blank, score)

    def _refine(self, request: Plan, totals: Sums, shelf: Shelf, hits: Hits, pool: int, step: int) -> Hits:
        """Each hit's best among neighbouring shifts (`step` pixels away; 0: where it is) and rotations, with kernels pooled so much."""
        batch, count = hits.kernel.shape
        device = hits.kernel.device
        high, wide = shelf.size[0] // pool, shelf.size[1] // pool
        turns = [hits.kernel, self.bank.before[hits.kernel], self.bank.after[hits.kernel]] if step and self.bank.turns else [hits.kernel]
        kernels = torch.stack(turns, dim=-1)
        reach = torch.tensor([0, -step, step] if step else [0], device=device)
        move_y, move_x = (m.flatten() for m in torch.meshgrid(reach, reach, indexing="ij"))
        edge = max(shelf.size) + 2 * max(step, 1)
        maps = smoothed(request.maps, pool, edge)
        across = maps.shape[2]
        rows, columns = torch.arange(high, device=device) * pool, torch.arange(wide, device=device) * pool
        inside = (rows[:, None] * across + columns[None, :]).flatten()
        limit_y, limit_x = maps.shape[1] - shelf.size[0], maps.shape[2] - shelf.size[1]
        top = (hits.top.unsqueeze(-1) + move_y + edge).clamp(0, limit_y)
        left = (hits.left.unsqueeze(-1) + move_x + edge).clamp(0, limit_x)
        corner = top * across + left + (torch.arange(batch, device=device) * maps.shape[1] * across)[:, None, None]
        moves, turned = len(move_y), len(turns)
        each = 8 * batch * high * wide * (moves + turned) * (1 + len(request.names))
        some = max(1, int((self.memory / 2 if maps.is_cuda else min(self.memory / 2, CACHE)) // each))
        results = []
        for start in range(0, count, some):
            part = slice(start, start + some)
            n = kernels[:, part].shape[1]
            index = (corner[:, part].reshape(-1, 1) + inside).flatten()
            place = self.bank.place[kernels[:, part]].flatten()
            outputs = []
            for form in range(request.forms):
                pairs = request.pairs(form)
                depth = pairs.stop - pairs.start
                if depth == 0:
                    outputs.append(torch.zeros(batch, n, moves * turned, device=device))
                    continue
                taken = maps[..., pairs].reshape(-1, depth).index_select(0, index).view(batch * n, moves, -1)
                held = shelf.stacked(request.names[pairs], pool).index_select(0, place).view(batch * n, turned, -1)
                outputs.append(torch.bmm(taken, held.mT).view(batch, n, moves * turned) * (pool * pool))
            results.append(self._choose(torch.stack(outputs), totals, request.gains))
        pick, score, choice, colour, gain = (torch.cat(parts, dim=1) for parts in zip(*results, strict=True))
        turn, move = pick % turned, torch.div(pick, turned, rounding_mode="floor")
        kernel = kernels.gather(2, turn.unsqueeze(-1)).squeeze(-1)
        return Hits(kernel, hits.left + move_x[move], hits.top + move_y[move], score, choice, colour, gain)

    def _choose(self, outputs: Tensor, totals: Sums, gains: int) -> tuple[Tensor, Tensor, Tensor, Tensor, Tensor]:
        """Of correlations (forms, batch, n, tries): the best try of each, its score, colour choice, colour and gain."""
        best, choice = self._scores(outputs, totals, gains).max(0)
        score, pick = best.max(-1)
        index = pick.unsqueeze(-1)
        chosen = outputs.gather(3, index.unsqueeze(0).expand(outputs.shape[0], -1, -1, -1)).squeeze(-1)
        which = choice.gather(2, index).squeeze(-1)
        halves = _halves(chosen, gains)
        gain = self.colour.evaluate(*halves)[0].gather(0, which.unsqueeze(0)).squeeze(0)
        return pick, score, which, self.colour.colours(halves[0], which), gain


def _halves(outputs: Tensor, gains: int) -> tuple[Tensor, Tensor | None]:
    return outputs[:gains], outputs[gains:] if outputs.shape[0] > gains else None


def _by_label(labels: Tensor) -> list[slice]:
    """The kernels of each label; labels stand in runs."""
    edges = [0, *((labels[1:] != labels[:-1]).nonzero()[:, 0] + 1).tolist(), len(labels)]
    return [slice(a, b) for a, b in itertools.pairwise(edges)]


def _blocks(kernels: int) -> list[slice]:
    """About `BUCKETS` runs of kernels of one length, so that one that is second best at a place still gets its chance."""
    length = -(-kernels // BUCKETS)
    return [slice(s, min(s + length, kernels)) for s in range(0, kernels, length)]


def _bucket_best(scores: Tensor, buckets: list[slice]) -> Tensor:
    """(batch, buckets, down, right): the best score over each bucket's kernels."""
    length = buckets[0].stop - buckets[0].start
    same = 0
    while same < len(buckets) and buckets[same].stop - buckets[same].start == length:
        same += 1
    parts = [scores[:, : same * length].unflatten(1, (same, length)).amax(2) if length > 1 else scores[:, :same]]
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
