"""How many true placements are found at exactly their place: for sets whose motifs were only shifted by whole pixels.

An element stands at a placement when its concept is the one matched with the placement's motif, and its patch's corner is
where the placement's is, up to one constant offset of whole pixels a concept (a learned patch may be larger or smaller than the
motif, or hold it off its middle), within half a pixel in x and in y. Concepts are matched with motifs one to one; matching and
offsets are those with the most placements found, then with the most elements right.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from pictolex.metrics.clustering import best_pairs

Rows = NDArray[np.float64]
Meeting = tuple[int, int, int, int]
"""Motif, concept, and the whole-pixel offset in y and x of the element from the placement."""

_BLOCK = 256
"""Placements compared with all elements at a time."""


@dataclass(frozen=True)
class Places:
    """`exact`: of the true placements that show, the share found. `precision`: of the elements, the share at a true placement,
    one that is hidden too; None without elements."""

    exact: float
    precision: float | None


def placements_exact(true_placements: Iterable[ArrayLike], elements: Iterable[ArrayLike], reach: float) -> Places | None:
    """The figures of many images, or None where no true placement shows.

    `true_placements`: for each image rows (motif, y, x, pixels that show), the place of the motif's top left corner.
    `elements`: for each image rows (concept, y, x), the place of the patch's top left corner at scale 1 (its centre less half
    its size). `reach`: no offset is larger in y or x; the largest side of a patch will do.
    """
    asked = found = 0
    hits: Counter[Meeting] = Counter()
    right: Counter[Meeting] = Counter()
    for truth, some in zip(true_placements, elements, strict=True):
        placed, seen = _rows(truth, 4), _rows(some, 3)
        asked += int((placed[:, 3] > 0).sum())
        found += len(seen)
        which = _meetings(placed, seen, reach)
        hits.update(_counted(which[placed[which[:, 0], 3] > 0][:, [0, 2, 3, 4, 5]]))
        right.update(_counted(which[:, [1, 2, 3, 4, 5]]))
    if asked == 0:
        return None
    exact, precise = _best(hits, right, found)
    return Places(exact / asked, precise / found if found else None)


def _rows(values: ArrayLike, width: int) -> Rows:
    """(any, width), also of nothing."""
    rows: Rows = np.asarray(values, np.float64).reshape(-1, width)
    return rows


def _meetings(placed: Rows, seen: Rows, reach: float) -> NDArray[np.int64]:
    """(pairs, 6) of placements and elements near each other: both places in their lists, motif, concept, offset in y and x."""
    parts = [np.zeros((0, 6), np.int64)]
    for start in range(0, len(placed), _BLOCK):
        block = placed[start : start + _BLOCK]
        offsets = np.rint(seen[None, :, 1:] - block[:, None, 1:3]).astype(np.int64)
        first, second = np.nonzero((np.abs(offsets) <= reach).all(axis=2))
        motif, concept = block[first, 0].astype(np.int64), seen[second, 0].astype(np.int64)
        parts.append(np.column_stack([first + start, second, motif, concept, offsets[first, second]]))
    return np.concatenate(parts)


def _counted(rows: NDArray[np.int64]) -> Iterator[Meeting]:
    """Meetings, each placement (or element, the first column) once."""
    return (tuple(row[1:]) for row in np.unique(rows, axis=0).tolist())


def _best(hits: Counter[Meeting], right: Counter[Meeting], found: int) -> tuple[int, int]:
    """Placements found and elements right, of the best matching with the best offsets."""
    scores: dict[tuple[int, int], int] = {}
    for meeting in right:
        pair = meeting[:2]
        scores[pair] = max(scores.get(pair, 0), hits[meeting] * (found + 1) + right[meeting])
    motifs, concepts = (sorted(set(side)) for side in zip(*scores, strict=True)) if scores else ([], [])
    gains = np.array([[scores.get((m, c), 0) for c in concepts] for m in motifs], np.int64).reshape(len(motifs), len(concepts))
    rows, columns = best_pairs(gains)
    chosen = [divmod(int(gain), found + 1) for gain in gains[rows, columns]]
    return sum(exact for exact, _ in chosen), sum(elements for _, elements in chosen)
