"""Image files: every mode and orientation is respected, bad files are named, good ones go on."""

from __future__ import annotations

import os
import pickle
import struct
import zlib
from pathlib import Path

import numpy as np
import pytest
from PIL import Image as Pillow

from pictolex.errors import InputError
from pictolex.sources import SkippedImagesWarning, Source, open_source, require_one_size, sizes


def noise(*shape: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).integers(0, 256, shape, dtype=np.uint8)


def save(array: np.ndarray, path: Path, **options: object) -> Path:
    Pillow.fromarray(array).save(path, **options)
    return path


def truncate(path: Path, keep: float = 0.5) -> None:
    data = path.read_bytes()
    path.write_bytes(data[: int(len(data) * keep)])


def test_folder_in_natural_order_with_other_files_left_alone(tmp_path: Path) -> None:
    for k in (10, 2, 1):
        save(np.full((4, 5), k, np.uint8), tmp_path / f"image{k}.png")
    (tmp_path / "notes.txt").write_text("not an image")
    (tmp_path / ".hidden.png").write_bytes(b"junk")
    source = open_source(tmp_path)
    assert isinstance(source, Source)
    assert list(source.names) == ["image1.png", "image2.png", "image10.png"]
    assert [round(255 * float(source.read(i).pixels[0, 0, 0])) for i in range(3)] == [1, 2, 10]
    assert source.skipped == ()
    assert source.shape(0) == (4, 5, 1)
    assert "3 images of 4x5, grey" in source.describe()


def test_pixels_are_exact_and_read_only_once_asked(tmp_path: Path) -> None:
    array = noise(6, 7, 3)
    save(array, tmp_path / "a.png")
    source = open_source(str(tmp_path / "a.png"))
    (tmp_path / "a.png").unlink()
    with pytest.raises(InputError, match=r"a\.png: no such file"):
        source.read(0)
    save(array, tmp_path / "a.png")
    image = source.read(0)
    assert image.pixels.dtype == np.float32
    assert image.opacity is None
    np.testing.assert_array_equal(image.pixels, array.astype(np.float32) / np.float32(255))


def test_rgba_is_straight_colour_and_opacity(tmp_path: Path) -> None:
    array = noise(5, 5, 4)
    save(array, tmp_path / "a.png")
    image = open_source(tmp_path).read(0)
    assert image.opacity is not None
    np.testing.assert_allclose(image.pixels, array[..., :3] / 255, atol=1e-6)
    np.testing.assert_allclose(image.opacity, array[..., 3] / 255, atol=1e-6)
    np.testing.assert_allclose(image.on(0.5), array[..., :3] / 255 * array[..., 3:] / 255 + 0.5 * (1 - array[..., 3:] / 255), atol=1e-6)


def test_opaque_rgba_has_no_opacity(tmp_path: Path) -> None:
    array = noise(5, 5, 4)
    array[..., 3] = 255
    save(array, tmp_path / "a.png")
    assert open_source(tmp_path).read(0).opacity is None


def test_grey_with_alpha(tmp_path: Path) -> None:
    array = noise(5, 6, 2)
    Pillow.merge("LA", [Pillow.fromarray(array[..., k]) for k in range(2)]).save(tmp_path / "a.png")
    source = open_source(tmp_path)
    image = source.read(0)
    assert source.shape(0) == image.pixels.shape == (5, 6, 1)
    assert image.opacity is not None
    np.testing.assert_allclose(image.opacity, array[..., 1] / 255, atol=1e-6)


def test_sixteen_bit_grey(tmp_path: Path) -> None:
    array = np.random.default_rng(0).integers(0, 65536, (5, 6), dtype=np.uint16)
    for name in ("a.png", "b.tif"):
        save(array, tmp_path / name)
        image = open_source(tmp_path / name).read(0)
        np.testing.assert_allclose(image.pixels[..., 0], array / 65535, atol=1e-7)


def test_palette_and_its_transparency(tmp_path: Path) -> None:
    indices = Pillow.fromarray(np.array([[0, 1], [2, 1]], np.uint8))
    indices = indices.convert("P")
    indices.putpalette([255, 0, 0, 0, 255, 0, 0, 0, 255])
    indices.save(tmp_path / "plain.png")
    indices.save(tmp_path / "clear.png", transparency=1)
    plain, clear = (open_source(tmp_path / n).read(0) for n in ("plain.png", "clear.png"))
    np.testing.assert_array_equal(plain.pixels, np.array([[[1, 0, 0], [0, 1, 0]], [[0, 0, 1], [0, 1, 0]]], np.float32))
    assert plain.opacity is None
    assert clear.opacity is not None
    np.testing.assert_array_equal(clear.opacity, [[1, 0], [1, 0]])


def test_one_bit_and_cmyk(tmp_path: Path) -> None:
    bits = np.array([[True, False], [False, True]])
    save(bits, tmp_path / "bits.png")
    np.testing.assert_array_equal(open_source(tmp_path / "bits.png").read(0).pixels[..., 0], bits.astype(np.float32))
    Pillow.new("CMYK", (3, 2), (0, 255, 255, 0)).save(tmp_path / "ink.tif")
    np.testing.assert_allclose(open_source(tmp_path / "ink.tif").read(0).pixels[0, 0], [1, 0, 0], atol=0.01)


@pytest.mark.parametrize("orientation", range(1, 9))
@pytest.mark.parametrize("suffix", ["png", "jpg"])
def test_exif_orientation_agrees_with_pillow(tmp_path: Path, orientation: int, suffix: str) -> None:
    from PIL import ImageOps

    array = np.zeros((16, 24, 3), np.uint8)
    array[:8, :8] = 255
    exif = Pillow.Exif()
    exif[0x0112] = orientation
    path = tmp_path / f"a.{suffix}"
    save(array, path, exif=exif, **({"quality": 100, "subsampling": 0} if suffix == "jpg" else {}))
    source = open_source(path)
    image = source.read(0)
    with Pillow.open(path) as opened:
        turned = np.asarray(ImageOps.exif_transpose(opened).convert("RGB"))
    np.testing.assert_array_equal(np.rint(image.pixels * 255), turned)
    assert source.shape(0) == image.pixels.shape


def test_gif_frames_are_images_in_any_order(tmp_path: Path) -> None:
    frames = [Pillow.new("RGB", (8, 6), (40 * k, 0, 0)) for k in range(5)]
    frames[0].save(tmp_path / "a.gif", save_all=True, append_images=frames[1:])
    source = open_source(tmp_path / "a.gif")
    assert len(source) == 5
    assert source.names[3].endswith("a.gif#3")
    for i in (0, 1, 4, 2, 2, 0):
        image = source.read(i)
        assert image.pixels.shape == source.shape(i) == (6, 8, 3)
        assert abs(float(image.pixels[0, 0, 0]) * 255 - 40 * i) <= 3
    assert len(pickle.loads(pickle.dumps(source))) == 5


def test_multi_page_tiff(tmp_path: Path) -> None:
    pages = [Pillow.fromarray(np.full((4, 4), 50 * k, np.uint8)) for k in range(3)]
    pages[0].save(tmp_path / "a.tif", save_all=True, append_images=pages[1:])
    source = open_source(tmp_path / "a.tif")
    assert [round(255 * float(source.read(i).pixels[0, 0, 0])) for i in range(len(source))] == [0, 50, 100]


def test_mixed_channels_become_rgb(tmp_path: Path) -> None:
    grey, colour = noise(4, 4), noise(4, 4, 3)
    save(grey, tmp_path / "a.png")
    save(colour, tmp_path / "b.png")
    source = open_source(tmp_path)
    assert source.shape(0) == source.shape(1) == (4, 4, 3)
    np.testing.assert_array_equal(source.read(0).pixels, np.repeat(grey[..., None] / np.float32(255), 3, axis=2))


def test_mixed_sizes_are_legal_but_told_where_one_size_is_needed(tmp_path: Path) -> None:
    for k in range(3):
        save(noise(4, 4), tmp_path / f"{k}.png")
    save(noise(9, 7), tmp_path / "odd.png")
    source = open_source(tmp_path)
    assert sizes(source) == {(4, 4): 3, (9, 7): 1}
    with pytest.raises(InputError, match=r"different sizes: 4x4 \(3 images\), 9x7 \(1 images\).*odd\.png.*[Rr]esize"):
        require_one_size(source)
    assert require_one_size(source.take(slice(3))) == (4, 4, 1)


def test_glob_and_list_of_files(tmp_path: Path) -> None:
    (tmp_path / "sub").mkdir()
    save(noise(4, 4), tmp_path / "sub" / "a.png")
    save(noise(4, 4), tmp_path / "b.png")
    assert len(open_source(str(tmp_path / "**" / "*.png"))) == 2
    assert len(open_source(str(tmp_path / "?.png"))) == 1
    assert len(open_source([tmp_path / "b.png", str(tmp_path / "sub" / "a.png")])) == 2
    with pytest.raises(InputError, match="matches no file"):
        open_source(str(tmp_path / "*.tif"))


def test_take_reads_through(tmp_path: Path) -> None:
    for k in range(6):
        save(np.full((4, 4), k, np.uint8), tmp_path / f"{k}.png")
    part = open_source(tmp_path).take(slice(1, None, 2)).take([2, 0])
    assert list(part.names) == ["5.png", "1.png"]
    assert round(255 * float(part.read(0).pixels[0, 0, 0])) == 5
    assert len(open_source(tmp_path, count=4)) == 4
    assert list(open_source(f"{tmp_path}[-2:]").names) == ["4.png", "5.png"]


# --- bad input ---------------------------------------------------------------------------------------------------------


def one_line(error: pytest.ExceptionInfo[InputError]) -> str:
    text = str(error.value)
    assert "\n" not in text
    return text


def test_empty_folder(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="an empty folder") as error:
        open_source(tmp_path)
    assert str(tmp_path) in one_line(error)


def test_folder_without_images(tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("x")
    with pytest.raises(InputError, match="no images among its 1 entries"):
        open_source(tmp_path)


def test_folder_with_images_below_only(tmp_path: Path) -> None:
    (tmp_path / "sub").mkdir()
    save(noise(4, 4), tmp_path / "sub" / "a.png")
    with pytest.raises(InputError, match=r"folders below: write '.*\*\*/\*\.png'"):
        open_source(tmp_path)


def test_missing_file(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"gone\.png: no such file"):
        open_source(tmp_path / "gone.png")
    with pytest.raises(InputError, match="did you mean 'tetrominoes'"):
        open_source("tetromino")
    with pytest.raises(InputError, match="no source given"):
        open_source("")


@pytest.mark.parametrize("suffix", ["png", "jpg", "gif", "bmp", "tif", "webp"])
@pytest.mark.parametrize("keep", [0.0, 0.02, 0.5, 0.9])
def test_truncated_files_are_skipped_and_told(tmp_path: Path, suffix: str, keep: float) -> None:
    bad = save(noise(64, 64, 3), tmp_path / f"bad.{suffix}")
    truncate(bad, keep)
    save(noise(64, 64, 3), tmp_path / "good.png")
    with pytest.warns(SkippedImagesWarning, match=rf"1 of 2 files left out \(bad\.{suffix}: "):
        source = open_source(tmp_path)
    assert len(source) == 1
    assert [skip.name for skip in source.skipped] == [f"bad.{suffix}"]
    source.read(0)
    with pytest.raises(InputError, match=rf"bad\.{suffix}: ") as error:
        open_source(bad)
    one_line(error)


def test_text_named_png(tmp_path: Path) -> None:
    (tmp_path / "a.png").write_text("hello")
    with pytest.raises(InputError, match=r"a\.png: not an image"):
        open_source(tmp_path / "a.png")
    with pytest.raises(InputError, match=r"no usable image in it; a\.png: not an image"):
        open_source(tmp_path)
    (tmp_path / "b.png").write_text("hello")
    with pytest.raises(InputError, match="none of its 2 image files can be read"):
        open_source(tmp_path)


def test_damage_inside_is_found_when_read(tmp_path: Path) -> None:
    path = save(noise(64, 64, 3), tmp_path / "a.png")
    data = bytearray(path.read_bytes())
    start = data.index(b"IDAT") + 4
    data[start + 100 : start + 2000] = bytes(1900)
    path.write_bytes(data)
    source = open_source(path)
    with pytest.raises(InputError, match=r"a\.png: damaged or truncated") as error:
        source.read(0)
    one_line(error)


def test_a_file_that_changes_size_meanwhile(tmp_path: Path) -> None:
    path = save(noise(4, 4), tmp_path / "a.png")
    source = open_source(path)
    save(noise(5, 4), path)
    with pytest.raises(InputError, match="now 5x4, was 4x4"):
        source.read(0)


def test_decompression_bomb(tmp_path: Path) -> None:
    def chunk(kind: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    header = struct.pack(">IIBBBBB", 60_000, 60_000, 8, 0, 0, 0, 0)
    (tmp_path / "a.png").write_bytes(b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", b"") + chunk(b"IEND", b""))
    with pytest.raises(InputError, match=r"a\.png: more than \d+ million pixels; cut it"):
        open_source(tmp_path / "a.png")


def test_float_tiff_with_nan_is_named(tmp_path: Path) -> None:
    save(np.array([[0.5, np.nan]], np.float32), tmp_path / "a.tif")
    with pytest.raises(InputError, match=r"a\.tif: 1 of 2 values are NaN"):
        open_source(tmp_path / "a.tif")
    save(np.array([[0.5, 3.0]], np.float32), tmp_path / "b.tif")
    with pytest.raises(InputError, match=r"b\.tif: float values from 0.5 to 3"):
        open_source(tmp_path / "b.tif")


@pytest.mark.skipif(os.name == "nt" or os.geteuid() == 0, reason="root may read everything")
def test_unreadable_file(tmp_path: Path) -> None:
    path = save(noise(4, 4), tmp_path / "a.png")
    path.chmod(0)
    with pytest.raises(InputError, match="may not be read"):
        open_source(path)


def test_one_pixel_black_and_very_long_images_are_legal(tmp_path: Path) -> None:
    save(noise(1, 1), tmp_path / "one.png")
    save(np.zeros((8, 8), np.uint8), tmp_path / "black.png")
    save(noise(10, 60_000), tmp_path / "long.png")
    source = open_source(tmp_path)
    shapes = {source.names[i]: source.read(i).pixels.shape for i in range(len(source))}
    assert shapes == {"one.png": (1, 1, 1), "black.png": (8, 8, 1), "long.png": (10, 60_000, 1)}


def test_video_says_what_to_do(tmp_path: Path) -> None:
    (tmp_path / "a.mp4").write_bytes(b"x")
    with pytest.raises(InputError, match="a video; write its frames"):
        open_source(tmp_path / "a.mp4")


def test_memory_does_not_grow_with_the_number_of_images(tmp_path: Path) -> None:
    import tracemalloc

    for k in range(40):
        save(noise(128, 128, 3, seed=k), tmp_path / f"{k}.png")
    source = open_source(tmp_path)
    source.read(0)
    tracemalloc.start()
    for i in range(len(source)):
        source.read(i)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 12 * 128 * 128 * 3 * 4
