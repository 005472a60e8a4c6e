"""How right decompositions are with the true dictionaries, patches drawn from the recipes: nothing is learned here."""

from __future__ import annotations

import itertools
import math
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray

from pictolex.api import Learned
from pictolex.decompose import Engine, Layout, Problem, Progress
from pictolex.decompose.polish import Polisher
from pictolex.experiments.bench_base import Order, Row, data_file, missing
from pictolex.experiments.bench_settings import full_size
from pictolex.experiments.bench_timing import one_thread
from pictolex.experiments.evaluation import measure as evaluate
from pictolex.metrics import search_failure_rate
from pictolex.model import Collection
from pictolex.presets import load_preset
from pictolex.sources import Source, open_source
from pictolex.sources.families.dsprites import ORIENTATIONS, PLACES
from pictolex.sources.synthetic import true_dictionary
from pictolex.sources.truth import Truth, open_truth

LAST = 500
TRUTH_STEPS = 10
SAY_EVERY = 100
RELATIVE, ABSOLUTE = 0.01, 0.3
"""The truth has to cost less by more than this share and this much before a search counts as failed."""


@dataclass(frozen=True)
class Set:
    """A set of images: its name (of the preset and the recipe), its file, and the foreground ARI wanted."""

    name: str
    file: str
    floor: float
    goal: float | None = None
    most_failures: float | None = None
    failures_goal: float | None = None


SETS = (
    Set("tetrominoes", "tetrominoes_recreated.npz", 0.999),
    Set("dsprites-adv", "multi_dsprites_adv_recreated.npz", 0.99),
    Set("dsprites-color", "multi_dsprites_color_recreated.npz", 0.97, 0.995),
    Set("dsprites-bin", "multi_dsprites_bin_recreated.npz", 0.94, 0.97, most_failures=0.08, failures_goal=0.01),
)


def measure(order: Order) -> Iterator[Row]:
    """Foreground ARI and error of every set, and how often the search fails where the true elements are known."""
    with one_thread():
        for one in SETS:
            path = data_file(one.file)
            if path is None:
                order.say(f"quality: {one.name} is skipped: {missing(one.file)}")
                continue
            yield from _measure_set(order, one, f"{path}[-{LAST}:]")


def _measure_set(order: Order, one: Set, spec: str) -> Iterator[Row]:
    count, device = order.count(LAST), order.fastest
    images, truth = open_source(spec, count=count), open_truth(spec, count=count)
    settings = full_size(load_preset(one.name)).model_copy(update={"device": device})
    known = Learned(true_dictionary(one.name), settings, None)
    order.say(f"quality: {one.name}, {len(images)} images on {device}")
    engine, start = Engine(known.dictionary, settings), time.perf_counter()
    collection = engine.run(images, progress=_teller(order, one.name))
    figures = evaluate(known, images, truth, collection, time.perf_counter() - start)
    yield Row("quality-mse", one.name, device, figures.mse, "mse", "lower")
    if figures.ari_foreground is not None:
        yield Row("quality-ari", one.name, device, figures.ari_foreground, "ari", "higher", floor=one.floor, goal=one.goal)
    if one.most_failures is not None and truth is not None:
        order.say(f"quality: {one.name}, polishing the true elements")
        rate = search_failures(engine, images, truth, collection)
        yield Row("quality-failures", one.name, device, rate, "share", "lower", floor=one.most_failures, goal=one.failures_goal)


def _teller(order: Order, name: str) -> Callable[[Progress], None]:
    """Progress in some lines."""
    told = 0

    def tell(progress: Progress) -> None:
        nonlocal told
        if progress.done - told >= SAY_EVERY and progress.done < progress.total:
            told = progress.done
            order.say(f"quality: {name}, {progress.done} of {progress.total} images, {progress.seconds_left:.0f} s left")

    return tell


def search_failures(engine: Engine, images: Source, truth: Truth, collection: Collection) -> float:
    """Share of Multi-dSprites images whose polished truth costs clearly less than what was found."""
    price = engine.settings.price
    found = collection.images["error"] + price * collection.elements_per_image
    best = np.array([_true_energy(engine, images, truth, int(i)) for i in collection.images["image"]])
    rate = search_failure_rate(found - RELATIVE * best - ABSOLUTE, best, slack=0.0)
    return math.nan if rate is None else rate


def _true_energy(engine: Engine, images: Source, truth: Truth, index: int) -> float:
    """The energy of an image's true elements, polished, without those that do not pay (hidden ones)."""
    if truth.factors is None:
        return math.inf
    picture = images.read(index)
    image = torch.from_numpy(picture.pixels).permute(2, 0, 1).unsqueeze(0).contiguous().to(engine.device)
    stage, _, background = engine.ready(image.shape[1])
    weight = torch.ones_like(image[:, :1])
    problem = Problem(image, weight, background.start(image, weight))
    layout = true_layout(truth.factors(index)["factors"], image.shape[1], engine.device)
    layout, _ = Polisher(stage).polish(problem, layout, TRUTH_STEPS)
    layers = stage.layers(layout, *image.shape[-2:])
    slots = layers.shape[1]
    keeps = [list(keep) for size in range(slots + 1) for keep in itertools.combinations(range(slots), size)]
    return min(float(stage.error(problem, layers[:, keep])) + engine.settings.price * len(keep) for keep in keeps)


def true_layout(factors: NDArray[np.generic], channels: int, device: torch.device) -> Layout:
    """The elements of Multi-dSprites factors (objects, 7): later objects are in front."""
    rows = np.asarray(factors, np.float64)
    rows = rows[rows[:, 6] == 1][::-1]
    pose = torch.zeros(1, len(rows), 5)
    for k, values in enumerate(
        (
            16 + rows[:, 3] * 32 / (PLACES - 1),
            16 + rows[:, 4] * 32 / (PLACES - 1),
            rows[:, 2] * 2 * math.pi / (ORIENTATIONS - 1),
            np.log(0.5 + 0.1 * rows[:, 1]),
        )
    ):
        pose[0, :, k] = torch.from_numpy(np.ascontiguousarray(values))
    concept = torch.from_numpy(rows[:, 0].astype(np.int64)).unsqueeze(0)
    colour = torch.ones(1, len(rows), channels)
    return Layout(*(t.to(device) for t in (concept, pose, torch.full_like(concept, -1), colour)))
