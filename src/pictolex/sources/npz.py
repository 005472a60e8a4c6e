"""NumPy archives: `file.npz`, `file.npz:key`, `file.npz:key[:4500]`, and single arrays in `.npy` files."""

from __future__ import annotations

import re
import zipfile
import zlib
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray

from pictolex.errors import InputError
from pictolex.sources.arrays import ArraySource, Names
from pictolex.sources.base import resolve

_DAMAGE = (OSError, EOFError, zipfile.BadZipFile, zlib.error)
_SPEC = re.compile(r"^(?P<path>.*\.np[zy])(?::(?P<key>[^:\[\]]+))?(?P<part>\[[^\[\]]*\])?$", re.IGNORECASE | re.DOTALL)


@dataclass(frozen=True)
class Header:
    """What an array is, without reading it."""

    shape: tuple[int, ...]
    columns_first: bool
    dtype: np.dtype[Any]


@dataclass(frozen=True)
class NpzSpec:
    """A file, the key of the images in it (None: the usual one), and which of them."""

    path: Path
    key: str | None = None
    part: slice | None = None

    @property
    def prefix(self) -> str:
        """What stands before `images` in the key, so that `train_images` finds `train_labels`."""
        return self.key[: -len("images")] if self.key and self.key.endswith("images") else ""

    def __str__(self) -> str:
        return f"{self.path}{':' + self.key if self.key else ''}"


def parse_npz(spec: str) -> NpzSpec | None:
    """A spec of this kind, or None; a Windows drive letter is part of the path. An existing path wins over its reading."""
    if Path(spec).suffix.lower() in (".npz", ".npy") and Path(spec).exists():
        return NpzSpec(Path(spec))
    found = _SPEC.match(spec)
    if found is None:
        return None
    return NpzSpec(Path(found["path"]), found["key"], parse_slice(found["part"], spec) if found["part"] else None)


def parse_slice(text: str, spec: str) -> slice:
    """`[:4500]`, `[10:20]`, `[::2]`, `[-500:]`, `[7]` as a slice."""
    found = re.fullmatch(r"\[\s*(-?\d+)?\s*(?:(:)\s*(-?\d+)?\s*(?::\s*(-?\d+)?\s*)?)?\]", text)
    if found is None or (found[1] is None and found[2] is None):
        raise InputError(f"{spec}: {text} is not a slice; write [start:stop], [start:stop:step] or [index]")
    start, stop, step = (None if part is None else int(part) for part in (found[1], found[3], found[4]))
    if step == 0:
        raise InputError(f"{spec}: {text} has a step of 0; write a step of 1 or more")
    if found[2] is None and start is not None:
        return slice(start, None if start == -1 else start + 1)
    return slice(start, stop, step)


class Archive:
    """An open .npz (or .npy) file whose errors name the file, what is wrong and the fix; no pickles."""

    def __init__(self, path: Path) -> None:
        if not path.exists():
            raise InputError(f"{path}: no such file; check the path")
        if path.is_dir():
            raise InputError(f"{path}: is a folder, not an .npz file")
        self.path = path
        self._single = path.suffix.lower() == ".npy"
        with ExitStack() as stack:
            try:
                self._file: Any = np.load(path, mmap_mode="r") if self._single else np.load(stack.enter_context(_zip_stream(path)))
            except PermissionError:
                raise InputError(f"{path}: may not be read; change its permissions") from None
            except (OSError, ValueError, EOFError, zipfile.BadZipFile) as error:
                reason = _short(error)
                raise InputError(f"{path}: not a readable NumPy archive ({reason}); write it anew with numpy.savez_compressed") from None
            self._stack = stack.pop_all()

    def __enter__(self) -> Archive:
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()

    @property
    def keys(self) -> tuple[str, ...]:
        """The arrays in it."""
        return () if self._single else tuple(self._file.files)

    def read(self, key: str | None) -> NDArray[np.generic]:
        """One array; None is the only one of an .npy file."""
        if self._single:
            array: NDArray[np.generic] = self._file
            return array
        try:
            loaded: NDArray[np.generic] = self._file[key]
        except KeyError:
            raise InputError(f"{self.path}: no array '{key}' in it; it has {self.contents()}") from None
        except _DAMAGE as error:
            raise InputError(f"{self.path}: '{key}' is damaged ({_short(error)}); fetch or write the file again") from None
        except ValueError as error:
            raise InputError(f"{self.path}: '{key}' cannot be used ({_short(error)}); store a plain array of one shape") from None
        return loaded

    def shape(self, key: str) -> tuple[int, ...]:
        """The shape of an array from its header alone."""
        with self._member(key) as stream:
            return _header(stream).shape

    @contextmanager
    def stream(self, key: str) -> Iterator[tuple[Header, IO[bytes]]]:
        """An array of the archive to be read piece by piece: its header, and a stream of its values. Damage is told as by `read`."""
        try:
            with self._member(key) as stream:
                yield _header(stream), stream
        except (*_DAMAGE, ValueError) as error:
            raise InputError(f"{self.path}: '{key}' is damaged ({_short(error)}); fetch or write the file again") from None

    def _member(self, key: str) -> IO[bytes]:
        """The file of an array in the archive."""
        member: IO[bytes] = self._file.zip.open(key if key in self._file.zip.namelist() else f"{key}.npy")
        return member

    def contents(self) -> str:
        """The arrays and their shapes, for error messages."""
        told = []
        for key in self.keys:
            try:
                told.append(f"{key} ({'x'.join(map(str, self.shape(key))) or 'scalar'})")
            except (KeyError, OSError, ValueError, EOFError, zipfile.BadZipFile, zlib.error):
                told.append(key)
        return ", ".join(told) or "no arrays"

    def image_key(self, key: str | None) -> str:
        """The key of the images: the one asked for, else `images`, else the only array."""
        if key is not None or "images" in self.keys:
            return key or "images"
        if len(self.keys) == 1:
            return self.keys[0]
        fitting = [k for k in self.keys if k.endswith("images")] or list(self.keys)
        if not fitting:
            raise InputError(
                f"{self.path}: an archive without arrays; write images into it with numpy.savez_compressed(path, images=images)"
            )
        raise InputError(f"{self.path}: no array 'images' in it; it has {self.contents()}: write {self.path}:{fitting[0]}")


def open_npz(spec: NpzSpec) -> ArraySource:
    """The images of an archive, held as they are stored."""
    with Archive(spec.path) as archive:
        key = None if spec.path.suffix.lower() == ".npy" else archive.image_key(spec.key)
        array = archive.read(key)
        title = str(spec.path) if key in (None, "images") else f"{spec.path}:{key}"
        if array.ndim == 0:
            raise InputError(f"{title}: a single value, not images; it has {archive.contents()}")
        matrices = archive.read("view_matrices") if "view_matrices" in archive.keys and array.ndim in (4, 5) else None
        view_names = archive.read("view_names") if matrices is not None and "view_names" in archive.keys else None
    count = len(array)
    indices = resolve(spec.part or slice(None), count)
    if len(indices) == 0:
        raise InputError(f"{title}: no images left of {count} by the slice; choose another one")
    if spec.part is not None:
        array = array[spec.part].copy() if 2 * len(indices) < count else array[spec.part]
    views: Sequence[str] = ("",)
    per_scene = 1
    float_matrices: NDArray[np.float32] | None = None
    if matrices is not None:
        float_matrices = matrices.astype(np.float32)
        per_scene = len(matrices)
        views = [str(n) for n in view_names] if view_names is not None else [f"view-{j}" for j in range(per_scene)]
    step = int(indices[1] - indices[0]) if len(indices) > 1 else 1
    names = Names(spec.path.stem, len(indices) * per_scene, int(indices[0]), step, views)
    return ArraySource(array, title=title, names=names, view_matrices=float_matrices)


def _zip_stream(path: Path) -> IO[bytes]:
    """The file, opened, if it begins as an .npz does; NumPy itself leaves broken files open."""
    stream = path.open("rb")
    if stream.read(2) == b"PK":
        stream.seek(0)
        return stream
    stream.close()
    raise ValueError("it is not a zip file")


def _header(stream: IO[bytes]) -> Header:
    """The header of an .npy stream, which then stands at the values."""
    version = np.lib.format.read_magic(stream)
    read = np.lib.format.read_array_header_1_0 if version == (1, 0) else np.lib.format.read_array_header_2_0
    return Header(*read(stream))


def _short(error: Exception) -> str:
    """The first line of an error, without its trailing stop."""
    return (str(error).splitlines() or [type(error).__name__])[0].rstrip(".")[:120]
