"""Twins of the built-in sets: other canvases, counts, shapes and colours, with truth that stays right; the sets stay as they were."""

from __future__ import annotations

import hashlib
import math
from pathlib import Path

import numpy as np
import pytest

from pictolex.errors import InputError
from pictolex.metrics import concept_l1_strict
from pictolex.sources import BUILT_IN, open_source
from pictolex.sources.families import dsprites, tetrominoes
from pictolex.sources.families.base import coverage_patch
from pictolex.sources.families.catalogue import RECIPES, family
from pictolex.sources.families.shapes import OUTLINES, inside, shape_patch
from pictolex.sources.families.variation import Variation
from pictolex.sources.synthetic import SyntheticSource, make, true_dictionary, write_npz
from pictolex.sources.truth import open_truth

THREE = ((224, 112, 32), (32, 160, 192), (128, 64, 144))
TWINS = {
    "more shapes": ("dsprites-bin", Variation(size=96, objects=(1, 5), shapes=("ring", "star", "triangle", "cross", "moon"))),
    "a small canvas": ("dsprites-adv", Variation(size=48, objects=(1, 3), shapes=("moon", "square"))),
    "other colours": ("dsprites-color", Variation(objects=(1, 5), palette=THREE, backgrounds=((240, 232, 208), (32, 48, 64), THREE[1]))),
    "colours inverted": ("dsprites-color", Variation(inverted=True, shapes=("star", "heart"), palette=THREE)),
    "many pieces": ("tetrominoes", Variation(size=96, objects=(1, 5), palette=THREE, cell=8)),
    "small pieces": ("tetrominoes", Variation(objects=(7, 7), cell=3)),
    "a large wrap, inverted": ("pattern", Variation(size=246, inverted=True)),
    "a larger volume": ("voxel", Variation(size=48)),
}
twins = pytest.mark.parametrize("twin", TWINS)

# Images, masks, factors and constants of the first images, as they were before there were twins.
AS_THEY_WERE = {
    "tetrominoes": ("3079f6e04ff8baf2", "315331a1d304b9cb"),
    "dsprites-bin": ("708b9825544aca2e", "8afed3f5689428c5"),
    "dsprites-adv": ("afc23cbc95360ba7", "7d36b04ff803b1ce"),
    "dsprites-color": ("3e2a001757a3b710", "670a5829b3b70b23"),
    "pattern": ("7f77c5be74b9fcd3", "e7d90b2c1407cf70"),
    "voxel": ("da9e068c7aa7811d", "40773e7b72ff18c3"),
}


def made(twin: str, count: int = 30) -> dict[str, np.ndarray]:
    name, variation = TWINS[twin]
    return make(name, 1 if name in ("voxel", "pattern") else count, 4, variation)


def digest(arrays: dict[str, np.ndarray]) -> str:
    found = hashlib.sha256()
    for key in sorted(arrays.keys() - {"concepts", "concept_sizes"}):
        value = arrays[key]
        found.update(f"{key}{value.dtype}{value.shape}".encode())
        found.update(np.ascontiguousarray(value).tobytes())
    return found.hexdigest()[:16]


@pytest.mark.parametrize("name", BUILT_IN)
def test_the_built_in_sets_stay_bit_identical(name: str) -> None:
    count = 1 if name == "voxel" else 12
    assert (digest(make(name, count, 0)), digest(make(name, count, 7))) == AS_THEY_WERE[name]
    usual = RECIPES[name].sizes[1]
    assert digest(make(name, 1, 0, Variation(size=usual))) == digest(make(name, 1, 0))


def test_every_choice_but_the_built_in_one_changes_the_images() -> None:
    choices = {
        "size": 60, "inverted": True, "objects": (1, 1), "shapes": ("ring", "star"), "palette": THREE, "backgrounds": THREE, "cell": 4,
    }  # fmt: skip
    for name, recipe in RECIPES.items():
        for option in recipe.takes:
            varied = make(name, 1, 2, Variation(**{option: choices[option]}))["images"]
            assert not np.array_equal(varied, make(name, 1, 2)["images"]), (name, option)


# --- objects ----------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("twin", ["more shapes", "a small canvas", "other colours", "colours inverted", "many pieces", "small pieces"])
def test_there_are_as_many_objects_as_asked_for(twin: str) -> None:
    name, variation = TWINS[twin]
    rows = made(twin, 60)["factors"]
    fewest, most = variation.objects or (2, 3)
    assert rows.shape[1:] == (most, 4 if name == "tetrominoes" else 7)
    there = rows[..., 0] >= 0
    assert set(there.sum(axis=1).tolist()) == set(range(fewest, most + 1))
    assert (rows[~there] == -1).all()
    assert (there[:, :-1] >= there[:, 1:]).all()
    if variation.shapes is not None:
        assert set(rows[there][:, 0].tolist()) == set(range(len(variation.shapes)))


@pytest.mark.parametrize("twin", ["other colours", "colours inverted"])
def test_colours_of_sprites_are_those_the_file_names(twin: str) -> None:
    z = made(twin)
    behind = z["background_rgb"] if "background_rgb" in z else z["background_grey"][:, None].repeat(3, axis=1)
    for image, mask, rows, background in zip(z["images"], z["masks"], z["factors"], z["background"], strict=True):
        named = np.concatenate([behind[background][None], z["color_rgb"][rows[:, 5]]])
        np.testing.assert_array_equal(image, named[mask])
        assert not (named[1:][rows[:, 6] == 1] == named[0]).all(axis=1).any()
    assert set(z["background"].tolist()) == set(range(len(behind)))
    assert set(z["factors"][..., 5].ravel().tolist()) - {-1} == set(range(len(THREE)))


@pytest.mark.parametrize("twin", ["more shapes", "a small canvas"])
def test_masks_of_sprites_are_where_the_factors_say(twin: str) -> None:
    name, variation = TWINS[twin]
    z = made(twin, 10)
    side = z["images"].shape[1]
    for mask, rows in zip(z["masks"], z["factors"].tolist(), strict=True):
        for k, (shape, scale, orientation, x, y, _, present) in enumerate(rows):
            if present != 1:
                continue
            zoom = side / 64
            centre = ((18, 18), (46, 18), (32, 46))[x] if name == "dsprites-adv" else (16 + x * 32 / 31, 16 + y * 32 / 31)
            down, across = np.argwhere(mask == k + 1).T + 0.5
            angle, k_scale = orientation * 2 * math.pi / 39, (0.5 + 0.1 * scale) * zoom
            dx, dy = across - centre[0] * zoom, down - centre[1] * zoom
            u, v = math.cos(angle) * dx - math.sin(angle) * dy, math.sin(angle) * dx + math.cos(angle) * dy
            assert inside(variation.shapes[shape], u / k_scale, v / k_scale).all()


@pytest.mark.parametrize("twin", ["many pieces", "small pieces"])
def test_stored_pieces_pasted_where_the_factors_say_give_the_image(twin: str, tmp_path: Path) -> None:
    name, variation = TWINS[twin]
    path = write_npz(tmp_path / "a.npz", name, 10, 3, variation)
    concepts = open_truth(path).concepts
    with np.load(path) as z:
        for image, mask, rows in zip(z["images"], z["masks"], z["factors"], strict=True):
            canvas = np.zeros(image.shape)
            for k, (shape, colour, y, x) in enumerate(rows[rows[:, 0] >= 0].tolist()):
                piece = concepts[shape]
                place = canvas[y : y + piece.height, x : x + piece.width]
                place += piece.alpha[..., None] * piece.shape * z["color_rgb"][colour]
                assert (mask == k + 1).sum() == 4 * variation.cell**2
            np.testing.assert_allclose(image, canvas, atol=0.51)


def test_tiles_of_other_sizes_have_the_bevel_of_the_usual_one() -> None:
    np.testing.assert_array_equal(tetrominoes.tile(5), tetrominoes.TILE)
    np.testing.assert_array_equal(tetrominoes.tile(3), tetrominoes.TILE[::2, ::2])
    np.testing.assert_array_equal(tetrominoes.tile(10), tetrominoes.TILE.repeat(2, 0).repeat(2, 1))
    assert tetrominoes.tile(8).shape == (8, 8)


# --- shapes -----------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("shape", OUTLINES)
def test_a_shape_ends_within_its_reach_and_reaches_it(shape: str) -> None:
    u, v = np.meshgrid(*[np.linspace(-20, 20, 1601)] * 2)
    across, down = np.abs(u[inside(shape, u, v)]).max(), np.abs(v[inside(shape, u, v)]).max()
    np.testing.assert_allclose((across, down), OUTLINES[shape].reach, atol=0.1)
    np.testing.assert_allclose(shape_patch(shape).sum(), coverage_patch(lambda x, y: inside(shape, x, y), 20, 20).sum(), rtol=1e-6)


def test_areas_are_those_of_the_formulas() -> None:
    to_horns = (12**2 + 7**2 - 10**2) / (2 * 7)
    lens = 12**2 * math.acos(to_horns / 12) + 10**2 * math.acos((7 - to_horns) / 10) - 7 * math.sqrt(12**2 - to_horns**2)
    areas = {
        "ring": math.pi * (11.5**2 - 5.5**2),
        "star": 5 * 6.5 * 14 * math.sin(math.pi / 5),
        "triangle": 3 * math.sqrt(3) / 4 * 14**2,
        "cross": 23**2 - 4 * 7.5**2,
        "moon": math.pi * 12**2 - lens,
    }
    for shape, area in areas.items():
        np.testing.assert_allclose(shape_patch(shape).sum(), area, rtol=5e-3)


@pytest.mark.parametrize("size", [40, 64, 96])
@pytest.mark.parametrize("shape", OUTLINES)
def test_a_true_patch_is_the_sprite_as_it_is_drawn(shape: str, size: int) -> None:
    twin = dsprites.MultiDSprites("bin", Variation(size=size, shapes=(shape,)))
    alpha = twin.dictionary()[0].alpha
    drawn = [twin.render({"factors": np.array([[0, 5, 0, k, 7 * k % 32, -1, 1]])}).masks[0] for k in range(32)]
    np.testing.assert_allclose(np.mean([mask.sum() for mask in drawn]), alpha.sum(), rtol=0.01)
    assert (np.ptp(np.argwhere(drawn[0]), axis=0) <= alpha.shape).all()


# --- what is stored ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("name", "variation"), [*((name, Variation()) for name in BUILT_IN), *TWINS.values()], ids=[*BUILT_IN, *TWINS])
def test_true_concepts_come_back_from_a_file(name: str, variation: Variation, tmp_path: Path) -> None:
    source = SyntheticSource(name, 1, 1, variation)
    path = write_npz(tmp_path / "a.npz", name, 1, 1, variation)
    stored, known = open_truth(path), open_truth(source)
    assert stored is not None and known is not None and stored.concepts is not None and known.concepts is not None
    assert len(stored.concepts) == len(known.concepts)
    for one, other in zip(stored.concepts, known.concepts, strict=True):
        np.testing.assert_array_equal(one.shape, other.shape)
        np.testing.assert_array_equal(one.alpha, other.alpha)
    assert concept_l1_strict(stored.concepts[:1], known.concepts[:1]) == 0
    for i in (0, len(source) - 1):
        np.testing.assert_array_equal(stored.masks(i), known.masks(i))
        np.testing.assert_array_equal(open_source(path).read(i).pixels, source.read(i).pixels)
        for key, value in stored.factors(i).items():
            np.testing.assert_array_equal(value, known.factors(i)[key])


def test_inverted_colours_are_the_truths_too() -> None:
    plain, turned = family("dsprites-color").dictionary(), SyntheticSource("dsprites-color", 1, 0, Variation(inverted=True)).dictionary()
    assert turned is not None
    np.testing.assert_array_equal(turned.hues, 1 - plain.hues)
    np.testing.assert_array_equal(turned[0].shape, plain[0].shape)
    wrap, other = true_dictionary("pattern"), SyntheticSource("pattern", 1, 0, Variation(inverted=True)).dictionary()
    assert other is not None
    np.testing.assert_allclose(other.background.values, 1 - wrap.background.values)
    np.testing.assert_allclose(other[1].shape, 1 - wrap[1].shape)
    z = make("pattern", 1, 0, Variation(inverted=True))
    np.testing.assert_array_equal(z["sprites_rgba"][..., 3], make("pattern", 1)["sprites_rgba"][..., 3])
    np.testing.assert_array_equal(z["sprites_rgba"][..., :3], 255 - make("pattern", 1)["sprites_rgba"][..., :3])


@pytest.mark.parametrize("name", ["tetrominoes", "dsprites-bin", "dsprites-adv"])
def test_dark_shapes_on_white_have_no_patches_to_compare(name: str, tmp_path: Path) -> None:
    path = write_npz(tmp_path / "a.npz", name, 1, 0, Variation(inverted=True))
    truth = open_truth(path)
    assert truth is not None and truth.has_masks and truth.concepts is None
    assert open_truth(SyntheticSource(name, 1, 0, Variation(inverted=True))).concepts is None


@pytest.mark.parametrize("sizes", [[[4, 4]], [[4, 6], [4, 4]], [[0, 4], [4, 4]], [[4.0, 4.0], [4.0, 4.0]]])
def test_sizes_that_do_not_fit_their_patches(sizes: list[list[float]], tmp_path: Path) -> None:
    np.savez(tmp_path / "a.npz", images=np.zeros((1, 8, 8), np.uint8), concepts=np.ones((2, 4, 5, 1), np.float32), concept_sizes=sizes)
    with pytest.raises(InputError, match="concept_sizes for patches of shape"):
        open_truth(tmp_path / "a.npz")


# --- what cannot be ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "choice", "message"),
    [
        ("voxel", {"objects": (1, 5)}, r"voxel has no option objects \(it goes with tetrominoes, dsprites-bin, dsprites-adv, "),
        ("dsprites-bin", {"palette": THREE}, r"with tetrominoes, dsprites-color\); dsprites-bin takes size, inverted, objects, shapes"),
        ("tetrominoes", {"shapes": ("ring",)}, "tetrominoes has no option shapes"),
        ("dsprites-color", {"cell": 8}, r"it goes with tetrominoes\)"),
        ("tetrominoes", {"backgrounds": THREE}, "has no option backgrounds"),
        ("dsprites-bin", {"size": 4096}, "a canvas of 4096 pixels; choose 40 to 1024, or leave it at 64"),
        ("pattern", {"size": 300}, "choose 40 to 246"),
        ("tetrominoes", {"size": 34}, "choose 35 to 1024"),
        ("tetrominoes", {"cell": 2}, "a cell of 2 pixels; choose 3 or more"),
        ("tetrominoes", {"cell": 8}, "for 3 pieces with a cell of 8 pixels the canvas must be 40 pixels or more, not 35; choose a larger"),
        ("tetrominoes", {"cell": 12, "objects": (1, 1)}, "for 1 piece with a cell of 12 pixels the canvas must be 36"),
        ("tetrominoes", {"objects": (1, 7)}, "for 7 pieces with a cell of 5 pixels the canvas must be 38"),
        ("tetrominoes", {"palette": ((0, 0, 0),)}, "black pieces do not show on black"),
        ("dsprites-adv", {"objects": (1, 4)}, "4 objects for 3 places"),
        ("dsprites-bin", {"shapes": ("blob",)}, "no shape 'blob'; choose from square, ellipse, heart, ring, star"),
        ("dsprites-bin", {"shapes": ("ring", "ring")}, "shapes: ring is there twice"),
        ("dsprites-bin", {"shapes": ()}, "shapes: an empty list"),
        ("dsprites-bin", {"objects": (3, 2)}, "objects from 3 to 2; choose 1 to 20"),
        ("dsprites-bin", {"objects": (0, 2)}, "objects from 0 to 2"),
        ("dsprites-bin", {"objects": (1, 21)}, "objects from 1 to 21"),
        ("dsprites-color", {"palette": ((0, 0, 256),)}, "red, green and blue of 0 to 255"),
        ("dsprites-color", {"palette": ((0, 0, 0),)}, r"no colour of the palette shows on the background \(0, 0, 0\)"),
    ],
)  # fmt: skip
def test_choices_that_do_not_go(name: str, choice: dict[str, object], message: str) -> None:
    with pytest.raises(InputError, match=message) as caught:
        family(name, Variation(**choice))
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    "choice",
    [{"objects": (6, 6)}, {"cell": 7}, {"cell": 11, "objects": (1, 1)}, {"size": 48, "cell": 7, "objects": (5, 5)}],
    ids=str,
)
def test_pieces_as_tight_as_may_be_are_soon_placed(choice: dict[str, object]) -> None:
    twin = tetrominoes.Tetrominoes(Variation(**choice))
    for seed in range(20):
        assert (twin.draw(np.random.default_rng(seed))["factors"][:, 0] >= 0).all()
