"""`pictolex learn`: a dictionary from images."""

from __future__ import annotations

import signal
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from types import FrameType, TracebackType
from typing import TYPE_CHECKING, Annotated, Any

from cyclopts import Parameter

from pictolex.cli.common import ready_folder, seconds, tell
from pictolex.cli.options import Changes, overlay, setting_fields, with_settings
from pictolex.cli.progress import Reporter
from pictolex.errors import InputError
from pictolex.learn.run import Run, is_run, remove_run
from pictolex.presets import load_preset, preset_names
from pictolex.settings import Settings

if TYPE_CHECKING:
    from pictolex.learn.given import Given
    from pictolex.learn.progress import LearningProgress
    from pictolex.learn.survey import Survey
    from pictolex.sources import Source

KINDS_TOLD = 12


@with_settings
def command(
    source: str,
    /,
    *,
    out: Annotated[str | None, Parameter(name=["--out", "-o"])] = None,
    preset: str | None = None,
    epochs: int | None = None,
    budget: str | None = None,
    resume: bool = False,
    init: Annotated[str | None, Parameter(name="--init")] = None,
    freeze: bool = False,
    explain: bool = False,
    overwrite: bool = False,
    quiet: Annotated[bool, Parameter(name=["--quiet", "-q"])] = False,
    changes: Changes,
) -> None:
    """Learn a dictionary of visual concepts from images. Prints the run's folder.

    Parameters
    ----------
    source
        A folder, glob, image, .npz file (file.npz:key[:4500]) or built-in set: tetrominoes, dsprites-bin, dsprites-adv,
        dsprites-color, pattern, voxel.
    out
        The run's folder; without it the first free one of run, run-2, ...
    preset
        Settings for a known kind of images. auto: chosen from the images, the default; a built-in set brings its own.
    epochs
        Passes over the images, as --learning.epochs.
    budget
        The most time to take, all included: 90s, 5m, 1h.
    resume
        Go on with the run in the folder, with its settings; --epochs may be more than before.
    init
        Start from the concepts of a run or of a folder of sprites.
    freeze
        The concepts that --init brings stay as they are.
    explain
        Tell what --preset auto measured and chose.
    overwrite
        Remove the run that is already in the folder.
    quiet
        No progress.
    """
    started = time.monotonic()
    limit = None if budget is None else seconds(budget)
    if resume and overwrite:
        raise InputError("--overwrite removes the run that --resume goes on with; leave one of them out")
    from pictolex.learn import check, learn, resumable
    from pictolex.learn.given import given_by
    from pictolex.sources import open_source

    check(None if overwrite else out, limit, resume, init is not None, freeze)
    if epochs is not None:
        changes = {**changes, "learning.epochs": epochs}
    run = resumable(out) if resume else None
    given = None if init is None else given_by(init)
    if run is None:
        images = open_source(source, seed=_early(changes).seed)
        tell(images.describe(), quiet)
        if given is not None:
            tell(f"{len(given.dictionary)} concepts given: formation and colours are theirs", quiet)
        chosen = _chosen(images, _wish(source, preset, quiet), changes, given, explain, quiet)
        folder = _folder(out, overwrite)
    else:
        chosen = Choice(_resumed(run, preset, changes))
        images = open_source(source, seed=chosen.settings.seed)
        folder = Path(out or ".")
    complete = run is not None and run.complete(chosen.settings.learning.epochs)
    left = None if limit is None else max(1e-3, limit - (time.monotonic() - started))
    try:
        with Reporter(quiet) as reporter, Interrupts() as interrupts:
            run = learn(
                images,
                settings=chosen.settings,
                survey=chosen.survey,
                out=folder,
                budget=left,
                resume=resume,
                init=None if given is None else given.dictionary,
                freeze=freeze,
                callbacks=(reporter.learning, interrupts.learning),
            )
    except KeyboardInterrupt:
        if is_run(folder):
            _note_source(Run.open(folder), source)
            tell(f"what was learned is kept in {folder}; --resume goes on from there", quiet)
        raise
    if complete:
        tell(f"{folder} is complete: {chosen.settings.learning.epochs} epochs are done; --epochs with a larger number goes on", quiet)
    else:
        _note_source(run, source)
    print(folder)


@dataclass(frozen=True)
class Choice:
    """Settings to learn with, and the survey they were chosen by."""

    settings: Settings
    survey: Survey | None = None


def _early(changes: Changes) -> Settings:
    """What was typed, as far as it does not depend on the kind of anything: told before any work if it is wrong."""
    kinds = {name.removesuffix(".kind") for name, _ in setting_fields() if name.endswith(".kind")}
    return overlay(Settings(), {name: value for name, value in changes.items() if name.partition(".")[0] not in kinds})


def _wish(source: str, preset: str | None, quiet: bool) -> str:
    """The preset that was asked for, that of a built-in set (or a slice of it), or auto."""
    from pictolex.learn.auto import AUTO
    from pictolex.sources import BUILT_IN

    name = source.partition("[")[0]
    if preset is None and name in BUILT_IN and name in preset_names() and not Path(source).exists() and not Path(name).exists():
        tell(f"preset {name}, as that is the set", quiet)
        return name
    return preset or AUTO


def _chosen(images: Source, preset: str, changes: Changes, given: Given | None, explain: bool, quiet: bool) -> Choice:
    """Settings: a preset's or those that fit the images, what goes with a given dictionary over them, what was typed over that."""
    from pictolex.learn.auto import AUTO, chosen_settings
    from pictolex.learn.given import fitted

    if preset != AUTO:
        base = load_preset(preset)
        if explain:
            tell(f"nothing to explain: the settings are those of the preset {preset}; --preset auto chooses from the images")
        return Choice(overlay(base if given is None else fitted(base, given), changes))
    from pictolex.learn.survey import Survey

    survey = Survey.of(images, _early(changes).seed)
    found = chosen_settings(survey)
    settings = overlay(found.settings if given is None else fitted(found.settings, given), changes)
    for line in (*found.reasons, *(_measured(images, survey, settings) if explain else ())):
        tell(f"auto: {line}", quiet and not explain)
    return Choice(settings, survey)


def _measured(images: Source, survey: Survey, settings: Settings) -> Iterator[str]:
    """What was measured, and every setting that is not the default."""
    from pictolex.learn.start import look

    found = look(survey, settings)
    members = sum(len(kind.members) for kind in found.kinds)
    recur = f"{members} of {len(found.kinds)} kinds" if found.kinds else "none of a kind"
    yield f"measured on {len(survey.images)} of {len(images)} images: {len(found.pieces)} pieces, {recur}"
    for number, kind in enumerate(found.kinds[:KINDS_TOLD], 1):
        height, width = found.pieces[kind.exemplar].mask.shape
        yield f"kind {number}: {len(kind.members)} pieces like one of {width}x{height} pixels"
    if len(found.kinds) > KINDS_TOLD:
        yield f"and {len(found.kinds) - KINDS_TOLD} kinds more"
    plain = _leaves(Settings())
    yield "settings " + " ".join(_typed(name, value) for name, value in _leaves(settings).items() if plain.get(name) != value)


def _leaves(settings: Settings) -> dict[str, Any]:
    """Settings by the names of their options."""
    leaves: dict[str, Any] = {}
    for name, value in settings.model_dump().items():
        leaves |= {f"{name}.{leaf}": inner for leaf, inner in value.items()} if isinstance(value, dict) else {name: value}
    return {name.replace("_", "-"): value for name, value in leaves.items()}


def _typed(name: str, value: Any) -> str:
    """A setting as it would be typed."""
    if isinstance(value, bool):
        section, _, leaf = name.rpartition(".")
        return f"--{name}" if value else f"--{section}.no-{leaf}"
    values = value if isinstance(value, tuple) else (value,)
    return f"--{name} " + ",".join(f"{one:.4g}" if isinstance(one, float) else str(one) for one in values)


def _resumed(run: Run, preset: str | None, changes: Changes) -> Settings:
    """The run's own settings; what was typed over them is compared when the run is taken up, a preset here."""
    from pictolex.learn.auto import AUTO
    from pictolex.learn.checkpoint import require_same

    if preset is not None and preset != AUTO:
        require_same(overlay(load_preset(preset), changes), run.settings, run.folder)
    return overlay(run.settings, changes)


def _note_source(run: Run, source: str) -> None:
    """Where the images are, for pictures of the run."""
    path = Path(source)
    run.log({"event": "source", "source": str(path.resolve()) if path.exists() else source})


def _folder(out: str | None, overwrite: bool) -> Path:
    if out is None:
        number = 1
        while (path := Path("run" if number == 1 else f"run-{number}")).exists():
            number += 1
        return path
    path = Path(out)
    if is_run(path) and overwrite:
        remove_run(path)
    ready_folder(path)
    return path


class Interrupts:
    """Ctrl-C while learning: the first one ends it as soon as the images at hand are done, so that nothing is kept by halves.

    The second one, and one before learning has begun, ends it at once.
    """

    def __init__(self) -> None:
        self._begun = self._asked = False
        self._before: Any = None

    def __enter__(self) -> Interrupts:
        ignored = signal.getsignal(signal.SIGINT) in (signal.SIG_IGN, None)
        if threading.current_thread() is threading.main_thread() and not ignored:
            self._before = signal.signal(signal.SIGINT, self._interrupt)
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        if self._before is not None:
            signal.signal(signal.SIGINT, self._before)

    def learning(self, progress: LearningProgress) -> None:
        """Some images are done."""
        self._begun = True
        if self._asked:
            raise KeyboardInterrupt

    def _interrupt(self, number: int, frame: FrameType | None) -> None:
        if self._asked or not self._begun:
            raise KeyboardInterrupt
        self._asked = True
