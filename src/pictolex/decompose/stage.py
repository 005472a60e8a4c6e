"""The stage: a dictionary made ready to decompose images with: patches, kernels, formation, colours and the search over them."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor

from pictolex.decompose.layout import Layout
from pictolex.errors import SettingError
from pictolex.formation import Formation, Patches, create, pack, paint, sample
from pictolex.model import Dictionary
from pictolex.search import Bank, Colour, CostModel, Fixed, Free, Hits, HueSet, Objective, Searcher, build_bank, create_objective
from pictolex.settings import FreeColour, HueColour, NoColour, Settings


@dataclass(frozen=True)
class Problem:
    """A batch of images of one size and what is behind them."""

    image: Tensor
    """(batch, channels, height, width)."""
    weight: Tensor
    """(batch, 1, height, width): 0 where a pixel carries no error."""
    background: Tensor
    """(batch, channels, height, width)."""

    def take(self, index: Tensor | slice) -> Problem:
        """Some images."""
        return Problem(self.image[index], self.weight[index], self.background[index])

    def clone(self) -> Problem:
        """A copy that differentiation may use."""
        return Problem(*(t.clone() for t in (self.image, self.weight, self.background)))

    def repeat(self, times: int) -> Problem:
        """Every image so many times in a row."""
        return Problem(*(t.repeat_interleave(times, 0) for t in (self.image, self.weight, self.background)))


class Stage:
    """Everything about a dictionary that does not change from image to image."""

    def __init__(
        self,
        dictionary: Dictionary,
        settings: Settings,
        channels: int,
        *,
        formation: Formation | None = None,
        device: torch.device | str = "cpu",
        patches: Patches | None = None,
        hues: Tensor | None = None,
        cost: CostModel | None = None,
    ) -> None:
        self.settings = settings
        self.channels = channels
        self.device = torch.device(device)
        self.patches = patches if patches is not None else pack(dictionary.concepts, device)
        if self.patches.shape_channels not in (1, channels):
            raise SettingError(
                f"the dictionary's concepts have {self.patches.shape_channels} colour channels but the images have {channels}: "
                "use images of the same kind (or a dictionary of luminance shapes)"
            )
        self.formation = (
            formation.recast(self.patches.shape_channels) if formation else create(settings.formation, self.patches.shape_channels)
        )
        if hues is None and dictionary.hues is not None:
            hues = torch.from_numpy(dictionary.hues.copy()).to(device)
        self.colour: Colour = _COLOURS[settings.colour.kind](settings.colour, hues, channels)
        self.objective: Objective = create_objective(settings.objective)
        place = settings.placement
        self.bank: Bank = build_bank(self.patches, self.formation, place.rotations, place.scales, place.mirror)
        self.searcher = Searcher(
            self.bank,
            self.formation,
            self.colour,
            self.objective,
            method=settings.search.method,
            keep=settings.search.candidates,
            memory=settings.memory,
            cost=cost,
        )

    @property
    def free(self) -> list[int]:
        """Which parameters of a pose polish may change: x, y, and rotation and log scale where several are tried."""
        place = self.settings.placement
        if not place.continuous:
            return []
        return [0, 1] + ([2] if place.rotations > 1 else []) + ([3] if len(place.scales) > 1 else [])

    @property
    def scale_range(self) -> tuple[float, float]:
        """Least and greatest log scale."""
        scales = self.settings.placement.scales
        return math.log(min(scales)) - 0.03, math.log(max(scales)) + 0.03

    def sheets(self, layout: Layout, height: int, width: int) -> Tensor:
        """(batch, slots, shape channels + 1, height, width)."""
        batch, slots = layout.concept.shape
        flat = sample(self.patches, layout.concept.flatten(), layout.pose.flatten(0, 1), height, width)
        return self.formation.sheet(flat).view(batch, slots, self.patches.values.shape[1], height, width)

    def layers(self, layout: Layout, height: int, width: int) -> Tensor:
        """(batch, slots, channels + 1, height, width)."""
        return paint(self.sheets(layout, height, width), layout.colour)

    def placed(self, hits: Hits) -> Layout:
        """What a search found, as a layout with as many slots as hits."""
        pose = self.bank.pose(hits.kernel, hits.left.float(), hits.top.float())
        return Layout(self.bank.concept[hits.kernel], pose, self.colour.hues(hits.choice), hits.colour)

    def error(self, problem: Problem, layers: Tensor) -> Tensor:
        """(batch): weighted squared error of the rebuilt images."""
        rebuilt = self.formation.render(layers, problem.background)
        return (problem.weight * (problem.image - rebuilt).square()).sum((-3, -2, -1))


def _hue_set(setting: HueColour, hues: Tensor | None, channels: int) -> Colour:
    if hues is None:
        raise SettingError(
            "the colour setting is 'hues' but the dictionary has none: learn it with hues, or set colour.kind to none or free"
        )
    if hues.shape[1] != channels:
        raise SettingError(
            f"the dictionary's hues have {hues.shape[1]} channels but the images have {channels}: use images of the same kind"
        )
    return HueSet(hues)


_COLOURS: dict[str, Callable[..., Colour]] = {
    NoColour().kind: lambda setting, hues, channels: Fixed(channels),
    HueColour().kind: _hue_set,
    FreeColour().kind: lambda setting, hues, channels: Free(channels),
}
