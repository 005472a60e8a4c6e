"""How often each pair of labels meets: what ARI, accuracy and mutual information are made of."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from pictolex.errors import InputError

Ints = NDArray[np.integer[Any]]
Counts = NDArray[np.int64]

_DIRECT = 4096


def contingency(truth: Ints, labels: Ints) -> Counts:
    """(true classes, labels) counts of two equally long label arrays; rows and columns without a count are left out."""
    first, second = np.asarray(truth).ravel(), np.asarray(labels).ravel()
    if first.shape != second.shape:
        raise InputError(f"{first.size} true labels and {second.size} found ones; they must belong to the same pixels or images")
    if first.size == 0:
        return np.zeros((0, 0), np.int64)
    (first, rows), (second, columns) = _dense(first), _dense(second)
    table = np.bincount(first * columns + second, minlength=rows * columns).reshape(rows, columns)
    table = table[table.any(axis=1)]
    return table[:, table.any(axis=0)]


class Contingency:
    """Counts of pairs of labels 0, 1, 2, ..., added up image by image; it grows with the largest labels, not with the images."""

    def __init__(self) -> None:
        self._table = np.zeros((0, 0), np.int64)

    @property
    def table(self) -> Counts:
        """(true classes, labels) counts so far; those that never came are zero."""
        return self._table

    def add(self, truth: Ints, labels: Ints) -> None:
        """Count two equally large label arrays."""
        first, second = np.asarray(truth).ravel(), np.asarray(labels).ravel()
        if first.shape != second.shape:
            raise InputError(f"{first.size} true labels and {second.size} found ones; they must belong to the same pixels")
        if first.size == 0:
            return
        if int(first.min()) < 0 or int(second.min()) < 0:
            raise InputError("labels below 0; number them from 0")
        rows, columns = (max(n, int(a.max()) + 1) for n, a in zip(self._table.shape, (first, second), strict=True))
        counts = np.bincount(first.astype(np.int64) * columns + second, minlength=rows * columns).reshape(rows, columns)
        counts[: self._table.shape[0], : self._table.shape[1]] += self._table
        self._table = counts


def _dense(labels: Ints) -> tuple[Counts, int]:
    """Labels as 0 .. n-1 and n; small ones stay as they are, without sorting."""
    if labels.dtype.kind in "iub" and int(labels.min()) >= 0 and int(labels.max()) < _DIRECT:
        return labels.astype(np.int64), int(labels.max()) + 1
    values, dense = np.unique(labels, return_inverse=True)
    return dense.astype(np.int64), len(values)
