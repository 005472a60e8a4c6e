"""Images that are already arrays: one array of all, or a list of arrays of any sizes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pictolex.errors import InputError
from pictolex.sources.base import SourceBase
from pictolex.sources.image import Image, as_image, check_floats

_CHECKED_AT_ONCE = 2**22


class Names(Sequence[str]):
    """`prefix-0`, `prefix-1`, ... made when asked for; with views, `prefix-0/front` and so on."""

    def __init__(self, prefix: str, count: int, start: int = 0, step: int = 1, views: Sequence[str] = ("",)) -> None:
        self._prefix, self._count, self._start, self._step, self._views = prefix, count, start, step, views

    def __len__(self) -> int:
        return self._count

    def __getitem__(self, i: Any) -> Any:
        if isinstance(i, slice):
            return [self[j] for j in range(*i.indices(self._count))]
        if not -self._count <= i < self._count:
            raise IndexError(i)
        scene, view = divmod(int(i) % self._count, len(self._views))
        suffix = f"/{self._views[view]}" if self._views[view] else ""
        return f"{self._prefix}-{self._start + scene * self._step}{suffix}"


class ArraySource(SourceBase):
    """One array (n, h, w) or (n, h, w, c); held as it is given, made float one image at a time."""

    def __init__(
        self,
        array: NDArray[np.generic],
        *,
        title: str = "array",
        names: Sequence[str] | None = None,
        view_matrices: NDArray[np.float32] | None = None,
        view_names: Sequence[str] | None = None,
    ) -> None:
        _check_shape(array, title, view_matrices)
        if array.dtype.kind == "f":
            _check_in_parts(array, title)
        elif array.dtype not in (np.uint8, np.uint16, np.bool_):
            raise InputError(
                f"{title}: images of type {array.dtype}; expected uint8 (0 to 255), uint16, bool or floats in [0, 1]: convert first"
            )
        labels: Sequence[str] = ("",)
        if view_matrices is not None:
            self.views = int(array.shape[1])
            self.view_matrices = np.asarray(view_matrices, np.float32)
            labels = tuple(view_names) if view_names is not None else tuple(f"view-{j}" for j in range(self.views))
            array = array.reshape(-1, *array.shape[2:])
        self._array = array
        self._title = title
        self._names = names if names is not None else Names("image", len(array), views=labels)

    def __len__(self) -> int:
        return len(self._array)

    @property
    def names(self) -> Sequence[str]:
        """One name an image."""
        return self._names

    def shape(self, i: int) -> tuple[int, int, int]:
        """Height, width, channels of image i."""
        self.check_index(i)
        height, width = (int(n) for n in self._array.shape[1:3])
        return height, width, _channels(self._array.shape[1:])

    def read(self, i: int) -> Image:
        """Image i."""
        i = self.check_index(i)
        return as_image(self._array[i], self._names[i])

    def describe(self) -> str:
        """One line for people."""
        height, width, channels = self.shape(0)
        views = f" ({len(self) // self.views} scenes of {self.views} views)" if self.view_matrices is not None else ""
        return f"{self._title}: {len(self)} images{views} of {height}x{width}, {'grey' if channels == 1 else 'RGB'}"


class ListSource(SourceBase):
    """A list of arrays (h, w) or (h, w, c) of any sizes; grey ones become RGB where others are."""

    def __init__(self, arrays: Sequence[NDArray[np.generic]], *, title: str = "list") -> None:
        if not arrays:
            raise InputError(f"{title}: no images in it")
        for i, array in enumerate(arrays):
            as_image(array[:1, :1] if array.ndim >= 2 else array, f"{title}[{i}]")
            if array.size == 0:
                raise InputError(f"{title}[{i}]: an image without pixels (shape {'x'.join(map(str, array.shape))})")
            if array.dtype.kind == "f":
                check_floats(array, f"{title}[{i}]")
        self._arrays = tuple(arrays)
        self._title = title
        self._channel_count = max(_channels(a.shape) for a in arrays)
        self._names = Names("image", len(arrays))

    def __len__(self) -> int:
        return len(self._arrays)

    @property
    def names(self) -> Sequence[str]:
        """One name an image."""
        return self._names

    def shape(self, i: int) -> tuple[int, int, int]:
        """Height, width, channels of image i."""
        array = self._arrays[self.check_index(i)]
        return int(array.shape[0]), int(array.shape[1]), self._channel_count

    def read(self, i: int) -> Image:
        """Image i."""
        i = self.check_index(i)
        return as_image(self._arrays[i], self._names[i], channels=self._channel_count)

    def describe(self) -> str:
        """One line for people."""
        return f"{self._title}: {len(self)} images, {'grey' if self._channel_count == 1 else 'RGB'}"


def _channels(shape: tuple[int, ...]) -> int:
    """1 or 3 for an image of shape (h, w) or (h, w, 1 to 4)."""
    return 3 if len(shape) == 3 and shape[2] >= 3 else 1


def _check_shape(array: NDArray[np.generic], title: str, view_matrices: NDArray[np.float32] | None) -> None:
    """Images x height x width (x channels), with a view axis second where there are view matrices; else say how to get there."""
    shape = "x".join(map(str, array.shape)) or "()"
    if view_matrices is not None:
        views = np.asarray(view_matrices).shape
        if array.ndim not in (4, 5) or len(views) != 3 or views[1:] != (3, 3) or array.shape[1] != views[0]:
            raise InputError(f"{title}: images of shape {shape} with view matrices {views}; expected scenes x views x height x width")
        rest = array.shape[1:]
    elif array.ndim not in (3, 4):
        raise InputError(f"{title}: an array of shape {shape}; expected images x height x width (x channels): one image is array[None]")
    else:
        rest = array.shape
    if array.size == 0:
        raise InputError(f"{title}: an array of shape {shape} holds no pixels; expected at least one image")
    if len(rest) == 4 and rest[3] > 4:
        fix = "channels come last: use array.transpose(0, 2, 3, 1)" if rest[1] <= 4 else "expected 1 to 4 channels last"
        raise InputError(f"{title}: an array of shape {shape} has {rest[3]} channels; {fix}")
    if view_matrices is None and array.ndim == 3 and array.shape[2] in (3, 4) and min(array.shape[:2]) > 8:
        raise InputError(f"{title}: an array of shape {shape} looks like one RGB image, not many grey ones: use array[None]")


def _check_in_parts(array: NDArray[np.generic], title: str) -> None:
    """Check a float array without a copy of all of it; the error names the first bad image."""
    step = max(1, _CHECKED_AT_ONCE // max(1, array[0].size))
    for start in range(0, len(array), step):
        try:
            check_floats(array[start : start + step], title)
        except InputError:
            for i in range(start, min(start + step, len(array))):
                check_floats(array[i], f"{title}, image {i}")
            raise
