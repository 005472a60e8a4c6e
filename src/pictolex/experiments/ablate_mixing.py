"""How many true shapes each concept mixes: the true objects that its elements stand for, counted."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from pictolex.api import Learned
from pictolex.metrics import best_order
from pictolex.model import Collection
from pictolex.sources.truth import Truth

Counts = NDArray[np.int64]


def mixing(learned: Learned, collection: Collection, truth: Truth) -> Counts | None:
    """Elements (concepts in the dictionary's order, true shapes): each counts for the object that it shows most pixels of.

    Layers are in the order that `ari_foreground` takes. Elements that show no object's pixels count for none. None where shapes are
    not known.
    """
    from pictolex.decompose import Renderer

    if truth.kinds is None or truth.class_count == 0:
        return None
    place = {id: k for k, id in enumerate(learned.dictionary.ids)}
    # Of a part of a set only some classes are left, under the numbers that they have in the whole.
    column = {number: k for k, number in enumerate(np.unique(truth.kinds).tolist())}
    counts = np.zeros((len(place), len(column)), np.int64)
    renderer = Renderer(learned.dictionary, learned.settings)
    for decomposition in collection:
        mask, classes = truth.masks(decomposition.index), truth.classes(decomposition.index)
        if mask is None or classes is None:
            continue
        rendered = renderer.render(decomposition)
        _, labels = best_order(mask, rendered.tied_labels())
        for k, element in enumerate(decomposition, 1):
            shown = mask[(rendered.labels if labels is None else labels) == k]
            pixels = np.bincount(shown, minlength=len(classes) + 1)[1 : len(classes) + 1]
            if pixels.size and pixels.max() > 0:
                counts[place[element.concept], column[int(classes[int(pixels.argmax())])]] += 1
    return counts


def effective(counts: Counts) -> NDArray[np.float64]:
    """The number of shapes that each concept stands for: `exp(-sum_k p_k log p_k)`, 1 where it is always the same; NaN without any."""
    total = counts.sum(axis=1, keepdims=True)
    shares = counts / np.where(total > 0, total, 1)
    terms = np.zeros_like(shares)
    np.log(shares, out=terms, where=shares > 0)
    numbers: NDArray[np.float64] = np.exp(-(shares * terms).sum(axis=1))
    numbers[total[:, 0] == 0] = np.nan
    return numbers


def mixed(counts: Counts) -> float | None:
    """The mean of that over all elements; None without any."""
    uses = counts.sum(axis=1)
    used = uses > 0
    return float((effective(counts)[used] * uses[used]).sum() / uses.sum()) if used.any() else None
