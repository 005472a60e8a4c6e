"""What every source of images offers: a length, names, cheap shapes, and images read one at a time."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from pictolex.errors import InputError
from pictolex.sources.image import Image

Which = slice | Sequence[int] | NDArray[np.generic]


class SkippedImagesWarning(UserWarning):
    """Some images could not be read and were left out; the others go on."""


@dataclass(frozen=True)
class Skip:
    """One image that was left out, and why."""

    name: str
    reason: str


@runtime_checkable
class Source(Protocol):
    """Images read lazily, one at a time: memory does not grow with their number.

    Several views of one scene are as many images in a row: `views` a scene, `view_matrices` (views, 3, 3) or None.
    """

    def __len__(self) -> int: ...

    @property
    def names(self) -> Sequence[str]:
        """One name an image."""
        ...

    @property
    def skipped(self) -> tuple[Skip, ...]:
        """What was left out."""
        ...

    @property
    def views(self) -> int:
        """Images a scene; 1 for plain images."""
        ...

    @property
    def view_matrices(self) -> NDArray[np.float32] | None:
        """Rotations of the views, in the order of the images of a scene."""
        ...

    def shape(self, i: int) -> tuple[int, int, int]:
        """Height, width, channels (1 or 3) of image i, without decoding it."""
        ...

    def read(self, i: int) -> Image:
        """Image i."""
        ...

    def take(self, which: Which) -> Source:
        """A part of this source: a slice, indices, or a boolean mask."""
        ...

    def describe(self) -> str:
        """One line for people."""
        ...


class SourceBase:
    """The parts that all sources share; a source adds `__len__`, `names`, `shape`, `read`, `describe`."""

    views: int = 1
    view_matrices: NDArray[np.float32] | None = None
    skipped: tuple[Skip, ...] = ()

    def __len__(self) -> int:
        raise NotImplementedError

    @property
    def names(self) -> Sequence[str]:
        """One name an image."""
        raise NotImplementedError

    def shape(self, i: int) -> tuple[int, int, int]:
        """Height, width, channels of image i."""
        raise NotImplementedError

    def read(self, i: int) -> Image:
        """Image i."""
        raise NotImplementedError

    def describe(self) -> str:
        """One line for people."""
        raise NotImplementedError

    def take(self, which: Which) -> Source:
        """A part of this source, read through it."""
        return Part(self, resolve(which, len(self)))

    def check_index(self, i: int) -> int:
        """An index within the source, negative ones from the end."""
        count = len(self)
        if not -count <= i < count:
            raise IndexError(f"image {i} of a source of {count}")
        return int(i) % count

    def __iter__(self) -> Iterator[Image]:
        return (self.read(i) for i in range(len(self)))

    def __repr__(self) -> str:
        return f"<{type(self).__name__}: {self.describe()}>"


class Part(SourceBase):
    """Some images of another source."""

    def __init__(self, whole: Source, indices: NDArray[np.int64]) -> None:
        self._whole = whole
        self._indices = indices
        self._names: Sequence[str] | None = None
        self.skipped = whole.skipped
        self.view_matrices = whole.view_matrices
        self.views = whole.views if whole_scenes(indices, whole.views) else 1

    @property
    def whole(self) -> Source:
        """What this is a part of."""
        return self._whole

    @property
    def indices(self) -> NDArray[np.int64]:
        """Which images of the whole these are."""
        return self._indices

    def __len__(self) -> int:
        return len(self._indices)

    @property
    def names(self) -> Sequence[str]:
        """One name an image."""
        if self._names is None:
            names = self._whole.names
            self._names = [names[i] for i in self._indices.tolist()]
        return self._names

    def shape(self, i: int) -> tuple[int, int, int]:
        """Height, width, channels of image i."""
        return self._whole.shape(int(self._indices[self.check_index(i)]))

    def read(self, i: int) -> Image:
        """Image i."""
        return self._whole.read(int(self._indices[self.check_index(i)]))

    def describe(self) -> str:
        """One line for people."""
        return f"{len(self)} of {self._whole.describe()}"


def scene_images(scenes: slice, count: int, views: int) -> NDArray[np.int64]:
    """The images of some scenes of a source of `count` images: slices in a spec count scenes."""
    chosen = resolve(scenes, count // views)
    images: NDArray[np.int64] = (chosen[:, None] * views + np.arange(views)).ravel()
    return images


def whole_scenes(indices: NDArray[np.int64], views: int) -> bool:
    """Whether indices keep all views of each scene together and in order."""
    if views == 1 or len(indices) % views:
        return views == 1
    rows = indices.reshape(-1, views)
    return bool((rows % views == np.arange(views)).all() and (rows // views == rows[:, :1] // views).all())


def resolve(which: Which, count: int) -> NDArray[np.int64]:
    """Indices of a slice, of a boolean mask or of a sequence, within `count` images."""
    everything = np.arange(count, dtype=np.int64)
    if isinstance(which, slice):
        return everything[which]
    wanted = np.asarray(which)
    if wanted.size == 0:
        return everything[:0]
    if wanted.dtype == np.bool_ and wanted.shape != (count,):
        raise InputError(f"a boolean mask of shape {wanted.shape} for a source of {count} images; expected ({count},)")
    if wanted.dtype.kind not in "iub":
        raise InputError(f"indices of type {wanted.dtype}; expected integers, booleans or a slice")
    try:
        chosen: NDArray[np.int64] = everything[wanted]
        return chosen
    except IndexError:
        raise InputError(f"image {int(wanted.max())} was asked for; the source has images 0 to {count - 1}") from None


def sizes(source: Source) -> Counter[tuple[int, int]]:
    """How many images have which (height, width)."""
    return Counter(source.shape(i)[:2] for i in range(len(source)))


def require_one_size(source: Source) -> tuple[int, int, int]:
    """The shape that all images share; a clear error where they differ."""
    shapes = Counter(source.shape(i) for i in range(len(source)))
    if len(shapes) == 1:
        return next(iter(shapes))
    common = shapes.most_common(3)
    told = ", ".join(f"{h}x{w} ({n} images)" for (h, w, _), n in common)
    odd = next(i for i in range(len(source)) if source.shape(i) != common[0][0])
    raise InputError(f"images of different sizes: {told}; first unlike the most: {source.names[odd]}. Resize or crop them to one size")
