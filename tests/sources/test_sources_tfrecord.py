"""Records and what they are made of: checksums, messages, counting, and rows kept on disk."""

from __future__ import annotations

import gzip
import pickle
import struct
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pictolex.errors import InputError
from pictolex.sources import tfrecord
from pictolex.sources.crc32c import crc32c, masked_crc32c
from pictolex.sources.example import parse_example
from pictolex.sources.spool import Spool
from pictolex.sources.tfrecord import count_records, records
from sources import published


def test_checksums_of_the_standard() -> None:
    """RFC 3720, B.4, and the usual check value."""
    assert crc32c(b"123456789") == 0xE3069283
    assert crc32c(bytes(32)) == 0x8A9136AA
    assert crc32c(b"\xff" * 32) == 0x62A8AB43
    assert crc32c(bytes(range(32))) == 0x46DD794E


@given(st.binary(max_size=2100))
def test_checksums_are_those_of_the_definition(data: bytes) -> None:
    assert crc32c(data) == published.crc32c(data)
    assert struct.pack("<I", masked_crc32c(data)) == published.masked(data)


def test_a_message_that_tensorflow_wrote() -> None:
    """From the TensorFlow tutorial on TFRecord and tf.train.Example."""
    message = (
        b"\nR\n\x14\n\x08feature2\x12\x08\n\x06\n\x04goat\n\x11\n\x08feature0\x12\x05\x1a\x03\n\x01\x00"
        b"\n\x14\n\x08feature3\x12\x08\x12\x06\n\x04[\xd3|?\n\x11\n\x08feature1\x12\x05\x1a\x03\n\x01\x04"
    )
    found = parse_example(message)
    assert set(found) == {"feature0", "feature1", "feature2", "feature3"}
    assert found["feature2"].tobytes() == b"goat"
    assert (found["feature0"].tolist(), found["feature1"].tolist()) == ([0], [4])
    np.testing.assert_allclose(found["feature3"], [0.9876], rtol=1e-6)
    assert set(parse_example(message, ("feature1",))) == {"feature1"}


@given(
    st.lists(st.integers(-(2**63), 2**63 - 1), max_size=9),
    st.lists(st.floats(width=32, allow_nan=False), max_size=9),
    st.binary(max_size=400),
    st.booleans(),
)
def test_messages_read_back(integers: list[int], floats: list[float], data: bytes, packed: bool) -> None:
    features = {"i": np.array(integers, np.int64), "f": np.array(floats, np.float32), "b": np.frombuffer(data, np.uint8), "t": data}
    found = parse_example(published.example(features, packed))
    for name, value in features.items():
        expected = np.frombuffer(value, np.uint8) if isinstance(value, bytes) else value
        np.testing.assert_array_equal(found[name], expected)


def test_texts_that_look_like_single_bytes_but_are_longer() -> None:
    message = published.example({"a": b"x\nyz"})
    assert parse_example(message)["a"].tobytes() == b"x\nyz"


def test_unknown_fields_are_passed_over() -> None:
    known = published.example({"a": np.array([1.5], np.float32)})
    message = b"\x10\x07" + b"\x19" + bytes(8) + known + b"\x25" + bytes(4) + published.field(9, b"later")
    assert parse_example(message)["a"].tolist() == [1.5]


@given(st.binary(min_size=1, max_size=60))
def test_anything_else_is_a_value_error_or_a_message(data: bytes) -> None:
    try:
        parse_example(data)
    except ValueError:
        return


@pytest.mark.parametrize("message", [b"\x0a\x05ab", b"\x0b\x00", b"\xff" * 12, b"\x80", b"\x00\x01", b"\x0d\x01"])
def test_broken_messages(message: bytes) -> None:
    with pytest.raises(ValueError, match="not a protocol buffer"):
        parse_example(message)


def write(path: Path, data: bytes, packed: bool) -> Path:
    path.write_bytes(gzip.compress(data) if packed else data)
    return path


@pytest.mark.parametrize("packed", [False, True])
@pytest.mark.parametrize("count", [0, 1, 7, 8, 9, 300])
@pytest.mark.parametrize("length", [16, 113, 1000])
def test_counting_by_the_size_of_the_file(packed: bool, count: int, length: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    one = published.framed(np.random.default_rng(0).integers(0, 256, length, dtype=np.uint8).tobytes())
    path = write(tmp_path / "a.tfrecords", one * count, packed)
    assert sum(1 for _ in records(path)) == count
    assert [count_records(path, stop) for stop in (None, 0, 1, 8, 250, 1000)] == [count, 0, *(min(count, n) for n in (1, 8, 250, 1000))]
    read: list[int] = []
    real = tfrecord.records
    monkeypatch.setattr(tfrecord, "records", lambda path: (read.append(len(one)) or one for one in real(path)))
    assert count_records(path) == count and len(read) <= 8


@pytest.mark.parametrize("packed", [False, True])
def test_counting_records_of_unlike_lengths(packed: bool, tmp_path: Path) -> None:
    data = b"".join(published.framed(bytes(n % 7 + 1)) for n in range(100))
    path = write(tmp_path / "a.tfrecords", data, packed)
    assert count_records(path) == 100 and count_records(path, 60) == 60
    divided = published.framed(bytes(4)) + published.framed(bytes(14)) * 10
    assert count_records(write(tmp_path / "c.tfrecords", divided, packed)) == 11
    alike = published.framed(bytes(20)) * 20 + published.framed(bytes(33))
    assert count_records(write(tmp_path / "b.tfrecords", alike, packed)) == 21


@pytest.mark.parametrize(
    ("count", "length"), [(1_000_000, 98_765), (1_000_000, 123_456), (70_000, 3_225_632), (60_000, 25_920), (922, 4096)]
)
def test_counting_where_the_size_is_beyond_32_bits(count: int, length: int, tmp_path: Path) -> None:
    path = tmp_path / "large.tfrecords"
    with path.open("wb") as stream:
        stream.write(b"\x1f\x8b")
        stream.truncate(max(100, count * length // 300))
        stream.seek(0, 2)
        stream.write(struct.pack("<I", count * length % 2**32))
    assert tfrecord._count_by_size(path, length) == count
    for wrong in (1, *(() if length % 2 else (count * length % 2**32 + 1,))):
        with path.open("r+b") as stream:
            stream.seek(-4, 2)
            stream.write(struct.pack("<I", wrong))
        assert tfrecord._count_by_size(path, length) is None


def test_many_gzip_members_are_counted_by_reading(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    members = [gzip.compress(published.framed(rng.bytes(100))) for _ in range(40)]
    path = tmp_path / "a.tfrecords"
    path.write_bytes(b"".join(members))
    assert count_records(path) == 40


def test_a_length_no_record_has(tmp_path: Path) -> None:
    length = struct.pack("<Q", 2**40)
    path = write(tmp_path / "a.tfrecords", length + published.masked(length) + bytes(50), False)
    with pytest.raises(InputError, match="a record of 1099511627776 bytes"):
        next(records(path))


# --- rows on disk ------------------------------------------------------------------------------------------------------


def counting() -> Iterator[bytes]:
    for i in range(0, 100, 4):
        yield b"".join(struct.pack("<I", n) for n in range(i, i + 4))


def test_rows_in_any_order_from_many_threads_and_pickled() -> None:
    spool = Spool(counting, 4, "numbers")
    order = np.random.default_rng(0).permutation(100).tolist()
    with ThreadPoolExecutor(4) as pool:
        assert [struct.unpack("<I", row)[0] for row in pool.map(spool.row, order)] == order
    assert pickle.loads(pickle.dumps(spool)).row(50) == struct.pack("<I", 50)


def test_what_is_missing_is_told_each_time() -> None:
    spool = Spool(counting, 4, "numbers")
    for _ in range(2):
        with pytest.raises(InputError, match=r"numbers: ends after 100 images, before it should; fetch it again, or read numbers\[:100\]"):
            spool.row(100)
    assert spool.row(99) == struct.pack("<I", 99)


def test_a_full_disk(monkeypatch: pytest.MonkeyPatch) -> None:
    spool = Spool(counting, 4, "numbers")

    class Full:
        def __init__(self) -> None:
            self.written = 0

        def seek(self, at: int) -> None: ...

        def write(self, block: bytes) -> int:
            self.written += 1
            if self.written > 3:
                raise OSError(28, "No space left on device")
            return len(block)

    monkeypatch.setattr(spool, "_file", Full())
    for _ in range(2):
        with pytest.raises(
            InputError, match=r"need more room than .* has \(No space left on device\); set TMPDIR .*, e\.g\. numbers\[:12\]"
        ):
            spool.row(50)


def test_an_interruption_loses_nothing() -> None:
    stops = [KeyboardInterrupt]

    def interrupted() -> Iterator[bytes]:
        for at, block in enumerate(counting()):
            if at == 5 and stops:
                raise stops.pop()
            yield block

    spool = Spool(interrupted, 4, "numbers")
    with pytest.raises(KeyboardInterrupt):
        spool.row(70)
    assert spool.row(70) == struct.pack("<I", 70)
    assert spool.row(3) == struct.pack("<I", 3)
