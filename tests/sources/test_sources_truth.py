"""Truth beside images, apart from them: by prefix, by slice, by scene, from generators."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from pictolex.errors import InputError
from pictolex.sources import BUILT_IN, open_source
from pictolex.sources.families.variation import Variation
from pictolex.sources.synthetic import make, true_dictionary, write_npz
from pictolex.sources.truth import Truth, open_truth

DRAWN = ("tetrominoes", "dsprites-bin", "dsprites-adv", "dsprites-color")
needs_data = pytest.mark.skipif("PICTOLEX_DATA" not in os.environ, reason="PICTOLEX_DATA names no folder of data sets")


@pytest.mark.parametrize("name", BUILT_IN)
def test_generated_truth_is_that_of_the_images(name: str, tmp_path: Path) -> None:
    truth = open_truth(name, count=2, seed=5)
    stored = open_truth(write_npz(tmp_path / "a.npz", name, 2, 5))
    source = open_source(name, count=2, seed=5)
    assert truth is not None and stored is not None
    assert len(truth) == len(stored) == len(source)
    for i in (0, len(truth) - 1):
        mask = truth.masks(i)
        assert mask is not None and mask.shape == source.shape(i)[:2]
        np.testing.assert_array_equal(mask, stored.masks(i))
    assert truth.concepts is not None and truth.dictionary is not None and truth.factors is not None and stored.factors is not None
    for key, value in stored.factors(len(stored) - 1).items():
        np.testing.assert_array_equal(truth.factors(len(truth) - 1)[key], value)


def test_prefixes_and_slices(tmp_path: Path) -> None:
    path = tmp_path / "a.npz"
    images = np.zeros((6, 4, 4), np.uint8)
    labels = np.arange(6)
    masks = np.arange(6, dtype=np.uint8)[:, None, None].repeat(4, 1).repeat(4, 2)
    np.savez(path, train_images=images, train_labels=labels, train_masks=masks, images=images, labels=np.array(list("bababa")))
    truth = open_truth(f"{path}:train_images[2:4]")
    assert truth is not None and truth.labels is not None
    np.testing.assert_array_equal(truth.labels, [2, 3])
    np.testing.assert_array_equal(truth.masks(1), masks[3])
    plain = open_truth(path)
    assert plain is not None and plain.labels is not None
    np.testing.assert_array_equal(plain.labels, [1, 0, 1, 0, 1, 0])
    assert plain.masks(0) is None and not plain.has_masks
    other = open_truth(path, masks=f"{path}:train_masks")
    assert other is not None
    np.testing.assert_array_equal(other.masks(4), masks[4])
    assert truth.take([1]).masks(0)[0, 0] == 3  # type: ignore[index]


def test_parts_and_slices_of_generated_sets() -> None:
    whole = open_truth("tetrominoes", seed=1)
    part = open_truth("tetrominoes[3:9:2]", seed=1)
    taken = open_truth(open_source("tetrominoes", seed=1).take([0, 5]))
    assert whole is not None and part is not None and taken is not None
    np.testing.assert_array_equal(part.masks(1), whole.masks(5))
    np.testing.assert_array_equal(taken.masks(1), whole.masks(5))


def test_concepts_in_a_file(tmp_path: Path) -> None:
    rgba = np.random.default_rng(0).integers(0, 255, (3, 5, 7, 4), dtype=np.uint8)
    np.savez(tmp_path / "a.npz", images=np.zeros((2, 8, 8), np.uint8), concepts=rgba)
    truth = open_truth(tmp_path / "a.npz")
    assert truth is not None and truth.concepts is not None
    assert [(c.height, c.width, c.channels) for c in truth.concepts] == [(5, 7, 3)] * 3
    np.testing.assert_allclose(truth.concepts[1].alpha, rgba[1, ..., 3] / 255, atol=1e-6)


def test_no_truth_is_none(tmp_path: Path) -> None:
    np.savez(tmp_path / "a.npz", images=np.zeros((2, 8, 8), np.uint8))
    assert open_truth(tmp_path / "a.npz") is None
    assert open_truth(tmp_path) is None
    assert open_truth(np.zeros((2, 8, 8))) is None


def test_bad_truth(tmp_path: Path) -> None:
    path = tmp_path / "a.npz"
    images = np.zeros((3, 4, 4), np.uint8)
    for arrays, message in (
        ({"masks": np.zeros((2, 4, 4), np.uint8)}, "2 masks for 3 images"),
        ({"masks": np.zeros((3, 4, 5), np.uint8)}, "masks of shape .* for images of 4x4"),
        ({"masks": np.zeros((3, 4, 4))}, "masks of type float64"),
        ({"labels": np.zeros((3, 2))}, "expected one an image"),
        ({"concepts": np.zeros(3)}, "expected concepts x height x width"),
    ):
        np.savez(path, images=images, **arrays)
        with pytest.raises(InputError, match=message):
            open_truth(path)
    np.savez(path, images=images, truth=np.zeros((2, 4, 4), np.uint8))
    with pytest.raises(InputError, match=r"2 masks for 10000 images; take the same part"):
        open_truth("tetrominoes", masks=f"{path}:truth")
    with pytest.raises(InputError, match=r"expected FILE\.npz:KEY"):
        open_truth("tetrominoes", masks="truth.png")


def save(path: Path, arrays: dict[str, np.ndarray], *left_out: str, **changed: np.ndarray) -> Path:
    """A file of some of the arrays."""
    np.savez(path, **{key: value for key, value in {**arrays, **changed}.items() if key not in left_out})
    return path


def known(path: Path, part: str = "") -> Truth:
    truth = open_truth(f"{path}{part}")
    assert truth is not None
    return truth


def assert_same_patches(found: Truth, name: str) -> None:
    assert found.concepts is not None
    for one, other in zip(found.concepts, true_dictionary(name), strict=True):
        assert one.id == other.id
        np.testing.assert_allclose(one.shape * one.alpha[..., None], other.shape * other.alpha[..., None], atol=1 / 255)


@pytest.mark.parametrize("name", BUILT_IN)
def test_classes_are_those_of_the_generator_by_instance_id(name: str, tmp_path: Path) -> None:
    truth, stored = open_truth(name, count=3, seed=2), known(write_npz(tmp_path / "a.npz", name, 3, 2))
    dictionary = true_dictionary(name)
    assert truth is not None and truth.factors is not None
    assert truth.class_count == stored.class_count == len(dictionary)
    for i in range(len(truth)):
        rows, classes = next(iter(truth.factors(i).values())), truth.classes(i)
        assert classes is not None
        np.testing.assert_array_equal(classes, np.maximum(rows[:, 0], -1))
        np.testing.assert_array_equal(classes, stored.classes(i))
        assert classes[np.setdiff1d(truth.masks(i), [0]).astype(int) - 1].min() >= 0
    part = truth.take([2])
    np.testing.assert_array_equal(part.classes(0), truth.classes(2))
    assert part.class_count == truth.class_count and part.concepts == truth.concepts


@pytest.mark.parametrize("name", DRAWN)
def test_a_set_is_known_by_the_recipe_that_draws_its_images(name: str, tmp_path: Path) -> None:
    arrays = make(name, 3, 7)
    bare = {key: arrays[key] for key in ("images", "masks", "factors")}
    found = known(save(tmp_path / "a.npz", bare), "[1:]")
    assert_same_patches(found, name)
    assert found.dictionary is not None and (found.dictionary.hues is None) == (true_dictionary(name).hues is None)
    np.testing.assert_array_equal(found.classes(1), arrays["factors"][2][:, 0])


def test_a_set_that_is_only_like_a_built_in_one_is_not_taken_for_it(tmp_path: Path) -> None:
    arrays = make("dsprites-bin", 3, 7)
    bare = {key: arrays[key] for key in ("images", "masks", "factors")}
    moved = np.roll(arrays["masks"], 1, axis=2)
    column, shapeless = bare["factors"].copy(), bare["factors"].copy()
    column[..., 0], shapeless[..., 0] = 7, -1
    for changed in (
        {"images": 255 - arrays["images"]},
        {"masks": moved},
        {"masks": np.zeros_like(moved)},
        {"factors": column},
        {"factors": bare["factors"][..., :4]},
        {"factors": bare["factors"].astype(np.float32)},
        {"factors": bare["factors"][:, 0]},
        {"images": arrays["images"][:, :50, :50], "masks": arrays["masks"][:, :50, :50]},
    ):
        found = known(save(tmp_path / "a.npz", bare, **changed))
        assert found.concepts is None and found.classes(0) is None and found.class_count == 0
    # Who names the shapes says what the first column is; the patches stay unknown.
    names = np.array(["disc", "star", "moon"])
    found = known(save(tmp_path / "a.npz", bare, masks=moved, shape_names=names))
    assert found.concepts is None and found.class_count == 3
    np.testing.assert_array_equal(found.classes(1), bare["factors"][1][:, 0])
    assert known(save(tmp_path / "a.npz", bare, masks=moved, shape_names=names[:2])).classes(0) is None


def test_patches_in_the_file_come_before_those_of_a_recipe(tmp_path: Path) -> None:
    arrays = make("tetrominoes", 2, 1, Variation(size=40, cell=4))
    assert known(save(tmp_path / "a.npz", arrays, "concepts", "concept_sizes")).concepts is None
    found = known(save(tmp_path / "a.npz", arrays))
    assert found.concepts is not None and max(c.height for c in found.concepts) == 12


def test_voxel_densities_are_patches(tmp_path: Path) -> None:
    arrays = make("voxel", 1, 1)
    assert_same_patches(known(save(tmp_path / "a.npz", arrays, "concepts")), "voxel")
    assert known(save(tmp_path / "a.npz", arrays, "concepts", shapes=arrays["shapes"][0])).concepts is None


def test_placements_of_a_pattern_and_how_much_of_each_shows(tmp_path: Path) -> None:
    arrays = make("pattern", 2, 3)
    truth, bare = open_truth("pattern", seed=3), save(tmp_path / "a.npz", arrays, "concepts", "concept_sizes", "motif_names")
    assert truth is not None
    rows, found = truth.placements(1), known(bare)
    assert rows is not None and found.concepts is not None
    drawn = arrays["placements"][1]
    drawn = drawn[drawn[:, 0] >= 0]
    np.testing.assert_array_equal(rows[:, :3], drawn)
    np.testing.assert_array_equal(rows[:, 3], [(arrays["masks"][1] == k + 1).sum() for k in range(len(drawn))])
    # The file's sprites are numbered anew: the same patch for the same motif.
    for motif, concept in np.unique(np.column_stack([drawn[:, 0], found.placements(1)[:, 0]]), axis=0).tolist():
        np.testing.assert_allclose(found.concepts[concept].alpha, arrays["sprites_rgba"][motif, ..., 3] / 255, atol=1e-6)
    assert open_truth("tetrominoes").placements(0) is None
    assert known(save(tmp_path / "b.npz", arrays, "masks")).placements(0) is None


def test_every_image_may_have_motifs_of_its_own(tmp_path: Path) -> None:
    arrays = make("pattern", 3, 3)
    own = np.stack([arrays["sprites_rgba"]] * 3)
    own[1] = own[1][::-1]
    own[2, :, ..., 0] = 99
    path = save(tmp_path / "a.npz", arrays, "concepts", "concept_sizes", "motif_names", sprites_rgba=own)
    whole = known(path)
    assert whole.concepts is not None and whole.class_count == len(whole.concepts) == 4
    for i in range(3):
        for part in (known(path, f"[{i}]"), whole.take([i])):
            assert part.concepts is not None and part.class_count == 2
            patches = {concept.id: concept for concept in part.concepts}
            rows = part.placements(0)
            assert rows is not None and set(rows[:, 0].tolist()) == set(patches)
            motif = arrays["placements"][i, 0, 0]
            np.testing.assert_allclose(patches[int(rows[0, 0])].alpha, own[i, motif, ..., 3] / 255, atol=1e-6)
    assert known(path, "[:2]").class_count == 2 and known(path, "[1:]").class_count == 4


def test_masks_kept_elsewhere_have_other_instances(tmp_path: Path) -> None:
    path = write_npz(tmp_path / "a.npz", "pattern", 2, 3)
    truth = open_truth(path, masks=f"{path}:masks")
    assert truth is not None and truth.has_masks and truth.concepts is not None
    assert truth.classes(0) is None and truth.placements(0) is None


@needs_data
@pytest.mark.parametrize(
    ("file", "name", "classes"),
    [
        ("tetrominoes_recreated.npz", "tetrominoes", 17),
        ("multi_dsprites_bin_recreated.npz", "dsprites-bin", 3),
        ("multi_dsprites_adv_recreated.npz", "dsprites-adv", 3),
        ("multi_dsprites_color_recreated.npz", "dsprites-color", 3),
        ("voxel_scenes_3d.npz", "voxel", 4),
    ],
)
def test_the_shared_sets_are_known(file: str, name: str, classes: int) -> None:
    truth = known(Path(os.environ["PICTOLEX_DATA"]) / file, "[-3:]")
    assert_same_patches(truth, name)
    assert truth.class_count == classes and truth.classes(0) is not None


@needs_data
def test_the_shared_pattern_has_two_motifs_an_image() -> None:
    path = Path(os.environ["PICTOLEX_DATA"]) / "xmas_pattern.npz"
    # One of them is in two images.
    assert known(path).class_count == 5
    truth = known(path, "[1]")
    rows = truth.placements(0)
    assert truth.concepts is not None and len(truth.concepts) == 2 and rows is not None
    assert len(rows) == 36 and int((rows[:, 3] > 0).sum()) == 33


def test_opening_images_loads_no_truth_and_no_torch() -> None:
    code = (
        "import sys; from pictolex.sources import open_source; open_source('tetrominoes').read(0);"
        "bad = {'pictolex.sources.truth', 'pictolex.metrics', 'torch', 'PIL', 'pyarrow', 'scipy'} & set(sys.modules); assert not bad, bad"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
