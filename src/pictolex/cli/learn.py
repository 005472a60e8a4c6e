"""`pictolex learn`: a dictionary from images."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from pictolex.cli.common import ready_folder, seconds, tell
from pictolex.cli.options import Changes, overlay, with_settings
from pictolex.cli.progress import Reporter
from pictolex.errors import OutputError
from pictolex.learn.run import is_run, remove_run
from pictolex.presets import load_preset, preset_names
from pictolex.settings import Settings


@with_settings
def command(
    source: str,
    /,
    *,
    out: Annotated[str | None, Parameter(name=["--out", "-o"])] = None,
    preset: str | None = None,
    epochs: int | None = None,
    budget: str | None = None,
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
        Settings for a known kind of images; a built-in set brings its own.
    epochs
        Passes over the images, as --learning.epochs.
    budget
        The most time to take, all included: 90s, 5m, 1h.
    overwrite
        Remove the run that is already in the folder.
    quiet
        No progress.
    """
    from pictolex.sources import open_source

    name = preset or _own_preset(source)
    settings = overlay(load_preset(name) if name else Settings(), changes)
    limit = seconds(budget) if budget is not None else None
    if epochs is not None:
        settings = overlay(settings, {"learning.epochs": epochs})
    images = open_source(source, seed=settings.seed)
    folder = _folder(out, overwrite)
    if name and not preset:
        tell(f"preset {name}, as that is the set", quiet)
    tell(images.describe(), quiet)
    from pictolex.learn import learn

    with Reporter(quiet) as reporter:
        run = learn(images, settings=settings, out=folder, budget=limit, callbacks=(reporter.learning,))
    path = Path(source)
    run.log({"event": "source", "source": str(path.resolve()) if path.exists() else source})
    print(folder)


def _own_preset(source: str) -> str | None:
    """A built-in set (or a slice of it) is learned with the preset of its name."""
    from pictolex.sources import BUILT_IN

    name = source.partition("[")[0]
    return name if name in BUILT_IN and name in preset_names() and not Path(source).exists() and not Path(name).exists() else None


def _folder(out: str | None, overwrite: bool) -> Path:
    if out is None:
        number = 1
        while (path := Path("run" if number == 1 else f"run-{number}")).exists():
            number += 1
        return path
    path = Path(out)
    if is_run(path):
        if not overwrite:
            raise OutputError(f"{path} already holds a run; choose another folder, or add --overwrite")
        remove_run(path)
    ready_folder(path)
    return path
