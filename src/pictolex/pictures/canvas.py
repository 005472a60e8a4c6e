"""What all pictures are made of: tiles on a checkerboard, a grid with captions, PNG files written whole or not at all."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TypeAlias, TypeVar

import numpy as np
from numpy.typing import NDArray

from pictolex.model.files import atomic

Floats: TypeAlias = NDArray[np.float32]
Picture: TypeAlias = NDArray[np.uint8]
Pixel = TypeVar("Pixel", bound=np.generic)

CHECKER = ((0.86, 0.89, 0.97), (0.72, 0.77, 0.90))
"""The two pale blues behind what is transparent: grey would be taken for a grey concept."""
PAPER = 255
INK = 40
FRAME = 215
_MARGIN = 8
_TEXT = 13


@dataclass(frozen=True, eq=False)
class Tile:
    """One picture in a grid, (height, width, 3) of 8 bits, with a caption below."""

    picture: Picture
    caption: str = ""


def to_rgb(values: NDArray[np.floating]) -> Floats:
    """(h, w), (h, w, 1) or (h, w, 3) as (h, w, 3)."""
    array = np.asarray(values, np.float32)
    array = array[..., None] if array.ndim == 2 else array
    return np.repeat(array, 3, axis=2) if array.shape[2] == 1 else array


def to_bytes(values: NDArray[np.floating]) -> Picture:
    """Values in [0, 1] as 8-bit RGB."""
    return np.rint(np.clip(to_rgb(values), 0, 1) * 255).astype(np.uint8)


def on_checkerboard(colour: NDArray[np.floating], alpha: NDArray[np.floating], zoom: int = 1) -> Picture:
    """Straight colour (h, w, c) with alpha (h, w) over a checkerboard, each pixel `zoom` wide."""
    height, width = alpha.shape[0] * zoom, alpha.shape[1] * zoom
    square = max(4, min(height, width) // 12)
    odd = (np.add.outer(np.arange(height) // square, np.arange(width) // square) % 2).astype(bool)
    board = np.where(odd[..., None], *np.array(CHECKER, np.float32))
    cover = enlarge(np.asarray(alpha, np.float32), zoom)[..., None]
    return to_bytes(enlarge(to_rgb(colour), zoom) * cover + board * (1 - cover))


def enlarge(array: NDArray[Pixel], zoom: int) -> NDArray[Pixel]:
    """Every pixel `zoom` times as wide and high."""
    return array.repeat(zoom, axis=0).repeat(zoom, axis=1)


def zoom_for(side: int, wanted: int) -> int:
    """How often to enlarge a picture whose longer side is `side` so that it comes near `wanted` pixels."""
    return max(1, round(wanted / max(1, side)))


def grid(rows: Sequence[Sequence[Tile]]) -> Picture:
    """Tiles in rows on white; columns as wide as their widest tile or caption, captions below the tiles."""
    from PIL import Image, ImageDraw, ImageFont

    font = ImageFont.load_default(_TEXT)
    columns = max((len(row) for row in rows), default=0)

    def needed(tile: Tile) -> int:
        return max(int(tile.picture.shape[1]), math.ceil(font.getlength(tile.caption)))

    widths = [max(needed(row[c]) for row in rows if c < len(row)) for c in range(columns)]
    heights = [max((tile.picture.shape[0] for tile in row), default=0) + (_TEXT + 4) * any(tile.caption for tile in row) for row in rows]
    size = (sum(widths) + _MARGIN * (columns + 1), sum(heights) + _MARGIN * (len(rows) + 1))
    canvas = Image.new("RGB", size, (PAPER,) * 3)
    draw = ImageDraw.Draw(canvas)
    top = _MARGIN
    for row, height in zip(rows, heights, strict=True):
        left = _MARGIN
        for tile, width in zip(row, widths, strict=False):
            bottom = top + tile.picture.shape[0]
            draw.rectangle((left - 1, top - 1, left + tile.picture.shape[1], bottom), outline=(FRAME,) * 3)
            canvas.paste(Image.fromarray(tile.picture), (left, top))
            draw.text((left, top + height - _TEXT - 2), tile.caption, fill=(INK,) * 3, font=font)
            left += width + _MARGIN
        top += height + _MARGIN
    return np.asarray(canvas)


def save_png(picture: NDArray[np.generic], path: str | Path) -> Path:
    """Write a picture, 8 bit or floats in [0, 1], with 1, 3 or 4 channels, as a PNG file."""
    from PIL import Image

    array = np.asarray(picture)
    if array.dtype != np.uint8:
        array = np.rint(np.clip(array.astype(np.float32), 0, 1) * 255).astype(np.uint8)
    if array.ndim == 3 and array.shape[2] == 1:
        array = array[..., 0]
    path = Path(path)
    with atomic(path) as file:
        Image.fromarray(array).save(file, format="PNG")
    return path
