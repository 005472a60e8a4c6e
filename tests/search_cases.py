"""Small random searches: dictionaries of several sizes, contexts of two elements, images with pixels that do not count."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from pictolex.formation import Additive, Alpha, Formation, pack, paint, sample
from pictolex.model import Concept
from pictolex.search import Bank, Colour, CostModel, Fixed, Free, HueSet, Query, Searcher, build_bank, create_objective
from pictolex.settings import Correlation, SquaredError

DIRECT = CostModel(direct=0.0, transform=1.0, product=1.0)
FFT = CostModel(direct=1.0, transform=0.0, product=0.0)
OBJECTIVES = {"squared": SquaredError(), "ncc": Correlation()}
HUES = torch.tensor([[1.0, 0.2, 0.0], [0.1, 0.9, 0.4], [0.5, 0.5, 1.0]])


@dataclass(frozen=True)
class Case:
    """What a searcher is made of, and what it is asked."""

    bank: Bank
    formation: Formation
    query: Query
    channels: int

    def searcher(self, colour: Colour, objective: str = "squared", method: str = "exhaustive", **options: object) -> Searcher:
        return Searcher(self.bank, self.formation, colour, create_objective(OBJECTIVES[objective]), method=method, **options)  # type: ignore[arg-type]

    def colour(self, kind: str) -> Colour:
        """Fixed, one of a set, or free."""
        return {"fixed": Fixed(self.channels), "hues": HueSet(HUES[:, : self.channels]), "free": Free(self.channels)}[kind]

    def palette(self, kind: str) -> Tensor:
        """The colours that brute force tries for fixed and set colours."""
        return HUES[:, : self.channels] if kind == "hues" else torch.ones(1, self.channels)


def concepts(seed: int, sizes: list[tuple[int, int]], channels: int = 1) -> list[Concept]:
    rng = np.random.default_rng(seed)
    made = []
    for j, (h, w) in enumerate(sizes):
        alpha = np.clip(rng.random((h, w)) * 1.5, 0, 1).astype(np.float32)
        made.append(Concept(j, rng.random((h, w, channels), np.float32), alpha))
    return made


def case(
    seed: int,
    sizes: list[tuple[int, int]],
    size: tuple[int, int],
    *,
    channels: int = 1,
    shape_channels: int = 1,
    formation: str = "alpha",
    rotations: int = 1,
    scales: tuple[float, ...] = (1.0,),
    mirror: bool = False,
    batch: int = 1,
    elements: int = 2,
    weighted: bool = True,
) -> Case:
    """A random search in the context of `elements` random layers, the new element in the middle of them."""
    rng = torch.Generator().manual_seed(seed)

    def unit(*shape: int) -> Tensor:
        return torch.rand(*shape, generator=rng)

    maker: Formation = {"alpha": Alpha, "additive": Additive}[formation](shape_channels)
    patches = pack(concepts(seed, sizes, shape_channels))
    bank = build_bank(patches, maker, rotations, scales, mirror)
    high, wide = size
    layers = []
    for _ in range(elements):
        pose = torch.cat([unit(batch, 1) * wide, unit(batch, 1) * high, unit(batch, 1) * 6, torch.zeros(batch, 2)], 1)
        which = (unit(batch) * len(patches)).long()
        layers.append(paint(sample(patches, which, pose, high, wide), unit(batch, channels)))
    background = unit(batch, channels, 1, 1).expand(-1, -1, high, wide) * 0.5
    placed = torch.stack(layers, 1) if layers else torch.zeros(batch, 0, channels + 1, high, wide)
    # The slot after the first of the others.
    room = torch.zeros_like(background[:, None])
    room = torch.cat([room, torch.zeros_like(background[:, None, :1])], 2)
    context = maker.context(torch.cat([placed[:, :1], room, placed[:, 1:]], 1), background, min(1, elements))
    weight = (unit(batch, 1, high, wide) > 0.15).float() if weighted else torch.ones(batch, 1, high, wide)
    return Case(bank, maker, Query(unit(batch, channels, high, wide), weight, context), channels)
