"""Two concepts that are one, and one that is two: how well a patch can stand for another, and the halves of a patch's elements."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from pictolex.decompose import Engine, Layout, Problem
from pictolex.formation import Context, Patches, pack, sample
from pictolex.learn.effects import by_alpha, pulled
from pictolex.learn.evolution.base import Surroundings
from pictolex.learn.evolution.census import rendered
from pictolex.learn.kept import Kept
from pictolex.learn.likeness import centre_and_radius
from pictolex.model import Concept, Dictionary
from pictolex.settings import Placement

STEPS = 6
"""Halvings of the steps in which a pose is refined."""
ENOUGH = 256
"""Elements of a concept that are looked at."""
FEWEST = 12
"""A concept with fewer elements is not two."""
POWER_STEPS = 12
RIDGE = 0.5


@dataclass(frozen=True)
class StandIn:
    """How a patch lies in another's place: pose of the one in the other's pixels, and what is lost."""

    x: float
    y: float
    rotation: float
    log_scale: float
    cost: float
    """Squared difference, alpha and premultiplied shape together halved: what an element on other ground loses."""


def stand_in(one: Concept, other: Concept, placement: Placement) -> StandIn | None:
    """The pose in which `one` is most like `other`, among those that placement allows; None where they differ in kind."""
    if one.channels != other.channels or one.is_voxel:
        return None
    target = premultiplied(other)
    height, width = target.shape[1:]
    # A border, so that what the one shows beyond the other's patch counts.
    border = max(one.height, one.width)
    wide = torch.nn.functional.pad(target, (border, border, border, border))
    patches = pack([one])
    turns, scales = placement.rotations > 1, len(placement.scales) > 1
    starts = _starts(one, other, turns, scales)
    free = torch.tensor([1.0, 1.0, float(turns), float(scales)])
    centre = torch.tensor([width / 2 + border, height / 2 + border])
    pose = torch.zeros(len(starts), 5)
    pose[:, :4] = starts
    pose[:, :2] += centre
    costs = _costs(patches, pose, wide)
    best = int(costs.argmin())
    here, cost = pose[best], float(costs[best])
    steps = torch.tensor([1.0, 1.0, math.pi / 32, 0.04]) * free
    moves = torch.cat([torch.eye(4), -torch.eye(4)])
    for _ in range(STEPS):
        while True:
            around = here.repeat(8, 1)
            around[:, :4] += moves * steps
            tried = _costs(patches, around, wide)
            k = int(tried.argmin())
            if float(tried[k]) >= cost - 1e-6:
                break
            here, cost = around[k], float(tried[k])
        steps = steps / 2
    x, y = (here[:2] - centre).tolist()
    return StandIn(x, y, float(here[2]), float(here[3]), cost)


def _starts(one: Concept, other: Concept, turns: bool, scales: bool) -> Tensor:
    """Poses (n, 4) relative to the other's centre: centres of mass together, at every angle that may be tried."""
    a, b = torch.from_numpy(np.array(one.alpha)), torch.from_numpy(np.array(other.alpha))
    if float(a.sum()) == 0 or float(b.sum()) == 0:
        return torch.zeros(1, 4)
    ax, ay, ar = centre_and_radius(a)
    bx, by, br = centre_and_radius(b)
    angles = torch.arange(64 if turns else 1) * (2 * math.pi / 64)
    log_scale = math.log(br / ar) if scales else 0.0
    grow = math.exp(log_scale)
    dx, dy = ax - one.width / 2, ay - one.height / 2
    cos, sin = torch.cos(angles) * grow, torch.sin(angles) * grow
    x = bx - other.width / 2 - (cos * dx + sin * dy)
    y = by - other.height / 2 - (cos * dy - sin * dx)
    starts = torch.stack([x, y, angles, torch.full_like(angles, log_scale)], dim=1)
    if not turns:
        whole = starts.clone()
        whole[:, :2] = whole[:, :2].round()
        starts = torch.cat([starts, whole, torch.zeros(1, 4)])
    return starts


def _costs(patches: Patches, pose: Tensor, target: Tensor) -> Tensor:
    placed = sample(patches, torch.zeros(len(pose), dtype=torch.long), pose, *target.shape[-2:])
    return (placed - target).square().sum((1, 2, 3)) / 2


def premultiplied(concept: Concept) -> Tensor:
    """Premultiplied shape channels and alpha of a concept (channels + 1, height, width)."""
    alpha = torch.from_numpy(np.array(concept.alpha))
    return torch.cat([torch.from_numpy(np.moveaxis(concept.shape, -1, 0).copy()) * alpha, alpha.unsqueeze(0)])


@dataclass(frozen=True)
class Halves:
    """A concept's elements in two kinds."""

    children: tuple[Concept, Concept]
    saves: float
    """Squared error that the two would save over the one, on all elements."""
    uses: int


def halves(around: Surroundings, dictionary: Dictionary, concept: Concept, kept: Kept) -> Halves | None:
    """Part a concept's elements by the main direction in which what they leave over differs."""
    total = kept.uses().get(concept.id, 0)
    images = (kept.concept == concept.id).any(1).nonzero()[:, 0].tolist()
    if total < FEWEST or concept.is_voxel:
        return None
    chosen = [images[i] for i in np.linspace(0, len(images) - 1, min(ENOUGH, len(images))).astype(int).tolist()]
    engine = around.engine(dictionary)
    position = dictionary.ids.index(concept.id)
    match, power = [], []
    for problem, layout, layers in rendered(around, engine, kept, chosen):
        m, p = _each(engine, problem, layout, layers, position)
        match.append(m)
        power.append(p)
    if not match:
        return None
    m, p = torch.cat(match), torch.cat(power)
    if len(m) < FEWEST:
        return None
    mean = m.sum(0) / (p.sum(0) + RIDGE)
    # What each would add to alpha beyond the mean, where it is seen; the main direction by power iteration.
    beyond = ((m - p * mean) / (p + RIDGE)).flatten(1)
    direction = beyond[beyond.square().sum(1).argmax()]
    for _ in range(POWER_STEPS):
        direction = (beyond @ direction) @ beyond
        direction = direction / direction.norm().clamp_min(1e-12)
    side = (beyond @ direction) > 0
    if min(int(side.sum()), int((~side).sum())) < FEWEST // 3:
        return None
    both = [_saved(m[part].sum(0), p[part].sum(0)) for part in (side, ~side)]
    saves = float(sum(s for s, _ in both) - _saved(m.sum(0), p.sum(0))[0]) * total / len(m)
    children = tuple(_moved(concept, shift) for _, shift in both)
    return Halves((children[0], children[1]), saves, total)


def _each(engine: Engine, problem: Problem, layout: Layout, layers: Tensor, position: int) -> tuple[Tensor, Tensor]:
    """For every element of a concept what is left over, and its weight, on the patch (elements, 1, height, width)."""
    stage = engine.ready(problem.image.shape[1])[0]
    formation, patches = stage.formation, stage.patches
    height, width = problem.image.shape[-2:]
    around = formation.contexts(layers, problem.background)
    left = problem.weight * (problem.image - formation.render(layers, problem.background))
    mine = (layout.concept == position).nonzero()
    batch, slot = mine.unbind(1)
    pose = layout.pose[batch, slot]
    values = patches.values[position : position + 1]
    straight = torch.where(values[:, -1:] > 0.01, values[:, :-1] / values[:, -1:].clamp_min(0.01), values[:, :-1])
    own = Patches(straight, patches.centre[position : position + 1], patches.size[position : position + 1])
    seen = sample(own, torch.zeros(len(mine), dtype=torch.long, device=pose.device), pose, height, width).unsqueeze(1)
    context = Context(*(t[batch, slot].unsqueeze(1) for t in (around.rebuilt, around.light, around.behind)))
    effect = by_alpha(formation, context, seen, layout.colour[batch, slot].unsqueeze(1))[:, 0]
    maps = torch.stack([(left[batch] * effect).sum(1), (problem.weight[batch] * effect.square()).sum(1)], dim=1)
    centre, size = (t.expand(len(mine), -1) for t in (own.centre, own.size))
    found = pulled(maps, torch.arange(len(mine), device=pose.device), pose, centre, size, (values.shape[-2], values.shape[-1]))
    return found[:, :1], found[:, 1:]


def _saved(match: Tensor, power: Tensor) -> tuple[Tensor, Tensor]:
    """The squared error that the best shift saves, and the shift."""
    shift = match / (power + RIDGE)
    return (2 * shift * match - shift.square() * power).sum(), shift


def _moved(concept: Concept, shift: Tensor) -> Concept:
    alpha = (torch.from_numpy(np.array(concept.alpha)) + shift[0, : concept.height, : concept.width].cpu()).clamp(0, 1)
    return Concept(concept.id, concept.shape, alpha.numpy(), concept.name)
