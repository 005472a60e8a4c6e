"""Accuracy, purity and mutual information against SciPy and scikit-learn."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from pictolex.errors import InputError
from pictolex.metrics import accuracy, adjusted_mutual_information, normalised_mutual_information, purity
from pictolex.metrics.clustering import best_pairs

oracle = pytest.importorskip("sklearn.metrics")
optimize = pytest.importorskip("scipy.optimize")

tables = arrays.arrays(np.int64, st.tuples(st.integers(1, 8), st.integers(1, 8)), elements=st.integers(-20, 50))
labellings = arrays.arrays(np.int64, st.tuples(st.just(2), st.integers(1, 60)), elements=st.integers(0, 6))


@given(tables)
@settings(max_examples=300, deadline=None)
def test_assignment_is_scipys(gains: np.ndarray) -> None:
    rows, columns = best_pairs(gains)
    expected = gains[optimize.linear_sum_assignment(gains, maximize=True)].sum()
    assert len(set(rows.tolist())) == len(set(columns.tolist())) == min(gains.shape)
    assert gains[rows, columns].sum() == expected


@given(labellings)
@settings(max_examples=300, deadline=None)
def test_mutual_information_is_scikit_learns(both: np.ndarray) -> None:
    truth, clusters = both
    assert normalised_mutual_information(truth, clusters) == pytest.approx(oracle.normalized_mutual_info_score(truth, clusters), abs=1e-9)
    assert adjusted_mutual_information(truth, clusters) == pytest.approx(oracle.adjusted_mutual_info_score(truth, clusters), abs=1e-7)


@given(labellings)
@settings(deadline=None)
def test_accuracy_between_chance_and_purity(both: np.ndarray) -> None:
    truth, clusters = both
    one_to_one, many_to_one = accuracy(truth, clusters), purity(truth, clusters)
    assert one_to_one is not None and many_to_one is not None
    assert 0 < one_to_one <= many_to_one <= 1
    assert accuracy(truth, truth) == purity(truth, truth) == 1


def test_clusters_too_many_count_as_wrong() -> None:
    truth = np.array([0, 0, 0, 1, 1, 1])
    split = np.array([0, 0, 2, 1, 1, 1])
    assert accuracy(truth, split) == pytest.approx(5 / 6)
    assert purity(truth, split) == 1.0


def test_nothing_is_none_and_lengths_must_agree() -> None:
    empty = np.zeros(0, int)
    assert accuracy(empty, empty) is purity(empty, empty) is normalised_mutual_information(empty, empty) is None
    assert adjusted_mutual_information(empty, empty) is None
    with pytest.raises(InputError, match="must belong to the same"):
        accuracy(np.zeros(3, int), np.zeros(2, int))
