"""Clusters against classes: accuracy of the best one-to-one map, purity, normalised and adjusted mutual information."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pictolex.metrics.contingency import Counts, Ints, contingency

Floats = NDArray[np.floating[Any]]


def accuracy(truth: Ints, clusters: Ints) -> float | None:
    """Share right under the best one-to-one map of clusters to classes; clusters too many count as wrong. None for none."""
    table = contingency(truth, clusters)
    if table.size == 0:
        return None
    rows, columns = best_pairs(table)
    return float(table[rows, columns].sum() / table.sum())


def purity(truth: Ints, clusters: Ints) -> float | None:
    """Share right where every cluster takes its most frequent class (many to one). None for none."""
    table = contingency(truth, clusters)
    return float(table.max(axis=0).sum() / table.sum()) if table.size else None


def normalised_mutual_information(truth: Ints, clusters: Ints) -> float | None:
    """Mutual information over the mean of both entropies, 0 to 1."""
    table = contingency(truth, clusters)
    if table.size == 0:
        return None
    if 1 in table.shape:
        return 1.0 if table.shape == (1, 1) else 0.0
    mean = (_entropy(table.sum(axis=1)) + _entropy(table.sum(axis=0))) / 2
    return max(0.0, min(1.0, _mutual_information(table) / mean))


def adjusted_mutual_information(truth: Ints, clusters: Ints) -> float | None:
    """Mutual information above chance, over what it could be above chance (mean of entropies)."""
    table = contingency(truth, clusters)
    if table.size == 0:
        return None
    if table.shape == (1, 1) or (table.shape[0] == table.shape[1] == int(table.sum())):
        return 1.0
    expected = _expected_information(table)
    mean = (_entropy(table.sum(axis=1)) + _entropy(table.sum(axis=0))) / 2
    room = mean - expected
    tiny = float(np.finfo(np.float64).eps)
    room = min(room, -tiny) if room < 0 else max(room, tiny)
    return (_mutual_information(table) - expected) / room


def _entropy(counts: Counts) -> float:
    """In nats."""
    shares = counts[counts > 0] / counts.sum()
    return float(-(shares * np.log(shares)).sum())


def _mutual_information(table: Counts) -> float:
    """In nats."""
    total = table.sum()
    outer = np.outer(table.sum(axis=1), table.sum(axis=0))
    there = table > 0
    shares = table[there] / total
    return float((shares * np.log(table[there] * float(total) / outer[there])).sum())


def _expected_information(table: Counts) -> float:
    """The mean mutual information of all tables with these margins: each cell's count is hypergeometric."""
    total = int(table.sum())
    factorials = np.concatenate([[0.0], np.cumsum(np.log(np.arange(1, total + 1)))])
    margins, repeats = _margin_pairs(table)
    expected = 0.0
    for (a, b), repeat in zip(margins, repeats, strict=True):
        n = np.arange(max(1, a + b - total), min(a, b) + 1)
        log_chance = (
            factorials[a]
            + factorials[b]
            + factorials[total - a]
            + factorials[total - b]
            - factorials[total]
            - factorials[n]
            - factorials[a - n]
            - factorials[b - n]
            - factorials[total - a - b + n]
        )
        expected += repeat * float((n / total * np.log(n * (total / (a * b))) * np.exp(log_chance)).sum())
    return expected


def _margin_pairs(table: Counts) -> tuple[list[tuple[int, int]], list[int]]:
    """Different (row sum, column sum) pairs and how often each is there."""
    rows, row_counts = np.unique(table.sum(axis=1), return_counts=True)
    columns, column_counts = np.unique(table.sum(axis=0), return_counts=True)
    pairs = [(int(a), int(b)) for a in rows for b in columns]
    return pairs, [int(p) for p in np.outer(row_counts, column_counts).ravel()]


def best_pairs(gains: Counts) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Rows and columns of the assignment with the largest sum (Hungarian method with potentials)."""
    if gains.shape[0] > gains.shape[1]:
        columns, rows = best_pairs(gains.T)
        order = np.argsort(rows)
        return rows[order], columns[order]
    cost = -gains.astype(np.float64)
    count, width = cost.shape
    of_row, of_column = np.zeros(count + 1), np.zeros(width + 1)
    owner = np.zeros(width + 1, np.int64)
    for row in range(1, count + 1):
        owner[0] = row
        column = 0
        shortest, previous = np.full(width + 1, math.inf), np.zeros(width + 1, np.int64)
        seen = np.zeros(width + 1, bool)
        while owner[column] != 0:
            seen[column] = True
            here = owner[column]
            reduced = cost[here - 1] - of_row[here] - of_column[1:]
            better = ~seen[1:] & (reduced < shortest[1:])
            shortest[1:][better] = reduced[better]
            previous[1:][better] = column
            following = 1 + int(np.argmin(np.where(seen[1:], math.inf, shortest[1:])))
            step = shortest[following]
            of_row[owner[seen]] += step
            of_column[seen] -= step
            shortest[~seen] -= step
            column = following
        while column != 0:
            owner[column] = owner[previous[column]]
            column = int(previous[column])
    columns = np.flatnonzero(owner[1:] > 0)
    rows = owner[1:][columns] - 1
    order = np.argsort(rows)
    return rows[order], columns[order]
