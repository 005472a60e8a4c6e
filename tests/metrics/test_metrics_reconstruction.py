"""MSE, PSNR and explained variance by their definitions; opacity on mid grey."""

from __future__ import annotations

import math

import numpy as np
import pytest

from pictolex.errors import InputError
from pictolex.metrics import Tally, image_mse, psnr


def test_figures_by_definition() -> None:
    rng = np.random.default_rng(0)
    images, rebuilt = rng.random((2, 5, 6, 7, 3)).astype(np.float32)
    tally = Tally()
    for image, result in zip(images, rebuilt, strict=True):
        tally.add(image, result)
    figures = tally.figures()
    assert figures is not None
    mse = ((images.astype(float) - rebuilt) ** 2).mean()
    assert figures.images == 5
    assert figures.mse == pytest.approx(mse)
    assert figures.psnr == pytest.approx(10 * math.log10(1 / mse))
    spread = ((images - images.astype(float).mean(axis=(0, 1, 2))) ** 2).mean()
    assert figures.explained_variance == pytest.approx(1 - mse / spread, rel=1e-6)


def test_mse_is_the_mean_over_images_of_any_size() -> None:
    tally = Tally()
    tally.add(np.ones((2, 2)), np.zeros((2, 2)))
    tally.add(np.ones((20, 20)), np.ones((20, 20)))
    figures = tally.figures()
    assert figures is not None and figures.mse == 0.5


def test_perfect_flat_and_empty() -> None:
    assert Tally().figures() is None
    tally = Tally()
    tally.add(np.full((4, 4, 3), 0.3), np.full((4, 4, 3), 0.3))
    figures = tally.figures()
    assert figures is not None
    assert (figures.mse, figures.psnr, figures.explained_variance) == (0, math.inf, None)
    assert psnr(0.01) == pytest.approx(20)


def test_opacity_is_composited_on_mid_grey_alike() -> None:
    image, rebuilt = np.zeros((2, 2, 1)), np.ones((2, 2, 1))
    opacity = np.array([[1, 0], [0.5, 0]])
    assert image_mse(image, rebuilt, opacity) == pytest.approx((1 + 0.25) / 4)
    assert image_mse(image, rebuilt, opacity, np.zeros((2, 2))) == pytest.approx((0.25 + 0.0625) / 4)


def test_shapes_must_agree() -> None:
    with pytest.raises(InputError, match=r"\(2, 2, 1\).*\(2, 3, 1\)"):
        image_mse(np.zeros((2, 2)), np.zeros((2, 3)))
