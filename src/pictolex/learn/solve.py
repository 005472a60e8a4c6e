"""The dictionary step in closed form: with the elements fixed, each value of the dictionary moves by the mean of what is left over
where it is seen.

The image is linear in alpha (shape given), in shape (alpha given), in hues and in the background. With `e` what one unit more would
change in the image, `r = I - R` what is left over, and `S` the resampling of patches onto pixels, a value moves by

    S^T sum_c w r e  /  S^T sum_c w e^2

which is the least-squares solution at once where elements lie on whole pixels, and a step towards it (Jacobi's, with the row sums
for its diagonal) everywhere else. There is no rate to choose. Where edges are squashed after resampling, `e` is taken of the edge
before: as sharp as they are drawn, edges would be seen only by pixels that are on them.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional

from pictolex.decompose import Layout, Problem
from pictolex.formation import Context, Formation, Patches, paint, sample
from pictolex.learn.effects import by_alpha, by_hue, by_shape, pulled
from pictolex.learn.parameters import padded
from pictolex.model import Background, Concept, Dictionary

STEPS = 3
"""Jacobi steps on one group of images."""
MEMORY = 0.5
"""Share of the weight of earlier groups that still counts."""
RIDGE = 0.5
"""Weight, in pixels, of the value a pixel has."""
SOLID = 0.5
"""Shape is learned where alpha is above this; the rest goes on in the same colours."""
OUTLIERS = 6.0
"""Images with an error above this many times the median of their group say nothing of the dictionary."""


@dataclass
class _Weights:
    """What earlier groups weighed, for each kind of value."""

    alpha: Tensor
    shape: Tensor
    hues: Tensor
    background: Tensor


@dataclass(frozen=True)
class _Scene:
    """Images as they are rebuilt by now, and what is left over of them."""

    sheets: Tensor
    straight: Tensor
    colour: Tensor
    behind: Tensor
    layers: Tensor
    around: Context
    rebuilt: Tensor
    left: Tensor

    @property
    def opaque(self) -> Tensor:
        """Alphas as they are drawn (batch, slots, 1, h, w)."""
        return self.sheets[:, :, -1:]


class Solver:
    """Moves shapes, alphas, hues and background; keeps what is frozen."""

    def __init__(
        self,
        dictionary: Dictionary,
        formation: Formation,
        device: torch.device,
        *,
        frozen: frozenset[int] = frozenset(),
        pixel: float = 1.0,
    ) -> None:
        self.formation = formation
        self.pixel = pixel
        self.device = device
        self.frozen = frozen
        self.restart(dictionary)

    def restart(self, dictionary: Dictionary) -> None:
        """Go on from another dictionary."""
        self.template = dictionary
        self.shape, self.alpha, self.inside, self.size = padded(dictionary, self.device)
        for j, concept in enumerate(dictionary):
            if concept.id in self.frozen:
                self.inside[j] = 0
        self.hues = None if dictionary.hues is None else torch.tensor(dictionary.hues, device=self.device)
        values = dictionary.background.values
        self.background = None if values is None else torch.tensor(np.moveaxis(values, -1, 0), device=self.device)
        none = torch.zeros(1, device=self.device)
        self.past = _Weights(torch.zeros_like(self.alpha), torch.zeros_like(self.shape), none, none)

    def step(self, problem: Problem, layout: Layout) -> float:
        """Move on one group of images; their squared error before."""
        before = self._error(problem, layout)
        kept = (before <= OUTLIERS * before.median() + 1).nonzero()[:, 0]
        problem, layout = problem.take(kept), layout.take(kept)
        # One after the other: together they would mend the same error twice, and what alpha can explain it does.
        moves = (self._move_alpha, self._move_shape, self._move_hues, self._move_background)
        weights = _Weights(*([move(problem, layout) for _ in range(STEPS)][-1] for move in moves))
        past = self.past
        pairs = [(getattr(past, n), getattr(weights, n)) for n in ("alpha", "shape", "hues", "background")]
        self.past = _Weights(*((old + new) * MEMORY for old, new in pairs))
        return float(before.sum())

    def dictionary(self) -> Dictionary:
        """The values as they are now."""
        return self._dictionary(torch.cat([self.shape, self.alpha], dim=1))

    def finished(self) -> Dictionary:
        """The values as the formation wants them kept."""
        return self._dictionary(self.formation.settle(torch.cat([self.shape, self.alpha], dim=1), self.pixel))

    def _dictionary(self, patches: Tensor) -> Dictionary:
        values = patches.cpu().numpy()
        alpha, shape = values[:, -1], values[:, :-1]
        concepts = []
        for j, old in enumerate(self.template.concepts):
            h, w = old.alpha.shape
            made = Concept(old.id, np.moveaxis(shape[j, :, :h, :w], 0, -1), alpha[j, :h, :w], old.name)
            concepts.append(old if old.id in self.frozen else made)
        kept = self.template.background
        behind = kept if self.background is None else Background(kept.kind, np.moveaxis(self.background.cpu().numpy(), 0, -1))
        hues = None if self.hues is None else self.hues.cpu().numpy()
        return replace(self.template, concepts=tuple(concepts), hues=hues, background=behind)

    def state(self) -> dict[str, Tensor]:
        """All numbers that the next step depends on, beside the dictionary's form."""
        named = {"shape": self.shape, "alpha": self.alpha, **{f"past_{n}": t for n, t in vars(self.past).items()}}
        return named | {n: t for n, t in (("hues", self.hues), ("background", self.background)) if t is not None}

    def resume(self, state: dict[str, Tensor]) -> None:
        """Take up what `state` gave."""
        on = {name: tensor.to(self.device) for name, tensor in state.items()}
        self.shape, self.alpha = on["shape"], on["alpha"]
        self.hues, self.background = on.get("hues"), on.get("background")
        self.past = _Weights(on["past_alpha"], on["past_shape"], on["past_hues"], on["past_background"])

    def _patches(self) -> Patches:
        return Patches(torch.cat([self.shape * self.alpha, self.alpha], dim=1), self.size.flip(1).float() / 2, self.size)

    def _colours(self, layout: Layout) -> Tensor:
        if self.hues is None:
            return layout.colour
        known = (layout.hue >= 0).unsqueeze(-1)
        return torch.where(known, self.hues[layout.hue.clamp_min(0)], layout.colour)

    def _behind(self, problem: Problem) -> Tensor:
        if self.background is None:
            return problem.background
        plane = self.background if self.background.ndim == 3 else self.background[:, None, None]
        return plane.expand_as(problem.background)

    def _sheets(self, layout: Layout, height: int, width: int) -> tuple[Tensor, Tensor]:
        """Sheets (batch, slots, channels + 1, h, w), and the straight shapes alone where they are seen."""
        batch, slots = layout.concept.shape
        patches = self._patches()
        pose = layout.pose.flatten(0, 1)
        sheets = self.formation.sheet(sample(patches, layout.concept.flatten(), pose, height, width))
        straight = sample(Patches(self.shape, patches.centre, patches.size), layout.concept.flatten(), pose, height, width)
        return sheets.unflatten(0, (batch, slots)), straight.unflatten(0, (batch, slots))

    def _error(self, problem: Problem, layout: Layout) -> Tensor:
        sheets, _ = self._sheets(layout, *problem.image.shape[-2:])
        rebuilt = self.formation.render(paint(sheets, self._colours(layout)), self._behind(problem))
        return (problem.weight * (problem.image - rebuilt).square()).sum((1, 2, 3))

    def _scene(self, problem: Problem, layout: Layout) -> _Scene:
        sheets, straight = self._sheets(layout, *problem.image.shape[-2:])
        colour, behind = self._colours(layout), self._behind(problem)
        layers = paint(sheets, colour)
        around = self.formation.contexts(layers, behind)
        first = Context(around.rebuilt[:, 0], around.light[:, 0], around.behind[:, 0])
        rebuilt = first.rebuilt + self.formation.effect(first, layers[:, 0])
        return _Scene(sheets, straight, colour, behind, layers, around, rebuilt, problem.weight * (problem.image - rebuilt))

    def _move_alpha(self, problem: Problem, layout: Layout) -> Tensor:
        """Alphas, in the shapes they have."""
        scene = self._scene(problem, layout)
        effect = by_alpha(self.formation, scene.around, scene.straight, scene.colour)
        match = (scene.left.unsqueeze(1) * effect).sum(2, keepdim=True)
        power = (problem.weight.unsqueeze(1) * _shared(effect, scene.opaque)).sum(2, keepdim=True)
        match, power = self._pulled(torch.cat([match, power], dim=2), layout).chunk(2, dim=1)
        self.alpha = _moved(self.alpha, match * self.inside, power + self.past.alpha)
        return power

    def _move_shape(self, problem: Problem, layout: Layout) -> Tensor:
        """Shapes, where alpha lets them be seen."""
        scene = self._scene(problem, layout)
        effect = by_shape(self.formation, scene.around, scene.opaque * (scene.opaque > SOLID), scene.colour)
        channels = self.shape.shape[1]
        match = _gathered(scene.left.unsqueeze(1) * effect, channels)
        power = _gathered(problem.weight.unsqueeze(1) * _shared(effect, scene.opaque), channels)
        match, power = self._pulled(torch.cat([match, power], dim=2), layout).chunk(2, dim=1)
        weighed = power + self.past.shape
        self.shape = _continued(_moved(self.shape, match * self.inside, weighed), self.alpha, weighed, self.inside)
        return power

    def _pulled(self, maps: Tensor, layout: Layout) -> Tensor:
        centre, shape = self.size.flip(1).float() / 2, (self.shape.shape[-2], self.shape.shape[-1])
        return pulled(maps.flatten(0, 1), layout.concept.flatten(), layout.pose.flatten(0, 1), centre, self.size, shape)

    def _move_hues(self, problem: Problem, layout: Layout) -> Tensor:
        """Each hue by the elements that show it."""
        if self.hues is None:
            return self.past.hues
        scene = self._scene(problem, layout)
        effect = by_hue(self.formation, scene.around, scene.sheets[:, :, :-1], scene.colour.shape[-1])
        maps = (scene.left.unsqueeze(1) * effect, problem.weight.unsqueeze(1) * _shared(effect, scene.opaque))
        chosen = (layout.hue >= 0) & layout.used
        index = torch.where(chosen, layout.hue, 0).flatten()
        total = torch.zeros(2, *self.hues.shape, device=index.device)
        for k, values in enumerate(maps):
            total[k].index_add_(0, index, (values.sum((-2, -1)) * chosen.unsqueeze(-1)).flatten(0, 1))
        self.hues = _moved(self.hues, total[0], total[1] + self.past.hues)
        return total[1]

    def _move_background(self, problem: Problem, layout: Layout) -> Tensor:
        """By what the elements let through; a plain one by all its pixels together."""
        if self.background is None:
            return self.past.background
        scene = self._scene(problem, layout)
        through = self.formation.render(scene.layers, scene.behind + 1) - scene.rebuilt
        over = (0,) if self.background.ndim == 3 else (0, 2, 3)
        match, power = (scene.left * through).sum(over), (problem.weight * through.square()).sum(over)
        self.background = _moved(self.background, match, power + self.past.background)
        return power


def _moved(value: Tensor, match: Tensor, power: Tensor) -> Tensor:
    return (value + match / (power + RIDGE)).clamp(0, 1)


def _shared(effect: Tensor, alpha: Tensor) -> Tensor:
    """`e^2` (batch, slots, channels, h, w), or more where others are seen that change the same: together they must not overshoot."""
    size = effect.abs()
    seen = size * (alpha > 0)
    return size * (size - seen + seen.sum(1, keepdim=True))


def _gathered(maps: Tensor, channels: int) -> Tensor:
    """The image's channels (batch, slots, c, h, w) for as many as shapes have."""
    return maps if channels > 1 else maps.sum(2, keepdim=True)


def _continued(shape: Tensor, alpha: Tensor, power: Tensor, inside: Tensor) -> Tensor:
    """Where alpha is not full nothing tells what colour is under it: the nearest colours that are known go on there."""
    known = ((alpha > SOLID) & (power.amax(1, keepdim=True) > RIDGE)).to(shape.dtype)
    values = shape * known
    for _ in range(3):
        around = functional.avg_pool2d(functional.pad(torch.cat([values, known], dim=1), (1, 1, 1, 1)), 3, 1)
        grown = around[:, :-1] / around[:, -1:].clamp_min(1e-6)
        fresh = (known == 0) & (around[:, -1:] > 0)
        values = torch.where(fresh, grown, values)
        known = torch.maximum(known, fresh.to(known.dtype))
    return torch.where((known > 0) & (inside > 0), values, shape)
