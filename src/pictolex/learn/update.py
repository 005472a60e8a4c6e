"""The dictionary step: one step of gradient descent on the squared error of a batch, its elements fixed."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor

from pictolex.decompose import Layout, Problem
from pictolex.formation import Formation, paint, sample
from pictolex.learn.parameters import Parameters
from pictolex.settings import Learning

_OPTIMIZERS: dict[str, Callable[..., torch.optim.Optimizer]] = {
    "adadelta": torch.optim.Adadelta,
    "sgd": torch.optim.SGD,
    "adam": torch.optim.Adam,
    "rmsprop": torch.optim.RMSprop,
}


class Updater:
    """Moves parameters down the gradient; only those that a batch's elements use get one."""

    def __init__(self, parameters: Parameters, formation: Formation, setting: Learning) -> None:
        self.parameters = parameters
        self.formation = formation
        self.crisp = setting.crisp
        self.optimizer = _OPTIMIZERS[setting.optimizer](parameters.free(), lr=setting.rate)

    def step(self, problem: Problem, layout: Layout) -> float:
        """One step; the squared error of the batch before it."""
        self.optimizer.zero_grad(set_to_none=True)
        error, unclear = self.error(problem, layout)
        ((error + self.crisp * unclear) / len(problem.image)).backward()
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
