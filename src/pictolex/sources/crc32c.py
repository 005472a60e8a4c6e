"""The checksum of TFRecord files: CRC-32C (Castagnoli), many bytes at a time."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

_POLYNOMIAL = 0x82F63B78
_ONES = 0xFFFFFFFF
_BLOCK = 512
_MASK = 0xA282EAD8

_Table = NDArray[np.uint32]


def masked_crc32c(data: bytes) -> int:
    """The checksum as TFRecord files store it: rotated and shifted, so that a checksum of data with checksums in it is sound."""
    crc = crc32c(data)
    return (((crc >> 15) | (crc << 17)) + _MASK) & _ONES


def crc32c(data: bytes) -> int:
    """A CRC is linear: each block is the sum (xor) of what its bytes give at their places, and blocks follow each other by a shift."""
    if len(data) < 4:
        return _ONES ^ _bytewise(data)
    count = -(-len(data) // _BLOCK)
    padded = np.zeros(count * _BLOCK, np.uint8)
    start = padded.size - len(data)
    padded[start:] = np.frombuffer(data, np.uint8)
    padded[start : start + 4] ^= 255
    places, (low, second, third, high) = _tables()
    blocks = np.bitwise_xor.reduce(places.ravel()[padded.reshape(count, _BLOCK) + np.arange(_BLOCK) * 256], axis=1)
    crc = 0
    for block in blocks.tolist():
        crc = low[crc & 255] ^ second[crc >> 8 & 255] ^ third[crc >> 16 & 255] ^ high[crc >> 24] ^ block
    return _ONES ^ crc


def _bytewise(data: bytes) -> int:
    """One byte after the other, as the definition says."""
    step, crc = _byte_table().tolist(), _ONES
    for byte in data:
        crc = crc >> 8 ^ step[(crc ^ byte) & 255]
    return crc


def _byte_table() -> _Table:
    """What a byte gives by itself."""
    table = np.arange(256, dtype=np.uint32)
    for _ in range(8):
        table = np.where(table & 1, table >> 1 ^ np.uint32(_POLYNOMIAL), table >> 1)
    return table


@lru_cache(maxsize=1)
def _tables() -> tuple[_Table, Sequence[Sequence[int]]]:
    """What a byte gives at each place of a block; and what each byte of a checksum becomes when a block follows it."""
    step = _byte_table()

    def shifted(table: _Table) -> _Table:
        made: _Table = table >> 8 ^ step[table & 255]
        return made

    places = np.empty((_BLOCK, 256), np.uint32)
    places[-1] = step
    for place in range(_BLOCK - 2, -1, -1):
        places[place] = shifted(places[place + 1])
    follow = []
    for byte in range(4):
        table = np.arange(256, dtype=np.uint32) << np.uint32(8 * byte)
        for _ in range(_BLOCK):
            table = shifted(table)
        follow.append(table.tolist())
    return places, follow
