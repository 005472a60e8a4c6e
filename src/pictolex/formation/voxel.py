"""Voxel densities seen through orthographic views: `I = sum_l S_l^2 prod_{m<l} (1 - S_m)`, `S = min(1, R_d sum_i E_i)`.

Turning and shifting commute, `R_d(shift_t V) = shift_{R_d t}(R_d V)`: `lift` takes a 3D shift to each view's 2D shift, so that a
search over 3D shifts can gather from one 2D correlation per view.
"""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn import functional


class Voxel:
    """A scene is a sum of shifted density patches; each view is rendered through its turn (3 x 3: view to scene directions)."""

    name = "voxel"
    ordered = False

    def __init__(self, turns: Tensor) -> None:
        self.turns = turns

    def scene(self, patches: Tensor, corners: Tensor, side: tuple[int, int, int]) -> Tensor:
        """The sum of patches (n, d, h, w) with their first corner at (n, 3: z, y, x) of an empty grid; cropped at its border."""
        grid = torch.zeros(side, dtype=patches.dtype, device=patches.device)
        for patch, corner in zip(patches, corners.tolist(), strict=True):
            into, out = [], []
            for start, length, limit in zip(corner, patch.shape, side, strict=True):
                into.append(slice(max(0, start), max(0, min(limit, start + length))))
                out.append(slice(max(0, -start), max(0, min(length, limit - start))))
            added = torch.zeros_like(grid)
            added[tuple(into)] = patch[tuple(out)]
            grid = grid + added
        return grid

    def render(self, scene: Tensor) -> Tensor:
        """All views (views, height, width) of a grid (depth, height, width); differentiable."""
        deep, high, wide = scene.shape
        axes = [torch.arange(n, dtype=scene.dtype, device=scene.device) + 0.5 - n / 2 for n in (deep, high, wide)]
        level, row, column = torch.meshgrid(*axes, indexing="ij")
        seen = torch.stack([column, row, level], dim=-1)
        views = []
        for turn in self.turns.to(scene):
            grid = (seen @ turn.T) * 2 / torch.tensor([wide, high, deep], dtype=scene.dtype, device=scene.device)
            turned = functional.grid_sample(scene[None, None], grid[None], padding_mode="zeros", align_corners=False)[0, 0]
            density = turned.clamp_max(1.0)
            through = torch.cumprod(1 - density, dim=0)
            before = torch.cat([torch.ones_like(through[:1]), through[:-1]])
            views.append((density.square() * before).sum(0))
        return torch.stack(views)

    def lift(self, shift: Tensor) -> Tensor:
        """Where 3D shifts (..., 3: x, y, z) appear in each view: (..., views, 2: x, y)."""
        seen = torch.einsum("vij,...i->...vj", self.turns.to(shift), shift)
        return seen[..., :2]
