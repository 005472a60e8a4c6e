"""Placing a concept on pixels: sub-pixel shift, rotation, scale and mirror, batched and differentiable.

A pose is (x, y, rotation, log scale, mirror): the concept's centre in pixels (origin top left, y down, pixel centres at .5),
counter-clockwise radians as seen, and mirror (0 or 1: left-right, before rotation).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional

from pictolex.model import Concept


@dataclass(frozen=True)
class Patches:
    """The values of all concepts, padded to one size: premultiplied shape channels, then alpha."""

    values: Tensor
    """(concepts, channels + 1, height, width)."""
    centre: Tensor
    """(concepts, 2): x and y of each concept's centre in the padded patch."""
    size: Tensor
    """(concepts, 2): own height and width."""

    @property
    def shape_channels(self) -> int:
        """1 for luminance, 3 for RGB shapes."""
        return self.values.shape[1] - 1

    def __len__(self) -> int:
        return self.values.shape[0]


def pack(concepts: Sequence[Concept], device: torch.device | str = "cpu") -> Patches:
    """All concepts on one device; a luminance shape among RGB ones is repeated."""
    channels = max((c.shape.shape[-1] for c in concepts), default=1)
    height = max((c.alpha.shape[0] for c in concepts), default=1)
    width = max((c.alpha.shape[1] for c in concepts), default=1)
    values = np.zeros((len(concepts), channels + 1, height, width), np.float32)
    sizes = np.zeros((len(concepts), 2), np.int64)
    for j, concept in enumerate(concepts):
        h, w = concept.alpha.shape
        values[j, :channels, :h, :w] = np.moveaxis(concept.shape * concept.alpha[..., None], -1, 0)
        values[j, channels, :h, :w] = concept.alpha
        sizes[j] = h, w
    size = torch.from_numpy(sizes).to(device)
    return Patches(torch.from_numpy(values).to(device), size.flip(1).float() / 2, size)


def steer(pose: Tensor, height: int, width: int, origin: Tensor | None = None) -> tuple[Tensor, Tensor]:
    """Patch coordinates (u, v) relative to the concept's centre of every pixel of a window (n, height, width)."""
    x, y, rotation, log_scale, mirror = pose.unbind(-1)
    left, top = (origin[:, 0], origin[:, 1]) if origin is not None else (torch.zeros_like(x), torch.zeros_like(y))
    columns = torch.arange(width, device=pose.device, dtype=pose.dtype) + 0.5
    rows = torch.arange(height, device=pose.device, dtype=pose.dtype) + 0.5
    dx = columns[None, None, :] + (left - x)[:, None, None]
    dy = rows[None, :, None] + (top - y)[:, None, None]
    shrink = torch.exp(-log_scale)
    cos, sin = (torch.cos(rotation) * shrink)[:, None, None], (torch.sin(rotation) * shrink)[:, None, None]
    flip = (1 - 2 * mirror)[:, None, None]
    return (cos * dx - sin * dy) * flip, sin * dx + cos * dy


def look_up(values: Tensor, centre: Tensor, u: Tensor, v: Tensor) -> Tensor:
    """Bilinear values (n, channels, height, width) of patches (n, channels, h, w) at patch coordinates; zero outside."""
    high, wide = values.shape[-2:]
    grid_x = (u + centre[:, 0, None, None]) * (2.0 / wide) - 1
    grid_y = (v + centre[:, 1, None, None]) * (2.0 / high) - 1
    grid = torch.stack([grid_x, grid_y], dim=-1)
    return functional.grid_sample(values, grid, mode="bilinear", padding_mode="zeros", align_corners=False)


def sample(patches: Patches, which: Tensor, pose: Tensor, height: int, width: int, origin: Tensor | None = None) -> Tensor:
    """Concepts `which` (n; negative: nothing) in `pose` (n, 5) on the pixels of windows: (n, channels + 1, height, width).

    `origin` (n, 2): x and y of each window's top left corner; none: the image itself.
    """
    chosen = which.clamp_min(0)
    u, v = steer(pose, height, width, origin)
    sampled = look_up(patches.values[chosen], patches.centre[chosen], u, v)
    return sampled * (which >= 0).to(sampled.dtype)[:, None, None, None]


def slopes(values: Tensor) -> Tensor:
    """Central differences of patches along u and v, stacked as two more channel groups: (n, 3 * channels, h, w)."""
    padded = functional.pad(values, (1, 1, 1, 1))
    du = (padded[..., 1:-1, 2:] - padded[..., 1:-1, :-2]) / 2
    dv = (padded[..., 2:, 1:-1] - padded[..., :-2, 1:-1]) / 2
    return torch.cat([values, du, dv], dim=1)


def hue_turn(colour: Tensor, angle: Tensor | float) -> Tensor:
    """RGB colours (..., 3) turned about the grey axis by an angle in radians."""
    angle = torch.as_tensor(angle, dtype=colour.dtype, device=colour.device)
    cos, sin = torch.cos(angle), torch.sin(angle)
    third, root = (1 - cos) / 3, sin / 3**0.5
    turned = [
        (cos + third) * colour[..., i] + (third - root) * colour[..., (i + 1) % 3] + (third + root) * colour[..., (i + 2) % 3]
        for i in range(3)
    ]
    return torch.stack(turned, dim=-1)
