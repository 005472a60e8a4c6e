"""Class-aware segmentation: does each pixel show the right kind of object? Mean accuracy and mean IoU over classes.

As in the multi-object semantic discovery of DTI-Sprites (Monnier et al., ICCV 2021). One table of pixels (true class, concept)
is counted over all images, the background a class and a concept of its own. The background is taken for the background.
Concepts are taken for classes of objects
- one to one, so that most pixels are right (Hungarian method on the counts), where the dictionary has at most as many
  concepts as the set has classes. A concept left over is right nowhere; a class left over counts 0;
- many to one, each for the class (or the background) that most of its pixels are of, where it has more.
The second is kinder: figures by different rules, or of dictionaries of very different size, do not compare.

Accuracy of a class: of its true pixels the share with its label. IoU: pixels that have both over those that have either. Both
are means over the classes that have a true pixel, the background among them: large and small classes count alike.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pictolex.errors import InputError
from pictolex.metrics.clustering import best_pairs
from pictolex.metrics.contingency import Contingency, Counts, Ints

BACKGROUND = 0
"""Its row and its column; class or concept k has number k + 1."""
_NOTHING = -1


@dataclass(frozen=True)
class Classes:
    """Means over the classes of a set, the background among them."""

    accuracy: float
    miou: float


class ClassTally:
    """Adds up pixels image by image; keeps one table of counts.

    `classes`: how many kinds of objects the set has. `concepts`: how many the dictionary has, used or not.
    """

    def __init__(self, classes: int, concepts: int) -> None:
        self._classes, self._concepts = classes, concepts
        self._counts = Contingency()

    def add(self, mask: Ints, classes: Sequence[int] | Ints, labels: Ints, concepts: Sequence[int] | Ints) -> None:
        """Count one image: true instance ids and the class of each from id 1 on, found labels and the concept of each from 1 on.

        0 is the background in both maps; classes and concepts are numbered from 0.
        """
        self._counts.add(_named(mask, classes, "class"), _named(labels, concepts, "concept"))

    def figures(self) -> Classes | None:
        """The figures so far; None before the first pixel."""
        table = self._counts.table
        if table.size == 0:
            return None
        taken = _one_to_one(table) if self._concepts <= self._classes else _many_to_one(table)
        there = np.flatnonzero(table.sum(axis=1))
        chosen = taken[None, :] == there[:, None]
        right = np.where(chosen, table[there], 0).sum(axis=1)
        true, found = table[there].sum(axis=1), (chosen * table.sum(axis=0)).sum(axis=1)
        return Classes(float((right / true).mean()), float((right / (true + found - right)).mean()))


def _one_to_one(table: Counts) -> NDArray[np.int64]:
    """For each column the row it is taken for, or none."""
    taken = np.full(table.shape[1], _NOTHING, np.int64)
    rows, columns = best_pairs(table[1:, 1:])
    taken[columns + 1] = rows + 1
    taken[BACKGROUND] = BACKGROUND
    return taken


def _many_to_one(table: Counts) -> NDArray[np.int64]:
    """For each column the row that it meets most often."""
    taken: NDArray[np.int64] = table.argmax(axis=0).astype(np.int64)
    taken[BACKGROUND] = BACKGROUND
    return taken


def _named(ids: Ints, names: Sequence[int] | Ints, what: str) -> NDArray[np.integer[Any]]:
    """A map of ids as one of numbers, 0 for the background."""
    known = np.asarray(names, np.int64)
    ids = np.asarray(ids)
    largest = int(ids.max(initial=0))
    if largest > len(known):
        raise InputError(f"a map has the id {largest}, but the {what} of {len(known)} is known; give one for each id")
    numbers = np.concatenate([[BACKGROUND], known + 1])[ids]
    if bool(((ids > 0) & (numbers <= BACKGROUND)).any()):
        raise InputError(f"a map shows an id without a {what}; give every id that shows one, 0 or above")
    return numbers
