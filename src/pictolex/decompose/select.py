"""Select: the best sets among many candidates, by matrix products on pooled maps.

A set lets light through to what is behind; a candidate placed behind it saves what the formation's forms say, which for all
sets and all candidates at once is one product of the sets' maps with the candidates' kernels.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn import functional

from pictolex.decompose.layout import Layout
from pictolex.decompose.stage import Problem, Stage
from pictolex.formation import Context, paint, sample
from pictolex.formation.transform import Patches


@dataclass(frozen=True)
class Sets:
    """Sets of candidates of each image, front to back, -1 where a set is shorter."""

    members: Tensor
    """(batch, sets, slots)."""
    saved: Tensor
    """(batch, sets): estimated squared error saved, prices paid; -inf where there is no such set."""


class Selector:
    """Grows sets of candidates one element at a time, keeping the best few of each size."""

    def __init__(self, stage: Stage, beam: int, finalists: int) -> None:
        self.stage = stage
        self.beam = beam
        self.finalists = finalists
        self.pool = max((s.pool for s in stage.bank.shelves), default=1)
        blurred = stage.patches.values
        if self.pool > 1:
            blurred = functional.avg_pool2d(functional.pad(blurred, (1, 1, 1, 1)), 3, 1)
        self.patches = Patches(blurred, stage.patches.centre, stage.patches.size)
        self.formation = stage.formation.recast(stage.channels)

    def select(self, problem: Problem, candidates: Layout, most: int) -> Sets:
        """The best sets of 1 to `most` candidates."""
        price = self.stage.settings.price
        image, weight, background = self._pooled(problem)
        layers = self._draw(candidates, image.shape[-2], image.shape[-1])
        count = candidates.concept.shape[1]
        kernels = {name: k.flatten(2) for name, k in self.formation.features(layers).items()}
        cell = self._cells(candidates)
        empty = self.formation.empty(background).unsqueeze(1)
        first = self._gains(image, weight, empty, kernels)[:, 0] - price
        first = torch.where(candidates.used, first, torch.full_like(first, -math.inf))
        ranked, order = first.topk(min(4 * self.finalists, count), dim=1)
        finals = [self._distinct(order.unsqueeze(-1), ranked, cell, self.finalists)[0]]
        # The front element of every pair is any candidate; from then on only the best sets grow.
        width = min(count, 2 * self.beam)
        order = first.topk(width, dim=1).indices
        members, saved = order.unsqueeze(-1), first.gather(1, order)
        context = self._cover(
            Context(*(t.expand(-1, width, -1, -1, -1) for t in (empty.rebuilt, empty.light, empty.behind))), layers, order
        )
        for size in range(2, most + 1):
            gains = self._gains(image, weight, context, kernels) - price
            gains = torch.where(candidates.used.unsqueeze(1), gains, torch.full_like(gains, -math.inf))
            gains = gains.scatter(2, members, -math.inf)
            total = saved.unsqueeze(2) + gains
            flat, place = total.flatten(1).topk(min(8 * self.beam, total[0].numel()), dim=1)
            parent, child = torch.div(place, count, rounding_mode="floor"), place % count
            grown = torch.cat([members.gather(1, parent.unsqueeze(-1).expand(-1, -1, size - 1)), child.unsqueeze(-1)], dim=2)
            best, index = self._distinct(grown, flat, cell, self.beam)
            finals.append(Sets(best.members[:, : self.finalists], best.saved[:, : self.finalists]))
            if size == most or not bool((best.saved > -math.inf).any()):
                break
            parent, child = parent.gather(1, index), child.gather(1, index)
            members, saved = best.members, best.saved
            context = self._cover(_pick(context, parent), layers, child)
        return Sets(
            torch.cat([functional.pad(s.members, (0, most - s.members.shape[2]), value=-1) for s in finals], dim=1),
            torch.cat([s.saved for s in finals], dim=1),
        )

    def _pooled(self, problem: Problem) -> tuple[Tensor, Tensor, Tensor]:
        """Image, weight and background on the pooled canvas; past the border there is background, and nothing else is wanted there."""
        down, right = (-side % self.pool for side in problem.image.shape[-2:])
        beyond = functional.pad(problem.background, (0, right, 0, down), mode="replicate")
        inside = functional.pad(torch.ones_like(problem.weight), (0, right, 0, down))
        image = functional.pad(problem.image, (0, right, 0, down)) + beyond * (1 - inside)
        weight = functional.pad(problem.weight, (0, right, 0, down), value=1.0)
        image, weight, background = (functional.avg_pool2d(t, self.pool) for t in (image, weight, beyond))
        return image, weight * self.pool**2, background

    def _draw(self, layout: Layout, height: int, width: int) -> Tensor:
        """Layers (batch, candidates, channels + 1, h, w) on the pooled canvas."""
        batch, count = layout.concept.shape
        pose = layout.pose.clone()
        pose[..., :2] /= self.pool
        pose[..., 3] -= math.log(self.pool)
        sampled = sample(self.patches, layout.concept.flatten(), pose.flatten(0, 1), height, width).unflatten(0, (batch, count))
        return paint(sampled if self.pool > 1 else self.stage.formation.sheet(sampled), layout.colour)

    def _gains(self, image: Tensor, weight: Tensor, context: Context, kernels: dict[str, Tensor]) -> Tensor:
        """(batch, sets, candidates): what each candidate saves in each set's context."""
        form = self.formation.gain(image.unsqueeze(1), weight.unsqueeze(1), context).at((1.0,) * self.stage.channels)
        total: Tensor | None = None
        for name, maps in form.items():
            if not bool(maps.any()):
                continue
            product = maps.flatten(2).expand(kernels[name].shape[0], -1, -1) @ kernels[name].mT
            total = product if total is None else total + product
        if total is None:
            some = next(iter(kernels.values()))
            return torch.zeros(some.shape[0], context.rebuilt.shape[1], some.shape[1], device=some.device)
        return total

    def _cover(self, context: Context, layers: Tensor, index: Tensor) -> Context:
        chosen = layers.gather(1, index[..., None, None, None].expand(-1, -1, *layers.shape[2:]))
        return self.formation.cover(context, chosen)

    def _cells(self, layout: Layout) -> Tensor:
        """A number for each candidate that those at nearly the same place in nearly the same pose share."""
        x, y, rotation, log_scale, mirror = layout.pose.unbind(-1)
        # What polish can move is the same within a few pixels; what it cannot, only where it is.
        step = 3.0 if self.stage.free else 0.5
        parts = [layout.concept, (x / step).round().long(), (y / step).round().long()]
        parts += [(rotation * (12 / math.pi)).round().long() % 24, (log_scale * 8).round().long(), mirror.long()]
        cell = torch.zeros_like(layout.concept)
        for part in parts:
            cell = cell * 1_000_003 + part + 17
        return cell * cell % 2_147_483_647

    def _distinct(self, members: Tensor, saved: Tensor, cell: Tensor, keep: int) -> tuple[Sets, Tensor]:
        """The best `keep` sets (given best first) that differ in more than small moves or order, and which they are."""
        batch, count, size = members.shape
        mark = cell.gather(1, members.flatten(1)).view(batch, count, size).sum(2)
        same = mark.unsqueeze(1) == mark.unsqueeze(2)
        earlier = torch.tril(same, -1).any(2)
        value = torch.where(earlier, torch.full_like(saved, -math.inf), saved)
        best, index = value.topk(min(keep, count), dim=1)
        return Sets(members.gather(1, index.unsqueeze(-1).expand(-1, -1, size)), best), index


def _pick(context: Context, index: Tensor) -> Context:
    return Context(
        *(t.gather(1, index[..., None, None, None].expand(-1, -1, *t.shape[2:])) for t in (context.rebuilt, context.light, context.behind))
    )
