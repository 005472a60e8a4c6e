"""Front-to-back alpha compositing: `image = sum_i P_i prod_{j<i} (1 - A_j)`, over a background."""

from __future__ import annotations

import math

import torch
from torch import Tensor
from torch.nn import functional

from pictolex.formation.base import Context, Form, Formation, Forms


class Alpha(Formation):
    """Elements hide what is behind them.

    With `C1` the composite of those in front, `C2` (`light`) what they let through and `C3` (`behind`) C2 times the composite
    of those behind, an element makes `C1 + C2 P + (1 - A) C3`: its effect is `C2 P - A C3`.
    """

    name = "alpha"
    ordered = True

    def __init__(self, shape_channels: int = 1, sharpness: float = 1.0) -> None:
        self.shape_channels = shape_channels
        self.sharpness = sharpness

    def sheet(self, sampled: Tensor) -> Tensor:
        """Squash the resampled alpha around one half, so that edges come out as sharp as the images', and keep the colour."""
        if self.sharpness == 1.0:
            return sampled
        alpha = sampled[..., -1:, :, :]
        squashed = ((alpha - 0.5) * self.sharpness + 0.5).clamp(0, 1)
        return torch.cat([sampled[..., :-1, :, :] / alpha.clamp_min(1e-6) * squashed, squashed], dim=-3)

    def settle(self, patches: Tensor, pixel: float) -> Tensor:
        """Where edges are sharp: alpha as the coverage of pixels by what averages and resampling have blurred."""
        if self.sharpness == 1.0:
            return patches
        return torch.cat([patches[..., :-1, :, :], sharpened(patches[..., -1:, :, :], pixel)], dim=-3)

    def empty(self, background: Tensor) -> Context:
        """All light passes; the background is what would be hidden."""
        return Context(background, torch.ones_like(background[..., :1, :, :]), background)

    def effect(self, context: Context, layer: Tensor) -> Tensor:
        """`C2 P - A C3`."""
        return context.light * layer[..., :-1, :, :] - layer[..., -1:, :, :] * context.behind

    def cover(self, context: Context, layer: Tensor) -> Context:
        """What is behind the new layer is dimmed by it; what is rebuilt has it."""
        through = 1 - layer[..., -1:, :, :]
        return Context(context.rebuilt + self.effect(context, layer), context.light * through, context.behind * through)

    def contexts(self, layers: Tensor, background: Tensor) -> Context:
        """All contexts in one sweep from the back and one from the front."""
        n = layers.shape[-4]
        behind = [background] * n
        for i in range(n - 2, -1, -1):
            below = layers[..., i + 1, :, :, :]
            behind[i] = below[..., :-1, :, :] + (1 - below[..., -1:, :, :]) * behind[i + 1]
        front, light = torch.zeros_like(background), torch.ones_like(background[..., :1, :, :])
        rebuilt, lights, hidden = [], [], []
        for i in range(n):
            layer = layers[..., i, :, :, :]
            dimmed = light * behind[i]
            rebuilt.append(front + dimmed)
            lights.append(light)
            hidden.append(dimmed)
            front = front + light * layer[..., :-1, :, :]
            light = light * (1 - layer[..., -1:, :, :])
        return Context(torch.stack(rebuilt, -4), torch.stack(lights, -4), torch.stack(hidden, -4))

    def inner(self, target: Tensor, context: Context) -> Forms:
        """`<T, C2 P - A C3>`."""
        light = context.light[..., 0, :, :]
        linear: list[Form] = []
        for k in range(target.shape[-3]):
            linear.append({f"q{self._shape(k)}": target[..., k, :, :] * light})
        return Forms(tuple(linear), (), {"a": -(target * context.behind).sum(-3)})

    def norm(self, weight: Tensor, context: Context) -> Forms:
        """`<w, C2^2 P^2 - 2 C2 C3 P A + C3^2 A^2>`."""
        w, light = weight[..., 0, :, :], context.light[..., 0, :, :]
        linear: list[Form] = []
        for k in range(context.behind.shape[-3]):
            linear.append({f"qa{self._shape(k)}": -2 * w * light * context.behind[..., k, :, :]})
        square = w * light * light
        squares = tuple({f"qq{c}": square} for c in range(self.shape_channels))
        return Forms(tuple(linear), squares, {"aa": w * context.behind.square().sum(-3)})

    def features(self, sheet: Tensor) -> dict[str, Tensor]:
        """Q, Q A, Q^2 per shape channel, A and A^2."""
        alpha = sheet[..., -1, :, :]
        kernels = {"a": alpha, "aa": alpha * alpha}
        for c in range(sheet.shape[-3] - 1):
            shape = sheet[..., c, :, :]
            kernels |= {f"q{c}": shape, f"qa{c}": shape * alpha, f"qq{c}": shape * shape}
        return kernels

    def shares(self, layers: Tensor) -> Tensor:
        """`A_i prod_{j<i} (1 - A_j)`."""
        alpha = layers[..., -1, :, :]
        through = torch.cumprod(1 - alpha, dim=-3)
        return alpha * torch.cat([torch.ones_like(through[..., :1, :, :]), through[..., :-1, :, :]], dim=-3)

    def _shape(self, channel: int) -> int:
        return channel if self.shape_channels > 1 else 0


EDGE = 0.02
"""A slope below this is no edge."""
FAR = 2.0
"""Where the quantile is beyond this, the edge is more than half a pixel away."""
FINE = 8
"""Points a side of a pixel that are looked at."""


def sharpened(alpha: Tensor, pixel: float = 1.0) -> Tensor:
    """Coverage of squares of side `pixel` from blurred coverage (..., height, width).

    The mean of two estimates that err to opposite sides.
    """
    return (_by_distance(alpha, pixel) + _by_level(alpha, pixel)) / 2


def _by_distance(alpha: Tensor, pixel: float) -> Tensor:
    """Coverage by how far the edge is; corners come out a little round.

    Across an edge blurred by a Gaussian of whatever width s, `alpha = Phi(d / s)` and its slope is `phi(d / s) / s`; so the
    distance to the edge is `d = z phi(z) / slope` with `z` the quantile of alpha, and a square is covered `d / pixel + 1 / 2`.
    The slope is a central difference, which blurs by a variance of 1/3 more; alpha is blurred as much.
    """
    flat = alpha.reshape(-1, 1, *alpha.shape[-2:])
    wide = functional.pad(flat, (1, 1, 1, 1), mode="replicate")
    smooth = torch.tensor([1 / 6, 2 / 3, 1 / 6], device=alpha.device)
    slope = torch.tensor([-0.5, 0.0, 0.5], device=alpha.device)

    def filtered(down: Tensor, across: Tensor) -> Tensor:
        return functional.conv2d(wide, (down[:, None] * across[None, :])[None, None])

    steep = torch.hypot(filtered(smooth, slope), filtered(slope, smooth))
    z = torch.special.ndtri(filtered(smooth, smooth).clamp(1e-6, 1 - 1e-6))
    away = z * torch.exp(-0.5 * z * z) / math.sqrt(2 * math.pi) / steep.clamp_min(EDGE)
    away = torch.where(z.abs() > FAR, z.sign() * pixel, away)
    return (away / pixel + 0.5).clamp(0, 1).reshape(alpha.shape)


def _by_level(alpha: Tensor, pixel: float) -> Tensor:
    """Coverage by the share of points in a square where alpha, between pixels linear, is above one half; corners come out full."""
    flat = alpha.reshape(-1, 1, *alpha.shape[-2:])
    more = max(0, round(FINE * (pixel - 1) / 2))
    border = 1 + -(-more // FINE)
    wide = functional.pad(flat, (border, border, border, border), mode="replicate")
    fine = functional.interpolate(wide, scale_factor=FINE, mode="bilinear", align_corners=False)
    cut = border * FINE - more
    inner = fine[..., cut:-cut, cut:-cut] > 0.5
    return functional.avg_pool2d(inner.to(alpha.dtype), FINE + 2 * more, FINE).reshape(alpha.shape)
