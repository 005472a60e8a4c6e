"""How near the learned concepts are to the true ones: mean absolute difference, up to shift, or also rotation and scale.

For each TRUE concept the nearest learned one counts. Patches are compared as `shape x alpha`. What a learned patch shows
beyond the true patch's area counts too, and the sum is divided by that area: else a large white patch would hold every
small white shape.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from itertools import product
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pictolex.model import Concept

Patch = NDArray[np.float64]
Params = NDArray[np.float64]

_ANGLES = 36
_SCALES = (0.7, 0.84, 1.0, 1.19, 1.42)
_LARGEST_SCALE = 4.0
_STARTS = 4
_FIRST_STEPS = np.array([math.pi / _ANGLES, 0.08, 0.5, 0.5])
_SMALLEST_STEP = 0.02


def concept_l1(true: Iterable[Concept], learned: Iterable[Concept]) -> float | None:
    """Mean error over the true concepts, up to shift, rotation and scale; None where either side is empty."""
    return _mean(concept_errors(true, learned, strict=False))


def concept_l1_strict(true: Iterable[Concept], learned: Iterable[Concept]) -> float | None:
    """Mean error over the true concepts, up to shift by whole pixels; None where either side is empty."""
    return _mean(concept_errors(true, learned, strict=True))


def concept_errors(true: Iterable[Concept], learned: Iterable[Concept], *, strict: bool) -> list[tuple[float, int]]:
    """For each true concept the error of the nearest learned one and its id. Voxel concepts are always compared up to shift."""
    known = tuple(learned)
    if not known:
        return []
    return [min((_error(concept, other, strict), other.id) for other in known) for concept in true]


def _mean(errors: Sequence[tuple[float, int]]) -> float | None:
    return float(np.mean([error for error, _ in errors])) if errors else None


def _error(true: Concept, learned: Concept, strict: bool) -> float:
    """Of one pair."""
    if true.is_voxel != learned.is_voxel:
        return math.inf
    target, patch = _premultiplied(true), _premultiplied(learned)
    target, patch = _same_channels(target, patch)
    error, shift = shifted_error(target, patch)
    if strict or true.is_voxel or not patch.any():
        return error
    return min(error, _turned_error(target, patch, shift))


def _premultiplied(concept: Concept) -> Patch:
    """`shape x alpha`, channels last."""
    premultiplied: Patch = concept.shape.astype(np.float64) * concept.alpha[..., None]
    return premultiplied


def _same_channels(target: Patch, patch: Patch) -> tuple[Patch, Patch]:
    """Where one is luminance and the other RGB, RGB is compared by its largest channel, the luminance under a pure hue."""
    if target.shape[-1] == patch.shape[-1]:
        return target, patch
    return target.max(axis=-1, keepdims=True), patch.max(axis=-1, keepdims=True)


def shifted_error(target: Patch, patch: Patch) -> tuple[float, tuple[int, ...]]:
    """The least mean difference over all whole shifts that overlap, and the shift (of the patch's corner from the target's)."""
    size, other = target.shape[:-1], patch.shape[:-1]
    padded = np.pad(patch, [*((n - 1, n - 1) for n in size), (0, 0)])
    overflow = patch.sum()
    best, where = math.inf, tuple(0 for _ in size)
    for start in product(*(range(n + m - 1) for n, m in zip(size, other, strict=True))):
        window = padded[tuple(slice(s, s + n) for s, n in zip(start, size, strict=True))]
        error = float((np.abs(target - window) - window).sum())
        if error < best:
            best, where = error, start
    shift = tuple(n - 1 - s for n, s in zip(size, where, strict=True))
    return max(0.0, best + float(overflow)) / target.size, shift


def _turned_error(target: Patch, patch: Patch, shift: tuple[int, ...]) -> float:
    """Rotation and scale too: a grid with centres of mass aligned, then the best few and the plain shift refined step by step."""
    mass_target, mass_patch = float(target.sum()), float(patch.sum())
    scale = math.sqrt(mass_target / mass_patch) if mass_target > 0 else 1.0
    angles = np.arange(_ANGLES) * (2 * math.pi / _ANGLES)
    grid = np.array([(a, math.log(_clipped(scale * s))) for a in angles for s in _SCALES])
    from_patch, from_target = _centre_of_mass(patch), _centre_of_mass(target)
    turned = np.stack(_turn(from_patch[0], from_patch[1], grid[:, 0], np.exp(grid[:, 1])), axis=1)
    starts = np.concatenate([grid, np.array(from_target) - turned], axis=1)
    height, width = (p - t for p, t in zip(patch.shape[:2], target.shape[:2], strict=True))
    plain = np.array([[0.0, 0.0, shift[1] + width / 2, shift[0] + height / 2]])
    starts = np.concatenate([plain, starts])
    errors = _errors_at(target, patch, starts)
    chosen = np.unique(np.concatenate([[0], np.argsort(errors)[:_STARTS]]))
    return min(_refined(target, patch, starts[k], float(errors[k])) for k in chosen)


def _clipped(scale: float) -> float:
    return min(max(scale, 1 / _LARGEST_SCALE), _LARGEST_SCALE)


def _centre_of_mass(patch: Patch) -> tuple[float, float]:
    """x, y from the patch's centre."""
    weights = patch.sum(axis=2)
    total = weights.sum()
    if total == 0:
        return 0.0, 0.0
    y, x = (np.arange(n) - (n - 1) / 2 for n in weights.shape)
    return float((weights.sum(axis=0) * x).sum() / total), float((weights.sum(axis=1) * y).sum() / total)


def _turn(x: Any, y: Any, angle: Params, scale: Params) -> tuple[Any, Any]:
    """A point turned counter-clockwise as seen (y down) and scaled."""
    cos, sin = scale * np.cos(angle), scale * np.sin(angle)
    return cos * x + sin * y, cos * y - sin * x


def _errors_at(target: Patch, patch: Patch, params: Params) -> Params:
    """Errors for rows of (angle, log scale, x, y): the patch's centre at (x, y) from the target's."""
    height, width, channels = target.shape
    y, x = (np.arange(n) - (n - 1) / 2 for n in (height, width))
    grid_x, grid_y = np.meshgrid(x, y)
    scale = np.exp(params[:, 1])[:, None]
    across = grid_x.ravel()[None] - params[:, 2:3]
    down = grid_y.ravel()[None] - params[:, 3:4]
    u, v = _turn(across, down, -params[:, 0:1], 1 / scale)
    seen = _sample(patch, u + (patch.shape[1] - 1) / 2, v + (patch.shape[0] - 1) / 2)
    flat = target.reshape(1, height * width, channels)
    inside = (np.abs(flat - seen) - seen).sum(axis=(1, 2))
    overflow = scale[:, 0] ** 2 * patch.sum()
    errors: Params = np.maximum(0, inside + np.maximum(overflow, seen.sum(axis=(1, 2)))) / target.size
    return errors


def _sample(patch: Patch, x: Patch, y: Patch) -> Patch:
    """Linear between pixels, nothing outside: (batch, points, channels)."""
    padded = np.pad(patch, ((1, 2), (1, 2), (0, 0)))
    x = np.clip(x + 1, 0, patch.shape[1] + 1)
    y = np.clip(y + 1, 0, patch.shape[0] + 1)
    left, top = np.floor(x).astype(int), np.floor(y).astype(int)
    across, down = (x - left)[..., None], (y - top)[..., None]
    upper = padded[top, left] * (1 - across) + padded[top, left + 1] * across
    lower = padded[top + 1, left] * (1 - across) + padded[top + 1, left + 1] * across
    sampled: Patch = upper * (1 - down) + lower * down
    return sampled


def _refined(target: Patch, patch: Patch, start: Params, error: float) -> float:
    """Pattern search: step to the best of the eight neighbours, halve the steps where none is better."""
    steps = _FIRST_STEPS.copy()
    moves = np.concatenate([np.eye(4), -np.eye(4)])
    here = start
    bound = math.log(_LARGEST_SCALE)
    while steps[2] > _SMALLEST_STEP:
        around = here + moves * steps
        around[:, 1] = np.clip(around[:, 1], -bound, bound)
        errors = _errors_at(target, patch, around)
        best = int(np.argmin(errors))
        if errors[best] < error - 1e-12:
            here, error = around[best], float(errors[best])
        else:
            steps /= 2
    return error
