"""Views of voxel densities against loops, and 3D shifts as 2D shifts of views."""

from __future__ import annotations

import math

import hypothesis.strategies as st
import numpy as np
import torch
from hypothesis import given, settings
from torch import Tensor

from pictolex.formation import Voxel, reference


def turn(yaw: float, pitch: float) -> Tensor:
    """About the vertical axis, then about the horizontal one."""
    a = torch.tensor([[math.cos(yaw), 0, math.sin(yaw)], [0, 1, 0], [-math.sin(yaw), 0, math.cos(yaw)]], dtype=torch.float64)
    b = torch.tensor([[1, 0, 0], [0, math.cos(pitch), -math.sin(pitch)], [0, math.sin(pitch), math.cos(pitch)]], dtype=torch.float64)
    return a @ b


def densities(seed: int, *side: int) -> Tensor:
    # Some above 1, where the scene is clamped.
    return torch.rand(*side, generator=torch.Generator().manual_seed(seed), dtype=torch.float64) * 1.4


@settings(max_examples=12, deadline=None)
@given(
    seed=st.integers(0, 10**6),
    side=st.tuples(st.integers(1, 4), st.integers(1, 5), st.integers(1, 5)),
    yaw=st.floats(-4, 4),
    pitch=st.floats(-2, 2),
)
def test_views_equal_the_loops(seed: int, side: tuple[int, int, int], yaw: float, pitch: float) -> None:
    scene = densities(seed, *side)
    turns = torch.stack([torch.eye(3, dtype=torch.float64), turn(yaw, pitch)])
    views = Voxel(turns).render(scene)
    for view, direction in zip(views, turns, strict=True):
        np.testing.assert_allclose(view.numpy(), reference.voxel_view(scene.numpy(), direction.numpy()), atol=1e-9)


def test_an_unturned_view_looks_along_depth_from_the_front() -> None:
    scene = torch.zeros(2, 3, 3, dtype=torch.float64)
    scene[0, 1, 1], scene[1, 1, 1], scene[1, 0, 2] = 0.5, 1.0, 0.25
    view = Voxel(torch.eye(3)[None]).render(scene)[0]
    assert float(view[1, 1]) == 0.5**2 + 0.5 * 1.0
    assert float(view[0, 2]) == 0.25**2
    assert float(view.sum()) == 0.75 + 0.0625


def test_gradients_of_views() -> None:
    scene = (densities(2, 3, 4, 3) * 0.6).requires_grad_()
    voxel = Voxel(torch.stack([torch.eye(3, dtype=torch.float64), turn(0.4, 0.3)]))
    assert torch.autograd.gradcheck(voxel.render, (scene,))


@settings(max_examples=25, deadline=None)
@given(seed=st.integers(0, 10**6), corners=st.lists(st.tuples(*[st.integers(-4, 6)] * 3), max_size=3))
def test_scenes_add_patches_cropped_at_the_border(seed: int, corners: list[tuple[int, int, int]]) -> None:
    patches = densities(seed, len(corners), 2, 3, 2)
    side = (4, 5, 6)
    expected = np.zeros(side)
    for patch, corner in zip(patches.numpy(), corners, strict=True):
        for offset in np.ndindex(*patch.shape):
            at = tuple(c + o for c, o in zip(corner, offset, strict=True))
            if all(0 <= a < s for a, s in zip(at, side, strict=True)):
                expected[at] += patch[offset]
    scene = Voxel(torch.eye(3)[None]).scene(patches, torch.tensor(corners, dtype=torch.long).reshape(-1, 3), side)
    np.testing.assert_allclose(scene.numpy(), expected, atol=1e-12)


def test_a_lone_patch_moves_in_each_view_as_lift_says() -> None:
    """Quarter turns, so that views of whole shifts are whole shifts."""
    turns = torch.stack([turn(k * math.pi / 2, 0.0) for k in range(4)] + [turn(0.0, math.pi / 2)])
    voxel = Voxel(turns)
    patch = densities(7, 1, 3, 3, 3)
    still = voxel.render(voxel.scene(patch, torch.tensor([[4, 4, 4]]), (11, 11, 11)))
    for shift in ([2, 0, 0], [0, -3, 0], [0, 0, 2], [1, 2, -3]):
        x, y, z = shift
        moved = voxel.render(voxel.scene(patch, torch.tensor([[4 + z, 4 + y, 4 + x]]), (11, 11, 11)))
        lifted = voxel.lift(torch.tensor(shift, dtype=torch.float64))
        assert lifted.shape == (5, 2)
        for view, start, (across, down) in zip(moved, still, lifted.round().int().tolist(), strict=True):
            torch.testing.assert_close(view, start.roll((down, across), (0, 1)), atol=1e-9, rtol=0)
