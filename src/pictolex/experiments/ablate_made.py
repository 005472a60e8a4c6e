"""Sets made for ablations alone: faces that are nearly alike, and tetromino pieces that hide each other."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import product
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from pictolex.sources.families.base import EMPTY, ONE_VIEW, Factors, Family, Floats, Scene, coverage_patch
from pictolex.sources.families.shapes import Test
from pictolex.sources.families.tetrominoes import SHAPES, Tetrominoes, patches
from pictolex.sources.families.variation import AS_BUILT_IN, Variation
from pictolex.sources.synthetic import SyntheticSource

if TYPE_CHECKING:
    from pictolex.model import Dictionary

SIDE = 48
"""The canvas of faces."""
COUNT = 3
RADIUS = 8.4
OPAQUE = 0.5
CROWDED = Variation(size=27)
"""A canvas on which pieces crowd: that of the built-in set has 35 pixels, and they never overlap."""
_EYE_X, _EYE_Y, _EYE = 3.6, -3.0, 2.3
_MOUTH_Y = 3.6


def _disc(u: Floats, v: Floats, radius: float) -> NDArray[np.bool_]:
    return np.asarray(np.hypot(u, v) <= radius)


def _bar(u: Floats, v: Floats, length: float, height: float) -> NDArray[np.bool_]:
    return np.asarray((np.abs(u) <= length) & (np.abs(v) <= height))


def _arc(u: Floats, v: Floats) -> NDArray[np.bool_]:
    """The lower part of a ring, through (0, 0) at its lowest."""
    away = np.hypot(u, v + 5.0)
    return np.asarray((away >= 2.6) & (away <= 5.0) & (v >= -4.0))


EYES: dict[str, Test] = {
    "open": lambda u, v: _disc(u - _EYE_X, v - _EYE_Y, _EYE),
    "wink": lambda u, v: _bar(u - _EYE_X, v - _EYE_Y, 2.6, 0.6),
}
MOUTHS: dict[str, Test] = {
    "smile": lambda u, v: _arc(u, v - _MOUTH_Y - 2.6),
    "frown": lambda u, v: _arc(u, _MOUTH_Y - 2.4 - v),
    "flat": lambda u, v: _bar(u, v - _MOUTH_Y, 5.0, 0.8),
    "round": lambda u, v: _disc(u, v - _MOUTH_Y, 2.8),
}
FACES = tuple(f"{eye}-{mouth}" for eye, mouth in product(EYES, MOUTHS))


@lru_cache(maxsize=1)
def face_patches() -> tuple[NDArray[np.float32], ...]:
    """The coverage of all faces: discs with holes for two eyes, of which the right one may wink, and one of four mouths."""

    def test(eye: str, mouth: str) -> Test:
        def inside(u: Floats, v: Floats) -> NDArray[np.bool_]:
            holes = _disc(u + _EYE_X, v - _EYE_Y, _EYE) | EYES[eye](u, v) | MOUTHS[mouth](u, v)
            return _disc(u, v, RADIUS) & ~holes

        return inside

    return tuple(coverage_patch(test(eye, mouth), RADIUS, RADIUS) for eye, mouth in product(EYES, MOUTHS))


@dataclass(frozen=True)
class Faces:
    """Key `placements` (3, 3): face, y, x of the patch's top left corner. White on black, whole pixels, nothing hides anything."""

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
        return SIDE, SIDE, 1

    def draw(self, rng: np.random.Generator) -> Factors:
        """Three faces, all uniform; drawn again until their discs are apart."""
        side = face_patches()[0].shape[0]
        while True:
            places = rng.integers(SIDE - side + 1, size=(COUNT, 2))
            apart = np.hypot(*(places[:, None] - places[None]).transpose(2, 0, 1)) + 99 * np.eye(COUNT)
            if apart.min() > 2 * RADIUS + 2:
                kinds = rng.integers(len(FACES), size=(COUNT, 1))
                return {"placements": np.concatenate([kinds, places], axis=1).astype(np.int16)}

    def render(self, factors: Factors) -> Scene:
        """Coverage as grey."""
        canvas = np.zeros((SIDE, SIDE))
        mask = np.zeros((SIDE, SIDE), np.uint8)
        for k, (kind, y, x) in enumerate(factors["placements"].tolist()):
            patch = face_patches()[kind]
            place = (slice(y, y + patch.shape[0]), slice(x, x + patch.shape[1]))
            canvas[place] = np.maximum(canvas[place], patch)
            mask[place][patch >= OPAQUE] = k + 1
        return Scene(np.rint(canvas * 255).astype(np.uint8)[None], mask[None], factors)

    def constants(self) -> dict[str, NDArray[np.generic]]:
        """Names of the faces."""
        return {"motif_names": np.array(FACES)}

    def dictionary(self) -> Dictionary:
        """White faces."""
        from pictolex.model import Concept, Dictionary

        made = (Concept(k, np.ones((*patch.shape, 1), np.float32), patch, FACES[k]) for k, patch in enumerate(face_patches()))
        return Dictionary(tuple(made))


@dataclass(frozen=True)
class OccludedTetrominoes(Tetrominoes):
    """The pieces of the built-in set, anywhere on a smaller canvas: later ones hide earlier ones."""

    variation: Variation = CROWDED

    def draw(self, rng: np.random.Generator) -> Factors:
        """All uniform."""
        rows = np.full((COUNT, 4), EMPTY, np.int16)
        for k in range(COUNT):
            shape, colour = int(rng.integers(len(SHAPES))), int(rng.integers(len(self.colours)))
            height, width = patches(self.cell)[shape].shape
            rows[k] = shape, colour, rng.integers(self.size - height + 1), rng.integers(self.size - width + 1)
        return {"factors": rows}


MADE: dict[str, Family] = {"faces": Faces(), "tetrominoes-occluded": OccludedTetrominoes()}


class MadeSource(SyntheticSource):
    """Scenes of a family that is not built in, made as they are read; truth is opened for it as for built-in ones."""

    def __init__(self, name: str, count: int, seed: int) -> None:
        self._family = MADE[name]
        self.name, self.seed, self.variation = name, seed, AS_BUILT_IN
        self.view_matrices, self.views = None, 1
        self._scenes = count
        self._kept = None
