"""Tetrominoes: three pieces of bevelled square tiles that do not overlap, at whole pixels, on black."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from pictolex.errors import InputError
from pictolex.sources.families.base import EMPTY, ONE_VIEW, Bytes, Factors, Scene
from pictolex.sources.families.variation import AS_BUILT_IN, Variation, colour_table

if TYPE_CHECKING:
    from pictolex.model import Dictionary

SIZE, CELL = 35, 5
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
_OBJECTS = (3, 3)
_TRIES = 50
_SMALLEST_CELL, _LONGEST, _FULLEST = 3, 3, 0.5


@dataclass(frozen=True)
class Tetrominoes:
    """Key `factors` (most objects, 4): shape, colour, y, x of a piece's top left corner; a row of -1 is no object.

    All uniform, places among the free. A larger canvas has more room; pieces grow with the cell.
    """

    variation: Variation = AS_BUILT_IN

    def __post_init__(self) -> None:
        most = self.objects[1]
        if self.cell < _SMALLEST_CELL:
            raise InputError(f"tetrominoes: a cell of {self.cell} pixels; choose {_SMALLEST_CELL} or more, or leave it at {CELL}")
        needed = max(_LONGEST * self.cell, math.ceil(math.sqrt(4 * most * self.cell**2 / _FULLEST)))
        if self.size < needed:
            pieces = "1 piece" if most == 1 else f"{most} pieces"
            raise InputError(
                f"tetrominoes: for {pieces} with a cell of {self.cell} pixels the canvas must be {needed} pixels or more, not {self.size}; "
                "choose a larger size, a smaller cell or fewer objects"
            )
        if not self.colours.any(axis=1).all():
            raise InputError("tetrominoes: black pieces do not show on black; take #000000 out of the palette")

    @property
    def size(self) -> int:
        """The side of the canvas."""
        return self.variation.size or SIZE

    @property
    def cell(self) -> int:
        """The side of a tile."""
        return CELL if self.variation.cell is None else self.variation.cell

    @property
    def objects(self) -> tuple[int, int]:
        """The least and the most in an image."""
        return self.variation.objects or _OBJECTS

    @property
    def colours(self) -> Bytes:
        """(count, 3) of pieces."""
        return colour_table(self.variation.palette, COLOURS)

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
        fewest, most = self.objects
        count = fewest if fewest == most else int(rng.integers(fewest, most + 1))
        rows = np.full((most, 4), EMPTY, np.int16)
        while True:
            taken = np.zeros((self.size, self.size), bool)
            pieces = [piece for _ in range(count) if (piece := self._draw_piece(rng, taken)) is not None]
            if len(pieces) == count:
                rows[:count] = pieces
                return {"factors": rows}

    def _draw_piece(self, rng: np.random.Generator, taken: NDArray[np.bool_]) -> tuple[int, int, int, int] | None:
        """A piece on free pixels, which it takes."""
        shape, colour = int(rng.integers(len(SHAPES))), int(rng.integers(len(self.colours)))
        cells = patches(self.cell)[shape] > 0
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
            if shape == EMPTY:
                continue
            patch = patches(self.cell)[shape]
            height, width = patch.shape
            inside = patch > 0
            image[y : y + height, x : x + width][inside] = np.rint(patch[inside, None] * (self.colours[colour] / 255))
            mask[y : y + height, x : x + width][inside] = k + 1
        return Scene(image[None], mask[None], factors)

    def constants(self) -> dict[str, NDArray[np.generic]]:
        """Names of the shapes, RGB of the colours."""
        return {"shape_names": np.array(list(SHAPES)), "color_rgb": self.colours}

    def dictionary(self) -> Dictionary:
        """17 luminance pieces and the hues."""
        from pictolex.model import Concept, Dictionary

        concepts = tuple(
            Concept(k, (patch[..., None] / 255).astype(np.float32), (patch > 0).astype(np.float32), name)
            for k, (name, patch) in enumerate(zip(SHAPES, patches(self.cell), strict=True))
        )
        return Dictionary(concepts, hues=(self.colours / 255).astype(np.float32))


@lru_cache(maxsize=4)
def patches(cell: int = CELL) -> tuple[Bytes, ...]:
    """The intensities of all pieces, 0 outside."""
    cells = [np.array([[c == "#" for c in row] for row in rows], np.uint8) for rows in SHAPES.values()]
    return tuple(np.kron(c, tile(cell)) for c in cells)


def tile(cell: int) -> Bytes:
    """The tile in another size: its edges, one pixel of five, grow in whole pixels, the plain middle takes the rest."""
    edge = max(1, round(cell / CELL))
    at = np.array([0] * edge + [CELL // 2] * (cell - 2 * edge) + [CELL - 1] * edge)
    resized: Bytes = TILE[np.ix_(at, at)]
    return resized
