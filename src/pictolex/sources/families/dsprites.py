"""Multi-dSprites: two or three squares, ellipses and hearts; binarized, adversarial (three fixed places) and coloured."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

import numpy as np
from numpy.typing import NDArray

from pictolex.errors import InputError
from pictolex.sources.families.base import EMPTY, ONE_VIEW, Bytes, Factors, Scene
from pictolex.sources.families.shapes import OUTLINES, inside, shape_patch
from pictolex.sources.families.variation import AS_BUILT_IN, Variation, colour_table

if TYPE_CHECKING:
    from pictolex.model import Dictionary

__all__ = ["COLOURS", "GREYS", "ORIENTATIONS", "PLACES", "SCALES", "SHAPES", "SIZE", "MultiDSprites", "Variant", "inside"]

Variant = Literal["bin", "adv", "color"]

SIZE = 64
SHAPES = ("square", "ellipse", "heart")
SCALES, ORIENTATIONS, PLACES = 6, 40, 32
COLOURS = np.array([[255 * (c >> 2 & 1), 255 * (c >> 1 & 1), 255 * (c & 1)] for c in range(8)], np.uint8)
GREYS = np.array([0, 36, 73, 109, 146, 182, 219, 255], np.uint8)

_OBJECTS = (2, 3)
_ADVERSARIAL_SCALE = 2
_ADVERSARIAL_CENTRES = ((18.0, 18.0), (46.0, 18.0), (32.0, 46.0))


@dataclass(frozen=True)
class MultiDSprites:
    """Key `factors` (most objects, 7): shape, scale, orientation, x, y, colour, present; a row of -1 is no object.

    Two or three objects alike often; everything uniform. Adversarial: one scale, x = y = the place, all places different.
    Colour: key `background`, the index of its colour; no object has the background's colour. All scales with the canvas.
    """

    variant: Variant = "bin"
    variation: Variation = AS_BUILT_IN

    def __post_init__(self) -> None:
        unknown = [shape for shape in self.shapes if shape not in OUTLINES]
        if unknown:
            raise InputError(f"{self.name}: no shape {unknown[0]!r}; choose from {', '.join(OUTLINES)}")
        if self.variant == "adv" and self.objects[1] > len(_ADVERSARIAL_CENTRES):
            raise InputError(f"{self.name}: {self.objects[1]} objects for {len(_ADVERSARIAL_CENTRES)} places; choose at most so many")
        if self.variant == "color":
            for background, rgb in enumerate(self.backgrounds.tolist()):
                if not self._allowed(background):
                    raise InputError(f"{self.name}: no colour of the palette shows on the background {tuple(rgb)}; add another colour")

    @property
    def name(self) -> str:
        """Of the set."""
        return f"dsprites-{self.variant}"

    @property
    def size(self) -> int:
        """The side of the canvas."""
        return self.variation.size or SIZE

    @property
    def objects(self) -> tuple[int, int]:
        """The least and the most in an image."""
        return self.variation.objects or _OBJECTS

    @property
    def shapes(self) -> tuple[str, ...]:
        """What objects look like."""
        return self.variation.shapes or SHAPES

    @property
    def colours(self) -> Bytes:
        """(count, 3) of objects."""
        return colour_table(self.variation.palette, COLOURS)

    @property
    def backgrounds(self) -> Bytes:
        """(count, 3) behind them."""
        return colour_table(self.variation.backgrounds, GREYS[:, None].repeat(3, axis=1))

    @property
    def _zoom(self) -> float:
        return self.size / SIZE

    def _allowed(self, background: int) -> list[int]:
        """Colours that differ from a background."""
        return np.flatnonzero((self.colours != self.backgrounds[background]).any(axis=1)).tolist()

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
        """Some objects and, in colour, a background."""
        background = int(rng.integers(len(self.backgrounds)))
        fewest, most = self.objects
        rows = np.full((most, 7), EMPTY, np.int16)
        places = rng.permutation(len(_ADVERSARIAL_CENTRES)).tolist()
        for k in range(int(rng.integers(fewest, most + 1))):
            shape, scale, orientation = (int(rng.integers(n)) for n in (len(self.shapes), SCALES, ORIENTATIONS))
            x, y = rng.integers(PLACES, size=2).tolist()
            colour = EMPTY
            if self.variant == "adv":
                scale, x, y = _ADVERSARIAL_SCALE, places[k], places[k]
            elif self.variant == "color":
                allowed = self._allowed(background)
                colour = allowed[int(rng.integers(len(allowed)))]
            rows[k] = shape, scale, orientation, x, y, colour, 1
        factors: Factors = {"factors": rows}
        if self.variant == "color":
            factors["background"] = np.array(background, np.int16)
        return factors

    def render(self, factors: Factors) -> Scene:
        """A pixel is set where its centre lies inside; later objects cover earlier ones."""
        mask = np.zeros((self.size, self.size), np.uint8)
        palette = [self.backgrounds[int(factors["background"])]] if self.variant == "color" else [np.zeros((), np.uint8)]
        for k, (shape, scale, orientation, x, y, colour, present) in enumerate(factors["factors"].tolist()):
            palette.append(self.colours[colour] if self.variant == "color" else np.uint8(255).reshape(()))
            if present == 1:
                mask[self._inside(shape, scale, orientation, x, y)] = k + 1
        image: Bytes = np.array(palette, np.uint8)[mask]
        return Scene(image[None], mask[None], factors)

    def _inside(self, shape: int, scale: int, orientation: int, x: int, y: int) -> NDArray[np.bool_]:
        """The recipe: pixel centres turned back and scaled back into the shape's own coordinates."""
        if self.variant == "adv":
            centre_x, centre_y = (c * self.size / SIZE for c in _ADVERSARIAL_CENTRES[x])
        else:
            centre_x, centre_y = (self.size / 4 + place * (self.size / 2) / (PLACES - 1) for place in (x, y))
        dy, dx = np.mgrid[: self.size, : self.size] + 0.5
        dx, dy = dx - centre_x, dy - centre_y
        k, angle = (0.5 + 0.1 * scale) * self._zoom, orientation * 2 * math.pi / (ORIENTATIONS - 1)
        u = (math.cos(angle) * dx - math.sin(angle) * dy) / k
        v = (math.sin(angle) * dx + math.cos(angle) * dy) / k
        return inside(self.shapes[shape], u, v)

    def constants(self) -> dict[str, NDArray[np.generic]]:
        """Names of the shapes; in colour, the palettes: `background_grey` as built in, `background_rgb` where chosen."""
        named: dict[str, NDArray[np.generic]] = {"shape_names": np.array(self.shapes)}
        if self.variant != "color":
            return named
        chosen = self.variation.backgrounds is not None
        behind: dict[str, NDArray[np.generic]] = {"background_rgb": self.backgrounds} if chosen else {"background_grey": GREYS}
        return {**named, "color_rgb": self.colours, **behind}

    @property
    def _largest(self) -> float:
        return 0.5 + 0.1 * (_ADVERSARIAL_SCALE if self.variant == "adv" else SCALES - 1)

    def dictionary(self) -> Dictionary:
        """White shapes at the largest scale there is; in colour, hues on a plain background found with each image."""
        from pictolex.model import Background, Concept, Dictionary

        concepts = []
        for k, name in enumerate(self.shapes):
            alpha = shape_patch(name, self._zoom * self._largest)
            concepts.append(Concept(k, np.ones((*alpha.shape, 1), np.float32), alpha, name))
        if self.variant != "color":
            return Dictionary(tuple(concepts))
        return Dictionary(tuple(concepts), hues=(self.colours / 255).astype(np.float32), background=Background("free"))
