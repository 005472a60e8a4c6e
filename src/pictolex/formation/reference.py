"""The formations in plain loops, straight from their definitions. Slow and obvious; the truth that fast paths are tested against."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]


def alpha_composite(colours: Array, alphas: Array, background: Array) -> Array:
    """`sum_i P_i prod_{j<i} (1 - A_j)` front to back, then the background. `colours` (n, c, h, w) premultiplied; `alphas` (n, h, w)."""
    channels, high, wide = background.shape
    image = np.zeros_like(background)
    for k in range(channels):
        for y in range(high):
            for x in range(wide):
                through = 1.0
                for i in range(len(alphas)):
                    image[k, y, x] += colours[i, k, y, x] * through
                    through *= 1.0 - alphas[i, y, x]
                image[k, y, x] += background[k, y, x] * through
    return image


def additive_composite(colours: Array, background: Array) -> Array:
    """`sum_i P_i` and the background."""
    image = background.copy()
    for layer in colours:
        image += layer
    return image


def place(values: Array, height: int, width: int, x: float, y: float, rotation: float, scale: float, mirror: bool) -> Array:
    """A patch (channels, h, w) on a canvas: each pixel centre is carried back into the patch and read bilinearly; zero outside."""
    channels, h, w = values.shape
    canvas = np.zeros((channels, height, width))
    for row in range(height):
        for column in range(width):
            dx, dy = column + 0.5 - x, row + 0.5 - y
            u = (math.cos(rotation) * dx - math.sin(rotation) * dy) / scale
            v = (math.sin(rotation) * dx + math.cos(rotation) * dy) / scale
            if mirror:
                u = -u
            px, py = u + w / 2 - 0.5, v + h / 2 - 0.5
            left, top = math.floor(px), math.floor(py)
            for yy, wy in ((top, 1 - (py - top)), (top + 1, py - top)):
                for xx, wx in ((left, 1 - (px - left)), (left + 1, px - left)):
                    if 0 <= yy < h and 0 <= xx < w:
                        canvas[:, row, column] += wx * wy * values[:, yy, xx]
    return canvas


def voxel_view(scene: Array, turn: Array) -> Array:
    """One orthographic view of a density grid (depth, height, width): `sum_l S_l^2 prod_{m<l} (1 - S_m)`, S clamped to 1.

    `turn` (3 x 3) carries directions of the view (x, y, depth) to directions of the scene (x, y, z); the grid is read trilinearly
    about its centre.
    """
    deep, high, wide = scene.shape
    middle = np.array([wide, high, deep]) / 2
    image = np.zeros((high, wide))
    for row in range(high):
        for column in range(wide):
            through = 1.0
            for level in range(deep):
                seen = turn @ (np.array([column, row, level]) + 0.5 - middle) + middle - 0.5
                density = min(1.0, _trilinear(scene, seen))
                image[row, column] += density**2 * through
                through *= 1.0 - density
    return image


def _trilinear(scene: Array, at: Array) -> float:
    base = np.floor(at).astype(int)
    rest = at - base
    total = 0.0
    for corner in np.ndindex(2, 2, 2):
        x, y, z = base + corner
        if 0 <= x < scene.shape[2] and 0 <= y < scene.shape[1] and 0 <= z < scene.shape[0]:
            weights = np.where(np.array(corner) == 1, rest, 1 - rest)
            total += float(weights.prod()) * scene[z, y, x]
    return total
