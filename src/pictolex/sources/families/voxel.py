"""Voxel scenes: three of four solids on a ground plane, seen in twenty orthographic views by the paper's formula."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import product
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from pictolex.sources.families.base import Bytes, Factors, Floats, Scene
from pictolex.sources.families.variation import AS_BUILT_IN, Variation

if TYPE_CHECKING:
    from pictolex.model import Dictionary

SIZE, OBJECTS, SIDE = 40, 3, 8
SHAPES = ("cube", "ball", "cross", "pyramid")
_HALF_SEEN = 0.5
_TURNS = 4


@dataclass(frozen=True)
class Voxel:
    """Key `placements` (3, 4): shape, z, y, x of the corner. Three different shapes; footprints do not overlap; z is down.

    A larger volume has more room.
    """

    variation: Variation = AS_BUILT_IN

    @property
    def size(self) -> int:
        """The side of the volume and of a view."""
        return self.variation.size or SIZE

    @property
    def view_names(self) -> Sequence[str]:
        """`front_0`, `back_0`, ... `top_3`: five sides, turned by 0 to 3 steps of pi / 8."""
        return tuple(f"{side}_{turn}" for turn in range(_TURNS) for side in ("front", "back", "left", "right", "top"))

    @property
    def view_matrices(self) -> NDArray[np.float32]:
        """A view's grid point g (rows, columns, depth; from the centre) shows the scene at g @ matrix (z, y, x)."""
        return view_matrices().astype(np.float32)

    @property
    def image_shape(self) -> tuple[int, int, int]:
        """Height, width, channels of a view."""
        return self.size, self.size, 1

    def draw(self, rng: np.random.Generator) -> Factors:
        """Corners uniform in the middle of the ground, drawn again until the footprints are apart."""
        shapes = rng.permutation(len(SHAPES))[:OBJECTS]
        low, high = self.size // 5, self.size * 3 // 5
        while True:
            corners = rng.integers(low, high, size=(OBJECTS, 2))
            apart = np.abs(corners[:, None] - corners[None]).max(axis=2)
            if apart[np.triu_indices(OBJECTS, 1)].min() >= SIDE:
                ground = np.full((OBJECTS, 1), self.size // 2)
                return {"placements": np.concatenate([shapes[:, None], ground, corners], axis=1).astype(np.int16)}

    def render(self, factors: Factors) -> Scene:
        """Every view of `sum_l S_l^2 prod_(m<l) (1 - S_m)`; a pixel shows the object of the first voxel at least half dense."""
        volumes = np.zeros((OBJECTS, self.size, self.size, self.size))
        for k, (shape, z, y, x) in enumerate(factors["placements"].tolist()):
            volumes[k, z : z + SIDE, y : y + SIDE, x : x + SIDE] = solids()[shape]
        views = [self._view(volumes, matrix) for matrix in view_matrices()]
        images, masks = (np.stack(parts) for parts in zip(*views, strict=True))
        more = {**factors, "voxels": volumes.max(axis=0).astype(np.uint8)}
        return Scene(images, masks, more)

    def _view(self, volumes: Floats, matrix: Floats) -> tuple[Bytes, Bytes]:
        """The image and the mask of one view; depth is the last axis of the turned volumes."""
        turned = turn_volumes(volumes, matrix)
        density = np.minimum(1, turned.sum(axis=0))
        through = np.cumprod(1 - density, axis=2)
        before = np.concatenate([np.ones_like(through[..., :1]), through[..., :-1]], axis=2)
        image = (density**2 * before).sum(axis=2)
        hit = density >= _HALF_SEEN
        first = np.take_along_axis(turned, hit.argmax(axis=2)[None, ..., None], axis=3)[..., 0]
        mask = np.where(hit.any(axis=2), first.argmax(axis=0) + 1, 0)
        return np.rint(np.clip(image, 0, 1) * 255).astype(np.uint8), mask.astype(np.uint8)

    def constants(self) -> dict[str, NDArray[np.generic]]:
        """The solids and the views."""
        names = {"shape_names": np.array(SHAPES), "view_names": np.array(self.view_names)}
        return {"shapes": solids(), "view_matrices": self.view_matrices, **names}

    def dictionary(self) -> Dictionary:
        """Four solids as densities."""
        from pictolex.model import Concept, Dictionary

        alphas = solids().astype(np.float32)
        concepts = tuple(Concept(k, np.ones((*alpha.shape, 1), np.float32), alpha, SHAPES[k]) for k, alpha in enumerate(alphas))
        return Dictionary(concepts, formation="voxel")


def turn_volumes(volumes: Floats, matrix: Floats) -> Floats:
    """Volumes (n, z, y, x) sampled at grid points turned about the centre, linear between voxels, empty outside."""
    side = volumes.shape[-1]
    centre = (side - 1) / 2
    grid = np.stack(np.meshgrid(*[np.arange(side) - centre] * 3, indexing="ij"), axis=-1)
    points = grid @ matrix + centre
    whole = np.floor(points).astype(int)
    part = points - whole
    padded = np.pad(volumes, ((0, 0), (1, 1), (1, 1), (1, 1)))
    turned = np.zeros_like(volumes)
    for corner in product((0, 1), repeat=3):
        weight = np.prod([part[..., a] if up else 1 - part[..., a] for a, up in enumerate(corner)], axis=0)
        z, y, x = (np.clip(whole[..., a] + up + 1, 0, side + 1) for a, up in enumerate(corner))
        turned += weight * padded[:, z, y, x]
    return turned


@lru_cache(maxsize=1)
def solids() -> Bytes:
    """(4, 8, 8, 8): a cube, a ball, a cross of three bars, a stepped pyramid standing on the ground (z is down)."""
    at = np.arange(SIDE) - (SIDE - 1) / 2
    z, y, x = np.meshgrid(at, at, at, indexing="ij")
    cube = np.maximum.reduce([np.abs(z), np.abs(y), np.abs(x)]) <= 2.5
    ball = z**2 + y**2 + x**2 <= 12
    bar = [np.abs(a) <= 0.5 for a in (z, y, x)]
    cross = (bar[0] & bar[1]) | (bar[0] & bar[2]) | (bar[1] & bar[2])
    widths = np.array([0, 1, 1, 2, 2, 3, 3, 4])[:, None, None]
    pyramid = np.maximum(np.abs(y), np.abs(x)) < widths
    return np.stack([cube, ball, cross, pyramid]).astype(np.uint8)


@lru_cache(maxsize=1)
def view_matrices() -> Floats:
    """(20, 3, 3): front, back, left, right and top, each turned about the vertical axis (z) by 0 to 3 steps of pi / 8."""
    sides = [_turn_upright(a) for a in (0, np.pi, np.pi / 2, -np.pi / 2)]
    sides.append(np.array([[0.0, 0.0, -1.0], [0.0, 1.0, 0.0], [1.0, 0.0, 0.0]]))
    matrices: Floats = np.stack([side @ _turn_upright(turn * np.pi / 8) for turn in range(_TURNS) for side in sides])
    return matrices


def _turn_upright(angle: float) -> Floats:
    """A rotation about z."""
    cos, sin = np.cos(angle), np.sin(angle)
    return np.array([[1, 0, 0], [0, cos, -sin], [0, sin, cos]])
