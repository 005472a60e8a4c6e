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

from cli.program import pictolex, refused

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
    assert "already holds a run" in refused(pictolex("learn", "tetrominoes[:2]", "-o", run, "--quiet"))
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
    start = time.monotonic()
    done = pictolex("learn", "tetrominoes[:50]", "-o", tmp_path / "run", *TINY, "--epochs", "1000", "--budget", "8s")
    assert done.returncode == 0, done.stderr
    assert time.monotonic() - start < 30
    assert json.loads(pictolex("info", tmp_path / "run", "--json").stdout)["images"] == 50
