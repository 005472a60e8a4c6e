"""Presets are data that fits the settings."""

import tomllib
from pathlib import Path

import pytest

from pictolex.errors import SettingError
from pictolex.presets import describe_preset, load_preset, preset_names, preset_text
from pictolex.settings import Settings

# The paper's table of hyperparameters: most concepts, rotations, hues, layers, concept size.
PAPER = {
    "tetrominoes": (10, 4, 6, 3, 19),
    "dsprites-bin": (22, 40, 1, 3, 33),
    "dsprites-adv": (3, 40, 1, 3, 33),
    "clevr6": (32, 1, 8, 6, 31),
    "mnist-128": (128, 1, 1, 4, 13),
    "mnist-512": (512, 1, 1, 4, 13),
    "mnist-sum-128": (128, 1, 1, 4, 13),
    "mnist-sum-512": (512, 1, 1, 4, 13),
    "gtsrb": (64, 1, 1, 6, 31),
    "pattern": (2, 1, 1, 45, 21),
}


@pytest.mark.parametrize("name", preset_names())
def test_every_preset_loads_and_says_what_it_is_for(name: str) -> None:
    loaded = load_preset(name)
    assert isinstance(loaded, Settings)
    assert len(describe_preset(name)) > 20
    assert loaded.model_dump(mode="json", exclude_unset=True).keys() >= tomllib.loads(preset_text(name)).keys()


def test_the_built_in_sets_have_presets() -> None:
    from pictolex.sources import BUILT_IN

    assert set(BUILT_IN) <= set(preset_names())


@pytest.mark.parametrize("name", PAPER)
def test_paper_presets_hold_the_papers_table(name: str) -> None:
    settings = load_preset(f"paper-{name}")
    hues = getattr(settings.colour, "count", 1)
    figures = (settings.learning.concepts, settings.placement.rotations, hues, settings.layers, settings.learning.concept_size)
    assert figures == PAPER[name]
    assert (settings.objective.kind, settings.price) == ("ncc", 0)
    assert (settings.learning.optimizer, settings.learning.rate, settings.learning.batch) == ("adadelta", 1.0, 8)
    assert settings.formation.kind == ("additive" if "sum" in name else "alpha")


def test_an_unknown_preset_names_the_nearest() -> None:
    with pytest.raises(SettingError, match="unknown preset 'tetromino': did you mean tetrominoes"):
        load_preset("tetromino")
    with pytest.raises(SettingError, match=r"the presets are .*voxel"):
        load_preset("zzzzzz")


def test_a_preset_is_not_a_path(tmp_path: Path) -> None:
    with pytest.raises(SettingError):
        load_preset("../presets/tetrominoes")
