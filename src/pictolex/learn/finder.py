"""The search step: the elements of a group of images, parts of it side by side, going on from what was found before."""

from __future__ import annotations

import time
from dataclasses import dataclass

import torch
from torch import Tensor

from pictolex.decompose import Batch, Engine, Layout, Problem
from pictolex.decompose.parallel import side_by_side
from pictolex.formation import Formation
from pictolex.learn.kept import Kept
from pictolex.model import Dictionary
from pictolex.settings import Settings

PART = 16
"""Images searched at once; always as many, so that the result does not depend on how many parts are worked on side by side."""
WORST = 0.25
"""Share of the images that are searched again though they have elements: those that cost most."""


@dataclass(frozen=True)
class Found:
    """The elements of a group of images."""

    problem: Problem
    layout: Layout
    energy: Tensor
    """(images): squared error, and the price of every element."""


class Finder:
    """Finds elements with whatever the dictionary is by now; counts what searching takes."""

    def __init__(self, settings: Settings, kept: Kept, formation: Formation | None) -> None:
        self.settings = settings
        self.kept = kept
        self.formation = formation
        self.seconds = 0.0
        self.searched = 0

    @property
    def each(self) -> float:
        """Seconds that searching one image takes."""
        return self.seconds / self.searched if self.searched else 0.0

    def limit(self) -> float:
        """The cost above which an image is searched again."""
        known = self.kept.energy[~self.kept.energy.isnan()]
        return float(known.quantile(1 - WORST)) if len(known) else 0.0

    @property
    def again(self) -> float:
        """Share of the images with elements that are searched again."""
        return 2 * WORST if self.settings.learning.warm else 1.0

    def find(self, dictionary: Dictionary, batch: Batch, limit: float) -> Found:
        """The elements of a batch; kept for the next time."""
        started = time.monotonic()
        engine = Engine(dictionary, self.settings, formation=self.formation)
        engine.ready(batch.image.shape[1])
        parts = [slice(start, start + PART) for start in range(0, len(batch.index), PART)]
        done = [result for _, result in side_by_side(lambda part: self._part(engine, batch, part, limit), parts, engine.workers)]
        problem = Problem(*(torch.cat([getattr(found.problem, name) for found, _ in done]) for name in ("image", "weight", "background")))
        layout = Layout.stack([found.layout for found, _ in done]).clone()
        energy = torch.cat([found.energy for found, _ in done]).clone()
        self.kept.put(batch.index, layout, energy, dictionary.ids)
        self.seconds += time.monotonic() - started
        self.searched += sum(searched for _, searched in done)
        return Found(problem.clone(), layout, energy)

    def _part(self, engine: Engine, batch: Batch, part: slice, limit: float) -> tuple[Found, int]:
        image, weight, index = batch.image[part], batch.weight[part], batch.index[part]
        with torch.inference_mode():
            fresh = not self.settings.learning.warm or max(image.shape[-2:]) > self.settings.tile
            if fresh or not bool(self.kept.seen(index).all()):
                problem, layout = engine.layout(image, weight)
                return Found(problem, layout, self._energy(engine, problem, layout)), len(index)
            stage, strategy, _ = engine.ready(image.shape[1])
            problem = engine.problem(image, weight)
            start = self.kept.get(index, engine.dictionary.ids, stage.device)
            start = Layout(start.concept, start.pose, start.hue, stage.colour.renewed(start.hue, start.colour))
            layout = strategy.refine(problem, start)
            energy = self._energy(engine, problem, layout)
            again = (self.kept.stale[torch.tensor(index)].to(energy.device) | (energy > limit)).nonzero()[:, 0]
            if len(again):
                some = problem.take(again)
                found = strategy.solve(some, layout.take(again))
                slots = max(layout.concept.shape[1], found.concept.shape[1])
                layout = layout.pad(slots).replace(again, found.pad(slots))
                energy[again] = self._energy(engine, some, found)
            return Found(problem, layout, energy), len(again)

    def _energy(self, engine: Engine, problem: Problem, layout: Layout) -> Tensor:
        stage = engine.ready(problem.image.shape[1])[0]
        if max(problem.image.shape[-2:]) > self.settings.tile:
            return torch.zeros(len(problem.image), device=problem.image.device)
        layers = stage.layers(layout, *problem.image.shape[-2:])
        return stage.error(problem, layers) + self.settings.price * layout.count
