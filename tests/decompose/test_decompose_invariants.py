"""What holds for every decomposition: it does not get worse, does not depend on where, when or with whom it is done, and pays."""

from __future__ import annotations

import math
from itertools import pairwise

import numpy as np
import pytest
import torch

from drawn import dictionary, image_batch, scene
from pictolex.decompose import Engine, Layout, Renderer
from pictolex.model import Collection, Decomposition, Dictionary, Element
from pictolex.settings import AlphaFormation, Correlation, FreeColour, HueColour, Propose, Rounds, Settings
from scenes import HUES, KINDS, Arrays, apart, settings, turn_between

BOTH = ["rounds", "propose"]


def crowded(seed: int, count: int, size: int = 48, hues: np.ndarray | None = None) -> list[np.ndarray]:
    """Five shapes that overlap, more than there are layers, and noise: nothing that can be explained wholly."""
    rng = np.random.default_rng(seed)
    channels = 1 if hues is None else 3
    images = []
    for _ in range(count):
        shapes = apart(rng, 5, size, distance=4, rotations=None, hues=hues)
        images.append(np.clip(scene(shapes, size, size, (0.0,) * channels) + rng.normal(0, 0.08, (size, size, channels)), 0, 1))
    return [image.astype(np.float32) for image in images]


def energies(found: Collection, price: float) -> np.ndarray:
    return np.array([d.error + price * len(d) for d in found])


def same(a: Decomposition, b: Decomposition, within: float = 0.0) -> None:
    """The same elements, in whatever order."""
    first, second = (sorted(d, key=lambda e: (e.concept, round(e.x), e.y)) for d in (a, b))
    assert [e.concept for e in first] == [e.concept for e in second]
    for one, other in zip(first, second, strict=True):
        assert abs(one.x - other.x) <= within
        assert abs(one.y - other.y) <= within
        assert turn_between(one.rotation, other.rotation, "ell") <= within
        assert abs(one.scale - other.scale) <= within
        assert (one.mirror, one.hue) == (other.mirror, other.hue)
        assert one.colour == pytest.approx(other.colour, abs=1e-4)


@pytest.mark.parametrize("strategy", BOTH)
@pytest.mark.parametrize("shift", [(4, 0), (0, -6), (3, 5)])
def test_moving_the_image_moves_the_answer(strategy: str, shift: tuple[int, int]) -> None:
    # Polish stops near the best place, not on it, and an odd shift falls differently on the pooled grid.
    within = 0.25 if strategy == "propose" else 1e-5
    rng = np.random.default_rng(11)
    images = [np.pad(scene(apart(rng, 3, 40), 40, 40), ((16, 16), (16, 16), (0, 0))) for _ in range(6)]
    moved = [np.roll(image, shift, (1, 0)) for image in images]
    engine = Engine(dictionary(*KINDS), settings(strategy))
    for before, after in zip(engine.run(Arrays(images)), engine.run(Arrays(moved)), strict=True):
        assert len(before) == len(after) == 3
        for element in before:
            there = min(after, key=lambda e: math.hypot(e.x - element.x - shift[0], e.y - element.y - shift[1]))
            assert there.concept == element.concept
            assert abs(there.x - element.x - shift[0]) < within
            assert abs(there.y - element.y - shift[1]) < within
            assert turn_between(there.rotation, element.rotation, "ell" if element.concept != 12 else "ellipse") < within
        assert after.error == pytest.approx(before.error, rel=0.05, abs=0.1)


@pytest.mark.parametrize("colour", [None, FreeColour()], ids=["fixed", "free"])
def test_more_rounds_and_shuffling_never_worsen(colour: FreeColour | None) -> None:
    images = Arrays(crowded(12, 12))
    changes = {} if colour is None else {"colour": colour}
    concepts = dictionary(*KINDS)

    def energy(rounds: int, shuffle: bool) -> np.ndarray:
        setting = settings("rounds", strategy=Rounds(rounds=rounds, shuffle=shuffle), **changes)
        return energies(Engine(concepts, setting).run(images), setting.price)

    each = [energy(rounds, False) for rounds in (1, 2, 3, 5)]
    for before, after in pairwise(each):
        assert bool((after <= before + 1e-2).all())
    assert each[-1].sum() < each[0].sum()
    for rounds, before in zip((1, 3), (each[0], each[2]), strict=True):
        assert bool((energy(rounds, True) <= before + 1e-2).all())


def test_shuffling_repairs_an_order_that_greed_got_wrong() -> None:
    rng = np.random.default_rng(13)
    images = Arrays([scene(apart(rng, 4, 40, distance=6, hues=HUES, jitter=0), 40, 40, (0.0,) * 3) for _ in range(24)])
    concepts = dictionary(*KINDS, hues=HUES)

    def errors(shuffle: bool) -> np.ndarray:
        setting = settings("rounds", strategy=Rounds(rounds=1, shuffle=shuffle), colour=HueColour(count=3))
        return np.array([d.error for d in Engine(concepts, setting).run(images)])

    assert errors(True).sum() < errors(False).sum()


def test_the_papers_shuffling_never_lowers_the_correlation() -> None:
    images = crowded(14, 8)
    concepts = dictionary(*KINDS)
    correlations = []
    for shuffle in (False, True):
        setting = settings("rounds", 8, strategy=Rounds(policy="paper", shuffle=shuffle), objective=Correlation(), layers=3)
        renderer = Renderer(concepts, setting)
        rebuilt = [renderer.render(d).image for d in Engine(concepts, setting).run(Arrays(images))]
        pairs = zip(images, rebuilt, strict=True)
        correlations.append(np.array([(i * r).sum() / np.sqrt((i**2).sum() * (r**2).sum()) for i, r in pairs]))
    assert bool((correlations[1] >= correlations[0] - 1e-5).all())


@pytest.mark.parametrize("strategy", BOTH)
def test_a_warm_start_never_worsens(strategy: str) -> None:
    images = crowded(15, 8)
    setting = settings(strategy)
    engine = Engine(dictionary(*KINDS), setting)
    image, weight = torch.from_numpy(image_batch(images)), torch.ones(8, 1, 48, 48)
    rng = torch.Generator().manual_seed(0)
    with torch.inference_mode():
        problem, cold = engine.layout(image, weight)
        stage = engine.ready(1)[0]

        def energy(layout: Layout) -> torch.Tensor:
            return stage.error(problem, stage.layers(layout, 48, 48)) + setting.price * layout.count

        pose = cold.pose.clone()
        pose[..., :2] += torch.randn(pose[..., :2].shape, generator=rng) * 2
        moved = Layout(cold.concept, pose, cold.hue, cold.colour)
        fewer = cold.without(torch.tensor([[True, False, False, False]]).expand(8, -1)).compact()
        for start in (cold, moved, fewer, Layout.empty(8, 1, 1, torch.device("cpu"))):
            _, warm = engine.layout(image, weight, start)
            assert bool((energy(warm) <= energy(start) + 1e-2).all())
        # From a start that is nearly right the answer is as good as from nothing.
        _, warm = engine.layout(image, weight, cold)
        assert bool((energy(warm) <= energy(cold) + 1e-2).all())


def test_rounds_keep_what_is_better_than_anything_on_their_grid() -> None:
    """A start between grid points that nothing on the grid can beat."""
    images = crowded(26, 8)
    image, weight = torch.from_numpy(image_batch(images)), torch.ones(8, 1, 48, 48)
    with torch.inference_mode():
        problem, start = Engine(dictionary(*KINDS), settings("propose")).layout(image, weight)
        engine = Engine(dictionary(*KINDS), settings("rounds"))
        _, warm = engine.layout(image, weight, start)
        stage = engine.ready(1)[0]
        before, after = (stage.error(problem, stage.layers(each, 48, 48)) + 6.0 * each.count for each in (start, warm))
    assert bool((after <= before + 1e-2).all())


@pytest.mark.parametrize("strategy", BOTH)
def test_two_runs_are_equal_to_the_bit(strategy: str) -> None:
    images = Arrays(crowded(16, 6))
    first, second = (Engine(dictionary(*KINDS), settings(strategy)).run(images) for _ in range(2))
    assert [d.elements for d in first] == [d.elements for d in second]
    assert [d.error for d in first] == [d.error for d in second]


@pytest.mark.parametrize("strategy", BOTH)
def test_an_image_does_not_see_its_batch(strategy: str) -> None:
    rng = np.random.default_rng(17)
    images = [scene(apart(rng, 3, 48), 48, 48) for _ in range(5)]
    engine = Engine(dictionary(*KINDS), settings(strategy))
    together = engine.run(Arrays(images))
    for image, among in zip(images, together, strict=True):
        (alone,) = engine.run(Arrays([image]))
        same(alone, among, 0.02)


@pytest.mark.parametrize("strategy", BOTH)
@pytest.mark.parametrize("price", [4.0, 30.0])
def test_every_element_pays_its_price(strategy: str, price: float) -> None:
    # More slots than shapes, so that the price is what says stop.
    setting = settings(strategy, price=price, layers=8)
    images = crowded(18, 6)
    found = Engine(dictionary(*KINDS), setting).run(Arrays(images))
    renderer = Renderer(dictionary(*KINDS), setting)
    for image, decomposition in zip(images, found, strict=True):
        for element in decomposition:
            assert element.gain >= price - 1e-3
            fewer = decomposition.with_elements([e for e in decomposition if e != element])
            without = float(((renderer.render(fewer).image - image) ** 2).sum())
            assert element.gain == pytest.approx(without - decomposition.error, abs=0.01, rel=1e-3)


@pytest.mark.parametrize("strategy", BOTH)
def test_a_price_beyond_all_gains_leaves_the_image_empty(strategy: str) -> None:
    (found,) = Engine(dictionary(*KINDS), settings(strategy, price=1e5)).run(Arrays(crowded(19, 1)))
    assert len(found) == 0


def random_answer(rng: np.random.Generator, size: int, hues: np.ndarray | None) -> list[Element]:
    placed = apart(rng, 3, size, distance=10, jitter=0, hues=hues)
    elements = []
    for depth, p in enumerate(placed):
        hue = -1 if hues is None else [tuple(h) for h in hues.tolist()].index(p.colour)
        red, green, blue = p.colour * (3 // len(p.colour))
        elements.append(
            Element(10 + KINDS.index(p.kind), p.x, p.y, rotation=p.rotation, hue=hue, red=red, green=green, blue=blue, depth=depth)
        )
    return elements


@pytest.mark.parametrize("strategy", BOTH)
@pytest.mark.parametrize("hues", [None, HUES], ids=["grey", "hues"])
def test_rendering_then_decomposing_gives_back_what_was_placed(strategy: str, hues: np.ndarray | None) -> None:
    rng = np.random.default_rng(20)
    concepts = dictionary(*KINDS, hues=hues)
    setting = settings(strategy, **({} if hues is None else {"colour": HueColour(count=3)}))
    renderer = Renderer(concepts, setting)
    background = (0.0,) * (1 if hues is None else 3)
    answers = [Decomposition("", i, 48, 48, tuple(random_answer(rng, 48, hues)), 0.0, background) for i in range(8)]
    found = Engine(concepts, setting).run(Arrays([renderer.render(a).image for a in answers]))
    for truth, decomposition in zip(answers, found, strict=True):
        assert decomposition.error < (0.5 if strategy == "propose" else 1e-4)
        assert len(decomposition) == 3
        for element in truth:
            there = min(decomposition, key=lambda e: math.hypot(e.x - element.x, e.y - element.y))
            assert (there.concept, there.hue) == (element.concept, element.hue)
            within = 0.25 if strategy == "propose" else 1e-5
            assert math.hypot(there.x - element.x, there.y - element.y) < within
            assert turn_between(there.rotation, element.rotation, "ellipse" if element.concept == 12 else "ell") < within


@pytest.mark.parametrize("strategy", BOTH)
def test_the_search_method_does_not_decide_what_is_found(strategy: str) -> None:
    rng = np.random.default_rng(21)
    images = Arrays([scene(apart(rng, 3, 48), 48, 48) for _ in range(6)])
    results = []
    for method in ("coarse", "exhaustive"):
        setting = settings(strategy)
        setting = setting.model_copy(update={"search": setting.search.model_copy(update={"method": method})})
        results.append(energies(Engine(dictionary(*KINDS), setting).run(images), setting.price))
    assert results[0] == pytest.approx(results[1], rel=0.02, abs=0.5)


@pytest.mark.parametrize("strategy", BOTH)
def test_memory_does_not_decide_what_is_found(strategy: str) -> None:
    images = Arrays(crowded(22, 5))
    plenty, little = (Engine(dictionary(*KINDS), settings(strategy, memory=memory)).run(images) for memory in (512 * 2**20, 2**24))
    # Other batches round otherwise, and what is nearly tied may then fall either way.
    assert energies(plenty, 6.0) == pytest.approx(energies(little, 6.0), rel=0.03)


def test_more_passes_and_polish_never_worsen() -> None:
    images = Arrays(crowded(23, 8))
    concepts = dictionary(*KINDS)

    def energy(**changes: int) -> np.ndarray:
        setting = settings("propose", strategy=Propose(**changes))
        return energies(Engine(concepts, setting).run(images), setting.price)

    one, two, three = (energy(passes=passes) for passes in (1, 2, 3))
    assert bool((two <= one + 1e-2).all())
    assert bool((three <= two + 1e-2).all())
    assert two.sum() < one.sum()
    assert energy(passes=1, polish_steps=6).sum() < energy(passes=1, polish_steps=0).sum()


def test_elements_carry_the_ids_of_their_concepts_and_depths_from_the_front() -> None:
    rng = np.random.default_rng(24)
    found = Engine(dictionary(*KINDS), settings()).run(Arrays([scene(apart(rng, 3, 48), 48, 48) for _ in range(3)]))
    for decomposition in found:
        assert [e.depth for e in decomposition] == list(range(len(decomposition)))
        assert {e.concept for e in decomposition} <= {10, 11, 12}
        assert all(0 <= e.rotation < 2 * math.pi for e in decomposition)
        assert all(0.9 < e.confidence <= 1 for e in decomposition)
        assert all(e.visible > 20 for e in decomposition)


@pytest.mark.parametrize("strategy", BOTH)
def test_scaling_all_values_scales_the_answer(strategy: str) -> None:
    """Images, shapes and the root of the price at a third: the same elements, a ninth of the error."""
    rng = np.random.default_rng(25)
    images = [scene(apart(rng, 3, 48), 48, 48) for _ in range(6)]
    bright = dictionary(*KINDS)
    dim = Dictionary(tuple(type(c)(c.id, c.shape / 3, c.alpha, c.name) for c in bright))
    plain: dict[str, object] = {"formation": AlphaFormation()}
    a = Engine(bright, settings(strategy, **plain)).run(Arrays(images))
    b = Engine(dim, settings(strategy, **plain, price=6 / 9)).run(Arrays([image / 3 for image in images]))
    for one, other in zip(a, b, strict=True):
        assert sorted(e.concept for e in one) == sorted(e.concept for e in other)
        assert other.error * 9 == pytest.approx(one.error, rel=0.05, abs=0.3)


def test_settings_that_cannot_be_met_are_said() -> None:
    from pictolex.errors import InputError, SettingError

    images = Arrays([np.zeros((8, 8, 1), np.float32)])
    with pytest.raises(InputError, match="no concepts"):
        Engine(Dictionary(()), Settings(device="cpu"))
    with pytest.raises(SettingError, match="has none"):
        Engine(dictionary("ell"), settings(colour=HueColour())).run(images)
    with pytest.raises(SettingError, match="hues have 3 channels"):
        coloured = dictionary("ell", hues=HUES)
        Engine(coloured, settings(colour=HueColour())).ready(1)
    with pytest.raises(SettingError, match="tpu"):
        Engine(dictionary("ell"), settings(device="tpu"))
    three = Dictionary((type(dictionary("ell").concepts[0])(0, np.ones((5, 5, 3), np.float32), np.ones((5, 5), np.float32)),))
    with pytest.raises(SettingError, match="colour channels"):
        Engine(three, settings()).ready(1)
