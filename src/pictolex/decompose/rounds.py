"""The paper's strategy: greedy rounds, one element at a time from the front, then shuffling the order.

An element is searched again only where another element of its image has changed since.
"""

from __future__ import annotations

import torch
from torch import Tensor

from pictolex.decompose.layout import Layout
from pictolex.decompose.stage import Problem, Stage
from pictolex.formation import Context
from pictolex.search import Query, sums
from pictolex.settings import Rounds


class GreedyRounds:
    """`rounds` sweeps over the slots; each slot gets what its context wants most, if that pays its price."""

    def __init__(self, stage: Stage, setting: Rounds) -> None:
        self.stage = stage
        self.setting = setting
        self.by_objective = setting.policy == "paper"
        self.price = 0.0 if self.by_objective else stage.settings.price

    def solve(self, problem: Problem, start: Layout | None = None) -> Layout:
        """The elements of a batch of images."""
        stage, slots = self.stage, self.stage.settings.layers
        batch, channels, height, width = problem.image.shape
        device = problem.image.device
        layout = start.pad(slots) if start is not None else Layout.empty(batch, slots, channels, device)
        layers = stage.layers(layout, height, width)
        changed = torch.zeros(batch, slots, dtype=torch.long, device=device)
        searched = torch.full((batch, slots), -1, dtype=torch.long, device=device)
        clock = 0
        for _ in range(self.setting.rounds):
            before = clock
            for slot in range(slots):
                clock += 1
                others = torch.cat([changed[:, :slot], changed[:, slot + 1 :]], dim=1)
                stale = others.amax(1) > searched[:, slot] if slots > 1 else searched[:, slot] < 0
                index = (stale | (searched[:, slot] < 0)).nonzero()[:, 0]
                searched[:, slot] = clock
                if not len(index):
                    continue
                found, better = self._search_slot(problem.take(index), layout.take(index), layers[index], slot)
                if not bool(better.any()):
                    continue
                moved = index[better]
                part = layout.take(moved).put(slot, found.take(better))
                layout = layout.replace(moved, part)
                layers[moved, slot] = stage.layers(found.take(better), height, width)[:, 0]
                changed[moved, slot] = clock
            if not bool((changed > before).any()):
                break
        if self.setting.shuffle and stage.formation.ordered and slots > 1:
            layout = self._shuffle(problem, layout, layers)
        return layout.compact()

    def refine(self, problem: Problem, layout: Layout) -> Layout:
        """Elements stay on the grid."""
        return layout

    def _search_slot(self, problem: Problem, layout: Layout, layers: Tensor, slot: int) -> tuple[Layout, Tensor]:
        """The best element for a slot, or an empty one, and where it is better than what the slot holds."""
        stage = self.stage
        context = stage.formation.context(layers, problem.background, slot)
        hits = stage.searcher.best(Query(problem.image, problem.weight, context), 1)
        found = stage.placed(hits)
        totals = sums(problem.image, problem.weight, context.rebuilt)
        nothing = stage.objective.start(totals)
        score = hits.score[:, 0] - self.price
        found = found.without((score <= nothing).unsqueeze(1))
        held = torch.where(layout.used[:, slot], self._score(problem, context, layers[:, slot]) - self.price, nothing)
        return found, torch.maximum(score, nothing) > held + 1e-6 * (1 + held.abs())

    def _score(self, problem: Problem, context: Context, layer: Tensor) -> Tensor:
        """The objective of a layer in its context."""
        formation, objective = self.stage.formation, self.stage.objective
        gain = formation.exact_gain(problem.image, problem.weight, context, layer)
        inner = (problem.weight * problem.image * formation.effect(context, layer)).sum((-3, -2, -1)) if objective.needs_inner else None
        totals = sums(problem.image, problem.weight, context.rebuilt)
        return objective.score(gain.unsqueeze(0), None if inner is None else inner.unsqueeze(0), totals)[0]

    def _shuffle(self, problem: Problem, layout: Layout, layers: Tensor) -> Layout:
        """Try each element at the front and keep what is better."""
        best = self._value(problem, layers)
        slots = layers.shape[1]
        for slot in range(1, slots):
            order = torch.tensor([slot, *range(slot), *range(slot + 1, slots)], device=layers.device)
            tried = layers[:, order]
            value = self._value(problem, tried)
            better = (value > best + 1e-6 * (1 + best.abs())) & layout.used[:, slot]
            if bool(better.any()):
                steps = torch.arange(slots, device=layers.device).expand(len(better), -1)
                index = torch.where(better.unsqueeze(1), order.expand(len(better), -1), steps)
                layout = layout.order(index)
                layers = torch.where(better.view(-1, 1, 1, 1, 1), tried, layers)
                best = torch.where(better, value, best)
        return layout

    def _value(self, problem: Problem, layers: Tensor) -> Tensor:
        """What shuffling raises: the objective (policy `paper`) or the squared error, negated."""
        if not self.by_objective:
            return -self.stage.error(problem, layers)
        rebuilt = self.stage.formation.render(layers, problem.background)
        return self.stage.objective.start(sums(problem.image, problem.weight, rebuilt))
