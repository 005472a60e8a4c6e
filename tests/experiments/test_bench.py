"""Benchmarks measure what they say, on few images."""

import json
import sys
from pathlib import Path

import numpy as np
import pytest
import torch

from cli.program import pictolex, refused
from pictolex.decompose import Engine, Stage
from pictolex.errors import InputError, SettingError
from pictolex.experiments.bench import BENCHMARKS, Row, run_bench
from pictolex.experiments.bench_agreement import agree
from pictolex.experiments.bench_base import DATA, Order, data_file, missing, times_faster
from pictolex.experiments.bench_contexts import among_true, behind_found, searcher
from pictolex.experiments.bench_quality import search_failures, true_layout
from pictolex.experiments.bench_search import Plain
from pictolex.experiments.bench_settings import case, full_size
from pictolex.experiments.bench_timing import milliseconds, one_thread
from pictolex.presets import load_preset
from pictolex.settings import Settings
from pictolex.sources.synthetic import SyntheticSource, true_dictionary
from pictolex.sources.truth import open_truth


@pytest.fixture(autouse=True)
def _no_data(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(DATA, raising=False)


def rows_of(name: str, images: int) -> tuple[list[Row], list[str]]:
    said: list[str] = []
    reported: list[Row] = []
    rows = run_bench(name, report=reported.append, say=said.append, device="cpu", images=images)
    assert rows == reported
    return rows, said


def test_speed_has_a_row_a_setting_and_says_what_it_lacks() -> None:
    threads = torch.get_num_threads()
    rows, said = rows_of("speed", 2)
    assert [(row.name, row.setting) for row in rows] == [("speed-rounds", "T"), ("speed-rounds", "D"), ("speed-propose", "D")]
    assert all(row.value > 0 and row.unit == "ms" and row.better == "lower" and row.floor and row.goal for row in rows)
    assert all(row.reference is not None and row.ratio == pytest.approx(row.reference / row.value) for row in rows[:2])
    assert any(text.startswith("M is skipped") and DATA in text for text in said)
    assert torch.get_num_threads() == threads


def test_search_stands_beside_plain_torch() -> None:
    rows, _ = rows_of("search", 2)
    assert [row.name for row in rows] == 2 * ["search-exhaustive", "search-conv2d", "search-fft"]
    assert all(row.ratio is not None and row.ratio > 0 for row in rows)


def test_agreement_is_a_share() -> None:
    rows, _ = rows_of("agreement", 3)
    assert [row.setting for row in rows] == ["T", "D", "D-greedy"]
    assert all(0 <= row.value <= 1 and row.floor == 0.98 and row.goal == 0.995 for row in rows)


def test_quality_is_skipped_without_data(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    rows, said = rows_of("quality", 2)
    assert rows == []
    assert len(said) == 4 and all("skipped" in text and DATA in text for text in said)
    monkeypatch.setenv(DATA, str(tmp_path))
    assert data_file("mnist.npz") is None and str(tmp_path) in missing("mnist.npz")


def test_quality_on_a_file_of_the_same_kind(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    from pictolex.sources.synthetic import write_npz

    write_npz(tmp_path / "tetrominoes_recreated.npz", "tetrominoes", 3)
    monkeypatch.setenv(DATA, str(tmp_path))
    rows, said = rows_of("quality", 2)
    assert [row.name for row in rows] == ["quality-mse", "quality-ari"]
    assert rows[1].value > 0.99 and rows[1].floor == 0.999
    assert "quality: tetrominoes, 2 images on cpu" in said


@pytest.mark.parametrize("name", ["T", "D"])
def test_true_elements_leave_little_unexplained(name: str) -> None:
    found = case(name, 6)
    assert found is not None and found.truth is not None
    stage = found.stage("cpu")
    problem = found.problem("cpu")
    left = stage.error(problem, stage.layers(found.truth, *problem.image.shape[-2:]))
    whole = problem.image.square().sum((1, 2, 3))
    complete = found.truth.used.all(1)
    assert (left[complete] < 0.25 * whole[complete]).all()
    if name == "T":
        assert (left[complete] < 1e-3).all()


def test_two_elements_are_placed_and_the_third_is_searched() -> None:
    found = case("T", 6)
    assert found is not None
    stage = found.stage("cpu")
    query = among_true(found, stage, "cpu")
    assert query is not None
    start = (query.image - query.context.rebuilt).square().sum((1, 2, 3))
    whole = query.image.square().sum((1, 2, 3))
    assert (start > 1).all() and (start < 0.7 * whole).all()
    behind = behind_found(found, stage, "cpu", "coarse")
    assert ((behind.image - behind.context.rebuilt).square().sum((1, 2, 3)) < whole).all()


@pytest.mark.parametrize("name", ["T", "D"])
def test_plain_torch_finds_the_gains_of_exhaustive_search(name: str) -> None:
    found = case(name, 2)
    assert found is not None
    stage: Stage = found.stage("cpu")
    query = among_true(found, stage, "cpu")
    assert query is not None
    with one_thread():
        best = searcher(stage, "exhaustive").best(query, 1).gain[:, 0]
        plain = Plain.of(stage, query)
        assert torch.allclose(plain.by_convolution(), best, rtol=1e-3, atol=1e-2)
        assert torch.allclose(plain.by_transform(), best, rtol=1e-3, atol=1e-2)


def test_agreement_is_within_one_percent() -> None:
    best = torch.tensor([100.0, 100.0, 0.0, -1.0])
    assert agree(torch.tensor([99.5, 98.0, 0.0, -1.005]), best).tolist() == [True, False, True, True]


def test_the_truth_of_dsprites_is_where_the_recipe_draws() -> None:
    source = SyntheticSource("dsprites-bin", 4, seed=1)
    settings = full_size(load_preset("dsprites-bin"))
    stage = Stage(true_dictionary("dsprites-bin"), settings, 1)
    for i in range(len(source)):
        scene = source.scene(i)
        layout = true_layout(scene.factors["factors"], 1, torch.device("cpu"))
        layers = stage.layers(layout, 64, 64)
        rebuilt = stage.formation.render(layers, torch.zeros(1, 1, 64, 64))[0, 0].numpy()
        assert np.abs(rebuilt - scene.images[0] / 255).mean() < 0.01


def test_a_search_that_finds_nothing_fails() -> None:
    source = SyntheticSource("dsprites-bin", 2, seed=3)
    truth = open_truth(source)
    assert truth is not None
    engine = Engine(true_dictionary("dsprites-bin"), full_size(load_preset("dsprites-bin")).model_copy(update={"device": "cpu"}))
    blind = Engine(true_dictionary("dsprites-bin"), Settings(price=1e9, device="cpu"))
    assert search_failures(engine, source, truth, blind.run(source)) == 1.0


def test_time_is_per_image_and_the_least() -> None:
    calls: list[int] = []
    assert milliseconds(lambda: calls.append(1), 4, "cpu") >= 0
    assert len(calls) == 3
    assert times_faster(2.0, 10.0) == 5.0
    assert Order(images=3).count(10) == 3 and Order().count(10) == 10


def test_refusals() -> None:
    with pytest.raises(InputError, match="unknown benchmark 'sped': did you mean speed"):
        run_bench("sped")
    with pytest.raises(InputError, match="the benchmarks are startup, "):
        run_bench("xyz")
    with pytest.raises(SettingError, match="--images 0"):
        run_bench("speed", images=0)
    with pytest.raises(SettingError, match="device 'tpu'"):
        run_bench("speed", device="tpu")


def test_the_program_prints_rows() -> None:
    done = pictolex("bench", "startup", "--json")
    assert done.returncode == 0, done.stderr
    (row,) = json.loads(done.stdout)["rows"]
    assert row.keys() == {"name", "setting", "device", "value", "unit", "better", "reference", "ratio", "floor", "goal"}
    assert 0 < row["value"] < 10
    assert "unknown benchmark 'nothing'" in refused(pictolex("bench", "nothing"))


@pytest.mark.skipif(sys.platform == "win32", reason="no peak of a process there")
def test_memory_is_measured_in_a_process_of_its_own() -> None:
    rows, said = rows_of("memory", 4)
    (row,) = rows
    assert row.setting == "4 images" and 0.05 < row.value < 2 and len(said) == 2


def test_every_benchmark_has_its_module() -> None:
    from importlib import import_module

    assert all(callable(import_module(f"pictolex.experiments.{module}").measure) for module in BENCHMARKS.values())
