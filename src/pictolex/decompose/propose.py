"""Our strategy: propose many candidates, select the best sets of them, polish those, and again in the context of the answer."""

from __future__ import annotations

import math

import torch
from torch import Tensor

from pictolex.decompose.layout import Layout
from pictolex.decompose.polish import Polisher
from pictolex.decompose.rounds import GreedyRounds
from pictolex.decompose.select import Selector, Sets
from pictolex.decompose.stage import Problem, Stage
from pictolex.search import Hits, Query
from pictolex.settings import Propose, Rounds

EARLY = 2
"""Polish steps that every finalist gets; the best quarter gets the rest."""
SETTLED = 0.05
"""An image whose energy falls by less than this share of the price in a pass is done."""
SPAN = 2**16
"""More than any coordinate, so that kernel and place fit one number."""
CHARGE = 5.0
"""How many times error under an element's own alpha counts in the second ranking: nothing placed behind can mend it."""


class ProposeSelectPolish:
    """Splits the work by what each part is good at."""

    def __init__(self, stage: Stage, setting: Propose) -> None:
        self.stage = stage
        self.setting = setting
        self.price = stage.settings.price
        self.selector = Selector(stage, setting.beam, setting.finalists)
        self.polisher = Polisher(stage)
        self.sweep = GreedyRounds(stage, Rounds(rounds=1, shuffle=False))

    def solve(self, problem: Problem, start: Layout | None = None) -> Layout:
        """The elements of a batch of images."""
        stage = self.stage
        slots = stage.settings.layers
        batch, channels = problem.image.shape[:2]
        best = start.pad(slots) if start is not None else Layout.empty(batch, slots, channels, problem.image.device)
        energy = self._energy(problem, best)
        active = torch.arange(batch, device=energy.device)
        pool: Layout | None = None
        for number in range(self.setting.passes):
            part, held = problem.take(active), best.take(active)
            fresh = self._first(part) if number == 0 and start is None else self._in_context(part, held)
            pool = fresh if pool is None else Layout.join([held, pool, fresh])
            found, value, pool = self._settle(part, pool, slots)
            saved = energy[active] - value
            better = saved > 1e-4
            best = best.replace(active[better], found.take(better))
            energy[active[better]] = value[better]
            # Nothing new for an image in one pass means nothing new in the next.
            going = saved > SETTLED * (self.price + 0.1)
            if not bool(going.any()):
                break
            active, pool = active[going], pool.take(going)
        if not stage.free:
            # On the grid, one element at a time is searched exactly: what the pooled estimates of select missed.
            best = self.sweep.solve(problem, best)
        best, _ = self.polisher.polish(problem, best, self.setting.polish_steps)
        return best.compact()

    def refine(self, problem: Problem, layout: Layout) -> Layout:
        """Polish."""
        return self.polisher.polish(problem, layout.compact(), self.setting.polish_steps)[0]

    def _energy(self, problem: Problem, layout: Layout) -> Tensor:
        height, width = problem.image.shape[-2:]
        return self.stage.error(problem, self.stage.layers(layout, height, width)) + self.price * layout.count

    def _first(self, problem: Problem) -> Layout:
        """Candidates for an empty image, from both rankings."""
        context = self.stage.formation.empty(problem.background)
        query = Query(problem.image, problem.weight, context)
        per_group = self.setting.candidates
        found = [self.stage.searcher.diverse(query, per_group), self.stage.searcher.diverse(query, per_group, CHARGE)]
        return self._worth(Hits.join(found))

    def _in_context(self, problem: Problem, best: Layout) -> Layout:
        """Candidates for what the best answer leaves unexplained, in front and behind, and for each of its elements taken out."""
        stage = self.stage
        height, width = problem.image.shape[-2:]
        layers = stage.layers(best, height, width)
        slots = int(best.count.max()) if len(best.count) else 0
        queries = [Query(problem.image, problem.weight, stage.formation.empty(stage.formation.render(layers, problem.background)))]
        for slot in range(slots):
            queries.append(Query(problem.image, problem.weight, stage.formation.context(layers, problem.background, slot)))
        if stage.formation.ordered and slots:
            context = stage.formation.empty(problem.background)
            for slot in range(layers.shape[1]):
                context = stage.formation.cover(context, layers[:, slot])
            queries.append(Query(problem.image, problem.weight, context))
        found = [stage.searcher.diverse(q, self.setting.context_candidates, turned=True) for q in queries]
        return self._worth(Hits.join(found))

    def _worth(self, hits: Hits) -> Layout:
        """Hits without those that are not there: no gain, or the same place twice."""
        key = (hits.kernel * SPAN + hits.top + SPAN // 4) * SPAN + hits.left + SPAN // 4
        ordered, order = key.sort(dim=1)
        again = torch.zeros_like(key, dtype=torch.bool)
        again.scatter_(1, order[:, 1:], ordered[:, 1:] == ordered[:, :-1])
        useless = again | (hits.gain <= 0)
        score = torch.where(useless, torch.full_like(hits.gain, -math.inf), hits.gain)
        widest = int((~useless).sum(1).max()) if score.numel() else 0
        keep = score.topk(max(1, widest), dim=1)
        picked = self.stage.placed(hits.pick(keep.indices))
        return picked.without(keep.values == -math.inf)

    def _settle(self, problem: Problem, pool: Layout, slots: int) -> tuple[Layout, Tensor, Layout]:
        """Select among the pool and polish the finalists: the best layout, its energy, and the pool that is worth keeping."""
        sets = self.selector.select(problem, pool, slots)
        sets = self._promising(sets)
        batch, count = sets.saved.shape
        chosen = _members(pool, sets.members)
        repeated = problem.repeat(count)
        absent = sets.saved.flatten() == -math.inf
        layout, energy = self._polish_best(repeated, chosen, absent, batch)
        value, index = energy.view(batch, count).min(1)
        rows = index + torch.arange(batch, device=index.device) * count
        return layout.take(rows), value, self._kept(sets, pool)

    def _polish_best(self, problem: Problem, layout: Layout, absent: Tensor, batch: int) -> tuple[Layout, Tensor]:
        """A little polish for every set, the rest of it for the best quarter of each image's; layouts and energies."""
        steps = self.setting.polish_steps
        early = min(steps, EARLY)
        present = (~absent).nonzero()[:, 0]
        energy = torch.full(absent.shape, math.inf, device=absent.device)
        some, error = self.polisher.polish(problem.take(present), layout.take(present), early)
        some, error = self._prune(problem.take(present), some, error)
        layout = layout.replace(present, some)
        energy[present] = error + self.price * some.count
        if steps > early:
            count = len(absent) // batch
            best = energy.view(batch, count).topk(max(1, -(-count // 4)), dim=1, largest=False)
            rows = (best.indices + torch.arange(batch, device=absent.device).unsqueeze(1) * count).flatten()
            rows = rows[energy[rows] < math.inf]
            some, error = self.polisher.polish(problem.take(rows), layout.take(rows), steps - early)
            layout = layout.replace(rows, some)
            energy[rows] = error + self.price * some.count
        return layout, energy

    def _promising(self, sets: Sets) -> Sets:
        """Drop sets whose estimate is so far behind the best that polish cannot mend it."""
        best = sets.saved.amax(1, keepdim=True)
        slack = torch.maximum(best.abs() * 0.15, torch.full_like(best, 4 * self.price + 8))
        value = torch.where(sets.saved >= best - slack, sets.saved, torch.full_like(sets.saved, -math.inf))
        widest = max(1, min(int((value > -math.inf).sum(1).max()), 3 * self.setting.finalists))
        kept = value.topk(widest, dim=1)
        return Sets(sets.members.gather(1, kept.indices.unsqueeze(-1).expand(-1, -1, sets.members.shape[2])), kept.values)

    def _prune(self, problem: Problem, layout: Layout, error: Tensor) -> tuple[Layout, Tensor]:
        """Take out of each set the element that pays its price least, where it does not; a few sets at a time."""
        if not len(error):
            return layout, error
        prune = self._prune_some
        return self.polisher.in_parts(problem, layout, lambda part: prune(problem.take(part), layout.take(part), error[part]))

    def _prune_some(self, problem: Problem, layout: Layout, error: Tensor) -> tuple[Layout, Tensor]:
        height, width = problem.image.shape[-2:]
        layers = self.stage.layers(layout, height, width)
        contexts = self.stage.formation.contexts(layers, problem.background)
        left = problem.weight.unsqueeze(1) * (problem.image.unsqueeze(1) - contexts.rebuilt).square()
        without = left.sum((-3, -2, -1))
        loss = torch.where(layout.used, without - error.unsqueeze(1), torch.full_like(without, math.inf))
        least, slot = loss.min(1)
        drop = least < self.price
        mask = torch.zeros_like(layout.used).scatter(1, slot.unsqueeze(1), drop.unsqueeze(1))
        return layout.without(mask), torch.where(drop, error + least, error)

    def _kept(self, sets: Sets, pool: Layout) -> Layout:
        """Of the pool, what appears in a finalist."""
        batch, count = pool.concept.shape
        used = torch.zeros(batch, count + 1, dtype=torch.bool, device=pool.concept.device)
        used.scatter_(1, torch.where(sets.members < 0, count, sets.members).flatten(1), True)
        used = used[:, :count]
        order = used.to(torch.int8).argsort(dim=1, descending=True, stable=True)[:, : max(1, int(used.sum(1).max()))]
        return pool.order(order).without(~used.gather(1, order))


def _members(pool: Layout, members: Tensor) -> Layout:
    """Sets of a pool as layouts (batch * sets, slots)."""
    slots = members.shape[2]
    index = members.clamp_min(0).flatten(1)
    chosen = pool.order(index)
    return chosen.without(members.flatten(1) < 0).flatten(slots)
