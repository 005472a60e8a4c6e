"""Built-in sets of images with known truth: image i is made from (seed, i) when it is read, so that sets stream."""

from __future__ import annotations

import os
import zlib
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from pictolex.errors import InputError
from pictolex.sources.arrays import Names
from pictolex.sources.base import SourceBase
from pictolex.sources.families import true_concepts
from pictolex.sources.families.base import Scene
from pictolex.sources.families.catalogue import family
from pictolex.sources.families.variation import AS_BUILT_IN, Variation
from pictolex.sources.image import Image, as_image

if TYPE_CHECKING:
    from pictolex.model import Dictionary

_COLOURS = {"color_rgb": 3, "background_rgb": 3, "background_grey": None, "sprites_rgba": 3}
"""Constants that are colours, and how many channels of them (None: all), which change where images are inverted."""


class SyntheticSource(SourceBase):
    """A generated set, as built in or varied. Views of a scene are images in a row."""

    def __init__(self, name: str, count: int, seed: int = 0, variation: Variation = AS_BUILT_IN) -> None:
        self._family = family(name, variation)
        if count < 1:
            raise InputError(f"{name}: a set of {count} images; ask for at least 1")
        if seed < 0:
            raise InputError(f"{name}: seed {seed}; choose 0 or above")
        self.name, self.seed, self.variation = name, seed, variation
        self.view_matrices = self._family.view_matrices
        self.views = len(self._family.view_names)
        self._scenes = count
        self._kept: tuple[int, Scene] | None = None

    def __len__(self) -> int:
        return self._scenes * self.views

    @property
    def names(self) -> Sequence[str]:
        """One name an image."""
        return Names(self.name, len(self), views=self._family.view_names)

    def shape(self, i: int) -> tuple[int, int, int]:
        """Height, width, channels of image i."""
        self.check_index(i)
        return self._family.image_shape

    def scene(self, i: int) -> Scene:
        """Scene i with its masks and factors."""
        kept = self._kept
        if kept is None or kept[0] != i:
            rng = np.random.default_rng([zlib.crc32(self.name.encode()), self.seed, i])
            made = self._family.render(self._family.draw(rng))
            if self.variation.inverted:
                made = Scene(255 - made.images, made.masks, made.factors)
            kept = self._kept = (i, made)
        return kept[1]

    def read(self, i: int) -> Image:
        """Image i."""
        i = self.check_index(i)
        scene, view = divmod(i, self.views)
        return as_image(self.scene(scene).images[view], self.names[i])

    def constants(self) -> dict[str, NDArray[np.generic]]:
        """What a file says once for all scenes, the true concepts with it."""
        constants = self._family.constants()
        if self.variation.inverted:
            constants = {key: _inverted(key, value) if key in _COLOURS else value for key, value in constants.items()}
        dictionary = self.dictionary()
        return constants if dictionary is None else {**constants, **true_concepts.stored(dictionary.concepts)}

    def dictionary(self) -> Dictionary | None:
        """The true concepts, hues and background; None where images are inverted and no dictionary says it."""
        plain = self._family.dictionary()
        return true_concepts.inverse(plain) if self.variation.inverted else plain

    def describe(self) -> str:
        """One line for people."""
        height, width, channels = self._family.image_shape
        views = f" ({self._scenes} scenes of {self.views} views)" if self.views > 1 else ""
        kind = "grey" if channels == 1 else "RGB"
        return f"{self.name} (generated, seed {self.seed}): {len(self)} images{views} of {height}x{width}, {kind}"


def make(name: str, count: int, seed: int = 0, variation: Variation = AS_BUILT_IN) -> dict[str, NDArray[np.generic]]:
    """A set as arrays: `images`, `masks`, factors, constants (keys and types of the published files), and the true `concepts`."""
    source = SyntheticSource(name, count, seed, variation)
    stacks: dict[str, NDArray[np.generic]] = {}
    for i in range(count):
        scene = source.scene(i)
        flat = source.view_matrices is None
        values = {"images": scene.images[0] if flat else scene.images, "masks": scene.masks[0] if flat else scene.masks, **scene.factors}
        for key, value in values.items():
            if i == 0:
                stacks[key] = np.empty((count, *value.shape), value.dtype)
            stacks[key][i] = value
    return {**stacks, **source.constants()}


def write_npz(path: str | os.PathLike[str], name: str, count: int, seed: int = 0, variation: Variation = AS_BUILT_IN) -> Path:
    """Make a set and write it to an .npz file, whole or not at all."""
    from pictolex.model.files import atomic

    target = Path(path)
    if target.suffix.lower() != ".npz":
        raise InputError(f"{target}: data sets are .npz files; name it {target.name}.npz")
    arrays = make(name, count, seed, variation)
    with atomic(target) as file:
        np.savez_compressed(file, allow_pickle=False, **arrays)
    return target


def true_dictionary(name: str) -> Dictionary:
    """The concepts a set is made of: patches drawn from the recipe, alpha = coverage."""
    return family(name).dictionary()


def _inverted(key: str, colours: NDArray[np.generic]) -> NDArray[np.generic]:
    """Colours of bytes, the other way round; what else is in the last axis stays."""
    turned = np.array(colours, np.uint8)
    turned[..., : _COLOURS[key]] = 255 - turned[..., : _COLOURS[key]]
    return turned
