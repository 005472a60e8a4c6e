"""Additive compositing: the image is the sum of the elements (and the background)."""

from __future__ import annotations

import torch
from torch import Tensor

from pictolex.formation.base import Context, Form, Formation, Forms


class Additive(Formation):
    """Light on light: nothing hides anything, and depth order does not matter."""

    name = "additive"
    ordered = False

    def __init__(self, shape_channels: int = 1) -> None:
        self.shape_channels = shape_channels

    def empty(self, background: Tensor) -> Context:
        """The background alone."""
        return Context(background, torch.ones_like(background[..., :1, :, :]), torch.zeros_like(background))

    def effect(self, context: Context, layer: Tensor) -> Tensor:
        """`P`."""
        return layer[..., :-1, :, :].expand_as(context.rebuilt)

    def cover(self, context: Context, layer: Tensor) -> Context:
        """One more summand."""
        return Context(context.rebuilt + layer[..., :-1, :, :], context.light, context.behind)

    def inner(self, target: Tensor, context: Context) -> Forms:
        """`<T, P>`."""
        linear: tuple[Form, ...] = tuple({f"q{self._shape(k)}": target[..., k, :, :]} for k in range(target.shape[-3]))
        return Forms(linear)

    def norm(self, weight: Tensor, context: Context) -> Forms:
        """`<w, P^2>`."""
        w = (weight[..., :1, :, :] * context.light)[..., 0, :, :]
        return Forms(tuple({} for _ in range(context.rebuilt.shape[-3])), tuple({f"qq{c}": w} for c in range(self.shape_channels)))

    def features(self, sheet: Tensor) -> dict[str, Tensor]:
        """P and its square per shape channel, and the alpha."""
        kernels = {"a": sheet[..., -1, :, :]}
        for c in range(sheet.shape[-3] - 1):
            kernels |= {f"q{c}": sheet[..., c, :, :], f"qq{c}": sheet[..., c, :, :].square()}
        return kernels

    def shares(self, layers: Tensor) -> Tensor:
        """Each layer's part of the light at a pixel, as far as it adds any."""
        light = layers[..., :-1, :, :].mean(-3)
        return light / light.sum(-3, keepdim=True).clamp_min(1.0)

    def _shape(self, channel: int) -> int:
        return channel if self.shape_channels > 1 else 0
