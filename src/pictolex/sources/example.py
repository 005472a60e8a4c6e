"""tf.train.Example messages, read off the protocol buffer wire format: features by name, each a flat array."""

from __future__ import annotations

from collections.abc import Callable, Container, Iterator

import numpy as np
from numpy.typing import NDArray

Feature = NDArray[np.generic]
_Reach = Callable[[memoryview, int], tuple[int, int]]


def parse_example(message: bytes, wanted: Container[str] | None = None) -> dict[str, Feature]:
    """The features of an Example, or the wanted ones: uint8, float32 or int64. ValueError where it is none."""
    found: dict[str, Feature] = {}
    for features in _inside(memoryview(message), 1):
        for entry in _inside(features, 1):
            name = b"".join(_inside(entry, 1)).decode()
            if wanted is None or name in wanted:
                for feature in _inside(entry, 2):
                    found[name] = _feature(feature)
    return found


def _feature(message: memoryview) -> Feature:
    """A Feature holds one list: of bytes (1), floats (2) or integers (3)."""
    for number, _, values in _fields(message):
        if number in _LISTS:
            return _LISTS[number](_joined(values))
    return np.empty(0, np.uint8)


def _joined(values: memoryview) -> bytes:
    """The values of a list behind each other, packed or not; quickly where each is one byte, as the pixels of published sets are."""
    array = np.frombuffer(values, np.uint8)
    if array.size and array.size % 3 == 0:
        triples = array.reshape(-1, 3)
        if bool((triples[:, 0] == 0x0A).all() and (triples[:, 1] == 1).all()):
            return triples[:, 2].tobytes()
    return b"".join(_inside(values, 1))


def _bytes(joined: bytes) -> Feature:
    return np.frombuffer(joined, np.uint8)


def _floats(joined: bytes) -> Feature:
    return np.frombuffer(joined, "<f4").astype(np.float32)


def _integers(joined: bytes) -> Feature:
    view, at, values = memoryview(joined), 0, []
    while at < len(view):
        value, at = _varint(view, at)
        values.append(value - 2**64 if value >= 2**63 else value)
    return np.array(values, np.int64)


_LISTS: dict[int, Callable[[bytes], Feature]] = {1: _bytes, 2: _floats, 3: _integers}


def _inside(message: memoryview, wanted: int) -> Iterator[memoryview]:
    """What the fields of one number hold."""
    return (held for number, _, held in _fields(message) if number == wanted)


def _fields(message: memoryview) -> Iterator[tuple[int, int, memoryview]]:
    """Number, wire type and bytes of each field."""
    at = 0
    while at < len(message):
        tag, at = _varint(message, at)
        number, wire = tag >> 3, tag & 7
        if wire not in _REACHES or number == 0:
            raise ValueError(f"not a protocol buffer: field {number} of wire type {wire}")
        start, at = _REACHES[wire](message, at)
        if at > len(message):
            raise ValueError("not a protocol buffer: a field goes beyond the end")
        yield number, wire, message[start:at]


def _varint(message: memoryview, at: int) -> tuple[int, int]:
    """A number in groups of seven bits, and where it ends."""
    value = 0
    for shift, byte in zip(range(0, 70, 7), message[at : at + 10], strict=False):
        value |= (byte & 127) << shift
        if byte < 128:
            return value & (2**64 - 1), at + shift // 7 + 1
    raise ValueError("not a protocol buffer: a number without end")


def _delimited(message: memoryview, at: int) -> tuple[int, int]:
    length, start = _varint(message, at)
    return start, start + length


_REACHES: dict[int, _Reach] = {
    0: lambda message, at: (at, _varint(message, at)[1]),
    1: lambda message, at: (at, at + 8),
    2: _delimited,
    5: lambda message, at: (at, at + 4),
}
