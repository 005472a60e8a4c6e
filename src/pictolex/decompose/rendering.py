"""Images back from elements, with their layers and which element each pixel shows."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from pictolex.decompose.stage import Problem, Stage
from pictolex.decompose.table import from_decomposition, rebuild_large
from pictolex.formation import Formation
from pictolex.model import Decomposition, Dictionary
from pictolex.settings import Settings

ROUNDING = 0.5 / 255
"""Orders whose images differ by less than this anywhere are tied."""
MOST_ORDERS = 120


@dataclass(frozen=True)
class Rendered:
    """One image rebuilt from its elements."""

    image: NDArray[np.float32]
    """(height, width, channels)."""
    alphas: NDArray[np.float32]
    """(elements, height, width): the alpha of each layer, front to back, hidden or not."""
    colours: NDArray[np.float32]
    """(elements, height, width, channels): the straight colour of each layer."""
    labels: NDArray[np.int64]
    """(height, width): 0 where the background has the largest visible share, k where the element of depth k - 1 has it."""
    _layers: Tensor
    _background: Tensor
    _formation: Formation

    def tied_labels(self) -> Iterator[NDArray[np.int64]]:
        """Label maps of the orders that leave the image the same within rounding; the order found comes first."""
        yield self.labels
        if not self._formation.ordered:
            return
        image = self._formation.render(self._layers, self._background)
        for order in self._orders():
            tried = self._layers[list(order)]
            if float((self._formation.render(tried, self._background) - image).abs().max()) < ROUNDING:
                yield _labels(self._formation, tried, list(order))

    def _orders(self) -> Iterator[tuple[int, ...]]:
        """Other orders worth trying: of the elements that overlap, group by group."""
        count = self._layers.shape[0]
        for group in _overlapping(self._layers[:, -1]):
            for permuted in itertools.islice(itertools.permutations(group), 1, MOST_ORDERS):
                order = list(range(count))
                for place, member in zip(group, permuted, strict=True):
                    order[place] = member
                yield tuple(order)


class Renderer:
    """Renders decompositions of one dictionary."""

    def __init__(
        self, dictionary: Dictionary, settings: Settings, device: torch.device | str = "cpu", formation: Formation | None = None
    ) -> None:
        self.dictionary = dictionary
        self.settings = settings
        self.device = torch.device(device)
        self._formation = formation
        self._stages: dict[int, Stage] = {}

    def _stage(self, channels: int) -> Stage:
        if channels not in self._stages:
            # Rendering needs no kernels: one rotation and one scale, so that the bank is small.
            plain = self.settings.model_copy(
                update={"placement": self.settings.placement.model_copy(update={"rotations": 1, "scales": (1.0,), "mirror": False})}
            )
            self._stages[channels] = Stage(self.dictionary, plain, channels, device=self.device, formation=self._formation)
        return self._stages[channels]

    def render(self, decomposition: Decomposition) -> Rendered:
        """One image and its layers."""
        background = self._background(decomposition)
        channels = background.shape[1]
        stage = self._stage(channels)
        layout = from_decomposition(self.dictionary, decomposition, channels, self.device)
        with torch.inference_mode():
            layers = stage.layers(layout, decomposition.height, decomposition.width)[0, : len(decomposition)]
            image = stage.formation.render(layers, background[0])
            alpha = layers[:, -1:]
            colours = (layers[:, :-1] / alpha.clamp_min(1e-6)).clamp(0, 1)
            labels = _labels(stage.formation, layers, list(range(len(decomposition))))
        return Rendered(
            image.permute(1, 2, 0).cpu().numpy(),
            alpha[:, 0].cpu().numpy(),
            colours.permute(0, 2, 3, 1).cpu().numpy(),
            labels,
            layers,
            background[0],
            stage.formation,
        )

    def image(self, decomposition: Decomposition) -> NDArray[np.float32]:
        """The rebuilt image (height, width, channels)."""
        return self.rebuild(decomposition) if self._large(decomposition) else self.render(decomposition).image

    def layers(self, decomposition: Decomposition) -> NDArray[np.float32]:
        """Straight colour and alpha of every element (elements, height, width, channels + 1), front to back."""
        rendered = self.render(decomposition)
        return np.concatenate([rendered.colours, rendered.alphas[..., None]], axis=-1)

    def _large(self, decomposition: Decomposition) -> bool:
        return max(decomposition.height, decomposition.width) > self.settings.tile

    def rebuild(self, decomposition: Decomposition) -> NDArray[np.float32]:
        """Only the image, without holding its layers; for large ones."""
        background = self._background(decomposition)
        stage = self._stage(background.shape[1])
        layout = from_decomposition(self.dictionary, decomposition, background.shape[1], self.device)
        with torch.inference_mode():
            image = rebuild_large(stage, Problem(background, torch.ones_like(background[:, :1]), background), layout)
        return image[0].permute(1, 2, 0).cpu().numpy()

    def _background(self, decomposition: Decomposition) -> Tensor:
        size = (decomposition.height, decomposition.width)
        if decomposition.background is not None:
            colour = torch.tensor(decomposition.background, dtype=torch.float32, device=self.device)
            return colour.view(1, -1, 1, 1).expand(1, len(colour), *size)
        values = self.dictionary.background.values
        if values is None:
            return torch.zeros(1, self.dictionary.channels, *size, device=self.device)
        tensor = torch.tensor(values, device=self.device)
        image = tensor.movedim(-1, 0) if tensor.ndim == 3 else tensor[:, None, None]
        return image.expand(image.shape[0], *size).unsqueeze(0)


def _labels(formation: Formation, layers: Tensor, names: list[int]) -> NDArray[np.int64]:
    """Which layer has the largest visible share at each pixel, by its name + 1; 0 for the background."""
    shares = formation.shares(layers)
    everything = torch.cat([1 - shares.sum(0, keepdim=True), shares])
    table = np.array([0, *(n + 1 for n in names)], np.int64)
    labels: NDArray[np.int64] = table[everything.argmax(0).cpu().numpy()]
    return labels


def _overlapping(alphas: Tensor) -> list[list[int]]:
    """Groups of elements connected by overlaps, those of more than one."""
    flat = (alphas > 0.01).flatten(1).float()
    touch = (flat @ flat.T > 0).tolist()
    groups: list[list[int]] = []
    left = set(range(len(touch)))
    while left:
        group, frontier = set(), {min(left)}
        while frontier:
            group |= frontier
            frontier = {j for i in frontier for j in left if touch[i][j]} - group
        left -= group
        if len(group) > 1:
            groups.append(sorted(group))
    return groups
