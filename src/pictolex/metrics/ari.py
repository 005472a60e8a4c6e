"""The adjusted Rand index of segmentations: foreground only, with all pixels, and with the best of tied layer orders."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from pictolex.errors import InputError
from pictolex.metrics.contingency import Ints, contingency


def ari(truth: Ints, labels: Ints) -> float:
    """Agreement of two labellings in pairs, 1 where they are the same, about 0 for chance; in whole numbers until the last step."""
    table = contingency(truth, labels)
    total = int(table.sum())
    squares = int((table**2).sum())
    rows, columns = int((table.sum(axis=1) ** 2).sum()), int((table.sum(axis=0) ** 2).sum())
    together, only_truth, only_labels = squares - total, rows - squares, columns - squares
    apart = total**2 - rows - columns + squares
    if only_truth == 0 and only_labels == 0:
        return 1.0
    numerator = 2 * (together * apart - only_truth * only_labels)
    denominator = (together + only_truth) * (only_truth + apart) + (together + only_labels) * (only_labels + apart)
    return numerator / denominator


def foreground_ari(truth: Ints, labels: Ints) -> float | None:
    """ARI over the pixels of true objects (truth above 0) only.

    `labels` are of all pixels, 0 = background, which is a label like any other. One true object counts 1; none: None.
    """
    truth, labels = _maps(truth, labels)
    inside = truth > 0
    objects = truth[inside]
    if objects.size == 0:
        return None
    if bool((objects == objects[0]).all()):
        return 1.0
    return ari(objects, labels[inside])


def ari_all(truth: Ints, labels: Ints) -> float:
    """ARI over all pixels, the background one more segment of both."""
    return ari(*_maps(truth, labels))


def best_foreground_ari(truth: Ints, label_maps: Iterable[Ints]) -> float | None:
    """The best foreground ARI over the label maps of tied layer orders (the first is the fixed order); none: None.

    Which orders are tied is the renderer's business: those that leave the rebuilt image the same within rounding.
    """
    return best_order(truth, label_maps)[0]


def best_order(truth: Ints, label_maps: Iterable[Ints]) -> tuple[float | None, Ints | None]:
    """The best foreground ARI and the label map that has it, the first of equals; without true objects the first map."""
    best: float | None = None
    kept: Ints | None = None
    for labels in label_maps:
        found = foreground_ari(truth, labels)
        if found is None:
            return None, labels
        if best is None or found > best:
            best, kept = found, labels
        if best == 1.0:
            break
    return best, kept


def mean_known(values: Iterable[float | None]) -> float | None:
    """The mean of what is known; None where nothing is."""
    known = [value for value in values if value is not None]
    return float(np.mean(known)) if known else None


def _maps(truth: Ints, labels: Ints) -> tuple[Ints, Ints]:
    """Two maps of one shape."""
    truth, labels = np.asarray(truth), np.asarray(labels)
    if truth.shape != labels.shape:
        raise InputError(f"a true mask of shape {truth.shape} and labels of shape {labels.shape}; they must be of one image")
    return truth, labels
