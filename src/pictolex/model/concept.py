"""One learned patch of the visual vocabulary."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from pictolex.errors import InputError
from pictolex.model.arrays import unit_array, whole


@dataclass(frozen=True, eq=False, repr=False)
class Concept:
    """A patch of straight colour (`shape`) and coverage (`alpha`), values in [0, 1], with an id that is never reused.

    `shape` is (height, width, channels) with 1 (luminance) or 3 channels (RGB), `alpha` is (height, width).
    A voxel concept has its density as `alpha` (depth, height, width) and a `shape` (depth, height, width, 1) of ones.
    Both arrays are kept as read-only float32 copies.
    """

    id: int
    shape: NDArray[np.float32]
    alpha: NDArray[np.float32]
    name: str = ""

    def __post_init__(self) -> None:
        what = f"concept {self.id!r}"
        object.__setattr__(self, "id", whole(self.id, "a concept's id"))
        object.__setattr__(self, "shape", unit_array(self.shape, f"the shape of {what}"))
        object.__setattr__(self, "alpha", unit_array(self.alpha, f"the alpha of {what}"))
        if not isinstance(self.name, str):
            raise InputError(f"the name of {what} must be text, got {self.name!r}")
        if self.alpha.ndim not in (2, 3) or self.alpha.size == 0:
            raise InputError(f"the alpha of {what} must be (height, width), or (depth, height, width) of voxels, got {self.alpha.shape}")
        channels = self.shape.shape[-1] if self.shape.ndim else 0
        allowed = (1,) if self.is_voxel else (1, 3)
        if self.shape.shape != (*self.alpha.shape, channels) or channels not in allowed:
            wanted = " or ".join(str((*self.alpha.shape, c)) for c in allowed)
            raise InputError(f"the shape of {what} must be {wanted} to go with its alpha, got {self.shape.shape}")
        if self.is_voxel and not bool((self.shape == 1).all()):
            raise InputError(f"the shape of {what} must be all ones: a voxel concept's density is its alpha")

    @classmethod
    def voxel(cls, id: int, density: ArrayLike, name: str = "") -> Concept:
        """A voxel concept of a density (depth, height, width)."""
        alpha = unit_array(density, f"the density of concept {id!r}")
        return cls(id, np.ones((*alpha.shape, 1), np.float32), alpha, name)

    @property
    def is_voxel(self) -> bool:
        """Whether this is a patch of voxels."""
        return self.alpha.ndim == 3

    @property
    def depth(self) -> int | None:
        """The number of voxel layers; None for a flat patch."""
        return len(self.alpha) if self.is_voxel else None

    @property
    def height(self) -> int:
        """Rows of the patch."""
        return int(self.alpha.shape[-2])

    @property
    def width(self) -> int:
        """Columns of the patch."""
        return int(self.alpha.shape[-1])

    @property
    def channels(self) -> int:
        """1 (luminance) or 3 (RGB)."""
        return int(self.shape.shape[-1])

    @property
    def values(self) -> int:
        """The number of floats that say what this concept looks like (the ones of a voxel concept's shape say nothing)."""
        return self.alpha.size if self.is_voxel else self.shape.size + self.alpha.size

    def __repr__(self) -> str:
        title = f"{self.id} {self.name!r}" if self.name else str(self.id)
        kind = "voxels" if self.is_voxel else {1: "luminance", 3: "RGB"}[self.channels]
        return f"Concept({title}, {'x'.join(map(str, self.alpha.shape))} {kind})"
