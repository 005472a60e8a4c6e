"""Files in the formats of published data sets, written by the definition of each format and with nothing of the program."""

from __future__ import annotations

import gzip
import struct
from collections.abc import Iterable, Mapping
from pathlib import Path

import numpy as np

Value = np.ndarray | bytes


def crc32c(data: bytes) -> int:
    """Bit by bit, by the reversed Castagnoli polynomial."""
    crc = 0xFFFFFFFF
    for byte in data:
        crc ^= byte
        for _ in range(8):
            crc = crc >> 1 ^ (0x82F63B78 if crc & 1 else 0)
    return crc ^ 0xFFFFFFFF


def masked(data: bytes) -> bytes:
    crc = crc32c(data)
    return struct.pack("<I", ((crc >> 15 | crc << 17) + 0xA282EAD8) % 2**32)


def framed(record: bytes) -> bytes:
    length = struct.pack("<Q", len(record))
    return length + masked(length) + record + masked(record)


def varint(number: int) -> bytes:
    number %= 2**64
    return bytes([number]) if number < 128 else bytes([number & 127 | 128]) + varint(number >> 7)


def field(number: int, content: bytes) -> bytes:
    return varint(number << 3 | 2) + varint(len(content)) + content


def feature(value: Value, packed: bool = True) -> bytes:
    """Floats and integers as lists; uint8 as published, one text of one byte for each; bytes as one text."""
    if isinstance(value, bytes):
        return field(1, field(1, value))
    flat = value.ravel()
    if value.dtype == np.uint8:
        return field(1, b"".join(field(1, bytes([byte])) for byte in flat.tolist()))
    if value.dtype.kind == "f":
        each = [struct.pack("<f", one) for one in flat.tolist()]
        return field(2, field(1, b"".join(each)) if packed else b"".join(b"\x0d" + one for one in each))
    each = [varint(one) for one in flat.tolist()]
    return field(3, field(1, b"".join(each)) if packed else b"".join(b"\x08" + one for one in each))


def example(features: Mapping[str, Value], packed: bool = True) -> bytes:
    entries = (field(1, field(1, name.encode()) + field(2, feature(value, packed))) for name, value in features.items())
    return field(1, b"".join(entries))


def write_records(path: Path, examples: Iterable[Mapping[str, Value]], packed: bool = True) -> Path:
    """A gzip file unless `packed` is false."""
    data = b"".join(framed(example(one)) for one in examples)
    path.write_bytes(gzip.compress(data, mtime=0) if packed else data)
    return path


def tetrominoes(seed: int) -> dict[str, Value]:
    """One scene as published: 35x35, the background and three objects, later ones in front where they overlap."""
    rng = np.random.default_rng(seed)
    image, mask = np.zeros((35, 35, 3), np.uint8), np.zeros((4, 35, 35, 1), np.uint8)
    for k in range(1, 4):
        y, x = rng.integers(0, 25, 2)
        mask[k, y : y + 10, x : x + 10] = 255
        image[y : y + 10, x : x + 10] = rng.integers(0, 255, 3)
    mask[0] = 255 * (mask[1:].sum(0) == 0)
    factors = {name: rng.random(4).astype(np.float32) for name in ("x", "y", "shape", "visibility")}
    return {"image": image, "mask": mask, **factors, "color": rng.random((4, 3)).astype(np.float32)}


def dsprites(entities: int, channels: int, seed: int = 0) -> dict[str, Value]:
    """One scene of Multi-dSprites as published: 64x64, masks with the entities last."""
    rng = np.random.default_rng(seed)
    ids = rng.integers(0, entities, (64, 64))
    factors = {name: rng.random(entities).astype(np.float32) for name in ("x", "y", "shape", "visibility", "orientation", "scale")}
    return {
        "image": rng.integers(0, 256, (64, 64, channels), dtype=np.uint8),
        "mask": (255 * (ids[..., None] == np.arange(entities))).astype(np.uint8)[..., None],
        "color": rng.random((entities, channels)).astype(np.float32),
        **factors,
    }


def clevr(seed: int = 0) -> dict[str, Value]:
    """One scene of CLEVR with masks as published, but for the pixels as one text, to be quick: 240x320, eleven entities."""
    rng = np.random.default_rng(seed)
    ids = rng.integers(0, 11, (240, 320))
    factors = {name: rng.random(11).astype(np.float32) for name in ("x", "y", "z", "rotation", "visibility")}
    codes = {name: rng.integers(0, 8, 11, dtype=np.uint8) for name in ("size", "material", "shape", "color")}
    return {
        "image": rng.integers(0, 256, (240, 320, 3), dtype=np.uint8).tobytes(),
        "mask": (255 * (ids == np.arange(11)[:, None, None])).astype(np.uint8).tobytes(),
        "pixel_coords": rng.random((11, 3)).astype(np.float32),
        **factors,
        **codes,
    }


def objects_room(entities: int, seed: int = 0) -> dict[str, Value]:
    """One scene of Objects Room as published: sky, floor and two walls come before the objects."""
    rng = np.random.default_rng(seed)
    ids = rng.integers(0, entities, (64, 64))
    mask = (255 * (ids == np.arange(entities)[:, None, None])).astype(np.uint8)[..., None]
    return {"image": rng.integers(0, 256, (64, 64, 3), dtype=np.uint8), "mask": mask}
