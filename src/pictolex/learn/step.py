"""What a dictionary step is, and the factory that makes one from its setting."""

from __future__ import annotations

from typing import Protocol

import torch
from torch import Tensor

from pictolex.decompose import Layout, Problem
from pictolex.formation import Formation
from pictolex.learn.solve import Solver
from pictolex.learn.update import OPTIMIZERS, Updater
from pictolex.model import Dictionary
from pictolex.settings import Learning


class DictionaryStep(Protocol):
    """Holds the values that are learned and moves them, the elements of some images fixed."""

    def step(self, problem: Problem, layout: Layout) -> float:
        """Move on some images; their squared error before."""
        ...

    def dictionary(self) -> Dictionary:
        """The values as they are now."""
        ...

    def finished(self) -> Dictionary:
        """The values as they are kept when learning ends."""
        ...

    def restart(self, dictionary: Dictionary) -> None:
        """Go on from another dictionary."""
        ...

    def state(self) -> dict[str, Tensor]:
        """All numbers that the next step depends on, beside the dictionary that it was started from."""
        ...

    def resume(self, state: dict[str, Tensor]) -> None:
        """Take up what `state` gave, after a start from the same dictionary."""
        ...


def create_step(
    setting: Learning, dictionary: Dictionary, formation: Formation, device: torch.device, frozen: frozenset[int], pixel: float = 1.0
) -> DictionaryStep:
    """The step that the setting names. `pixel`: the side of an image's pixel on the patches, where they are largest."""
    if setting.optimizer in OPTIMIZERS:
        return Updater(dictionary, formation, device, setting, frozen=frozen)
    return Solver(dictionary, formation, device, frozen=frozen, pixel=pixel)
