"""Every setting is an option, and a wrong one is told in one line."""

import pytest

from pictolex.cli.options import overlay, setting_fields
from pictolex.errors import SettingError
from pictolex.presets import load_preset, preset_names
from pictolex.settings import HueColour, Rounds, Settings


def leaves(values: dict[str, object], before: str = "") -> set[str]:
    names = set()
    for name, value in values.items():
        names |= leaves(value, f"{before}{name}.") if isinstance(value, dict) else {before + name}
    return names


def test_every_setting_of_every_preset_is_an_option() -> None:
    options = {name for name, _ in setting_fields()}
    for preset in preset_names():
        assert leaves(load_preset(preset).model_dump()) <= options


def test_typed_text_becomes_values() -> None:
    placement = {"placement.rotations": "4", "placement.scales": "0.5, 1,2", "placement.mirror": True}
    settings = overlay(load_preset("tetrominoes"), {**placement, "price": "2.5", "learning.limit": "none"})
    assert (settings.placement.rotations, settings.placement.scales, settings.placement.mirror) == (4, (0.5, 1.0, 2.0), True)
    assert (settings.price, settings.learning.limit) == (2.5, None)
    assert settings.colour == HueColour(count=6), "what was not typed stays the preset's"


def test_another_kind_starts_from_its_own_defaults() -> None:
    assert overlay(Settings(), {"strategy.kind": "rounds"}).strategy == Rounds()
    assert overlay(Settings(), {"strategy.kind": "rounds", "strategy.rounds": "5"}).strategy == Rounds(rounds=5)
    kept = overlay(load_preset("paper-tetrominoes"), {"strategy.rounds": "7", "strategy.kind": "rounds"}).strategy
    assert kept == Rounds(rounds=7, policy="paper")


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"placement.rotations": "four"}, "--placement.rotations must be a valid integer.*; got 'four'"),
        ({"placement.rotations": "0"}, "--placement.rotations must be greater than or equal to 1; got '0'"),
        ({"placement.scales": "1,x"}, "--placement.scales must be a valid number.*; got 'x'"),
        ({"price": "nan"}, "--price must be a finite number; got 'nan'"),
        ({"strategy.kind": "greedy"}, "--strategy.kind must be one of 'rounds', 'propose'; got 'greedy'"),
        ({"strategy.rounds": "2"}, "--strategy.rounds does not go with --strategy.kind propose: it needs --strategy.kind rounds"),
        ({"learning.optimizer": "lbfgs"}, "--learning.optimizer must be 'solve', 'adadelta', 'sgd', 'adam' or 'rmsprop'; got 'lbfgs'"),
        ({"learning.concept_size": "big"}, "--learning.concept-size must be a valid integer.*; got 'big'"),
    ],
)
def test_a_wrong_setting_is_one_line_with_its_option(changes: dict[str, str], message: str) -> None:
    with pytest.raises(SettingError, match=message) as caught:
        overlay(Settings(), changes)
    assert "\n" not in str(caught.value)


def test_every_option_refuses_nonsense() -> None:
    """A wrong type for any setting that is not text or a flag is told by the option's own name."""
    for name, fields in setting_fields():
        if fields[0].annotation in (bool, str):
            continue
        with pytest.raises(SettingError, match=f"--{name}".replace("_", "-")):
            overlay(Settings(), {name: "nonsense"})
