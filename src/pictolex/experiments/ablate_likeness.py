"""How alike concepts are: the normalised correlation of each two, the best over the placements in use."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn import functional

from pictolex.formation import pack, sample
from pictolex.model import Concept
from pictolex.settings import Placement


def likeness(concepts: Sequence[Concept], placement: Placement) -> NDArray[np.float32]:
    """`max_T <a, T b> / |a| |T b|` of premultiplied patches, over whole shifts, rotations, scales and mirror; symmetric, 1 = the same."""
    posed = [_posed(concept, placement) for concept in concepts]
    plain = [pack([concept]).values[0, :-1] for concept in concepts]
    table = np.eye(len(concepts), dtype=np.float32)
    for i, target in enumerate(plain):
        for j, others in enumerate(posed):
            if i != j:
                table[i, j] = _best(target, others)
    # Scales go one way only: what the one cannot be made to show, the other perhaps can.
    symmetric: NDArray[np.float32] = np.maximum(table, table.T).clip(0, 1)
    return symmetric


def _posed(concept: Concept, placement: Placement) -> Tensor:
    """A concept in every rotation, scale and mirroring (poses, channels, side, side), around the middle."""
    patches = pack([concept])
    reach = math.hypot(concept.height, concept.width) * max(1.0, *placement.scales)
    side = 2 * math.ceil(reach / 2) + 1
    poses = [
        (concept.width / 2, concept.height / 2, turn * 2 * math.pi / placement.rotations, math.log(scale), float(flip))
        for turn in range(placement.rotations)
        for scale in placement.scales
        for flip in range(1 + placement.mirror)
    ]
    # The middle stays where the pixels are, so that an unturned patch is not blurred.
    first = torch.tensor([[math.floor(concept.width / 2 - side / 2), math.floor(concept.height / 2 - side / 2)]]).float()
    which = torch.zeros(len(poses), dtype=torch.long)
    return sample(patches, which, torch.tensor(poses), side, side, first.expand(len(poses), -1))[:, :-1]


def _best(target: Tensor, others: Tensor) -> float:
    """Over all shifts that overlap."""
    around = (target.shape[-1] - 1,) * 2 + (target.shape[-2] - 1,) * 2
    inner = functional.conv2d(functional.pad(others, around), target.unsqueeze(0)).amax((1, 2, 3))
    norms = target.square().sum().sqrt() * others.square().sum((1, 2, 3)).sqrt()
    return float((inner / norms.clamp_min(1e-9)).max())
