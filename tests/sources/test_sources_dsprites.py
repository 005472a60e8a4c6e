"""dSprites as published: an archive with a pickle in it that is never opened."""

from __future__ import annotations

import os
import tracemalloc
import zipfile
from pathlib import Path

import numpy as np
import pytest

from pictolex.errors import InputError
from pictolex.sources import Source, open_source
from pictolex.sources.truth import open_truth


class Bomb:
    """What runs code when it is unpickled."""

    def __reduce__(self) -> tuple[object, tuple[str]]:
        return os.mkdir, ("exploded",)


def write(path: Path, count: int = 20, **changes: np.ndarray) -> dict[str, np.ndarray]:
    """An archive with the keys and types of the published one."""
    rng = np.random.default_rng(0)
    classes = np.stack([np.zeros(count), rng.integers(0, 3, count), *(rng.integers(0, n, count) for n in (6, 40, 32, 32))], 1).astype(
        np.int64
    )
    arrays = {
        "imgs": rng.integers(0, 2, (count, 64, 64), dtype=np.uint8),
        "latents_classes": classes,
        "latents_values": classes / 7.0,
        "metadata": np.array({"title": "dSprites", "author": Bomb()}, dtype=object),
        **changes,
    }
    np.savez_compressed(path, **{key: array for key, array in arrays.items() if array is not None})
    return arrays


@pytest.fixture
def published(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[Path, dict[str, np.ndarray]]:
    monkeypatch.chdir(tmp_path)
    path = tmp_path / "dsprites_ndarray_co1sh3sc6or40x32y32_64x64.npz"
    return path, write(path)


def test_images_are_black_and_white_in_any_order(published: tuple[Path, dict[str, np.ndarray]]) -> None:
    path, arrays = published
    source = open_source(path)
    assert isinstance(source, Source)
    assert source.describe() == f"{path}: dSprites, 20 images of 64x64, grey"
    assert (len(source), source.shape(3), source.names[3]) == (20, (64, 64, 1), f"{path.stem}-3")
    for i in (13, 2, 19, 0, -1):
        np.testing.assert_array_equal(source.read(i).pixels[..., 0], arrays["imgs"][i].astype(np.float32))
    assert source.read(0).opacity is None


def test_truth_is_the_latents(published: tuple[Path, dict[str, np.ndarray]]) -> None:
    path, arrays = published
    truth = open_truth(path)
    assert truth is not None and truth.labels is not None and truth.factors is not None
    np.testing.assert_array_equal(truth.labels, arrays["latents_classes"][:, 1])
    np.testing.assert_array_equal(truth.factors(7)["latents_classes"], arrays["latents_classes"][7])
    np.testing.assert_array_equal(truth.factors(7)["latents_values"], arrays["latents_values"][7])
    assert set(truth.factors(7)) == {"latents_classes", "latents_values"} and not truth.has_masks


@pytest.mark.parametrize("part", ["[5:15:3]", ":imgs[5:15:3]"])
def test_parts(published: tuple[Path, dict[str, np.ndarray]], part: str) -> None:
    path, arrays = published
    source, truth = open_source(f"{path}{part}"), open_truth(f"{path}{part}")
    assert truth is not None and truth.labels is not None and truth.factors is not None
    assert len(source) == len(truth) == 4
    np.testing.assert_array_equal(source.read(2).pixels[..., 0], arrays["imgs"][11])
    np.testing.assert_array_equal(truth.labels, arrays["latents_classes"][5:15:3, 1])
    np.testing.assert_array_equal(truth.factors(2)["latents_classes"], arrays["latents_classes"][11])
    with pytest.raises(InputError, match="no images left of 20 by the slice"):
        open_source(f"{path}[20:]")


def test_the_pickle_is_never_opened(published: tuple[Path, dict[str, np.ndarray]], tmp_path: Path) -> None:
    path, _ = published
    open_source(path).read(19)
    open_truth(path)
    for key in ("metadata", "nothing"):
        with pytest.raises(InputError):
            open_source(f"{path}:{key}")
    assert not (tmp_path / "exploded").exists()
    np.load(path, allow_pickle=True)["metadata"]
    assert (tmp_path / "exploded").exists()


def test_memory_stays_far_below_the_images(tmp_path: Path) -> None:
    path = tmp_path / "many.npz"
    images = np.zeros((20_000, 64, 64), np.uint8)
    images[:, 3, 5] = np.arange(20_000) % 2
    write(path, 20_000, imgs=images)
    tracemalloc.start()
    source = open_source(path)
    assert [float(source.read(i).pixels[3, 5, 0]) for i in (19_999, 4, 10_001)] == [1, 0, 1]
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < images.nbytes / 4


def test_other_archives_stay_what_they_were(tmp_path: Path) -> None:
    path = tmp_path / "a.npz"
    write(path, images=np.full((3, 8, 8), 255, np.uint8))
    assert len(open_source(path)) == 3
    assert len(open_source(f"{path}:imgs")) == 20
    np.savez(path, imgs=np.full((4, 8, 8), 128, np.uint8))
    assert float(open_source(path).read(0).pixels[0, 0, 0]) == pytest.approx(128 / 255)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"imgs": np.full((20, 64, 64), 255, np.uint8)}, "values up to 255; expected 0 and 1: store them under the key 'images'"),
        ({"imgs": np.zeros((20, 64, 64), np.float32)}, "'imgs' of type float32, 20x64x64; expected uint8, images x height x width"),
        ({"imgs": np.zeros((20, 64), np.uint8)}, "'imgs' of type uint8, 20x64; expected"),
        ({"imgs": np.asfortranarray(np.zeros((20, 64, 64), np.uint8))}, "expected uint8, images x height x width"),
        ({"imgs": np.zeros((0, 64, 64), np.uint8)}, "0x64x64; expected"),
    ],
)
def test_images_that_are_not_as_published(changes: dict[str, np.ndarray], message: str, tmp_path: Path) -> None:
    write(tmp_path / "a.npz", **changes)
    with pytest.raises(InputError, match=message) as error:
        open_source(tmp_path / "a.npz").read(0)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize(
    "changes",
    [{"latents_classes": np.zeros((19, 6), np.int64)}, {"latents_values": np.zeros(20)}, {"latents_classes": np.full((20, 6), "a")}],
)
def test_latents_that_are_not_as_published(changes: dict[str, np.ndarray], tmp_path: Path) -> None:
    write(tmp_path / "a.npz", **changes)
    with pytest.raises(InputError, match=r"latents_\w+ of shape .* for 20 images; expected 20x6 numbers"):
        open_truth(tmp_path / "a.npz")


def test_damaged_and_truncated(published: tuple[Path, dict[str, np.ndarray]], tmp_path: Path) -> None:
    path, _ = published
    data = bytearray(path.read_bytes())
    for broken in (data[:5000], b"", b"hello"):
        (tmp_path / "broken.npz").write_bytes(broken)
        with pytest.raises(InputError, match="not a readable NumPy archive"):
            open_source(tmp_path / "broken.npz")
    data[1000:1100] = bytes(100)
    (tmp_path / "broken.npz").write_bytes(data)
    source = open_source(tmp_path / "broken.npz")
    for i in (19, 19):
        with pytest.raises(InputError, match=r"'imgs' is damaged .*; fetch or write the file again"):
            source.read(i)
    with zipfile.ZipFile(path) as whole, zipfile.ZipFile(tmp_path / "short.npz", "w") as short:
        for name in whole.namelist():
            short.writestr(name, whole.read(name)[: -1 if name == "imgs.npy" else None])
    with pytest.raises(InputError, match=r"short\.npz: 'imgs' is damaged \(it ends early\)"):
        open_source(tmp_path / "short.npz").read(0)
    with pytest.raises(InputError, match=r"gone\.npz: no such file"):
        open_source(f"{tmp_path}/gone.npz[:5]")
