"""Placing a patch on pixels: against loops, exact where it can be, differentiable."""

from __future__ import annotations

import math

import hypothesis.strategies as st
import numpy as np
import pytest
import torch
from hypothesis import given, settings
from torch import Tensor

from pictolex.formation import Alpha, Patches, pack, reference, sample, slopes
from pictolex.formation.transform import hue_turn
from pictolex.model import Concept


def random_concepts(seed: int, sizes: list[tuple[int, int]], channels: int = 1) -> list[Concept]:
    rng = np.random.default_rng(seed)
    return [Concept(j, rng.random((h, w, channels), np.float32), rng.random((h, w), np.float32)) for j, (h, w) in enumerate(sizes)]


def double(patches: Patches) -> Patches:
    return Patches(patches.values.double(), patches.centre.double(), patches.size)


def premultiplied(concept: Concept) -> np.ndarray:
    """Shape times alpha, then alpha: (channels + 1, height, width)."""
    shape = np.moveaxis(concept.shape * concept.alpha[..., None], -1, 0)
    return np.concatenate([shape, concept.alpha[None]]).astype(np.float64)


sides = st.integers(1, 6)


@settings(max_examples=60, deadline=None)
@given(
    seed=st.integers(0, 10**6),
    patch=st.tuples(sides, sides),
    other=st.tuples(sides, sides),
    canvas=st.tuples(st.integers(1, 9), st.integers(1, 9)),
    at=st.tuples(st.floats(-3, 11), st.floats(-3, 11)),
    rotation=st.floats(-7, 7),
    scale=st.floats(0.4, 2.5),
    mirror=st.booleans(),
    channels=st.sampled_from([1, 3]),
)
def test_sampling_equals_the_loops(
    seed: int,
    patch: tuple[int, int],
    other: tuple[int, int],
    canvas: tuple[int, int],
    at: tuple[float, float],
    rotation: float,
    scale: float,
    mirror: bool,
    channels: int,
) -> None:
    concepts = random_concepts(seed, [patch, other], channels)
    patches = double(pack(concepts))
    pose = torch.tensor([[*at, rotation, math.log(scale), float(mirror)]], dtype=torch.float64).expand(2, -1)
    drawn = sample(patches, torch.tensor([0, 1]), pose, *canvas)
    for concept, image in zip(concepts, drawn, strict=True):
        looped = reference.place(premultiplied(concept), *canvas, *at, rotation, scale, mirror)
        np.testing.assert_allclose(image.numpy(), looped, atol=1e-9)


@settings(max_examples=30, deadline=None)
@given(
    seed=st.integers(0, 10**6),
    patch=st.tuples(sides, sides),
    left=st.integers(-6, 9),
    top=st.integers(-6, 9),
    padding=st.integers(0, 3),
)
def test_whole_positions_copy_the_patch_bit_for_bit(seed: int, patch: tuple[int, int], left: int, top: int, padding: int) -> None:
    """Single precision, as decomposition uses it; a larger concept beside it pads the patch."""
    h, w = patch
    concepts = random_concepts(seed, [patch, (h + padding, w + padding)])
    patches = pack(concepts)
    pose = torch.tensor([[left + w / 2, top + h / 2, 0.0, 0.0, 0.0]])
    drawn = sample(patches, torch.tensor([0]), pose, 10, 10)[0].numpy()
    wide = np.zeros((2, 40, 40))
    wide[:, top + 15 : top + 15 + h, left + 15 : left + 15 + w] = premultiplied(concepts[0])
    np.testing.assert_allclose(drawn, wide[:, 15:25, 15:25], atol=2e-6)


@pytest.mark.parametrize("turns", [1, 2, 3])
@pytest.mark.parametrize("side", [4, 5])
def test_quarter_turns_are_exact_and_counter_clockwise(turns: int, side: int) -> None:
    (concept,) = random_concepts(turns, [(side, side)])
    pose = torch.tensor([[side / 2, side / 2, turns * math.pi / 2, 0.0, 0.0]])
    drawn = sample(pack([concept]), torch.tensor([0]), pose, side, side)[0].numpy()
    np.testing.assert_allclose(drawn, np.rot90(premultiplied(concept), turns, axes=(1, 2)), atol=1e-5)


def test_mirror_comes_before_rotation() -> None:
    (concept,) = random_concepts(0, [(5, 5)])
    pose = torch.tensor([[2.5, 2.5, math.pi / 2, 0.0, 1.0]])
    drawn = sample(pack([concept]), torch.tensor([0]), pose, 5, 5)[0].numpy()
    np.testing.assert_allclose(drawn, np.rot90(premultiplied(concept)[:, :, ::-1], axes=(1, 2)), atol=1e-5)


def test_windows_are_cuts_of_the_canvas_and_negative_concepts_are_nothing() -> None:
    patches = pack(random_concepts(1, [(4, 5), (7, 6)]))
    which = torch.tensor([0, 1, -1])
    pose = torch.tensor([[5.3, 4.1, 0.4, 0.1, 0.0], [8.2, 7.7, 2.0, -0.2, 1.0], [5.0, 5.0, 0.0, 0.0, 0.0]])
    whole = sample(patches, which, pose, 12, 13)
    origin = torch.tensor([[2.0, 1.0], [4.0, 3.0], [0.0, 0.0]])
    windows = sample(patches, which, pose, 6, 7, origin)
    for window, canvas, (x, y) in zip(windows, whole, origin.int().tolist(), strict=True):
        torch.testing.assert_close(window, canvas[:, y : y + 6, x : x + 7], atol=1e-5, rtol=1e-5)
    assert not bool(whole[2].any())
    assert bool(whole[1].any())


def test_a_luminance_shape_among_colour_ones_is_repeated_and_no_concepts_pack() -> None:
    grey, colour = random_concepts(2, [(3, 3)])[0], random_concepts(3, [(4, 4)], 3)[0]
    patches = pack([grey, colour])
    assert patches.shape_channels == 3
    for k in range(3):
        np.testing.assert_allclose(patches.values[0, k, :3, :3].numpy(), premultiplied(grey)[0], atol=1e-6)
    assert len(pack([])) == 0


@pytest.mark.parametrize("mirror", [0.0, 1.0])
def test_gradients_of_sampling(mirror: float) -> None:
    packed = double(pack(random_concepts(5, [(4, 3), (3, 5)])))
    values = packed.values.clone().requires_grad_()
    place = torch.tensor([[3.137, 2.711, 0.413, 0.123], [2.291, 3.377, -1.171, -0.217]], dtype=torch.float64, requires_grad=True)
    flip = torch.full((2, 1), mirror, dtype=torch.float64)

    def draw(values: Tensor, place: Tensor) -> Tensor:
        pose = torch.cat([place, flip], 1)
        return sample(Patches(values, packed.centre, packed.size), torch.tensor([0, 1]), pose, 5, 6)

    assert torch.autograd.gradcheck(draw, (values, place))


def test_slopes_are_central_differences_of_the_patch() -> None:
    values = torch.rand(2, 2, 4, 5, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    stacked = slopes(values)
    assert stacked.shape == (2, 6, 4, 5)
    wide = np.pad(values.numpy(), ((0, 0), (0, 0), (1, 1), (1, 1)))
    for row in range(4):
        for column in range(5):
            across = (wide[..., row + 1, column + 2] - wide[..., row + 1, column]) / 2
            down = (wide[..., row + 2, column + 1] - wide[..., row, column + 1]) / 2
            np.testing.assert_allclose(stacked[:, 2:4, row, column].numpy(), across, atol=1e-12)
            np.testing.assert_allclose(stacked[:, 4:6, row, column].numpy(), down, atol=1e-12)
    torch.testing.assert_close(stacked[:, :2], values)


def test_a_sheet_where_nothing_is_stays_nothing() -> None:
    formation = Alpha(3, 4.0)
    nothing = torch.zeros(4, 3, 3)
    assert not bool(formation.sheet(nothing).any())


def test_gradients_of_a_sharp_sheet() -> None:
    rng = torch.Generator().manual_seed(4)
    alpha = torch.linspace(0.05, 0.95, 12, dtype=torch.float64).view(1, 3, 4)
    sampled = torch.cat([torch.rand(3, 3, 4, generator=rng, dtype=torch.float64) * alpha, alpha]).requires_grad_()
    assert torch.autograd.gradcheck(Alpha(3, 2.3).sheet, (sampled,))


def test_sharpening_keeps_the_straight_colour() -> None:
    rng = torch.Generator().manual_seed(6)
    alpha = torch.rand(1, 5, 5, generator=rng) * 0.5 + 0.4
    colour = torch.rand(3, 5, 5, generator=rng)
    sheet = Alpha(3, 3.0).sheet(torch.cat([colour * alpha, alpha]))
    torch.testing.assert_close(sheet[:-1], colour * sheet[-1:])


@settings(max_examples=40, deadline=None)
@given(colour=st.lists(st.floats(0, 1), min_size=3, max_size=3), angle=st.floats(-7, 7), more=st.floats(-7, 7))
def test_turning_a_hue_is_a_rotation_about_grey(colour: list[float], angle: float, more: float) -> None:
    start = torch.tensor(colour, dtype=torch.float64)
    turned = hue_turn(start, angle)
    assert float(turned.sum()) == pytest.approx(float(start.sum()), abs=1e-9)
    assert float(turned.norm()) == pytest.approx(float(start.norm()), abs=1e-9)
    torch.testing.assert_close(hue_turn(turned, more), hue_turn(start, angle + more), atol=1e-9, rtol=0)
    torch.testing.assert_close(hue_turn(start, 2 * math.pi), start, atol=1e-9, rtol=0)


def test_a_third_of_a_turn_makes_red_green() -> None:
    red = torch.tensor([[1.0, 0.0, 0.0], [0.5, 0.5, 0.5]])
    torch.testing.assert_close(hue_turn(red, 2 * math.pi / 3), torch.tensor([[0.0, 1.0, 0.0], [0.5, 0.5, 0.5]]), atol=1e-6, rtol=0)
    angle = torch.tensor(0.3, dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradcheck(lambda a: hue_turn(red.double(), a), (angle,))
