"""Runs that are killed, interrupted, short of disk or damaged go on as if nothing had been, or say in one line why not."""

import json
import os
import random
import shutil
import signal
import subprocess
import sys
import time
import warnings
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from cli.program import pictolex, refused, write_sprites
from pictolex.errors import FormatError, InputError, OutputError
from pictolex.learn import LearningProgress, Run, learn
from pictolex.learn.checkpoint import DamagedCheckpointWarning
from pictolex.learn.given import fitted, given_by
from pictolex.learn.run import UnwrittenWarning
from pictolex.model import Background, Concept, Dictionary
from pictolex.presets import load_preset
from pictolex.settings import AlphaFormation, FreeBackground, FreeColour, HueColour, NoColour, Placement, PlainBackground, Settings

EPOCHS = 12
SEARCH = ("--strategy.kind", "rounds", "--strategy.rounds", "1")
GROWTH = ("--learning.group", "8", "--learning.initial", "3", "--learning.concepts", "10")
OPTIONS = ("--preset", "tetrominoes", *SEARCH, *GROWTH, "--epochs", str(EPOCHS))
RESULT = ("dictionary.safetensors", "dictionary.json", "lineage.json", "elements.parquet")
PROGRAM = "import sys, pictolex.learn.loop as loop\nloop.INTERVAL = float(sys.argv.pop(1))\nfrom pictolex.cli import main\nsys.exit(main())"
"""The program, with another time between checkpoints within an epoch."""


@pytest.fixture(scope="module")
def images(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("data") / "set.npz"
    assert pictolex("data", "make", "tetrominoes", "--count", "24", "--seed", "3", "-o", path).returncode == 0
    return path


@pytest.fixture(scope="module")
def whole(images: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run that nothing happened to."""
    folder = tmp_path_factory.mktemp("whole") / "run"
    done = pictolex("learn", images, "-o", folder, *OPTIONS)
    assert done.returncode == 0, done.stderr
    kinds = {event.kind for event in Run.open(folder).lineage}
    assert "split" in kinds and "born" in kinds, "the dictionary has to change, or there is little to resume"
    return folder


@pytest.fixture(scope="module")
def stopped(images: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run that was killed after a few epochs."""
    folder = tmp_path_factory.mktemp("stopped") / "run"
    kill(begin("learn", images, "-o", folder, *OPTIONS), folder, 4)
    return folder


@pytest.fixture
def run(stopped: Path, tmp_path: Path) -> Path:
    """A copy of the run that was killed."""
    return Path(shutil.copytree(stopped, tmp_path / "run"))


def begin(*arguments: str | Path, interval: float = 20.0) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-c", PROGRAM, str(interval), *map(str, arguments)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        stdin=subprocess.DEVNULL,
        text=True,
        env={**os.environ, "OMP_NUM_THREADS": "1"},
    )


def epochs(folder: Path) -> int:
    log = folder / "log.jsonl"
    return max((int(e["epoch"]) for e in map(json.loads, log.read_text().splitlines()) if "epoch" in e), default=0) if log.exists() else 0


def wait_for(process: subprocess.Popen[str], folder: Path, epoch: int) -> None:
    """Until an epoch is done."""
    until = time.monotonic() + 120
    while process.poll() is None and time.monotonic() < until:
        try:
            if epochs(folder) >= epoch:
                return
        except ValueError:
            pass  # half a line is there
        time.sleep(0.01)
    process.kill()
    raise AssertionError(f"ended before epoch {epoch}: {process.communicate()[1]}")


def kill(process: subprocess.Popen[str], folder: Path, epoch: int) -> None:
    """SIGKILL at a random moment after an epoch."""
    wait_for(process, folder, epoch)
    time.sleep(random.random() * 0.3)
    process.kill()
    process.communicate(timeout=60)
    assert process.returncode == -signal.SIGKILL


def same(one: Path, other: Path) -> None:
    for name in RESULT:
        assert (one / name).read_bytes() == (other / name).read_bytes(), name


# --- killed and interrupted ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "interval",
    [pytest.param(20.0, id="checkpoints at the ends of epochs"), pytest.param(0.0, id="after every group", marks=pytest.mark.slow)],
)
def test_killed_twice_and_resumed_is_as_never_stopped(images: Path, whole: Path, tmp_path: Path, interval: float) -> None:
    folder = tmp_path / "run"
    kill(begin("learn", images, "-o", folder, *OPTIONS, interval=interval), folder, 2)
    kill(begin("learn", images, "-o", folder, "--resume", interval=interval), folder, 6)
    done = pictolex("learn", images, "-o", folder, "--resume")
    assert done.returncode == 0 and done.stdout.strip() == str(folder), done.stderr
    same(whole, folder)
    entries = Run.open(folder).history
    assert entries[-2]["event"] == "done" and {entry["epoch"] for entry in entries if "epoch" in entry} == set(range(1, EPOCHS + 1))
    assert not [path for path in folder.rglob(".*")], "nothing half-written stays"


def test_ctrl_c_saves_at_once_and_goes_on(images: Path, whole: Path, tmp_path: Path) -> None:
    folder = tmp_path / "run"
    process = begin("learn", images, "-o", folder, *OPTIONS)
    wait_for(process, folder, 3)
    process.send_signal(signal.SIGINT)
    _, told = process.communicate(timeout=60)
    assert process.returncode == 130 and "--resume" in told and "Traceback" not in told
    assert len(Run.open(folder).dictionary) >= 3 and Run.open(folder).elements is None
    assert Run.open(folder).history[-2]["event"] == "interrupted"
    assert pictolex("learn", images, "-o", folder, "--resume", "-q").returncode == 0
    same(whole, folder)


def test_ctrl_c_before_learning_has_begun_leaves_nothing(images: Path, tmp_path: Path) -> None:
    process = begin("learn", images, "-o", tmp_path / "run", *OPTIONS)
    time.sleep(0.3)
    process.send_signal(signal.SIGINT)
    _, told = process.communicate(timeout=60)
    assert process.returncode in (130, -signal.SIGINT, 1) and not (tmp_path / "run" / "settings.toml").exists(), told


# --- what is left to do --------------------------------------------------------------------------------------------------


def test_a_complete_run_is_left_alone_and_more_epochs_go_on(images: Path, whole: Path, tmp_path: Path) -> None:
    folder = Path(shutil.copytree(whole, tmp_path / "run"))
    done = pictolex("learn", images, "-o", folder, "--resume")
    assert done.returncode == 0 and done.stdout.strip() == str(folder)
    assert "is complete" in done.stderr and "--epochs" in done.stderr
    same(whole, folder)
    assert (folder / "log.jsonl").read_bytes() == (whole / "log.jsonl").read_bytes()
    done = pictolex("learn", images, "-o", folder, "--resume", "--epochs", str(EPOCHS + 2), "--workers", "1", "--device", "cpu")
    assert done.returncode == 0 and f"epoch {EPOCHS + 1}/{EPOCHS + 2}" in done.stderr, done.stderr
    assert epochs(folder) == EPOCHS + 2
    assert (Run.open(folder).settings.learning.epochs, Run.open(folder).settings.workers) == (EPOCHS + 2, 1)
    facts = json.loads(pictolex("info", folder, "--json").stdout)
    assert facts["epochs"] == EPOCHS + 2 and facts["seconds"] > 0
    assert facts["lineage"]["born"] >= 3 and set(facts["lineage"]) == {"born", "split", "merged", "removed"}


def test_the_command_that_began_a_run_resumes_it(images: Path, whole: Path, run: Path) -> None:
    assert pictolex("learn", images, "-o", run, *OPTIONS, "--resume").returncode == 0
    same(whole, run)


def test_elements_of_fewer_epochs_are_not_taken_for_those_of_more(images: Path, whole: Path, tmp_path: Path) -> None:
    folder = Path(shutil.copytree(whole, tmp_path / "run"))
    kill(begin("learn", images, "-o", folder, "--resume", "--epochs", "500"), folder, EPOCHS + 1)
    assert Run.open(folder).elements is None and Run.open(folder).settings.learning.epochs == 500
    done = pictolex("learn", images, "-o", folder, "--resume", "--epochs", "14", "-q")
    assert done.returncode == 0
    assert len(Run.open(folder).elements or ()) == 24


# --- what is refused -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--resume", "--layers", "4"), "made with other settings (layers 3, not 4); resume it with its own (leave the options out)"),
        (("--resume", "--seed", "1"), "made with other settings (seed 0, not 1)"),
        (("--resume", "--preset", "tetrominoes"), "made with other settings"),
        (("--resume", "--init", "sprites"), "--init"),
        (("--resume", "--overwrite"), "--overwrite removes the run that --resume goes on with"),
        ((), "already holds a run; go on with it (--resume), replace it (--overwrite)"),
        (("--freeze", "--overwrite"), "--init"),
        (("--resume", "--budget", "0"), "--budget 0: that leaves no time"),
    ],
)
def test_wishes_that_cannot_be(images: Path, run: Path, options: tuple[str, ...], message: str) -> None:
    before = {path: path.read_bytes() for path in run.rglob("*") if path.is_file()}
    assert message in refused(pictolex("learn", images, "-o", run, *options))
    assert before == {path: path.read_bytes() for path in run.rglob("*") if path.is_file()}, "nothing changed"


def test_there_has_to_be_something_to_resume(images: Path, tmp_path: Path) -> None:
    assert "holds no run to resume; learn there without resume (--resume)" in refused(
        pictolex("learn", images, "-o", tmp_path / "gone", "--resume")
    )
    assert "(-o)" in refused(pictolex("learn", images, "--resume"))
    assert not (tmp_path / "gone").exists()


def test_other_images_are_refused(run: Path, tmp_path: Path) -> None:
    pictolex("data", "make", "tetrominoes", "--count", "24", "--seed", "4", "-o", tmp_path / "other.npz")
    assert "learned from other images" in refused(pictolex("learn", tmp_path / "other.npz", "-o", run, "--resume"))


def test_a_newer_version_is_left_to_the_newer_program(images: Path, run: Path) -> None:
    document = json.loads((run / "dictionary.json").read_text())
    (run / "dictionary.json").write_text(json.dumps({**document, "version": 2}))
    told = refused(pictolex("learn", images, "-o", run, "--resume"))
    assert "dictionary.json" in told and "update Pictolex" in told
    settings = (run / "settings.toml").read_text()
    (run / "settings.toml").write_text(settings.replace("version = 1\n", "version = 2\n"))
    for command in (("learn", images, "-o", run, "--resume"), ("info", run)):
        told = refused(pictolex(*command))
        assert "settings.toml" in told and "a newer pictolex wrote it: use that one" in told


def test_a_damaged_checkpoint_is_passed_over(images: Path, whole: Path, run: Path) -> None:
    newest = sorted((run / "checkpoints").iterdir())[-1]
    newest.write_bytes(newest.read_bytes()[:-100])
    done = pictolex("learn", images, "-o", run, "--resume", "-q")
    assert done.returncode == 0
    (told,) = done.stderr.splitlines()
    assert newest.name in told and "damaged" in told and "going on from the checkpoint before it" in told
    same(whole, run)


def test_without_a_good_checkpoint_there_is_nothing_to_resume(images: Path, run: Path) -> None:
    for path in (run / "checkpoints").iterdir():
        path.write_bytes(b"not a checkpoint")
    told = refused(pictolex("learn", images, "-o", run, "--resume"))
    assert "damaged" in told and "--overwrite" in told
    shutil.rmtree(run / "checkpoints")
    assert "stopped before its first checkpoint" in refused(pictolex("learn", images, "-o", run, "--resume"))


# --- a full disk ---------------------------------------------------------------------------------------------------------


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of its own; only where this process may mount one."""
    folder = tmp_path / "disk"
    folder.mkdir()
    if shutil.which("mount") is None or subprocess.run(["mount", "-t", "tmpfs", "-o", "size=320k", "tmpfs", folder]).returncode:
        pytest.skip("no file system can be mounted here")
    yield folder
    subprocess.run(["umount", folder], check=True)


def test_a_full_disk_and_what_to_do(images: Path, whole: Path, small_disk: Path) -> None:
    told = refused(pictolex("learn", images, "-o", small_disk / "run", *OPTIONS))
    assert "disk full" in told and "--resume" in told
    assert epochs(small_disk / "run") < EPOCHS or Run.open(small_disk / "run").elements is None
    subprocess.run(["mount", "-o", "remount,size=8m", small_disk], check=True)
    done = pictolex("learn", images, "-o", small_disk / "run", "--resume", "-q")
    assert done.returncode == 0 and done.stderr == ""
    same(whole, small_disk / "run")


class FullDisk:
    """Nothing reaches the disk during some epochs: as `fsync` and a raw write fail on a full one."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, first: int, last: int) -> None:
        self.full, self.epochs = False, range(first, last + 1)
        fsync = os.fsync

        def failing(file: int) -> None:
            if self.full:
                raise OSError(28, "No space left on device")
            fsync(file)

        monkeypatch.setattr(os, "fsync", failing)

    def __call__(self, progress: LearningProgress) -> None:
        self.full = progress.epoch in self.epochs


def crosses() -> np.ndarray:
    rng = np.random.default_rng(0)
    images = np.zeros((16, 24, 24), np.uint8)
    for image in images:
        for x in (6, 17):
            y = int(rng.integers(6, 18))
            image[y - 3 : y + 4, x - 1 : x + 2] = 255
            image[y - 1 : y + 2, x - 3 : x + 4] = 255
    return images


def quick(**learning: object) -> Settings:
    values = {"concepts": 4, "concept_size": 11, "epochs": 6, "group": 8} | learning
    return Settings.model_validate({"layers": 2, "strategy": {"kind": "rounds", "rounds": 1}, "learning": values})


def test_learning_survives_a_disk_that_is_full_for_a_while(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    learn(crosses(), settings=quick(), out=tmp_path / "whole")
    disk = FullDisk(monkeypatch, 2, 4)
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        run = learn(crosses(), settings=quick(), out=tmp_path / "run", callbacks=(disk,))
    first, last = (str(one.message) for one in told)
    assert "disk full" in first and first.endswith("learning goes on, and tries again later")
    assert run.unwritten == 9, "dictionary, checkpoint and history of three epochs"
    assert last == f"{run.folder}: 9 writes failed while learning; its result is whole"
    same(tmp_path / "whole", tmp_path / "run")


def test_a_full_disk_at_the_end_leaves_the_checkpoint_before(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    learn(crosses(), settings=quick(), out=tmp_path / "whole")
    disk = FullDisk(monkeypatch, 3, 6)
    with pytest.warns(UnwrittenWarning), pytest.raises(OutputError, match=r"run/dictionary.*disk full; free some space.*\(--resume\)"):
        learn(crosses(), settings=quick(), out=tmp_path / "run", callbacks=(disk,))
    assert sorted(path.name[:6] for path in (tmp_path / "run" / "checkpoints").iterdir()) == ["000001", "000002"]
    monkeypatch.undo()
    learn(crosses(), out=tmp_path / "run", resume=True)
    same(tmp_path / "whole", tmp_path / "run")


def test_half_a_line_in_the_log_goes(tmp_path: Path) -> None:
    run = Run.create(tmp_path, Settings())
    run.log({"event": "epoch", "epoch": 1})
    with (tmp_path / "log.jsonl").open("a") as log:
        log.write('{"event": "ep')
    assert [entry["epoch"] for entry in run.history] == [1]
    run.log({"event": "epoch", "epoch": 2})
    assert [entry["epoch"] for entry in run.history] == [1, 2]


# --- from Python ---------------------------------------------------------------------------------------------------------


def test_python_resumes_too(tmp_path: Path) -> None:
    def stop(progress: LearningProgress) -> None:
        if progress.epoch == 2 and progress.done == 8:
            raise KeyboardInterrupt

    whole = learn(crosses(), settings=quick(), out=tmp_path / "whole")
    with pytest.raises(KeyboardInterrupt):
        learn(crosses(), settings=quick(), out=tmp_path / "run", callbacks=(stop,))
    with pytest.raises(OutputError, match="already holds a run"):
        learn(crosses(), settings=quick(), out=tmp_path / "run")
    with pytest.raises(InputError, match="other images"):
        learn(crosses()[:8], out=tmp_path / "run", resume=True)
    learn(crosses(), out=tmp_path / "run", resume=True)
    same(tmp_path / "whole", tmp_path / "run")
    seen: list[LearningProgress] = []
    again = learn(crosses(), out=tmp_path / "run", resume=True, callbacks=(seen.append,))
    assert not seen and again.dictionary.ids == whole.dictionary.ids
    with pytest.raises(InputError, match="nothing to resume"):
        learn(crosses(), resume=True)


def test_what_is_frozen_stays_so_when_resumed(tmp_path: Path) -> None:
    soft = np.full((7, 7), 0.6, np.float32)
    init = Dictionary((Concept(5, np.full((7, 7, 1), 0.9), soft),))

    def stop(progress: LearningProgress) -> None:
        if progress.epoch == 2:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        learn(crosses(), settings=quick(), out=tmp_path / "run", init=init, freeze=True, callbacks=(stop,))
    frozen = learn(crosses(), out=tmp_path / "run", resume=True).dictionary
    assert np.array_equal(frozen[5].alpha, soft) and [e.kind for e in frozen.lineage.of(5)] == ["frozen"]
    free = learn(crosses(), settings=quick(), init=init).dictionary
    assert 5 not in free or not np.array_equal(free[5].alpha, soft)
    with pytest.raises(InputError, match="nothing to freeze"):
        learn(crosses(), settings=quick(), freeze=True)


def test_python_is_warned_of_a_damaged_checkpoint(tmp_path: Path) -> None:
    learn(crosses(), settings=quick(epochs=1), out=tmp_path / "run")
    last = sorted((tmp_path / "run" / "checkpoints").iterdir())[-1]
    last.write_bytes(last.read_bytes()[:50])
    with pytest.warns(DamagedCheckpointWarning, match="going on from the checkpoint before it"):
        learn(crosses(), out=tmp_path / "run", resume=True, epochs=2)
    for path in (tmp_path / "run" / "checkpoints").iterdir():
        path.write_bytes(b"")
    with pytest.raises(FormatError, match="no other checkpoint"):
        learn(crosses(), out=tmp_path / "run", resume=True, epochs=3)


def test_no_warning_where_all_is_well(tmp_path: Path) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        learn(crosses(), settings=quick(epochs=2), out=tmp_path / "run")
        learn(crosses(), out=tmp_path / "run", resume=True, epochs=3)


# --- sprites to start from -----------------------------------------------------------------------------------------------


def test_settings_fit_what_is_given(tmp_path: Path) -> None:
    fine = load_preset("dsprites-color").model_copy(update={"placement": Placement(rotations=40, scales=(0.2, 0.4))})
    grey = Dictionary((Concept(3, np.ones((90, 9, 1)), np.ones((90, 9))),))
    found = fitted(fine, given_by(grey))
    assert found.placement == Placement(rotations=40, scales=(0.5, 1.0)), "sprites are as large as they are drawn"
    assert (found.colour, found.background) == (FreeColour(), FreeBackground()) and found.learning.concept_size == 90
    coloured = Dictionary((Concept(0, np.ones((5, 5, 3)), np.ones((5, 5))),), background=Background("plain", np.zeros(3)), sharpness=2.0)
    found = fitted(fine, given_by(coloured))
    assert (found.colour, found.background, found.formation) == (NoColour(), PlainBackground(), AlphaFormation(sharpness=2.0))
    run = Run.create(tmp_path / "run", fine)
    run.save_dictionary(Dictionary(grey.concepts, hues=np.eye(3, dtype=np.float32)))
    again = fitted(Settings(), given_by(tmp_path / "run"))
    assert (again.placement.scales, again.colour) == ((0.4,), HueColour(count=3)), "a run's concepts are placed as it placed them"


def test_sprites_to_start_from(tmp_path: Path) -> None:
    from PIL import Image

    sprites = write_sprites(tmp_path / "sprites")
    (tmp_path / "images").mkdir()
    rng = np.random.default_rng(1)
    for number in range(12):
        image = Image.new("RGB", (40, 40))
        for name in ("disc", "bar"):
            sprite = Image.open(sprites / f"{name}.png")
            image.paste(sprite, (int(rng.integers(2, 28)), int(rng.integers(2, 28))), sprite)
        image.save(tmp_path / "images" / f"{number:02}.png")
    done = pictolex("learn", tmp_path / "images", "-o", tmp_path / "run", "--init", sprites, "--freeze", "--epochs", "2")
    assert done.returncode == 0 and "auto: " in done.stderr and "2 concepts given" in done.stderr, done.stderr
    run = Run.open(tmp_path / "run")
    given = Run.open(tmp_path / "run").dictionary
    assert {event.kind for event in run.lineage} >= {"frozen"} and [c.name for c in given][:2] == ["bar", "disc"]
    assert run.elements is not None and float(run.elements.images["error"].mean()) < 0.1
    again = pictolex("learn", tmp_path / "images", "-o", tmp_path / "again", "--init", tmp_path / "run", "--epochs", "1", "-q")
    assert again.returncode == 0 and again.stderr == ""
