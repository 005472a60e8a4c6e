"""Starts from images with planted shapes: how many concepts, how large, in which hues, on what background."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from PIL import Image, ImageDraw

from drawn import Placed, coverage
from pictolex.errors import InputError
from pictolex.formation import create
from pictolex.learn.start import first_dictionary, framed
from pictolex.learn.survey import Survey
from pictolex.model import Dictionary
from pictolex.settings import Settings
from pictolex.sources import open_source

Draw = Callable[[ImageDraw.ImageDraw, int, int, object], None]


def disc(draw: ImageDraw.ImageDraw, x: int, y: int, fill: object) -> None:
    draw.ellipse((x - 4, y - 4, x + 4, y + 4), fill=fill)


def plus(draw: ImageDraw.ImageDraw, x: int, y: int, fill: object) -> None:
    draw.rectangle((x - 5, y - 1, x + 5, y + 1), fill=fill)
    draw.rectangle((x - 1, y - 5, x + 1, y + 5), fill=fill)


def wedge(draw: ImageDraw.ImageDraw, x: int, y: int, fill: object) -> None:
    draw.polygon([(x - 5, y - 4), (x + 5, y), (x - 5, y + 4)], fill=fill)


def planted(
    count: int,
    shapes: tuple[Draw, ...] = (disc, plus, wedge),
    palette: tuple[tuple[int, ...], ...] | None = None,
    behind: Callable[[np.random.Generator], Image.Image] | None = None,
    seed: int = 0,
) -> np.ndarray:
    """Two shapes an image on whole pixels, apart from each other, in turn; white on black where nothing else is said."""
    rng = np.random.default_rng(seed)
    images = []
    for i in range(count):
        image = behind(rng) if behind is not None else Image.new("L" if palette is None else "RGB", (44, 30))
        for k, x in enumerate((int(rng.integers(7, 16)), int(rng.integers(29, 38)))):
            fill = palette[rng.integers(len(palette))] if palette else 255
            shapes[(2 * i + k) % len(shapes)](ImageDraw.Draw(image), x, int(rng.integers(7, 23)), fill)
        images.append(np.array(image))
    return np.stack(images)


def start(images: np.ndarray, **values: object) -> Dictionary:
    learning = {"concepts": 8, "concept_size": 17} | dict(values.pop("learning", {}))  # type: ignore[call-overload]
    settings = Settings.model_validate({"layers": 2, "learning": learning} | values)
    return first_dictionary(Survey.of(open_source(images), settings.seed), settings, create(settings.formation, 1))


def alpha_of(shape: Draw, height: int, width: int) -> np.ndarray:
    canvas = Image.new("L", (width, height))
    shape(ImageDraw.Draw(canvas), width // 2, height // 2, 255)
    return np.array(canvas) / 255


def assert_shapes(found: Dictionary, shapes: tuple[Draw, ...]) -> None:
    """Every concept is one of the shapes, pixel for pixel, and every shape has one."""
    names = []
    for concept in found:
        wrong = {shape.__name__: np.abs(concept.alpha - alpha_of(shape, concept.height, concept.width)).max() for shape in shapes}
        best = min(wrong, key=lambda name: wrong[name])
        assert wrong[best] < 0.01
        names.append(best)
    assert sorted(names) == sorted(shape.__name__ for shape in shapes)


def test_white_shapes_at_whole_places_are_found_pixel_for_pixel() -> None:
    found = start(planted(14))
    assert_shapes(found, (disc, plus, wedge))
    for concept in found:
        np.testing.assert_allclose(concept.shape[concept.alpha > 0.5], 1, atol=1e-3)
        # There is a margin to grow into, and no more.
        rows, columns = (concept.alpha > 0.5).nonzero()
        for at, length in ((rows, concept.height), (columns, concept.width)):
            assert 1 <= at.min() <= 4 and 1 <= length - 1 - at.max() <= 4
    assert found.hues is None and found.background.kind == "none"


@pytest.mark.parametrize("seed", range(3))
def test_hues_of_an_unseen_palette_are_found_exactly(seed: int) -> None:
    rng = np.random.default_rng(seed)
    while True:
        palette = rng.integers(30, 256, (4, 3))
        apart = np.abs(palette[:, None] - palette[None]).max(-1) + 255 * np.eye(4)
        if apart.min() > 60:
            break
    images = planted(40, palette=tuple(tuple(row) for row in palette.tolist()), seed=seed)
    found = start(images, colour={"kind": "hues", "count": 4})
    assert_shapes(found, (disc, plus, wedge))
    assert found.hues is not None
    order = [int(np.abs(palette / 255 - hue).max(1).argmin()) for hue in found.hues]
    assert sorted(order) == [0, 1, 2, 3]
    np.testing.assert_allclose(found.hues, palette[order] / 255, atol=1e-6)


def test_where_there_are_fewer_colours_than_hues_the_rest_are_corners_of_the_cube() -> None:
    found = start(planted(30, palette=((200, 40, 90), (30, 160, 220))), colour={"kind": "hues", "count": 5})
    assert found.hues is not None and found.hues.shape == (5, 3)
    assert {tuple(np.round(255 * hue).astype(int)) for hue in found.hues[:2]} == {(200, 40, 90), (30, 160, 220)}
    assert set(np.unique(found.hues[2:])) <= {0.0, 1.0}
    assert len({tuple(hue) for hue in found.hues.tolist()}) == 5


def test_motifs_keep_their_own_colours_where_concepts_are_in_colour() -> None:
    def flag(draw: ImageDraw.ImageDraw, x: int, y: int, fill: object) -> None:
        draw.rectangle((x - 4, y - 4, x, y + 4), fill=(230, 40, 40))
        draw.rectangle((x + 1, y - 4, x + 4, y + 4), fill=(40, 60, 220))

    found = start(planted(12, (flag,), palette=((0, 0, 0),)), learning={"colour_shapes": True})
    assert len(found) == 1
    shown = found.concepts[0].alpha > 0.5
    assert int(shown.sum()) == 81
    colours, counts = np.unique(np.round(255 * found.concepts[0].shape[shown]).astype(int), axis=0, return_counts=True)
    assert dict(zip(map(tuple, colours.tolist()), counts.tolist(), strict=True)) == {(40, 60, 220): 36, (230, 40, 40): 45}


def turned_scenes(count: int, low: float, free: bool = True, seed: int = 0) -> np.ndarray:
    """Ells and ellipses, one an image, at any rotation and at sizes from `low` to 1; pixels are in or out."""
    rng = np.random.default_rng(seed)
    images = []
    for i in range(count):
        turn = rng.uniform(0, 2 * math.pi) if free else 0.0
        x, y = rng.uniform(15, 25, 2)
        covered = coverage(Placed(("ell", "ellipse")[i % 2], x, y, turn, rng.uniform(low, 1)), 40, 40)
        images.append((covered > 0.5).astype(np.float32))
    return np.stack(images)


@pytest.mark.parametrize("low", [1.0, 0.6])
def test_turned_shapes_are_two_concepts_of_the_largest_size(low: float) -> None:
    placement = {"rotations": 40, "scales": [low, 1.0] if low < 1 else [1.0]}
    found = start(turned_scenes(60, low), placement=placement, learning={"concept_size": 31})
    assert len(found) == 2
    areas = sorted(float(concept.alpha.sum()) for concept in found)
    truth = sorted(float(coverage(Placed(kind, 20, 20), 40, 40).sum()) for kind in ("ell", "ellipse"))
    np.testing.assert_allclose(areas, truth, rtol=0.08)


def test_an_ellipse_stands_upright_or_level_however_it_was_turned() -> None:
    found = start(turned_scenes(60, 1.0), placement={"rotations": 40}, learning={"concept_size": 31})
    ellipse = min(found, key=lambda concept: float(concept.alpha.sum()))
    rows, columns = (ellipse.alpha > 0.5).nonzero()
    short, long = sorted((int(np.ptp(rows)) + 1, int(np.ptp(columns)) + 1))
    assert abs(short - 10) <= 1 and abs(long - 17) <= 1


def test_a_plain_background_is_the_colour_most_frequent() -> None:
    images = planted(20, palette=((250, 220, 40),), behind=lambda rng: Image.new("RGB", (44, 30), (20, 90, 130)))
    found = start(images, background={"kind": "plain"}, colour={"kind": "hues", "count": 1})
    assert found.background.kind == "plain" and found.background.values is not None
    np.testing.assert_allclose(255 * found.background.values, [20, 90, 130], atol=0.01)
    assert found.hues is not None
    np.testing.assert_allclose(255 * found.hues, [[250, 220, 40]], atol=0.01)
    assert_shapes(found, (disc, plus, wedge))


def test_each_image_may_have_a_background_of_its_own() -> None:
    images = planted(
        30, palette=((250, 220, 40), (20, 60, 230)), behind=lambda rng: Image.new("RGB", (44, 30), tuple(rng.integers(80, 160, 3).tolist()))
    )
    found = start(images, background={"kind": "free"}, colour={"kind": "hues", "count": 2})
    assert found.background.kind == "free" and found.background.values is None
    assert found.hues is not None
    assert {tuple(np.round(255 * hue).astype(int)) for hue in found.hues} == {(250, 220, 40), (20, 60, 230)}
    assert_shapes(found, (disc, plus, wedge))


def gradient(rng: np.random.Generator) -> Image.Image:
    """The same texture behind all images."""
    y, x = np.mgrid[0:30, 0:44]
    return Image.fromarray((40 + 60 * (np.sin(x / 5) * np.cos(y / 4) > 0) + x).astype(np.uint8))


def test_what_all_images_share_is_the_background() -> None:
    images = []
    for i in range(14):
        image = gradient(np.random.default_rng(0))
        (disc, plus, wedge)[i % 3](ImageDraw.Draw(image), 7 + 10 * (i % 4), 7 + 4 * (i % 5), 255)
        images.append(np.array(image))
    found = start(np.stack(images), background={"kind": "image"})
    assert found.background.values is not None and found.background.values.shape == (30, 44, 1)
    truth = np.array(gradient(np.random.default_rng(0)))
    np.testing.assert_allclose(255 * found.background.values[..., 0], truth, atol=0.01)
    assert_shapes(found, (disc, plus, wedge))


def test_an_image_behind_images_of_two_sizes_is_refused_with_what_to_do() -> None:
    survey = Survey.of(open_source([np.zeros((20, 20), np.uint8), np.zeros((22, 20), np.uint8)]), 0)
    settings = Settings.model_validate({"background": {"kind": "image"}})
    with pytest.raises(InputError, match="plain or free"):
        first_dictionary(survey, settings, create(settings.formation, 1))


def test_starting_from_noise_knows_nothing_but_the_number() -> None:
    found = start(planted(20), learning={"start": "noise", "concepts": 5, "initial": 3})
    assert [concept.alpha.shape for concept in found] == [(17, 17)] * 3
    assert all(0.2 < concept.alpha.min() < concept.alpha.max() < 0.8 for concept in found)
    again = start(planted(20), learning={"start": "noise", "concepts": 5, "initial": 3})
    other = start(planted(20), learning={"start": "noise", "concepts": 5, "initial": 3}, seed=1)
    assert np.array_equal(found.concepts[0].alpha, again.concepts[0].alpha)
    assert not np.array_equal(found.concepts[0].alpha, other.concepts[0].alpha)


def test_where_nothing_recurs_noise_is_the_start() -> None:
    found = start(np.zeros((5, 20, 20), np.uint8), learning={"concepts": 4})
    assert len(found) == 4 and all(0.2 < concept.alpha.mean() < 0.8 for concept in found)


@pytest.mark.parametrize("learning,count", [({"concepts": 2}, 2), ({"concepts": 8, "initial": 1}, 1), ({"concepts": 8, "initial": 8}, 3)])
def test_no_more_concepts_than_asked_for_and_the_most_frequent_first(learning: dict[str, int], count: int) -> None:
    images = planted(18, (disc, disc, disc, disc, plus, plus, plus, wedge, wedge), ((90, 160, 30),))
    found = start(images, learning=learning, colour={"kind": "hues", "count": 1})
    assert len(found) == count
    assert_shapes(Dictionary(found.concepts[:1]), (disc,))
    born = [event for event in found.lineage if event.kind == "born"]
    assert [event.concept for event in born] == list(found.ids)
    explained = [event.figures["explains"] for event in born]
    assert explained == sorted(explained, reverse=True) and explained[0] > 10


def test_patches_are_no_larger_than_asked_for() -> None:
    assert all(max(concept.alpha.shape) <= 9 for concept in start(planted(12), learning={"concept_size": 9}))


@settings(deadline=None)
@given(st.integers(4, 14), st.integers(4, 14), st.integers(3, 30), st.data())
def test_framing_keeps_what_is_shown_where_it_was(height: int, width: int, most: int, data: st.DataObject) -> None:
    """The middle of the new patch lies (x, y) from the old one's, in whole pixels: nothing is resampled."""
    rows, columns = (sorted(data.draw(st.lists(st.integers(0, n - 1), min_size=2, max_size=2))) for n in (height, width))
    patch = torch.zeros(2, height, width)
    patch[:, rows[0] : rows[1] + 1, columns[0] : columns[1] + 1] = (
        torch.rand(2, rows[1] - rows[0] + 1, columns[1] - columns[0] + 1) / 2 + 0.5
    )
    new, x, y = framed(patch, most)
    assert max(new.shape[1:]) <= max(most, 1) and min(new.shape[1:]) >= 1
    # Every pixel of the new patch is that of the old one at the same distance from the middle.
    top = y + height / 2 - new.shape[1] / 2
    left = x + width / 2 - new.shape[2] / 2
    assert all(value == int(value) for value in (x, y, top, left))
    wide = torch.nn.functional.pad(patch, (40, 40, 40, 40))
    assert torch.equal(new, wide[:, 40 + int(top) :, 40 + int(left) :][:, : new.shape[1], : new.shape[2]])
    if most >= max(rows[1] - rows[0], columns[1] - columns[0]) + 7:
        assert float(new[1].sum()) == pytest.approx(float(patch[1].sum()))
        assert float(new[1, 0].sum()) == float(new[1, -1].sum()) == float(new[1, :, 0].sum()) == 0
