"""Truth beside images, apart from them: by prefix, by slice, by scene, from generators."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from pictolex.errors import InputError
from pictolex.sources import BUILT_IN, open_source
from pictolex.sources.synthetic import write_npz
from pictolex.sources.truth import open_truth


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


def test_opening_images_loads_no_truth_and_no_torch() -> None:
    code = (
        "import sys; from pictolex.sources import open_source; open_source('tetrominoes').read(0);"
        "bad = {'pictolex.sources.truth', 'pictolex.metrics', 'torch', 'PIL', 'pyarrow', 'scipy'} & set(sys.modules); assert not bad, bad"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
