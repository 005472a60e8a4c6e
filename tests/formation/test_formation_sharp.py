"""Edges of turned concepts against Pillow drawing the turned shape itself, supersampled; blurred ones against what they were."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import pytest
import torch
from scipy import ndimage

from drawn import Placed, concept, coverage
from pictolex.formation import Additive, Alpha, pack, sample
from pictolex.formation.alpha import sharpened

SHARPNESS = 1.5
# Of shapes at random places and rotations: error as a share of the area (mean), and error of the worst pixel (mean over the places).
BOUNDS = {"ell": (0.06, 0.33), "ellipse": (0.045, 0.25), "square": (0.06, 0.305), "bar": (0.07, 0.295)}


def errors(kind: str, sharpness: float) -> tuple[float, float, float]:
    """Error over the area, the worst pixel on average, and the worst of all."""
    rng = np.random.default_rng(0)
    patches, formation = pack([concept(0, kind, 23)]), Alpha(1, sharpness)
    shares, worst = [], []
    for _ in range(60):
        placed = Placed(kind, 14 + rng.random(), 14 + rng.random(), rng.random() * 2 * math.pi)
        truth = coverage(placed, 30, 30)
        pose = torch.tensor([[placed.x, placed.y, placed.rotation, 0.0, 0.0]])
        ours = formation.sheet(sample(patches, torch.tensor([0]), pose, 30, 30))[0, -1].numpy()
        wrong = np.abs(ours - truth)
        shares.append(wrong.sum() / truth.sum())
        worst.append(wrong.max())
    return float(np.mean(shares)), float(np.mean(worst)), float(np.max(worst))


@pytest.mark.parametrize("kind", BOUNDS)
def test_squashed_edges_are_as_sharp_as_drawn_ones_where_plain_resampling_is_not(kind: str) -> None:
    share, typical = BOUNDS[kind]
    sharp, plain = errors(kind, SHARPNESS), errors(kind, 1.0)
    assert sharp[0] < share < plain[0]
    assert sharp[1] < typical < plain[1]
    assert sharp[2] < 0.5
    assert sharp[0] < 0.55 * plain[0]


@pytest.mark.parametrize("kind", BOUNDS)
def test_unturned_patches_at_whole_positions_are_the_drawing(kind: str) -> None:
    pose = torch.tensor([[15.5, 13.5, 0.0, 0.0, 0.0]])
    ours = Alpha().sheet(sample(pack([concept(0, kind, 23)]), torch.tensor([0]), pose, 30, 30))[0, -1].numpy()
    np.testing.assert_allclose(ours, coverage(Placed(kind, 15.5, 13.5), 30, 30), atol=1e-5)


def test_turning_the_other_way_would_be_seen() -> None:
    """The drawing and the sampling agree on which way is counter-clockwise, and on mirrors."""
    for mirror in (False, True):
        placed = Placed("ell", 15.0, 15.0, 0.7, 1.2, mirror=mirror)
        truth = coverage(placed, 30, 30)

        def wrong(rotation: float, scale: float, flip: bool, truth: np.ndarray = truth) -> float:
            pose = torch.tensor([[15.0, 15.0, rotation, math.log(scale), float(flip)]])
            ours = sample(pack([concept(0, "ell", 23)]), torch.tensor([0]), pose, 30, 30)[0, -1].numpy()
            return float(np.abs(ours - truth).sum() / truth.sum())

        assert wrong(0.7, 1.2, mirror) < 0.12
        assert wrong(-0.7, 1.2, mirror) > 0.3
        assert wrong(0.7, 1.0, mirror) > 0.3
        assert wrong(0.7, 1.2, not mirror) > 0.3


SAMPLES, SIDE, RIM = 16, 28, 5
Inside = Callable[[np.ndarray, np.ndarray], np.ndarray]


def half_plane(turn: float, away: float) -> Inside:
    return lambda x, y: (x - 14 - away) * math.cos(turn) + (y - 14) * math.sin(turn) < 0


def disc(radius: float, away: float) -> Inside:
    return lambda x, y: np.hypot(x - 14 - away, y - 14 + away / 2) < radius


def square(turn: float, away: float) -> Inside:
    def inside(x: np.ndarray, y: np.ndarray) -> np.ndarray:
        u, v = x - 14 - away, y - 14
        return np.maximum(np.abs(math.cos(turn) * u + math.sin(turn) * v), np.abs(math.cos(turn) * v - math.sin(turn) * u)) < 7

    return inside


def covered_and_blurred(inside: Inside, width: float) -> tuple[np.ndarray, np.ndarray]:
    """Coverage of pixels counted at fine points, and the same of what a Gaussian of so many pixels has blurred."""
    y, x = (np.mgrid[0 : SIDE * SAMPLES, 0 : SIDE * SAMPLES] + 0.5) / SAMPLES
    fine = inside(x, y).astype(float)
    blurred = ndimage.gaussian_filter(fine, width * SAMPLES, mode="nearest")
    return tuple(f.reshape(SIDE, SAMPLES, SIDE, SAMPLES).mean((1, 3)) for f in (fine, blurred))  # type: ignore[return-value]


def settled(alpha: np.ndarray) -> np.ndarray:
    return sharpened(torch.from_numpy(alpha).float()[None])[0].numpy()


@pytest.mark.parametrize("width", [0.4, 0.7, 1.0, 1.3])
@pytest.mark.parametrize("turn", [0.0, 0.2, 0.5, math.pi / 4, 2.0, 4.0])
def test_a_blurred_half_plane_comes_back(turn: float, width: float) -> None:
    for away in (0.0, 0.3, 0.5):
        truth, blurred = covered_and_blurred(half_plane(turn, away), width)
        # What is blurred is replicated beyond the patch: its corners are another question.
        inner = (slice(RIM, -RIM), slice(RIM, -RIM))
        wrong = np.abs(settled(blurred) - truth)[inner]
        assert wrong.max() < 0.12
        if width > 0.5:
            assert wrong.max() < 0.6 * np.abs(blurred - truth)[inner].max()


@pytest.mark.parametrize("width,worst", [(0.4, 0.12), (0.7, 0.12), (1.0, 0.17), (1.3, 0.24)])
@pytest.mark.parametrize("radius", [5.6, 8.3])
def test_a_blurred_disc_comes_back(radius: float, width: float, worst: float) -> None:
    for away in (0.0, 0.3, 0.5):
        truth, blurred = covered_and_blurred(disc(radius, away), width)
        found = settled(blurred)
        assert np.abs(found - truth).max() < worst < 1.2 * np.abs(blurred - truth).max()
        assert abs(found.sum() - truth.sum()) < 0.07 * truth.sum()


@pytest.mark.parametrize("turn", [0.0, 0.3, math.pi / 4])
def test_sides_of_a_blurred_square_come_back_though_its_corners_are_rounder(turn: float) -> None:
    truth, blurred = covered_and_blurred(square(turn, 0.25), 0.7)
    found = settled(blurred)
    wrong = np.abs(found - truth)
    assert np.square(found - truth).sum() < 0.35 * np.square(blurred - truth).sum()
    assert (wrong > 0.2).sum() <= 12 and wrong.max() < 0.55


def test_nothing_is_made_where_nothing_is() -> None:
    for level in (0.0, 1.0):
        np.testing.assert_allclose(settled(np.full((12, 14), level)), level, atol=1e-6)
    faint = 0.2 * np.random.default_rng(0).random((20, 20))
    assert settled(faint).max() < 0.01 and settled(1 - faint).min() > 0.99
    alone = np.zeros((15, 15))
    alone[4:11, 4:11] = 1
    grown = settled(ndimage.gaussian_filter(alone, 0.8))
    assert grown[:2].max() == grown[-2:].max() == grown[:, :2].max() == 0 and grown[7, 7] == 1


def test_coverage_that_is_sharp_stays_almost_as_it_is() -> None:
    truth, _ = covered_and_blurred(disc(7.7, 0.3), 0.1)
    assert np.abs(settled(truth) - truth).max() < 0.12
    assert np.abs(settled(settled(truth)) - truth).max() < 0.2


def test_many_patches_at_once_are_each_by_itself() -> None:
    patches = [covered_and_blurred(disc(radius, 0.2), 0.8)[1] for radius in (4.0, 6.0, 9.0)]
    together = sharpened(torch.from_numpy(np.stack(patches)).float().unsqueeze(1))
    assert together.shape == (3, 1, SIDE, SIDE)
    for one, patch in zip(together, patches, strict=True):
        np.testing.assert_allclose(one[0].numpy(), settled(patch), atol=1e-6)


@pytest.mark.parametrize("formation", [Alpha(1, 1.0), Additive(1)])
def test_where_edges_are_not_squashed_patches_are_kept_as_they_were_learned(formation: Alpha | Additive) -> None:
    patches = torch.rand(2, 2, 9, 9)
    assert torch.equal(formation.settle(patches, 1.0), patches)


def test_settling_changes_alpha_alone() -> None:
    patches = torch.rand(2, 4, 9, 9)
    settled_patches = Alpha(3, 4.0).settle(patches, 1.0)
    assert torch.equal(settled_patches[:, :3], patches[:, :3])
    assert torch.equal(settled_patches[:, 3:], sharpened(patches[:, 3:]))
    assert not torch.equal(settled_patches, patches)
