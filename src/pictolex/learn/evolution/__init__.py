"""How dictionaries evolve: a policy decides on a census of what each concept does; pure operations change the dictionary."""

from __future__ import annotations

from collections.abc import Callable

from pictolex.learn.evolution.base import Evolution, Evolved, Still, Surroundings
from pictolex.learn.evolution.paper import PaperPolicy
from pictolex.learn.evolution.pays import PaysPolicy

__all__ = ["Evolution", "Evolved", "Surroundings", "create_evolution"]

_POLICIES: dict[str, Callable[..., Evolution]] = {"none": Still, "paper": PaperPolicy, "pays": PaysPolicy}


def create_evolution(around: Surroundings) -> Evolution:
    """The policy that the settings name."""
    return _POLICIES[around.settings.evolution.kind](around, around.settings.evolution)
