"""How well images are rebuilt: MSE, PSNR, explained variance, added up image by image."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pictolex.errors import InputError

Floats = NDArray[np.floating[Any]]
Moments = NDArray[np.float64]

_MID_GREY = 0.5


@dataclass(frozen=True)
class Reconstruction:
    """Figures of a set: `mse` a value in [0, 1], mean over images; `psnr` of that mean (inf for 0); share of variance explained.

    Explained variance is 1 minus the squared error over the squared deviation from the set's mean colour; None for flat sets.
    """

    images: int
    mse: float
    psnr: float
    explained_variance: float | None


class Tally:
    """Adds up images and what was rebuilt of them; keeps sums only."""

    def __init__(self) -> None:
        self._images = 0
        self._mse = 0.0
        self._error = 0.0
        self._sums: dict[int, Moments] = {}

    def add(self, image: Floats, rebuilt: Floats, opacity: Floats | None = None, rebuilt_opacity: Floats | None = None) -> float:
        """Count one image (h, w) or (h, w, c) with its opacity, composited on mid grey; gives its MSE."""
        target, result = _pair(image, rebuilt, opacity, rebuilt_opacity)
        squared = float(((target - result) ** 2).sum())
        mse = squared / target.size
        self._images += 1
        self._mse += mse
        self._error += squared
        pixels = target.reshape(-1, target.shape[2])
        moments = np.stack([np.full(pixels.shape[1], float(len(pixels))), pixels.sum(axis=0), (pixels**2).sum(axis=0)])
        self._sums[pixels.shape[1]] = self._sums.get(pixels.shape[1], 0.0) + moments
        return mse

    def figures(self) -> Reconstruction | None:
        """The figures so far; None before the first image."""
        if self._images == 0:
            return None
        mse = self._mse / self._images
        spread = sum(float((squares - sums**2 / counts).sum()) for counts, sums, squares in self._sums.values())
        flat = spread <= 1e-12 * sum(float(moments[2].sum()) for moments in self._sums.values())
        return Reconstruction(self._images, mse, psnr(mse), None if flat else 1 - self._error / spread)


def image_mse(image: Floats, rebuilt: Floats, opacity: Floats | None = None, rebuilt_opacity: Floats | None = None) -> float:
    """Mean squared error a value; with opacity, both are composited on mid grey (the rebuilt by its own opacity or the image's)."""
    target, result = _pair(image, rebuilt, opacity, rebuilt_opacity)
    return float(((target - result) ** 2).mean())


def psnr(mse: float) -> float:
    """Decibels for values in [0, 1]; infinite for no error."""
    return -10 * math.log10(mse) if mse > 0 else math.inf


def _pair(image: Floats, rebuilt: Floats, opacity: Floats | None, rebuilt_opacity: Floats | None) -> tuple[Moments, Moments]:
    """Both as float64 (h, w, c) on mid grey."""
    target, result = (np.asarray(a, np.float64) for a in (image, rebuilt))
    target, result = (a[..., None] if a.ndim == 2 else a for a in (target, result))
    if target.shape != result.shape or target.ndim != 3:
        raise InputError(f"an image of shape {target.shape} and its rebuilt of shape {result.shape}; expected height x width x channels")
    return _on_grey(target, opacity), _on_grey(result, opacity if rebuilt_opacity is None else rebuilt_opacity)


def _on_grey(pixels: Moments, opacity: Floats | None) -> Moments:
    """Pixels composited on mid grey."""
    if opacity is None:
        return pixels
    cover = np.asarray(opacity, np.float64)[..., None]
    composited: Moments = pixels * cover + _MID_GREY * (1 - cover)
    return composited
