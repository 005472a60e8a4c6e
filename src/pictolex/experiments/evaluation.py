"""A dictionary measured on images: how well they are rebuilt, and how far that agrees with the truth where it is known."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from pictolex.api import Learned
from pictolex.errors import InputError
from pictolex.metrics import Tally, accuracy, ari_all, best_foreground_ari, concept_l1, concept_l1_strict, foreground_ari, mean_known
from pictolex.model import Collection, Decomposition
from pictolex.sources import Source

if TYPE_CHECKING:
    from pictolex.decompose import Progress
    from pictolex.sources.truth import Truth

NOTHING = -1
"""The cluster of images without elements."""


@dataclass(frozen=True)
class Evaluation:
    """The figures of `pictolex evaluate`; None where the source has no truth of that kind."""

    images: int
    mse: float
    psnr: float
    explained_variance: float | None
    ari_foreground: float | None
    ari_foreground_fixed_order: float | None
    ari_all: float | None
    concept_l1: float | None
    concept_l1_strict: float | None
    cluster_accuracy: float | None
    concepts: int
    dictionary_values: int
    elements_per_image: float
    ms_per_image: float


def evaluate(learned: Learned, images: Source, truth: Truth | None, progress: Callable[[Progress], None] | None = None) -> Evaluation:
    """Decompose all images of a source and measure the result."""
    from pictolex.decompose import Engine

    if truth is not None and len(truth) != len(images):
        raise InputError(f"the truth is of {len(truth)} images, the source has {len(images)}; give both the same slice")
    engine = Engine(learned.dictionary, learned.settings)
    start = time.perf_counter()
    collection = engine.run(images, progress=progress)
    seconds = time.perf_counter() - start
    return measure(learned, images, truth, collection, seconds)


def measure(learned: Learned, images: Source, truth: Truth | None, collection: Collection, seconds: float) -> Evaluation:
    """The figures of a decomposition that took so many seconds."""
    from pictolex.decompose import Renderer

    renderer = Renderer(learned.dictionary, learned.settings)
    tally = Tally()
    best: list[float | None] = []
    fixed: list[float | None] = []
    everything: list[float | None] = []
    for decomposition in collection:
        image = images.read(decomposition.index)
        rendered = renderer.render(decomposition)
        tally.add(image.pixels, rendered.image, image.opacity)
        mask = None if truth is None else truth.masks(decomposition.index)
        if mask is not None:
            best.append(best_foreground_ari(mask, rendered.tied_labels()))
            fixed.append(foreground_ari(mask, rendered.labels))
            everything.append(ari_all(mask, rendered.labels))
    figures = tally.figures()
    if figures is None:
        raise InputError("there are no images to evaluate; choose a source that has some")
    true_concepts = None if truth is None else truth.concepts
    return Evaluation(
        images=figures.images,
        mse=figures.mse,
        psnr=figures.psnr,
        explained_variance=figures.explained_variance,
        ari_foreground=mean_known(best),
        ari_foreground_fixed_order=mean_known(fixed),
        ari_all=mean_known(everything),
        concept_l1=None if true_concepts is None else concept_l1(true_concepts, learned.dictionary),
        concept_l1_strict=None if true_concepts is None else concept_l1_strict(true_concepts, learned.dictionary),
        cluster_accuracy=_cluster_accuracy(collection, truth),
        concepts=len(learned.dictionary),
        dictionary_values=learned.dictionary.values,
        elements_per_image=float(collection.elements_per_image.mean()),
        ms_per_image=1000 * seconds / figures.images,
    )


def _cluster_accuracy(collection: Collection, truth: Truth | None) -> float | None:
    """Images clustered by their most visible concept, against their labels."""
    if truth is None or truth.labels is None:
        return None
    clusters = np.array([_most_visible(decomposition) for decomposition in collection], np.int64)
    return accuracy(truth.labels[collection.images["image"]], clusters)


def _most_visible(decomposition: Decomposition) -> int:
    return max(decomposition, key=lambda element: element.visible).concept if len(decomposition) else NOTHING
