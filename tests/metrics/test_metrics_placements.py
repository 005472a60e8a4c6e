"""Exact placements against brute force over matchings and offsets, and in cases worked out by hand."""

from __future__ import annotations

from itertools import permutations, product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pictolex.metrics import Places, placements_exact
from pictolex.metrics import placements as module

REACH = 2
place = st.integers(0, 3)
truths = st.lists(st.tuples(st.integers(0, 1), place, place, st.integers(0, 2)), max_size=5)
halves = st.integers(0, 12).map(lambda n: n / 4)
elements = st.lists(st.tuples(st.sampled_from([3, 5, 8]), halves, halves), max_size=5)


def by_hand(images: list[tuple[list, list]]) -> tuple[int, int]:
    """The most placements found, then elements right, over all matchings of 2 motifs with 3 concepts and all offsets."""
    best = (0, 0)
    offsets = list(product(range(-REACH, REACH + 1), repeat=2))
    for concepts in permutations((3, 5, 8), 2):
        total = np.zeros(2, int)
        for motif, concept in enumerate(concepts):
            scores = [(0, 0)]
            for dy, dx in offsets:
                hits = right = 0
                for truth, found in images:
                    at = [(e, t) for e in range(len(found)) for t in range(len(truth)) if _same(truth[t], found[e], motif, concept, dy, dx)]
                    hits += len({t for _, t in at if truth[t][3] > 0})
                    right += len({e for e, _ in at})
                scores.append((hits, right))
            total += max(scores)
        best = max(best, (int(total[0]), int(total[1])))
    return best


def _same(truth: tuple, found: tuple, motif: int, concept: int, dy: int, dx: int) -> bool:
    if truth[0] != motif or found[0] != concept:
        return False
    return bool(np.rint(found[1] - truth[1]) == dy and np.rint(found[2] - truth[2]) == dx)


@given(st.lists(st.tuples(truths, elements), min_size=1, max_size=3))
@settings(max_examples=200, deadline=None)
def test_the_best_matching_and_offsets_are_those_of_brute_force(images: list[tuple[list, list]]) -> None:
    places = placements_exact([t for t, _ in images], [f for _, f in images], REACH)
    asked, found = sum(row[3] > 0 for t, _ in images for row in t), sum(len(f) for _, f in images)
    if asked == 0:
        assert places is None
        return
    exact, right = by_hand(images)
    assert places == Places(exact / asked, right / found if found else None)


def scene(rng: np.random.Generator, count: int = 30) -> tuple[np.ndarray, np.ndarray]:
    """Random placements of 2 motifs, and elements of concepts 7 and 4 at each, 3 and 1 pixels off."""
    motif, corner = rng.integers(0, 2, count), rng.integers(-8, 80, (count, 2))
    truth = np.column_stack([motif, corner, np.ones(count, int)])
    concept, offset = np.array([7, 4])[motif], np.array([[-3, 2], [1, -1]])[motif]
    return truth, np.column_stack([concept, corner + offset + rng.uniform(-0.4, 0.4, (count, 2))])


def test_each_concept_may_be_off_by_its_own_constant() -> None:
    truth, found = scene(np.random.default_rng(0))
    assert placements_exact([truth], [found], 17) == Places(1.0, 1.0)


def test_what_is_a_pixel_off_or_of_the_wrong_motif_is_not_found() -> None:
    truth, found = scene(np.random.default_rng(1))
    found[0, 1] += 1
    found[1, 0] = 11 - found[1, 0]
    places = placements_exact([truth], [found], 17)
    assert places is not None and places.exact == places.precision == pytest.approx(28 / 30)


def test_extra_elements_cost_precision_only() -> None:
    truth, found = scene(np.random.default_rng(2))
    extra = np.concatenate([found, [[9, 40.0, 40.0]] * 10])
    assert placements_exact([truth], [extra], 17) == Places(1.0, 0.75)


def test_two_motifs_in_one_concept_count_for_one_of_them() -> None:
    truth, found = scene(np.random.default_rng(3))
    found[:, 0] = 7
    places = placements_exact([truth], [found], 17)
    assert places is not None and places.exact == np.bincount(truth[:, 0].astype(int)).max() / 30


def test_hidden_placements_are_not_asked_for_but_may_be_found() -> None:
    truth, found = scene(np.random.default_rng(4))
    truth[:10, 3] = 0
    assert placements_exact([truth], [found], 17) == Places(1.0, 1.0)
    assert placements_exact([truth], [found[10:]], 17) == Places(1.0, 1.0)
    assert placements_exact([truth[:10]], [found], 17) is None


def test_offsets_end_at_the_reach_and_no_elements_have_no_precision() -> None:
    truth = np.array([[0, 10, 10, 5]])
    assert placements_exact([truth], [[(0, 13.0, 10.0)]], 3) == Places(1.0, 1.0)
    assert placements_exact([truth], [[(0, 14.0, 10.0)]], 3) == Places(0.0, 0.0)
    assert placements_exact([truth], [[]], 3) == Places(0.0, None)


def test_blocks_do_not_change_the_figures(monkeypatch: pytest.MonkeyPatch) -> None:
    truth, found = scene(np.random.default_rng(5))
    found[:7, 2] -= 1
    whole = placements_exact([truth], [found], 17)
    monkeypatch.setattr(module, "_BLOCK", 4)
    assert placements_exact([truth], [found], 17) == whole
