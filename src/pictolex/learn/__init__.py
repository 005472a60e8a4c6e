"""Learning a dictionary from images. Light to import: torch comes with the first call."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pictolex.errors import InputError
from pictolex.learn.progress import Callback, LearningProgress
from pictolex.learn.run import Run
from pictolex.settings import Settings

if TYPE_CHECKING:
    from pictolex.formation import Formation
    from pictolex.model import Dictionary

    Known = str | os.PathLike[str] | Run | Dictionary

__all__ = ["Callback", "LearningProgress", "Run", "learn"]


def learn(
    images: Any,
    *,
    preset: str | None = None,
    settings: Settings | None = None,
    out: str | os.PathLike[str] | None = None,
    epochs: int | None = None,
    seed: int | None = None,
    device: str | None = None,
    budget: float | None = None,
    resume: bool = False,
    init: Known | None = None,
    freeze: bool = False,
    callbacks: Sequence[Callback] = (),
    formation: Formation | None = None,
) -> Run:
    """Learn a dictionary of visual concepts from images.

    `images`: an array (n, h, w) or (n, h, w, c), a tensor, a list of arrays, a path, or the name of a built-in set.
    Without a preset or settings they are chosen from the images (`preset="auto"`).
    `budget`: the most seconds to take, the last pass over the images included. `formation`: one of your own in place of the settings'.
    `init`: a run, a dictionary or a folder of sprites to start from; `freeze`: its concepts stay as they are.
    Without `out` the run is kept in memory. `resume`: go on with the run in `out`; it has settings of its own.
    Ctrl-C (or KeyboardInterrupt from a callback) saves what has been learned first.
    """
    from pictolex.learn.auto import AUTO, chosen_settings
    from pictolex.learn.loop import Learner
    from pictolex.learn.survey import Survey
    from pictolex.presets import load_preset
    from pictolex.sources import open_source

    if budget is not None and not budget > 0:
        raise InputError(f"a budget of {budget} seconds leaves no time to learn; give more, or none")
    if resume and out is None:
        raise InputError("there is nothing to resume: name the run's folder with out (-o)")
    going_on = Run.open(out) if resume and out is not None else None
    first = None if init is None else _known(init)
    survey = None
    if going_on is not None and settings is None and preset is None:
        base = going_on.settings
    elif settings is not None:
        base = settings
    elif preset is not None and preset != AUTO:
        base = load_preset(preset)
    else:
        source = open_source(images, seed=seed or 0)
        survey = Survey.of(source, seed or 0)
        base = chosen_settings(survey).settings
    given = {"seed": seed, "device": device}
    base = base.model_copy(update={name: value for name, value in given.items() if value is not None})
    if epochs is not None:
        base = base.model_copy(update={"learning": base.learning.model_copy(update={"epochs": epochs})})
    base = Settings.model_validate(base.model_dump())
    source = open_source(images, seed=base.seed)
    learner = Learner(source, base, formation=formation, callbacks=callbacks, survey=survey, init=first, freeze=freeze)
    return learner.learn(out, budget, resume=resume)


def _known(init: Known) -> Dictionary:
    """The dictionary of a run, of a folder of either kind, or itself."""
    if isinstance(init, Run):
        return init.dictionary
    if isinstance(init, str | os.PathLike):
        from pictolex.learn.run import is_run
        from pictolex.model.sprites import load_any

        return Run.open(init).dictionary if is_run(init) else load_any(Path(init))
    return init
