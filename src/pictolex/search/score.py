"""From correlations to scores: formation, colour and objective taken together."""

from __future__ import annotations

import torch
from torch import Tensor

from pictolex.formation import Formation
from pictolex.search.colour import Colour
from pictolex.search.correlate import Plan, plan
from pictolex.search.hits import Query
from pictolex.search.objective import Objective, Sums


class Scorer:
    """What is to be correlated for a query, and what correlations are worth."""

    def __init__(self, formation: Formation, colour: Colour, objective: Objective, alias: dict[str, str]) -> None:
        self.formation = formation
        self.colour = colour
        self.objective = objective
        self.alias = alias

    @property
    def bounded(self) -> bool:
        """Whether a score never exceeds the error inside the element's window: so for squared error saved."""
        return not self.objective.needs_inner

    def plan(self, query: Query, charge: float = 0.0) -> Plan:
        """The pairs to correlate; with a `charge`, error left under the element's own alpha counts so many times."""
        gains = self.colour.split(self.formation.gain(query.image, query.weight, query.context))
        if charge:
            last = dict(gains[-1])
            for name, image in self.formation.covered(error_map(query)).items():
                last[name] = last.get(name, torch.zeros_like(image)) - image * (1 - 1 / charge)
            gains = [*gains[:-1], last]
        inner = self.objective.inner(self.formation, query.image, query.weight, query.context)
        return plan(gains, [] if inner is None else self.colour.split(inner), self.alias)

    def best(self, outputs: Tensor, totals: Sums, gains: int) -> Tensor:
        """The score in the best colour (batch, ...) of correlations (forms, batch, ...), the first `gains` of which are the gain's."""
        scores = self._all(outputs, totals, gains)
        return scores[0] if scores.shape[0] == 1 else scores.amax(0)

    def choose(self, outputs: Tensor, totals: Sums, gains: int) -> tuple[Tensor, Tensor, Tensor, Tensor, Tensor]:
        """Of correlations (forms, batch, n, tries): the best try of each, its score, colour choice, colour and gain."""
        best, choice = self._all(outputs, totals, gains).max(0)
        score, pick = best.max(-1)
        index = pick.unsqueeze(-1)
        chosen = outputs.gather(3, index.unsqueeze(0).expand(outputs.shape[0], -1, -1, -1)).squeeze(-1)
        which = choice.gather(2, index).squeeze(-1)
        gain_part, inner_part = _halves(chosen, gains)
        gain = self.colour.evaluate(gain_part, inner_part)[0].gather(0, which.unsqueeze(0)).squeeze(0)
        return pick, score, which, self.colour.colours(gain_part, which), gain

    def _all(self, outputs: Tensor, totals: Sums, gains: int) -> Tensor:
        gain, inner = self.colour.evaluate(*_halves(outputs, gains))
        return self.objective.score(gain, inner, totals)


def error_map(query: Query) -> Tensor:
    """(batch, height, width): the weighted squared error without the element."""
    return (query.weight * (query.image - query.context.rebuilt).square()).sum(-3)


def _halves(outputs: Tensor, gains: int) -> tuple[Tensor, Tensor | None]:
    return outputs[:gains], outputs[gains:] if outputs.shape[0] > gains else None
