"""Likeness up to rotation and scale, on shapes that Pillow turned and scaled."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import pytest
import torch
from PIL import Image, ImageDraw
from torch import Tensor

from drawn import OUTLINES, Outline
from pictolex.learn.likeness import Likeness, centre_and_radius, needed, recurring, turnable, upright, upright_angle

FINE = 8
HEART: Outline = [
    (8 * math.sin(t) ** 3, -0.5 * (13 * math.cos(t) - 5 * math.cos(2 * t) - 2 * math.cos(3 * t) - math.cos(4 * t)))
    for t in np.linspace(0, 2 * math.pi, 80, endpoint=False).tolist()
]
HOOK: Outline = [(-6, -9), (-2, -9), (-2, 5), (6, 5), (6, 9), (-6, 9)]
STEP: Outline = [(-9, -6), (0, -6), (0, 0), (9, 0), (9, 6), (-9, 6)]
GEE: Outline = [(-7, -7), (7, -7), (7, 0), (0, 0), (0, 4), (7, 4), (7, 9), (-7, 9)]
SHAPES: dict[str, Outline] = {**OUTLINES, "heart": HEART, "hook": HOOK, "step": STEP, "gee": GEE}
TURN = 2 * math.pi


def drawn(kind: str, turn: float = 0.0, scale: float = 1.0, side: int = 37, away: tuple[float, float] = (0, 0)) -> Tensor:
    """A white shape (premultiplied shape, alpha) turned counter-clockwise as seen."""
    cos, sin = math.cos(turn) * scale, math.sin(turn) * scale
    x, y = side / 2 + away[0], side / 2 + away[1]
    corners = [((x + cos * u + sin * v) * FINE - 0.5, (y - sin * u + cos * v) * FINE - 0.5) for u, v in SHAPES[kind]]
    canvas = Image.new("L", (side * FINE, side * FINE))
    ImageDraw.Draw(canvas).polygon(corners, fill=255)
    covered = torch.from_numpy(np.asarray(canvas, np.float32).reshape(side, FINE, side, FINE).mean((1, 3)) / 255)
    return torch.stack([covered, covered])


def between(a: float, b: float, period: float = TURN) -> float:
    """The smallest angle between two, in degrees."""
    return abs(math.degrees((a - b + period / 2) % period - period / 2))


def many(kinds: Sequence[str], each: int, seed: int = 0, scales: tuple[float, float] = (0.65, 1.3)) -> list[tuple[str, float, float]]:
    rng = np.random.default_rng(seed)
    return [(kind, float(rng.uniform(0, TURN)), float(rng.uniform(*scales))) for kind in kinds for _ in range(each)]


def compared(items: Sequence[tuple[str, float, float]], seed: int = 1) -> Likeness:
    rng = np.random.default_rng(seed)
    return turnable([drawn(kind, turn, scale, away=tuple(rng.uniform(-0.5, 0.5, 2))) for kind, turn, scale in items])


def test_centre_and_radius_are_those_of_a_drawn_disc() -> None:
    y, x = (np.mgrid[0:400, 0:480] + 0.5) / 10
    disc = (np.hypot(x - 20.3, y - 17.8) < 9.4).reshape(40, 10, 48, 10).mean((1, 3))
    assert centre_and_radius(torch.from_numpy(disc)) == pytest.approx((20.3, 17.8, 9.4), abs=0.02)


def test_shapes_are_known_whatever_their_rotation_and_size_and_others_are_told_apart() -> None:
    items = many(("ell", "wedge", "ellipse", "bar", "square", "heart"), 7)
    distance = compared(items).distance.numpy()
    names = np.array([name for name, _, _ in items])
    same = names[:, None] == names[None]
    for name in set(names):
        within = distance[np.ix_(names == name, names == name)].max()
        outside = distance[np.ix_(names == name, names != name)].min()
        assert within < 0.03 < 0.06 < outside, name
    np.testing.assert_allclose(distance, distance.T, atol=1e-5)
    assert distance[same].max() * 3 < distance[~same].min()


def test_angles_are_counter_clockwise_from_the_first_to_the_second() -> None:
    items = many(("ell", "wedge", "heart", "hook"), 6)
    angle = compared(items).angle
    for i, (kind, turn, _) in enumerate(items):
        for j, (other, further, _) in enumerate(items):
            if kind == other:
                assert between(float(angle[i, j]), further - turn) < 4.5
    # The other sign would be seen.
    assert between(float(turnable([drawn("ell"), drawn("ell", 0.8)]).angle[0, 1]), 0.8) < 4.5


def test_without_turning_and_with_quarter_turns_only_what_is_so_turned_is_alike() -> None:
    found = turnable([drawn("ell", turn) for turn in (0.0, math.pi / 2, math.pi, 0.6)])
    assert float(found.upright[0, 0]) < 1e-4
    assert float(found.upright[0, 1:].min()) > 0.1
    assert float(found.quarter[0, :3].max()) < 1e-3 and float(found.quarter[0, 3]) > 0.05
    assert float(found.distance[0].max()) < 0.03


def test_luminance_tells_shapes_of_one_outline_apart() -> None:
    plain = drawn("square")
    shaded = torch.stack([plain[0] * torch.linspace(0.1, 1, 37), plain[1]])
    found = turnable([plain, shaded, shaded.rot90(1, (1, 2))])
    assert float(found.distance[0, 1]) > 0.05
    assert float(found.distance[1, 2]) < 1e-3 and between(float(found.angle[1, 2]), math.pi / 2) < 1


@pytest.mark.parametrize("corners", [False, True])
def test_pixel_by_pixel_only_the_same_picture_is_alike(corners: bool) -> None:
    """Middles of boxes together: the same picture in a larger box is the same; one that is turned is not."""
    ell = drawn("ell", side=21)
    grown = torch.nn.functional.pad(ell, (2, 2, 3, 3) if corners else (2, 2, 0, 0))
    found = upright([ell, grown, ell.flip(2)])
    assert float(found.distance[0, 1]) < 1e-6 < 0.1 < float(found.distance[0, 2])
    assert float(found.angle.abs().max()) == 0
    assert torch.equal(found.distance, found.upright) and torch.equal(found.distance, found.quarter)


def test_squared_difference_is_a_share_of_the_power_of_both() -> None:
    rng = np.random.default_rng(3)
    one, other = (torch.from_numpy(rng.random((2, 9, 9)).astype(np.float32)) for _ in range(2))
    expected = float((one - other).square().sum() / (one.square().sum() + other.square().sum()))
    assert float(upright([one, other]).distance[0, 1]) == pytest.approx(expected, rel=1e-4)


@pytest.mark.parametrize("kind,period", [("square", 90), ("ellipse", 90), ("bar", 90), ("heart", 180), ("wedge", 90)])
def test_a_mirror_image_of_itself_stands_with_its_axis_upright_or_level(kind: str, period: int) -> None:
    for degrees in np.arange(-86, 94, 8.7).tolist():
        found = upright_angle(drawn(kind, math.radians(degrees)))
        assert between(found, math.radians(degrees), math.radians(period)) < 1.2, degrees


LEANS = pytest.mark.xfail(
    reason="a box along the slanted side of an L is hardly larger, and pixels decide: up to 30 degrees off", strict=True
)


@pytest.mark.parametrize("kind", ["gee", "step", pytest.param("hook", marks=LEANS)])
def test_what_has_no_axis_stands_in_its_smallest_box(kind: str) -> None:
    for degrees in np.arange(-86, 94, 8.7).tolist():
        found = upright_angle(drawn(kind, math.radians(degrees)))
        assert between(found, math.radians(degrees), math.pi / 2) < 5, degrees


def test_what_has_almost_an_axis_stands_always_the_same_way() -> None:
    angles = np.radians(np.arange(-86, 94, 8.7)).tolist()
    rest = [upright_angle(drawn("ell", angle)) - angle for angle in angles]
    assert max(between(r, rest[10], math.pi / 2) for r in rest) < 1.5


def test_turning_back_by_its_angle_makes_a_square_fill_its_box() -> None:
    for turn in (0.2, 0.5, -0.3, 0.7):
        back = upright_angle(drawn("square", turn))
        stood = drawn("square", turn - back)[1]
        rows, columns = (stood > 0.5).nonzero().unbind(1)
        box = (rows.max() - rows.min() + 1) * (columns.max() - columns.min() + 1)
        assert float(stood.sum()) > 0.9 * float(box)


def test_the_kinds_that_recur_are_picked_the_most_frequent_first() -> None:
    items = many(("heart",), 9) + many(("ell",), 6, 1) + many(("bar",), 4, 2) + many(("wedge",), 1, 3)
    kinds = recurring(compared(items), 10, 2.5)
    names = [items[kind.exemplar][0] for kind in kinds]
    assert names == ["heart", "ell", "bar"]
    for kind, name, count in zip(kinds, names, (9, 6, 4), strict=True):
        assert {items[i][0] for i in kind.members.tolist()} == {name}
        assert len(kind.members) == count and kind.exemplar in kind.members.tolist()
        assert 0.7 * count < kind.score <= count
    assert len(recurring(compared(items), 2, 2.5)) == 2
    assert {items[kind.exemplar][0] for kind in recurring(compared(items), 10, 0.5)} == {"heart", "ell", "bar", "wedge"}


def turns_of(items: Sequence[tuple[str, float, float]]) -> object:
    found = compared(items)
    radius = torch.tensor([centre_and_radius(drawn(kind, turn, scale)[1])[2] for kind, turn, scale in items])
    return needed(found, recurring(found, 10, 2.5), radius)


def test_what_is_turned_freely_needs_rotations() -> None:
    turns = turns_of(many(("ell", "heart"), 12, scales=(1, 1)))
    assert turns.free and turns.quarter and turns.scales == (1.0, 1.0)


def test_what_is_turned_by_quarters_needs_those_alone() -> None:
    items = [(kind, k * math.pi / 2, 1.0) for kind in ("ell", "wedge", "ellipse") for k in (0, 1, 2, 3, 1, 3)]
    turns = turns_of(items)
    assert turns.quarter and not turns.free and turns.scales == (1.0, 1.0)


def test_what_stands_upright_needs_no_rotation_whatever_its_symmetry() -> None:
    turns = turns_of([(kind, 0.0, 1.0) for kind in ("ell", "square", "heart") for _ in range(6)])
    assert not turns.free and not turns.quarter and turns.scales == (1.0, 1.0)


def test_a_disc_needs_no_rotation_and_a_square_turned_by_quarters_none_either() -> None:
    turns = turns_of([("square", k * math.pi / 2, 1.0) for k in range(12)])
    assert not turns.free and not turns.quarter


@pytest.mark.parametrize("low", [0.5, 0.75])
def test_the_range_of_sizes_is_that_which_was_drawn(low: float) -> None:
    items = [(kind, 0.0, float(s)) for kind in ("ell", "heart") for s in np.linspace(1.2 * low, 1.2, 12)]
    turns = turns_of(items)
    assert turns.scales[1] == 1.0 and abs(turns.scales[0] - low) < 0.05


def outlined(draw: str, side: int = 61) -> Tensor:
    """A circle or a square, its outline one pixel wide."""
    canvas = Image.new("L", (side, side))
    getattr(ImageDraw.Draw(canvas), draw)((2, 2, side - 3, side - 3), outline=255, width=1)
    seen = torch.from_numpy(np.asarray(canvas, np.float32) / 255)
    return torch.stack([seen, seen])


def test_large_thin_outlines_of_different_shapes_are_told_apart() -> None:
    assert float(turnable([outlined("ellipse"), outlined("rectangle")]).distance[0, 1]) > 0.1
