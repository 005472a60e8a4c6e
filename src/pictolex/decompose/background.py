"""What is behind all elements: nothing, a learned plain colour or image, or a plain colour of each image's own."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable

import torch
from torch import Tensor

from pictolex.decompose.stage import Problem
from pictolex.errors import SettingError
from pictolex.formation import Formation
from pictolex.model import Dictionary
from pictolex.settings import FreeBackground, ImageBackground, NoBackground, PlainBackground, Settings


class BackgroundModel(ABC):
    """Gives every image its background, and may improve it once the elements are known."""

    @abstractmethod
    def start(self, image: Tensor, weight: Tensor) -> Tensor:
        """The background (batch, channels, height, width) before there are elements."""

    def improve(self, problem: Problem, formation: Formation, layers: Tensor) -> Tensor:
        """The background given the layers."""
        return problem.background


class Given(BackgroundModel):
    """The same for all images: a colour (channels) or an image (channels, height, width)."""

    def __init__(self, values: Tensor) -> None:
        self.values = values

    def start(self, image: Tensor, weight: Tensor) -> Tensor:
        """As learned."""
        values = self.values if self.values.ndim == 3 else self.values[:, None, None]
        if values.shape[0] not in (1, image.shape[1]) or (values.shape[-1] > 1 and values.shape[-2:] != image.shape[-2:]):
            raise SettingError(
                f"the dictionary's background is {tuple(values.shape)} (channels, height, width) but the images are "
                f"{tuple(image.shape[1:])}: use images of that size, or set background.kind to free"
            )
        return values.expand_as(image[0]).expand_as(image)


FREQUENT = 256
"""Bins of colour that are looked at."""


class FreePlain(BackgroundModel):
    """A plain colour per image: first the most frequent one, then the best for the elements found (it is linear)."""

    def start(self, image: Tensor, weight: Tensor) -> Tensor:
        """The colour with most pixels near it, noise or not: the mean of those."""
        batch, channels = image.shape[:2]
        flat = image.flatten(2)
        seen = weight.flatten(2).expand(-1, 1, -1)
        bins = (flat * 31.999).long().clamp(0, 31)
        code = bins[:, 0]
        for k in range(1, channels):
            code = code * 32 + bins[:, k]
        colours = []
        for item in range(batch):
            shown = seen[item, 0] > 0
            values, counts = code[item][shown].unique(return_counts=True)
            if not len(values):
                colours.append(torch.zeros(channels, device=image.device))
                continue
            # Noise spreads a colour over several bins: what counts is a bin with its neighbours.
            often = counts.topk(min(FREQUENT, len(counts))).indices
            values, counts = values[often], counts[often]
            bin_of = torch.stack([values // 32**k % 32 for k in range(channels)], dim=1)
            beside = (bin_of[:, None] - bin_of[None]).abs().amax(2) <= 1
            around = (beside * counts).sum(1)
            chosen = torch.isin(code[item], values[beside[around.argmax()]]) & shown
            middle = flat[item][:, chosen].mean(1, keepdim=True)
            near = ((flat[item] - middle).abs().amax(0) < 1 / 24) & (seen[item, 0] > 0)
            colours.append(flat[item][:, near].mean(1) if bool(near.any()) else middle[:, 0])
        return torch.stack(colours)[:, :, None, None].expand_as(image)

    def improve(self, problem: Problem, formation: Formation, layers: Tensor) -> Tensor:
        """Least squares on what the layers let through, found from two renderings (black and white behind)."""
        black = formation.render(layers, torch.zeros_like(problem.background))
        through = formation.render(layers, torch.ones_like(problem.background)) - black
        power = (problem.weight * through.square()).sum((2, 3))
        match = (problem.weight * through * (problem.image - black)).sum((2, 3))
        enough = power > 4
        best = torch.where(enough, (match / power.clamp_min(1e-6)).clamp(0, 1), problem.background[:, :, 0, 0])
        return best[:, :, None, None].expand_as(problem.background)


def _given(dictionary: Dictionary, channels: int, device: torch.device) -> BackgroundModel:
    values = dictionary.background.values
    if values is None:
        raise SettingError(
            "the background setting needs a learned background but the dictionary has none: set background.kind to none or free"
        )
    tensor = torch.tensor(values, device=device)
    return Given(tensor.movedim(-1, 0) if tensor.ndim == 3 else tensor)


_MODELS: dict[str, Callable[[Dictionary, int, torch.device], BackgroundModel]] = {
    NoBackground().kind: lambda dictionary, channels, device: Given(torch.zeros(channels, device=device)),
    PlainBackground().kind: _given,
    ImageBackground().kind: _given,
    FreeBackground().kind: lambda dictionary, channels, device: FreePlain(),
}


def background_model(settings: Settings, dictionary: Dictionary, channels: int, device: torch.device) -> BackgroundModel:
    """The background that the settings name."""
    return _MODELS[settings.background.kind](dictionary, channels, device)
