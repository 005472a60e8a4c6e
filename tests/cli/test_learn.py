"""From images to a run and all that is done with one, through the real program."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

from cli.program import pictolex, refused, scene, write_sprites
from pictolex.learn.run import read_settings

TINY = ("--learning.concepts", "3", "--learning.concept-size", "15", "--strategy.kind", "rounds", "--strategy.rounds", "1")
SMALL = (*TINY, "--epochs", "1")


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("learned") / "run"
    done = pictolex("learn", "tetrominoes[:12]", "-o", folder, *SMALL)
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip() == str(folder)
    assert "preset tetrominoes" in done.stderr and "epoch 1/1" in done.stderr and "3 concepts" in done.stderr
    return folder


def test_a_run_holds_what_the_design_says(run: Path) -> None:
    names = {path.name for path in run.iterdir()}
    assert {"settings.toml", "dictionary.safetensors", "dictionary.json", "lineage.json", "log.jsonl", "elements.parquet"} <= names
    assert all(json.loads(line) for line in (run / "log.jsonl").read_text().splitlines())
    facts = json.loads(pictolex("info", run, "--json").stdout)
    assert (facts["hues"], facts["images"]) == (6, 12)
    assert 1 <= facts["concepts"] <= 3 and sum(facts["sizes"].values()) == facts["concepts"]
    assert facts["epochs"] == 1 and facts["seconds"] > 0 and facts["lineage"]["born"] >= facts["concepts"]
    told = pictolex("info", run).stdout
    assert "born x" in told and "removed x" in told
    assert (run / "history").is_dir() and (run / "checkpoints").is_dir()


def test_a_run_is_evaluated_with_the_truth_of_a_built_in_set(run: Path) -> None:
    done = pictolex("evaluate", run, "tetrominoes[:4]", "--json")
    figures = json.loads(done.stdout)
    for name in ("ari_foreground", "ari_foreground_fixed_order", "ari_all", "concept_l1", "concept_l1_strict", "mse"):
        assert 0 <= figures[name] <= 1 or name == "ari_all"
    assert figures["ari_foreground"] >= figures["ari_foreground_fixed_order"] and figures["cluster_accuracy"] is None


def test_evaluate_agrees_with_the_arrays(run: Path, tmp_path: Path) -> None:
    assert pictolex("data", "make", "tetrominoes", "--count", "4", "--seed", "9", "-o", tmp_path / "set.npz").returncode == 0
    done = pictolex("decompose", run, tmp_path / "set.npz", "-o", tmp_path / "f.parquet", "--arrays", tmp_path / "a.npz")
    assert done.returncode == 0, done.stderr
    figures = json.loads(pictolex("evaluate", run, tmp_path / "set.npz", "--json").stdout)
    images, rebuilt = np.load(tmp_path / "set.npz")["images"] / 255, np.load(tmp_path / "a.npz")["rebuilt"]
    assert figures["mse"] == pytest.approx(((images - rebuilt) ** 2).mean(), abs=1e-6)
    masks = f"{tmp_path / 'a.npz'}:masks"
    itself = json.loads(pictolex("evaluate", run, tmp_path / "set.npz", "--truth", masks, "--json").stdout)
    assert itself["ari_foreground_fixed_order"] == pytest.approx(1.0)


def test_pictures_of_a_run_are_kept_in_it(run: Path) -> None:
    done = pictolex("show", run, "--count", "2")
    assert done.returncode == 0, done.stderr
    assert done.stdout.split() == [str(run / "pictures" / "dictionary.png"), str(run / "pictures" / "layers.png")]


def test_the_runs_own_images_are_rendered(run: Path, tmp_path: Path) -> None:
    assert pictolex("render", run, "-o", tmp_path).returncode == 0
    assert len(list(tmp_path.glob("*.png"))) == 12


def test_an_existing_run_is_not_overwritten_unless_told(run: Path, tmp_path: Path) -> None:
    told = refused(pictolex("learn", "tetrominoes[:2]", "-o", run, "--quiet"))
    assert "already holds a run" in told and "--resume" in told and "--overwrite" in told
    copy = tmp_path / "run"
    for _ in range(2):
        assert pictolex("learn", "tetrominoes[:2]", "-o", copy, "--overwrite", *SMALL).returncode == 0


def test_ctrl_c_saves(tmp_path: Path) -> None:
    process = subprocess.Popen(
        [sys.executable, "-m", "pictolex", "learn", "tetrominoes[:2000]", "-o", str(tmp_path / "run"), *TINY, "--epochs", "1000"],
        stderr=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "OMP_NUM_THREADS": "1"},
    )
    assert process.stderr is not None
    for line in process.stderr:
        if line.startswith("epoch"):
            break
    time.sleep(1)
    process.send_signal(signal.SIGINT)
    _, told = process.communicate(timeout=120)
    assert process.returncode in (0, 130) and "Traceback" not in told
    assert json.loads(pictolex("info", tmp_path / "run", "--json").stdout)["concepts"] == 3


def test_the_budget_is_kept(tmp_path: Path) -> None:
    """The learner's own time, as told by its log, the last pass over the images included; starting the program comes on top."""
    start = time.monotonic()
    done = pictolex("learn", "tetrominoes[:50]", "-o", tmp_path / "run", *TINY, "--epochs", "1000", "--budget", "8s")
    assert done.returncode == 0, done.stderr
    entries = [json.loads(line) for line in (tmp_path / "run" / "log.jsonl").read_text().splitlines()]
    (seconds,) = [entry["seconds"] for entry in entries if entry["event"] == "done"]
    assert seconds < 8 * 1.1 and time.monotonic() - start < 30
    facts = json.loads(pictolex("info", tmp_path / "run", "--json").stdout)
    assert facts["images"] == 50 and 1 < facts["epochs"] < 1000


@pytest.fixture(scope="module")
def photos(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder of images of two sprites, on a ground of their own."""
    from PIL import Image

    folder = tmp_path_factory.mktemp("photos")
    sprites = write_sprites(folder / "sprites")
    (folder / "images").mkdir()
    rng = np.random.default_rng(0)
    for number in range(16):
        image = scene(sprites, ("disc", *rng.integers(1, 30, 2).tolist()), ("bar", *rng.integers(1, 28, 2).tolist()))
        ground = Image.new("RGB", image.size, (20, 90, 40))
        ground.paste(image, mask=image.convert("L").point(lambda value: 255 * (value > 0)))
        ground.save(folder / "images" / f"{number:02}.png")
    return folder / "images"


def test_any_folder_is_learned_without_options(photos: Path, tmp_path: Path) -> None:
    done = pictolex("learn", photos, cwd=tmp_path)
    assert done.returncode == 0 and done.stdout.strip() == "run", done.stderr
    told = [line for line in done.stderr.splitlines() if line.startswith("auto: ")]
    assert 3 <= len(told) <= 8 and any("background" in line for line in told) and any("elements an image" in line for line in told)
    facts = json.loads(pictolex("info", tmp_path / "run", "--json").stdout)
    assert facts["concepts"] >= 2 and facts["elements_per_image"] >= 1.5 and facts["background"] != "none"


def test_auto_explains_itself_and_what_is_typed_comes_over_it(photos: Path, tmp_path: Path) -> None:
    typed = ("--layers", "7", "--seed", "3", "--epochs", "1")
    done = pictolex("learn", photos, "-o", tmp_path / "run", "--preset", "auto", "--explain", "--quiet", *typed)
    assert done.returncode == 0, done.stderr
    told = done.stderr.splitlines()
    assert all(line.startswith("auto: ") for line in told)
    assert any(line.startswith("auto: measured on 16 of 16 images") for line in told) and any("kind 1: " in line for line in told)
    (settings,) = [line for line in told if line.startswith("auto: settings ")]
    assert " --layers 7" in settings and " --seed 3" in settings and " --learning.epochs 1" in settings
    facts = json.loads(pictolex("info", tmp_path / "run", "--json").stdout)
    assert (facts["most_elements"], facts["epochs"]) == (7, 1)
    again = settings.removeprefix("auto: settings ").split()
    done = pictolex("learn", photos, "-o", tmp_path / "again", "--preset", "auto", "--quiet", *again)
    assert done.returncode == 0 and done.stderr == "", done.stderr
    assert read_settings(tmp_path / "again" / "settings.toml").learning == read_settings(tmp_path / "run" / "settings.toml").learning


def test_a_built_in_set_brings_its_own_preset_unless_told(tmp_path: Path) -> None:
    assert "auto: " in pictolex("learn", "tetrominoes[:24]", "-o", tmp_path / "auto", "--preset", "auto", *SMALL).stderr
    done = pictolex("learn", "tetrominoes[:8]", "-o", tmp_path / "own", "--explain", *SMALL)
    assert "preset tetrominoes" in done.stderr and "nothing to explain" in done.stderr and "auto: " not in done.stderr


def test_wrong_options_are_told_before_the_images_are_looked_at(photos: Path, tmp_path: Path) -> None:
    told = pictolex("learn", photos, "-o", tmp_path / "run", "--layers", "none", "--learning.epochs", "1")
    assert "--layers" in refused(told) and "auto: " not in told.stderr
    told = pictolex("learn", photos, "-o", tmp_path / "run", "--freeze")
    assert "--init" in refused(told)
    assert "--budget 0" in refused(pictolex("learn", photos, "-o", tmp_path / "run", "--budget", "0"))
    assert not (tmp_path / "run").exists()
