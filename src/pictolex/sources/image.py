"""One image as the rest of the program sees it: straight colour in [0, 1], and an opacity where the file had one."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from pictolex.errors import InputError

Pixels = NDArray[np.float32]

MID_GREY = 0.5


@dataclass(frozen=True, eq=False)
class Image:
    """Pixels (height, width, 1 or 3), straight (not premultiplied), and opacity (height, width) or None where all is opaque."""

    name: str
    pixels: Pixels
    opacity: Pixels | None = None

    @property
    def height(self) -> int:
        """Rows."""
        return int(self.pixels.shape[0])

    @property
    def width(self) -> int:
        """Columns."""
        return int(self.pixels.shape[1])

    @property
    def channels(self) -> int:
        """1 (grey) or 3 (RGB)."""
        return int(self.pixels.shape[2])

    def on(self, background: float | Pixels = MID_GREY) -> Pixels:
        """The pixels composited on a background (a grey, a colour or an image); themselves where the image is opaque."""
        if self.opacity is None:
            return self.pixels
        opacity = self.opacity[..., None]
        composited: Pixels = (self.pixels * opacity + np.asarray(background, np.float32) * (1 - opacity)).astype(np.float32)
        return composited

    def __repr__(self) -> str:
        alpha = "" if self.opacity is None else ", with opacity"
        return f"Image({self.name!r}, {self.height}x{self.width}, {'grey' if self.channels == 1 else 'RGB'}{alpha})"


def to_unit(array: NDArray[np.generic], name: str) -> Pixels:
    """An array of any accepted type as float32 in [0, 1]: uint8 by 255, uint16 by 65535, bool as it is, float checked."""
    if array.dtype == np.uint8:
        return array.astype(np.float32) / np.float32(255)
    if array.dtype == np.uint16:
        return array.astype(np.float32) / np.float32(65535)
    if array.dtype == np.bool_:
        return array.astype(np.float32)
    if array.dtype.kind == "f":
        check_floats(array, name)
        return array.astype(np.float32)
    raise InputError(f"{name}: values of type {array.dtype}; expected uint8 (0 to 255), uint16, bool or floats in [0, 1]: convert first")


def check_floats(array: NDArray[np.generic], name: str) -> None:
    """Say at once, and how to mend it, where a float array holds NaN, infinity, or values outside of [0, 1]."""
    if array.size == 0:
        return
    floats = array.astype(np.float32, copy=False)
    low, high = float(floats.min()), float(floats.max())
    if low >= 0 and high <= 1:
        return
    nans, infinite = int(np.isnan(floats).sum()), int(np.isinf(floats).sum())
    if nans:
        raise InputError(f"{name}: {nans} of {array.size} values are NaN; replace them first, e.g. numpy.nan_to_num(images)")
    if infinite:
        raise InputError(f"{name}: {infinite} of {array.size} values are infinite; replace them first, e.g. numpy.clip(images, 0, 1)")
    fix = "divide by 255" if low >= 0 and 1.5 < high <= 255 else "rescale, e.g. (images - images.min()) / (images.max() - images.min())"
    raise InputError(f"{name}: float values from {low:g} to {high:g}; expected [0, 1]: {fix}")


def as_image(array: NDArray[np.generic], name: str, *, channels: int | None = None) -> Image:
    """An (h, w) or (h, w, 1 to 4) array as an Image; 2 and 4 channels carry opacity last; `channels=3` turns grey into RGB."""
    pixels = to_unit(array, name)
    if pixels.ndim == 2:
        pixels = pixels[..., None]
    if pixels.ndim != 3 or not 1 <= pixels.shape[2] <= 4:
        shape = "x".join(map(str, array.shape))
        raise InputError(f"{name}: an array of shape {shape}; expected height x width, or height x width x 1 to 4 channels")
    opacity = None
    if pixels.shape[2] in (2, 4):
        opacity = np.ascontiguousarray(pixels[..., -1])
        pixels = pixels[..., :-1]
        if bool((opacity == 1).all()):
            opacity = None
    if channels == 3 and pixels.shape[2] == 1:
        pixels = np.repeat(pixels, 3, axis=2)
    return Image(name, np.ascontiguousarray(pixels), opacity)
