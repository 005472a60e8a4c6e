"""Polish: all elements of an image together, by Levenberg-Marquardt on the parameters of their poses.

The image is linear in each layer given the others, so the derivative by a pose parameter is the effect, in the element's
context, of the derivative of its layer; and that follows from the slopes of the patch along its own axes.
"""

from __future__ import annotations

import torch
from torch import Tensor

from pictolex.decompose.layout import Layout
from pictolex.decompose.stage import Problem, Stage
from pictolex.formation import Context, paint
from pictolex.formation.transform import look_up, slopes, steer

MOST = (1.5, 1.5, 0.25, 0.15)
"""The largest step in x, y, rotation and log scale."""


class Polisher:
    """Moves elements between grid points so that the squared error falls."""

    def __init__(self, stage: Stage) -> None:
        self.stage = stage
        self.free = stage.free
        self.values = slopes(stage.patches.values)

    def polish(self, problem: Problem, layout: Layout, steps: int) -> tuple[Layout, Tensor]:
        """The polished layout and its squared error; never worse than at the start."""
        height, width = problem.image.shape[-2:]
        layers = self.stage.layers(layout, height, width)
        error = self.stage.error(problem, layers)
        if not self.free or steps == 0:
            return layout, error
        damping = torch.full_like(error, 1e-2)
        limit = torch.tensor([MOST[i] for i in self.free], device=error.device)
        low, high = self.stage.scale_range
        for _ in range(steps):
            step = self._step(problem, layout, damping) * layout.used.unsqueeze(-1)
            step = torch.maximum(torch.minimum(step, limit), -limit)
            pose = layout.pose.clone()
            pose[..., self.free] += step
            pose[..., 3] = torch.where(layout.used, pose[..., 3].clamp(low, high), pose[..., 3])
            tried = Layout(layout.concept, pose, layout.hue, layout.colour)
            value = self.stage.error(problem, self.stage.layers(tried, height, width))
            better = value < error
            layout = Layout(layout.concept, torch.where(better[:, None, None], pose, layout.pose), layout.hue, layout.colour)
            error = torch.where(better, value, error)
            damping = torch.where(better, damping * 0.3, damping * 8).clamp(1e-4, 1e3)
        return layout, error

    def _step(self, problem: Problem, layout: Layout, damping: Tensor) -> Tensor:
        """The damped Gauss-Newton step (batch, slots, free parameters)."""
        batch, slots = layout.concept.shape
        height, width = problem.image.shape[-2:]
        stage = self.stage
        which = layout.concept.flatten()
        pose = layout.pose.flatten(0, 1)
        u, v = steer(pose, height, width)
        chosen = which.clamp_min(0)
        sampled = look_up(self.values[chosen], stage.patches.centre[chosen], u, v) * (which >= 0)[:, None, None, None]
        depth = stage.patches.values.shape[1]
        plain, along_u, along_v = sampled[:, :depth], sampled[:, depth : 2 * depth], sampled[:, 2 * depth :]
        shrink = torch.exp(-pose[:, 3])
        cos, sin = torch.cos(pose[:, 2]) * shrink, torch.sin(pose[:, 2]) * shrink
        flip = 1 - 2 * pose[:, 4]
        # u = flip (cos dx - sin dy), v = sin dx + cos dy with dx, dy from the centre to the pixel.
        column = [t[:, None, None, None] for t in (cos, sin, flip)]
        wide_u, wide_v = u.unsqueeze(1), v.unsqueeze(1)
        moves = {
            0: lambda: -column[2] * column[0] * along_u - column[1] * along_v,
            1: lambda: column[2] * column[1] * along_u - column[0] * along_v,
            2: lambda: -column[2] * wide_v * along_u + column[2] * wide_u * along_v,
            3: lambda: -wide_u * along_u - wide_v * along_v,
        }
        layers = paint(stage.formation.sheet(plain).unflatten(0, (batch, slots)), layout.colour)
        contexts = stage.formation.contexts(layers, problem.background)
        rebuilt = contexts.rebuilt[:, 0] + stage.formation.effect(_slot(contexts, 0), layers[:, 0])
        columns = []
        for parameter in self.free:
            tangent = stage.formation.sheet_tangent(plain, moves[parameter]()).unflatten(0, (batch, slots))
            columns.append(stage.formation.effect(contexts, paint(tangent, layout.colour)))
        count = slots * len(self.free)
        root = problem.weight.sqrt()
        jacobian = (torch.stack(columns, dim=2) * root[:, None, None]).reshape(batch, count, -1)
        residual = ((problem.image - rebuilt) * root).reshape(batch, -1, 1)
        normal = jacobian @ jacobian.mT
        right = jacobian @ residual
        diagonal = normal.diagonal(dim1=1, dim2=2)
        loaded = normal + torch.diag_embed(diagonal * damping[:, None] + 1e-4 * (1 + diagonal.amax(1, keepdim=True)))
        solution = torch.linalg.solve_ex(loaded, right)[0]
        return torch.nan_to_num(solution).view(batch, slots, len(self.free))


def _slot(context: Context, index: int) -> Context:
    return Context(context.rebuilt[:, index], context.light[:, index], context.behind[:, index])
