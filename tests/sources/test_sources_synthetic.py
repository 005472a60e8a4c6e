"""Generated sets: the recipes reproduce the published files pixel by pixel, and what is drawn is distributed as in them."""

from __future__ import annotations

import os
import warnings
from pathlib import Path

import numpy as np
import pytest

from pictolex.errors import InputError, OutputError
from pictolex.sources import BUILT_IN, Source, open_source
from pictolex.sources.families import dsprites, pattern, shapes, tetrominoes, voxel
from pictolex.sources.families.variation import Variation
from pictolex.sources.synthetic import SyntheticSource, make, true_dictionary, write_npz

needs_data = pytest.mark.skipif("PICTOLEX_DATA" not in os.environ, reason="PICTOLEX_DATA names no folder of data sets")


def data(name: str) -> dict[str, np.ndarray]:
    path = Path(os.environ["PICTOLEX_DATA"]) / name
    if not path.exists():
        pytest.skip(f"{path} is not there")
    with np.load(path) as file:
        return {key: file[key] for key in file.files}


# --- against the published files -------------------------------------------------------------------------------------------


@needs_data
def test_tetrominoes_are_pixel_exact() -> None:
    z = data("tetrominoes_recreated.npz")
    recipe = tetrominoes.Tetrominoes()
    for i in range(1000):
        scene = recipe.render({"factors": z["factors"][i]})
        np.testing.assert_array_equal(scene.images[0], z["images"][i])
        np.testing.assert_array_equal(scene.masks[0], z["masks"][i])
    assert list(recipe.constants()["shape_names"]) == list(z["shape_names"])
    np.testing.assert_array_equal(recipe.constants()["color_rgb"], z["color_rgb"])
    np.testing.assert_array_equal(tetrominoes.TILE, data("multi_object_official_preview.npz")["tetrominoes_tile"])


@needs_data
@pytest.mark.parametrize("variant", ["bin", "adv", "color"])
def test_multi_dsprites_are_pixel_exact(variant: dsprites.Variant) -> None:
    z = data(f"multi_dsprites_{variant}_recreated.npz")
    recipe = dsprites.MultiDSprites(variant)
    for i in range(1000):
        factors = {"factors": z["factors"][i]}
        if variant == "color":
            grey = z["images"][i][z["masks"][i] == 0][0, 0]
            factors["background"] = np.flatnonzero(grey == dsprites.GREYS)[0]
        scene = recipe.render(factors)
        np.testing.assert_array_equal(scene.images[0], z["images"][i])
        np.testing.assert_array_equal(scene.masks[0], z["masks"][i])


@needs_data
def test_dsprites_templates_are_pixel_exact() -> None:
    z = data("dsprites_reconstructed.npz")
    recipe = dsprites.MultiDSprites()
    for shape, scale, orientation in np.ndindex(3, 6, 40):
        row = [shape, scale, orientation, 16, 16, -1, 1]
        drawn = recipe.render({"factors": np.array([row])}).masks[0]
        np.testing.assert_array_equal(drawn, z["templates"][shape, scale, orientation])
    np.testing.assert_array_equal(shapes.heart_outline()[0], z["heart_outline_angle"])
    np.testing.assert_array_equal(shapes.heart_outline()[1], z["heart_outline_radius"])


@needs_data
def test_voxel_views_are_pixel_exact() -> None:
    z = data("voxel_scenes_3d.npz")
    recipe = voxel.Voxel()
    np.testing.assert_array_equal(voxel.solids(), z["shapes"])
    np.testing.assert_allclose(recipe.view_matrices, z["view_matrices"], atol=1e-6)
    assert list(recipe.view_names) == list(z["view_names"])
    for i in range(2):
        scene = recipe.render({"placements": z["placements"][i]})
        np.testing.assert_array_equal(scene.images, z["images"][i])
        np.testing.assert_array_equal(scene.factors["voxels"], z["voxels"][i])
        assert (scene.masks != z["masks"][i]).mean() < 5e-4


@needs_data
def test_pattern_layout_and_blending_are_those_of_the_file(monkeypatch: pytest.MonkeyPatch) -> None:
    z = data("xmas_pattern.npz")
    for i, background in enumerate(([150, 20, 30], [245, 235, 215], [20, 60, 45])):
        sprites = z["sprites_rgba"][i]
        monkeypatch.setattr(pattern, "sprites", lambda sprites=sprites: sprites)
        monkeypatch.setattr(pattern, "BACKGROUND", np.array(background, np.uint8))
        scene = pattern.Pattern().render({"placements": z["placements"][i]})
        np.testing.assert_array_equal(scene.masks[0], z["masks"][i])
        assert np.abs(scene.images[0].astype(int) - z["images"][i]).max() <= 1
        drawn = pattern.Pattern().draw(np.random.default_rng(i))["placements"]
        stored = z["placements"][i]
        assert drawn.shape == stored.shape
        assert abs(int((drawn[:, 0] >= 0).sum()) - int((stored[:, 0] >= 0).sum())) <= 3


def shares(values: np.ndarray, bins: range) -> np.ndarray:
    return np.array([(values == b).mean() for b in bins])


@needs_data
@pytest.mark.parametrize("variant", ["bin", "adv", "color"])
def test_multi_dsprites_are_distributed_as_the_file(variant: dsprites.Variant) -> None:
    stored = data(f"multi_dsprites_{variant}_recreated.npz")["factors"]
    recipe = dsprites.MultiDSprites(variant)
    rng = np.random.default_rng(5)
    drawn = [recipe.draw(rng) for _ in range(4000)]
    rows = np.stack([f["factors"] for f in drawn])
    assert abs((rows[:, 2, 6] == 1).mean() - (stored[:, 2, 6] == 1).mean()) < 0.04
    present, there = rows[rows[..., 6] == 1], stored[stored[..., 6] == 1]
    for column in range(6):
        bins = range(-1, 40)
        assert np.abs(shares(present[:, column], bins) - shares(there[:, column], bins)).max() < 0.03
    if variant == "adv":
        assert all(len(set(f[f[:, 6] == 1][:, 3].tolist())) == (f[:, 6] == 1).sum() for f in rows)
    if variant == "color":
        scenes = [(f["background"], f["factors"][f["factors"][:, 6] == 1][:, 5]) for f in drawn]
        assert all(not (b == 0 and 0 in c) and not (b == 7 and 7 in c) for b, c in scenes)
        assert np.abs(shares(np.array([b for b, _ in scenes]), range(8)) - 1 / 8).max() < 0.03


@needs_data
def test_tetrominoes_are_distributed_as_the_file() -> None:
    stored = data("tetrominoes_recreated.npz")["factors"]
    rng = np.random.default_rng(5)
    rows = np.stack([tetrominoes.Tetrominoes().draw(rng)["factors"] for _ in range(4000)])
    for k in range(3):
        for column, bins in ((0, range(17)), (1, range(6)), (2, range(26)), (3, range(26))):
            assert np.abs(shares(rows[:, k, column], bins) - shares(stored[:, k, column], bins)).max() < 0.025


# --- by themselves ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", BUILT_IN)
def test_every_set_streams_reproducibly(name: str) -> None:
    source = open_source(name, seed=3)
    assert isinstance(source, Source)
    some = min(len(source) - 1, 25)
    later, earlier = source.read(some), source.read(0)
    again = open_source(name, seed=3)
    np.testing.assert_array_equal(again.read(0).pixels, earlier.pixels)
    np.testing.assert_array_equal(again.read(some).pixels, later.pixels)
    assert later.pixels.shape == source.shape(some)
    assert not np.array_equal(earlier.pixels, open_source(name, seed=4).read(0).pixels)
    assert name in source.describe() and source.names[0].startswith(name)


def test_counts_and_slices_of_built_in_sets() -> None:
    assert len(open_source("tetrominoes")) == 10_000
    assert len(open_source("tetrominoes", count=7)) == 7
    part = open_source("tetrominoes[5:8]", seed=1)
    assert list(part.names) == ["tetrominoes-5", "tetrominoes-6", "tetrominoes-7"]
    np.testing.assert_array_equal(part.read(2).pixels, open_source("tetrominoes", seed=1).read(7).pixels)
    assert (len(open_source("voxel", count=2)), open_source("voxel", count=2).views) == (40, 20)
    assert open_source("voxel[3:4]").names[0] == "voxel-3/front_0"


@pytest.mark.parametrize("name", BUILT_IN)
def test_masks_say_where_objects_are(name: str) -> None:
    made = make(name, 2, seed=0)
    images, masks = made["images"], made["masks"]
    assert images.dtype == masks.dtype == np.uint8
    assert masks.shape == images.shape[: masks.ndim]
    assert masks.max() >= 2
    if name in ("tetrominoes", "dsprites-bin", "dsprites-adv"):
        lit = images.reshape(*masks.shape, -1).any(axis=-1)
        np.testing.assert_array_equal(lit, masks > 0)


def test_adversarial_objects_do_not_overlap() -> None:
    recipe = dsprites.MultiDSprites("adv")
    alone = [
        recipe.render({"factors": np.array([[shape, 2, o, place, place, -1, 1]])}).masks[0]
        for place in range(3)
        for shape in range(3)
        for o in range(40)
    ]
    reach = [np.any(alone[120 * p : 120 * p + 120], axis=0) for p in range(3)]
    assert not (reach[0] & reach[1]).any() and not (reach[0] & reach[2]).any() and not (reach[1] & reach[2]).any()


@pytest.mark.parametrize("name", BUILT_IN)
def test_other_canvases_and_inverted(name: str) -> None:
    plain = SyntheticSource(name, 1, 0, Variation(size=48))
    inverted = SyntheticSource(name, 1, 0, Variation(size=48, inverted=True))
    assert plain.shape(0)[:2] == (48, 48)
    np.testing.assert_array_equal(255 - plain.scene(0).images, inverted.scene(0).images)
    np.testing.assert_array_equal(plain.scene(0).masks, inverted.scene(0).masks)


def test_written_files_read_back(tmp_path: Path) -> None:
    path = write_npz(tmp_path / "t.npz", "tetrominoes", 3, 1)
    source = open_source(path)
    for i in range(3):
        np.testing.assert_array_equal(source.read(i).pixels, open_source("tetrominoes", seed=1).read(i).pixels)
    with np.load(path) as file:
        assert set(file.files) == {"images", "masks", "factors", "shape_names", "color_rgb", "concepts", "concept_sizes"}
        assert file["factors"].shape == (3, 3, 4)
    voxels = write_npz(tmp_path / "v.npz", "voxel", 1)
    np.testing.assert_array_equal(open_source(voxels).read(7).pixels, open_source("voxel").read(7).pixels)
    assert open_source(voxels).names[7] == "v-0/left_1"


@needs_data
@pytest.mark.parametrize(
    ("name", "file"),
    [
        ("tetrominoes", "tetrominoes_recreated.npz"),
        ("dsprites-bin", "multi_dsprites_bin_recreated.npz"),
        ("dsprites-color", "multi_dsprites_color_recreated.npz"),
        ("voxel", "voxel_scenes_3d.npz"),
        ("pattern", "xmas_pattern.npz"),
    ],
)
def test_written_keys_are_those_of_the_published_files(name: str, file: str) -> None:
    made, stored = make(name, 1), data(file)
    assert {k for k in stored if k != "sprites_rgba"} <= set(made)
    for key in set(stored) & set(made) - {"sprites_rgba"}:
        assert made[key].dtype == stored[key].dtype or made[key].dtype.kind == "U"
        assert made[key].shape[1:] == stored[key].shape[1:]


def test_bad_requests(tmp_path: Path) -> None:
    for call, message in (
        (lambda: make("tetris", 1), "no such built-in set; choose one of tetrominoes"),
        (lambda: make("voxel", 0), "ask for at least 1"),
        (lambda: make("voxel", 1, -1), "seed -1"),
        (lambda: make("voxel", 1, 0, Variation(size=3)), "a canvas of 3 pixels; choose 40"),
        (lambda: write_npz(tmp_path / "a.png", "voxel", 1), "data sets are .npz files"),
    ):
        with pytest.raises(InputError, match=message):
            call()
    (tmp_path / "file").write_text("x")
    with pytest.raises(OutputError):
        write_npz(tmp_path / "file" / "a.npz", "tetrominoes", 1)


# --- true dictionaries -----------------------------------------------------------------------------------------------------


def test_true_dictionaries() -> None:
    expected = {"tetrominoes": (17, 6), "dsprites-bin": (3, 0), "dsprites-adv": (3, 0), "dsprites-color": (3, 8)}
    for name, (concepts, hues) in {**expected, "pattern": (2, 0), "voxel": (4, 0)}.items():
        dictionary = true_dictionary(name)
        assert len(dictionary) == concepts
        assert (0 if dictionary.hues is None else len(dictionary.hues)) == hues
        assert all(concept.alpha.any() for concept in dictionary)


def test_dsprites_patches_have_the_recipes_areas_in_odd_patches_just_large_enough() -> None:
    square, ellipse, heart = (concept.alpha for concept in true_dictionary("dsprites-bin"))
    assert (square.shape, ellipse.shape) == ((21, 21), (15, 27))
    np.testing.assert_allclose(square.sum(), 19.2**2, rtol=1e-3)
    np.testing.assert_allclose(ellipse.sum(), np.pi * 12.8 * 7.2, rtol=1e-3)
    angle, radius = shapes.heart_outline()
    np.testing.assert_allclose(heart.sum(), (radius**2).mean() * (angle[-1] - angle[0]), rtol=0.01)
    for patch in (square, ellipse, heart):
        assert all(side % 2 == 1 for side in patch.shape)
        np.testing.assert_allclose(patch, patch[:, ::-1], atol=1e-6)
    for patch in (square, ellipse):
        assert patch[0].any() and patch[:, 0].any()


@pytest.mark.parametrize("name", ["tetrominoes", "pattern"])
def test_true_patches_pasted_where_the_factors_say_give_the_image(name: str) -> None:
    made, dictionary = make(name, 1, seed=2), true_dictionary(name)
    rows = made["factors"][0] if name == "tetrominoes" else made["placements"][0]
    side = made["images"].shape[1]
    canvas = np.zeros((side + 60, side + 60, 3))
    if dictionary.background.values is not None:
        canvas[:] = dictionary.background.values
    for row in rows.tolist():
        if row[0] < 0:
            continue
        concept = dictionary[row[0]]
        y, x = row[-2] + 30, row[-1] + 30
        hue = dictionary.hues[row[1]] if dictionary.hues is not None else np.ones(3)
        place = canvas[y : y + concept.height, x : x + concept.width]
        place[:] = concept.alpha[..., None] * concept.shape * hue + (1 - concept.alpha[..., None]) * place
    np.testing.assert_allclose(canvas[30:-30, 30:-30], made["images"][0] / 255, atol=0.51 / 255)


def test_generating_warns_of_nothing() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for name in BUILT_IN:
            open_source(name).read(0)
