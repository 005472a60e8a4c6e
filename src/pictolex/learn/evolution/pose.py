"""How a concept is best kept: upright, as large as its largest elements, and cut around what it shows."""

from __future__ import annotations

import math

import numpy as np
import torch
from torch import Tensor

from pictolex.formation import Patches, sample
from pictolex.learn.evolution.twins import premultiplied
from pictolex.learn.kept import Kept, Move
from pictolex.learn.likeness import upright_angle
from pictolex.learn.start import MARGIN, framed, to_concept
from pictolex.model import Concept
from pictolex.settings import Placement

TILT, GROWTH = 0.004, 0.004
"""A patch that is turned (in radians) or too small or large (in log scale) by more than this is posed anew."""
ALMOST_ALL = 0.97
"""The share of its elements that a concept is at least as large as."""
SAME = 0.04
"""Elements whose log scales differ by less than this are of one size."""
FAR = 0.2
"""Radians: a patch turned further than this has another way to stand, not a tilt."""
FEWEST = 8


def posed(concept: Concept, kept: Kept, placement: Placement) -> tuple[Concept, Move]:
    """A concept turned upright and grown to the size of its largest elements, where placement knows rotations and scales."""
    values = premultiplied(concept)
    angle = upright_angle(values) if placement.rotations > 4 and float(concept.alpha.max()) > 0.5 else 0.0
    angle = (angle + math.pi / 4) % (math.pi / 2) - math.pi / 4
    if not TILT < abs(angle) < FAR:
        angle = 0.0
    top = math.log(max(placement.scales))
    grow = _largest(kept.pose[kept.concept == concept.id][:, 3], top) - top if len(placement.scales) > 1 else 0.0
    if abs(grow) < GROWTH:
        grow = 0.0
    move = Move(concept.id, 0.0, 0.0, angle, -grow)
    if move == Move(concept.id):
        return concept, move
    # The new patch shows the old one turned back by the angle and grown: an element of the new one is turned and shrunk by as much.
    more = math.ceil(max(0.0, math.exp(grow) - 1) * max(concept.alpha.shape) / 2 + MARGIN)
    height, width = (n + 2 * more for n in concept.alpha.shape)
    own = torch.tensor([[concept.height, concept.width]])
    patches = Patches(values.unsqueeze(0), own.flip(1).float() / 2, own)
    pose = torch.tensor([[width / 2, height / 2, -angle, grow, 0.0]])
    placed = sample(patches, torch.zeros(1, dtype=torch.long), pose, height, width)[0]
    alpha = placed[-1:]
    straight = torch.where(alpha > 0.01, placed[:-1] / alpha.clamp_min(0.01), 0).clamp(0, 1)
    inner = concept.shape.reshape(-1, concept.channels)[concept.alpha.reshape(-1) > 0.5]
    if len(inner):
        # Beyond the edge nothing tells the colour: what is usual inside.
        usual = torch.from_numpy(np.median(inner, axis=0).astype(np.float32))[:, None, None]
        straight = torch.where(alpha > 0.01, straight, usual)
    return Concept(concept.id, straight.movedim(0, -1).numpy(), alpha[0].clamp(0, 1).numpy(), concept.name), move


def _largest(log_scale: Tensor, usual: float) -> float:
    """The mean log scale of the largest elements that are of one size; what is usual where there are few."""
    if len(log_scale) < FEWEST:
        return usual
    top = float(log_scale.quantile(ALMOST_ALL))
    return float(log_scale[(log_scale - top).abs() < SAME].mean())


def cut_anew(concept: Concept, move: Move, most: int) -> tuple[Concept, Move]:
    """The patch cut around what it shows; where the middle goes comes after `move`."""
    patch = torch.from_numpy(np.concatenate([np.moveaxis(concept.shape, -1, 0), concept.alpha[None]]))
    new, x, y = framed(patch, most)
    if new.shape == patch.shape and x == 0 and y == 0:
        return concept, move
    return to_concept(concept.id, new.numpy(), concept.name), move.then(Move(concept.id, x, y))
