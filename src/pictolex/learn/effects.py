"""From images back to patches: what one unit more of alpha or shape would change, and the sum of that over where a patch is seen."""

from __future__ import annotations

import torch
from torch import Tensor

from pictolex.formation import Context, Formation, Patches, sample


def by_alpha(formation: Formation, around: Context, straight: Tensor, colour: Tensor) -> Tensor:
    """How the image changes with an element's alpha (batch, slots, channels, h, w): it brings its shape in its colour, and hides."""
    one = torch.ones_like(straight[:, :, :1])
    return formation.effect(around, torch.cat([straight * colour[..., None, None], one], dim=2))


def by_shape(formation: Formation, around: Context, alpha: Tensor, colour: Tensor) -> Tensor:
    """How it changes with an element's shape, channel by channel, under an alpha (batch, slots, 1, h, w)."""
    return formation.effect(around, torch.cat([alpha * colour[..., None, None], torch.zeros_like(alpha)], dim=2))


def by_hue(formation: Formation, around: Context, shown: Tensor, channels: int) -> Tensor:
    """How it changes with an element's colour, where its sheet shows `shown` (batch, slots, 1 or channels, h, w)."""
    wide = shown.expand(-1, -1, channels, -1, -1)
    return formation.effect(around, torch.cat([wide, torch.zeros_like(shown[:, :, :1])], dim=2))


def pulled(maps: Tensor, which: Tensor, pose: Tensor, centre: Tensor, size: Tensor, shape: tuple[int, int]) -> Tensor:
    """The adjoint of resampling: maps (n, k, h, w) of elements summed onto the patches `which` (n) they come from (patches, k, *shape)."""
    with torch.inference_mode(False), torch.enable_grad():
        blank = torch.zeros(len(centre), maps.shape[1], *shape, device=maps.device, requires_grad=True)
        placed = sample(Patches(blank, centre, size), which.clone(), pose.clone(), *maps.shape[-2:])
        total = (placed * maps.clone()).sum()
        return torch.autograd.grad(total, blank)[0]
