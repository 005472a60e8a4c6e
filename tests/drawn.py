"""Concepts and scenes drawn by Pillow, supersampled: a rasteriser foreign to `formation/`, so that recovery tests are no inverse crime."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from PIL import Image, ImageDraw

from pictolex.model import Background, Concept, Dictionary

FINE = 8
"""Drawn so many times larger, then box-reduced."""

Outline = Sequence[tuple[float, float]]

OUTLINES: dict[str, Outline] = {
    "ell": [(-8, -8), (-2, -8), (-2, 2), (7, 2), (7, 8), (-8, 8)],
    "wedge": [(-8, -7), (9, 0), (-8, 7), (-4, 0)],
    "ellipse": [(8.5 * math.cos(t * math.pi / 60), 5 * math.sin(t * math.pi / 60)) for t in range(120)],
    "square": [(-5, -5), (5, -5), (5, 5), (-5, 5)],
    "bar": [(-8, -3), (8, -3), (8, 3), (-8, 3)],
}


@dataclass(frozen=True)
class Placed:
    """One shape of a scene: x, y of its centre from the top left corner, y down; counter-clockwise radians."""

    kind: str
    x: float
    y: float
    rotation: float = 0.0
    scale: float = 1.0
    colour: tuple[float, ...] = (1.0,)
    mirror: bool = False


def points(placed: Placed, fine: int = FINE) -> list[tuple[float, float]]:
    """The outline on the fine grid, as Pillow counts: pixel centres at whole numbers."""
    cos, sin = math.cos(placed.rotation) * placed.scale, math.sin(placed.rotation) * placed.scale
    corners = [(-u if placed.mirror else u, v) for u, v in OUTLINES[placed.kind]]
    return [((placed.x + cos * u + sin * v) * fine - 0.5, (placed.y - sin * u + cos * v) * fine - 0.5) for u, v in corners]


def coverage(placed: Placed, height: int, width: int) -> NDArray[np.float32]:
    """How much of each pixel the shape covers."""
    canvas = Image.new("L", (width * FINE, height * FINE), 0)
    ImageDraw.Draw(canvas).polygon(points(placed), fill=255)
    return np.asarray(canvas, np.float32).reshape(height, FINE, width, FINE).mean((1, 3)) / 255


def scene(placed: Sequence[Placed], height: int, width: int, background: tuple[float, ...] = (0.0,)) -> NDArray[np.float32]:
    """Shapes front to back on a plain background: (height, width, channels)."""
    channels = []
    for k, behind in enumerate(background):
        canvas = Image.new("L", (width * FINE, height * FINE), round(behind * 255))
        draw = ImageDraw.Draw(canvas)
        for shape in reversed(placed):
            draw.polygon(points(shape), fill=round(shape.colour[k % len(shape.colour)] * 255))
        channels.append(np.asarray(canvas, np.float32).reshape(height, FINE, width, FINE).mean((1, 3)) / 255)
    return np.stack(channels, axis=-1)


def concept(id: int, kind: str, side: int = 21, grey: float = 1.0) -> Concept:
    """A shape in the middle of a patch, in one grey."""
    alpha = coverage(Placed(kind, side / 2, side / 2), side, side)
    return Concept(id, np.full((side, side, 1), grey, np.float32), alpha, kind)


def dictionary(*kinds: str, side: int = 21, hues: NDArray[np.float32] | None = None, background: Background | None = None) -> Dictionary:
    """Concepts 10, 11, ... of these kinds: ids that are no positions."""
    return Dictionary(
        tuple(concept(10 + i, kind, side) for i, kind in enumerate(kinds)), hues=hues, background=background or Background("none")
    )


def image_batch(images: Sequence[NDArray[np.float32]]) -> NDArray[np.float32]:
    """Images (n, height, width, channels) as (n, channels, height, width)."""
    return np.ascontiguousarray(np.moveaxis(np.stack(images), -1, 1))
