"""From layouts to the model's decompositions and back."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from pictolex.decompose.layout import Layout
from pictolex.decompose.stage import Problem, Stage
from pictolex.model import Decomposition, Dictionary, Element


@dataclass(frozen=True)
class Facts:
    """What is known of a batch of layouts beside their parameters."""

    gain: Tensor
    """(batch, slots): squared error that each element saves."""
    visible: Tensor
    """(batch, slots): pixels that show it."""
    confidence: Tensor
    """(batch, slots): of the error there would be at its visible pixels without it, the share that it explains."""
    error: Tensor
    """(batch)."""


def describe(stage: Stage, problem: Problem, layout: Layout, layers: Tensor | None) -> Facts:
    """Gain, visible area and confidence of every element; `layers` where they are at hand.

    Without them (large images) each element is looked at in a window of its own, with those that overlap it.
    """
    if layers is None:
        return _describe_by_windows(stage, problem, layout)
    contexts = stage.formation.contexts(layers, problem.background)
    rebuilt = stage.formation.render(layers, problem.background)
    after = problem.weight * (problem.image - rebuilt).square()
    before = problem.weight.unsqueeze(1) * (problem.image.unsqueeze(1) - contexts.rebuilt).square()
    share = stage.formation.shares(layers)
    gain = before.sum((-3, -2, -1)) - after.sum((-3, -2, -1)).unsqueeze(1)
    without = (before.sum(-3) * share).sum((-2, -1))
    remains = (after.sum(-3).unsqueeze(1) * share).sum((-2, -1))
    confidence = (1 - remains / without.clamp_min(1e-9)).clamp(0, 1)
    return Facts(gain, share.sum((-2, -1)), confidence, after.sum((-3, -2, -1)))


def _describe_by_windows(stage: Stage, problem: Problem, layout: Layout) -> Facts:
    """The same for images too large to hold a canvas an element."""
    height, width = problem.image.shape[-2:]
    reach = reaches(stage, layout)
    gain, visible, confidence = (torch.zeros(layout.concept.shape, device=problem.image.device) for _ in range(3))
    rebuilt = rebuild_large(stage, problem, layout)
    error = (problem.weight * (problem.image - rebuilt).square()).sum((-3, -2, -1))
    for b in range(layout.concept.shape[0]):
        used = int(layout.count[b])
        for i in range(used):
            x, y = (int(v) for v in layout.pose[b, i, :2])
            far = int(reach[b, i])
            box = (max(0, y - far), max(0, x - far), min(height, y + far + 1), min(width, x + far + 1))
            if box[2] <= box[0] or box[3] <= box[1]:
                continue
            near = (layout.pose[b, :used, :2] - layout.pose[b, i, :2]).abs().amax(1) <= reach[b, :used] + far + 2
            index = near.nonzero()[:, 0]
            part = layout.order(index.unsqueeze(0).expand(layout.concept.shape[0], -1)).take(slice(b, b + 1))
            window = crop(problem.take(slice(b, b + 1)), box)
            facts = describe(stage, window, part, stage.layers(shifted(part, box[1], box[0]), box[2] - box[0], box[3] - box[1]))
            at = int((index == i).nonzero()[0, 0])
            gain[b, i], visible[b, i], confidence[b, i] = facts.gain[0, at], facts.visible[0, at], facts.confidence[0, at]
    return Facts(gain, visible, confidence, error)


def crop(problem: Problem, box: tuple[int, int, int, int]) -> Problem:
    """A window (top, left, bottom, right) of a problem."""
    top, left, bottom, right = box
    return Problem(*(t[..., top:bottom, left:right] for t in (problem.image, problem.weight, problem.background)))


def shifted(layout: Layout, left: float, top: float) -> Layout:
    """A layout as seen from a window's corner."""
    pose = layout.pose.clone()
    pose[..., 0] -= left
    pose[..., 1] -= top
    return Layout(layout.concept, pose, layout.hue, layout.colour)


def reaches(stage: Stage, layout: Layout) -> Tensor:
    """(batch, slots): no element shows anything this many pixels away from its centre, in whatever pose."""
    size = stage.patches.size[layout.concept.clamp_min(0)].float()
    return (torch.hypot(size[..., 0], size[..., 1]) / 2 * torch.exp(layout.pose[..., 3])).ceil() + 2


def rebuild_large(stage: Stage, problem: Problem, layout: Layout) -> Tensor:
    """The rebuilt images, element after element from the front, each in a window of its own."""
    height, width = problem.image.shape[-2:]
    reach = reaches(stage, layout)
    rebuilt = problem.background.clone()
    for b in range(layout.concept.shape[0]):
        # From the back: each element is placed over what is there.
        for i in reversed(range(int(layout.count[b]))):
            x, y = (int(v) for v in layout.pose[b, i, :2])
            far = int(reach[b, i])
            top, left = max(0, y - far), max(0, x - far)
            bottom, right = min(height, y + far + 1), min(width, x + far + 1)
            if bottom <= top or right <= left:
                continue
            one = shifted(layout.take(slice(b, b + 1)).order(torch.tensor([[i]], device=rebuilt.device)), left, top)
            layer = stage.layers(one, bottom - top, right - left)
            window = rebuilt[b : b + 1, :, top:bottom, left:right]
            rebuilt[b : b + 1, :, top:bottom, left:right] = stage.formation.render(layer, window.clone())
    return rebuilt


def to_decompositions(
    dictionary: Dictionary, problem: Problem, layout: Layout, facts: Facts, index: Sequence[int], names: Sequence[str]
) -> list[Decomposition]:
    """One decomposition an image."""
    height, width = problem.image.shape[-2:]
    concept, pose, hue, colour = (t.cpu().tolist() for t in (layout.concept, layout.pose.double(), layout.hue, layout.colour))
    gain, visible, confidence, error = (t.cpu().tolist() for t in (facts.gain, facts.visible, facts.confidence, facts.error))
    plain = _plain(problem.background)
    ids = dictionary.ids
    found = []
    for b, name in enumerate(names):
        elements: list[Element] = []
        for i, which in enumerate(concept[b]):
            if which < 0:
                continue
            x, y, rotation, log_scale, mirror = pose[b][i]
            shade = colour[b][i] if len(colour[b][i]) == 3 else colour[b][i] * 3
            elements.append(
                Element(
                    ids[which],
                    x,
                    y,
                    rotation=rotation % (2 * torch.pi),
                    scale=float(torch.exp(torch.tensor(log_scale, dtype=torch.float64))),
                    mirror=mirror > 0.5,
                    hue=hue[b][i],
                    red=shade[0],
                    green=shade[1],
                    blue=shade[2],
                    depth=len(elements),
                    gain=gain[b][i],
                    visible=visible[b][i],
                    confidence=confidence[b][i],
                )
            )
        found.append(Decomposition(name, index[b], height, width, tuple(elements), error[b], plain[b]))
    return found


def _plain(background: Tensor) -> list[tuple[float, ...] | None]:
    """The colour of each background that is plain; None for images."""
    first = background[:, :, :1, :1]
    plain = ((background - first).abs().amax((1, 2, 3)) < 1e-6).tolist()
    return [tuple(colour) if p else None for p, colour in zip(plain, first[:, :, 0, 0].tolist(), strict=True)]


def from_decomposition(dictionary: Dictionary, decomposition: Decomposition, channels: int, device: torch.device) -> Layout:
    """A decomposition as a layout of one image."""
    elements = decomposition.elements
    layout = Layout.empty(1, max(1, len(elements)), channels, device)
    for i, e in enumerate(elements):
        layout.concept[0, i] = dictionary.index_of(e.concept)
        log_scale = float(torch.log(torch.tensor(e.scale, dtype=torch.float64)))
        layout.pose[0, i] = torch.tensor([e.x, e.y, e.rotation, log_scale, float(e.mirror)])
        layout.hue[0, i] = e.hue
        layout.colour[0, i] = torch.tensor(e.colour[:channels])
    return layout
