"""Does coarse-to-fine search find what exhaustive search finds? The share of searches whose gain is within 1% of the best."""

from __future__ import annotations

from collections.abc import Iterator

import torch
from torch import Tensor

from pictolex.decompose import Stage
from pictolex.experiments.bench_base import Order, Row
from pictolex.experiments.bench_contexts import among_true, behind_found, searcher
from pictolex.experiments.bench_settings import NAMES, Case, case, lacking
from pictolex.experiments.bench_timing import one_thread
from pictolex.search import Query, calibrate

IMAGES = 300
WITHIN = 0.01
ROUNDING = 1e-4
FLOOR, GOAL = 0.98, 0.995


def measure(order: Order) -> Iterator[Row]:
    """T and D among true elements, M behind the two best that exhaustive search finds, and D behind two found greedily."""
    device, count = order.fastest, order.count(IMAGES)
    with one_thread():
        for name in NAMES:
            found = case(name, count)
            if found is None:
                order.say(lacking(name))
                continue
            stage = found.stage(device)
            for label, query in _queries(found, stage, device):
                order.say(f"agreement: {label}, {count} searches among {len(stage.bank)} kernels, by both ways on {device}")
                yield Row("agreement", label, device, _share(stage, query, device), "share", "higher", floor=FLOOR, goal=GOAL)


def _queries(found: Case, stage: Stage, device: str) -> Iterator[tuple[str, Query]]:
    true = among_true(found, stage, device)
    if true is None:
        yield found.name, behind_found(found, stage, device, "exhaustive")
        return
    yield found.name, true
    if found.name == "D":
        yield "D-greedy", behind_found(found, stage, device, "coarse")


def _share(stage: Stage, query: Query, device: str) -> float:
    """The share of searches that agree."""
    best = searcher(stage, "exhaustive", calibrate(device)).best(query, 1).gain[:, 0]
    found = searcher(stage, "coarse").best(query, 1).gain[:, 0]
    return float(agree(found, best).to(torch.float32).mean())


def agree(found: Tensor, best: Tensor) -> Tensor:
    """Which gains found are within 1% of the best."""
    return found >= best - WITHIN * best.abs() - ROUNDING
