"""Edges of turned concepts against Pillow drawing the turned shape itself, supersampled."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch

from drawn import Placed, concept, coverage
from pictolex.formation import Alpha, pack, sample

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
