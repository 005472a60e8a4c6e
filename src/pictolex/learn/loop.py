"""The learning loop: find the elements of some images, move the dictionary on them, and so on; evolve; at the end, the elements of all."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import asdict

import numpy as np

from pictolex.decompose import Batch, Engine, Renderer, batches
from pictolex.decompose.device import choose_device
from pictolex.decompose.parallel import one_thread
from pictolex.errors import InputError
from pictolex.formation import Formation, create
from pictolex.learn.checkpoint import Checkpoints, Position, fingerprint
from pictolex.learn.evolution import Evolution, Surroundings, create_evolution
from pictolex.learn.finder import Finder
from pictolex.learn.history import History
from pictolex.learn.kept import Kept
from pictolex.learn.progress import Callback, LearningProgress
from pictolex.learn.run import Run, lineage_counts
from pictolex.learn.start import first_dictionary
from pictolex.learn.step import DictionaryStep, create_step
from pictolex.learn.survey import Survey
from pictolex.model import Collection, Decomposition, Dictionary
from pictolex.search import calibrated
from pictolex.settings import Settings
from pictolex.sources import Source

INTERVAL = 20.0
"""Seconds between checkpoints within an epoch."""
SPARE = 1.15
"""The last pass is taken to need so many times what searching has needed so far."""
POOR = 0.5
"""A start that explains less than this share of its first images is tried again with other pieces."""
ONCE = 2.2
"""One epoch, its evolution and the last pass, in searches of every image."""
RESERVE = 60
"""Searches of one image that an evolution may take: it tries what it adds."""
FIRST = 16
"""Images on which starts are compared."""


class Learner:
    """Alternates between the elements and the dictionary, with evolution in between."""

    def __init__(
        self,
        source: Source,
        settings: Settings,
        *,
        formation: Formation | None = None,
        callbacks: Sequence[Callback] = (),
        survey: Survey | None = None,
        init: Dictionary | None = None,
        freeze: bool = False,
    ) -> None:
        if not len(source):
            raise InputError("there are no images to learn from; choose a source that has some")
        limit = settings.learning.limit
        self.source = source if limit is None else source.take(slice(0, limit))
        self.settings = settings
        self.callbacks = callbacks
        self.survey = survey
        self.init = init
        self.frozen = frozenset(init.ids) if init is not None and freeze else frozenset[int]()
        self.device = choose_device(settings.device)
        self.formation = formation

    def learn(self, out: str | os.PathLike[str] | None, budget: float | None = None, *, resume: bool = False) -> Run:
        """Learn, keep everything in a run, and return it. `resume`: go on with the run that is in the folder."""
        started = time.monotonic()
        mark = fingerprint(self.source)
        run = Run.open(out) if resume and out is not None else None
        position = Checkpoints(run.folder, mark).newest(self.settings) if run is not None else None
        fresh = position is None
        if position is None:
            position = Position(self._first())
            self._afford(position.dictionary, budget, started)
        step = self._step(position.dictionary)
        kept = self._kept(position.dictionary)
        if not fresh:
            step.resume(position.step)
            kept.resume(position.kept)
        if run is None:
            run = Run.create(out, self.settings)
        with one_thread():  # as searches run: on a busy machine two threads are measured slower than they are, now this way, now that
            run.log({"event": "machine", "device": str(self.device), **asdict(calibrated(str(self.device)))})
        work = _Work(self, run, Checkpoints(run.folder, mark), step, kept, position, started, budget)
        searching = False
        try:
            if fresh:
                work.save()
                work.keep_history()
            work.epochs()
            # The last pass goes on from here whenever it is stopped: what it has found by then is not part of the state.
            work.save()
            searching = True
            learned = step.finished()
            run.save_dictionary(learned)
            run.save_elements(work.last_pass(learned))
        except KeyboardInterrupt:
            run.save_dictionary(step.finished())
            if work.resting and not searching:
                work.save()
            run.log({"event": "interrupted", "seconds": work.seconds})
            raise
        run.log({"event": "done", "seconds": work.seconds})
        return run

    def _afford(self, dictionary: Dictionary, budget: float | None, started: float) -> None:
        """Take as many images as there is time to learn from once and to search in the last pass, judged by a few of them."""
        if budget is None:
            return
        some = self.source.take(slice(0, FIRST))
        engine = Engine(dictionary, self.settings, formation=self.formation)
        engine.run(some.take(slice(0, 2)))  # what is done once for all images is not theirs
        began = time.monotonic()
        engine.run(some)
        each = (time.monotonic() - began) / len(some)
        enough = int((budget - (time.monotonic() - started)) / (each * ONCE))
        if enough < len(self.source):
            self.source = self.source.take(slice(0, max(1, enough)))

    def _step(self, dictionary: Dictionary) -> DictionaryStep:
        channels = max(c.shape.shape[-1] for c in dictionary.concepts)
        return create_step(
            self.settings.learning, dictionary, self.made(channels), self.device, self.frozen, 1 / max(self.settings.placement.scales)
        )

    def _kept(self, dictionary: Dictionary) -> Kept:
        channels = 1
        for i in range(len(self.source)):
            with suppress(InputError):
                channels = int(self.source.read(i).pixels.shape[2])
                break
        engine = Engine(dictionary, self.settings, formation=self.formation)
        return Kept(len(self.source), self.settings.layers, engine.channels(channels))

    def made(self, channels: int) -> Formation:
        """The formation, for shapes of so many channels."""
        return self.formation.recast(channels) if self.formation else create(self.settings.formation, channels)

    def _first(self) -> Dictionary:
        """The dictionary to start from: what was given, or the best of a few cheap starts."""
        if self.init is not None:
            return self.init
        tried: list[tuple[float, Dictionary]] = []
        for number in range(self.settings.learning.starts):
            survey = self.survey if number == 0 and self.survey is not None else Survey.of(self.source, self.settings.seed + number)
            made = first_dictionary(survey, self.settings, self.made(1))
            if self.settings.learning.starts == 1:
                return made
            tried.append((self._unexplained(made), made))
            if tried[-1][0] < POOR:
                break
        return min(tried, key=lambda one: one[0])[1]

    def _unexplained(self, dictionary: Dictionary) -> float:
        """Share of the error before there are elements that a dictionary leaves on a few images."""
        engine = Engine(dictionary, self.settings, formation=self.formation)
        before = after = 0.0
        for batch in batches(self.source.take(slice(0, FIRST)), lambda h, w, c: FIRST, engine.channels, self.device):
            problem = engine.problem(batch.image, batch.weight)
            before += float((problem.weight * (problem.image - problem.background).square()).sum())
            after += sum(one.error for one in engine.solve(batch))
        return after / before if before > 0 else 0.0


class _Work:
    """One session of learning."""

    def __init__(
        self,
        learner: Learner,
        run: Run,
        checkpoints: Checkpoints,
        step: DictionaryStep,
        kept: Kept,
        position: Position,
        started: float,
        budget: float | None,
    ) -> None:
        self.learner, self.run, self.checkpoints = learner, run, checkpoints
        self.settings, self.source = learner.settings, learner.source
        self.step, self.kept, self.position = step, kept, position
        self.started, self.budget = started, budget
        self.before = position.seconds
        self.saved = time.monotonic()
        self.finder = Finder(self.settings, kept, learner.formation)
        self.history = History(run.folder, self.settings.learning.fixed_images)
        around = Surroundings(self.settings, self.source, learner.device, learner.formation, learner.frozen)
        self.evolution: Evolution = create_evolution(around)
        self.ending = 0.0
        self.resting = True
        """Whether what there is fits together, so that it may be kept."""

    @property
    def seconds(self) -> float:
        """That learning took so far, all sessions together."""
        return self.before + time.monotonic() - self.started

    def epochs(self) -> None:
        """All epochs that are left, as far as the budget goes."""
        position = self.position
        while position.epoch < self.settings.learning.epochs:
            if position.group == 0:
                position.begin(self.finder.limit())
            for number, batch in enumerate(self._groups(position.epoch)):
                if number < position.group:
                    continue
                if self._over(len(batch.index)):
                    self.save()
                    return
                self._group(batch)
            self._end_epoch()

    def _groups(self, epoch: int) -> Iterator[Batch]:
        """The images in the order of an epoch, some of one size at a time; `index` is that in the source."""
        order = np.random.default_rng([self.settings.seed, epoch]).permutation(len(self.source))
        group = self.settings.learning.group
        engine = Engine(self.position.dictionary, self.settings, formation=self.learner.formation)
        for batch in batches(self.source.take(order.tolist()), lambda h, w, c: group, engine.channels, self.learner.device):
            yield Batch([int(order[i]) for i in batch.index], batch.names, batch.image, batch.weight)

    def _group(self, batch: Batch) -> None:
        """Find the elements of a group of images, then move the dictionary on them."""
        self.resting = False
        found = self.finder.find(self.step.dictionary(), batch, self.position.limit)
        with one_thread():
            error = self.step.step(found.problem, found.layout)
        self.position.add(error, found.problem.image.numel(), float(found.layout.count.sum()), len(batch.index))
        self.resting = True
        self._tell(self.position.images)
        if time.monotonic() - self.saved > INTERVAL:
            self.keep_dictionary()
            self.save()
            self.keep_history()

    def _end_epoch(self) -> None:
        """Evolve, and keep everything."""
        began, position = time.monotonic(), self.position
        self.resting = False
        position.epoch += 1
        position.group = 0
        if not self._late():
            with one_thread():
                evolved = self.evolution.evolve(position.epoch, self.step.dictionary(), self.kept)
            if evolved.changed:
                self.step.restart(evolved.dictionary)
                self.kept.follow(evolved.moves)
        position.dictionary = self.step.dictionary()
        self.resting = True
        self.keep_dictionary()
        self.run.log(self._entry())
        self.save()
        self.keep_history()
        self.ending = time.monotonic() - began

    def save(self) -> None:
        """A checkpoint."""
        self.position.step, self.position.kept = self.step.state(), self.kept.state()
        self.position.seconds = self.seconds
        with self.run.spared():
            self.checkpoints.save(self.position, self.settings)
        self.saved = time.monotonic()

    def keep_history(self) -> None:
        """A stage for the history."""
        with self.run.spared():
            self.history.keep(self.position.epoch, self.position.group, self.step.finished(), self.kept)

    def keep_dictionary(self) -> None:
        """What is learned so far, to be looked at."""
        with self.run.spared():
            self.run.save_dictionary(self.step.finished())

    def last_pass(self, dictionary: Dictionary) -> Collection:
        """The elements of all images, with the finished dictionary."""
        found: dict[int, Decomposition] = {}
        limit, total, group = self.finder.limit(), len(self.source), self.settings.learning.group
        engine = Engine(dictionary, self.settings, formation=self.learner.formation)
        started, error, values, elements = time.monotonic(), 0.0, 0.0, 0.0
        for batch in batches(self.source, lambda h, w, c: group, engine.channels, self.learner.device):
            result = self.finder.find(dictionary, batch, limit)
            for one in engine.told(batch, result.problem, result.layout):
                found[one.index] = one
                error, elements = error + one.error, elements + len(one)
            values += result.problem.image.numel()
            left = (time.monotonic() - started) / len(found) * (total - len(found))
            self._say("elements", self.settings.learning.epochs, len(found), error / values, elements / len(found), left)
        if not found:
            raise InputError("none of the images could be read; see the warnings above")
        collection = Collection.from_decompositions([found[i] for i in sorted(found)])
        return collection.drawn_by(Renderer(dictionary, self.settings, formation=self.learner.formation))

    def _left(self) -> float:
        """Seconds that the last pass over all images will take."""
        unseen = int(self.kept.energy.isnan().sum())
        return self.finder.each * (unseen + self.finder.again * (len(self.source) - unseen))

    def _over(self, images: int) -> bool:
        """Whether the budget does not allow another group and the last pass after it."""
        if self.budget is None:
            return False
        share = self.finder.again if self.position.epoch else 1.0
        ahead = self.finder.each * share * images + self._left() + self.ending
        return time.monotonic() - self.started + SPARE * ahead > self.budget

    def _late(self) -> bool:
        """Whether the budget leaves no time for an evolution before the last pass."""
        if self.budget is None:
            return False
        evolving = max(self.ending, RESERVE * self.finder.each)
        return time.monotonic() - self.started + SPARE * (self._left() + evolving) > self.budget

    def _tell(self, done: int) -> None:
        position, total, epochs = self.position, len(self.source), self.settings.learning.epochs
        elapsed = time.monotonic() - self.started
        ahead = epochs * total - position.epoch * total - done
        share = self.finder.again if position.epoch else 1.0
        left = self.finder.each * share * ahead + self._left()
        if self.budget is not None:
            left = min(left, max(0.0, self.budget - elapsed))
        self._say("learning", position.epoch + 1, done, position.mean_error, position.mean_elements, left)

    def _say(self, phase: str, epoch: int, done: int, error: float, elements: float, left: float) -> None:
        concepts = len(self.position.dictionary)
        progress = LearningProgress(phase, epoch, self.settings.learning.epochs, done, len(self.source), error, elements, concepts, left)
        for callback in self.learner.callbacks:
            callback(progress)

    def _entry(self) -> dict[str, float | int | str]:
        position = self.position
        return {
            "event": "epoch",
            "epoch": position.epoch,
            "seconds": self.seconds,
            "error": position.mean_error,
            "elements": position.mean_elements,
            "concepts": len(position.dictionary),
            **lineage_counts(position.dictionary.lineage),
        }
