"""What a strategy is, and the factory that makes one from its setting."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from pictolex.decompose.layout import Layout
from pictolex.decompose.propose import ProposeSelectPolish
from pictolex.decompose.rounds import GreedyRounds
from pictolex.decompose.stage import Problem, Stage
from pictolex.settings import Propose, Rounds


class Strategy(Protocol):
    """Finds the elements of a batch of images."""

    def solve(self, problem: Problem, start: Layout | None = None) -> Layout:
        """The elements, from nothing or from earlier ones; never worse than those."""
        ...

    def refine(self, problem: Problem, layout: Layout) -> Layout:
        """Earlier elements fitted to a dictionary that has moved a little; nothing is searched."""
        ...


_STRATEGIES: dict[str, Callable[..., Strategy]] = {"rounds": GreedyRounds, "propose": ProposeSelectPolish}


def create(setting: Rounds | Propose, stage: Stage) -> Strategy:
    """The strategy that a setting names."""
    return _STRATEGIES[setting.kind](stage, setting)
