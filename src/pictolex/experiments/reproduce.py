"""`pictolex reproduce`: one experiment of the paper, seed by seed, beside what was published."""

from __future__ import annotations

import difflib
import math
from collections.abc import Callable, Sequence
from importlib import import_module

from pictolex.errors import InputError, SettingError
from pictolex.experiments.reproduce_base import (
    AUTO,
    DEFAULT_SEEDS,
    Case,
    Experiment,
    Left,
    Order,
    Report,
    Result,
    Step,
    Task,
    Watch,
)
from pictolex.experiments.reproduce_published import EXPERIMENTS
from pictolex.experiments.reproduce_seed import Clock, OutOfTimeError, finished, run_seed
from pictolex.experiments.reproduce_table import measured_rows, summary, table, verdicts
from pictolex.model.files import atomic
from pictolex.presets import preset_text

__all__ = ["EXPERIMENTS", "Order", "Report", "Watch", "known_experiment", "run_experiment", "table"]

_ROOM = "pictolex.experiments"
TABLE = "table.md"
OFFICIAL = "published figures are on the original sets, ours on the images that their rows name"
NOTHING_PUBLISHED = "the paper publishes no figure for this set"


def run_experiment(
    name: str,
    order: Order,
    *,
    seeds: Sequence[int] = DEFAULT_SEEDS,
    presets: Sequence[str] | None = None,
    budget: float | None = None,
) -> Report:
    """Learn and measure every seed of every preset that is not finished yet; the table is kept in `out/name/table.md`.

    `presets`: without them the set's own one and `auto`. `budget`: seconds for all; what does not fit is left for the next call.
    """
    clock = Clock(budget)
    experiment = known_experiment(name)
    chosen = (experiment.preset, AUTO) if presets is None else tuple(dict.fromkeys(presets))
    _check(order, seeds, chosen)
    tasks = [Task(experiment, preset, side, seed) for side in experiment.sides for preset in chosen for seed in dict.fromkeys(seeds)]
    return _Work(experiment, order, clock, tasks).run()


def known_experiment(name: str) -> Experiment:
    """The experiment of a name."""
    if name in EXPERIMENTS:
        return EXPERIMENTS[name]
    near = difflib.get_close_matches(name, EXPERIMENTS, n=1, cutoff=0.5)
    hint = f"did you mean {near[0]}?" if near else f"the experiments are {', '.join(EXPERIMENTS)}"
    raise InputError(f"unknown experiment {name!r}: {hint}")


def _check(order: Order, seeds: Sequence[int], presets: Sequence[str]) -> None:
    """Refuse before any work is done."""
    if not seeds:
        raise InputError("--seeds is empty; give some, such as --seeds 0,1,2")
    if min(seeds) < 0:
        raise InputError(f"--seeds: {min(seeds)} is negative; seeds are 0 or more")
    if not presets:
        raise InputError("--presets is empty; give some, or leave it out")
    if order.images is not None and order.images < 1:
        raise SettingError(f"--images {order.images}; give 1 or more, or leave it out")
    for preset in presets:
        if preset != AUTO:
            preset_text(preset)
    from pictolex.decompose.device import choose_device

    choose_device(order.device)


class _Work:
    """The seeds of one call: those that were finished before, those that are run, those that are left."""

    def __init__(self, experiment: Experiment, order: Order, clock: Clock, tasks: Sequence[Task]) -> None:
        self._experiment, self._order, self._clock, self._tasks = experiment, order, clock, tasks
        self._open: Callable[[Experiment, int | None, int, int | None], Case] = import_module(f"{_ROOM}.{experiment.module}").case
        self._results: dict[int, Result] = {}
        self._left: dict[int, Left] = {}
        self._notes: list[str] = [OFFICIAL if experiment.published else NOTHING_PUBLISHED]
        if order.images is not None:
            self._notes.append(f"with --images {order.images}: floors and goals are meant for all images")

    def run(self) -> Report:
        """Find what is finished, run what is not, and keep the table up to date."""
        for place, task in enumerate(self._tasks):
            self._find(place, task)
        waiting = [place for place in range(len(self._tasks)) if place not in self._results]
        self._keep()
        spent: list[float] = []
        for number, place in enumerate(waiting):
            ahead = len(waiting) - number
            self._order.watch.step(Step(self._tasks[place].title, number + 1, len(waiting), _mean(spent) * ahead))
            self._try(place)
            spent += [self._results[place].seconds] if place in self._results else []
            self._keep()
        return self._report()

    def _case(self, task: Task) -> Case:
        return self._open(self._experiment, task.side, task.seed, self._order.images)

    def _find(self, place: int, task: Task) -> None:
        """What was finished before; what has to be said of the images is said first."""
        case = self._case(task)
        if case.note and case.note not in self._notes:
            self._notes.append(case.note)
            self._order.watch.say(case.note)
        kept = finished(task, case, self._order)
        if kept is not None:
            self._results[place] = kept
            self._order.watch.say(f"{task.title}: finished before, {summary(self._experiment, kept)}")

    def _try(self, place: int) -> None:
        """Run a seed if there is time for it; what is not done in time is left."""
        task = self._tasks[place]
        needed = self._needed(task)
        if self._clock.left <= needed:
            self._leave(place, f"it needs about {needed:.0f} s, {max(0.0, self._clock.left):.0f} s of the budget are left")
            return
        try:
            result = run_seed(task, self._case(task), self._order, self._clock)
        except OutOfTimeError:
            self._leave(place, "the budget was over before it was finished; give a longer --budget, or a --learn-budget")
            return
        self._results[place] = result
        self._order.watch.say(f"{task.title}: {summary(self._experiment, result)}")

    def _needed(self, task: Task) -> float:
        """Seconds that a seed of this preset took, or at least may learn."""
        alike = [r.seconds for r in self._results.values() if (r.preset, r.variant) == (task.preset, task.variant)]
        return max(alike, default=self._order.learn_budget or 0.0)

    def _leave(self, place: int, reason: str) -> None:
        task = self._tasks[place]
        self._left[place] = Left(task.preset, task.variant, task.seed, reason)
        self._order.watch.say(f"{task.title}: left for the next call: {reason}")

    def _report(self) -> Report:
        results = tuple(self._results[place] for place in sorted(self._results))
        rows = measured_rows(results)
        return Report(
            name=self._experiment.name,
            folder=str(self._order.out / self._experiment.name),
            rows=(*self._experiment.published, *rows),
            targets=verdicts(self._experiment, rows),
            seeds=results,
            left=tuple(self._left[place] for place in sorted(self._left)),
            notes=(*self._notes, *dict.fromkeys(f"learned on {result.device}: {result.machine}" for result in results)),
        )

    def _keep(self) -> None:
        with atomic(self._order.out / self._experiment.name / TABLE) as file:
            file.write(table(self._report()).encode())


def _mean(seconds: Sequence[float]) -> float:
    """Infinite where nothing is known yet."""
    return sum(seconds) / len(seconds) if seconds else math.inf
