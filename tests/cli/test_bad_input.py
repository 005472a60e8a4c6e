"""Every family of bad input through the real program: one clear line and exit code 2, or a counted skip; nothing half-written."""

import os
import subprocess
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from cli.program import pictolex, refused, scene, write_sprites


@pytest.fixture
def sprites(tmp_path: Path) -> Path:
    return write_sprites(tmp_path / "sprites")


@pytest.fixture
def images(tmp_path: Path) -> Path:
    folder = tmp_path / "images"
    folder.mkdir()
    return folder


def decompose(
    sprites: Path, source: str | Path, *options: str | Path, env: dict[str, str] | None = None
) -> subprocess.CompletedProcess[str]:
    out = sprites.parent / "out" / "found.parquet"
    done = pictolex("decompose", sprites, source, "-o", out, *options, env=env)
    if done.returncode:
        assert not out.parent.exists() or not list(out.parent.iterdir()), "nothing half-written"
    return done


def test_empty_folder(sprites: Path, images: Path) -> None:
    assert str(images) in refused(decompose(sprites, images))


def test_folder_without_images(sprites: Path, images: Path) -> None:
    (images / "notes.txt").write_text("no pictures here")
    assert str(images) in refused(decompose(sprites, images))


def test_missing_file_and_unknown_set(sprites: Path, tmp_path: Path) -> None:
    assert "nowhere.png" in refused(decompose(sprites, tmp_path / "nowhere.png"))
    assert "tetrominoes" in refused(decompose(sprites, "tetromino"))
    assert "gone" in refused(decompose(tmp_path / "gone", "tetrominoes"))


def test_truncated_png_is_skipped_and_counted(sprites: Path, images: Path) -> None:
    scene(sprites, ("disc", 5, 5)).save(images / "good.png")
    data = (images / "good.png").read_bytes()
    (images / "cut.png").write_bytes(data[: len(data) // 2])
    done = decompose(sprites, images)
    assert done.returncode == 0 and "warning" in done.stderr and "cut.png" in done.stderr and "1 of 2" in done.stderr


def test_only_damaged_images_are_refused(sprites: Path, images: Path) -> None:
    (images / "text.png").write_text("not a picture")
    assert "text.png" in refused(decompose(sprites, images))
    assert "text.png" in refused(decompose(sprites, images / "text.png"))


def test_mixed_sizes_and_channels_work(sprites: Path, images: Path) -> None:
    scene(sprites, ("disc", 5, 5)).save(images / "a.png")
    scene(sprites, ("disc", 5, 5), size=(50, 30)).convert("L").save(images / "b.png")
    assert decompose(sprites, images).returncode == 0


def test_mixed_sizes_cannot_be_stacked_as_arrays(sprites: Path, images: Path, tmp_path: Path) -> None:
    scene(sprites).save(images / "a.png")
    scene(sprites, size=(50, 30)).save(images / "b.png")
    assert "sizes" in refused(decompose(sprites, images, "--arrays", tmp_path / "a.npz"))
    assert not (tmp_path / "a.npz").exists()


@pytest.mark.parametrize("size", [(1, 1), (3, 2)])
def test_images_smaller_than_a_concept_are_legal(sprites: Path, images: Path, size: tuple[int, int]) -> None:
    Image.new("RGB", size, (255, 60, 60)).save(images / "tiny.png")
    assert decompose(sprites, images).returncode == 0


def test_an_all_black_image_has_no_elements(sprites: Path, images: Path) -> None:
    Image.new("RGB", (40, 40)).save(images / "black.png")
    done = decompose(sprites, images)
    assert done.returncode == 0 and "0.00 elements" in done.stderr


@pytest.mark.parametrize("value", [np.nan, np.inf, 300.0])
def test_values_that_are_no_colours(sprites: Path, tmp_path: Path, value: float) -> None:
    array = np.zeros((3, 16, 16), np.float32)
    array[1, 2, 3] = value
    np.savez(tmp_path / "bad.npz", images=array)
    assert "bad.npz" in refused(decompose(sprites, tmp_path / "bad.npz"))


def test_a_very_long_image(sprites: Path, images: Path) -> None:
    image = Image.new("RGB", (60_000, 10))
    image.paste((255, 60, 60), (30_000, 2, 30_009, 8))
    image.save(images / "long.png")
    done = decompose(sprites, images)
    assert done.returncode in (0, 2)
    assert done.returncode == 0 or refused(done)


def test_unwritable_output(sprites: Path, images: Path, tmp_path: Path) -> None:
    scene(sprites, ("disc", 5, 5)).save(images / "a.png")
    (tmp_path / "file").write_text("in the way")
    told = refused(pictolex("decompose", sprites, images, "-o", tmp_path / "file" / "found.parquet"))
    assert str(tmp_path / "file") in told
    assert "must end in .parquet" in refused(pictolex("decompose", sprites, images, "-o", tmp_path / "found.csv"))
    assert str(tmp_path / "file") in refused(pictolex("learn", images, "-o", tmp_path / "file" / "run"))
    assert "/proc" in refused(pictolex("data", "make", "tetrominoes", "--count", "2", "-o", "/proc/out.npz"))


def test_full_disk(sprites: Path, images: Path, tmp_path: Path) -> None:
    scene(sprites, ("disc", 5, 5)).save(images / "a.png")
    (tmp_path / "inject").mkdir()
    (tmp_path / "inject" / "sitecustomize.py").write_text(
        "import errno, os\ndef full(*_):\n    raise OSError(errno.ENOSPC, 'No space left on device')\nos.fsync = full\n"
    )
    told = refused(decompose(sprites, images, env={"PYTHONPATH": f"{tmp_path / 'inject'}:{os.environ.get('PYTHONPATH', '')}"}))
    assert "disk full" in told and "found.parquet" in told


def test_unknown_preset(tmp_path: Path) -> None:
    told = refused(pictolex("learn", "tetrominoes", "--preset", "tetromino", "-o", tmp_path / "run"))
    assert "unknown preset 'tetromino': did you mean tetrominoes" in told
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--placement.rotations", "four"), "--placement.rotations must be a valid integer"),
        (("--strategy.rounds", "2"), "it needs --strategy.kind rounds"),
        (("--strategy.kind", "greedy"), "--strategy.kind must be one of"),
        (("--epochs", "many"), "--epochs"),
        (("--budget", "soon"), "--budget 'soon' is not a duration"),
        (("--layers", "0"), "--layers must be greater than or equal to 1"),
        (("--no-such-option",), "--no-such-option"),
        (("--device", "tpu7"), "tpu7"),
        (("--layers",), "--layers"),
    ],
)
def test_wrong_settings(tmp_path: Path, options: tuple[str, ...], message: str) -> None:
    assert message in refused(pictolex("learn", "tetrominoes", "-o", tmp_path / "run", *options))
    assert not (tmp_path / "run" / "settings.toml").exists()


def test_unknown_commands_and_missing_arguments() -> None:
    assert "lern" in refused(pictolex("lern", "tetrominoes"))
    assert "SOURCE" in refused(pictolex("learn"))
    assert "--out" in refused(pictolex("decompose", "a", "b"))


def test_folders_that_are_no_runs(images: Path, tmp_path: Path) -> None:
    assert str(images) in refused(pictolex("info", images))
    assert "gone" in refused(pictolex("info", tmp_path / "gone"))
    assert "gone" in refused(pictolex("render", tmp_path / "gone", "-o", tmp_path / "out"))


def test_a_truncated_file_of_elements(sprites: Path, images: Path, tmp_path: Path) -> None:
    scene(sprites, ("disc", 5, 5)).save(images / "a.png")
    assert pictolex("decompose", sprites, images, "-o", tmp_path / "found.parquet").returncode == 0
    data = (tmp_path / "found.parquet").read_bytes()
    (tmp_path / "found.parquet").write_bytes(data[: len(data) // 2])
    assert "found.parquet" in refused(pictolex("render", sprites, tmp_path / "found.parquet", "-o", tmp_path / "out"))
