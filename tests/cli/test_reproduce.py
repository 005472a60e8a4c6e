"""`pictolex reproduce` as users type it, on a few generated images."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from cli.program import pictolex, refused

WITHOUT_DATA = {"PICTOLEX_DATA": ""}
SMALL = ("reproduce", "tetrominoes", "--presets", "tetrominoes", "--images", "4", "--learn-budget", "1s", "--device", "cpu")


@pytest.fixture(scope="module")
def done(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, subprocess.CompletedProcess[str]]:
    out = tmp_path_factory.mktemp("reproduced") / "out"
    return out, pictolex(*SMALL, "--seeds", "0", "-o", out, env=WITHOUT_DATA)


def test_it_prints_and_keeps_a_table(done: tuple[Path, subprocess.CompletedProcess[str]]) -> None:
    out, program = done
    assert program.returncode == 0, program.stderr
    assert program.stdout == (out / "tetrominoes" / "table.md").read_text()
    assert "published" in program.stdout and "measured here, on our generated tetrominoes" in program.stdout
    assert "preset tetrominoes, seed 0 (1 of 1)" in program.stderr and "not the shared set" in program.stderr
    seed = out / "tetrominoes" / "tetrominoes" / "seed-0"
    assert {path.name for path in seed.iterdir()} == {"run", "result.json", "dictionary.png", "layers.png"}
    assert pictolex("info", seed / "run").returncode == 0


def test_json_has_everything_and_a_finished_seed_is_kept(done: tuple[Path, subprocess.CompletedProcess[str]]) -> None:
    out, _ = done
    program = pictolex(*SMALL, "--seeds", "0,1", "--budget", "0.001s", "-o", out, "--json", env=WITHOUT_DATA)
    assert program.returncode == 0, program.stderr
    assert "finished before" in program.stderr and "left for the next call" in program.stderr
    told = json.loads(program.stdout)
    assert told.keys() == {"name", "folder", "rows", "targets", "seeds", "left", "notes"}
    assert [row["source"] == "published" for row in told["rows"]] == [True, True, True, True, False]
    ours = told["rows"][-1]
    assert ours["seeds"] == [0] and ours["figures"]["ari_foreground"]["worst"] == told["seeds"][0]["figures"]["ari_foreground"]
    assert {"settings_hash", "versions", "device", "settings", "data"} <= told["seeds"][0].keys()
    assert [(left["preset"], left["seed"]) for left in told["left"]] == [("tetrominoes", 1)]
    assert {target["figure"] for target in told["targets"]} == {"ari_foreground", "learn_seconds"}


def test_quiet_says_nothing(done: tuple[Path, subprocess.CompletedProcess[str]]) -> None:
    out, _ = done
    assert pictolex(*SMALL, "--seeds", "0", "-o", out, "--quiet", env=WITHOUT_DATA).stderr == ""


def test_ctrl_c_keeps_finished_seeds(done: tuple[Path, subprocess.CompletedProcess[str]]) -> None:
    out, _ = done
    many = [*SMALL[:4], "--seeds", "0,1", "--device", "cpu", "-o", str(out.parent / "cut")]
    process = subprocess.Popen(
        [sys.executable, "-m", "pictolex", *many],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "OMP_NUM_THREADS": "1", **WITHOUT_DATA},
    )
    assert process.stderr is not None
    for line in process.stderr:
        if "seed 0 (1 of 2)" in line:
            break
    time.sleep(1)
    process.send_signal(signal.SIGINT)
    stdout, told = process.communicate(timeout=120)
    assert process.returncode == 130 and stdout == "" and "Traceback" not in told
    assert "finished seeds are kept" in told and told.rstrip().endswith("pictolex: interrupted")
    assert not list((out.parent / "cut").rglob("result.json"))


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("tetromino",), "unknown experiment 'tetromino': did you mean tetrominoes?"),
        (("pattern", "--seeds", ","), "--seeds is empty"),
        (("pattern", "--seeds", "one"), "--seeds 'one': not whole numbers"),
        (("pattern", "--presets", "patern"), "unknown preset 'patern': did you mean pattern"),
        (("pattern", "--budget", "soon"), "--budget 'soon' is not a duration"),
    ],
)
def test_refusals_are_one_line_and_leave_nothing(arguments: tuple[str, ...], message: str, tmp_path: Path) -> None:
    assert message in refused(pictolex("reproduce", *arguments, "-o", tmp_path / "out"))
    assert not (tmp_path / "out").exists()
