"""Multi-Object Datasets (Kabra et al. 2019) as published: TFRecord files of images with masks and factors, read without TensorFlow."""

from __future__ import annotations

import re
from collections.abc import Container, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pictolex.errors import InputError
from pictolex.sources.arrays import Names
from pictolex.sources.base import Source, SourceBase, resolve
from pictolex.sources.example import Feature, parse_example
from pictolex.sources.image import Image, as_image
from pictolex.sources.npz import parse_slice
from pictolex.sources.spool import Spool
from pictolex.sources.tfrecord import count_records, records

_SPEC = re.compile(r"^(?P<path>.*\.tfrecords?(?:\.gz)?)(?P<part>\[[^\[\]]*\])?$", re.IGNORECASE | re.DOTALL)
_ENDING = re.compile(r"\.tfrecords?(\.gz)?$", re.IGNORECASE)
_PIXELS = ("image", "mask")


@dataclass(frozen=True)
class RecordSpec:
    """A TFRecord file, and which of its images."""

    path: Path
    part: slice | None = None

    @property
    def stop(self) -> int | None:
        """How far the file has to be read, where the part says so without knowing its length."""
        part = self.part
        if part is None or part.stop is None or part.stop < 0 or (part.start or 0) < 0 or (part.step or 1) < 0:
            return None
        return int(part.stop)


@dataclass(frozen=True)
class Kind:
    """One of the published sets: told by the size of its images and by the factors it has or lacks.

    Masks are stored by entity, or with entities last. The first `backgrounds` entities are no objects.
    """

    name: str
    height: int
    width: int
    has: frozenset[str] = frozenset()
    lacks: frozenset[str] = frozenset()
    entities_last: bool = False
    backgrounds: int = 1

    def fits(self, sizes: dict[str, int]) -> bool:
        """Whether features of these sizes are of this kind."""
        area = self.height * self.width
        entities, rest = divmod(sizes.get("mask", 0), area)
        pixels = sizes.get("image") in (area, 3 * area) and 0 < entities < 256 and rest == 0
        return pixels and self.has <= sizes.keys() and not self.lacks & sizes.keys()

    def instances(self, mask: Feature) -> NDArray[np.uint8]:
        """Instance ids (height, width): 0 where no object is, later ones in front."""
        last = mask.reshape(self.height, self.width, -1)
        planes = np.moveaxis(last, 2, 0) if self.entities_last else mask.reshape(-1, self.height, self.width)
        objects = planes[self.backgrounds :] != 0
        ids = np.arange(1, len(objects) + 1, dtype=np.uint8)
        found: NDArray[np.uint8] = (objects * ids[:, None, None]).max(axis=0, initial=0).astype(np.uint8)
        return found


KINDS = (
    Kind("Tetrominoes", 35, 35, has=frozenset(("x", "y", "shape", "color"))),
    Kind("Multi-dSprites", 64, 64, has=frozenset(("x", "y", "scale", "orientation")), entities_last=True),
    Kind("CLEVR with masks", 240, 320, has=frozenset(("x", "y", "material", "rotation"))),
    Kind("Objects Room", 64, 64, lacks=frozenset(("x", "y", "shape", "scale")), backgrounds=4),
)


def parse_tfrecords(spec: str) -> RecordSpec | None:
    """A spec such as `set.tfrecords` or `set.tfrecords[:4500]`, or None. An existing path wins over its reading."""
    found = _SPEC.match(spec)
    if found is None:
        return None
    if found["part"] is None or Path(spec).exists():
        return RecordSpec(Path(spec))
    return RecordSpec(Path(found["path"]), parse_slice(found["part"], spec))


@dataclass(frozen=True)
class RecordFile:
    """A file of a known kind, of which `count` images are read; `whole` where that is all of them."""

    path: Path
    kind: Kind
    channels: int
    count: int
    whole: bool

    @property
    def image_shape(self) -> tuple[int, int, int]:
        """Height, width, channels."""
        return self.kind.height, self.kind.width, self.channels

    def examples(self, wanted: Container[str] | None = None) -> Iterator[dict[str, Feature]]:
        """The features of each record in order."""
        for i, record in enumerate(records(self.path, self.count if self.whole else None)):
            yield _parsed(record, wanted, self.path, i)

    def images(self) -> Spool:
        """The bytes of each image."""
        return Spool(partial(_image_rows, self), self.kind.height * self.kind.width * self.channels, str(self.path))

    def truth(self) -> tuple[Spool, np.dtype[Any]]:
        """Each record's instance ids (`mask`) and factors as the bytes of one structured value, and what that is made of."""
        first = next(self.examples())
        row = np.dtype([("mask", np.uint8, (self.kind.height, self.kind.width)), *_factor_types(first, self.kind)])
        return Spool(partial(_truth_rows, self, row), row.itemsize, str(self.path)), row


class RecordSource(SourceBase):
    """The images of a file, unpacked once, in order, when they are asked for."""

    def __init__(self, file: RecordFile) -> None:
        self._file = file
        self._spool = file.images()
        self._names = Names(_ENDING.sub("", file.path.name), file.count)

    def __len__(self) -> int:
        return self._file.count

    @property
    def names(self) -> Sequence[str]:
        """One name an image."""
        return self._names

    def shape(self, i: int) -> tuple[int, int, int]:
        """Height, width, channels of image i."""
        self.check_index(i)
        return self._file.image_shape

    def read(self, i: int) -> Image:
        """Image i."""
        i = self.check_index(i)
        pixels = np.frombuffer(self._spool.row(i), np.uint8).reshape(self._file.image_shape)
        return as_image(pixels, self._names[i])

    def describe(self) -> str:
        """One line for people."""
        height, width, channels = self._file.image_shape
        kind = f"{self._file.kind.name}, {len(self)} images of {height}x{width}"
        return f"{self._file.path}: {kind}, {'grey' if channels == 1 else 'RGB'}"


def open_tfrecords(spec: RecordSpec) -> Source:
    """The images of a file, or a part of them."""
    source = RecordSource(open_records(spec))
    indices = chosen(spec, len(source))
    return source if spec.part is None else source.take(indices)


def open_records(spec: RecordSpec) -> RecordFile:
    """A file, told by its first record."""
    first = next(records(spec.path), None)
    if first is None:
        raise InputError(f"{spec.path}: an empty file; fetch it again")
    sizes = {name: feature.size for name, feature in _parsed(first, None, spec.path, 0).items()}
    kind = next((kind for kind in KINDS if kind.fits(sizes)), None)
    if kind is None:
        held = ", ".join(f"{name} ({size})" for name, size in sorted(sizes.items())) or "no features"
        known = ", ".join(f"{kind.name} ({kind.height}x{kind.width})" for kind in KINDS)
        raise InputError(f"{spec.path}: records that hold {held} are of no kind known here; known are {known}: see docs/data.md")
    channels = sizes["image"] // (kind.height * kind.width)
    return RecordFile(spec.path, kind, channels, count_records(spec.path, spec.stop), spec.stop is None)


def chosen(spec: RecordSpec, count: int) -> NDArray[np.int64]:
    """The images that the spec asks for."""
    indices = resolve(spec.part or slice(None), count)
    if len(indices) == 0:
        raise InputError(f"{spec.path}: no images left by the slice; choose another one")
    return indices


def _parsed(record: bytes, wanted: Container[str] | None, path: Path, i: int) -> dict[str, Feature]:
    try:
        return parse_example(record, wanted)
    except ValueError as error:
        raise InputError(f"{path}: record {i} is not a tf.train.Example ({error}); name a file of Multi-Object Datasets") from None


def _image_rows(file: RecordFile) -> Iterator[bytes]:
    """The bytes of each image."""
    size = file.kind.height * file.kind.width * file.channels
    for i, example in enumerate(file.examples(("image",))):
        yield _sized(example, "image", size, file.path, i).tobytes()


def _truth_rows(file: RecordFile, row: np.dtype[Any]) -> Iterator[bytes]:
    """Instance ids and factors of each image."""
    entities = next(file.examples(("mask",)))["mask"].size
    for i, example in enumerate(file.examples()):
        value = np.zeros((), row)
        value["mask"] = file.kind.instances(_sized(example, "mask", entities, file.path, i))
        for name in (row.names or ())[1:]:
            shape = row[name].shape
            value[name] = _sized(example, name, int(np.prod(shape)), file.path, i).reshape(shape)
        yield value.tobytes()


def _factor_types(example: dict[str, Feature], kind: Kind) -> list[tuple[str, np.dtype[Any], tuple[int, ...]]]:
    """One value, or several, for each entity."""
    entities = example["mask"].size // (kind.height * kind.width)
    made: list[tuple[str, np.dtype[Any], tuple[int, ...]]] = []
    for name in sorted(example.keys() - set(_PIXELS)):
        each, rest = divmod(example[name].size, entities)
        shape = (example[name].size,) if rest else (entities,) if each == 1 else (entities, each)
        made.append((name, example[name].dtype, shape))
    return made


def _sized(example: dict[str, Feature], name: str, size: int, path: Path, i: int) -> Feature:
    """A feature that every record has in one size."""
    found = example.get(name)
    if found is None or found.size != size:
        got = "none" if found is None else f"one of {found.size}"
        raise InputError(
            f"{path}: record {i} should have a feature '{name}' of {size} values and has {got}; fetch it again, or read {path}[:{i}]"
        )
    return found
