"""The learning loop: find the elements of some images, step the dictionary on them, and so on; at the end, the elements of all."""

from __future__ import annotations

import math
import os
import time
from collections.abc import Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING

import numpy as np
import torch

from pictolex.decompose import Batch, Engine, Layout, Problem, batches
from pictolex.decompose.engine import Progress as Pass
from pictolex.decompose.parallel import one_thread, side_by_side
from pictolex.errors import InputError
from pictolex.formation import Formation, create
from pictolex.learn.parameters import Parameters
from pictolex.learn.progress import Callback, LearningProgress
from pictolex.learn.run import Run
from pictolex.learn.start import first_dictionary
from pictolex.learn.update import Updater
from pictolex.search import calibrated
from pictolex.settings import Settings

if TYPE_CHECKING:
    from pictolex.sources import Source

TOGETHER = 64
"""Images whose elements are found with one state of the dictionary, before it steps on batches of them."""
PART = 16
"""Images searched at once; always as many, so that the result does not depend on how many parts are worked on side by side."""


class Learner:
    """The paper's alternation with a fixed number of concepts."""

    def __init__(
        self, source: Source, settings: Settings, *, formation: Formation | None = None, callbacks: Sequence[Callback] = ()
    ) -> None:
        if not len(source):
            raise InputError("there are no images to learn from; choose a source that has some")
        limit = settings.learning.limit
        self.source = source if limit is None else source.take(slice(0, limit))
        self.settings = settings
        self.callbacks = callbacks
        self._formation = formation
        self._error = self._elements = math.nan
        self._search_seconds = 0.0
        self._searched = 0

    def learn(self, out: str | os.PathLike[str] | None, budget: float | None) -> Run:
        """Learn, keep everything in a run, and return it."""
        started = time.monotonic()
        settings = self.settings
        dictionary = first_dictionary(self.source, settings)
        engine = Engine(dictionary, settings, formation=self._formation)
        run = Run.create(out, settings)
        run.log({"event": "machine", "device": str(engine.device), **asdict(calibrated(str(engine.device)))})
        parameters = Parameters.of(dictionary, engine.device)
        channels = max(c.shape.shape[-1] for c in dictionary.concepts)
        formation = self._formation.recast(channels) if self._formation else create(settings.formation, channels)
        updater = Updater(parameters, formation, settings.learning)
        try:
            epochs = settings.learning.epochs
            for epoch in range(epochs):
                if not self._epoch(epoch, engine, parameters, updater, started, budget):
                    break
                run.save_dictionary(parameters.dictionary())
                run.log(self._entry(epoch + 1, started, len(dictionary)))
        except KeyboardInterrupt:
            run.save_dictionary(parameters.dictionary())
            run.log({"event": "interrupted", "seconds": time.monotonic() - started})
            raise
        learned = parameters.dictionary()
        run.save_dictionary(learned)
        final = Engine(learned, settings, formation=self._formation)
        run.save_elements(final.run(self.source, progress=lambda p: self._tell_pass(p, len(learned))))
        run.log({"event": "done", "seconds": time.monotonic() - started})
        return run

    def _epoch(self, epoch: int, engine: Engine, parameters: Parameters, updater: Updater, started: float, budget: float | None) -> bool:
        """One pass over the images; False where the budget does not allow another step."""
        order = np.random.default_rng([self.settings.seed, epoch]).permutation(len(self.source)).tolist()
        shuffled = self.source.take(order)
        error = values = elements = 0.0
        done = 0
        for batch in batches(shuffled, lambda h, w, c: TOGETHER, engine.channels, engine.device):
            if budget is not None and self._spent(started, len(batch.index)) > budget:
                return False
            squared, count = self._step(batch, parameters, updater)
            error, values, elements, done = error + squared, values + batch.image.numel(), elements + count, done + len(batch.index)
            self._error, self._elements = error / values, elements / done
            self._tell(epoch, done, parameters, started, budget)
        return True

    def _step(self, batch: Batch, parameters: Parameters, updater: Updater) -> tuple[float, float]:
        """Find the elements of a few images, then step on them batch by batch: squared error and number of elements."""
        start = time.monotonic()
        engine = Engine(parameters.dictionary(), self.settings, formation=self._formation)
        problem, layout = _found(engine, batch)
        self._search_seconds += time.monotonic() - start
        self._searched += len(batch.index)
        error = 0.0
        size = self.settings.learning.batch
        with one_thread():
            for first in range(0, len(batch.index), size):
                part = slice(first, first + size)
                error += updater.step(problem.take(part), layout.take(part))
        return error, float(layout.count.sum())

    def _spent(self, started: float, images: int) -> float:
        """Seconds that will have been spent if one more step is made, the last pass over all images included."""
        each = self._search_seconds / self._searched if self._searched else 0.0
        return time.monotonic() - started + 1.1 * each * (images + len(self.source))

    def _tell(self, epoch: int, done: int, parameters: Parameters, started: float, budget: float | None) -> None:
        total, epochs = len(self.source), self.settings.learning.epochs
        seen = epoch * total + done
        elapsed = time.monotonic() - started
        left = elapsed / seen * (epochs * total - seen) + self._search_seconds / max(1, self._searched) * total
        if budget is not None:
            left = min(left, max(0.0, budget - elapsed))
        progress = LearningProgress("learning", epoch + 1, epochs, done, total, self._error, self._elements, len(parameters.template), left)
        for callback in self.callbacks:
            callback(progress)

    def _tell_pass(self, progress: Pass, concepts: int) -> None:
        epochs = self.settings.learning.epochs
        told = LearningProgress(
            "elements", epochs, epochs, progress.done, progress.total, progress.error, progress.elements, concepts, progress.seconds_left
        )
        for callback in self.callbacks:
            callback(told)

    def _entry(self, epoch: int, started: float, concepts: int) -> dict[str, float | int | str]:
        return {
            "event": "epoch",
            "epoch": epoch,
            "seconds": time.monotonic() - started,
            "error": self._error,
            "elements": self._elements,
            "concepts": concepts,
        }


def _found(engine: Engine, batch: Batch) -> tuple[Problem, Layout]:
    """The elements of a batch, its parts side by side, as tensors that differentiation may use."""
    engine.ready(batch.image.shape[1])
    parts = [slice(start, start + PART) for start in range(0, len(batch.index), PART)]

    def work(part: slice) -> tuple[Problem, Layout]:
        with torch.inference_mode():
            return engine.layout(batch.image[part], batch.weight[part])

    found = [result for _, result in side_by_side(work, parts, engine.workers)]
    problem = Problem(*(torch.cat([getattr(p, name) for p, _ in found]) for name in ("image", "weight", "background")))
    return problem.clone(), Layout.stack([layout for _, layout in found]).clone()
