"""What is measured of a dictionary, learned or true, on the images of an ablation."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import asdict, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pictolex.api import Learned
from pictolex.decompose import Engine, Renderer
from pictolex.experiments.ablate_base import LEARNED, LEARNING, MIXED, MSE, TIME, Found, Images, Job
from pictolex.experiments.ablate_mixing import effective, mixed, mixing
from pictolex.experiments.bench_settings import full_size
from pictolex.experiments.evaluation import measure
from pictolex.learn import learn
from pictolex.model import Collection
from pictolex.pictures.canvas import Picture, to_bytes, to_rgb
from pictolex.pictures.layers import instance_colours

SHOWN = 6
"""Images that are drawn."""

Decompose = Callable[[Learned, Images, Job], Collection]


def learned_from(job: Job, images: Images) -> Found:
    """Learn from the images of a job, then measure on its others."""
    settings, started = job.settings(images), time.monotonic()
    run = learn(images.learn, settings=settings, callbacks=(job.clock.checked(job.watch.learning),))
    taken = time.monotonic() - started
    learned = Learned(run.dictionary, settings, run)
    collection = searched(learned, images, job)
    figures, details = _judged(learned, images, collection, 0.0, true_concepts=True)
    uses = {str(id): int((collection.columns["concept"] == id).sum()) for id in learned.dictionary.ids}
    errors = [float(entry["error"]) for entry in run.history if entry.get("event") == "epoch"]
    found = {**details, "uses": uses, "errors": errors, "lineage": [event.kind for event in run.lineage.events]}
    del figures[TIME.key]
    taken_from = {LEARNED.key: float(len(images.learn)), LEARNING.key: taken}
    return Found({**figures, **taken_from}, found, dictionary=learned.dictionary)


def with_true_concepts(job: Job, images: Images, decompose: Decompose | None = None) -> Found:
    """Decompose the images of a job with the true dictionary; what is measured is the search alone."""
    learned = Learned(images.dictionary, full_size(job.settings(images)), None)
    way = searched if decompose is None else decompose
    # What is made once for a dictionary is made before the clock starts.
    few = replace(images, measure=images.measure.take(slice(1)))
    way(learned, few, job)
    started = time.perf_counter()
    collection = way(learned, images, job)
    figures, details = _judged(learned, images, collection, time.perf_counter() - started, true_concepts=False)
    return Found(figures, details, shown(learned, images, collection))


def searched(learned: Learned, images: Images, job: Job) -> Collection:
    """As the settings say."""
    return Engine(learned.dictionary, learned.settings).run(images.measure, progress=job.clock.checked(job.watch.images))


def _judged(
    learned: Learned, images: Images, collection: Collection, seconds: float, true_concepts: bool
) -> tuple[dict[str, float | None], dict[str, Any]]:
    """The figures of `pictolex evaluate`, and what each concept mixes."""
    truth = images.truth
    against = truth if truth is None or true_concepts else replace(truth, concepts=None)
    figures: dict[str, float | None] = asdict(measure(learned, images.measure, against, collection, seconds))
    known = {key: value if value is not None and math.isfinite(value) else None for key, value in figures.items()}
    counts = None if truth is None else mixing(learned, collection, truth)
    if counts is None:
        return known, {}
    return known | {MIXED: mixed(counts)}, {"mixing": {"counts": counts.tolist(), "effective": effective(counts).tolist()}}


def shown(learned: Learned, images: Images, collection: Collection) -> dict[str, NDArray[Any]]:
    """Some images, what was rebuilt of them and which element shows where, as pictures (images, h, w, 3); and their errors."""
    renderer = Renderer(learned.dictionary, learned.settings)
    pictures: dict[str, list[Picture]] = {"image": [], "rebuilt": [], "instances": []}
    errors = []
    for decomposition in collection[:SHOWN]:
        image, rendered = images.measure.read(decomposition.index).on(), renderer.render(decomposition)
        pictures["image"].append(to_bytes(image))
        pictures["rebuilt"].append(to_bytes(rendered.image))
        pictures["instances"].append(to_bytes(instance_colours(len(decomposition))[rendered.labels]))
        errors.append(float(((to_rgb(image) - to_rgb(rendered.image)) ** 2).mean()))
    return {**{name: np.stack(each) for name, each in pictures.items()}, MSE.key: np.array(errors)}
