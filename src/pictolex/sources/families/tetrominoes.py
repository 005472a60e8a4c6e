"""Tetrominoes: three pieces of bevelled 5x5 tiles that do not overlap, at whole pixels, on black."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from pictolex.sources.families.base import ONE_VIEW, Bytes, Factors, Scene

if TYPE_CHECKING:
    from pictolex.model import Dictionary

OBJECTS = 3
TILE = np.array(
    [
        [191, 255, 255, 255, 223],
        [127, 159, 159, 159, 191],
        [127, 159, 159, 159, 191],
        [127, 159, 159, 159, 191],
        [95, 63, 63, 63, 127],
    ],
    np.uint8,
)
SHAPES = {
    "O_r0": ("##", "##"),
    "T_r0": ("###", ".#."),
    "T_r1": ("#.", "##", "#."),
    "T_r2": (".#.", "###"),
    "T_r3": (".#", "##", ".#"),
    "S_r0": (".##", "##."),
    "S_r1": ("#.", "##", ".#"),
    "Z_r0": ("##.", ".##"),
    "Z_r1": (".#", "##", "#."),
    "J_r0": ("#..", "###"),
    "J_r1": (".#", ".#", "##"),
    "J_r2": ("###", "..#"),
    "J_r3": ("##", "#.", "#."),
    "L_r0": ("..#", "###"),
    "L_r1": ("##", ".#", ".#"),
    "L_r2": ("###", "#.."),
    "L_r3": ("#.", "#.", "##"),
}
COLOURS = np.array([[255, 0, 0], [0, 255, 0], [0, 0, 255], [255, 255, 0], [255, 0, 255], [0, 255, 255]], np.uint8)
_TRIES = 50


@dataclass(frozen=True)
class Tetrominoes:
    """Key `factors` (3, 4): shape, colour, y, x of a piece's top left corner; all uniform, places among the free."""

    size: int = 35

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
        """Pieces one after the other; where one finds no place, all begin again."""
        while True:
            taken = np.zeros((self.size, self.size), bool)
            pieces = [piece for _ in range(OBJECTS) if (piece := self._draw_piece(rng, taken)) is not None]
            if len(pieces) == OBJECTS:
                return {"factors": np.array(pieces, np.int16)}

    def _draw_piece(self, rng: np.random.Generator, taken: NDArray[np.bool_]) -> tuple[int, int, int, int] | None:
        """A piece on free pixels, which it takes."""
        shape, colour = int(rng.integers(len(SHAPES))), int(rng.integers(len(COLOURS)))
        cells = patches()[shape] > 0
        height, width = cells.shape
        for _ in range(_TRIES):
            y, x = int(rng.integers(self.size - height + 1)), int(rng.integers(self.size - width + 1))
            place = taken[y : y + height, x : x + width]
            if not (place & cells).any():
                place |= cells
                return shape, colour, y, x
        return None

    def render(self, factors: Factors) -> Scene:
        """Pixels of a piece are its tile's intensity times its colour."""
        image = np.zeros((self.size, self.size, 3), np.uint8)
        mask = np.zeros((self.size, self.size), np.uint8)
        for k, (shape, colour, y, x) in enumerate(factors["factors"].tolist()):
            patch = patches()[shape]
            height, width = patch.shape
            inside = patch > 0
            image[y : y + height, x : x + width][inside] = patch[inside, None] * (COLOURS[colour] // 255)
            mask[y : y + height, x : x + width][inside] = k + 1
        return Scene(image[None], mask[None], factors)

    def constants(self) -> dict[str, NDArray[np.generic]]:
        """Names of the shapes, RGB of the colours."""
        return {"shape_names": np.array(list(SHAPES)), "color_rgb": COLOURS}

    def dictionary(self) -> Dictionary:
        """17 luminance pieces, 6 hues."""
        from pictolex.model import Concept, Dictionary

        concepts = tuple(
            Concept(k, (patch[..., None] / 255).astype(np.float32), (patch > 0).astype(np.float32), name)
            for k, (name, patch) in enumerate(zip(SHAPES, patches(), strict=True))
        )
        return Dictionary(concepts, hues=(COLOURS / 255).astype(np.float32))


@lru_cache(maxsize=1)
def patches() -> tuple[Bytes, ...]:
    """The intensities of all pieces, 0 outside."""
    cells = [np.array([[c == "#" for c in row] for row in rows], np.uint8) for rows in SHAPES.values()]
    return tuple(np.kron(c, TILE) for c in cells)
