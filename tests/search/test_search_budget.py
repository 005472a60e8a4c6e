"""Memory budgets change the time that a search takes, never what it finds."""

from __future__ import annotations

import pytest
import torch

from pictolex.search import Hits
from search_cases import DIRECT, case


def same(a: Hits, b: Hits) -> None:
    assert a.kernel.tolist() == b.kernel.tolist()
    assert a.top.tolist() == b.top.tolist()
    assert a.left.tolist() == b.left.tolist()
    assert a.choice.tolist() == b.choice.tolist()
    torch.testing.assert_close(a.score, b.score, atol=1e-4, rtol=1e-4)
    torch.testing.assert_close(a.colour, b.colour, atol=1e-3, rtol=1e-3)


@pytest.mark.parametrize("memory", [1, 2**14, 2**17])
@pytest.mark.parametrize("method", ["exhaustive", "coarse"])
@pytest.mark.parametrize("colour", ["hues", "free"])
def test_a_tiny_budget_finds_the_same(colour: str, method: str, memory: int) -> None:
    small = case(30, [(4, 4), (9, 7), (16, 15)], (18, 17), channels=3, rotations=5, batch=3)
    plenty = small.searcher(small.colour(colour), method=method, cost=DIRECT)
    little = small.searcher(small.colour(colour), method=method, cost=DIRECT, memory=memory)
    same(plenty.best(small.query), little.best(small.query))
    groups, few = plenty.diverse(small.query, 2), little.diverse(small.query, 2)
    order, other = groups.score.argsort(1, descending=True), few.score.argsort(1, descending=True)
    same(groups.pick(order), few.pick(other))


@pytest.mark.parametrize("method", ["exhaustive", "coarse"])
def test_many_hits_do_not_depend_on_the_budget(method: str) -> None:
    small = case(31, [(5, 4), (15, 16)], (16, 18), rotations=8, batch=2)
    plenty = small.searcher(small.colour("fixed"), method=method, cost=DIRECT)
    little = small.searcher(small.colour("fixed"), method=method, cost=DIRECT, memory=2**13)
    same(plenty.best(small.query, 6), little.best(small.query, 6))


@pytest.mark.parametrize("method", ["exhaustive", "coarse"])
def test_items_of_a_batch_do_not_see_each_other(method: str) -> None:
    small = case(32, [(5, 4), (8, 7)], (12, 11), rotations=4, batch=4)
    searcher = small.searcher(small.colour("fixed"), method=method, cost=DIRECT)
    together = searcher.best(small.query, 2)
    for item in range(4):
        alone = searcher.best(small.query.take(slice(item, item + 1)), 2)
        names = ("kernel", "left", "top", "score", "choice", "colour", "gain")
        same(Hits(**{n: getattr(together, n)[item : item + 1] for n in names}), alone)


def test_a_full_gpu_means_smaller_batches_said_once(monkeypatch: pytest.MonkeyPatch) -> None:
    small = case(33, [(4, 4)], (9, 9), batch=5)
    searcher = small.searcher(small.colour("fixed"), cost=DIRECT)
    expected = searcher.best(small.query)
    tried: list[int] = []
    search = searcher._search

    def crowded(query, *rest):  # type: ignore[no-untyped-def]
        tried.append(len(query.image))
        if len(query.image) > 2:
            raise torch.cuda.OutOfMemoryError("full")
        return search(query, *rest)

    monkeypatch.setattr(searcher, "_search", crowded)
    with pytest.warns(UserWarning, match="out of memory") as told:
        same(searcher.best(small.query), expected)
    assert tried == [5, 2, 2, 1]
    assert len(told) == 1
