"""Multi-Object Datasets as published: every kind, any order, and every way a file can be broken told in one line."""

from __future__ import annotations

import gzip
import subprocess
import sys
from itertools import islice
from pathlib import Path

import numpy as np
import pytest

from pictolex.errors import InputError
from pictolex.sources import Source, open_source
from pictolex.sources import multi_object as module
from pictolex.sources.truth import open_truth
from sources.published import Value, clevr, dsprites, framed, objects_room, tetrominoes, write_records


@pytest.fixture(scope="module")
def scenes() -> list[dict[str, Value]]:
    return [tetrominoes(seed) for seed in range(12)]


@pytest.fixture(scope="module")
def published(scenes: list[dict[str, Value]], tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_records(tmp_path_factory.mktemp("published") / "tetrominoes_train.tfrecords", scenes)


def pixels(source: Source, i: int) -> np.ndarray:
    return np.rint(255 * source.read(i).pixels).astype(np.uint8)


def instances(scene: dict[str, Value]) -> np.ndarray:
    """By painting one object over the other."""
    ids = np.zeros((35, 35), np.uint8)
    for k in range(1, 4):
        ids[np.asarray(scene["mask"])[k, ..., 0] > 0] = k
    return ids


def test_images_and_truth_in_any_order(published: Path, scenes: list[dict[str, Value]]) -> None:
    source, truth = open_source(published), open_truth(published)
    assert isinstance(source, Source) and truth is not None and truth.factors is not None
    assert len(source) == len(truth) == 12
    assert source.shape(0) == (35, 35, 3)
    assert source.describe() == f"{published}: Tetrominoes, 12 images of 35x35, RGB"
    for i in (7, 2, 11, 0, 7):
        np.testing.assert_array_equal(pixels(source, i), scenes[i]["image"])
        np.testing.assert_array_equal(truth.masks(i), instances(scenes[i]))
        factors = truth.factors(i)
        assert set(factors) == {"x", "y", "shape", "visibility", "color"}
        for name, value in factors.items():
            np.testing.assert_array_equal(value, scenes[i][name])
    assert truth.labels is None and truth.concepts is None


def test_objects_overlap_in_the_scenes_of_this_test(scenes: list[dict[str, Value]]) -> None:
    assert any((np.asarray(scene["mask"])[1:] > 0).sum(0).max() > 1 for scene in scenes)


@pytest.mark.parametrize("part", ["[:5]", "[3:9:2]", "[-3:]", "[:-4]", "[4]", "[::-1]", "[:500]"])
def test_slices(published: Path, scenes: list[dict[str, Value]], part: str) -> None:
    indices = list(range(12))[{"[4]": slice(4, 5)}.get(part) or slice(*(int(n) if n else None for n in part[1:-1].split(":")))]
    source, truth = open_source(f"{published}{part}"), open_truth(f"{published}{part}")
    assert truth is not None and len(source) == len(truth) == len(indices)
    assert list(source.names) == [f"tetrominoes_train-{i}" for i in indices]
    for i, index in enumerate(indices):
        np.testing.assert_array_equal(pixels(source, i), scenes[index]["image"])
        np.testing.assert_array_equal(truth.masks(i), instances(scenes[index]))
    assert len(open_source(published, count=2)) == 2 and len(open_truth(published, count=2) or ()) == 2


@pytest.mark.parametrize(
    ("kind", "scene", "shape", "backgrounds"),
    [
        ("Multi-dSprites", dsprites(4, 1), (64, 64, 1), 1),
        ("Multi-dSprites", dsprites(5, 3), (64, 64, 3), 1),
        ("Multi-dSprites", dsprites(6, 3), (64, 64, 3), 1),
        ("CLEVR with masks", clevr(), (240, 320, 3), 1),
        ("Objects Room", objects_room(7), (64, 64, 3), 4),
        ("Objects Room", objects_room(4), (64, 64, 3), 4),
    ],
    ids=["binarized", "colored on colored", "colored on grayscale", "clevr", "objects room", "empty room"],
)
def test_every_kind_is_told_from_what_is_in_it(
    kind: str, scene: dict[str, Value], shape: tuple[int, int, int], backgrounds: int, tmp_path: Path
) -> None:
    path = write_records(tmp_path / "anything.tfrecords", [scene])
    source, truth = open_source(path), open_truth(path)
    assert truth is not None and truth.has_masks
    assert source.shape(0) == shape and f": {kind}, 1 images" in source.describe()
    image, mask = (np.frombuffer(v, np.uint8) if isinstance(v, bytes) else v for v in (scene["image"], scene["mask"]))
    np.testing.assert_array_equal(pixels(source, 0), image.reshape(shape))
    planes = np.moveaxis(mask[..., 0], 2, 0) if kind == "Multi-dSprites" else mask.reshape(-1, *shape[:2])
    entity = planes.argmax(0)
    np.testing.assert_array_equal(truth.masks(0), np.where(entity < backgrounds, 0, entity - backgrounds + 1))
    factors = truth.factors(0) if truth.factors is not None else {}
    assert set(factors) == set(scene) - {"image", "mask"}
    for key, value in factors.items():
        np.testing.assert_array_equal(value, np.squeeze(scene[key]))


def test_not_gzip_works_too_whatever_the_name(scenes: list[dict[str, Value]], tmp_path: Path) -> None:
    for name, packed in (("a.tfrecord", False), ("b.tfrecords.gz", True), ("c.TFRECORDS", False)):
        source = open_source(write_records(tmp_path / name, scenes[:3], packed))
        assert len(source) == 3 and source.names[2] == f"{name[0]}-2"
        np.testing.assert_array_equal(pixels(source, 2), scenes[2]["image"])


def test_an_existing_path_wins_and_a_missing_one_is_named(published: Path, tmp_path: Path) -> None:
    odd = tmp_path / "a.tfrecords[1]"
    odd.write_bytes(published.read_bytes())
    (tmp_path / "a.tfrecords").write_bytes(published.read_bytes())
    assert module.parse_tfrecords(str(odd)) == module.RecordSpec(odd)
    assert module.parse_tfrecords("tetrominoes") is None
    assert len(open_source(f"{tmp_path}/a.tfrecords[2]")) == 1
    with pytest.raises(InputError, match=r"gone\.tfrecords: no such file"):
        open_source(f"{tmp_path}/gone.tfrecords[:5]")
    with pytest.raises(InputError, match="is not a slice"):
        open_source(f"{published}[a:b]")
    with pytest.raises(InputError, match="no images left by the slice"):
        open_source(f"{published}[12:]")


def test_images_are_read_only_as_far_as_asked_for(published: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[bytes] = []
    real = module.records

    def watched(path: Path, expected: int | None = None):
        for record in real(path, expected):
            seen.append(record)
            yield record

    monkeypatch.setattr(module, "records", watched)
    source = open_source(published)
    opened = len(seen)
    assert opened <= 1
    source.read(3)
    assert len(seen) == opened + 4
    source.read(2)
    assert len(seen) == opened + 4


# --- broken files ------------------------------------------------------------------------------------------------------


def broken(data: bytes, tmp_path: Path) -> Path:
    path = tmp_path / "broken.tfrecords"
    path.write_bytes(data)
    return path


def read_all(path: Path | str) -> int:
    source = open_source(path)
    for i in range(len(source)):
        source.read(i)
    return len(source)


def one_line(path: Path, message: str) -> None:
    with pytest.raises(InputError, match=message) as error:
        read_all(path)
    assert "\n" not in str(error.value) and str(error.value).startswith(str(path))


def test_a_download_that_stopped(published: Path, tmp_path: Path, scenes: list[dict[str, Value]]) -> None:
    whole = published.read_bytes()
    path = broken(whole[: len(whole) // 2], tmp_path)
    with pytest.raises(InputError, match=r"ends in the middle of record \d+.*or read what comes before: .*\[:\d+\]$") as error:
        open_source(path)
    good = int(str(error.value).rsplit(":", 1)[1][:-1])
    assert 1 < good < 11
    assert read_all(f"{path}[:{good}]") == good
    truth = open_truth(f"{path}[:{good}]")
    assert truth is not None
    np.testing.assert_array_equal(truth.masks(good - 1), instances(scenes[good - 1]))
    plain = gzip.decompress(whole)
    one_line(broken(plain[: len(plain) // 2 + 1], tmp_path), r"ends in the middle of record 6.*\[:6\]$")
    one_line(broken(plain[:5], tmp_path), "ends in the middle of record 0, as a download that stopped; fetch it again$")
    one_line(broken(whole[:30], tmp_path), "ends in the middle of record 0")


@pytest.mark.parametrize("where", [0, 9, 500, -2])
def test_a_flipped_bit_is_found_in_the_record_that_has_it(where: int, published: Path, tmp_path: Path) -> None:
    plain = bytearray(gzip.decompress(published.read_bytes()))
    length = len(plain) // 12
    plain[4 * length + (where % length)] ^= 16
    for packed in (False, True):
        path = broken(gzip.compress(plain) if packed else bytes(plain), tmp_path)
        one_line(path, r"damaged at record 4 \(.*checksum.*\); fetch it again, or read what comes before: .*\[:4\]$")
        assert read_all(f"{path}[:4]") == 4


def test_damage_is_told_for_every_image_after_it_and_none_before(published: Path, tmp_path: Path) -> None:
    plain = bytearray(gzip.decompress(published.read_bytes()))
    plain[10 * (len(plain) // 12) + 500] ^= 1
    source = open_source(broken(bytes(plain), tmp_path))
    for i in (11, 10, 11):
        with pytest.raises(InputError, match="damaged at record 10"):
            source.read(i)
    assert source.read(9).name == "broken-9"


def test_damaged_gzip(published: Path, tmp_path: Path) -> None:
    whole = bytearray(published.read_bytes())
    whole[len(whole) // 2 : len(whole) // 2 + 20] = bytes(20)
    one_line(broken(bytes(whole), tmp_path), r"(damaged at record \d+|ends in the middle)")
    one_line(broken(b"\x1f\x8b" + bytes(50), tmp_path), "not a TFRecord file")


def test_files_of_other_kinds(tmp_path: Path, scenes: list[dict[str, Value]]) -> None:
    one_line(
        broken(b"hello, this is a text and no records", tmp_path),
        r"not a TFRecord file \(the checksum.*\); fetch it again, or name another file",
    )
    one_line(broken(gzip.compress(b"hello, this is a text and no records"), tmp_path), "not a TFRecord file")
    one_line(broken(b"", tmp_path), "an empty file; fetch it again")
    one_line(broken(gzip.compress(b""), tmp_path), "an empty file")
    one_line(broken(framed(b"no protocol buffer"), tmp_path), "record 0 is not a tf.train.Example")
    one_line(broken(framed(b""), tmp_path), "records that hold no features are of no kind known here")
    others: list[dict[str, Value]] = [
        {"image": np.zeros(48, np.uint8), "label": np.zeros(1, np.int64)},
        {**scenes[0], "image": np.zeros((35, 36, 3), np.uint8)},
        {**scenes[0], "mask": np.zeros(2 * 35 * 35 + 1, np.uint8)},
        {k: v for k, v in scenes[0].items() if k != "mask"},
        {k: v for k, v in scenes[0].items() if k not in ("x", "y")},
        {k: v for k, v in dsprites(4, 1).items() if k != "orientation"},
    ]
    for other in others:
        path = write_records(tmp_path / "other.tfrecords", [other])
        one_line(path, r"records that hold .*image \(\d+\).* of no kind known here; known are Tetrominoes \(35x35\), .*: see docs/data\.md")
    (tmp_path / "folder.tfrecords").mkdir()
    with pytest.raises(InputError, match="an empty folder"):
        open_source(tmp_path / "folder.tfrecords")


def test_a_record_unlike_the_first(scenes: list[dict[str, Value]], tmp_path: Path) -> None:
    path = write_records(tmp_path / "a.tfrecords", [scenes[0], {**scenes[1], "image": np.zeros(6, np.uint8)}])
    one_line(path, r"record 1 should have a feature 'image' of 3675 values and has one of 6; fetch it again, or read .*\[:1\]")
    path = write_records(tmp_path / "b.tfrecords", [scenes[0], {k: v for k, v in scenes[1].items() if k != "x"}])
    assert read_all(path) == 2
    truth = open_truth(path)
    assert truth is not None and truth.masks(0) is not None
    with pytest.raises(InputError, match="record 1 should have a feature 'x' of 4 values and has none"):
        truth.masks(1)


def test_two_files_put_together_are_not_read_as_one(published: Path, tmp_path: Path) -> None:
    path = broken(2 * published.read_bytes(), tmp_path)
    one_line(path, "has more than the 12 records its size tells of; unpack it first, with gunzip")
    assert len(open_source(f"{path}[:20]")) == 12
    assert read_all(broken(gzip.decompress(path.read_bytes()), tmp_path)) == 24


def test_opening_images_loads_no_truth(published: Path) -> None:
    code = (
        f"import sys; from pictolex.sources import open_source; open_source({str(published)!r}).read(1);"
        "bad = {'pictolex.sources.truth', 'pictolex.sources.truth_published', 'torch', 'PIL'} & set(sys.modules); assert not bad, bad"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_the_engine_reads_them_as_any_source(published: Path) -> None:
    import torch

    from pictolex.decompose.engine import batches

    source = open_source(f"{published}[:5]").take([4, 0, 2])
    taken = list(islice(batches(source, lambda h, w, c: 2, lambda c: c, torch.device("cpu")), 5))
    assert [batch.index for batch in taken] == [[0, 1], [2]]
    assert taken[0].names == ["tetrominoes_train-4", "tetrominoes_train-0"]
