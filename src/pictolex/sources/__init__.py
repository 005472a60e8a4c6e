"""Where images come from: files, archives, arrays, generators. Truth comes apart, from `pictolex.sources.truth`."""

from __future__ import annotations

import difflib
import os
import re
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pictolex.errors import InputError
from pictolex.sources.arrays import ArraySource, ListSource
from pictolex.sources.base import Part, Skip, SkippedImagesWarning, Source, require_one_size, scene_images, sizes
from pictolex.sources.decode import SUFFIXES, VIDEO_SUFFIXES
from pictolex.sources.dsprites import open_dsprites, parse_dsprites
from pictolex.sources.folder import open_folder, open_glob, open_image
from pictolex.sources.image import Image
from pictolex.sources.multi_object import open_tfrecords, parse_tfrecords
from pictolex.sources.npz import open_npz, parse_npz, parse_slice

__all__ = [
    "BUILT_IN",
    "DEFAULT_COUNT",
    "Image",
    "Part",
    "Skip",
    "SkippedImagesWarning",
    "Source",
    "open_source",
    "require_one_size",
    "sizes",
    "split_slice",
]

BUILT_IN = ("tetrominoes", "dsprites-bin", "dsprites-adv", "dsprites-color", "pattern", "voxel")
DEFAULT_COUNT = 10_000
_SLICED = re.compile(r"^(?P<what>.+?)(?P<part>\[[-\d:\s]*\])$", re.DOTALL)

Images = str | os.PathLike[str] | NDArray[Any] | Sequence[Any] | Source


def open_source(spec: Images | Any, *, count: int | None = None, seed: int = 0) -> Source:
    """A source from what a user gave: a path, a glob, a built-in name, an array, a tensor, a list of arrays, or a source.

    `count` (of scenes, where they have several views) and `seed` are for built-in names, whose image i is made from (seed, i)
    when it is read; a count also limits files.
    """
    if isinstance(spec, str | os.PathLike):
        source = _open_text(os.fspath(spec), count, seed)
    elif isinstance(spec, Source):
        source = spec
    elif isinstance(spec, list | tuple):
        source = _open_list(spec)
    else:
        source = _open_array(_as_array(spec))
    limit = len(source) if count is None else count * source.views
    return source if len(source) <= limit else source.take(slice(limit))


def _open_text(spec: str, count: int | None, seed: int) -> Source:
    """A path wins over a built-in name, an exact name over a slice of one."""
    if not spec.strip():
        raise InputError("no source given; name a folder, an image, an .npz file or a built-in set: " + ", ".join(BUILT_IN))
    path = Path(spec)
    if path.exists():
        return _open_path(path)
    if spec in BUILT_IN:
        return _open_built_in(spec, count, seed)
    data = _open_data_file(spec)
    if data is not None:
        return data
    what, part = split_slice(spec)
    if part is not None:
        whole = _open_text(what, None, seed)
        indices = scene_images(part, len(whole), whole.views)
        if len(indices) == 0:
            raise InputError(f"{spec}: no images left of {len(whole)} by the slice; choose another one")
        return whole.take(indices)
    if any(sign in spec for sign in "*?["):
        return open_glob(spec)
    raise InputError(f"{spec}: no such file, folder or built-in set; {_nearest(spec)}")


def split_slice(spec: str) -> tuple[str, slice | None]:
    """A slice after an existing path or a built-in name, as in `tetrominoes[:500]`; None where there is none."""
    found = _SLICED.match(spec)
    if found is None or not (found["what"] in BUILT_IN or Path(found["what"]).exists()):
        return spec, None
    return found["what"], parse_slice(found["part"], spec)


def _open_path(path: Path) -> Source:
    """What lies at an existing path."""
    suffix = path.suffix.lower()
    if path.is_dir():
        return open_folder(path)
    data = _open_data_file(str(path))
    if data is not None:
        return data
    if suffix in VIDEO_SUFFIXES:
        raise InputError(f"{path}: a video; write its frames into a folder first, e.g. ffmpeg -i {path.name} frames/%05d.png")
    if suffix not in SUFFIXES and suffix in (".parquet", ".safetensors", ".json", ".toml", ".txt", ".zip"):
        raise InputError(f"{path}: not images; name an image, a folder of images, an .npz or a .tfrecords file")
    return open_image(path)


def _open_data_file(spec: str) -> Source | None:
    """What an archive or a file of records holds; None where the text names neither."""
    for parse, open_it in _DATA_FILES:
        found = parse(spec)
        if found is not None:
            return open_it(found)
    return None


_DATA_FILES: tuple[tuple[Callable[[str], Any], Callable[[Any], Source]], ...] = (
    (parse_dsprites, open_dsprites),
    (parse_npz, open_npz),
    (parse_tfrecords, open_tfrecords),
)


def _open_built_in(name: str, count: int | None, seed: int) -> Source:
    """A generated set."""
    from pictolex.sources.synthetic import SyntheticSource

    return SyntheticSource(name, DEFAULT_COUNT if count is None else count, seed)


def _open_list(items: Sequence[Any]) -> Source:
    """Arrays of one shape become one source of that shape without a copy of all; text is a list of files."""
    if not items:
        raise InputError("an empty list of images; give at least one")
    if all(isinstance(item, str | os.PathLike) for item in items):
        from pictolex.sources.folder import FolderSource

        return FolderSource([Path(item) for item in items], title=f"list of {len(items)} files")
    arrays = [_as_array(item) for item in items]
    for i, array in enumerate(arrays):
        if array.ndim not in (2, 3):
            shape = "x".join(map(str, array.shape)) or "a single number"
            raise InputError(f"list[{i}]: {shape}; expected arrays of height x width, or height x width x channels")
    return ListSource(arrays)


def _open_array(array: NDArray[Any]) -> Source:
    """Many images, or one grey one (h, w)."""
    return ArraySource(array[None] if array.ndim == 2 else array)


def _as_array(value: Any) -> NDArray[Any]:
    """A NumPy array, a torch tensor (from any device) or anything else with `__array__`."""
    if isinstance(value, np.ndarray):
        return value
    for step in ("detach", "cpu"):
        value = getattr(value, step)() if callable(getattr(value, step, None)) else value
    if not hasattr(value, "__array__"):
        raise InputError(f"images of type {type(value).__name__}; expected a path, a built-in name, an array, a tensor or a list of arrays")
    try:
        return np.asarray(value)
    except (TypeError, ValueError, RuntimeError) as error:
        reason = (str(error).splitlines() or [""])[0]
        raise InputError(f"images of type {type(value).__name__} cannot become a NumPy array ({reason}); convert them first") from None


def _nearest(spec: str) -> str:
    """What was perhaps meant."""
    near = difflib.get_close_matches(spec, BUILT_IN, n=1)
    return f"did you mean '{near[0]}'?" if near else "built-in sets: " + ", ".join(BUILT_IN)
