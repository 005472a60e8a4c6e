"""Searching the whole grid (concept x rotation x scale x hue x every shift) for the best places of one element.

Coarse to fine: correlate pooled maps with pooled kernels, take the peaks over all kernels, refine each at the next finer
level among neighbouring shifts and rotations. Exhaustive: the same at full resolution, nothing to refine.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import replace

import torch
from torch import Tensor

from pictolex.formation import Formation
from pictolex.search.bank import Bank
from pictolex.search.colour import Colour
from pictolex.search.correlate import Box, Plan, where_wrong
from pictolex.search.cost import CostModel, calibrated
from pictolex.search.hits import Hits, Query
from pictolex.search.objective import Objective, sums
from pictolex.search.peaks import Coarse, all_peaks, likely_peaks
from pictolex.search.refine import refine
from pictolex.search.score import Scorer, error_map

FULL_SIDE = 40
"""Kernels up to this side are searched at full resolution where only few shifts can win."""
NEAR = 2
"""Pixels within which two hits are at one place."""


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
        self.cost = cost or calibrated(str(bank.concept.device))
        self.scorer = Scorer(formation, colour, objective, bank.alias)

    def best(self, query: Query, count: int = 1) -> Hits:
        """The best `count` places over the whole bank."""
        return self._over_batch(query, lambda part: self._search(part, max(self.keep, count), None, 0.0).best(count))

    def diverse(self, query: Query, per_group: int, charge: float = 0.0, *, turned: bool = False) -> Hits:
        """The best places of every (concept, scale, mirror) group; `turned`: a share of them for each of a few sectors of rotation.

        `charge`: rank with the error left under the element's own alpha charged so many times; nothing placed behind can mend it.
        """
        sectors = int(self.bank.sector.max()) + 1
        if not turned or sectors == self.bank.groups:
            return self._over_batch(query, lambda part: self._search(part, per_group, self.bank.group, charge))
        each = -(-per_group * self.bank.groups // sectors)
        found = self._over_batch(query, lambda part: self._search(part, each, self.bank.sector, charge))
        return self._best_turned(found)

    def _best_turned(self, hits: Hits) -> Hits:
        """Of hits of one group at one place but in different sectors, the best: the others came along in case they were it."""
        group, sector = self.bank.group[hits.kernel], self.bank.sector[hits.kernel]
        beaten = (group.unsqueeze(2) == group.unsqueeze(1)) & (sector.unsqueeze(2) != sector.unsqueeze(1))
        for place in (hits.left, hits.top):
            beaten &= (place.unsqueeze(2) - place.unsqueeze(1)).abs() <= NEAR
        beaten &= hits.score.unsqueeze(2) < hits.score.unsqueeze(1)
        score = torch.where(beaten.any(2), torch.full_like(hits.score, -torch.inf), hits.score)
        best = score.topk(max(1, int((score > -torch.inf).sum(1).max())), dim=1)
        picked = hits.pick(best.indices)
        return replace(picked, gain=torch.where(best.values == -torch.inf, torch.full_like(picked.gain, -torch.inf), picked.gain))

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
        return Hits.stack(parts)

    def _batch(self, query: Query) -> int:
        """Images at once: at most a quarter of the budget for padded maps of the largest shelf."""
        largest = max((s.size for s in self.bank.shelves), default=(4, 4))
        high, wide = query.image.shape[-2] + 2 * largest[0], query.image.shape[-1] + 2 * largest[1]
        maps = 4 * high * wide * (6 * query.image.shape[-3] + 8)
        return max(1, int(self.memory / 4 // maps))

    def _search(self, query: Query, count: int, partition: Tensor | None, charge: float) -> Hits:
        totals = sums(query.image, query.weight, query.context.rebuilt)
        request = self.scorer.plan(query, charge)
        exact = self.scorer.plan(query) if charge else request
        # Only where the image is wrong can squared error be saved; a correlation may also rise elsewhere.
        error = error_map(query)
        box = where_wrong(error) if self.scorer.bounded else Box(0, 0, *error.shape[-2:])
        parts = []
        for shelf in self.bank.shelves:
            likely = partition is None and self.scorer.bounded and min(shelf.size) <= FULL_SIDE
            pool = 1 if self.method == "exhaustive" or likely else shelf.pool
            coarse = Coarse(self.scorer, shelf, request, totals, error, box, pool, self.cost, self.memory)
            labels = None if partition is None else partition[shelf.number]
            parts.append(self._search_shelf(coarse, exact, count, labels))
        return Hits.join(parts)

    def _search_shelf(self, coarse: Coarse, exact: Plan, count: int, labels: Tensor | None) -> Hits:
        exhaustive = self.method == "exhaustive"
        hits = None
        if labels is None and self.scorer.bounded and not exhaustive:
            hits = likely_peaks(coarse, count)
        if hits is None:
            hits = all_peaks(coarse, count, labels, exact=exhaustive)
        if exhaustive:
            return self._refine(coarse, exact, hits, 1, 0)
        pool, keep = coarse.pool, count
        while pool > 1:
            hits = self._refine(coarse, coarse.request, hits, pool, pool // 2)
            pool //= 2
            if labels is None:
                keep = max(4, keep // 4)
                hits = hits.best(keep)
        return self._refine(coarse, exact, hits, 1, 1 if coarse.pool > 1 or self.bank.turns else 0)

    def _refine(self, coarse: Coarse, request: Plan, hits: Hits, pool: int, step: int) -> Hits:
        return refine(self.scorer, self.bank, coarse.shelf, request, coarse.totals, hits, pool=pool, step=step, working=coarse.working)
