"""Exhaustive search, directly and by FFT, against brute force over every kernel, shift and colour."""

from __future__ import annotations

import pytest
import torch

from pictolex.formation import paint
from pictolex.search import Hits, Query, sums
from pictolex.search.reference import Place, every_place, kernel_sheet, paste
from search_cases import DIRECT, FFT, Case, case

COSTS = {"direct": DIRECT, "fft": FFT}
CASES = {
    "odd": lambda: case(1, [(3, 3), (3, 3)], (7, 7)),
    "even": lambda: case(2, [(4, 4), (4, 2)], (8, 6)),
    "mixed sizes": lambda: case(3, [(1, 1), (3, 2), (2, 5), (12, 11)], (7, 8)),
    "larger than the image": lambda: case(4, [(7, 6)], (4, 5)),
    "one pixel": lambda: case(5, [(2, 3)], (1, 1), weighted=False),
    "turned": lambda: case(6, [(3, 4)], (6, 7), rotations=3, scales=(0.8, 1.3), mirror=True),
    "colour": lambda: case(7, [(3, 3), (2, 4)], (6, 5), channels=3),
    "colour shapes": lambda: case(8, [(3, 3)], (6, 6), channels=3, shape_channels=3),
    "additive": lambda: case(9, [(3, 4), (4, 3)], (7, 6), formation="additive"),
    "additive colour": lambda: case(10, [(3, 2)], (5, 6), channels=3, formation="additive"),
    "empty": lambda: case(11, [(3, 3)], (6, 6), elements=0),
}


def score_at(places: list[Place], hits: Hits, index: int) -> Place:
    """What brute force says of a place that was found."""
    at = (int(hits.kernel[0, index]), int(hits.top[0, index]), int(hits.left[0, index]), int(hits.choice[0, index]))
    return next(p for p in places if (p.kernel, p.top, p.left, p.choice) == at)


@pytest.mark.parametrize("method", COSTS)
@pytest.mark.parametrize("objective", ["squared", "ncc"])
@pytest.mark.parametrize("colour", ["fixed", "hues"])
@pytest.mark.parametrize("name", CASES)
def test_the_best_place_is_the_best_of_all_places(name: str, colour: str, objective: str, method: str) -> None:
    small = CASES[name]()
    searcher = small.searcher(small.colour(colour), objective, cost=COSTS[method])
    places = every_place(searcher, small.query, small.palette(colour))
    best = max(places, key=lambda p: p.score)
    hits = searcher.best(small.query)
    assert float(hits.score[0, 0]) == pytest.approx(best.score, rel=1e-4, abs=1e-4)
    there = score_at(places, hits, 0)
    assert there.score == pytest.approx(best.score, rel=1e-4, abs=1e-4)
    assert float(hits.gain[0, 0]) == pytest.approx(there.gain, rel=1e-4, abs=1e-4)
    torch.testing.assert_close(hits.colour[0, 0], small.palette(colour)[there.choice])


@pytest.mark.parametrize("objective", ["squared", "ncc"])
@pytest.mark.parametrize("name", ["mixed sizes", "turned", "colour"])
def test_every_hit_scores_what_brute_force_says_and_groups_get_their_best(name: str, objective: str) -> None:
    small = CASES[name]()
    searcher = small.searcher(small.colour("hues"), objective)
    places = every_place(searcher, small.query, small.palette("hues"))
    hits = searcher.diverse(small.query, 4)
    group = small.bank.group[hits.kernel[0]].tolist()
    for i in range(hits.kernel.shape[1]):
        if hits.score[0, i] > -torch.inf:
            assert float(hits.score[0, i]) == pytest.approx(score_at(places, hits, i).score, rel=1e-4, abs=1e-4)
    for g in range(small.bank.groups):
        best = max(p.score for p in places if int(small.bank.group[p.kernel]) == g)
        found = max(float(hits.score[0, i]) for i in range(len(group)) if group[i] == g)
        assert found == pytest.approx(best, rel=1e-4, abs=1e-4)


def test_hits_are_sorted_and_differ() -> None:
    small = CASES["turned"]()
    hits = small.searcher(small.colour("hues")).best(small.query, 6)
    assert hits.score.shape == (1, 6)
    assert bool((hits.score[0, :-1] >= hits.score[0, 1:]).all())
    assert len(set(zip(hits.kernel[0].tolist(), hits.top[0].tolist(), hits.left[0].tolist(), strict=True))) == 6


def rendered(small: Case, query: Query, hits: Hits, colours: torch.Tensor) -> list[tuple[float, float]]:
    """Gain and normalised cross-correlation of the first hit in other colours."""
    image, weight = query.image[0].double(), query.weight[0].double()
    context = type(query.context)(*(t[0].double() for t in (query.context.rebuilt, query.context.light, query.context.behind)))
    sheet = kernel_sheet(small.bank, int(hits.kernel[0, 0])).double()
    placed = paste(sheet, int(hits.top[0, 0]), int(hits.left[0, 0]), *image.shape[-2:])
    results = []
    for colour in colours.double():
        rebuilt = context.rebuilt + small.formation.effect(context, paint(placed, colour))
        gain = float((weight * ((image - context.rebuilt) ** 2 - (image - rebuilt) ** 2)).sum())
        power = (weight * image**2).sum() * (weight * rebuilt**2).sum()
        results.append((gain, float((weight * image * rebuilt).sum() / power.sqrt())))
    return results


@pytest.mark.parametrize("method", COSTS)
@pytest.mark.parametrize("name", CASES)
def test_free_colours_are_better_than_any_on_a_grid(name: str, method: str) -> None:
    small = CASES[name]()
    searcher = small.searcher(small.colour("free"), cost=COSTS[method])
    hits = searcher.best(small.query)
    gain = float(hits.gain[0, 0])
    coarse = torch.cartesian_prod(*[torch.linspace(0, 1, 5 if small.channels == 1 else 3)] * small.channels).view(-1, small.channels)
    assert gain >= max(p.gain for p in every_place(searcher, small.query, coarse)) - 1e-4
    fine = torch.cartesian_prod(*[torch.linspace(0, 1, 401 if small.channels == 1 else 11)] * small.channels).view(-1, small.channels)
    best = max(value for value, _ in rendered(small, small.query, hits, fine))
    assert best - 1e-4 <= gain
    if small.channels == 1:
        assert gain <= best + 1e-3
    assert rendered(small, small.query, hits, hits.colour[0, :1])[0][0] == pytest.approx(gain, rel=1e-4, abs=1e-4)
    assert bool(((hits.colour >= 0) & (hits.colour <= 1)).all())
    assert int(hits.choice[0, 0]) == 0


@pytest.mark.parametrize("name", ["odd", "colour", "additive colour"])
def test_free_colours_under_cross_correlation_score_as_rendered(name: str) -> None:
    small = CASES[name]()
    hits = small.searcher(small.colour("free"), "ncc").best(small.query)
    gain, correlation = rendered(small, small.query, hits, hits.colour[0, :1])[0]
    assert float(hits.score[0, 0]) == pytest.approx(correlation, abs=1e-4)
    assert float(hits.gain[0, 0]) == pytest.approx(gain, rel=1e-4, abs=1e-4)


@pytest.mark.parametrize("corner", [(-1, -2), (5, 4), (-2, 5)])
def test_places_partly_outside_are_found(corner: tuple[int, int]) -> None:
    """The image is a concept that sticks out of it."""
    small = case(20, [(4, 4)], (8, 8), elements=0, weighted=False)
    left, top = corner
    blank = torch.zeros(1, 1, 8, 8)
    context = small.formation.empty(blank)
    layer = paste(kernel_sheet(small.bank, 0), top, left, 8, 8)
    query = Query(small.formation.render(layer[None, None], blank), torch.ones(1, 1, 8, 8), context)
    for method in ("exhaustive", "coarse"):
        hits = small.searcher(small.colour("fixed"), method=method).best(query)
        assert (int(hits.left[0, 0]), int(hits.top[0, 0])) == corner
        x, y = small.bank.pose(hits.kernel, hits.left.float(), hits.top.float())[0, 0, :2].tolist()
        assert (x, y) == (left + 2, top + 2)


@pytest.mark.parametrize("colour", ["fixed", "hues", "free"])
def test_a_black_image_has_no_correlation_and_no_nan(colour: str) -> None:
    small = case(21, [(3, 3), (4, 4)], (6, 7), channels=3, elements=0, weighted=False)
    black = torch.zeros(1, 3, 6, 7)
    query = Query(black, torch.ones(1, 1, 6, 7), small.formation.empty(black))
    for method in ("exhaustive", "coarse"):
        hits = small.searcher(small.colour(colour), "ncc", method).best(query, 3)
        assert hits.score.tolist() == [[0.0, 0.0, 0.0]]
        assert bool(torch.isfinite(hits.gain).all())
        assert bool((hits.gain <= 1e-5).all())


def test_nothing_rebuilt_scores_zero_and_the_image_itself_one() -> None:
    small = case(22, [(3, 3)], (6, 6), elements=0, weighted=False)
    blank = torch.zeros(1, 1, 6, 6)
    image = small.formation.render(paste(kernel_sheet(small.bank, 0), 1, 2, 6, 6)[None, None], blank)
    searcher = small.searcher(small.colour("fixed"), "ncc")
    assert float(searcher.objective.start(sums(image, torch.ones_like(image), blank))) == 0.0
    assert float(searcher.objective.start(sums(image, torch.ones_like(image), image))) == pytest.approx(1)
    assert float(searcher.best(Query(image, torch.ones_like(image), small.formation.empty(blank))).score) == pytest.approx(1, abs=1e-5)


def test_pixels_without_weight_do_not_count() -> None:
    small = case(23, [(3, 3)], (7, 7), weighted=True)
    changed = torch.where(small.query.weight > 0, small.query.image, 1 - small.query.image)
    searcher = small.searcher(small.colour("hues"))
    a, b = searcher.best(small.query, 3), searcher.best(Query(changed, small.query.weight, small.query.context), 3)
    torch.testing.assert_close(a.gain, b.gain)
    assert a.kernel.tolist() == b.kernel.tolist()
