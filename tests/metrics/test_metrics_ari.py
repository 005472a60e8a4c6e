"""ARI against scikit-learn, and the project's own terms for it: foreground, one object, no objects, tied orders."""

from __future__ import annotations

from itertools import permutations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from pictolex.errors import InputError
from pictolex.metrics import ari, ari_all, best_foreground_ari, best_order, foreground_ari, mean_known, search_failure_rate

oracle = pytest.importorskip("sklearn.metrics")

maps = arrays.arrays(np.int64, st.tuples(st.just(2), st.integers(1, 9), st.integers(1, 9)), elements=st.integers(0, 4))


@given(maps)
@settings(max_examples=300, deadline=None)
def test_ari_is_scikit_learns(both: np.ndarray) -> None:
    truth, labels = both
    assert ari(truth, labels) == pytest.approx(oracle.adjusted_rand_score(truth.ravel(), labels.ravel()), abs=1e-12)
    assert ari_all(truth, labels) == ari(truth, labels)


@given(maps)
@settings(max_examples=300, deadline=None)
def test_foreground_ari_is_scikit_learns_over_the_objects(both: np.ndarray) -> None:
    truth, labels = both
    inside = truth > 0
    objects = len(np.unique(truth[inside]))
    found = foreground_ari(truth, labels)
    if objects == 0:
        assert found is None
    elif objects == 1:
        assert found == 1.0
    else:
        assert found == pytest.approx(oracle.adjusted_rand_score(truth[inside], labels[inside]), abs=1e-12)


@given(maps)
@settings(deadline=None)
def test_names_of_labels_do_not_matter(both: np.ndarray) -> None:
    truth, labels = both
    assert ari(truth, labels) == ari(labels, truth)
    assert ari(truth, labels) == ari(truth * 7 - 100, labels * 1_000_003)
    assert ari(truth.astype(np.uint8), labels.astype(np.int16)) == ari(truth, labels)


def test_large_images_do_not_overflow() -> None:
    truth = np.zeros(3_000_000, np.int64)
    truth[1_000_000:] = 1
    assert ari(truth, 1 - truth) == 1.0
    assert -1 <= ari(truth, np.arange(3_000_000) % 2) < 0.01


def test_background_is_a_label_like_any_other() -> None:
    truth = np.array([[1, 1, 2, 2]])
    assert foreground_ari(truth, np.array([[0, 0, 5, 5]])) == 1.0
    assert foreground_ari(truth, np.array([[0, 0, 0, 0]])) == 0.0


def test_the_best_order_is_the_best_over_all_and_never_more() -> None:
    rng = np.random.default_rng(0)
    truth = rng.integers(0, 4, (12, 12))
    layers = rng.random((3, 12, 12)) < 0.5

    def labels(order: tuple[int, ...]) -> np.ndarray:
        shown = np.zeros((12, 12), int)
        for k in reversed(order):
            shown[layers[k]] = k + 1
        return shown

    every = [labels(order) for order in permutations(range(3))]
    scores = [foreground_ari(truth, m) for m in every]
    assert best_foreground_ari(truth, iter(every)) == max(s for s in scores if s is not None)
    assert best_foreground_ari(truth, every[:1]) == scores[0]
    assert best_foreground_ari(truth, []) is None
    assert best_foreground_ari(np.zeros((12, 12), int), every) is None


def test_the_best_order_comes_with_its_labels() -> None:
    truth = np.array([[1, 1, 2, 2]])
    wrong, right, other = np.array([[1, 2, 2, 2]]), np.array([[1, 1, 2, 2]]), np.array([[2, 2, 1, 1]])
    score, labels = best_order(truth, [wrong, right, other])
    assert score == 1.0 and labels is right
    score, labels = best_order(truth, [wrong, wrong.copy()])
    assert score is not None and score < 1 and labels is wrong
    assert best_order(0 * truth, iter([wrong, right])) == (None, wrong)


def test_means_leave_out_what_is_not_known() -> None:
    assert mean_known([1.0, None, 0.5]) == 0.75
    assert mean_known([None]) is None and mean_known([]) is None


def test_shapes_must_agree() -> None:
    with pytest.raises(InputError, match="must be of one image"):
        foreground_ari(np.zeros((2, 3), int), np.zeros((3, 2), int))


def test_search_failures() -> None:
    assert search_failure_rate([10.0, 10.0, 10.0, 10.0], [9.0, 10.0, 11.0, 10.0 - 1e-9]) == 0.25
    assert search_failure_rate([], []) is None
    with pytest.raises(InputError):
        search_failure_rate([1.0], [1.0, 2.0])
