"""TFRecord files without TensorFlow: records one after the other, gzip or not, each with checksums of its length and its bytes."""

from __future__ import annotations

import gzip
import zlib
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import IO

from pictolex.errors import InputError
from pictolex.sources.crc32c import masked_crc32c

_GZIP = b"\x1f\x8b"
_HEADER = 12
_CRC = 4
_LARGEST = 2**30
_PEEKED = 8
_MOST_PACKED = 1032  # deflate makes nothing smaller than this


def records(path: Path, expected: int | None = None) -> Iterator[bytes]:
    """The records in order, checked. More of them than expected are an error, told with the last expected one."""
    at = 0
    try:
        with _opened(path) as stream:
            while header := stream.read(_HEADER):
                record = _record(header, stream)
                if at + 1 == expected and stream.read(1):
                    raise InputError(f"{path}: has more than the {expected} records its size tells of; unpack it first, with gunzip")
                yield record
                at += 1
    except EOFError:
        raise InputError(
            f"{path}: ends in the middle of record {at}, as a download that stopped; fetch it again{_before(path, at)}"
        ) from None
    except (ValueError, zlib.error, gzip.BadGzipFile) as error:
        if at == 0:
            raise InputError(f"{path}: not a TFRecord file ({error}); fetch it again, or name another file") from None
        raise InputError(f"{path}: damaged at record {at} ({error}); fetch it again{_before(path, at)}") from None
    except OSError as error:
        raise InputError(f"{path}: cannot be read ({error.strerror or error}); check the file and its permissions") from None


def count_records(path: Path, stop: int | None = None) -> int:
    """How many records there are, up to `stop`.

    Records of one length are counted by the size of the file, so that large files open at once: a gzip file ends with its unpacked
    size modulo 2^32, which the length of a record divides in one way only. Other files are read through.
    """
    lengths = [len(record) for record in islice(records(path), _PEEKED if stop is None else min(stop, _PEEKED))]
    if len(lengths) < _PEEKED:
        return len(lengths)
    count = _count_by_size(path, lengths[0] + _HEADER + _CRC) if len(set(lengths)) == 1 else None
    if count is None:
        count = sum(1 for _ in islice(records(path), stop))
    return count if stop is None else min(count, stop)


def _count_by_size(path: Path, length: int) -> int | None:
    """By division; None where that gives no sound answer."""
    packed = path.stat().st_size
    if not _is_packed(path):
        count, rest = divmod(packed, length)
        return None if rest else count
    with path.open("rb") as stream:
        stream.seek(-4, 2)
        size = int.from_bytes(stream.read(4), "little")
    twos = length & -length
    modulus = 2**32 // twos
    if size % twos:
        return None
    count = size // twos * pow(length // twos, -1, modulus) % modulus
    sound = 0.9 * packed <= count * length <= _MOST_PACKED * packed < (count + modulus) * length
    return count if sound else None


def _opened(path: Path) -> IO[bytes] | gzip.GzipFile:
    """The unpacked bytes, whether the file is packed or not."""
    if not path.exists():
        raise InputError(f"{path}: no such file; check the path")
    if path.is_dir():
        raise InputError(f"{path}: is a folder, not a TFRecord file")
    return gzip.GzipFile(path) if _is_packed(path) else path.open("rb")


def _is_packed(path: Path) -> bool:
    """Told by the first bytes: servers and browsers may unpack what they transfer, and keep its name."""
    with path.open("rb") as stream:
        return stream.read(len(_GZIP)) == _GZIP


def _record(header: bytes, stream: IO[bytes] | gzip.GzipFile) -> bytes:
    """One record: length (8 bytes), checksum of the length, bytes, checksum of the bytes."""
    if len(header) < _HEADER:
        raise EOFError
    if _stored(header[8:]) != masked_crc32c(header[:8]):
        raise ValueError("the checksum of a record's length is wrong")
    length = int.from_bytes(header[:8], "little")
    if length > _LARGEST:
        raise ValueError(f"a record of {length} bytes")
    body = stream.read(length + _CRC)
    if len(body) < length + _CRC:
        raise EOFError
    data = body[:length]
    if _stored(body[length:]) != masked_crc32c(data):
        raise ValueError("a record's checksum is wrong")
    return data


def _stored(crc: bytes) -> int:
    """A checksum as it is written."""
    return int.from_bytes(crc, "little")


def _before(path: Path, at: int) -> str:
    """What can be read nonetheless."""
    return f", or read what comes before: {path}[:{at}]" if at else ""
