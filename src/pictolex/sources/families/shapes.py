"""Plane shapes by an analytic test: whether points lie inside. Those of dSprites, and others of about the same area."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from importlib import resources

import numpy as np
from numpy.typing import NDArray

from pictolex.sources.families.base import SAMPLES, Floats, coverage_patch

Test = Callable[[Floats, Floats], NDArray[np.bool_]]

_SQUARE_HALF_SIDE = 9.6
_ELLIPSE_SEMI_AXES = (12.8, 7.2)
_RING_RADII = (5.5, 11.5)
_STAR_RADII, _STAR_POINT = (6.5, 14.0), math.pi / 5
_TRIANGLE_RADIUS = 14.0
_CROSS_HALF_SIDES = (4.0, 11.5)
_MOON_RADIUS, _SHADOW_RADIUS, _SHADOW_SHIFT = 12.0, 10.0, 7.0
_FEWEST_SAMPLES = 4


@dataclass(frozen=True)
class Outline:
    """`inside(u, v)` of points u right, v down, in pixels from the centre at scale 1.0; none lies beyond +-reach (u, v)."""

    inside: Test
    reach: tuple[float, float]


def inside(shape: str, u: Floats, v: Floats) -> NDArray[np.bool_]:
    """Whether points (u right, v down, in pixels from the centre at scale 1.0) lie in a shape."""
    return np.asarray(OUTLINES[shape].inside(u, v))


def shape_patch(shape: str, zoom: float = 1.0) -> NDArray[np.float32]:
    """Coverage of a shape at scale 1.0, enlarged; a large patch takes fewer samples in a pixel."""
    reach_u, reach_v = OUTLINES[shape].reach
    samples = min(SAMPLES, max(_FEWEST_SAMPLES, math.ceil(SAMPLES / zoom)))
    return coverage_patch(lambda x, y: inside(shape, x / zoom, y / zoom), reach_u * zoom, reach_v * zoom, samples)


@lru_cache(maxsize=1)
def heart_outline() -> tuple[Floats, Floats]:
    """Angles and radii of the heart, calibrated on official frames (half of it: it is symmetric)."""
    outline = json.loads(resources.files("pictolex.sources.families").joinpath("heart.json").read_text(encoding="utf-8"))
    return np.array(outline["angle"]), np.array(outline["radius"])


def _square(u: Floats, v: Floats) -> NDArray[np.bool_]:
    return np.asarray(np.maximum(np.abs(u), np.abs(v)) <= _SQUARE_HALF_SIDE)


def _ellipse(u: Floats, v: Floats) -> NDArray[np.bool_]:
    return np.asarray((u / _ELLIPSE_SEMI_AXES[0]) ** 2 + (v / _ELLIPSE_SEMI_AXES[1]) ** 2 <= 1)


def _heart(u: Floats, v: Floats) -> NDArray[np.bool_]:
    angle, radius = heart_outline()
    return np.asarray(np.hypot(u, v) <= np.interp(np.arctan2(v, np.abs(u)), angle, radius))


def _heart_reach() -> tuple[float, float]:
    angle, radius = heart_outline()
    return float((radius * np.cos(angle)).max()), float(np.abs(radius * np.sin(angle)).max())


def _ring(u: Floats, v: Floats) -> NDArray[np.bool_]:
    radius = np.hypot(u, v)
    return np.asarray((radius >= _RING_RADII[0]) & (radius <= _RING_RADII[1]))


def _star(u: Floats, v: Floats) -> NDArray[np.bool_]:
    """Five points, one up: within the line from a point (radius b, angle 0) to the notch beside it (radius a, angle pi / 5)."""
    a, b = _STAR_RADII
    turn = np.arctan2(u, -v) % (2 * _STAR_POINT)
    angle = np.minimum(turn, 2 * _STAR_POINT - turn)
    line = b * np.sin(angle) + a * np.sin(_STAR_POINT - angle)
    return np.asarray(np.hypot(u, v) * line <= a * b * math.sin(_STAR_POINT))


def _triangle(u: Floats, v: Floats) -> NDArray[np.bool_]:
    """Of three equal sides, one point up."""
    return np.asarray(np.maximum(v, np.abs(u) * math.sin(math.pi / 3) - v / 2) <= _TRIANGLE_RADIUS / 2)


def _cross(u: Floats, v: Floats) -> NDArray[np.bool_]:
    narrow, wide = np.minimum(np.abs(u), np.abs(v)), np.maximum(np.abs(u), np.abs(v))
    return np.asarray((narrow <= _CROSS_HALF_SIDES[0]) & (wide <= _CROSS_HALF_SIDES[1]))


def _moon(u: Floats, v: Floats) -> NDArray[np.bool_]:
    """A disc less a smaller one to its right."""
    return np.asarray((np.hypot(u, v) <= _MOON_RADIUS) & (np.hypot(u - _SHADOW_SHIFT, v) > _SHADOW_RADIUS))


OUTLINES: dict[str, Outline] = {
    "square": Outline(_square, (_SQUARE_HALF_SIDE, _SQUARE_HALF_SIDE)),
    "ellipse": Outline(_ellipse, _ELLIPSE_SEMI_AXES),
    "heart": Outline(_heart, _heart_reach()),
    "ring": Outline(_ring, (_RING_RADII[1], _RING_RADII[1])),
    "star": Outline(_star, (_STAR_RADII[1] * math.cos(math.pi / 10), _STAR_RADII[1])),
    "triangle": Outline(_triangle, (_TRIANGLE_RADIUS * math.sin(math.pi / 3), _TRIANGLE_RADIUS)),
    "cross": Outline(_cross, (_CROSS_HALF_SIDES[1], _CROSS_HALF_SIDES[1])),
    "moon": Outline(_moon, (_MOON_RADIUS, _MOON_RADIUS)),
}
