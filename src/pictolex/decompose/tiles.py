"""Large images: decomposed tile by tile, each with a border of what surrounds it, so that there are no seams.

Tiles are done in four sweeps, like the fields of a chessboard of two colours a side, so that no two neighbours are done at once.
An element belongs to the tile its centre is in. What earlier tiles placed is seen by later ones as part of their image.
"""

from __future__ import annotations

import math

from pictolex.decompose.layout import Layout
from pictolex.decompose.stage import Problem, Stage
from pictolex.decompose.strategy import Strategy
from pictolex.decompose.table import crop, shifted


def solve_in_tiles(stage: Stage, strategy: Strategy, problem: Problem, tile: int) -> Layout:
    """The elements of images of any size."""
    found = [_solve_one(stage, strategy, problem.take(slice(b, b + 1)), tile) for b in range(problem.image.shape[0])]
    return Layout.stack(found)


def _solve_one(stage: Stage, strategy: Strategy, problem: Problem, tile: int) -> Layout:
    height, width = problem.image.shape[-2:]
    channels = problem.image.shape[1]
    border = max((max(s.size) for s in stage.bank.shelves), default=1)
    core = max(tile - 2 * border, tile // 2, 16)
    rows, columns = math.ceil(height / core), math.ceil(width / core)
    placed = Layout.empty(1, 1, channels, problem.image.device)
    for sweep in range(4):
        for row in range(sweep // 2, rows, 2):
            for column in range(sweep % 2, columns, 2):
                top, left = row * core, column * core
                bottom, right = min(height, top + core), min(width, left + core)
                box = (max(0, top - border), max(0, left - border), min(height, bottom + border), min(width, right + border))
                fresh = _solve_tile(stage, strategy, crop(problem, box), shifted(placed, box[1], box[0]), border)
                fresh = shifted(fresh, -box[1], -box[0])
                x, y = fresh.pose[..., 0], fresh.pose[..., 1]
                # Centres outside of the image belong to the tile at its edge.
                x, y = x.clamp(0, width - 1e-3), y.clamp(0, height - 1e-3)
                inside = (x >= left) & (x < right) & (y >= top) & (y < bottom) & fresh.used
                keep = inside[0].nonzero()[:, 0].unsqueeze(0)
                if keep.shape[1]:
                    placed = Layout.join([placed, fresh.order(keep)])
    return placed.compact()


def _solve_tile(stage: Stage, strategy: Strategy, window: Problem, others: Layout, border: int) -> Layout:
    """The elements of one window, among those that earlier tiles have placed there."""
    height, width = window.image.shape[-2:]
    x, y = others.pose[..., 0], others.pose[..., 1]
    near = (x > -border) & (x < width + border) & (y > -border) & (y < height + border) & others.used
    index = near[0].nonzero()[:, 0].unsqueeze(0)
    if not index.shape[1]:
        return strategy.solve(window)
    layers = stage.layers(others.order(index), height, width)
    # What is placed counts as done: it becomes the background, and its pixels as rebuilt are what the window has to show there.
    behind = stage.formation.render(layers, window.background)
    return strategy.solve(Problem(window.image, window.weight, behind))
