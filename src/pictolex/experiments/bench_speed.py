"""Whole images: time per image of the paper's rounds on T, D, M, and of propose-select-polish on D."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import torch

from pictolex.decompose import Problem, Stage
from pictolex.decompose.strategy import create
from pictolex.experiments.bench_base import Order, Row, times_faster
from pictolex.experiments.bench_settings import NAMES, case, full_size, lacking
from pictolex.experiments.bench_timing import milliseconds, one_thread
from pictolex.presets import load_preset
from pictolex.settings import Search, Settings
from pictolex.sources.synthetic import true_dictionary

IMAGES = {"cpu": 32, "cuda": 512}
SLOW_IMAGES = {"cpu": 4, "cuda": 256}
CHUNK = {"cpu": 32, "cuda": 512}
FREE_SCALE = "dsprites-bin"


@dataclass(frozen=True)
class Bounds:
    """Milliseconds per image: at least, and goal."""

    floor: float
    goal: float


BOUNDS = {
    "cpu": {"T": Bounds(20, 5), "D": Bounds(100, 20), "M": Bounds(10, 3), "propose": Bounds(150, 18)},
    "cuda": {"T": Bounds(0.3, 0.05), "D": Bounds(2, 0.3), "M": Bounds(0.5, 0.1), "propose": Bounds(2, 0.3)},
}


def measure(order: Order) -> Iterator[Row]:
    """Each beside the same with exhaustive search (the reference), on fewer images."""
    with one_thread():
        for device in order.devices:
            for name in NAMES:
                row = _rounds(order, device, name)
                if row is not None:
                    yield row
            yield _propose(order, device)


def _rounds(order: Order, device: str, name: str) -> Row | None:
    kind = torch.device(device).type
    count, few = order.count(IMAGES[kind]), order.count(SLOW_IMAGES[kind])
    found = case(name, count)
    if found is None:
        order.say(lacking(name))
        return None
    order.say(f"speed: {name}, the paper's rounds, {count} images on {device}; {few} by exhaustive search")
    channels = found.images.shape[1]
    exhaustive = found.settings.model_copy(update={"search": Search(method="exhaustive")})
    value = _time(found.stage(device), found.problem(device), device)
    slow = _time(Stage(found.dictionary, exhaustive, channels, device=device), found.problem(device, few), device, repeats=1)
    bounds = BOUNDS[kind][name]
    return Row("speed-rounds", name, device, value, "ms", "lower", slow, times_faster(value, slow), floor=bounds.floor, goal=bounds.goal)


def _propose(order: Order, device: str) -> Row:
    """Free scale, three shapes, by the settings that the quality is measured with."""
    kind = torch.device(device).type
    count = order.count(IMAGES[kind])
    order.say(f"speed: D, propose-select-polish, {count} images on {device}")
    found = case("D", count)
    if found is None:
        raise RuntimeError("the setting D is generated and always there")
    settings: Settings = full_size(load_preset(FREE_SCALE))
    stage = Stage(true_dictionary(FREE_SCALE), settings, found.images.shape[1], device=device)
    value = _time(stage, found.problem(device), device)
    bounds = BOUNDS[kind]["propose"]
    return Row("speed-propose", "D", device, value, "ms", "lower", floor=bounds.floor, goal=bounds.goal)


def _time(stage: Stage, problem: Problem, device: str, repeats: int = 3) -> float:
    """Milliseconds an image, in batches as the engine makes them."""
    strategy = create(stage.settings.strategy, stage)
    count, chunk = len(problem.image), CHUNK[torch.device(device).type]
    work: Callable[[], object] = lambda: [strategy.solve(problem.take(slice(s, s + chunk))) for s in range(0, count, chunk)]  # noqa: E731
    strategy.solve(problem.take(slice(0, count if torch.device(device).type == "cuda" else 2)))
    return milliseconds(work, count, device, repeats)
