"""What was drawn is found: scenes and dictionary both by Pillow, none by `formation/`."""

from __future__ import annotations

import numpy as np
import pytest

from drawn import Placed, coverage, dictionary, scene
from pictolex.decompose import Engine
from pictolex.model import Background, Concept, Dictionary
from pictolex.settings import (
    AdditiveFormation,
    AlphaFormation,
    Correlation,
    FreeBackground,
    FreeColour,
    HueColour,
    Placement,
    PlainBackground,
    Rounds,
)
from scenes import HUES, KINDS, Arrays, apart, match, recovery, settings

BOTH = ["rounds", "propose"]


@pytest.mark.parametrize("strategy", BOTH)
def test_shapes_side_by_side(strategy: str) -> None:
    rng = np.random.default_rng(1)
    # On the grid, a shape near the middle between two pixels may well be better off at the farther one.
    scenes = [apart(rng, 3, 56, jitter=0.5 if strategy == "propose" else 0.3) for _ in range(16)]
    concepts = dictionary(*KINDS)
    found = Engine(concepts, settings(strategy)).run(Arrays([scene(s, 56, 56) for s in scenes]))
    result = recovery(scenes, found, concepts)
    assert result.right == 1
    assert result.away < (0.3 if strategy == "propose" else 0.5)
    assert result.turned < 0.12
    assert result.scaled == pytest.approx(1)


def test_any_rotation_and_scale_by_polish() -> None:
    rng = np.random.default_rng(2)
    scenes = [apart(rng, 3, 64, rotations=None, scales=(0.85, 1.2), jitter=0.5, distance=15, border=9) for _ in range(20)]
    concepts = dictionary(*KINDS, side=21)
    place = Placement(rotations=16, scales=(0.85, 1.0, 1.18), continuous=True)
    found = Engine(concepts, settings(placement=place)).run(Arrays([scene(s, 64, 64) for s in scenes]))
    result = recovery(scenes, found, concepts)
    assert result.right >= 0.9
    assert result.away < 0.35
    assert result.turned < 0.08
    assert result.scaled < 1.06


@pytest.mark.parametrize("strategy", BOTH)
def test_scales_and_mirrors_of_the_grid(strategy: str) -> None:
    rng = np.random.default_rng(3)
    scenes = []
    for _ in range(8):
        shapes = apart(rng, 2, 56, rotations=4, distance=24, border=12, jitter=0.3)
        scenes.append(
            [Placed("ell", p.x, p.y, p.rotation, float(rng.choice([0.8, 1.25])), mirror=bool(rng.random() < 0.5)) for p in shapes]
        )
    concepts = dictionary("ell", "ellipse")
    place = Placement(rotations=4, scales=(0.8, 1.25), mirror=True, continuous=strategy == "propose")
    found = Engine(concepts, settings(strategy, placement=place)).run(Arrays([scene(s, 56, 56) for s in scenes]))
    result = recovery(scenes, found, concepts)
    assert result.right == 1
    assert result.away < 0.5
    assert result.turned < 0.1
    assert result.scaled < 1.05
    for shapes, decomposition in zip(scenes, found, strict=True):
        for placed in shapes:
            element = match(placed, decomposition, concepts)
            assert element is not None
            assert element.mirror == placed.mirror


@pytest.mark.parametrize("strategy", BOTH)
def test_hues_and_depth_of_shapes_that_overlap(strategy: str) -> None:
    rng = np.random.default_rng(4)
    scenes = [apart(rng, 3, 48, distance=8, hues=HUES, jitter=0.25) for _ in range(16)]
    concepts = dictionary(*KINDS, hues=HUES)
    engine = Engine(concepts, settings(strategy, colour=HueColour(count=3)))
    found = engine.run(Arrays([scene(s, 48, 48, (0.0, 0.0, 0.0)) for s in scenes]))
    result = recovery(scenes, found, concepts)
    assert result.right >= (0.85 if strategy == "propose" else 0.6)
    # Greedy rounds place what is behind before they know what is in front, and shuffling does not search it again.
    assert result.away < (0.5 if strategy == "propose" else 1.5)
    for shapes, decomposition in zip(scenes, found, strict=True):
        for front, placed in enumerate(shapes):
            element = match(placed, decomposition, concepts)
            if element is not None and len(decomposition) == 3:
                assert element.colour == pytest.approx(placed.colour)
                assert HUES[element.hue].tolist() == pytest.approx(list(placed.colour))
                for behind in shapes[front + 1 :]:
                    other = match(behind, decomposition, concepts)
                    # Where different colours overlap the order is seen.
                    if other is not None and other.hue != element.hue and abs(other.x - element.x) + abs(other.y - element.y) < 9:
                        assert element.depth < other.depth


@pytest.mark.parametrize("strategy", BOTH)
def test_free_colours_on_a_free_background(strategy: str) -> None:
    rng = np.random.default_rng(5)
    scenes, images, grounds = [], [], []
    for _ in range(10):
        ground = tuple((rng.random(3) * 0.4).tolist())
        shapes = apart(rng, 3, 56, hues=(rng.random((1, 3)) * 0.3 + 0.7).astype(np.float32))
        scenes.append(shapes)
        grounds.append(ground)
        images.append(scene(shapes, 56, 56, ground))
    concepts = dictionary(*KINDS)
    found = Engine(concepts, settings(strategy, colour=FreeColour(), background=FreeBackground(), price=3.0)).run(Arrays(images))
    result = recovery(scenes, found, concepts)
    assert result.right >= 0.9
    for shapes, ground, decomposition in zip(scenes, grounds, found, strict=True):
        assert decomposition.background == pytest.approx(ground, abs=0.02)
        for placed in shapes:
            element = match(placed, decomposition, concepts)
            if element is not None:
                assert element.colour == pytest.approx(placed.colour, abs=0.08)
                assert element.hue == -1


@pytest.mark.parametrize("strategy", BOTH)
def test_dark_shapes_on_a_learned_plain_background(strategy: str) -> None:
    rng = np.random.default_rng(6)
    scenes = [[Placed(p.kind, p.x, p.y, p.rotation, colour=(0.0,)) for p in apart(rng, 3, 56)] for _ in range(6)]
    concepts = dictionary(*KINDS, background=Background("plain", np.array([0.8], np.float32)))
    black = concepts.with_concepts([type(c)(c.id, c.shape * 0, c.alpha, c.name) for c in concepts])
    found = Engine(black, settings(strategy, background=PlainBackground(), price=4.0)).run(
        Arrays([scene(s, 56, 56, (0.8,)) for s in scenes])
    )
    assert recovery(scenes, found, black).right == 1


@pytest.mark.parametrize("strategy", BOTH)
def test_light_on_light(strategy: str) -> None:
    """Additive, shapes of half light that overlap; drawn one by one and added."""
    rng = np.random.default_rng(7)
    scenes = [apart(rng, 3, 48, distance=7, rotations=8, jitter=0.25) for _ in range(16)]
    images = [sum(scene([p], 48, 48) * np.float32(0.33) for p in shapes) for shapes in scenes]
    concepts = dictionary(*KINDS)
    dim = concepts.with_concepts([type(c)(c.id, c.shape * 0.33, c.alpha, c.name) for c in concepts])
    changes = {"formation": AdditiveFormation(), "price": 0.6}
    found = Engine(dim, settings(strategy, 8, **changes)).run(Arrays(images))
    result = recovery(scenes, found, dim)
    assert result.right >= (0.8 if strategy == "propose" else 0.7)
    assert result.away < 0.5


def test_the_papers_policy() -> None:
    """No price, cross-correlation decides: as many elements as there are layers, the right ones among them."""
    rng = np.random.default_rng(8)
    scenes = [apart(rng, 3, 48, rotations=4) for _ in range(8)]
    concepts = dictionary(*KINDS)
    paper = settings("rounds", 4, strategy=Rounds(policy="paper"), objective=Correlation(), formation=AlphaFormation(), layers=3, price=1e6)
    found = Engine(concepts, paper).run(Arrays([scene(s, 48, 48) for s in scenes]))
    result = recovery(scenes, found, concepts)
    assert result.right >= 0.8
    assert result.away < 0.5


@pytest.mark.parametrize("strategy", BOTH)
def test_a_concept_partly_outside_the_canvas(strategy: str) -> None:
    scenes = [
        [Placed("ell", 2.5, 24.5), Placed("wedge", 45.5, 46.5)],
        [Placed("ellipse", 24.5, 1.5), Placed("ell", 24.5, 47.5)],
    ]
    concepts = dictionary(*KINDS)
    found = Engine(concepts, settings(strategy, 1)).run(Arrays([scene(s, 48, 48) for s in scenes]))
    result = recovery(scenes, found, concepts)
    assert result.right == 1
    assert result.away < 0.3


@pytest.mark.parametrize("strategy", BOTH)
def test_small_and_large_concepts_in_one_dictionary(strategy: str) -> None:
    outline = dictionary("ell", side=21)
    big = Placed("wedge", 24.5, 24.5, scale=2.4)
    alpha = coverage(big, 49, 49)
    concepts = Dictionary((*outline.concepts, Concept(40, np.ones((49, 49, 1), np.float32), alpha, "wedge")))
    shapes = [Placed("ell", 12.5, 12.5), Placed("ell", 60.5, 14.5, np.pi / 2), Placed("wedge", 44.5, 50.5, np.pi, 2.4)]
    image = scene(shapes, 80, 80)
    (found,) = Engine(concepts, settings(strategy, 4)).run(Arrays([image]))
    assert sorted(e.concept for e in found) == [10, 10, 40]
    for placed in shapes:
        element = match(placed, found, concepts)
        assert element is not None
        assert abs(element.x - placed.x) < 0.5
        assert abs(element.y - placed.y) < 0.5
