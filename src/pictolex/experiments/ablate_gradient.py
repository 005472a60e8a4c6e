"""Differentiable compositing: all elements of an image at once, by gradient descent through the renderer from random starts.

The alternative that the paper names (Reddy et al. 2020, "Discovering Pattern Structure Using Differentiable Compositing"), as a
baseline. Each element is a position, an angle, a scale and a softmax over the concepts and none at all: the softer choice is the
mean of the patches. Adam lowers the squared error of the image and of its pooled versions, from several random starts; then each
element takes its likeliest concept, and poses go on alone. The start whose elements cost least is the answer.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn import functional

from pictolex.decompose import Batch, Engine, Layout, Problem, Progress, Renderer, Stage, batches
from pictolex.decompose.parallel import side_by_side
from pictolex.errors import InputError
from pictolex.formation import Patches, pack, paint, sample
from pictolex.model import Collection, Decomposition, Dictionary
from pictolex.settings import Settings
from pictolex.sources import Source

BATCH = {"cpu": 2, "cuda": 64}
"""Images at once: with all their starts they fit the cache."""
POOLED = (1, 2, 4, 8, 16)
"""Sides of the windows that images are pooled by: far from its object an element sees it only in these."""


@dataclass(frozen=True)
class Descent:
    """How it goes down. `rates`: of position (pixels), angle, log scale, choice; each falls to nothing along a cosine."""

    starts: int = 12
    soft: int = 120
    hard: int = 60
    rates: tuple[float, float, float, float] = (1.0, 0.1, 0.05, 0.2)
    seed: int = 0


class Compositing:
    """Finds the elements of a batch of images by gradients alone."""

    def __init__(self, stage: Stage, dictionary: Dictionary, descent: Descent) -> None:
        if dictionary.hues is not None:
            raise InputError("differentiable compositing is written for concepts in their own colours; choose a dictionary without hues")
        self.stage, self.descent = stage, descent
        self.patches = centred(pack(dictionary.concepts, stage.device))
        place = stage.settings.placement
        self.turns, self.scales = place.rotations > 1, len(place.scales) > 1

    def solve(self, problem: Problem) -> Layout:
        """The best of all starts; these are the same for every batch, so that batches can be worked on side by side."""
        starts, slots = self.descent.starts, self.stage.settings.layers
        repeated = problem.repeat(starts)
        generator = torch.Generator().manual_seed(self.descent.seed)
        free = self._start(len(problem.image) * starts, problem.image.shape[-2:], generator)
        self._descend(repeated, free, self.descent.soft, lambda: free[3].softmax(-1))
        chosen = free[3].detach().argmax(-1)
        self._descend(repeated, free[:3], self.descent.hard, lambda: functional.one_hot(chosen, len(self.patches) + 1).float())
        with torch.inference_mode():
            concept = torch.where(chosen < len(self.patches), chosen, -1)
            colour = torch.ones(*concept.shape, problem.image.shape[1], device=concept.device)
            layout = Layout(concept, _poses(free), torch.full_like(concept, -1), colour)
            layout, energy = self.pruned(repeated, layout)
            best = energy.view(-1, starts).argmin(1)
            return layout.take(best + torch.arange(len(best), device=best.device) * starts).compact().pad(slots)

    def _start(self, count: int, size: torch.Size, generator: torch.Generator) -> list[Tensor]:
        """Random positions, angles and scales as placement allows them, no preference among the concepts."""
        slots, device = self.stage.settings.layers, self.stage.device

        def uniform(*shape: int) -> Tensor:
            return torch.rand(count, slots, *shape, generator=generator).to(device)

        low, high = self.stage.scale_range if self.scales else (0.0, 0.0)
        position = uniform(2) * torch.tensor([size[1], size[0]], device=device)
        angle = uniform() * 2 * math.pi * self.turns
        scale = low + (high - low) * uniform()
        choice = 0.01 * uniform(len(self.patches) + 1)
        return [t.requires_grad_() for t in (position, angle, scale, choice)]

    def _descend(self, problem: Problem, free: list[Tensor], steps: int, shares: Callable[[], Tensor]) -> None:
        """Adam on everything in `free`; `shares` (images, slots, concepts + 1): how much of each concept an element is."""
        rates = self.descent.rates
        moving = [rates[0], rates[1] * self.turns, rates[2] * self.scales, rates[3]]
        optimizer = torch.optim.Adam([{"params": [t], "lr": rate} for t, rate in zip(free, moving, strict=False)], betas=(0.9, 0.95))
        falling = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, max(1, steps))
        low, high = self.stage.scale_range
        for _ in range(steps):
            optimizer.zero_grad(set_to_none=True)
            self._loss(problem, self._layers(problem, _poses(free), shares())).backward()
            optimizer.step()
            falling.step()
            with torch.no_grad():
                free[2].clamp_(low, high)

    def _layers(self, problem: Problem, pose: Tensor, shares: Tensor) -> Tensor:
        """(images, slots, channels + 1, height, width): one mixed patch an element; edges are not squashed, which would hide them."""
        count, slots = pose.shape[:2]
        mixed = torch.einsum("nsk,kchw->nschw", shares[..., :-1], self.patches.values).flatten(0, 1)
        own = Patches(mixed, self.patches.centre[:1].expand(len(mixed), -1), self.patches.size[:1].expand(len(mixed), -1))
        which = torch.arange(len(mixed), device=mixed.device)
        sheets = sample(own, which, pose.flatten(0, 1), *problem.image.shape[-2:]).unflatten(0, (count, slots))
        return paint(sheets, torch.ones(count, slots, problem.image.shape[1], device=pose.device))

    def _loss(self, problem: Problem, layers: Tensor) -> Tensor:
        """Squared error of the images and of their pooled versions, each worth as much per pixel."""
        left = problem.weight * (problem.image - self.stage.formation.render(layers, problem.background))
        sides = [side for side in POOLED if side <= min(left.shape[-2:])]
        return torch.stack([functional.avg_pool2d(left, side).square().sum() * side**2 for side in sides]).sum()

    def pruned(self, problem: Problem, layout: Layout) -> tuple[Layout, Tensor]:
        """Without the elements that do not pay their price, from the back; and what the others cost."""
        size = problem.image.shape[-2:]
        price = self.stage.settings.price
        layers = self.stage.layers(layout, *size)
        energy = self.stage.error(problem, layers) + price * layout.count
        for slot in reversed(range(layout.concept.shape[1])):
            gone = torch.zeros_like(layout.used)
            gone[:, slot] = layout.used[:, slot]
            tried = layers * (~gone)[:, :, None, None, None]
            value = self.stage.error(problem, tried) + price * (layout.used & ~gone).sum(1)
            better = value <= energy
            gone &= better.unsqueeze(1)
            layout, energy = layout.without(gone), torch.where(better, value, energy)
            layers = layers * (~gone)[:, :, None, None, None]
        return layout, energy


def composited(
    dictionary: Dictionary, settings: Settings, source: Source, descent: Descent, progress: Callable[[Progress], None] | None = None
) -> Collection:
    """The elements of every image of a source, found by gradients; as the engine gives them."""
    engine = Engine(dictionary, settings)
    found: dict[int, Decomposition] = {}
    started, error, values, elements = time.monotonic(), 0.0, 0.0, 0

    def solved(batch: Batch) -> list[Decomposition]:
        compositing = Compositing(engine.ready(batch.image.shape[1])[0], dictionary, descent)
        problem = engine.problem(batch.image, batch.weight)
        layout = compositing.solve(problem)
        with torch.inference_mode():
            return engine.told(batch, problem, layout)

    for batch, told in side_by_side(solved, _prepared(engine, source), engine.workers):
        found |= {one.index: one for one in told}
        error, elements = error + sum(one.error for one in told), elements + sum(len(one) for one in told)
        values += batch.image.numel()
        if progress is not None:
            left = (time.monotonic() - started) / len(found) * (len(source) - len(found))
            progress(Progress(len(found), len(source), error / values, elements / len(found), left))
    collection = Collection.from_decompositions([found[i] for i in sorted(found)])
    return collection.drawn_by(Renderer(dictionary, settings))


def _prepared(engine: Engine, source: Source) -> Iterator[Batch]:
    """Batches, their stage made before they are worked on side by side."""
    size = BATCH.get(engine.device.type, BATCH["cpu"])
    for batch in batches(source, lambda height, width, channels: size, engine.channels, engine.device):
        engine.ready(batch.image.shape[1])
        yield batch


def centred(patches: Patches) -> Patches:
    """Patches in one frame, the centres of all in its middle, so that they can be mixed."""
    side = [int(patches.size[:, k].max()) + 2 for k in (0, 1)]
    pose = torch.zeros(len(patches), 5, device=patches.values.device)
    pose[:, 0], pose[:, 1] = side[1] / 2, side[0] / 2
    values = sample(patches, torch.arange(len(patches), device=pose.device), pose, side[0], side[1])
    size = torch.tensor([side], device=pose.device).expand(len(patches), -1)
    return Patches(values, size.flip(1).float() / 2, size)


def _poses(free: list[Tensor]) -> Tensor:
    """(images, slots, 5)."""
    position, angle, scale = free[:3]
    return torch.cat([position, torch.stack([angle, scale, torch.zeros_like(angle)], dim=-1)], dim=-1)
