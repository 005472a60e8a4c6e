"""Arrays, tensors and archives: every type scaled right, every wrong one named with its fix."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pictolex.errors import InputError
from pictolex.sources import open_source
from pictolex.sources.npz import parse_npz


def test_types_are_scaled() -> None:
    for dtype, largest in ((np.uint8, 255), (np.uint16, 65535), (bool, 1), (np.float32, 1.0), (np.float64, 1.0), (np.float16, 1.0)):
        array = np.zeros((2, 3, 4), dtype)
        array[1, 2, 3] = largest
        image = open_source(array).read(1)
        assert image.pixels.dtype == np.float32
        assert image.pixels.shape == (3, 4, 1)
        assert float(image.pixels.max()) == 1.0 and float(image.pixels.sum()) == 1.0


@pytest.mark.parametrize(("channels", "colours", "opaque"), [(1, 1, True), (2, 1, False), (3, 3, True), (4, 3, False)])
def test_channels(channels: int, colours: int, opaque: bool) -> None:
    array = np.random.default_rng(0).integers(0, 255, (2, 9, 10, channels), dtype=np.uint8)
    source = open_source(array)
    image = source.read(0)
    assert source.shape(0) == image.pixels.shape == (9, 10, colours)
    assert (image.opacity is None) == opaque


def test_one_grey_image_and_lists() -> None:
    assert len(open_source(np.zeros((5, 6)))) == 1
    mixed = open_source([np.zeros((5, 6), np.uint8), np.full((3, 2, 3), 255, np.uint8)])
    assert [mixed.shape(i) for i in range(2)] == [(5, 6, 3), (3, 2, 3)]
    assert [mixed.read(i).pixels.shape for i in range(2)] == [(5, 6, 3), (3, 2, 3)]
    assert list(mixed.names) == ["image-0", "image-1"]


def test_torch_tensors_without_a_copy() -> None:
    torch = pytest.importorskip("torch")
    tensor = torch.rand(3, 4, 5, requires_grad=True)
    np.testing.assert_allclose(open_source(tensor).read(2).pixels[..., 0], tensor[2].detach().numpy())
    assert len(open_source([torch.rand(4, 4), torch.rand(5, 5)])) == 2


def test_uint8_is_held_as_it_is() -> None:
    array = np.zeros((10, 4, 4), np.uint8)
    source = open_source(array)
    array[3] = 255
    assert float(source.read(3).pixels.min()) == 1.0


def test_take_of_every_kind() -> None:
    array = np.arange(10, dtype=np.uint8)[:, None, None].repeat(3, 1).repeat(3, 2)
    source = open_source(array)

    def ids(part: object) -> list[int]:
        return [round(255 * float(source.take(part).read(i).pixels[0, 0, 0])) for i in range(len(source.take(part)))]

    assert ids(slice(2, 5)) == [2, 3, 4]
    assert ids([7, -1]) == [7, 9]
    assert ids(np.arange(10) % 5 == 0) == [0, 5]
    assert ids([]) == []
    with pytest.raises(InputError, match="images 0 to 9"):
        source.take([10])
    with pytest.raises(InputError, match="boolean mask"):
        source.take(np.ones(3, bool))
    with pytest.raises(IndexError):
        source.read(10)


@pytest.mark.parametrize(
    ("array", "message"),
    [
        (np.full((2, 3, 3), np.nan), r"image 0: 9 of 9 values are NaN; replace"),
        (np.full((2, 3, 3), np.inf, np.float32), "infinite; replace"),
        (np.full((2, 3, 3), 200.0), r"float values from 200 to 200; expected \[0, 1\]: divide by 255"),
        (np.full((2, 3, 3), -0.5), "rescale"),
        (np.zeros((2, 3, 3), np.int64), "type int64; expected uint8"),
        (np.zeros((2, 3, 3), complex), "type complex128"),
        (np.array([["a", "b"]]), "type <U1"),
        (np.zeros((0, 3, 3), np.uint8), "holds no pixels"),
        (np.zeros((2, 0, 3), np.uint8), "holds no pixels"),
        (np.zeros((2, 3, 32, 32), np.uint8), r"32 channels; channels come last: use array\.transpose\(0, 2, 3, 1\)"),
        (np.zeros((2, 30, 30, 7), np.uint8), "7 channels"),
        (np.zeros((64, 64, 3), np.uint8), r"looks like one RGB image.*array\[None\]"),
        (np.zeros(5, np.uint8), "expected images x height x width"),
        (np.float32(0.5), "expected images x height x width"),
        ([], "an empty list"),
        ([np.zeros((3, 3)), np.zeros(3)], r"list\[1\]"),
        ([np.zeros((3, 3)), np.full((3, 3), np.nan)], r"list\[1\].*NaN"),
        ([np.zeros((3, 3)), np.zeros((0, 3))], r"list\[1\].*without pixels"),
        (42, "images of type int"),
        ({"a": 1}, "images of type dict"),
    ],
)
def test_bad_arrays_are_told_in_one_line(array: object, message: str) -> None:
    with pytest.raises(InputError, match=message) as error:
        open_source(array)
    assert "\n" not in str(error.value)


def test_the_bad_image_among_many_is_named() -> None:
    array = np.zeros((50, 4, 4), np.float32)
    array[37, 1, 1] = np.nan
    with pytest.raises(InputError, match="image 37: 1 of 16 values are NaN"):
        open_source(array)


# --- archives ----------------------------------------------------------------------------------------------------------


@pytest.fixture
def archive(tmp_path: Path) -> Path:
    path = tmp_path / "set.npz"
    images = np.arange(20, dtype=np.uint8)[:, None, None].repeat(4, 1).repeat(5, 2)
    np.savez_compressed(path, images=images, train_images=255 - images, labels=np.arange(20))
    return path


def first(source: object) -> int:
    return round(255 * float(source.read(0).pixels[0, 0, 0]))  # type: ignore[attr-defined]


def test_keys_and_slices(archive: Path) -> None:
    assert len(open_source(archive)) == 20
    assert first(open_source(f"{archive}:train_images")) == 255
    assert len(open_source(f"{archive}:train_images[:7]")) == 7
    assert first(open_source(f"{archive}:images[-3:]")) == 17
    assert first(open_source(f"{archive}[4:9:2]")) == 4
    assert [open_source(f"{archive}[4:9:2]").names[i] for i in range(3)] == ["set-4", "set-6", "set-8"]
    assert len(open_source(f"{archive}[5]")) == len(open_source(f"{archive}[-1]")) == 1


def test_npy(tmp_path: Path) -> None:
    np.save(tmp_path / "a.npy", np.zeros((3, 4, 4), np.uint8))
    assert len(open_source(tmp_path / "a.npy")) == 3


def test_a_part_does_not_keep_the_whole(archive: Path) -> None:
    source = open_source(f"{archive}[:3]")
    assert source._array.base is None or source._array.base.shape[0] == 3  # type: ignore[attr-defined]


def test_an_existing_path_wins(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    np.savez(tmp_path / "odd:images.npz", images=np.zeros((2, 3, 3), np.uint8))
    assert len(open_source("odd:images.npz")) == 2
    from PIL import Image as Pillow

    (tmp_path / "tetrominoes").mkdir()
    Pillow.new("L", (3, 3)).save(tmp_path / "tetrominoes" / "a.png")
    assert len(open_source("tetrominoes")) == 1


@given(st.sampled_from("CDZ"), st.sampled_from(["train_images", "images28", None]), st.sampled_from(["[:4500]", "[3]", ""]))
def test_windows_drive_letters_are_not_keys(drive: str, key: str | None, part: str) -> None:
    spec = parse_npz(f"{drive}:\\data\\set.npz" + (f":{key}" if key else "") + part)
    assert spec is not None
    assert str(spec.path) == f"{drive}:\\data\\set.npz"
    assert spec.key == key
    assert spec.part == {"[:4500]": slice(None, 4500), "[3]": slice(3, 4), "": None}[part]


def test_prefix_of_the_truth_beside() -> None:
    assert [parse_npz(f"a.npz{k}").prefix for k in ("", ":images", ":train_images", ":images28")] == ["", "", "train_", ""]  # type: ignore[union-attr]


@pytest.mark.parametrize(
    ("suffix", "message"),
    [
        (":nothing", r"no array 'nothing' in it; it has images \(20x4x5\)"),
        (":labels", "expected images x height x width"),
        ("[50:60]", "no images left of 20"),
        ("[a:b]", "is not a slice"),
        ("[]", "is not a slice"),
        ("[::0]", "a step of 0"),
    ],
)
def test_bad_keys_and_slices(archive: Path, suffix: str, message: str) -> None:
    with pytest.raises(InputError, match=message) as error:
        open_source(f"{archive}{suffix}")
    assert "\n" not in str(error.value)


def test_bad_archives(tmp_path: Path, archive: Path) -> None:
    np.savez(tmp_path / "many.npz", train_images=np.zeros((2, 3, 3)), test_images=np.zeros((2, 3, 3)))
    with pytest.raises(InputError, match=r"no array 'images' in it; it has .*: write .*many\.npz:train_images"):
        open_source(tmp_path / "many.npz")
    np.savez(tmp_path / "objects.npz", images=np.array([{}], dtype=object))
    with pytest.raises(InputError, match="cannot be used"):
        open_source(tmp_path / "objects.npz")
    np.savez(tmp_path / "none.npz")
    with pytest.raises(InputError, match="without arrays"):
        open_source(tmp_path / "none.npz")
    (tmp_path / "text.npz").write_text("hello")
    with pytest.raises(InputError, match=r"text\.npz: not a readable NumPy archive"):
        open_source(tmp_path / "text.npz")
    (tmp_path / "empty.npz").write_bytes(b"")
    with pytest.raises(InputError, match=r"empty\.npz: not a readable"):
        open_source(tmp_path / "empty.npz")
    (tmp_path / "cut.npz").write_bytes(archive.read_bytes()[:200])
    with pytest.raises(InputError, match=r"cut\.npz: not a readable"):
        open_source(tmp_path / "cut.npz")
    data = bytearray(archive.read_bytes())
    data[60:90] = bytes(30)
    (tmp_path / "bad.npz").write_bytes(data)
    with pytest.raises(InputError, match=r"bad\.npz"):
        open_source(tmp_path / "bad.npz")
    with pytest.raises(InputError, match=r"gone\.npz: no such file"):
        open_source(f"{tmp_path}/gone.npz:images")


def test_views_of_scenes_are_images_in_a_row(tmp_path: Path) -> None:
    images = np.arange(6, dtype=np.uint8).reshape(3, 2, 1, 1).repeat(4, 2).repeat(4, 3)
    np.savez(tmp_path / "v.npz", images=images, view_matrices=np.stack([np.eye(3)] * 2), view_names=np.array(["front", "top"]))
    source = open_source(tmp_path / "v.npz")
    assert (len(source), source.views) == (6, 2)
    assert list(source.names[:3]) == ["v-0/front", "v-0/top", "v-1/front"]
    assert source.view_matrices is not None and source.view_matrices.shape == (2, 3, 3)
    assert [round(255 * float(source.read(i).pixels[0, 0, 0])) for i in range(6)] == list(range(6))
    assert source.take(slice(2, 6)).views == 2
    assert source.take([0, 3]).views == 1
    assert len(open_source(f"{tmp_path / 'v.npz'}[1:]")) == 4
