"""The run folder: what is kept comes back, and what is wrong is named."""

import os
from pathlib import Path

import numpy as np
import pytest

from pictolex.errors import FormatError, InputError, OutputError
from pictolex.learn.run import Run, is_run, remove_run
from pictolex.model import Collection, Concept, Decomposition, Dictionary, Element
from pictolex.presets import load_preset, preset_names
from pictolex.settings import Settings


def a_dictionary() -> Dictionary:
    rng = np.random.default_rng(0)
    return Dictionary(tuple(Concept(i, rng.random((5, 4, 1)), rng.random((5, 4))) for i in (3, 7)), hues=rng.random((2, 3)))


def some_elements() -> Collection:
    return Collection.from_decompositions(
        [Decomposition("a", 0, 20, 30, (Element(7, 3.5, 4.5),), 0.25), Decomposition("b", 1, 20, 30, (), 0.0)]
    )


@pytest.mark.parametrize("name", [None, *preset_names()])
def test_settings_survive_the_folder(tmp_path: Path, name: str | None) -> None:
    settings = Settings() if name is None else load_preset(name)
    Run.create(tmp_path / "run", settings)
    assert is_run(tmp_path / "run")
    assert Run.open(tmp_path / "run").settings == settings


def test_what_is_kept_comes_back(tmp_path: Path) -> None:
    run = Run.create(tmp_path / "deep" / "run", Settings())
    run.save_dictionary(a_dictionary())
    run.save_elements(some_elements())
    run.log({"epoch": 1, "error": np.float32(0.5)})
    run.log({"epoch": 2, "error": 0.25})
    again = Run.open(run.folder or "")
    assert again.dictionary.ids == (3, 7)
    assert np.array_equal(again.dictionary[7].shape, run.dictionary[7].shape)
    assert again.elements is not None and again.elements[0] == some_elements()[0] and len(again.elements) == 2
    assert [entry["error"] for entry in again.history] == [0.5, 0.25]
    assert {path.name for path in (run.folder or Path()).iterdir()} == {
        "settings.toml", "dictionary.json", "dictionary.safetensors", "lineage.json", "log.jsonl", "elements.parquet",
    }  # fmt: skip


def test_without_pyarrow_elements_are_safetensors(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run = Run.create(tmp_path / "run", Settings())
    run.save_elements(some_elements())
    monkeypatch.setattr("pictolex.learn.run._has_pyarrow", lambda: False)
    run.save_elements(some_elements())
    assert sorted(path.name for path in (tmp_path / "run").glob("elements.*")) == ["elements.safetensors"]
    again = Run.open(tmp_path / "run").elements
    assert again is not None and again[0] == some_elements()[0]


def test_a_run_in_memory_touches_no_disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    run = Run.create(None, Settings())
    run.save_dictionary(a_dictionary())
    run.save_elements(some_elements())
    run.log({"epoch": 1})
    assert run.dictionary.ids == (3, 7) and run.elements is not None and len(run.history) == 1
    assert "in memory" in repr(run) and not list(tmp_path.iterdir())


def test_a_new_run_never_overwrites_an_old_one(tmp_path: Path) -> None:
    Run.create(tmp_path, Settings())
    with pytest.raises(OutputError, match="already holds a run"):
        Run.create(tmp_path, Settings())


def test_removing_a_run_leaves_all_else(tmp_path: Path) -> None:
    run = Run.create(tmp_path, Settings())
    run.save_dictionary(a_dictionary())
    run.save_elements(some_elements())
    run.log({"epoch": 1})
    (tmp_path / "pictures").mkdir()
    (tmp_path / "notes.txt").write_text("mine")
    remove_run(tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["notes.txt"]
    (tmp_path / "settings.toml").write_text("title = 'of another program'\n")
    with pytest.raises(FormatError, match="not the settings of a run"):
        remove_run(tmp_path)
    assert (tmp_path / "settings.toml").exists()


def test_folders_that_are_no_runs(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no such folder"):
        Run.open(tmp_path / "gone")
    with pytest.raises(InputError, match=r"is not a run: it has no settings.toml"):
        Run.open(tmp_path)
    (tmp_path / "file").write_text("")
    with pytest.raises(OutputError, match="cannot be made"):
        Run.create(tmp_path / "file" / "run", Settings())


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda text: text[: len(text) // 2] + "[", "not a TOML file"),
        (lambda text: text.replace("version = 1", "version = 99"), "version 99 of the format is not known"),
        (lambda text: text.replace("pictolex-run", "something"), "not the settings of a run"),
        (lambda text: text.replace("layers = 3", 'layers = "few"'), "the setting layers is wrong"),
        (lambda text: text + "\n[extra]\na = 1\n", "the setting extra is wrong"),
    ],
)
def test_damaged_settings_are_told(tmp_path: Path, change, message: str) -> None:  # type: ignore[no-untyped-def]
    Run.create(tmp_path, Settings())
    path = tmp_path / "settings.toml"
    path.write_text(change(path.read_text()))
    with pytest.raises(FormatError, match=message) as caught:
        Run.open(tmp_path)
    assert str(path) in str(caught.value) and "\n" not in str(caught.value)


def test_a_run_stopped_early_says_so(tmp_path: Path) -> None:
    run = Run.create(tmp_path, Settings())
    assert run.elements is None and run.history == ()
    with pytest.raises(InputError, match="has no dictionary yet"):
        _ = run.dictionary
    assert "no dictionary yet" in repr(run)


def test_a_full_disk_leaves_no_half_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    run = Run.create(tmp_path / "run", Settings())
    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OutputError, match="disk full"):
        run.save_dictionary(a_dictionary())
    assert [path.name for path in (tmp_path / "run").iterdir()] == ["settings.toml"]
