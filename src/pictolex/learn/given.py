"""A dictionary to start from: a run's, a folder of sprites, or one from Python; settings that fit it, and which concepts stay as they are.

That a concept was given, or given and frozen, stands in the lineage: a resumed run knows it from there.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pictolex.errors import SettingError
from pictolex.learn.run import Run, is_run
from pictolex.model import Dictionary, Event, Lineage
from pictolex.settings import Settings

if TYPE_CHECKING:
    from pictolex.learn.survey import Survey

GIVEN, FROZEN = "given", "frozen"


@dataclass(frozen=True)
class Given:
    """A dictionary to start from."""

    dictionary: Dictionary
    largest: float = 1.0
    """The largest scale at which its concepts are placed; below 1 where a run keeps them finer than the pixels of its images."""


def given_by(known: str | os.PathLike[str] | Run | Dictionary) -> Given:
    """The dictionary of a run, of a folder of either kind, or itself."""
    if isinstance(known, str | os.PathLike):
        from pictolex.model.sprites import load_any

        known = Run.open(known) if is_run(known) else load_any(Path(known))
    return Given(known.dictionary, max(known.settings.placement.scales)) if isinstance(known, Run) else Given(known)


def fitted(settings: Settings, given: Given) -> Settings:
    """Settings changed where they would not go with what is given: its formation, colours, background and sizes come first."""
    values, dictionary = settings.model_dump(), given.dictionary
    placement = values["placement"]
    placement["scales"] = tuple(scale * given.largest / max(placement["scales"]) for scale in placement["scales"])
    formation: dict[str, Any] = {"kind": dictionary.formation}
    if dictionary.sharpness != 1.0:
        formation["sharpness"] = dictionary.sharpness
    values["formation"] = formation
    if dictionary.background.values is not None:
        values["background"] = {"kind": dictionary.background.kind}
    in_colour = dictionary.channels == 3
    if dictionary.hues is not None:
        values["colour"] = {"kind": "hues", "count": len(dictionary.hues)}
    elif in_colour:
        values["colour"] = {"kind": "none"}
    elif _counts_hues(settings):
        values["colour"] = {"kind": "free"}
    learning, largest = values["learning"], max((max(c.height, c.width) for c in dictionary), default=1)
    learning["concepts"] = max(learning["concepts"], len(dictionary))
    learning["concept_size"] = max(learning["concept_size"], largest)
    learning["colour_shapes"] = in_colour
    return Settings.model_validate(values)


def first_of(dictionary: Dictionary, settings: Settings, survey: Callable[[], Survey], freeze: bool) -> Dictionary:
    """A dictionary to start learning from, with a lineage that begins here; a background is found anew where settings want another."""
    from pictolex.learn.start import create_background

    if not len(dictionary):
        raise SettingError("the dictionary to start from (--init) has no concepts; give another one, or none")
    if dictionary.formation != settings.formation.kind:
        raise SettingError(f"--formation.kind is {settings.formation.kind}, but the dictionary to start from is {dictionary.formation}")
    if _counts_hues(settings) and dictionary.hues is None:
        raise SettingError("--colour.kind hues: the dictionary to start from (--init) has no hues; use --colour.kind free or none")
    kind = FROZEN if freeze else GIVEN
    lineage = Lineage(tuple(Event(0, kind, id) for id in dictionary.ids))
    hues = dictionary.hues if _counts_hues(settings) else None
    same = dictionary.background.kind == settings.background.kind
    background = dictionary.background if same else create_background(settings, survey())
    return replace(dictionary, hues=hues, background=background, lineage=lineage)


def frozen_ids(dictionary: Dictionary) -> frozenset[int]:
    """The concepts that stay as they were given."""
    return frozenset(event.concept for event in dictionary.lineage if {event.kind} == {FROZEN})


def _counts_hues(settings: Settings) -> bool:
    return getattr(settings.colour, "count", 0) > 0
