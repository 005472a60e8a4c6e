"""dSprites (Matthey et al. 2017) as published: an archive of 737,280 binary images of one sprite with their latent factors."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from pictolex.errors import InputError
from pictolex.sources.arrays import Names
from pictolex.sources.base import Source, SourceBase, resolve
from pictolex.sources.image import Image, as_image
from pictolex.sources.npz import Archive, Header, NpzSpec, parse_npz
from pictolex.sources.spool import Spool

IMAGES, CLASSES, VALUES = "imgs", "latents_classes", "latents_values"
SHAPE_COLUMN = 1
_AT_ONCE = 1024


class DSpritesSource(SourceBase):
    """The images of such an archive, 0 black and 1 white; unpacked as far as was asked for, and kept as bits."""

    def __init__(self, path: Path, header: Header) -> None:
        self._path = path
        self._count, self._height, self._width = header.shape
        self._spool = Spool(partial(_rows_of_bits, path), -(-self._height * self._width // 8), str(path))
        self._names = Names(path.stem, self._count)

    def __len__(self) -> int:
        return self._count

    @property
    def names(self) -> Sequence[str]:
        """One name an image."""
        return self._names

    def shape(self, i: int) -> tuple[int, int, int]:
        """Height, width, channels of image i."""
        self.check_index(i)
        return self._height, self._width, 1

    def read(self, i: int) -> Image:
        """Image i."""
        i = self.check_index(i)
        bits = np.unpackbits(np.frombuffer(self._spool.row(i), np.uint8), count=self._height * self._width)
        return as_image(bits.reshape(self._height, self._width).astype(np.bool_), self._names[i])

    def describe(self) -> str:
        """One line for people."""
        return f"{self._path}: dSprites, {self._count} images of {self._height}x{self._width}, grey"


def parse_dsprites(text: str) -> NpzSpec | None:
    """A spec of such an archive, told by its keys, whose images are asked for; else None."""
    spec = parse_npz(text)
    if spec is None or spec.path.suffix.lower() != ".npz" or spec.key not in (None, IMAGES):
        return None
    with Archive(spec.path) as archive:
        told = {IMAGES, CLASSES} <= set(archive.keys) and (spec.key == IMAGES or "images" not in archive.keys)
    return spec if told else None


def open_dsprites(spec: NpzSpec) -> Source:
    """The images, or a part of them."""
    with Archive(spec.path) as archive, archive.stream(IMAGES) as (header, _):
        _check(header, spec.path)
    source = DSpritesSource(spec.path, header)
    indices = resolve(spec.part or slice(None), len(source))
    if len(indices) == 0:
        raise InputError(f"{spec.path}: no images left of {len(source)} by the slice; choose another one")
    return source if spec.part is None else source.take(indices)


def latents(spec: NpzSpec) -> dict[str, NDArray[np.generic]]:
    """Classes, and values where they are there, of all images. The pickled `metadata` of the archive is never touched."""
    with Archive(spec.path) as archive:
        count = archive.shape(IMAGES)[0]
        found = {key: archive.read(key) for key in (CLASSES, VALUES) if key in archive.keys}
    for key, array in found.items():
        if array.ndim != 2 or len(array) != count or array.shape[1] <= SHAPE_COLUMN or array.dtype.kind not in "iuf":
            raise InputError(f"{spec.path}: {key} of shape {array.shape} for {count} images; expected {count}x6 numbers")
    return found


def _check(header: Header, path: Path) -> None:
    """The images are what they are in the published file."""
    if len(header.shape) != 3 or 0 in header.shape or header.dtype not in (np.uint8, np.bool_) or header.columns_first:
        shape = "x".join(map(str, header.shape))
        raise InputError(
            f"{path}: '{IMAGES}' of type {header.dtype}, {shape}; expected uint8, images x height x width: fetch the file again"
        )


def _rows_of_bits(path: Path) -> Iterator[bytes]:
    """Some images at a time, eight pixels a byte."""
    with Archive(path) as archive, archive.stream(IMAGES) as (header, stream):
        area = header.shape[1] * header.shape[2]
        for start in range(0, header.shape[0], _AT_ONCE):
            count = min(_AT_ONCE, header.shape[0] - start)
            data = stream.read(count * area)
            if len(data) < count * area:
                raise EOFError("it ends early")
            pixels = np.frombuffer(data, np.uint8).reshape(count, area)
            if int(pixels.max()) > 1:
                raise InputError(f"{path}: '{IMAGES}' has values up to {pixels.max()}; expected 0 and 1: store them under the key 'images'")
            yield np.packbits(pixels, axis=1).tobytes()
