"""Settings chosen from the images: what they are for images of every make, and that learning goes on with them."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from PIL import Image, ImageDraw

from drawn import Placed, coverage
from pictolex.errors import InputError
from pictolex.formation import create
from pictolex.learn import Run, learn
from pictolex.learn.auto import Chosen, chosen_settings
from pictolex.learn.start import first_dictionary
from pictolex.learn.survey import Survey
from pictolex.model import Dictionary
from pictolex.settings import Settings
from pictolex.sources import open_source
from pictolex.sources.families.variation import Variation
from pictolex.sources.synthetic import SyntheticSource

PALETTE = ((200, 60, 90), (40, 160, 80), (250, 140, 20))


def looked_at(images: Any) -> tuple[Chosen, Dictionary]:
    """What is chosen for images, and what learning would start from."""
    survey = Survey.of(open_source(images), 0)
    chosen = chosen_settings(survey)
    return chosen, first_dictionary(survey, chosen.settings, create(chosen.settings.formation, 1))


def tried(images: Any, chosen: Chosen) -> Run:
    """One epoch on a few images with the settings chosen."""
    run = learn(images, settings=chosen.settings, epochs=1)
    assert run.elements is not None
    for concept in run.dictionary:
        assert np.isfinite(concept.shape).all() and np.isfinite(concept.alpha).all()
    return run


def crosses_and_rings(count: int, seed: int = 0, size: int = 40) -> np.ndarray:
    """White on black, two an image at whole places."""
    rng = np.random.default_rng(seed)
    images = []
    for i in range(count):
        image = Image.new("L", (size, 28))
        draw = ImageDraw.Draw(image)
        for k, x in enumerate((int(rng.integers(6, size // 2 - 6)), int(rng.integers(size // 2 + 6, size - 6)))):
            y = int(rng.integers(6, 22))
            if (i + k) % 2:
                draw.rectangle((x - 4, y - 1, x + 4, y + 1), 255)
                draw.rectangle((x - 1, y - 4, x + 1, y + 4), 255)
            else:
                draw.ellipse((x - 4, y - 4, x + 4, y + 4), outline=255, width=2)
        images.append(np.array(image))
    return np.stack(images)


@pytest.mark.parametrize("inverted", [False, True])
def test_white_shapes_on_black_and_black_ones_on_white(inverted: bool) -> None:
    images = crosses_and_rings(26)
    images = 255 - images if inverted else images
    chosen, start = looked_at(images)
    s = chosen.settings
    assert s.background.kind == ("plain" if inverted else "none")
    assert s.colour.kind == "none" and not s.learning.colour_shapes
    assert s.placement.rotations == 1 and s.placement.scales == (1.0,)
    assert s.layers >= 2 and s.learning.concepts >= 2 and len(start) == 2
    run = tried(images[:6], chosen)
    assert run.elements is not None and float((run.elements.elements_per_image == 2).mean()) == 1
    if inverted:
        assert run.dictionary.background.values is not None and float(run.dictionary.background.values[0]) > 0.99
        assert all(float(c.shape[c.alpha > 0.5].max()) < 0.05 for c in run.dictionary)


def blocks(count: int, seed: int = 0) -> np.ndarray:
    """Ells, bars and squares of cells of 3 pixels in three colours, at whole places, touching now and then."""
    rng = np.random.default_rng(seed)
    cells = {"ell": [(0, 0), (1, 0), (1, 1)], "bar": [(0, 0), (0, 1), (0, 2)], "square": [(0, 0), (0, 1), (1, 0), (1, 1)]}
    images = []
    for _ in range(count):
        image = np.zeros((30, 34, 3), np.uint8)
        for _ in range(3):
            y, x = int(rng.integers(0, 24)), int(rng.integers(0, 25))
            cover = [(slice(y + 3 * r, y + 3 * r + 3), slice(x + 3 * c, x + 3 * c + 3)) for r, c in cells[str(rng.choice(list(cells)))]]
            if all(image[at].max() == 0 for at in cover):
                colour = PALETTE[rng.integers(3)]
                for at in cover:
                    image[at] = colour
        images.append(image)
    return np.stack(images)


def test_coloured_blocks_at_whole_places_are_never_turned() -> None:
    images = blocks(60)
    chosen, start = looked_at(images)
    s = chosen.settings
    assert s.background.kind == "none" and s.colour.kind == "hues" and s.colour.count == 3
    assert s.placement.rotations == 1 and s.placement.scales == (1.0,) and not s.placement.continuous
    assert not s.learning.colour_shapes and len(start) == 3
    assert start.hues is not None
    assert {tuple(np.round(255 * hue).astype(int)) for hue in start.hues} == set(PALETTE)
    run = tried(images[:16], chosen)
    assert run.elements is not None and float(np.mean(run.elements.images["error"])) / images[0].size < 1e-3


def motifs() -> np.ndarray:
    """One image of two motifs in colour, many times and cut by the border, on a plain ground; drawn four times larger."""
    rng = np.random.default_rng(0)
    image = Image.new("RGB", (66 * 4, 52 * 4), (30, 60, 110))
    draw = ImageDraw.Draw(image)
    for row in range(5):
        for column in range(6):
            x, y = (column * 13 + int(rng.integers(0, 2)) - 4) * 4, (row * 13 + int(rng.integers(0, 2)) - 4) * 4
            if (row + column) % 2:
                draw.rectangle((x, y, x + 39, y + 19), (240, 200, 60))
                draw.rectangle((x + 12, y + 20, x + 27, y + 43), (150, 40, 40))
            else:
                draw.ellipse((x, y, x + 39, y + 43), (230, 230, 230))
                draw.ellipse((x + 12, y + 12, x + 27, y + 27), (20, 140, 60))
    return np.array(image.resize((66, 52), Image.Resampling.BOX))[None]


def test_motifs_in_colour_on_a_plain_ground_in_one_image() -> None:
    images = motifs()
    chosen = chosen_settings(Survey.of(open_source(images), 0))
    s = chosen.settings
    assert s.background.kind == "plain" and s.colour.kind == "none" and s.learning.colour_shapes
    assert s.placement.rotations == 1 and s.placement.scales == (1.0,) and s.layers >= 25


def test_one_image_of_motifs_is_learned() -> None:
    """With settings as they are chosen for it, but without the time that choosing takes."""
    learning = {"concepts": 8, "concept_size": 13, "colour_shapes": True, "epochs": 1}
    settings = Settings.model_validate({"layers": 40, "price": 0.5, "background": {"kind": "plain"}, "learning": learning})
    run = learn(motifs(), settings=settings)
    assert run.dictionary.background.values is not None and len(run.dictionary) == 2
    np.testing.assert_allclose(run.dictionary.background.values, np.array([30, 60, 110]) / 255, atol=0.005)
    assert run.elements is not None and float(run.elements.images["error"][0]) < 1


def turned(count: int, seed: int = 0) -> np.ndarray:
    """Wedges and ellipses at any rotation and at sizes from a half to one, two an image, drawn by Pillow."""
    rng = np.random.default_rng(seed)
    images = []
    for _ in range(count):
        at = ((13, 13), (13, 39), (39, 13), (39, 39))
        places = rng.permutation(4)[:2].tolist()
        image = np.zeros((52, 52), np.float32)
        for k in places:
            kind = str(rng.choice(["wedge", "ellipse"]))
            image += coverage(Placed(kind, *(np.array(at[k]) + rng.random(2)), rng.uniform(0, 2 * math.pi), rng.uniform(0.5, 1)), 52, 52)
        images.append(image)
    return np.stack(images)


def test_shapes_turned_and_scaled_are_few_kinds_that_turn_and_scale() -> None:
    chosen, start = looked_at(turned(60))
    place = chosen.settings.placement
    assert place.rotations > 4 and place.continuous
    assert 0.42 < min(place.scales) / max(place.scales) < 0.62 and list(place.scales) == sorted(place.scales)
    assert len(start) == 2 and chosen.settings.learning.concepts >= 2


def test_shapes_at_quarter_turns_are_not_turned_freely() -> None:
    rng = np.random.default_rng(0)
    images = [
        coverage(Placed(str(rng.choice(["ell", "wedge"])), *(rng.integers(11, 23, 2) + 0.5), math.pi / 2 * rng.integers(4)), 34, 34)
        for _ in range(60)
    ]
    chosen = chosen_settings(Survey.of(open_source(np.stack(images)), 0))
    assert chosen.settings.placement.rotations in (1, 4)
    assert len(chosen.settings.placement.scales) == 1


TWINS = {
    "rings and stars": ("dsprites-bin", 70, Variation(shapes=("ring", "star"))),
    "inverted": ("dsprites-bin", 60, Variation(shapes=("square", "ring", "star"), inverted=True)),
    "moons": ("dsprites-bin", 60, Variation(shapes=("moon", "triangle", "cross"), size=48)),
    "fixed places": ("dsprites-adv", 70, Variation(shapes=("ring", "star"))),
    "as built in": ("dsprites-adv", 70, Variation()),
    "in colour": ("dsprites-color", 50, Variation(shapes=("ring", "star"), palette=PALETTE, backgrounds=((10, 10, 60), (120, 120, 120)))),
    "tetrominoes": ("tetrominoes", 80, Variation(palette=PALETTE)),
    "larger cells": ("tetrominoes", 60, Variation(cell=6, size=50, objects=(2, 5))),
}


@pytest.mark.parametrize("name", TWINS)
def test_as_many_concepts_as_shapes_are_found_in_twins_of_the_built_in_sets(name: str) -> None:
    family, count, variation = TWINS[name]
    source = SyntheticSource(family, count, 0, variation)
    chosen, start = looked_at(source)
    truth = SyntheticSource(family, 1, 0, Variation(**{**vars(variation), "inverted": False})).dictionary()
    assert truth is not None
    assert len(start) == len(truth)
    s = chosen.settings
    assert s.placement.rotations == (1 if family == "tetrominoes" else 40)
    if variation.palette is not None:
        assert s.colour.kind == "hues" and s.colour.count == len(variation.palette)
    if variation.inverted:
        assert s.background.kind == "plain"
    if family == "dsprites-color":
        assert s.background.kind == "free"


def test_noise_says_so_and_is_learned_all_the_same() -> None:
    rng = np.random.default_rng(0)
    for images in (rng.integers(0, 256, (6, 20, 20), dtype=np.uint8), rng.random((5, 18, 22, 3)).astype(np.float32)):
        chosen, _ = looked_at(images)
        assert any("recur" in reason and "no " in reason for reason in chosen.reasons)
        assert chosen.settings.placement.rotations == 1 and chosen.settings.colour.kind == "none"
        assert chosen.settings.learning.colour_shapes == (images.ndim == 4)
        tried(images, chosen)


@pytest.mark.parametrize("count", [2, 26])
def test_images_that_are_all_equal_are_learned(count: int) -> None:
    image = crosses_and_rings(1, size=26)
    chosen = chosen_settings(Survey.of(open_source(np.repeat(image, count, 0)), 0))
    run = tried(np.repeat(image, 2, 0), chosen)
    assert run.elements is not None and len(run.elements) == 2


@pytest.mark.parametrize("count", [1, 3])
def test_few_images_are_learned(count: int) -> None:
    images = crosses_and_rings(count)
    chosen, start = looked_at(images)
    assert chosen.settings.background.kind == "none" and not chosen.settings.learning.colour_shapes and len(start) >= 1
    tried(images, chosen)


@pytest.mark.parametrize("value", [0, 140, 255])
def test_images_without_anything_in_them_have_no_elements(value: int) -> None:
    images = np.full((4, 18, 20), value, np.uint8)
    chosen, _ = looked_at(images)
    assert chosen.settings.background.kind == ("plain" if value else "none")
    run = tried(images, chosen)
    assert run.elements is not None and int(run.elements.elements_per_image.sum()) == 0
    assert float(np.mean(run.elements.images["error"])) < 1e-6


@pytest.mark.parametrize("shape", [(2, 1, 1), (3, 3, 2), (2, 4, 9, 3)])
def test_the_smallest_images_are_learned(shape: tuple[int, ...]) -> None:
    images = np.random.default_rng(0).integers(0, 256, shape, dtype=np.uint8)
    tried(images, looked_at(images)[0])


def test_images_of_mixed_sizes_are_looked_at_together() -> None:
    images: list[np.ndarray] = list(crosses_and_rings(14)) + list(crosses_and_rings(14, seed=1, size=46))
    chosen = chosen_settings(Survey.of(open_source(images), 0))
    assert chosen.settings.background.kind == "none" and chosen.settings.placement.rotations == 1
    run = tried(images[11:17], chosen)
    assert run.elements is not None and float((run.elements.elements_per_image == 2).mean()) == 1


def test_each_reason_is_a_line_and_the_choice_does_not_change_from_time_to_time() -> None:
    images = blocks(24)
    chosen, again = looked_at(images)[0], looked_at(images)[0]
    assert chosen == again
    assert len(chosen.reasons) >= 3 and all(reason and "\n" not in reason for reason in chosen.reasons)


def test_images_of_nothing_but_nan_are_refused_with_what_to_do() -> None:
    images = np.ones((3, 10, 10), np.float32)
    images[1, 2, 3] = np.nan
    with pytest.raises(InputError, match="nan_to_num"):
        learn(images)


def test_learning_without_a_preset_uses_what_is_chosen() -> None:
    images = blocks(30)
    run = learn(images, epochs=0)
    chosen, _ = looked_at(images)
    assert run.settings.placement == chosen.settings.placement and run.settings.colour == chosen.settings.colour
    assert run.settings.price == chosen.settings.price and run.settings.learning.epochs == 0
