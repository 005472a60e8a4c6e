"""Brute force: every kernel at every shift in every colour, rendered and compared. Slow and obvious; the truth for tests."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from pictolex.formation import paint
from pictolex.search.bank import Bank
from pictolex.search.hits import Query
from pictolex.search.searcher import Searcher


@dataclass(frozen=True)
class Place:
    """One placement and what it is worth."""

    kernel: int
    left: int
    top: int
    choice: int
    score: float
    gain: float


def every_place(searcher: Searcher, query: Query, colours: Tensor) -> list[Place]:
    """All placements of all kernels that touch the (single) image, in each of the given colours (colours, channels)."""
    places = []
    formation = searcher.formation
    image, weight = query.image[0].double(), query.weight[0].double()
    context = type(query.context)(*(t[0].double() for t in (query.context.rebuilt, query.context.light, query.context.behind)))
    start = (weight * (image - context.rebuilt) ** 2).sum()
    high, wide = image.shape[-2:]
    for kernel in range(len(searcher.bank)):
        sheet = kernel_sheet(searcher.bank, kernel).double()
        for top in range(1 - sheet.shape[-2], high):
            for left in range(1 - sheet.shape[-1], wide):
                placed = paste(sheet, top, left, high, wide)
                for choice, colour in enumerate(colours.double()):
                    rebuilt = context.rebuilt + formation.effect(context, paint(placed, colour))
                    gain = float(start - (weight * (image - rebuilt) ** 2).sum())
                    score = gain
                    if searcher.objective.needs_inner:
                        power = (weight * image**2).sum() * (weight * rebuilt**2).sum()
                        score = float((weight * image * rebuilt).sum() / power.sqrt()) if power > 1e-9 else 0.0
                    places.append(Place(kernel, left, top, choice, score, gain))
    return places


def kernel_sheet(bank: Bank, kernel: int) -> Tensor:
    """The sheet of one kernel."""
    return bank.shelves[int(bank.shelf[kernel])].sheets[int(bank.place[kernel])]


def paste(sheet: Tensor, top: int, left: int, high: int, wide: int) -> Tensor:
    """A sheet with its top left corner at (left, top) of an empty canvas."""
    canvas = torch.zeros(sheet.shape[0], high, wide, dtype=sheet.dtype)
    for row in range(sheet.shape[-2]):
        for column in range(sheet.shape[-1]):
            if 0 <= top + row < high and 0 <= left + column < wide:
                canvas[:, top + row, left + column] = sheet[:, row, column]
    return canvas
