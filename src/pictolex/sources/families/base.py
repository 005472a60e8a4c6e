"""What a family of generated scenes offers."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from pictolex.model import Dictionary

SAMPLES = 20
EMPTY = -1
ONE_VIEW = ("",)

Bytes = NDArray[np.uint8]
Floats = NDArray[np.float64]
Factors = dict[str, NDArray[np.generic]]


@dataclass(frozen=True, eq=False)
class Scene:
    """One generated scene: `images` (views, h, w) or (views, h, w, 3), `masks` (views, h, w): k = k-th object, later in front."""

    images: Bytes
    masks: Bytes
    factors: Factors


class Family(Protocol):
    """A recipe: factors are drawn from a generator of random numbers, scenes rendered from factors alone."""

    @property
    def image_shape(self) -> tuple[int, int, int]:
        """Height, width, channels of every image."""
        ...

    @property
    def view_names(self) -> Sequence[str]:
        """One name a view; a single empty one for plain images."""
        ...

    @property
    def view_matrices(self) -> NDArray[np.float32] | None:
        """(views, 3, 3), or None for plain images."""
        ...

    def draw(self, rng: np.random.Generator) -> Factors:
        """The factors of a scene, by their key in a file."""
        ...

    def render(self, factors: Factors) -> Scene:
        """The scene of these factors."""
        ...

    def constants(self) -> dict[str, NDArray[np.generic]]:
        """What a file says once for all scenes."""
        ...

    def dictionary(self) -> Dictionary:
        """The true concepts (light on dark), drawn from the recipe."""
        ...


def sample_points(height: int, width: int, samples: int = SAMPLES) -> tuple[Floats, Floats]:
    """Coordinates (x right, y down, from the patch's centre) of samples x samples points in every pixel."""
    ys = (np.arange(height * samples) + 0.5) / samples - height / 2
    xs = (np.arange(width * samples) + 0.5) / samples - width / 2
    grid_y, grid_x = np.meshgrid(ys, xs, indexing="ij")
    return grid_x, grid_y


def pixel_means(samples: Floats, factor: int = SAMPLES) -> Floats:
    """Means over factor x factor samples; axes after the second stay."""
    height, width = samples.shape[0] // factor, samples.shape[1] // factor
    means: Floats = samples.reshape(height, factor, width, factor, *samples.shape[2:]).mean(axis=(1, 3))
    return means


def coverage_patch(
    inside: Callable[[Floats, Floats], NDArray[np.bool_]], reach_x: float, reach_y: float, samples: int = SAMPLES
) -> NDArray[np.float32]:
    """Coverage of a shape around the origin, in a patch of odd sides just large enough for its reach."""
    height, width = odd_side(reach_y), odd_side(reach_x)
    return pixel_means(inside(*sample_points(height, width, samples)).astype(np.float64), samples).astype(np.float32)


def odd_side(reach: float) -> int:
    """The least odd number of pixels around a pixel's centre that holds +-reach."""
    return 2 * int(np.ceil(reach - 0.5)) + 1
