"""A dictionary measured on images: how well they are rebuilt, and how far that agrees with the truth where it is known."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from pictolex.api import Learned
from pictolex.errors import InputError
from pictolex.metrics import (
    Classes,
    ClassTally,
    Places,
    Tally,
    accuracy,
    ari_all,
    best_order,
    concept_l1,
    concept_l1_strict,
    foreground_ari,
    mean_known,
    placements_exact,
)
from pictolex.model import Collection, Decomposition, Dictionary
from pictolex.sources import Source

if TYPE_CHECKING:
    from pictolex.decompose import Progress
    from pictolex.decompose.rendering import Rendered
    from pictolex.sources.truth import Truth

NOTHING = -1
"""The cluster of images without elements."""


@dataclass(frozen=True)
class Evaluation:
    """The figures of `pictolex evaluate`; None where the source has no truth of that kind.

    `class_accuracy`, `class_miou`: pixels by the concept that shows there against the class of their object, in the layer order
    of `ari_foreground` (see `metrics.classes`). `placements_exact`, `placement_precision`: of sets of shifted motifs only (see
    `metrics.placements`).
    """

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
    class_accuracy: float | None
    class_miou: float | None
    placements_exact: float | None
    placement_precision: float | None
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
    labels = None if truth is None or not truth.has_masks else _Labels(learned.dictionary, truth)
    for decomposition in collection:
        image = images.read(decomposition.index)
        rendered = renderer.render(decomposition)
        tally.add(image.pixels, rendered.image, image.opacity)
        if labels is not None:
            labels.add(decomposition, rendered)
    figures = tally.figures()
    if figures is None:
        raise InputError("there are no images to evaluate; choose a source that has some")
    true_concepts = None if truth is None else truth.concepts
    classes = None if labels is None else labels.classes()
    places = None if truth is None else _places(learned.dictionary, truth, collection)
    return Evaluation(
        images=figures.images,
        mse=figures.mse,
        psnr=figures.psnr,
        explained_variance=figures.explained_variance,
        ari_foreground=None if labels is None else mean_known(labels.best),
        ari_foreground_fixed_order=None if labels is None else mean_known(labels.fixed),
        ari_all=None if labels is None else mean_known(labels.everything),
        concept_l1=None if true_concepts is None else concept_l1(true_concepts, learned.dictionary),
        concept_l1_strict=None if true_concepts is None else concept_l1_strict(true_concepts, learned.dictionary),
        cluster_accuracy=_cluster_accuracy(collection, truth),
        class_accuracy=None if classes is None else classes.accuracy,
        class_miou=None if classes is None else classes.miou,
        placements_exact=None if places is None else places.exact,
        placement_precision=None if places is None else places.precision,
        concepts=len(learned.dictionary),
        dictionary_values=learned.dictionary.values,
        elements_per_image=float(collection.elements_per_image.mean()),
        ms_per_image=1000 * seconds / figures.images,
    )


class _Labels:
    """What pixels show against the true objects, image by image."""

    def __init__(self, dictionary: Dictionary, truth: Truth) -> None:
        self.best: list[float | None] = []
        self.fixed: list[float | None] = []
        self.everything: list[float | None] = []
        self._truth = truth
        self._number = {concept.id: k for k, concept in enumerate(dictionary)}
        self._classes = ClassTally(truth.class_count, len(dictionary))

    def add(self, decomposition: Decomposition, rendered: Rendered) -> None:
        """Compare one image."""
        mask = self._truth.masks(decomposition.index)
        if mask is None:
            return
        best, labels = best_order(mask, rendered.tied_labels())
        self.best.append(best)
        self.fixed.append(foreground_ari(mask, rendered.labels))
        self.everything.append(ari_all(mask, rendered.labels))
        classes = self._truth.classes(decomposition.index)
        if classes is not None:
            shown = rendered.labels if labels is None else labels
            self._classes.add(mask, classes, shown, [self._number[element.concept] for element in decomposition])

    def classes(self) -> Classes | None:
        """The class-aware figures, or None where no classes are known."""
        return self._classes.figures()


def _places(dictionary: Dictionary, truth: Truth, collection: Collection) -> Places | None:
    """Elements by the corner of their patch against the true placements, where objects are shifted motifs."""
    half = {concept.id: (concept.height / 2, concept.width / 2) for concept in dictionary}
    sides = [max(concept.height, concept.width) for concept in (*dictionary, *(truth.concepts or ()))]
    placed, corners = [], []
    for decomposition in collection:
        rows = truth.placements(decomposition.index)
        if rows is not None:
            placed.append(rows)
            corners.append([(e.concept, e.y - half[e.concept][0], e.x - half[e.concept][1]) for e in decomposition])
    return placements_exact(placed, corners, max(sides))


def _cluster_accuracy(collection: Collection, truth: Truth | None) -> float | None:
    """Images clustered by their most visible concept, against their labels."""
    if truth is None or truth.labels is None:
        return None
    clusters = np.array([_most_visible(decomposition) for decomposition in collection], np.int64)
    return accuracy(truth.labels[collection.images["image"]], clusters)


def _most_visible(decomposition: Decomposition) -> int:
    return max(decomposition, key=lambda element: element.visible).concept if len(decomposition) else NOTHING
