"""Finding where one element fits best: over every concept, rotation, scale, colour and shift."""

from pictolex.search.bank import Bank, build_bank
from pictolex.search.colour import Colour, Fixed, Free, HueSet
from pictolex.search.cost import CostModel, calibrate, calibrated
from pictolex.search.hits import Hits, Query
from pictolex.search.objective import Objective, Sums, sums
from pictolex.search.objective import create as create_objective
from pictolex.search.searcher import Searcher

__all__ = [
    "Bank",
    "Colour",
    "CostModel",
    "Fixed",
    "Free",
    "Hits",
    "HueSet",
    "Objective",
    "Query",
    "Searcher",
    "Sums",
    "build_bank",
    "calibrate",
    "calibrated",
    "create_objective",
    "sums",
]
