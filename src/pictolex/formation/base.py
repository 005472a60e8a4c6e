"""What a formation is: the one interface behind which alpha, additive (and any other) image formation differ.

Placing an element changes the image by an `effect` that is linear in the element's colour. Everything that search, selection
and polish need follows from two inner products of that effect, `inner` (with a target image) and `norm` (with itself), each
written as sums of (image map, kernel) pairs, so that one correlation gives them for all shifts at once.
"""

from __future__ import annotations

import copy
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, field

import torch
from torch import Tensor

Form = Mapping[str, Tensor]
"""Image maps (..., height, width) by the name of the kernel each is to be correlated with."""


@dataclass(frozen=True)
class Context:
    """What is around one element: all tensors (..., channels, height, width)."""

    rebuilt: Tensor
    """The image as the other elements make it."""
    light: Tensor
    """How much of the element is let through (one channel, or one per image channel)."""
    behind: Tensor
    """What the element would hide, already dimmed by `light`."""

    def take(self, index: Tensor | slice) -> Context:
        """The contexts at the given batch positions."""
        return Context(self.rebuilt[index], self.light[index], self.behind[index])

    def unsqueeze(self, dim: int) -> Context:
        """The same with one more batch dimension."""
        return Context(self.rebuilt.unsqueeze(dim), self.light.unsqueeze(dim), self.behind.unsqueeze(dim))


@dataclass(frozen=True)
class Forms:
    """A polynomial in an element's colour h, with image maps for coefficients: `sum_k h_k linear_k + h_k^2 square_k + rest`.

    `linear` has one form per image channel; `square` as well, or a single one that holds for every channel.
    """

    linear: tuple[Form, ...]
    square: tuple[Form, ...] = ()
    rest: Form = field(default_factory=dict)

    def __add__(self, other: Forms) -> Forms:
        square = _zip(self.square, other.square, len(self.linear)) if self.square and other.square else self.square or other.square
        return Forms(tuple(_add(a, b) for a, b in zip(self.linear, other.linear, strict=True)), square, _add(self.rest, other.rest))

    def __mul__(self, factor: float) -> Forms:
        def times(form: Form) -> Form:
            return {name: image * factor for name, image in form.items()}

        return Forms(tuple(map(times, self.linear)), tuple(map(times, self.square)), times(self.rest))

    def at(self, colour: tuple[float, ...]) -> Form:
        """The single form at a fixed colour."""
        total: Form = self.rest
        shared = len(self.square) == 1
        for k, linear in enumerate(self.linear):
            total = _add(total, {n: m * colour[k] for n, m in linear.items()})
        for k, square in enumerate(self.square):
            weight = sum(c * c for c in colour) if shared else colour[k] ** 2
            total = _add(total, {n: m * weight for n, m in square.items()})
        return total


def _add(a: Form, b: Form) -> Form:
    total = dict(a)
    for name, image in b.items():
        total[name] = total[name] + image if name in total else image
    return total


def _zip(a: tuple[Form, ...], b: tuple[Form, ...], channels: int) -> tuple[Form, ...]:
    if len(a) == len(b):
        return tuple(_add(x, y) for x, y in zip(a, b, strict=True))
    wide_a, wide_b = (a * channels if len(a) == 1 else a), (b * channels if len(b) == 1 else b)
    return tuple(_add(x, y) for x, y in zip(wide_a, wide_b, strict=True))


def paint(sheet: Tensor, colour: Tensor) -> Tensor:
    """A layer (..., channels + 1, h, w) from a sheet (..., 1 or channels + 1, h, w) and a colour (..., channels)."""
    return torch.cat([sheet[..., :-1, :, :] * colour[..., None, None], sheet[..., -1:, :, :]], dim=-3)


class Formation(ABC):
    """How elements make an image.

    A *sheet* is a concept sampled on pixels: premultiplied shape (1 or 3 channels), then alpha. A *layer* is a sheet in its
    colour: as many channels as the image, then alpha. Layers are stacked front to back along dimension -4.
    """

    name: str
    ordered: bool
    """Whether depth order matters."""
    shape_channels: int
    """Shape channels of the sheets: 1 (luminance) or as many as the image has."""

    def sheet(self, sampled: Tensor) -> Tensor:
        """The sheet of a resampled concept; the place for what resampling must not do to it."""
        return sampled

    def settle(self, patches: Tensor, pixel: float) -> Tensor:
        """Learned patches (..., channels + 1, height, width; straight shape, then alpha) as this formation wants them kept.

        `pixel`: the side of an image's pixel on them, where they are largest.
        """
        return patches

    @abstractmethod
    def empty(self, background: Tensor) -> Context:
        """The context of the first element, in front of a background (..., channels, height, width)."""

    @abstractmethod
    def effect(self, context: Context, layer: Tensor) -> Tensor:
        """How the image changes when `layer` is placed in `context`; linear in the layer."""

    @abstractmethod
    def cover(self, context: Context, layer: Tensor) -> Context:
        """The context for an element just behind `layer`, where `layer` has been placed in `context`."""

    def context(self, layers: Tensor, background: Tensor, index: int) -> Context:
        """The context of layer `index` among all others."""
        context = self.empty(self.render(layers[..., index + 1 :, :, :, :], background))
        for i in range(index):
            context = self.cover(context, layers[..., i, :, :, :])
        return context

    def contexts(self, layers: Tensor, background: Tensor) -> Context:
        """The context of every layer: (..., n, channels, height, width)."""
        each = [self.context(layers, background, i) for i in range(layers.shape[-4])]
        return Context(*(torch.stack([getattr(c, name) for c in each], -4) for name in ("rebuilt", "light", "behind")))

    def recast(self, shape_channels: int) -> Formation:
        """The same formation for sheets with so many shape channels."""
        other = copy.copy(self)
        other.shape_channels = shape_channels
        return other

    @abstractmethod
    def inner(self, target: Tensor, context: Context) -> Forms:
        """`<target, effect>` as forms."""

    @abstractmethod
    def norm(self, weight: Tensor, context: Context) -> Forms:
        """`<weight, effect^2>` as forms."""

    @abstractmethod
    def features(self, sheet: Tensor) -> dict[str, Tensor]:
        """The kernels (..., h, w) that the forms name, for a sheet in unit colour."""

    @abstractmethod
    def shares(self, layers: Tensor) -> Tensor:
        """Visible share of each layer (..., n, height, width)."""

    def covered(self, error: Tensor) -> Form:
        """`<error, alpha>`: what of an error map (..., height, width) lies under the element."""
        return {"a": error}

    def render(self, layers: Tensor, background: Tensor) -> Tensor:
        """The image (..., channels, height, width) of layers (..., n, channels + 1, height, width) over a background."""
        context = self.empty(background)
        for i in range(layers.shape[-4]):
            context = self.cover(context, layers[..., i, :, :, :])
        return context.rebuilt

    def gain(self, image: Tensor, weight: Tensor, context: Context) -> Forms:
        """Squared error that placing an element saves: `2 <w (I - R), effect> - <w, effect^2>`."""
        return self.inner((image - context.rebuilt) * weight * 2, context) + self.norm(weight, context) * -1.0

    def exact_gain(self, image: Tensor, weight: Tensor, context: Context, layer: Tensor) -> Tensor:
        """The same for given layers, without kernels."""
        effect = self.effect(context, layer)
        return (weight * effect * (2 * (image - context.rebuilt) - effect)).sum(dim=(-3, -2, -1))
