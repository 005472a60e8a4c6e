"""A gift-wrap pattern: firs and baubles alternate in shifted rows, a little jittered, cut by the border, on a plain colour."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from pictolex.sources.families.base import EMPTY, ONE_VIEW, SAMPLES, Bytes, Factors, Floats, Scene, pixel_means, sample_points
from pictolex.sources.families.variation import AS_BUILT_IN, Variation

if TYPE_CHECKING:
    from pictolex.model import Dictionary

MOTIFS = ("fir", "bauble")
BACKGROUND = np.array([150, 20, 30], np.uint8)
SIZE, SIDE = 85, 17
NOWHERE = -999
_STEP, _FIRST, _ODD_ROW = 17, -9, 8
_OPAQUE = 128


@dataclass(frozen=True)
class Pattern:
    """Key `placements` (at least 64, 3): motif, y, x of the top left corner; motif -1 and places -999 where there are fewer.

    A larger canvas shows more motifs.
    """

    variation: Variation = AS_BUILT_IN

    @property
    def size(self) -> int:
        """The side of the canvas."""
        return self.variation.size or SIZE

    @property
    def view_names(self) -> Sequence[str]:
        """One view."""
        return ONE_VIEW

    @property
    def view_matrices(self) -> None:
        """Flat images have none."""
        return None

    @property
    def image_shape(self) -> tuple[int, int, int]:
        """Height, width, channels."""
        return self.size, self.size, 3

    def draw(self, rng: np.random.Generator) -> Factors:
        """A grid of steps of 17, odd rows shifted by 8, every place moved by -1 to 1; those off the canvas are left out."""
        placed = []
        for row, base_y in enumerate(range(_FIRST, self.size, _STEP)):
            for column, base_x in enumerate(range(_FIRST + _ODD_ROW * (row % 2), self.size, _STEP)):
                y, x = base_y + int(rng.integers(-1, 2)), base_x + int(rng.integers(-1, 2))
                if y < self.size and x < self.size:
                    placed.append(((row + column + 1) % 2, y, x))
        rows = np.full((max(64, (self.size // _STEP + 2) ** 2), 3), NOWHERE, np.int16)
        rows[:, 0] = EMPTY
        rows[: len(placed)] = placed
        return {"placements": rows}

    def render(self, factors: Factors) -> Scene:
        """Motifs pasted in order; a pixel belongs to the last one that covers half of it."""
        canvas = np.tile(BACKGROUND.astype(np.float64), (self.size + 2 * SIDE, self.size + 2 * SIDE, 1))
        mask = np.zeros(canvas.shape[:2], np.uint8)
        placements = factors["placements"].tolist()
        for k, (motif, y, x) in enumerate(p for p in placements if p[0] >= 0):
            sprite = sprites()[motif]
            place = (slice(y + SIDE, y + 2 * SIDE), slice(x + SIDE, x + 2 * SIDE))
            alpha = sprite[..., 3:] / 255
            canvas[place] = alpha * sprite[..., :3] + (1 - alpha) * canvas[place]
            mask[place][sprite[..., 3] >= _OPAQUE] = k + 1
        middle = (slice(SIDE, SIDE + self.size),) * 2
        return Scene(np.rint(canvas[middle]).astype(np.uint8)[None], mask[middle][None], factors)

    def constants(self) -> dict[str, NDArray[np.generic]]:
        """The motifs as RGBA."""
        return {"sprites_rgba": sprites(), "motif_names": np.array(MOTIFS)}

    def dictionary(self) -> Dictionary:
        """Two RGB motifs on the wrap's colour."""
        from pictolex.model import Background, Concept, Dictionary

        unit = sprites().astype(np.float32) / np.float32(255)
        concepts = tuple(Concept(k, unit[k, ..., :3], unit[k, ..., 3], name) for k, name in enumerate(MOTIFS))
        return Dictionary(concepts, background=Background("plain", BACKGROUND.astype(np.float32) / np.float32(255)))


@lru_cache(maxsize=1)
def sprites() -> Bytes:
    """(2, 17, 17, 4) straight colour and coverage, supersampled."""
    x, y = sample_points(SIDE, SIDE, SAMPLES)
    return np.stack([_sprite(_fir(x, y)), _sprite(_bauble(x, y))])


Layers = list[tuple[NDArray[np.bool_], tuple[int, int, int]]]


def _sprite(layers: Layers) -> Bytes:
    """Layers of (where, colour), later over earlier, as RGBA: colour is the mean of what is covered."""
    covered = np.zeros(layers[0][0].shape, np.float64)
    colour: Floats = np.zeros((*covered.shape, 3), np.float64)
    for where, rgb in layers:
        covered[where] = 1
        colour[where] = rgb
    alpha = pixel_means(covered)
    straight = pixel_means(colour) / np.where(alpha > 0, alpha, 1)[..., None]
    rgba: Bytes = np.rint(np.concatenate([straight, 255 * alpha[..., None]], axis=2)).astype(np.uint8)
    return rgba


def _disc(x: Floats, y: Floats, centre_x: float, centre_y: float, radius: float) -> NDArray[np.bool_]:
    return np.asarray(np.hypot(x - centre_x, y - centre_y) <= radius)


def _fir(x: Floats, y: Floats) -> Layers:
    """A trunk, three tiers, a star and three candles."""
    layers: Layers = [(np.asarray((np.abs(x) <= 1.4) & (y >= 5) & (y <= 8.2)), (102, 66, 38))]
    for top, bottom, reach, green in ((0.6, 6.2, 6.6, 92), (-3.2, 2.4, 5.2, 112), (-6.6, -1.2, 3.8, 132)):
        layers.append((np.asarray((y >= top) & (y <= bottom) & (np.abs(x) * (bottom - top) <= reach * (y - top))), (40, green, 52)))
    layers.append((np.asarray(np.abs(x) + np.abs(y + 6.6) <= 1.6), (255, 196, 64)))
    for centre_x, centre_y, rgb in ((-1.1, -2.4, (226, 58, 70)), (1.6, 1.0, (250, 220, 90)), (-2.6, 4.6, (226, 58, 70))):
        layers.append((_disc(x, y, centre_x, centre_y, 0.9), rgb))
    return layers


def _bauble(x: Floats, y: Floats) -> Layers:
    """A cap, a ball, a band and a highlight."""
    ball = _disc(x, y, 0, 1.4, 6.4)
    return [
        (np.asarray((np.abs(x) <= 1.5) & (y >= -7.4) & (y <= -4)), (214, 168, 66)),
        (ball, (96, 160, 230)),
        (ball & (np.abs(y - 2.0) <= 1.3), (240, 244, 250)),
        (_disc(x, y, -2.4, -1.8, 1.3), (190, 220, 250)),
    ]
