"""Class-aware accuracy and IoU against brute force over matchings and against scikit-learn."""

from __future__ import annotations

from itertools import permutations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from pictolex.errors import InputError
from pictolex.metrics import ClassTally
from pictolex.metrics.contingency import Contingency

oracle = pytest.importorskip("sklearn.metrics")

COUNT = 4
maps = arrays.arrays(np.int64, st.tuples(st.just(2), st.integers(1, 7), st.integers(1, 7)), elements=st.integers(0, COUNT))
SAME = np.arange(COUNT)


def figures(truth: np.ndarray, shown: np.ndarray, classes: int, concepts: int) -> tuple[float, float]:
    """Of one image whose ids are its classes and concepts."""
    tally = ClassTally(classes, concepts)
    tally.add(truth, SAME, shown, SAME)
    found = tally.figures()
    assert found is not None
    return found.accuracy, found.miou


def by_hand(truth: np.ndarray, labels: np.ndarray) -> tuple[float, float]:
    """Pixel by pixel, when labels are classes already."""
    accuracies, ious = [], []
    for one in sorted(set(truth.ravel().tolist())):
        both = sum(t == one == s for t, s in zip(truth.ravel(), labels.ravel(), strict=True))
        either = sum(one in (t, s) for t, s in zip(truth.ravel(), labels.ravel(), strict=True))
        accuracies.append(both / sum(t == one for t in truth.ravel()))
        ious.append(both / either)
    return float(np.mean(accuracies)), float(np.mean(ious))


@given(maps)
@settings(max_examples=150, deadline=None)
def test_one_to_one_is_one_of_the_best_of_all_matchings(both: np.ndarray) -> None:
    truth, shown = both
    maps_of = [np.array([0, *order]) for order in permutations(range(1, COUNT + 1))]
    right = [int(((order[shown] == truth) & (truth > 0)).sum()) for order in maps_of]
    best = [by_hand(truth, order[shown]) for order, count in zip(maps_of, right, strict=True) if count == max(right)]
    assert any(figures(truth, shown, COUNT, COUNT) == pytest.approx(one) for one in best)


@given(maps)
@settings(max_examples=150, deadline=None)
def test_many_to_one_is_scikit_learns_macro_average_of_the_majority(both: np.ndarray) -> None:
    truth, shown = both
    taken = {c: int(np.bincount(truth[shown == c], minlength=1).argmax()) for c in range(1, COUNT + 1)} | {0: 0}
    labels = np.vectorize(taken.__getitem__)(shown).ravel()
    there = np.unique(truth)
    accuracy, miou = figures(truth, shown, COUNT - 1, COUNT)
    assert accuracy == pytest.approx(oracle.recall_score(truth.ravel(), labels, labels=there, average="macro", zero_division=0))
    assert miou == pytest.approx(oracle.jaccard_score(truth.ravel(), labels, labels=there, average="macro", zero_division=0))


@given(maps)
@settings(deadline=None)
def test_names_of_concepts_do_not_matter(both: np.ndarray) -> None:
    truth, _ = both
    other = np.array([0, 3, 1, 4, 2])[truth]
    assert figures(truth, other, COUNT, COUNT) == (1.0, 1.0)
    assert figures(truth, other, 2, COUNT) == (1.0, 1.0)


def test_images_are_added_up_before_the_means() -> None:
    rng = np.random.default_rng(0)
    truth, shown = rng.integers(0, COUNT + 1, (2, 6, 5, 5))
    tally = ClassTally(COUNT, COUNT)
    for t, s in zip(truth, shown, strict=True):
        tally.add(t, SAME, s, SAME)
    found = tally.figures()
    assert found is not None
    assert (found.accuracy, found.miou) == figures(truth.reshape(6, -1), shown.reshape(6, -1), COUNT, COUNT)


def test_the_background_is_never_a_concept_nor_a_concept_the_background_one_to_one() -> None:
    truth, shown = np.array([[0, 0, 0, 1]]), np.array([[1, 1, 1, 0]])
    assert figures(truth, shown, 1, 1) == (0.0, 0.0)
    # Many to one, a concept that shows background is taken for background.
    assert figures(truth, shown, 1, 2) == (0.5, pytest.approx((3 / 4 + 0) / 2))


def test_a_class_in_two_concepts_is_half_right_one_to_one_and_right_many_to_one() -> None:
    truth, shown = np.array([[0, 1, 1, 1, 1, 2]]), np.array([[0, 1, 1, 2, 2, 3]])
    assert figures(truth, shown, 3, 3) == (pytest.approx((1 + 0.5 + 1) / 3), pytest.approx((1 + 0.5 + 1) / 3))
    assert figures(truth, shown, 2, 3) == (1.0, 1.0)


def test_objects_are_told_by_their_class() -> None:
    mask, labels = np.array([[1, 2, 3, 0]]), np.array([[3, 1, 2, 0]])
    tally = ClassTally(2, 2)
    tally.add(mask, [1, 0, 1], labels, [1, 0, 0])
    found = tally.figures()
    assert found is not None and (found.accuracy, found.miou) == (1.0, 1.0)


def test_only_classes_that_are_there_count_and_nothing_is_none() -> None:
    assert figures(np.array([[0, 4]]), np.array([[0, 2]]), COUNT, COUNT) == (1.0, 1.0)
    assert figures(np.zeros((2, 2), int), np.zeros((2, 2), int), COUNT, COUNT) == (1.0, 1.0)
    assert figures(np.array([[1, 0]]), np.zeros((1, 2), int), COUNT, 0) == (0.5, 0.25)
    assert ClassTally(3, 3).figures() is None


def test_ids_without_a_class_are_an_error() -> None:
    tally = ClassTally(2, 2)
    with pytest.raises(InputError, match="the id 3, but the class of 2"):
        tally.add(np.array([[3]]), [0, 1], np.array([[0]]), [])
    with pytest.raises(InputError, match="an id without a class"):
        tally.add(np.array([[2]]), [0, -1], np.array([[0]]), [])
    with pytest.raises(InputError, match="same pixels"):
        tally.add(np.array([[1, 1]]), [0], np.array([[0]]), [])


@given(arrays.arrays(np.int64, st.tuples(st.integers(1, 5), st.just(2), st.integers(1, 20)), elements=st.integers(0, 6)))
@settings(deadline=None)
def test_contingency_adds_up_as_scikit_learn_counts_all_at_once(pairs: np.ndarray) -> None:
    counts = Contingency()
    for truth, labels in pairs:
        counts.add(truth.astype(np.uint8), labels)
    expected = oracle.confusion_matrix(pairs[:, 0].ravel(), pairs[:, 1].ravel(), labels=range(7))
    padded = np.pad(counts.table, [(0, 7 - n) for n in counts.table.shape])
    np.testing.assert_array_equal(padded, expected)
    with pytest.raises(InputError, match="below 0"):
        counts.add(np.array([-1]), np.array([0]))
