"""An experiment runs each seed once, keeps it whole, and tells published figures from measured ones."""

import json
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from pictolex.errors import InputError, SettingError
from pictolex.experiments import reproduce_pattern, reproduce_sets
from pictolex.experiments.bench_base import DATA
from pictolex.experiments.reproduce import EXPERIMENTS, Order, Report, Watch, run_experiment, table
from pictolex.experiments.reproduce_base import Experiment, Result, Row, Step, Target
from pictolex.experiments.reproduce_published import ARI, L1, PLACEMENTS, SECONDS
from pictolex.experiments.reproduce_seed import Clock, OutOfTimeError
from pictolex.experiments.reproduce_table import measured_rows, verdicts
from pictolex.learn import LearningProgress, Run
from pictolex.model import Dictionary
from pictolex.settings import HueColour, Settings
from pictolex.sources import Source
from pictolex.sources.synthetic import true_dictionary, write_npz

TETROMINOES, PATTERN = EXPERIMENTS["tetrominoes"], EXPERIMENTS["pattern"]
PROGRESS = LearningProgress("learning", 1, 1, 1, 1, 0.0, 1.0, 1, 0.0)


class Quick:
    """In place of learning: a dictionary with one true concept, at once. `during(seed)` happens while it learns."""

    def __init__(self) -> None:
        self.calls: list[tuple[str, int, float | None]] = []
        self.during: Callable[[int], None] = lambda seed: None

    def __call__(
        self, images: Source, *, preset: str, seed: int, device: str, budget: float | None, out: Path, callbacks: Sequence[Any]
    ) -> Run:
        run = Run.create(out, Settings(layers=1, colour=HueColour(), seed=seed, device=device))
        known = true_dictionary("tetrominoes")
        run.save_dictionary(Dictionary(tuple(known)[:1], hues=known.hues))
        self.calls.append((preset, seed, budget))
        for callback in callbacks:
            callback(PROGRESS)
            self.during(seed)
            callback(PROGRESS)
        return run

    @property
    def seeds(self) -> list[int]:
        return [seed for _, seed, _ in self.calls]


@pytest.fixture
def quick(monkeypatch: pytest.MonkeyPatch) -> Quick:
    learner = Quick()
    monkeypatch.setattr("pictolex.learn.learn", learner)
    monkeypatch.delenv(DATA, raising=False)
    return learner


def reproduce(out: Path, *seeds: int, said: list[str] | None = None, **changes: Any) -> Report:
    steps: list[Step] = []
    budget = changes.pop("budget", None)
    presets = changes.pop("presets", ("tetrominoes",))
    watch = Watch(step=steps.append, say=(said if said is not None else []).append)
    order = Order(out, **{"images": 2, "device": "cpu", "watch": watch, **changes})
    return run_experiment("tetrominoes", order, seeds=seeds, presets=presets, budget=budget)


def seed_folder(out: Path, seed: int) -> Path:
    return out / "tetrominoes" / "tetrominoes" / f"seed-{seed}"


# --- seeds: once, whole, resumable ---------------------------------------------------------------------------------------


def test_a_finished_seed_is_not_run_again(quick: Quick, tmp_path: Path) -> None:
    first = reproduce(tmp_path, 0)
    assert (seed_folder(tmp_path, 0) / "run" / "dictionary.json").is_file()
    said: list[str] = []
    both = reproduce(tmp_path, 0, 1, said=said)
    assert quick.seeds == [0, 1]
    assert both.seeds[0] == first.seeds[0] and [result.seed for result in both.seeds] == [0, 1]
    assert any("seed 0: finished before" in text for text in said)
    assert set(first.seeds[0].figures) >= {ARI, L1, SECONDS, "learn_cpu_seconds", "mse", "concepts", "images_learned"}
    assert first.seeds[0].device == "cpu" and first.seeds[0].settings["layers"] == 1


def test_other_settings_are_run_again(quick: Quick, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    reproduce(tmp_path, 0)
    reproduce(tmp_path, 0, learn_budget=60.0)
    reproduce(tmp_path, 0, learn_budget=60.0, images=3)
    assert quick.calls == [("tetrominoes", 0, None), ("tetrominoes", 0, 60.0), ("tetrominoes", 0, 60.0)]
    monkeypatch.setattr("pictolex.experiments.reproduce_seed.__version__", "99.0")
    reproduce(tmp_path, 0, learn_budget=60.0, images=3)
    assert len(quick.calls) == 4


@pytest.mark.parametrize(
    "damage", [lambda data: data[: len(data) // 2], lambda data: data.replace(b'"seed": 0', b'"seed": 1'), lambda data: b"{}"]
)
def test_a_damaged_result_is_told_and_run_again(quick: Quick, tmp_path: Path, damage: Callable[[bytes], bytes]) -> None:
    reproduce(tmp_path, 0)
    path = seed_folder(tmp_path, 0) / "result.json"
    path.write_bytes(damage(path.read_bytes()))
    said: list[str] = []
    assert len(reproduce(tmp_path, 0, said=said).seeds) == 1
    assert quick.seeds == [0, 0] and any("this seed is run again" in text for text in said)


def test_ctrl_c_keeps_what_is_finished(quick: Quick, tmp_path: Path) -> None:
    def interrupted(seed: int) -> None:
        if seed == 1:
            raise KeyboardInterrupt

    quick.during = interrupted
    with pytest.raises(KeyboardInterrupt):
        reproduce(tmp_path, 0, 1)
    assert not (seed_folder(tmp_path, 1) / "result.json").exists()
    assert "preset tetrominoes" in (tmp_path / "tetrominoes" / "table.md").read_text()
    quick.during = lambda seed: None
    assert len(reproduce(tmp_path, 0, 1).seeds) == 2
    assert quick.seeds == [0, 1, 1]


def test_a_seed_that_could_not_be_measured_is_not_finished(quick: Quick, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def wrong(*_: object) -> None:
        raise InputError("cannot be measured")

    monkeypatch.setattr("pictolex.experiments.evaluation.measure", wrong)
    with pytest.raises(InputError, match="cannot be measured"):
        reproduce(tmp_path, 0)
    assert [path.name for path in seed_folder(tmp_path, 0).iterdir()] == ["run"]


def test_pictures_are_drawn_for_each_seed(quick: Quick, tmp_path: Path) -> None:
    drawn: list[tuple[int, str]] = []
    watch = Watch(draw=lambda learned, collection, images, folder: drawn.append((len(collection), folder.name)))
    reproduce(tmp_path, 0, 1, watch=watch)
    assert drawn == [(2, "seed-0"), (2, "seed-1")]


# --- the budget ----------------------------------------------------------------------------------------------------------


def test_what_does_not_fit_is_left(quick: Quick, tmp_path: Path) -> None:
    reproduce(tmp_path, 0)
    report = reproduce(tmp_path, 0, 1, budget=1e-6)
    assert quick.seeds == [0] and [one.seed for one in report.left] == [1]
    assert "left for the next call: tetrominoes seed 1: it needs about" in table(report)
    assert [row.seeds for row in report.rows if row.preset] == [(0,)]


def test_a_seed_that_takes_longer_than_those_before_had_time_is_not_begun(quick: Quick, tmp_path: Path) -> None:
    report = reproduce(tmp_path, 0, learn_budget=1000.0, budget=900.0)
    assert not quick.calls and "it needs about 1000 s" in report.left[0].reason


@pytest.mark.parametrize("swallows", [False, True])
def test_a_seed_is_cut_off_when_the_time_is_over(quick: Quick, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, swallows: bool) -> None:
    def saved(*positional: Any, **keywords: Any) -> Run:
        try:
            return quick(*positional, **keywords)
        except KeyboardInterrupt:
            return Run.open(keywords["out"])

    if swallows:
        monkeypatch.setattr("pictolex.learn.learn", saved)
    quick.during = lambda seed: time.sleep(1.0)
    report = reproduce(tmp_path, 0, 1, budget=0.8)
    assert quick.seeds == [0] and [one.seed for one in report.left] == [0, 1] and not report.seeds
    assert "budget was over" in report.left[0].reason
    assert not (seed_folder(tmp_path, 0) / "result.json").exists()
    quick.during = lambda seed: None
    assert len(reproduce(tmp_path, 0).seeds) == 1, "an unfinished seed is started again"


def test_the_clock() -> None:
    assert Clock(None).left == float("inf")
    Clock(None).check()
    with pytest.raises(OutOfTimeError):
        Clock(-1.0).check()


# --- images and truth ----------------------------------------------------------------------------------------------------


def test_the_shared_file_is_split(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    images = np.arange(5000, dtype=np.int64)[:, None, None, None] // np.array([1, 250, 62500]) % 250
    masks = np.ones((5000, 1, 1), np.uint8)
    np.savez_compressed(tmp_path / TETROMINOES.file, images=images.astype(np.uint8), masks=masks)
    monkeypatch.setenv(DATA, str(tmp_path))
    case = reproduce_sets.case(TETROMINOES, None, 0, None)

    def numbers(source: Source) -> list[int]:
        return [round(float(source.read(i).pixels[0, 0] @ (255, 255 * 250, 0))) for i in range(len(source))]

    assert numbers(case.learn) == list(range(4500)) and numbers(case.evaluate) == list(range(4500, 5000))
    known = case.truth()
    assert known is not None and len(known) == 500 and known.has_masks
    few = reproduce_sets.case(TETROMINOES, None, 0, 30)
    assert numbers(few.learn) == list(range(30)) and numbers(few.evaluate) == list(range(4970, 5000))
    assert case.note == "" and TETROMINOES.file in case.data


def test_truth_belongs_to_the_images_measured(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    write_npz(tmp_path / TETROMINOES.file, "tetrominoes", 20)
    monkeypatch.setenv(DATA, str(tmp_path))
    case = reproduce_sets.case(TETROMINOES, None, 0, None)
    known = case.truth()
    assert (len(case.learn), len(case.evaluate)) == (18, 2) and known is not None
    for i in range(2):
        assert np.array_equal(np.asarray(known.masks(i)) > 0, case.evaluate.read(i).pixels.any(axis=2))


def test_one_image_cannot_be_split(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    write_npz(tmp_path / TETROMINOES.file, "tetrominoes", 1)
    monkeypatch.setenv(DATA, str(tmp_path))
    with pytest.raises(InputError, match="others to measure on"):
        reproduce_sets.case(TETROMINOES, None, 0, None)


def test_without_the_file_images_are_generated_and_it_is_said(quick: Quick, tmp_path: Path) -> None:
    case = reproduce_sets.case(TETROMINOES, None, 0, 4)
    seen = {case.learn.read(i).pixels.tobytes() for i in range(4)}
    assert not seen & {case.evaluate.read(i).pixels.tobytes() for i in range(4)}
    whole = reproduce_sets.case(TETROMINOES, None, 0, None)
    assert (len(whole.learn), len(whole.evaluate)) == (4500, 500)
    said: list[str] = []
    report = reproduce(tmp_path, 0, said=said)
    assert any("not the shared set" in text and DATA in text for text in said)
    assert "not the shared set" in table(report) and "our generated tetrominoes" in table(report)


def pattern_file(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_npz(folder / PATTERN.file, "pattern", 3)
    monkeypatch.setenv(DATA, str(folder))


def test_each_seed_has_its_own_pattern(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    pattern_file(tmp_path, monkeypatch)
    images = np.load(tmp_path / PATTERN.file)["images"]
    for seed, image in enumerate(images):
        case = reproduce_pattern.case(PATTERN, 85, seed, None)
        assert len(case.learn) == 1 and np.allclose(case.evaluate.read(0).pixels * 255, image, atol=0.01)
        cut = reproduce_pattern.case(PATTERN, 64, seed, None)
        assert np.allclose(cut.learn.read(0).pixels * 255, image[:64, :64], atol=0.01)
        assert "64x64" in cut.data and case.data != cut.data


@pytest.mark.parametrize("stored", [True, False])
def test_a_cut_pattern_keeps_the_truth_of_what_shows(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, stored: bool) -> None:
    monkeypatch.delenv(DATA, raising=False)
    if stored:
        pattern_file(tmp_path, monkeypatch)
    whole, cut = (reproduce_pattern.case(PATTERN, side, 1, None).truth() for side in (85, 64))
    assert whole is not None and cut is not None and whole.factors is not None and cut.factors is not None
    before, after = np.asarray(whole.masks(0))[:64, :64], np.asarray(cut.masks(0))
    all_rows, rows = whole.factors(0)["placements"], cut.factors(0)["placements"]
    shown = np.unique(before[before > 0])
    assert np.array_equal(np.unique(after[after > 0]), np.arange(1, len(shown) + 1))
    for number, old in enumerate(shown):
        assert np.array_equal(after == number + 1, before == old)
        assert np.array_equal(rows[number], all_rows[old - 1])
    assert (rows[len(shown) :, 0] == -1).all() and len(shown) < (all_rows[:, 0] >= 0).sum()


# --- figures -------------------------------------------------------------------------------------------------------------


def result(seed: int, preset: str = "tetrominoes", **figures: float | None) -> Result:
    return Result("tetrominoes", preset, "", seed, "", "some images", "", figures, 1.0, "cpu", "a machine", {}, {})


def test_statistics_over_seeds() -> None:
    (row,) = measured_rows([result(0, ari_foreground=0.9, learn_seconds=10.0), result(1, ari_foreground=0.7, learn_seconds=30.0)])
    ari, seconds = row.figures[ARI], row.figures[SECONDS]
    assert (ari.mean, ari.worst, ari.values) == (pytest.approx(0.8), 0.7, (0.9, 0.7))
    assert ari.deviation == pytest.approx(0.1414, abs=1e-4) and seconds.worst == 30.0
    assert row.seeds == (0, 1) and row.source.startswith("measured here, on some images")
    (single,) = measured_rows([result(0, ari_foreground=0.9)])
    assert single.figures[ARI].deviation is None


def test_presets_do_not_mix() -> None:
    rows = measured_rows([result(0, ari_foreground=1.0), result(0, "auto", ari_foreground=0.5)])
    assert [(row.preset, row.figures[ARI].mean) for row in rows] == [("tetrominoes", 1.0), ("auto", 0.5)]


def test_a_figure_that_one_seed_lacks_is_not_known() -> None:
    (row,) = measured_rows([result(0, ari_foreground=1.0), result(1, ari_foreground=None)])
    assert row.figures[ARI].mean is None and row.figures[ARI].values == (1.0, None)
    judged = verdicts(TETROMINOES, [row])
    assert [(one.figure, one.floor_met, one.goal_met) for one in judged] == [(ARI, None, None), (SECONDS, None, None)]


@pytest.mark.parametrize(
    ("worst", "seconds", "met"),
    [
        (0.998, 180.0, [(True, False), (True, False)]),
        (0.9979, 180.1, [(False, False), (False, False)]),
        (0.9999, 30.0, [(True, True), (True, True)]),
    ],
)
def test_floors_are_for_the_worst_seed(worst: float, seconds: float, met: list[tuple[bool, bool]]) -> None:
    rows = measured_rows([result(0, ari_foreground=1.0, learn_seconds=1.0), result(1, ari_foreground=worst, learn_seconds=seconds)])
    assert [(one.floor_met, one.goal_met) for one in verdicts(TETROMINOES, rows)] == met


PAPER_TABLES = {
    "tetrominoes": (["99.2 ± 0.4", "99.5 ± 0.2", "99.6 ± 0.2", "99.5 ± 0.1"], []),
    "dsprites-color": (["76.7 ± 5.6", "91.3 ± 0.3", "92.5 ± 0.3", "90.6 ± 0.8"], []),
    "dsprites-bin": (["64.8 ± 17.2", "69.4 ± 0.9", "75.5 ± 0.4", "85.1 ± 0.7"], ["-", "0.0312", "0.0133", "0.0033"]),
    "dsprites-adv": (["-", "12.7 ± 1.1", "75.3 ± 0.4", "76.4 ± 2.4"], ["-", "0.0497", "0.0219", "0.0051"]),
}


@pytest.mark.parametrize("name", PAPER_TABLES)
def test_published_figures_stand_as_in_the_paper(name: str) -> None:
    shown = table(Report(name, "", EXPERIMENTS[name].published, (), (), (), ()))
    head, _, *rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in shown.splitlines() if line.startswith("|")]
    aris, errors = PAPER_TABLES[name]
    assert [row[0].partition(" (1)")[0] for row in rows] == ["IODINE", "Slot Attention", "DTI-Sprites", "Search for Concepts (the paper)"]
    assert [row[head.index("foreground ARI %")] for row in rows] == aris
    assert ([row[head.index("concept L1")] for row in rows] if errors else []) == errors
    assert {row[-1] for row in rows} == {"published"} and {row[head.index("seeds")] for row in rows} == {"-"}


def test_every_experiment_is_whole() -> None:
    for name, experiment in EXPERIMENTS.items():
        assert experiment.name == name and experiment.targets and all(row.source == "published" for row in experiment.published)
    assert {target.figure for target in PATTERN.targets} == {PLACEMENTS, SECONDS} and PATTERN.sides == (85, 64)


def test_the_table_is_kept_and_tells_sources_apart(quick: Quick, tmp_path: Path) -> None:
    report = reproduce(tmp_path, 0, 1)
    kept = (tmp_path / "tetrominoes" / "table.md").read_text()
    assert kept == table(report)
    rows = [line for line in kept.splitlines() if line.startswith("|")]
    assert all((" measured here, on " in line) == ("pictolex, preset" in line) for line in rows[2:7])
    assert "worst seed" in kept and "not met" in kept
    assert [row.source for row in report.rows[:-1]] == 4 * ["published"] and isinstance(report.rows[-1], Row)
    json.dumps([dict(one.figures) for one in report.seeds], allow_nan=False)


def test_each_canvas_has_a_row_and_a_folder(quick: Quick, tmp_path: Path) -> None:
    order = Order(tmp_path, device="cpu")
    report = run_experiment("pattern", order, seeds=(0,), presets=("pattern",))
    assert [row.variant for row in report.rows] == ["85x85", "64x64"]
    assert (tmp_path / "pattern/pattern/seed-0/result.json").is_file()
    assert (tmp_path / "pattern/pattern/64x64/seed-0/result.json").is_file()
    assert "publishes no figure" in table(report)


def test_the_sets_own_preset_and_auto_are_the_usual_ones(quick: Quick, tmp_path: Path) -> None:
    reproduce(tmp_path, 0, presets=None)
    assert [preset for preset, _, _ in quick.calls] == ["tetrominoes", "auto"]


# --- refusals ------------------------------------------------------------------------------------------------------------


def test_refusals_leave_nothing(quick: Quick, tmp_path: Path) -> None:
    order = Order(tmp_path / "out")
    with pytest.raises(InputError, match="unknown experiment 'tetromino': did you mean tetrominoes"):
        run_experiment("tetromino", order)
    with pytest.raises(InputError, match="the experiments are tetrominoes, "):
        run_experiment("xyz", order)
    with pytest.raises(InputError, match="--seeds is empty"):
        run_experiment("tetrominoes", order, seeds=())
    with pytest.raises(InputError, match="--seeds: -1 is negative"):
        run_experiment("tetrominoes", order, seeds=(0, -1))
    with pytest.raises(InputError, match="--presets is empty"):
        run_experiment("tetrominoes", order, presets=())
    with pytest.raises(SettingError, match=r"unknown preset 'tetromino': did you mean .*tetrominoes"):
        run_experiment("tetrominoes", order, presets=("tetromino",))
    with pytest.raises(SettingError, match="--images 0"):
        run_experiment("tetrominoes", replace(order, images=0))
    with pytest.raises(SettingError, match="device 'tpu'"):
        run_experiment("tetrominoes", replace(order, device="tpu"))
    assert not quick.calls and not (tmp_path / "out").exists()


def test_an_experiment_is_data() -> None:
    """A new one needs no code where its images are a set."""
    other = Experiment("tetrominoes", "reproduce_sets", "absent.npz", "tetrominoes", targets=(Target(ARI, 0.5),))
    assert len(reproduce_sets.case(other, None, 0, 3).learn) == 3
