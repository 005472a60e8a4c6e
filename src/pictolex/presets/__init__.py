"""Presets: settings for known kinds of images, as data. One TOML file each; its first comment says what it is for."""

from __future__ import annotations

import difflib
import tomllib
from importlib.resources import files

from pydantic import ValidationError

from pictolex.errors import SettingError
from pictolex.settings import Settings


def preset_names() -> tuple[str, ...]:
    """The names of all presets, sorted."""
    return tuple(sorted(entry.name.removesuffix(".toml") for entry in files(__name__).iterdir() if entry.name.endswith(".toml")))


def preset_text(name: str) -> str:
    """The text of a preset's file; an unknown name is an error that lists the nearest ones."""
    names = preset_names()
    if name not in names:
        near = difflib.get_close_matches(name, names, n=3, cutoff=0.5)
        hint = f"did you mean {' or '.join(near)}?" if near else f"the presets are {', '.join(names)}"
        raise SettingError(f"unknown preset {name!r}: {hint}")
    return files(__name__).joinpath(f"{name}.toml").read_text(encoding="utf-8")


def load_preset(name: str) -> Settings:
    """The settings of a preset."""
    try:
        return Settings.model_validate(tomllib.loads(preset_text(name)))
    except (tomllib.TOMLDecodeError, ValidationError) as error:
        raise SettingError(f"the preset {name!r} does not fit this version of pictolex: {' '.join(str(error).split())}") from error


def describe_preset(name: str) -> str:
    """What a preset is for: the comment its file starts with."""
    lines = []
    for line in preset_text(name).splitlines():
        if not line.startswith("#"):
            break
        lines.append(line.removeprefix("#").strip())
    return " ".join(lines)
