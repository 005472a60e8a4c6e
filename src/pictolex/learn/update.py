"""The dictionary step by gradients: steps down the squared error of batches, their elements fixed, as the paper has it."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor

from pictolex.decompose import Layout, Problem
from pictolex.formation import Formation, paint, sample
from pictolex.learn.parameters import Parameters
from pictolex.model import Dictionary
from pictolex.settings import Learning

OPTIMIZERS: dict[str, Callable[..., torch.optim.Optimizer]] = {
    "adadelta": torch.optim.Adadelta,
    "sgd": torch.optim.SGD,
    "adam": torch.optim.Adam,
    "rmsprop": torch.optim.RMSprop,
}


class Updater:
    """Moves parameters down the gradient; only those that a batch's elements use get one, and frozen concepts get none."""

    def __init__(
        self,
        dictionary: Dictionary,
        formation: Formation,
        device: torch.device,
        setting: Learning,
        *,
        frozen: frozenset[int] = frozenset(),
    ) -> None:
        self.formation = formation
        self.device = device
        self.setting = setting
        self.frozen = frozen
        self.restart(dictionary)

    def restart(self, dictionary: Dictionary) -> None:
        """Go on from another dictionary; what the optimiser remembers is forgotten."""
        self.parameters = Parameters.of(dictionary, self.device)
        self.optimizer = OPTIMIZERS[self.setting.optimizer](self.parameters.free(), lr=self.setting.rate)
        self._moves = torch.tensor([c.id not in self.frozen for c in dictionary], device=self.device).float()[:, None, None, None]

    def step(self, problem: Problem, layout: Layout) -> float:
        """One step for each batch of the images; their squared error, each batch's before its step."""
        error, size = 0.0, self.setting.batch
        for first in range(0, len(problem.image), size):
            part = slice(first, first + size)
            error += self.step_batch(problem.take(part), layout.take(part))
        return error

    def step_batch(self, problem: Problem, layout: Layout) -> float:
        """One step; the squared error before it."""
        self.optimizer.zero_grad(set_to_none=True)
        error, unclear = self.error(problem, layout)
        ((error + self.setting.crisp * unclear) / len(problem.image)).backward()
        for free in (self.parameters.shape, self.parameters.alpha):
            if free.grad is not None:
                free.grad *= self._moves
        self.optimizer.step()
        return float(error.detach())

    def error(self, problem: Problem, layout: Layout) -> tuple[Tensor, Tensor]:
        """The squared error of a batch and how far its alphas are from clear or opaque, differentiable."""
        batch, slots = layout.concept.shape
        height, width = problem.image.shape[-2:]
        sampled = sample(self.parameters.patches(), layout.concept.flatten(), layout.pose.flatten(0, 1), height, width)
        sheets = self.formation.sheet(sampled).view(batch, slots, sampled.shape[1], height, width)
        hues = self.parameters.colours()
        colour = layout.colour
        if hues is not None:
            known = (layout.hue >= 0).unsqueeze(-1)
            colour = torch.where(known, hues[layout.hue.clamp_min(0)], colour)
        behind = self.parameters.behind()
        background = problem.background
        if behind is not None:
            plane = behind if behind.ndim == 3 else behind[:, None, None]
            background = plane.expand_as(background)
        alpha = sheets[..., -1, :, :]
        rebuilt = self.formation.render(paint(sheets, colour), background)
        return (problem.weight * (problem.image - rebuilt).square()).sum(), (alpha * (1 - alpha)).sum()

    def dictionary(self) -> Dictionary:
        """The values as they are now."""
        return self.parameters.dictionary(self.frozen)

    def finished(self) -> Dictionary:
        """The same."""
        return self.dictionary()

    def state(self) -> dict[str, Tensor]:
        """The free numbers and what the optimiser remembers of each."""
        named = {f"free_{k}": free.detach() for k, free in enumerate(self.parameters.free())}
        for k, memory in self.optimizer.state_dict()["state"].items():
            named |= {f"optimizer_{k}_{name}": torch.as_tensor(value) for name, value in memory.items()}
        return named

    def resume(self, state: dict[str, Tensor]) -> None:
        """Take up what `state` gave."""
        with torch.no_grad():
            for k, free in enumerate(self.parameters.free()):
                free.copy_(state[f"free_{k}"])
        held = self.optimizer.state_dict()
        memory: dict[int, dict[str, Tensor]] = {}
        for name, value in state.items():
            if name.startswith("optimizer_"):
                _, number, what = name.split("_", 2)
                memory.setdefault(int(number), {})[what] = value
        self.optimizer.load_state_dict({"state": memory, "param_groups": held["param_groups"]})
