"""`pictolex ablate` as users type it, on a few generated images."""

import json
import subprocess
from pathlib import Path

import pytest

from cli.program import pictolex, refused

WITHOUT_DATA = {"PICTOLEX_DATA": ""}
SMALL = ("ablate", "objective", "--images", "2", "--device", "cpu")


@pytest.fixture(scope="module")
def done(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, subprocess.CompletedProcess[str]]:
    out = tmp_path_factory.mktemp("ablated") / "out"
    return out, pictolex(*SMALL, "-o", out, env=WITHOUT_DATA)


def test_it_prints_and_keeps_a_table(done: tuple[Path, subprocess.CompletedProcess[str]]) -> None:
    out, program = done
    assert program.returncode == 0, program.stderr
    assert program.stdout == (out / "objective" / "table.md").read_text()
    assert "| tetrominoes-ncc" in program.stdout and "not the shared set" in program.stdout
    assert "objective, tetrominoes-squared (1 of 4)" in program.stderr
    kept = {path.parent.name for path in (out / "objective").rglob("seed-0.safetensors")}
    assert kept == {"tetrominoes-squared", "tetrominoes-ncc", "dsprites-bin-squared", "dsprites-bin-ncc"}


def test_json_has_everything_and_what_is_finished_is_kept(done: tuple[Path, subprocess.CompletedProcess[str]]) -> None:
    out, _ = done
    program = pictolex(*SMALL, "-o", out, "--json", "--budget", "0.001s", "--seeds", "0,1", env=WITHOUT_DATA)
    assert program.returncode == 0, program.stderr
    assert program.stderr.count("finished before") == 4
    told = json.loads(program.stdout)
    assert told.keys() == {"name", "question", "folder", "rows", "results", "left", "notes"} and told["left"] == []
    assert told == json.loads((out / "objective" / "table.json").read_text())
    assert told["rows"][0]["figures"]["ari_foreground"]["mean"] == told["results"][0]["figures"]["ari_foreground"]


def test_quiet_says_nothing(done: tuple[Path, subprocess.CompletedProcess[str]]) -> None:
    out, first = done
    program = pictolex(*SMALL, "-o", out, "--quiet", env=WITHOUT_DATA)
    assert program.stderr == "" and program.stdout == first.stdout


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("size",), "unknown ablation 'size': did you mean sizes?"),
        (("rounds", "--seeds", ","), "--seeds is empty"),
        (("rounds", "--seeds", "one"), "--seeds 'one': not whole numbers"),
        (("rounds", "--images", "0"), "--images 0"),
        (("rounds", "--budget", "soon"), "--budget 'soon' is not a duration"),
        (("rounds", "--device", "abacus"), "abacus"),
    ],
)
def test_refusals_are_one_line_and_leave_nothing(arguments: tuple[str, ...], message: str, tmp_path: Path) -> None:
    assert message in refused(pictolex("ablate", *arguments, "-o", tmp_path / "out"))
    assert not (tmp_path / "out").exists()


def test_a_folder_that_cannot_be_written_is_told_before_the_work(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    assert "file" in refused(pictolex(*SMALL, "-o", tmp_path / "file", "--quiet", env=WITHOUT_DATA))
