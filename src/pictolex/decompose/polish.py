"""Polish: all elements of an image together, by Levenberg-Marquardt on the parameters of their poses.

The image is linear in each layer given the others, so the derivative by a pose parameter is the effect, in the element's
context, of the derivative of its layer; and that follows from the slopes of the patch along its own axes.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor

from pictolex.decompose.layout import Layout
from pictolex.decompose.stage import Problem, Stage
from pictolex.formation import Context, paint
from pictolex.formation.transform import look_up, slopes, steer

MOST = (1.5, 1.5, 0.25, 0.15)
"""The largest step in x, y, rotation and log scale."""
CACHED, ON_GPU = 16 * 2**20, 2**30
"""Bytes of canvases polished at once."""


@dataclass(frozen=True)
class _Windows:
    """A window around every element (batch, slots), wholly inside the image, that holds all that is visible of it."""

    origin: Tensor
    """(batch * slots, 2): x and y of the top left corner."""
    index: Tensor
    """(batch, slots, side_y * side_x): its pixels in the flattened image."""
    size: tuple[int, int]

    def paste(self, values: Tensor, height: int, width: int) -> Tensor:
        """Values (batch, slots, channels, side_y, side_x) on empty canvases of the image's size."""
        batch, slots, channels = values.shape[:3]
        canvas = torch.zeros(batch, slots, channels, height * width, device=values.device)
        index = self.index.unsqueeze(2).expand(-1, -1, channels, -1)
        return canvas.scatter_(3, index, values.flatten(3)).view(batch, slots, channels, height, width)

    def cut(self, canvas: Tensor) -> Tensor:
        """The windows of canvases (batch, slots, channels, height, width)."""
        index = self.index.unsqueeze(2).expand(-1, -1, canvas.shape[2], -1)
        return canvas.flatten(3).gather(3, index).view(*canvas.shape[:3], *self.size)


@dataclass(frozen=True)
class _State:
    """A layout, rendered."""

    sampled: Tensor
    """Values and slopes of the patches in the windows (batch * slots, 3 * depth, side_y, side_x)."""
    u: Tensor
    v: Tensor
    windows: _Windows
    layers: Tensor
    error: Tensor


class Polisher:
    """Moves elements between grid points so that the squared error falls."""

    def __init__(self, stage: Stage) -> None:
        self.stage = stage
        self.free = stage.free
        self.values = slopes(stage.patches.values)
        self.side = tuple(max((s.size[d] for s in stage.bank.shelves), default=1) + 4 for d in (0, 1))

    def polish(self, problem: Problem, layout: Layout, steps: int) -> tuple[Layout, Tensor]:
        """The polished layout and its squared error; never worse than at the start. A few at a time, so that caches hold them."""
        if not len(layout.concept):
            return layout, torch.zeros(0, device=layout.pose.device)
        slots = max(1, int(layout.count.max()))
        narrow = layout.compact().order(torch.arange(slots, device=layout.pose.device).expand(len(layout.concept), -1))
        found, error = self.in_parts(problem, narrow, lambda part: self._polish_some(problem.take(part), narrow.take(part), steps))
        return found.pad(layout.concept.shape[1]), error

    def in_parts(self, problem: Problem, layout: Layout, work: Callable[[slice], tuple[Layout, Tensor]]) -> tuple[Layout, Tensor]:
        """Work on as many images at a time as have canvases that fit the cache; there must be one at least."""
        canvas = 4 * problem.image[0].numel() * layout.concept.shape[1] * (len(self.free) + 4)
        some = max(1, (CACHED if layout.pose.device.type == "cpu" else ON_GPU) // canvas)
        done = [work(slice(start, start + some)) for start in range(0, len(layout.concept), some)]
        return Layout.stack([found for found, _ in done]), torch.cat([error for _, error in done])

    def _polish_some(self, problem: Problem, layout: Layout, steps: int) -> tuple[Layout, Tensor]:
        state = self._render(problem, layout)
        if not self.free:
            return layout, state.error
        damping = torch.full_like(state.error, 1e-2)
        limit = torch.tensor([MOST[i] for i in self.free], device=damping.device)
        low, high = self.stage.scale_range
        for _ in range(steps):
            step = self._step(problem, layout, state, damping) * layout.used.unsqueeze(-1)
            step = torch.maximum(torch.minimum(step, limit), -limit)
            pose = layout.pose.clone()
            pose[..., self.free] += step
            pose[..., 3] = torch.where(layout.used, pose[..., 3].clamp(low, high), pose[..., 3])
            tried = Layout(layout.concept, pose, layout.hue, layout.colour)
            new = self._render(problem, tried)
            better = new.error < state.error
            layout = Layout(layout.concept, torch.where(better[:, None, None], pose, layout.pose), layout.hue, layout.colour)
            state = _mix(better, new, state)
            damping = torch.where(better, damping * 0.3, damping * 8).clamp(1e-4, 1e3)
        return layout, state.error

    def _render(self, problem: Problem, layout: Layout) -> _State:
        height, width = problem.image.shape[-2:]
        batch, slots = layout.concept.shape
        stage = self.stage
        which, pose = layout.concept.flatten(), layout.pose.flatten(0, 1)
        windows = self._windows(layout, height, width)
        u, v = steer(pose, *windows.size, windows.origin)
        chosen = which.clamp_min(0)
        sampled = look_up(self.values[chosen], stage.patches.centre[chosen], u, v)
        sampled = sampled * (which >= 0).to(sampled.dtype)[:, None, None, None]
        sheet = stage.formation.sheet(sampled[:, : stage.patches.values.shape[1]]).unflatten(0, (batch, slots))
        layers = windows.paste(paint(sheet, layout.colour), height, width)
        return _State(sampled, u, v, windows, layers, stage.error(problem, layers))

    def _windows(self, layout: Layout, height: int, width: int) -> _Windows:
        size = (min(self.side[0], height), min(self.side[1], width))
        x = (layout.pose[..., 0] - size[1] / 2).round().clamp(0, width - size[1])
        y = (layout.pose[..., 1] - size[0] / 2).round().clamp(0, height - size[0])
        rows, columns = (torch.arange(n, device=x.device) for n in size)
        inside = (rows[:, None] * width + columns[None, :]).flatten()
        index = (y * width + x).long().unsqueeze(-1) + inside
        return _Windows(torch.stack([x, y], -1).flatten(0, 1), index, size)

    def _step(self, problem: Problem, layout: Layout, state: _State, damping: Tensor) -> Tensor:
        """The damped Gauss-Newton step (batch, slots, free parameters)."""
        batch, slots = layout.concept.shape
        height, width = problem.image.shape[-2:]
        stage, windows = self.stage, state.windows
        depth = stage.patches.values.shape[1]
        along_u, along_v = (state.sampled[:, k * depth : (k + 1) * depth] for k in (1, 2))
        pose = layout.pose.flatten(0, 1)
        shrink = torch.exp(-pose[:, 3])
        cos, sin, flip = (
            t[:, None, None, None] for t in (torch.cos(pose[:, 2]) * shrink, torch.sin(pose[:, 2]) * shrink, 1 - 2 * pose[:, 4])
        )
        wide_u, wide_v = state.u.unsqueeze(1), state.v.unsqueeze(1)
        # u = flip (cos dx - sin dy), v = sin dx + cos dy with dx, dy from the centre to the pixel.
        moves = {
            0: lambda: -flip * cos * along_u - sin * along_v,
            1: lambda: flip * sin * along_u - cos * along_v,
            2: lambda: flip * (wide_u * along_v - wide_v * along_u),
            3: lambda: -wide_u * along_u - wide_v * along_v,
        }
        contexts = stage.formation.contexts(state.layers, problem.background)
        first = Context(contexts.rebuilt[:, 0], contexts.light[:, 0], contexts.behind[:, 0])
        rebuilt = first.rebuilt + stage.formation.effect(first, state.layers[:, 0])
        around = Context(windows.cut(contexts.rebuilt), windows.cut(contexts.light), windows.cut(contexts.behind))
        columns = []
        for parameter in self.free:
            # Not squashed: edges as sharp as they are drawn would see only a pixel far.
            tangent = moves[parameter]().view(batch, slots, depth, *windows.size)
            columns.append(stage.formation.effect(around, paint(tangent, layout.colour)))
        root = problem.weight.sqrt()
        effects = windows.paste(torch.cat(columns, dim=2), height, width).unflatten(2, (len(self.free), -1))
        jacobian = (effects * root[:, None, None]).reshape(batch, slots * len(self.free), -1)
        residual = ((problem.image - rebuilt) * root).reshape(batch, -1, 1)
        normal = jacobian @ jacobian.mT
        right = jacobian @ residual
        diagonal = normal.diagonal(dim1=1, dim2=2)
        loaded = normal + torch.diag_embed(diagonal * damping[:, None] + 1e-4 * (1 + diagonal.amax(1, keepdim=True)))
        solution = torch.linalg.solve_ex(loaded, right)[0]
        return torch.nan_to_num(solution).view(batch, slots, len(self.free))


def _mix(which: Tensor, a: _State, b: _State) -> _State:
    """The states of the images in `which` from a, the others from b."""
    slots = b.windows.index.shape[1]

    def pick(x: Tensor, y: Tensor) -> Tensor:
        rows = which if x.shape[0] == len(which) else which.repeat_interleave(slots)
        return torch.where(rows.view(-1, *([1] * (x.ndim - 1))), x, y)

    windows = _Windows(pick(a.windows.origin, b.windows.origin), pick(a.windows.index, b.windows.index), a.windows.size)
    return _State(pick(a.sampled, b.sampled), pick(a.u, b.u), pick(a.v, b.v), windows, pick(a.layers, b.layers), pick(a.error, b.error))
