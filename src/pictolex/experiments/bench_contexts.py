"""Images with two elements already placed: what the searches are given that search and agreement measure."""

from __future__ import annotations

import torch

from pictolex.decompose import Stage
from pictolex.experiments.bench_settings import Case, on_device
from pictolex.formation import Context
from pictolex.search import CostModel, Query, Searcher

LARGE = 2**30


def searcher(stage: Stage, method: str, cost: CostModel | None = None) -> Searcher:
    """The stage's search by another method."""
    given = stage.settings
    return Searcher(
        stage.bank,
        stage.formation,
        stage.colour,
        stage.objective,
        method=method,
        keep=given.search.candidates,
        memory=max(given.memory, LARGE),
        cost=cost,
    )


def among_true(found: Case, stage: Stage, device: str) -> Query | None:
    """Two of the three true elements placed, at the nearest pose of the grid; the third's place is free, at its depth.

    Which one is missing goes round; one that the dictionary does not have is always the one. None where the truth is not known.
    """
    if found.truth is None:
        return None
    problem, layout = found.problem(device), on_device(found.truth, device)
    count, slots = layout.concept.shape
    turn = torch.arange(count, device=layout.concept.device) % slots
    unknown = ~layout.used
    gone = torch.where(unknown.any(1), unknown.to(torch.int8).argmax(1), turn)
    steps = torch.arange(slots, device=gone.device)
    layers = stage.layers(layout.without(steps == gone.unsqueeze(1)), *problem.image.shape[-2:])
    parts = [stage.formation.context(layers, problem.background, slot) for slot in range(slots)]
    rows = torch.arange(count, device=gone.device)
    context = Context(*(torch.stack([getattr(p, name) for p in parts])[gone, rows] for name in ("rebuilt", "light", "behind")))
    return Query(problem.image, problem.weight, context)


def behind_found(found: Case, stage: Stage, device: str, method: str, placed: int = 2) -> Query:
    """So many elements placed one behind the other, each where a search finds most; the next one comes behind them."""
    problem = found.problem(device)
    search = searcher(stage, method)
    context = stage.formation.empty(problem.background)
    for _ in range(placed):
        hits = search.best(Query(problem.image, problem.weight, context), 1)
        layer = stage.layers(stage.placed(hits), *problem.image.shape[-2:])[:, 0]
        worth = (hits.gain[:, 0] > 0).view(-1, 1, 1, 1)
        context = stage.formation.cover(context, layer * worth)
    return Query(problem.image, problem.weight, context)
