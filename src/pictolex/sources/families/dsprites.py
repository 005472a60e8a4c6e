"""Multi-dSprites: two or three squares, ellipses and hearts; binarized, adversarial (three fixed places) and coloured."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from importlib import resources
from typing import TYPE_CHECKING, Literal

import numpy as np
from numpy.typing import NDArray

from pictolex.sources.families.base import EMPTY, ONE_VIEW, Bytes, Factors, Floats, Scene, coverage_patch

if TYPE_CHECKING:
    from pictolex.model import Dictionary

Variant = Literal["bin", "adv", "color"]

OBJECTS = 3
SHAPES = ("square", "ellipse", "heart")
SCALES, ORIENTATIONS, PLACES = 6, 40, 32
COLOURS = np.array([[255 * (c >> 2 & 1), 255 * (c >> 1 & 1), 255 * (c & 1)] for c in range(8)], np.uint8)
GREYS = np.array([0, 36, 73, 109, 146, 182, 219, 255], np.uint8)

_SIDE = 64
_ADVERSARIAL_SCALE = 2
_ADVERSARIAL_CENTRES = ((18.0, 18.0), (46.0, 18.0), (32.0, 46.0))
_SQUARE_HALF_SIDE = 9.6
_ELLIPSE_SEMI_AXES = (12.8, 7.2)
_SAME_COLOUR = {0: 0, 7: 7}


@dataclass(frozen=True)
class MultiDSprites:
    """Key `factors` (3, 7): shape, scale, orientation, x, y, colour, present; a row of -1 is no object.

    Two or three objects alike often; everything uniform. Adversarial: one scale, x = y = the place, all places different.
    Colour: key `background`, the index of the grey; no object has the background's colour.
    """

    variant: Variant = "bin"
    size: int = _SIDE

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
        return self.size, self.size, 3 if self.variant == "color" else 1

    def draw(self, rng: np.random.Generator) -> Factors:
        """Two or three objects and, in colour, a background."""
        background = int(rng.integers(len(GREYS)))
        rows = np.full((OBJECTS, 7), EMPTY, np.int16)
        places = rng.permutation(len(_ADVERSARIAL_CENTRES)).tolist()
        for k in range(int(rng.integers(2, OBJECTS + 1))):
            shape, scale, orientation = (int(rng.integers(n)) for n in (len(SHAPES), SCALES, ORIENTATIONS))
            x, y = rng.integers(PLACES, size=2).tolist()
            colour = EMPTY
            if self.variant == "adv":
                scale, x, y = _ADVERSARIAL_SCALE, places[k], places[k]
            elif self.variant == "color":
                allowed = [c for c in range(len(COLOURS)) if c != _SAME_COLOUR.get(background)]
                colour = allowed[int(rng.integers(len(allowed)))]
            rows[k] = shape, scale, orientation, x, y, colour, 1
        factors: Factors = {"factors": rows}
        if self.variant == "color":
            factors["background"] = np.array(background, np.int16)
        return factors

    def render(self, factors: Factors) -> Scene:
        """A pixel is set where its centre lies inside; later objects cover earlier ones."""
        mask = np.zeros((self.size, self.size), np.uint8)
        palette = [GREYS[int(factors["background"])].repeat(3)] if self.variant == "color" else [np.zeros((), np.uint8)]
        for k, (shape, scale, orientation, x, y, colour, present) in enumerate(factors["factors"].tolist()):
            palette.append(COLOURS[colour] if self.variant == "color" else np.uint8(255).reshape(()))
            if present == 1:
                mask[self._inside(shape, scale, orientation, x, y)] = k + 1
        image: Bytes = np.array(palette, np.uint8)[mask]
        return Scene(image[None], mask[None], factors)

    def _inside(self, shape: int, scale: int, orientation: int, x: int, y: int) -> NDArray[np.bool_]:
        """The recipe: pixel centres turned back and scaled back into the shape's own coordinates."""
        if self.variant == "adv":
            centre_x, centre_y = (c * self.size / _SIDE for c in _ADVERSARIAL_CENTRES[x])
        else:
            centre_x, centre_y = (self.size / 4 + place * (self.size / 2) / (PLACES - 1) for place in (x, y))
        dy, dx = np.mgrid[: self.size, : self.size] + 0.5
        dx, dy = dx - centre_x, dy - centre_y
        k, angle = 0.5 + 0.1 * scale, orientation * 2 * math.pi / (ORIENTATIONS - 1)
        u = (math.cos(angle) * dx - math.sin(angle) * dy) / k
        v = (math.sin(angle) * dx + math.cos(angle) * dy) / k
        return inside(SHAPES[shape], u, v)

    def constants(self) -> dict[str, NDArray[np.generic]]:
        """Names of the shapes; in colour, the palettes."""
        named: dict[str, NDArray[np.generic]] = {"shape_names": np.array(SHAPES)}
        return {**named, "color_rgb": COLOURS, "background_grey": GREYS} if self.variant == "color" else named

    def dictionary(self) -> Dictionary:
        """Three white shapes at scale 1.0; in colour, 8 hues on a plain background found with each image."""
        from pictolex.model import Background, Concept, Dictionary

        concepts = []
        for k, name in enumerate(SHAPES):
            alpha = shape_patch(name)
            concepts.append(Concept(k, np.ones((*alpha.shape, 1), np.float32), alpha, name))
        if self.variant != "color":
            return Dictionary(tuple(concepts))
        return Dictionary(tuple(concepts), hues=(COLOURS / 255).astype(np.float32), background=Background("free"))


def inside(shape: str, u: Floats, v: Floats) -> NDArray[np.bool_]:
    """Whether points (u right, v down, in pixels from the centre at scale 1.0) lie in a shape."""
    if shape == "square":
        return np.asarray(np.maximum(np.abs(u), np.abs(v)) <= _SQUARE_HALF_SIDE)
    if shape == "ellipse":
        return np.asarray((u / _ELLIPSE_SEMI_AXES[0]) ** 2 + (v / _ELLIPSE_SEMI_AXES[1]) ** 2 <= 1)
    angle, radius = heart_outline()
    return np.asarray(np.hypot(u, v) <= np.interp(np.arctan2(v, np.abs(u)), angle, radius))


def shape_patch(shape: str) -> NDArray[np.float32]:
    """Coverage of a shape at scale 1.0."""
    reach = {"square": (_SQUARE_HALF_SIDE, _SQUARE_HALF_SIDE), "ellipse": _ELLIPSE_SEMI_AXES}.get(shape)
    if reach is None:
        angle, radius = heart_outline()
        reach = float((radius * np.cos(angle)).max()), float(np.abs(radius * np.sin(angle)).max())
    return coverage_patch(lambda x, y: inside(shape, x, y), *reach)


@lru_cache(maxsize=1)
def heart_outline() -> tuple[Floats, Floats]:
    """Angles and radii of the heart, calibrated on official frames (half of it: it is symmetric)."""
    outline = json.loads(resources.files("pictolex.sources.families").joinpath("heart.json").read_text(encoding="utf-8"))
    return np.array(outline["angle"]), np.array(outline["radius"])
