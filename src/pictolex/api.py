"""What Python users call beside `pictolex.learn`: `load` what was learned, `decompose` images with it."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pictolex.errors import InputError
from pictolex.learn.run import Run, is_run
from pictolex.model import Collection, Dictionary
from pictolex.settings import Settings

if TYPE_CHECKING:
    from pictolex.decompose import Progress

Known = str | os.PathLike[str] | Run | Dictionary


@dataclass(frozen=True)
class Learned:
    """A dictionary with the settings to use it by, and the run it is from, if it is from one."""

    dictionary: Dictionary
    settings: Settings
    run: Run | None


def load(path: str | os.PathLike[str]) -> Run | Dictionary:
    """The run in a folder, or the dictionary that a folder of RGBA sprites is."""
    if is_run(path):
        return Run.open(path)
    if not Path(path).exists():
        raise InputError(f"{os.fspath(path)}: no such folder; name a run or a folder of sprites")
    from pictolex.model.sprites import load_any

    return load_any(Path(path))


def learned(known: Known, settings: Settings | None = None) -> Learned:
    """A run, a dictionary or the path of one, ready to be used; a dictionary alone gets settings that fit it."""
    found = load(known) if isinstance(known, str | os.PathLike) else known
    if isinstance(found, Run):
        return Learned(found.dictionary, settings or found.settings, found)
    return Learned(found, suited(settings or Settings(), found), None)


def suited(settings: Settings, dictionary: Dictionary) -> Settings:
    """Settings that fit what a dictionary without a run brings: its formation, hues and background."""
    values = settings.model_dump()
    formation: dict[str, Any] = {"kind": dictionary.formation}
    if dictionary.sharpness != 1.0:
        formation["sharpness"] = dictionary.sharpness
    values |= {"formation": formation, "background": {"kind": dictionary.background.kind}}
    if dictionary.hues is not None:
        values["colour"] = {"kind": "hues", "count": len(dictionary.hues)}
    return Settings.model_validate(values)


def decompose(
    known: Known, images: Any, *, settings: Settings | None = None, progress: Callable[[Progress], None] | None = None
) -> Collection:
    """The elements of images, found with a run, a dictionary, or the path of either.

    `images` is what `learn` takes too: an array (n, h, w) or (n, h, w, c), a tensor, a list of arrays, a path, a built-in name.
    """
    from pictolex.decompose import Engine
    from pictolex.sources import open_source

    found = learned(known, settings)
    return Engine(found.dictionary, found.settings).run(open_source(images), progress=progress)


class Vocabulary:
    """`fit` and `transform`, as scikit-learn users know them: images in, a Collection of their elements out."""

    def __init__(self, *, preset: str | None = None, settings: Settings | None = None, seed: int | None = None) -> None:
        self.preset = preset
        self.settings = settings
        self.seed = seed

    def fit(self, images: Any, y: object = None) -> Vocabulary:
        """Learn a dictionary; `y` is not looked at."""
        from pictolex.learn import learn

        self.run_ = learn(images, preset=self.preset, settings=self.settings, seed=self.seed)
        return self

    def transform(self, images: Any) -> Collection:
        """The elements of images."""
        if not hasattr(self, "run_"):
            raise InputError("this vocabulary has not learned anything yet: call fit(images) first")
        return self.run_.decompose(images)

    def fit_transform(self, images: Any, y: object = None) -> Collection:
        """Learn from images, then find their elements."""
        return self.fit(images).transform(images)
