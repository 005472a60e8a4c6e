"""Coarse-to-fine against exhaustive search, on scenes that Pillow drew."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from torch import Tensor

from drawn import Placed, concept, image_batch, scene
from pictolex.formation import Alpha, pack, paint, sample
from pictolex.search import CostModel, Query, Searcher, build_bank, calibrate, create_objective
from pictolex.search.colour import Colour, Fixed, Free, HueSet
from pictolex.search.correlate import direct, fft
from pictolex.settings import Correlation, SquaredError

KINDS = ("ell", "wedge", "ellipse", "bar")
SCENES = 60
HUES = ((1.0, 0.2, 0.1), (0.2, 0.9, 0.3), (0.3, 0.3, 1.0), (1.0, 1.0, 0.2))


def scenes(seed: int, size: int, channels: int) -> tuple[Tensor, list[list[Placed]]]:
    """Four shapes each, in random colours, anywhere."""
    rng = np.random.default_rng(seed)
    placed = [
        [
            Placed(
                str(rng.choice(KINDS)),
                *(rng.random(2) * (size - 4) + 2),
                rng.random() * 2 * math.pi,
                colour=HUES[rng.integers(len(HUES))] if channels == 3 else (1.0,),
            )
            for _ in range(4)
        ]
        for _ in range(SCENES)
    ]
    images = [scene(shapes, size, size, (0.0,) * channels) for shapes in placed]
    return torch.from_numpy(image_batch(images)), placed


@pytest.mark.parametrize("objective", [SquaredError(), Correlation()], ids=["squared", "ncc"])
@pytest.mark.parametrize("colour", [Fixed(1), HueSet(torch.tensor(HUES)), Free(3)], ids=["fixed", "hues", "free"])
@pytest.mark.parametrize("scale", [1.0, 2.5], ids=["pooled 2x", "pooled 4x"])
def test_the_gain_is_within_one_per_cent(colour: Colour, objective: SquaredError | Correlation, scale: float) -> None:
    """In the context of two elements that are already there, the first and the third of four."""
    channels = 1 if isinstance(colour, Fixed) else 3
    images, placed = scenes(4, 48, channels)
    formation = Alpha()
    patches = pack([concept(i, kind, 21) for i, kind in enumerate(KINDS)])
    pose = torch.tensor([[[p.x, p.y, p.rotation, 0.0, 0.0] for p in shapes] for shapes in placed], dtype=torch.float32)
    which = torch.tensor([[KINDS.index(p.kind) for p in shapes] for shapes in placed])
    hues = torch.tensor([[p.colour for p in shapes] for shapes in placed])
    if scale != 1.0:
        images = torch.nn.functional.interpolate(images, scale_factor=scale, mode="bilinear")[:6]
        pose = torch.cat([pose[..., :2] * scale, pose[..., 2:3], pose[..., 3:4] + math.log(scale), pose[..., 4:]], -1)[:6]
        which, hues = which[:6], hues[:6]
    high, wide = images.shape[-2:]
    sheets = sample(patches, which[:, ::2].flatten(), pose[:, ::2].flatten(0, 1), high, wide).unflatten(0, (-1, 2))
    layers = paint(sheets, hues[:, ::2])
    background = torch.zeros_like(images)
    room = torch.zeros_like(layers[:, :1])
    context = formation.context(torch.cat([layers[:, :1], room, layers[:, 1:]], 1), background, 1)
    query = Query(images, torch.ones_like(images[:, :1]), context)
    bank = build_bank(patches, formation, 12 if scale == 1.0 else 6, (scale,))
    assert bank.shelves[-1].pool == (2 if scale == 1.0 else 4)
    coarse, full = (
        Searcher(bank, formation, colour, create_objective(objective), method=method, keep=64).best(query)
        for method in ("coarse", "exhaustive")
    )
    close = coarse.score[:, 0] >= full.score[:, 0] * 0.99
    assert float(close.float().mean()) >= 0.95
    # Never better than the best, and no worse than half in the cases missed.
    assert bool((coarse.score[:, 0] <= full.score[:, 0] * 1.0001 + 1e-4).all())
    assert bool((coarse.score[:, 0] >= full.score[:, 0] * 0.5).all())


def test_charging_ranks_what_covers_errors_last_but_reports_the_true_gain() -> None:
    """A small square inside of what is there, or a large one over it: charged, the large one loses its place, not its gain."""
    images, _ = scenes(5, 48, 1)
    images = images[:8]
    patches = pack([concept(i, kind, 21) for i, kind in enumerate(KINDS)])
    formation = Alpha()
    query = Query(images, torch.ones_like(images), formation.empty(torch.zeros_like(images)))
    searcher = Searcher(
        build_bank(patches, formation, 8, (1.0,)), formation, Fixed(1), create_objective(SquaredError()), method="exhaustive"
    )
    plain, charged = searcher.diverse(query, 3), searcher.diverse(query, 3, 5.0)
    for hits in (plain, charged):
        pose = searcher.bank.pose(hits.kernel, hits.left.float(), hits.top.float())
        flat = sample(patches, searcher.bank.concept[hits.kernel].flatten(), pose.flatten(0, 1), 48, 48).unflatten(0, (8, -1))
        layers = paint(flat, torch.ones(*flat.shape[:2], 1))
        exact = formation.exact_gain(images[:, None], query.weight[:, None], query.context.unsqueeze(1), layers)
        torch.testing.assert_close(hits.gain, exact, atol=0.5, rtol=0.01)

    def mess(hits):  # type: ignore[no-untyped-def]
        pose = searcher.bank.pose(hits.kernel, hits.left.float(), hits.top.float())
        flat = sample(patches, searcher.bank.concept[hits.kernel].flatten(), pose.flatten(0, 1), 48, 48).unflatten(0, (8, -1))
        return float((flat[:, :, -1:] * (1 - images[:, None])).sum((-3, -2, -1)).mean())

    assert mess(charged) < mess(plain)


def test_calibration_measures_positive_costs_and_the_model_has_a_choice() -> None:
    cost = calibrate()
    assert min(cost.direct, cost.transform, cost.product) > 0
    model = CostModel()
    assert model.choose(1, 5, 16, (3, 3), (64, 64)) == "direct"
    assert model.choose(1, 5, 512, (33, 33), (96, 96)) == "fft"


@pytest.mark.parametrize("size", [(7, 7), (8, 10), (11, 13)])
def test_fourier_and_direct_correlations_are_equal(size: tuple[int, int]) -> None:
    rng = torch.Generator().manual_seed(0)
    maps, weights = torch.randn(2, 3, *size, generator=rng), torch.randn(4, 3, 5, 4, generator=rng)
    torch.testing.assert_close(fft(maps, weights), direct(maps, weights), atol=1e-4, rtol=1e-4)
