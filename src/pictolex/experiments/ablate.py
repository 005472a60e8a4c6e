"""`pictolex ablate`: variants that differ in one choice, seed by seed, side by side."""

from __future__ import annotations

import difflib
import math
import time
from collections.abc import Sequence
from dataclasses import asdict
from importlib import import_module

from pictolex.errors import InputError, SettingError
from pictolex.experiments.ablate_base import Ablation, Job, Kept, Left, Order, Report
from pictolex.experiments.ablate_images import open_images
from pictolex.experiments.ablate_store import finite, load, save
from pictolex.experiments.ablate_table import one_of, rows_of, summary, table
from pictolex.experiments.reproduce_base import Step, Watch
from pictolex.experiments.reproduce_seed import Clock, OutOfTimeError
from pictolex.model.files import atomic, json_bytes

__all__ = ["ABLATIONS", "Order", "Report", "Watch", "known_ablation", "run_ablation", "table"]

_ROOM = "pictolex.experiments"
ABLATIONS = {
    "evolution": ("ablate_evolution", "EVOLUTION"),
    "optimizers": ("ablate_optimizers", "OPTIMIZERS_ABLATION"),
    "rounds": ("ablate_searches", "ROUNDS"),
    "shuffling": ("ablate_searches", "SHUFFLING"),
    "strategy": ("ablate_searches", "STRATEGY"),
    "objective": ("ablate_searches", "OBJECTIVE"),
    "data": ("ablate_amounts", "DATA"),
    "sizes": ("ablate_amounts", "SIZES_ABLATION"),
}
"""The ablations by name, and where they are."""
DEFAULT_SEEDS = (0,)
TABLE, VALUES = "table.md", "table.json"


def known_ablation(name: str) -> Ablation:
    """The ablation of a name."""
    if name not in ABLATIONS:
        near = difflib.get_close_matches(name, ABLATIONS, n=1, cutoff=0.5)
        hint = f"did you mean {near[0]}?" if near else f"the ablations are {', '.join(ABLATIONS)}"
        raise InputError(f"unknown ablation {name!r}: {hint}")
    module, place = ABLATIONS[name]
    found: Ablation = getattr(import_module(f"{_ROOM}.{module}"), place)
    return found


def run_ablation(ablation: Ablation, order: Order, *, seeds: Sequence[int] = DEFAULT_SEEDS, budget: float | None = None) -> Report:
    """Run every seed of every variant that is not finished yet; the tables and pictures are kept in `out/name`.

    `budget`: seconds for all; what does not fit is left for the next call.
    """
    _check(order, seeds)
    return _Work(ablation, order, Clock(budget), tuple(dict.fromkeys(seeds))).run()


def _check(order: Order, seeds: Sequence[int]) -> None:
    """Refuse before any work is done."""
    if not seeds:
        raise InputError("--seeds is empty; give some, such as --seeds 0,1,2")
    if min(seeds) < 0:
        raise InputError(f"--seeds: {min(seeds)} is negative; seeds are 0 or more")
    if order.images is not None and order.images < 1:
        raise SettingError(f"--images {order.images}; give 1 or more, or leave it out")
    from pictolex.decompose.device import choose_device

    choose_device(order.device)


class _Work:
    """The seeds of one call: those that were finished before, those that are run, those that are left."""

    def __init__(self, ablation: Ablation, order: Order, clock: Clock, seeds: Sequence[int]) -> None:
        self._ablation, self._order = ablation, order
        self._clock = clock
        self._folder = order.out / ablation.name
        most = order.images or ablation.images
        measured = order.images or ablation.measured or ablation.images
        fits = [variant for variant in ablation.variants if variant.learn is None or variant.learn <= most]
        self._jobs = [
            Job(variant, seed, measured, order.device, order.watch, clock)
            for variant in fits
            for seed in (seeds if variant.random else (0,))
        ]
        self._kept: dict[int, Kept] = {}
        self._left: dict[int, Left] = {}
        self._notes: dict[str, None] = {}
        if len(fits) < len(ablation.variants):
            largest = max(variant.learn or 0 for variant in ablation.variants)
            self._notes[f"only variants that learn from at most {most} images; for all of them --images {largest}"] = None

    def run(self) -> Report:
        """Find what is finished, run what is not, and keep the tables up to date."""
        for place in range(len(self._jobs)):
            self._find(place)
        waiting = [place for place in range(len(self._jobs)) if place not in self._kept]
        self._keep()
        spent: list[float] = []
        for number, place in enumerate(waiting):
            if self._clock.left <= 0:
                self._leave(waiting[number:], "the budget is over")
                break
            ahead = (len(waiting) - number) * (sum(spent) / len(spent) if spent else math.inf)
            self._order.watch.step(Step(self._title(place), number + 1, len(waiting), ahead))
            self._try(place)
            spent += [self._kept[place].seconds] if place in self._kept else []
            self._keep()
        self._draw()
        self._keep()
        return self._report()

    def _title(self, place: int) -> str:
        job = self._jobs[place]
        return f"{self._ablation.name}, {job.variant.name}" + (f", seed {job.seed}" if job.variant.random else "")

    def _find(self, place: int) -> None:
        """What was finished before; what has to be said of the images is said first."""
        job = self._jobs[place]
        images = open_images(job)
        for note in (images.data, images.note):
            if note and note not in self._notes:
                self._notes[note] = None
        kept = load(job, images, self._folder)
        if kept is not None:
            self._kept[place] = kept
            self._order.watch.say(f"{self._title(place)}: finished before, {summary(self._ablation, kept)}")

    def _try(self, place: int) -> None:
        """Run a seed if there is time for it; what is not done in time is left."""
        job = self._jobs[place]
        needed = max((one.seconds for one in self._kept.values() if one.variant == job.variant), default=0.0)
        if self._clock.left <= needed:
            self._leave([place], f"it needs about {needed:.0f} s, {max(0.0, self._clock.left):.0f} s of the budget are left")
            return
        started = time.monotonic()
        images = open_images(job)
        try:
            found = self._ablation.run(job, images)
        except OutOfTimeError:
            self._leave([place], "the budget was over before it was finished; give a longer --budget, or fewer --images")
            return
        self._kept[place] = save(job, images, found, time.monotonic() - started, self._folder)
        self._order.watch.say(f"{self._title(place)}: {summary(self._ablation, self._kept[place])}")

    def _leave(self, places: Sequence[int], reason: str) -> None:
        for place in places:
            self._left[place] = Left(self._jobs[place].variant.name, self._jobs[place].seed, reason)
        more = f" and {len(places) - 1} more" if len(places) > 1 else ""
        self._order.watch.say(f"{self._title(places[0])}{more}: left for the next call: {reason}")

    def _draw(self) -> None:
        """Pictures of all that is finished."""
        if self._kept:
            for told in self._ablation.draw(self._finished, self._folder):
                if told not in self._notes:
                    self._notes[told] = None
                    self._order.watch.say(told)

    @property
    def _finished(self) -> list[Kept]:
        return [self._kept[place] for place in sorted(self._kept)]

    def _report(self) -> Report:
        finished = self._finished
        return Report(
            name=self._ablation.name,
            question=self._ablation.question,
            folder=str(self._folder),
            rows=rows_of(finished),
            results=tuple(one_of(kept) for kept in finished),
            left=tuple(self._left[place] for place in sorted(self._left)),
            notes=(*self._notes, *dict.fromkeys(f"measured on {kept.machine}" for kept in finished)),
        )

    def _keep(self) -> None:
        report = self._report()
        with atomic(self._folder / TABLE) as file:
            file.write(table(self._ablation, report).encode())
        with atomic(self._folder / VALUES) as file:
            file.write(json_bytes(finite(asdict(report))))
