"""Sets of images: learned on the first 4,500 of the shared file, measured on the last 500."""

from __future__ import annotations

from pathlib import Path

from pictolex.errors import InputError
from pictolex.experiments.bench_base import data_file, missing
from pictolex.experiments.reproduce_base import Case, Experiment
from pictolex.sources import Source, open_source
from pictolex.sources.synthetic import SyntheticSource
from pictolex.sources.truth import Truth, open_truth

FIRST, LAST = 4500, 500
HELD_SHARE = 10
"""Of a file with fewer images, one in so many is held back."""
LEARNED_SEED, MEASURED_SEED = 101, 202
"""Of generated sets."""


def case(experiment: Experiment, side: int | None, seed: int, images: int | None) -> Case:
    """The images of an experiment; the same for every seed. `images`: at most so many to learn from, and to measure on."""
    path = data_file(experiment.file)
    return _generated(experiment, images) if path is None else _stored(experiment, path, images)


def _stored(experiment: Experiment, path: Path, images: int | None) -> Case:
    everything = open_source(str(path))
    count = len(everything)
    held = min(LAST, count // HELD_SHARE or 1)
    if count <= held:
        raise InputError(f"{path}: {count} images; it takes some to learn from and others to measure on")
    offered, measured = _at_most(min(FIRST, count - held), images), _at_most(held, images)
    part = slice(count - measured, count)

    def truth() -> Truth | None:
        known = open_truth(str(path))
        return None if known is None else known.take(part)

    return Case(
        learn=everything.take(slice(offered)),
        evaluate=everything.take(part),
        truth=truth,
        data=f"{path.name} (re-created set): measured on the last {measured} images, learned on the first {offered}",
        spec=f"{path.resolve()}[:{offered}]",
    )


def _generated(experiment: Experiment, images: int | None) -> Case:
    """Where the file is not at hand: our own set of that name, other seeds for learning and for measuring."""
    learned: Source = SyntheticSource(experiment.name, _at_most(FIRST, images), LEARNED_SEED)
    measured = SyntheticSource(experiment.name, _at_most(LAST, images), MEASURED_SEED)
    return Case(
        learn=learned,
        evaluate=measured,
        truth=lambda: open_truth(measured),
        data=f"our generated {experiment.name}: measured on {len(measured)} images of seed {MEASURED_SEED}, "
        f"learned on {len(learned)} of seed {LEARNED_SEED}",
        note=f"the images are our own generated ones, not the shared set: {missing(experiment.file)}",
    )


def _at_most(count: int, limit: int | None) -> int:
    return count if limit is None else min(count, limit)
