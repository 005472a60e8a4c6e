"""The engine on images as they come: of any size, see-through, black, unreadable; and what it reports of them."""

from __future__ import annotations

import warnings
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image

from drawn import Placed, coverage, dictionary, scene
from pictolex.decompose import Engine, Progress, Renderer, batches
from pictolex.errors import InputError, SettingError
from pictolex.model import Background, Concept, Decomposition, Dictionary, Element
from pictolex.settings import AdditiveFormation, FreeBackground, FreeColour, HueColour, ImageBackground, PlainBackground
from pictolex.sources import open_source
from scenes import KINDS, Array, Arrays, apart, recovery, settings

BOTH = ["rounds", "propose"]


@pytest.mark.parametrize("strategy", BOTH)
@pytest.mark.parametrize("size", [(1, 1), (1, 30), (5, 4), (20, 9)])
def test_images_smaller_than_the_concept(strategy: str, size: tuple[int, int]) -> None:
    """A concept larger than the image is legal: it is cropped."""
    image = coverage(Placed("ell", size[1] / 2, size[0] / 2), *size)[..., None]
    setting = settings(strategy, 4, price=0.05)
    (found,) = Engine(dictionary(*KINDS), setting).run(Arrays([image]))
    assert (found.height, found.width) == size
    assert found.error < max(0.2, 0.05 * float((image**2).sum()))
    rebuilt = Renderer(dictionary(*KINDS), setting).render(found)
    assert rebuilt.image.shape == (*size, 1)
    assert float(((rebuilt.image - image) ** 2).sum()) == pytest.approx(found.error, abs=1e-3)


@pytest.mark.parametrize("strategy", BOTH)
@pytest.mark.parametrize("objective", ["squared", "ncc"])
@pytest.mark.parametrize("formation", ["alpha", "additive"])
def test_a_black_image_has_no_elements(strategy: str, objective: str, formation: str) -> None:
    setting = settings(strategy, objective={"kind": objective}, formation={"kind": formation}, price=0.5)
    found = Engine(dictionary(*KINDS), setting).run(Arrays([np.zeros((30, 33, 1), np.float32)] * 2))
    assert [len(d) for d in found] == [0, 0]
    assert [d.error for d in found] == [0.0, 0.0]
    rendered = Renderer(dictionary(*KINDS), setting).render(found[0])
    assert not rendered.image.any()
    assert not rendered.labels.any()
    assert rendered.alphas.shape == (0, 30, 33)
    assert [labels.tolist() for labels in rendered.tied_labels()] == [rendered.labels.tolist()]


@pytest.mark.parametrize("strategy", BOTH)
def test_no_element_where_nothing_is_the_best_under_the_papers_policy(strategy: str) -> None:
    setting = settings(strategy, objective={"kind": "ncc"}, strategy={"kind": "rounds", "policy": "paper"})
    (found,) = Engine(dictionary(*KINDS), setting).run(Arrays([np.zeros((30, 33, 1), np.float32)]))
    assert len(found) == 0


@pytest.mark.parametrize("strategy", BOTH)
def test_hidden_pixels_carry_no_error(strategy: str) -> None:
    """Whatever is stored under an opacity of 0, the answer is the same, and what is there may be explained freely."""
    rng = np.random.default_rng(30)
    shapes = apart(rng, 3, 48)
    image = scene(shapes, 48, 48)
    opacity = np.ones((48, 48), np.float32)
    opacity[:, 30:] = 0
    rubbish = np.where(opacity[..., None] > 0, image, rng.random((48, 48, 1))).astype(np.float32)
    hidden = np.where(opacity[..., None] > 0, image, 0).astype(np.float32)
    setting = settings(strategy)
    engine = Engine(dictionary(*KINDS), setting)
    a, b = engine.run(Arrays([hidden, rubbish], [opacity, opacity]))
    assert a.elements == b.elements
    assert a.error == b.error
    seen = Renderer(dictionary(*KINDS), setting).render(a).image
    assert a.error == pytest.approx(float((opacity[..., None] * (seen - image) ** 2).sum()), abs=1e-2)
    # An image that cannot be seen at all says nothing.
    (nothing,) = engine.run(Arrays([rubbish], [np.zeros((48, 48), np.float32)]))
    assert (len(nothing), nothing.error) == (0, 0.0)


def test_half_seen_pixels_are_composited_on_the_background_in_use() -> None:
    image = np.ones((24, 24, 1), np.float32)
    opacity = coverage(Placed("ell", 12.5, 12.5), 24, 24)
    ground = Background("plain", np.array([0.25], np.float32))
    concepts = dictionary("ell", background=ground)
    (found,) = Engine(concepts, settings(rotations=1, background=PlainBackground(), price=1.0)).run(Arrays([image], [opacity]))
    assert len(found) == 1
    assert found.error < 1
    assert found.background == pytest.approx((0.25,))


@pytest.mark.parametrize("strategy", BOTH)
@pytest.mark.parametrize("channels", [1, 3])
def test_the_free_background_is_found(strategy: str, channels: int) -> None:
    """Even where it is not the most of the image, and though its pixels are noisy."""
    rng = np.random.default_rng(31)
    images, grounds = [], []
    for _ in range(6):
        ground = tuple((rng.random(channels) * 0.5).tolist())
        shapes = apart(rng, 4, 40, distance=9)
        images.append(np.clip(scene(shapes, 40, 40, ground) + rng.normal(0, 0.01, (40, 40, channels)), 0, 1).astype(np.float32))
        grounds.append(ground)
    setting = settings(strategy, background=FreeBackground(), price=2.0, layers=5)
    found = Engine(dictionary(*KINDS), setting).run(Arrays(images))
    for image, ground, decomposition in zip(images, grounds, found, strict=True):
        assert decomposition.background == pytest.approx(ground, abs=0.02)
        rebuilt = Renderer(dictionary(*KINDS), setting).render(decomposition).image
        assert float(((rebuilt - image) ** 2).sum()) == pytest.approx(decomposition.error, rel=1e-3, abs=1e-2)


def test_a_learned_background_image_is_behind_everything() -> None:
    rng = np.random.default_rng(32)
    behind = np.repeat(np.linspace(0.1, 0.5, 40, dtype=np.float32)[:, None, None], 40, 1)
    shapes = apart(rng, 2, 40)
    alpha = scene(shapes, 40, 40)
    image = alpha + (1 - alpha) * behind
    concepts = dictionary(*KINDS, background=Background("image", behind))
    setting = settings(background=ImageBackground(), price=3.0)
    found = Engine(concepts, setting).run(Arrays([image]))
    assert recovery([shapes], found, concepts).right == 1
    assert found[0].background is None
    rebuilt = Renderer(concepts, setting).render(found[0]).image
    assert float(((rebuilt - image) ** 2).sum()) == pytest.approx(found[0].error, rel=1e-3, abs=1e-3)
    with pytest.raises(SettingError, match="background is"):
        Engine(concepts, setting).run(Arrays([image[:20]]))


@pytest.mark.parametrize("strategy", BOTH)
@pytest.mark.parametrize("kind", ["alpha", "additive", "hues", "free", "mirror"])
def test_what_is_rendered_has_the_error_that_was_told(strategy: str, kind: str) -> None:
    rng = np.random.default_rng(33)
    hues = np.array([[1, 0.2, 0.1], [0.2, 0.5, 1]], np.float32)
    changes: dict[str, object] = {
        "alpha": {},
        "additive": {"formation": AdditiveFormation()},
        "hues": {"colour": HueColour(count=2)},
        "free": {"colour": FreeColour()},
        "mirror": {"placement": {"rotations": 5, "scales": (0.8, 1.2), "mirror": True, "continuous": True}},
    }[kind]
    channels = 3 if kind in ("hues", "free") else 1
    images = [rng.random((26, 31, channels), np.float32) * scene(apart(rng, 3, 31, distance=7), 26, 31) for _ in range(3)]
    concepts = dictionary(*KINDS, hues=hues if kind == "hues" else None)
    setting = settings(strategy, price=0.5, **changes)
    renderer = Renderer(concepts, setting)
    for image, decomposition in zip(images, Engine(concepts, setting).run(Arrays(images)), strict=True):
        rendered = renderer.render(decomposition)
        assert len(decomposition) > 0
        assert float(((rendered.image - image) ** 2).sum()) == pytest.approx(decomposition.error, rel=1e-3, abs=1e-3)
        assert rendered.alphas.shape == (len(decomposition), 26, 31)
        assert rendered.colours.shape == (len(decomposition), 26, 31, channels)


def test_large_turned_elements_are_rebuilt_whole() -> None:
    """`rebuild` works in windows: they must hold the element in its own rotation and scale, not in the concept's."""
    concepts = dictionary("bar", "ell")
    setting = settings(placement={"rotations": 8, "scales": (1.0, 3.0)})
    elements = (Element(10, 50.0, 40.0, rotation=0.8, scale=3.0), Element(11, 20.0, 60.0, rotation=4.0, scale=2.5, depth=1))
    decomposition = Decomposition("", 0, 90, 100, elements, 0.0, (0.0,))
    renderer = Renderer(concepts, setting)
    np.testing.assert_allclose(renderer.rebuild(decomposition), renderer.render(decomposition).image, atol=1e-5)


def test_layers_composite_to_the_image() -> None:
    """The layers that are given out, composited by NumPy."""
    rng = np.random.default_rng(34)
    hues = np.array([[1, 0.2, 0.1], [0.2, 0.5, 1]], np.float32)
    shapes = apart(rng, 4, 40, distance=6, hues=hues)
    concepts = dictionary(*KINDS, hues=hues)
    setting = settings(colour=HueColour(count=2))
    (found,) = Engine(concepts, setting).run(Arrays([scene(shapes, 40, 40, (0.0,) * 3)]))
    rendered = Renderer(concepts, setting).render(found)
    image = np.zeros((40, 40, 3))
    shares, through = [], np.ones((40, 40))
    for alpha, colour in zip(rendered.alphas, rendered.colours, strict=True):
        shares.append(alpha * through)
        image += colour * (alpha * through)[..., None]
        through = through * (1 - alpha)
    np.testing.assert_allclose(rendered.image, image, atol=1e-4)
    np.testing.assert_array_equal(rendered.labels, np.argmax([through, *shares], axis=0))


def source_of(folder: Path) -> Path:
    """Two sizes in turn, a truncated PNG and a text among them."""
    for i in range(6):
        size = (40, 36) if i % 2 else (44, 44)
        pixels = scene([Placed("ell", 20.5 + i - 3, 18.5)], *size)[..., 0]
        Image.fromarray(np.round(pixels * 255).astype(np.uint8)).save(folder / f"{i}.png")
    whole = (folder / "2.png").read_bytes()
    (folder / "25.png").write_bytes(whole[: len(whole) // 2])
    (folder / "31.png").write_text("not an image")
    return folder


@pytest.mark.parametrize("strategy", BOTH)
def test_mixed_sizes_keep_their_order_and_unreadable_images_are_skipped(strategy: str, tmp_path: Path) -> None:
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        source = open_source(str(source_of(tmp_path)))
        found = Engine(dictionary("ell"), settings(strategy, 1)).run(source)
    assert any("skipped" in str(w.message) or "left out" in str(w.message) for w in told)
    assert [Path(d.name).stem for d in found] == ["0", "1", "2", "3", "4", "5"]
    for i, decomposition in enumerate(found):
        assert (decomposition.height, decomposition.width) == ((40, 36) if i % 2 else (44, 44))
        assert [round(e.x - 0.5) for e in decomposition] == [20 + i - 3]


class Broken(Arrays):
    """Every third image cannot be read."""

    def read(self, i: int, /) -> Array:
        if i % 3 == 1:
            raise InputError(f"image-{i}: truncated")
        return super().read(i)


def test_indices_of_the_source_survive_skips() -> None:
    images = [scene([Placed("ell", 15.5, 15.5)], 30, 30 + i % 2) for i in range(7)]
    with pytest.warns(UserWarning, match="2 images skipped; the first: image-1: truncated"):
        found = Engine(dictionary("ell"), settings(rotations=1)).run(Broken(images))
    assert [d.index for d in found] == [0, 2, 3, 5, 6]
    assert [d.name for d in found] == [f"image-{i}" for i in (0, 2, 3, 5, 6)]


def test_nothing_readable_is_an_error() -> None:
    class Nothing(Arrays):
        def read(self, i: int, /) -> Array:
            raise InputError("no")

    with pytest.warns(UserWarning, match="3 images skipped"), pytest.raises(InputError, match="none of the images"):
        Engine(dictionary("ell"), settings()).run(Nothing([np.zeros((4, 4, 1), np.float32)] * 3))


def test_progress_counts_up_to_the_end() -> None:
    rng = np.random.default_rng(36)
    images = [scene(apart(rng, 2, 30 + i % 3, distance=9), 30 + i % 3, 30) for i in range(7)]
    told: list[Progress] = []
    found = Engine(dictionary(*KINDS), settings("rounds", 4)).run(Arrays(images), progress=told.append)
    assert [p.total for p in told] == [7] * len(told)
    assert [p.done for p in told] == sorted({p.done for p in told})
    last = told[-1]
    assert (last.done, last.seconds_left) == (7, 0)
    assert last.elements == pytest.approx(sum(len(d) for d in found) / 7)
    assert last.error == pytest.approx(sum(d.error for d in found) / sum(i.size for i in images))


def test_grey_images_become_colour_where_the_dictionary_is() -> None:
    shape = np.ones((9, 9, 3), np.float32) * np.array([1, 0.5, 0], np.float32)
    concepts = Dictionary((Concept(0, shape, np.ones((9, 9), np.float32)),))
    grey, colour = np.zeros((20, 20, 1), np.float32), np.zeros((20, 20, 3), np.float32)
    colour[5:14, 6:15] = (1, 0.5, 0)
    found = Engine(concepts, settings(rotations=1)).run(Arrays([grey, colour]))
    assert [len(d) for d in found] == [0, 1]
    assert all(len(d.background or ()) == 3 for d in found)


def test_batches_hold_images_of_one_size_and_no_more_than_they_may() -> None:
    images = [np.zeros((4 + i % 2, 5, 1), np.float32) for i in range(11)]
    made = list(batches(Arrays(images), lambda h, w, c: 2, lambda c: c, torch.device("cpu")))
    assert sorted(i for b in made for i in b.index) == list(range(11))
    assert all(len(b.index) <= 2 for b in made)
    assert all(len({i % 2 for i in b.index}) == 1 for b in made)
    assert all(b.image.shape == (len(b.index), 1, 4 + b.index[0] % 2, 5) for b in made)


def placed_as(kinds: list[tuple[str, float, float, int]], hues: np.ndarray) -> tuple[Dictionary, Decomposition]:
    """Elements front to back: kind, x, y, hue."""
    concepts = dictionary(*KINDS, hues=hues)
    elements = []
    for depth, (kind, x, y, hue) in enumerate(kinds):
        red, green, blue = hues[hue].tolist()
        elements.append(Element(10 + KINDS.index(kind), x, y, hue=hue, red=red, green=green, blue=blue, depth=depth))
    return concepts, Decomposition("", 0, 40, 60, tuple(elements), 0.0, (0.0,) * 3)


def test_orders_that_look_the_same_are_tied() -> None:
    hues = np.array([[1, 0, 0], [0, 1, 0]], np.float32)
    setting = settings(colour=HueColour(count=2))

    def labels(*kinds: tuple[str, float, float, int]) -> list[np.ndarray]:
        concepts, decomposition = placed_as(list(kinds), hues)
        rendered = Renderer(concepts, setting).render(decomposition)
        maps = list(rendered.tied_labels())
        np.testing.assert_array_equal(maps[0], rendered.labels)
        return maps

    # Apart: their order shows nowhere, one label map is enough.
    assert len(labels(("ell", 12.5, 20.5, 0), ("wedge", 44.5, 20.5, 1))) == 1
    # Overlapping, in different colours: the order is seen.
    assert len(labels(("ell", 20.5, 20.5, 0), ("ellipse", 28.5, 22.5, 1))) == 1
    # Overlapping, in one colour: tied, and in the other order the other one owns the overlap.
    first, second = labels(("ell", 20.5, 20.5, 0), ("ellipse", 26.5, 22.5, 0))
    changed = first != second
    assert changed.sum() > 10
    assert set(first[changed].tolist()) == {1}
    assert set(second[changed].tolist()) == {2}
    np.testing.assert_array_equal(first > 0, second > 0)
    # Two tied pairs apart from each other: each pair is turned round on its own.
    assert len(labels(("ell", 12.5, 20.5, 0), ("ellipse", 18.5, 22.5, 0), ("ell", 42.5, 20.5, 1), ("ellipse", 48.5, 22.5, 1))) == 3
    # In a group of three, the two that are alike may change places and the other may not.
    three = labels(("ell", 20.5, 20.5, 0), ("ellipse", 26.5, 22.5, 0), ("wedge", 24.5, 22.5, 1))
    assert len(three) == 2


def test_nothing_is_tied_where_order_does_not_matter() -> None:
    concepts, decomposition = placed_as([("ell", 20.5, 20.5, 0), ("ellipse", 26.5, 22.5, 0)], np.array([[0.4, 0.4, 0.4]], np.float32))
    rendered = Renderer(concepts, settings(formation=AdditiveFormation(), colour=HueColour(count=1))).render(decomposition)
    assert len(list(rendered.tied_labels())) == 1
