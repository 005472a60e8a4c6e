"""The engine: images in, their elements out; in batches of one size, streamed, within a memory budget."""

from __future__ import annotations

import math
import os
import time
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Protocol

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from pictolex.decompose.background import BackgroundModel, background_model
from pictolex.decompose.device import choose_device
from pictolex.decompose.layout import Layout
from pictolex.decompose.parallel import side_by_side
from pictolex.decompose.rendering import Renderer
from pictolex.decompose.stage import Problem, Stage
from pictolex.decompose.strategy import Strategy, create
from pictolex.decompose.table import describe, to_decompositions
from pictolex.decompose.tiles import solve_in_tiles
from pictolex.errors import InputError
from pictolex.formation import Formation
from pictolex.model import Collection, Decomposition, Dictionary
from pictolex.search import CostModel
from pictolex.settings import Settings

SHARES = 4
"""The memory budget is shared by so many batches at work."""
HELD_VALUES = 32 * 2**20
"""Most pixel values that wait for their batch to fill, where images have many sizes."""
LARGEST_BATCH = {"cpu": 16, "cuda": 512}


class Picture(Protocol):
    """One image: straight colour (h, w, c) in [0, 1], and opacity (h, w) or None."""

    @property
    def name(self) -> str:
        """What it is called."""
        ...

    @property
    def pixels(self) -> NDArray[np.float32]:
        """Straight colour."""
        ...

    @property
    def opacity(self) -> NDArray[np.float32] | None:
        """None where all is opaque."""
        ...


class Pictures(Protocol):
    """Images read one at a time."""

    def __len__(self) -> int: ...

    def read(self, i: int, /) -> Picture:
        """Image i."""
        ...


@dataclass(frozen=True)
class Progress:
    """How far a pass over the images is."""

    done: int
    total: int
    error: float
    """Mean squared error per value so far."""
    elements: float
    """Elements per image so far."""
    seconds_left: float


@dataclass(frozen=True)
class Batch:
    """Images of one size as tensors, and which images of the source they are."""

    index: list[int]
    names: list[str]
    image: Tensor
    weight: Tensor


class Engine:
    """A dictionary ready to decompose images."""

    def __init__(
        self, dictionary: Dictionary, settings: Settings, *, formation: Formation | None = None, cost: CostModel | None = None
    ) -> None:
        if not len(dictionary):
            raise InputError("the dictionary has no concepts: learn one, or choose a folder with sprites in it")
        self.dictionary = dictionary
        self.settings = settings
        self.device = choose_device(settings.device)
        self._formation = formation
        self._cost = cost
        self._ready: dict[int, tuple[Stage, Strategy, BackgroundModel]] = {}

    def ready(self, channels: int) -> tuple[Stage, Strategy, BackgroundModel]:
        """Stage, strategy and background for images with so many channels; made once."""
        if channels not in self._ready:
            stage = Stage(self.dictionary, self.settings, channels, formation=self._formation, device=self.device, cost=self._cost)
            self._ready[channels] = (
                stage,
                create(self.settings.strategy, stage),
                background_model(self.settings, self.dictionary, channels, self.device),
            )
        return self._ready[channels]

    def run(self, source: Pictures, *, progress: Callable[[Progress], None] | None = None) -> Collection:
        """The elements of every image of a source, in its order. Images that cannot be read are skipped, with a warning."""
        started, total = time.monotonic(), len(source)
        found: dict[int, Decomposition] = {}
        error = values = elements = 0.0
        for batch, decompositions in side_by_side(self._solved, self._prepared(source), self.workers):
            for decomposition in decompositions:
                found[decomposition.index] = decomposition
                error += decomposition.error
                elements += len(decomposition)
            values += batch.image.numel()
            if progress is not None:
                done = len(found)
                left = (time.monotonic() - started) / done * (total - done)
                progress(Progress(done, total, error / values, elements / done, left))
        if not found:
            raise InputError("none of the images could be read; see the warnings above")
        collection = Collection.from_decompositions([found[i] for i in sorted(found)])
        return collection.drawn_by(Renderer(self.dictionary, self.settings, formation=self._formation))

    @property
    def workers(self) -> int:
        """Batches at work at once: on a CPU one thread a batch beats several threads on one."""
        return 1 if self.device.type != "cpu" else self.settings.workers or min(os.cpu_count() or 1, SHARES)

    def _prepared(self, source: Pictures) -> Iterator[Batch]:
        for batch in batches(source, self._batch_size, self.channels, self.device):
            self.ready(batch.image.shape[1])
            yield batch

    def _solved(self, batch: Batch) -> list[Decomposition]:
        with torch.inference_mode():
            return self.solve(batch)

    def solve(self, batch: Batch) -> list[Decomposition]:
        """The elements of one batch."""
        return self.told(batch, *self.layout(batch.image, batch.weight))

    def told(self, batch: Batch, problem: Problem, layout: Layout) -> list[Decomposition]:
        """A batch's layout as decompositions."""
        stage, _, background = self.ready(batch.image.shape[1])
        layers = None
        if max(batch.image.shape[-2:]) <= self.settings.tile:
            layers = stage.layers(layout, *batch.image.shape[-2:])
            problem = Problem(problem.image, problem.weight, background.improve(problem, stage.formation, layers))
        facts = describe(stage, problem, layout, layers)
        return to_decompositions(self.dictionary, problem, layout, facts, batch.index, batch.names)

    def problem(self, image: Tensor, weight: Tensor) -> Problem:
        """Images with what is behind them."""
        behind = self.ready(image.shape[1])[2].start(image, weight)
        composited = image * weight + behind * (1 - weight) if bool((weight < 1).any()) else image
        return Problem(composited, (weight > 0).to(image.dtype), behind)

    def layout(self, image: Tensor, weight: Tensor, start: Layout | None = None) -> tuple[Problem, Layout]:
        """The layout of a batch of images, from nothing or from an earlier one."""
        stage, strategy, _ = self.ready(image.shape[1])
        problem = self.problem(image, weight)
        if max(image.shape[-2:]) > self.settings.tile:
            return problem, solve_in_tiles(stage, strategy, problem, self.settings.tile)
        return problem, strategy.solve(problem, start)

    def channels(self, channels: int) -> int:
        """Grey images become RGB where the dictionary is in colour."""
        coloured = self.dictionary.hues is not None and self.dictionary.hues.shape[1] == 3
        return 3 if coloured or any(c.shape.shape[-1] == 3 for c in self.dictionary.concepts) else channels

    def _batch_size(self, height: int, width: int, channels: int) -> int:
        """Images at once: by the memory budget alone, so that the result does not depend on how many work side by side."""
        fits = int(self.settings.memory / SHARES // self._bytes(height, width, channels))
        return max(1, min(fits, LARGEST_BATCH.get(self.device.type, 16)))

    def _bytes(self, height: int, width: int, channels: int) -> int:
        """Working memory of one image, roughly: candidates on pooled canvases, and layers."""
        height, width = min(height, self.settings.tile), min(width, self.settings.tile)
        return 4 * 4 * height * width * (40 * (channels + 1) + 6 * self.settings.layers * (channels + 2))


def batches(
    source: Pictures, size: Callable[[int, int, int], int], channels: Callable[[int], int], device: torch.device
) -> Iterator[Batch]:
    """Images of the same size together; nothing is held longer than until its batch is full."""
    waiting: dict[tuple[int, int, int], list[tuple[int, Picture]]] = {}
    held = 0
    skipped: list[str] = []
    for i in range(len(source)):
        try:
            picture = source.read(i)
        except InputError as error:
            skipped.append(str(error))
            continue
        shape = (picture.pixels.shape[0], picture.pixels.shape[1], channels(picture.pixels.shape[2]))
        waiting.setdefault(shape, []).append((i, picture))
        held += picture.pixels.size
        if len(waiting[shape]) >= size(*shape):
            full = waiting.pop(shape)
            held -= sum(p.pixels.size for _, p in full)
            yield _stack(full, shape, device)
        elif held > HELD_VALUES:
            largest = max(waiting, key=lambda s: len(waiting[s]) * math.prod(s))
            full = waiting.pop(largest)
            held -= sum(p.pixels.size for _, p in full)
            yield _stack(full, largest, device)
    for shape, rest in waiting.items():
        yield _stack(rest, shape, device)
    if skipped:
        warnings.warn(f"{len(skipped)} images skipped; the first: {skipped[0]}", stacklevel=2)


def _stack(pictures: list[tuple[int, Picture]], shape: tuple[int, int, int], device: torch.device) -> Batch:
    images = np.stack([np.broadcast_to(p.pixels, shape) for _, p in pictures])
    opaque = np.ones(shape[:2], np.float32)
    weights = np.stack([opaque if p.opacity is None else p.opacity for _, p in pictures])
    return Batch(
        [i for i, _ in pictures],
        [p.name for _, p in pictures],
        torch.from_numpy(images).permute(0, 3, 1, 2).contiguous().to(device),
        torch.from_numpy(weights).unsqueeze(1).to(device),
    )
