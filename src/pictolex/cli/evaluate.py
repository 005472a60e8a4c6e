"""`pictolex evaluate`: a dictionary measured on images."""

from __future__ import annotations

from dataclasses import asdict
from typing import Annotated

from cyclopts import Parameter

from pictolex.cli.common import open_learned, tell, write_json
from pictolex.cli.options import Changes, with_settings
from pictolex.cli.progress import Reporter


@with_settings
def command(
    learned: Annotated[str, Parameter(name="RUN_OR_SPRITES")],
    source: str,
    /,
    *,
    json: bool = False,
    truth: str | None = None,
    preset: str | None = None,
    quiet: Annotated[bool, Parameter(name=["--quiet", "-q"])] = False,
    changes: Changes,
) -> None:
    """Measure a dictionary on images: error, and agreement with the truth where it is known.

    Parameters
    ----------
    learned
        The folder of a run, or a folder of RGBA sprites.
    source
        A folder, glob, image, .npz file (file.npz:key[:4500]) or built-in set. An .npz file's truth is beside its images.
    json
        As one JSON object; null where there is no truth.
    truth
        Instance masks kept elsewhere, FILE:KEY.
    preset
        Settings of a preset in place of the run's.
    quiet
        No progress.
    """
    from pictolex.sources import open_source
    from pictolex.sources.truth import open_truth

    found = open_learned(learned, changes, preset)
    images = open_source(source, seed=found.settings.seed)
    known = open_truth(source, seed=found.settings.seed, masks=truth)
    tell(images.describe(), quiet)
    from pictolex.experiments.evaluation import evaluate

    with Reporter(quiet) as reporter:
        figures = asdict(evaluate(found, images, known, reporter.images))
    if json:
        write_json(figures)
        return
    for name, value in figures.items():
        print(f"{name:<28} {'-' if value is None else f'{value:.4g}' if isinstance(value, float) else value}")
