"""The program as a whole: help, results on stdout, all else on stderr."""

import json
import os
import resource
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from cli.program import pictolex, scene, write_sprites

COMMANDS = ("learn", "decompose", "evaluate", "info", "show", "render", "bench", "data make")


@pytest.fixture(scope="module")
def work(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with sprites, three images, and their elements."""
    folder = tmp_path_factory.mktemp("work")
    sprites = write_sprites(folder / "sprites")
    (folder / "images").mkdir()
    scene(sprites, ("bar", 4, 6), ("disc", 20, 20)).save(folder / "images" / "a.png")
    scene(sprites, ("disc", 3, 25)).save(folder / "images" / "b.png")
    scene(sprites).save(folder / "images" / "black.png")
    done = pictolex("decompose", sprites, folder / "images", "-o", folder / "found.parquet", "--arrays", folder / "found.npz")
    assert done.returncode == 0, done.stderr
    assert done.stdout.split() == [str(folder / "found.parquet"), str(folder / "found.npz")]
    assert "images 3/3" in done.stderr
    return folder


def test_help_is_instant_and_without_torch() -> None:
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    code = "import sys\nfrom pictolex.cli import main\nmain(['--help'])\nprint(sorted({'torch', 'numpy', 'pyarrow'} & set(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    assert done.stdout.splitlines()[-1] == "[]"
    for command in COMMANDS:
        assert command.split()[0] in done.stdout
    assert (after.ru_utime + after.ru_stime) - (before.ru_utime + before.ru_stime) < 0.6


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_has_help(command: str) -> None:
    done = pictolex(*command.split(), "--help")
    assert done.returncode == 0 and "Usage: pictolex " + command in done.stdout and done.stderr == ""


def test_version_and_script_are_the_same_program() -> None:
    import pictolex as package

    script = Path(sys.executable).with_name("pictolex")
    assert pictolex("--version").stdout == f"pictolex {package.__version__}\n"
    if script.exists():
        assert subprocess.run([script, "--version"], capture_output=True, text=True).stdout == f"pictolex {package.__version__}\n"


def test_learned_options_are_listed() -> None:
    told = pictolex("learn", "--help").stdout
    assert "--placement.rotations" in told and "--strategy.kind" in told and "--budget" in told


def test_decompose_finds_what_was_drawn(work: Path) -> None:
    import pyarrow.parquet

    table = pyarrow.parquet.read_table(work / "found.parquet").to_pydict()
    columns = "image,name,depth,concept,hue,red,green,blue,x,y,rotation,scale,mirror,gain,visible"
    assert ",".join(name for name in table if name in columns.split(",")) == columns
    assert len(table["image"]) == 3 and 2 not in table["image"]
    found = {(image, round(x, 3), round(y, 3)) for image, x, y in zip(table["image"], table["x"], table["y"], strict=True)}
    assert found == {(0, 9.5, 8.5), (0, 24.5, 24.5), (1, 7.5, 29.5)}


def test_arrays_hold_what_others_need(work: Path) -> None:
    arrays = np.load(work / "found.npz")
    images = np.stack([np.asarray(Image.open(work / "images" / name)) for name in ("a.png", "b.png", "black.png")]) / 255
    assert arrays["rebuilt"].shape == images.shape and arrays["rebuilt"].dtype == np.float32
    assert arrays["masks"].shape == images.shape[:3] and arrays["alphas"].shape == (3, 2, 40, 40) and arrays["alphas"].dtype == np.float16
    assert np.abs(arrays["rebuilt"] - images).max() < 0.02
    assert np.array_equal(arrays["masks"] > 0, images.sum(-1) > 0)


def test_render_gives_the_images_back(work: Path, tmp_path: Path) -> None:
    done = pictolex("render", work / "sprites", work / "found.parquet", "-o", tmp_path / "out")
    assert done.returncode == 0 and done.stdout.strip() == str(tmp_path / "out")
    for name in ("a.png", "b.png", "black.png"):
        drawn, true = (np.asarray(Image.open(folder / name)).astype(int) for folder in (tmp_path / "out", work / "images"))
        assert np.abs(drawn - true).max() <= 5


def test_show_draws_pictures(work: Path, tmp_path: Path) -> None:
    done = pictolex("show", work / "sprites", work / "images", "-o", tmp_path)
    assert done.returncode == 0, done.stderr
    assert done.stdout.split() == [str(tmp_path / "dictionary.png"), str(tmp_path / "layers.png")]
    assert all(np.asarray(Image.open(path)).size > 50 * 50 * 3 for path in done.stdout.split())


def test_evaluate_prints_one_json_object(tmp_path: Path, work: Path) -> None:
    done = pictolex("evaluate", work / "sprites", work / "images", "--json", "--quiet")
    assert done.returncode == 0 and done.stderr == "", done.stderr
    figures = json.loads(done.stdout)
    assert list(figures) == [
        "images", "mse", "psnr", "explained_variance", "ari_foreground", "ari_foreground_fixed_order", "ari_all", "concept_l1",
        "concept_l1_strict", "cluster_accuracy", "class_accuracy", "class_miou", "placements_exact", "placement_precision",
        "concepts", "dictionary_values", "elements_per_image", "ms_per_image",
    ]  # fmt: skip
    assert figures["images"] == 3 and figures["concepts"] == 2 and figures["elements_per_image"] == 1.0
    assert figures["mse"] < 1e-4 and figures["ari_foreground"] is None and figures["cluster_accuracy"] is None


def test_quiet_says_nothing(work: Path, tmp_path: Path) -> None:
    done = pictolex("decompose", work / "sprites", work / "images", "-o", tmp_path / "f.safetensors", "--quiet")
    assert done.returncode == 0 and done.stderr == ""


def test_data_make_is_the_same_for_the_same_seed(tmp_path: Path) -> None:
    for name, seed in (("a", 1), ("b", 1), ("c", 2)):
        done = pictolex("data", "make", "tetrominoes", "--count", "3", "--seed", str(seed), "-o", tmp_path / f"{name}.npz")
        assert done.returncode == 0, done.stderr
    one, same, other = (np.load(tmp_path / f"{name}.npz") for name in "abc")
    assert {"images", "masks"} <= set(one.files)
    assert np.array_equal(one["images"], same["images"]) and not np.array_equal(one["images"], other["images"])


def test_a_closed_pipe_is_no_error() -> None:
    line = f"{sys.executable} -m pictolex learn --help | head -1"
    done = subprocess.run(line, shell=True, capture_output=True, text=True, env={**os.environ, "PYTHONUNBUFFERED": "1"})
    assert done.stderr == ""
