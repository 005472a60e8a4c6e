"""Large images in tiles: nothing lost, nothing twice, no seams."""

from __future__ import annotations

import math

import numpy as np
import pytest

from drawn import Placed, dictionary, scene
from pictolex.decompose import Engine, Renderer
from pictolex.settings import HueColour
from scenes import HUES, KINDS, Arrays, apart, match, settings, turn_between

BOTH = ["rounds", "propose"]
TILE = 64


@pytest.mark.parametrize("strategy", BOTH)
def test_a_scene_in_tiles_is_the_truth(strategy: str) -> None:
    """Many elements, with some of them on the seams, in an image that is no multiple of the tile."""
    rng = np.random.default_rng(40)
    high, wide = 100, 105
    shapes: list[Placed] = []
    for row in range(4):
        for column in range(4):
            x, y = 13.5 + column * 26 + rng.integers(-2, 3), 12.5 + row * 25 + rng.integers(-2, 3)
            shapes.append(Placed(str(rng.choice(KINDS)), float(x), float(y), float(rng.integers(8)) * math.pi / 4))
    image = scene(shapes, high, wide)
    concepts = dictionary(*KINDS)
    setting = settings(strategy, 8, tile=TILE, layers=9)
    (found,) = Engine(concepts, setting).run(Arrays([image]))
    assert len(found) == len(shapes)
    for placed in shapes:
        element = match(placed, found, concepts, 1.0)
        assert element is not None, placed
        assert max(abs(element.x - placed.x), abs(element.y - placed.y)) < 0.5
        assert turn_between(element.rotation, placed.rotation, placed.kind) < 0.1
        assert element.gain > 0.8 * float(scene([placed], high, wide).sum())
        assert element.visible == pytest.approx(float(scene([placed], high, wide).sum()), rel=0.1)
        assert element.confidence > 0.9
    rebuilt = Renderer(concepts, setting).render(found).image
    assert float(((rebuilt - image) ** 2).sum()) == pytest.approx(found.error, rel=1e-3)
    assert found.error < 0.05 * float((image**2).sum())


@pytest.mark.parametrize("strategy", BOTH)
def test_tiles_find_what_the_whole_image_gives(strategy: str) -> None:
    """Shapes anywhere, touching each other: the same elements, whatever the size of the tiles."""
    rng = np.random.default_rng(41)
    shapes = apart(rng, 5, 84, distance=18, hues=HUES, rotations=4, jitter=0.2)
    image = scene(shapes, 84, 84, (0.0,) * 3)
    concepts = dictionary(*KINDS, hues=HUES)
    answers = []
    for tile in (TILE, 192):
        setting = settings(strategy, 4, tile=tile, layers=6, colour=HueColour(count=3))
        (found,) = Engine(concepts, setting).run(Arrays([image]))
        answers.append(found)
        for one in found:
            close = [e for e in found if e.concept == one.concept and math.hypot(e.x - one.x, e.y - one.y) < 4]
            assert len(close) == 1, "twice at a seam"
    for found in answers:
        matches = [match(p, found, concepts) for p in shapes]
        assert sum(m is not None for m in matches) >= len(shapes) - 1
        assert len(found) <= len(shapes) + 1
    for placed in shapes:
        each = [match(placed, found, concepts) for found in answers]
        there = [e for e in each if e is not None]
        assert all(abs(e.x - there[0].x) < 1 and abs(e.y - there[0].y) < 1 and e.hue == there[0].hue for e in there)


def test_one_shape_on_every_side_of_a_seam_is_found_once() -> None:
    concepts = dictionary("ell")
    setting = settings("rounds", 1, tile=TILE)
    images, places = [], []
    for offset in range(-6, 7, 2):
        x, y = 32.5 + offset, 64.5 - offset
        places.append((x, y))
        images.append(scene([Placed("ell", x, y)], 100, 96))
    for (x, y), found in zip(places, Engine(concepts, setting).run(Arrays(images)), strict=True):
        assert [(e.x, e.y) for e in found] == [(x, y)]
        assert found.error < 0.5


@pytest.mark.parametrize("strategy", BOTH)
def test_a_large_black_image_is_empty(strategy: str) -> None:
    (found,) = Engine(dictionary(*KINDS), settings(strategy, 4, tile=TILE)).run(Arrays([np.zeros((90, 100, 1), np.float32)]))
    assert (len(found), found.error) == (0, 0)


def test_a_long_thin_image() -> None:
    shapes = [Placed("ell", 12.5 + 40 * i, 5.5) for i in range(20)]
    image = scene(shapes, 10, 800)
    (found,) = Engine(dictionary("ell"), settings("rounds", 1, tile=TILE)).run(Arrays([image]))
    assert sorted(e.x for e in found) == [p.x for p in shapes]
