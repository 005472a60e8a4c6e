"""A dictionary at one glance: every concept on a checkerboard with its id and how often it is used, its hues, its background."""

from __future__ import annotations

import math
from collections.abc import Mapping

import numpy as np

from pictolex.model import Concept, Dictionary
from pictolex.pictures.canvas import Picture, Tile, enlarge, grid, on_checkerboard, to_bytes, zoom_for

TILE = 80
"""The side that a typical concept is enlarged to."""


def dictionary_sheet(dictionary: Dictionary, usage: Mapping[int, int] | None = None) -> Picture:
    """The concepts of a dictionary, the most used first, then its hues and background."""
    counts = usage or {}
    concepts = sorted(dictionary, key=lambda concept: (-counts.get(concept.id, 0), concept.id))
    side = max((max(concept.height, concept.width) for concept in concepts), default=1)
    zoom = zoom_for(side, TILE)
    tiles = [Tile(_patch(concept, zoom), _caption(concept, usage)) for concept in concepts]
    columns = max(8, min(24, math.ceil(math.sqrt(2 * len(tiles)))))
    rows = [tiles[start : start + columns] for start in range(0, len(tiles), columns)]
    extras = _extras(dictionary)
    rows += [extras[start : start + columns] for start in range(0, len(extras), columns)]
    return grid(rows)


def _caption(concept: Concept, usage: Mapping[int, int] | None) -> str:
    used = f"  x{usage.get(concept.id, 0)}" if usage is not None else ""
    return " ".join(part for part in (str(concept.id), concept.name) if part) + used


def _patch(concept: Concept, zoom: int) -> Picture:
    """A flat concept as it is; a voxel concept seen along each of its three axes."""
    if not concept.is_voxel:
        return on_checkerboard(concept.shape, concept.alpha, zoom)
    views = [1 - np.prod(1 - concept.alpha, axis=axis) for axis in range(3)]
    height = max(view.shape[0] for view in views)
    padded = [np.pad(view, ((0, height - view.shape[0]), (0, 1))) for view in views]
    cover = np.concatenate(padded, axis=1)
    return on_checkerboard(np.full((*cover.shape, 1), 0.1, np.float32), cover, zoom)


def _extras(dictionary: Dictionary) -> list[Tile]:
    """A swatch of every hue, and the background."""
    tiles = []
    if dictionary.hues is not None:
        tiles += [Tile(to_bytes(np.broadcast_to(hue, (32, 48, 3))), f"hue {index}") for index, hue in enumerate(dictionary.hues)]
    values = dictionary.background.values
    if values is not None and values.ndim == 1:
        tiles.append(Tile(to_bytes(np.broadcast_to(values, (32, 48, len(values)))), "background"))
    elif values is not None:
        picture = to_bytes(values)
        tiles.append(Tile(enlarge(picture, zoom_for(max(picture.shape[:2]), TILE)), "background"))
    return tiles
