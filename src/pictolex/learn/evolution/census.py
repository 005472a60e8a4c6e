"""The census: how often each concept is used, what its elements save, and how well the image fits where they are seen."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from pictolex.decompose import Engine, Layout, Problem
from pictolex.learn.evolution.base import Surroundings
from pictolex.learn.kept import Kept
from pictolex.model import Dictionary

LOOKED_AT = 512
"""Images that are rendered for what counting alone does not tell; the others are taken to be like them."""


@dataclass(frozen=True)
class Member:
    """What one concept does."""

    uses: int
    """Elements of it in all images."""
    gain: float
    """Squared error that all of them save."""
    quality: float
    """Mean normalised correlation of image and rebuilt image under its visible alpha, as the paper has it."""


@dataclass(frozen=True)
class Census:
    """All concepts of a dictionary, by id."""

    members: dict[int, Member]
    images: int
    """Images that have been decomposed."""


def take_census(around: Surroundings, dictionary: Dictionary, kept: Kept) -> Census:
    """Count, and render some images."""
    known = (~kept.energy.isnan()).nonzero()[:, 0].tolist()
    uses = kept.uses()
    gain, weight, fit, seen = (dict.fromkeys(dictionary.ids, 0.0) for _ in range(4))
    if known:
        chosen = [known[i] for i in np.linspace(0, len(known) - 1, min(LOOKED_AT, len(known))).astype(int).tolist()]
        engine = around.engine(dictionary)
        for problem, layout, layers in rendered(around, engine, kept, chosen):
            each, quality, shown = _judge(engine, problem, layers)
            for position, id in enumerate(dictionary.ids):
                mine = layout.concept == position
                gain[id] += float(each[mine].sum())
                weight[id] += float(mine.sum())
                visible = mine & (shown > 0.5)
                fit[id] += float(quality[visible].sum())
                seen[id] += float(visible.sum())
    members = {}
    for id in dictionary.ids:
        count = uses.get(id, 0)
        # What is used but was not looked at (in large images) is not known to save too little.
        saved = gain[id] / weight[id] * count if weight[id] else math.inf if count else 0.0
        members[id] = Member(count, saved, fit[id] / seen[id] if seen[id] else float("nan"))
    return Census(members, len(known))


def rendered(around: Surroundings, engine: Engine, kept: Kept, index: list[int]) -> list[tuple[Problem, Layout, Tensor]]:
    """Images with their kept elements and layers; those of large images are left out (they are never held whole)."""
    found = []
    for batch in around.read(index, engine):
        height, width = batch.image.shape[-2:]
        if max(height, width) > around.settings.tile:
            continue
        stage = engine.ready(batch.image.shape[1])[0]
        with torch.inference_mode():
            problem = engine.problem(batch.image, batch.weight)
            layout = kept.get(batch.index, engine.dictionary.ids, stage.device)
            layout = Layout(layout.concept, layout.pose, layout.hue, stage.colour.renewed(layout.hue, layout.colour))
            layers = stage.layers(layout, height, width)
        found.append((problem.clone(), layout.clone(), layers.clone()))
    return found


def _judge(engine: Engine, problem: Problem, layers: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """(batch, slots) each: squared error saved, local correlation, visible pixels."""
    formation = engine.ready(problem.image.shape[1])[0].formation
    contexts = formation.contexts(layers, problem.background)
    image = problem.image
    rebuilt = formation.render(layers, problem.background)
    left = (problem.weight * (image - rebuilt).square()).sum((1, 2, 3))
    without = (problem.weight.unsqueeze(1) * (image.unsqueeze(1) - contexts.rebuilt).square()).sum((2, 3, 4))
    share = formation.shares(layers).unsqueeze(2)
    seen, made = share * image.unsqueeze(1), share * rebuilt.unsqueeze(1)
    inner = (seen * made).sum((2, 3, 4))
    norms = seen.square().sum((2, 3, 4)) * made.square().sum((2, 3, 4))
    # Nothing to be seen and nothing shown agree.
    quality = torch.where(
        norms > 1e-12, inner / norms.clamp_min(1e-12).sqrt(), (seen - made).abs().amax((2, 3, 4)).lt(1e-6).to(norms.dtype)
    )
    return without - left.unsqueeze(1), quality, share.sum((2, 3, 4))
