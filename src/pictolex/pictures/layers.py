"""Images taken apart: a row each of image, rebuilt image, what is left, instance map, and every layer on a checkerboard."""

from __future__ import annotations

import colorsys
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from pictolex.pictures.canvas import Floats, Picture, Tile, enlarge, grid, on_checkerboard, to_bytes, to_rgb, zoom_for

TILE = 105
"""The side that a typical image is enlarged to."""
MOST_LAYERS = 8
LARGEST = 256
"""Images with a longer side are reduced to this for the picture."""


@dataclass(frozen=True, eq=False)
class Explained:
    """One image beside what it is made of. `image` is None where the source is not at hand.

    `alphas` (n, h, w) and `colours` (n, h, w, c) are the layers front to back, `labels` (h, w) the element each pixel shows
    (0 = background, k = depth k - 1), `concepts` the id behind each layer.
    """

    name: str
    image: Floats | None
    rebuilt: Floats
    alphas: Floats
    colours: Floats
    labels: NDArray[np.integer]
    concepts: tuple[int, ...]


def layers_picture(explained: Sequence[Explained], most_layers: int = MOST_LAYERS) -> Picture:
    """The picture of some images and their layers, one row each."""
    return grid([_row(one, most_layers) for one in explained])


def instance_colours(count: int) -> Floats:
    """`count` + 1 colours that differ well: the dark background, then one an instance."""
    hues = (np.arange(count) * 0.618034) % 1.0
    colours = [(0.12, 0.12, 0.12), *(colorsys.hsv_to_rgb(hue, 0.62 if index % 2 else 0.85, 0.95) for index, hue in enumerate(hues))]
    return np.array(colours, np.float32)


def _row(one: Explained, most_layers: int) -> list[Tile]:
    height, width = one.labels.shape
    step = -(-max(height, width) // LARGEST)
    zoom = zoom_for(max(height, width), TILE)

    def opaque(values: NDArray[np.floating]) -> Picture:
        return enlarge(to_bytes(to_rgb(values)[::step, ::step]), zoom)

    tiles = [] if one.image is None else [Tile(opaque(one.image), one.name)]
    tiles.append(Tile(opaque(one.rebuilt), "rebuilt" if one.image is not None else one.name))
    if one.image is not None:
        left = to_rgb(one.image) - to_rgb(one.rebuilt)
        tiles.append(Tile(opaque(0.5 + left / 2), f"left, mse {float((left**2).mean()):.2g}"))
    tiles.append(Tile(opaque(instance_colours(len(one.alphas))[one.labels]), "instances"))
    for depth in range(min(len(one.alphas), most_layers)):
        layer = on_checkerboard(one.colours[depth][::step, ::step], one.alphas[depth][::step, ::step], zoom)
        tiles.append(Tile(layer, f"{depth}: concept {one.concepts[depth]}"))
    hidden = len(one.alphas) - most_layers
    if hidden > 0:
        tiles.append(Tile(np.full((1, 1, 3), 255, np.uint8), f"and {hidden} more"))
    return tiles
