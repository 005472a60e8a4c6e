"""Learning a dictionary from images. Light to import: torch comes with the first call."""

from __future__ import annotations

import os
import time
import warnings
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from pictolex.errors import InputError, OutputError
from pictolex.learn.progress import Callback, LearningProgress
from pictolex.learn.run import Run, UnwrittenWarning, is_run, taken
from pictolex.settings import Settings

if TYPE_CHECKING:
    from pictolex.formation import Formation
    from pictolex.learn.loop import Learner
    from pictolex.learn.survey import Survey
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
    survey: Survey | None = None,
) -> Run:
    """Learn a dictionary of visual concepts from images.

    `images`: an array (n, h, w) or (n, h, w, c), a tensor, a list of arrays, a path, or the name of a built-in set.
    Without a preset or settings they are chosen from the images (`preset="auto"`); `survey`: the one that settings were chosen by.
    `budget`: the most seconds to take, the last pass over the images included. `formation`: one of your own in place of the settings'.
    `init`: a run, a dictionary or a folder of sprites to start from; `freeze`: its concepts stay as they are.
    Without `out` the run is kept in memory. `resume`: go on with the run in `out`, with its settings; more `epochs` go on learning,
    and a run with nothing left to do is returned as it is.
    Ctrl-C (or KeyboardInterrupt from a callback) saves what has been learned first.
    """
    started = time.monotonic()
    from pictolex.learn.auto import AUTO, chosen_settings
    from pictolex.learn.given import first_of, fitted, given_by
    from pictolex.learn.loop import Learner
    from pictolex.learn.survey import Survey
    from pictolex.presets import load_preset
    from pictolex.sources import open_source

    check(out, budget, resume, init is not None, freeze)
    given = None if init is None else given_by(init)
    going_on = resumable(out) if resume else None
    typed = {name: value for name, value in (("seed", seed), ("device", device), ("learning.epochs", epochs)) if value is not None}
    if going_on is not None:
        wanted = None if preset in (None, AUTO) else load_preset(preset)
        base = _resumed(going_on, settings or wanted, keep_epochs=settings is None, typed=typed)
    elif settings is not None:
        base = _with(settings, typed)
    else:
        if preset is not None and preset != AUTO:
            base = load_preset(preset)
        else:
            survey = survey or Survey.of(open_source(images, seed=seed or 0), seed or 0)
            base = chosen_settings(survey).settings
        base = _with(base if given is None else fitted(base, given), typed)
    source = open_source(images, seed=base.seed)
    first = None if given is None else first_of(given.dictionary, base, lambda: survey or Survey.of(source, base.seed), freeze)
    learner = Learner(source, base, formation=formation, callbacks=callbacks, survey=survey, init=first, freeze=freeze)
    if going_on is not None and not _goes_on(going_on, learner):
        return going_on
    left = None if budget is None else max(1e-3, budget - (time.monotonic() - started))
    try:
        run = learner.learn(out, left, resume=resume)
    except OutputError as error:
        if out is None or not is_run(out):
            raise
        raise OutputError(f"{error}; then go on from the run's last checkpoint (--resume)") from error
    if run.unwritten:
        warnings.warn(f"{run.folder}: {run.unwritten} writes failed while learning; its result is whole", UnwrittenWarning, stacklevel=2)
    return run


def check(out: str | os.PathLike[str] | None, budget: float | None, resume: bool, init: bool, freeze: bool) -> None:
    """Refuse wishes that contradict each other, before any work is done."""
    if budget is not None and not budget > 0:
        raise InputError(f"a budget of {budget:g} seconds leaves no time to learn; give more, or none")
    if freeze and not init:
        raise InputError("there is nothing to freeze: name a run or a folder of sprites to start from with init (--init)")
    if resume and out is None:
        raise InputError("there is nothing to resume: name the run's folder with out (-o)")
    if resume and init:
        raise InputError("a resumed run goes on with its own dictionary; leave init (--init) out")
    if not resume and out is not None and is_run(out):
        raise taken(out)


def resumable(out: str | os.PathLike[str] | None) -> Run:
    """The run in a folder, to go on with."""
    if out is None or not is_run(out):
        raise InputError(f"{out} holds no run to resume; learn there without resume (--resume), or name another folder")
    run = Run.open(out)
    run.check_version()
    return run


def _resumed(run: Run, wanted: Settings | None, keep_epochs: bool, typed: dict[str, Any]) -> Settings:
    """A run's settings, with what may be changed; others that are wanted have to be the same."""
    from pictolex.learn.checkpoint import require_same

    own = run.settings
    wanted = own if wanted is None else wanted
    require_same(_with(wanted, typed), own, run.folder)
    kept = {"learning.epochs": own.learning.epochs} if keep_epochs else {}
    return _with(wanted, {**kept, **typed})


def _with(settings: Settings, changes: dict[str, Any]) -> Settings:
    """Settings with some changed, by dotted name; validated."""
    values = settings.model_dump()
    for name, value in changes.items():
        section, _, leaf = name.rpartition(".")
        (values[section] if section else values)[leaf] = value
    return Settings.model_validate(values)


def _goes_on(run: Run, learner: Learner) -> bool:
    """Make a run ready to go on, if there is anything left to do in it."""
    from pictolex.learn.checkpoint import Checkpoints, fingerprint
    from pictolex.learn.given import frozen_ids

    position = Checkpoints(run.folder, fingerprint(learner.source)).newest(learner.settings)
    if position is None:
        raise InputError(f"{run.folder}: the run was stopped before its first checkpoint; learn again, with overwrite (--overwrite)")
    if run.complete(learner.settings.learning.epochs):
        return False
    run.reopen(learner.settings)
    learner.frozen = frozen_ids(position.dictionary)
    return True
