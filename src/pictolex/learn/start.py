"""Good starts: pieces of the images that recur become the first concepts, their most frequent colours the first hues."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn import functional

from pictolex.decompose.parallel import one_thread
from pictolex.errors import InputError
from pictolex.formation import Formation
from pictolex.learn.likeness import Kind, centre_and_radius, centred, upright_angle
from pictolex.learn.survey import Look, Survey, stack
from pictolex.learn.windows import recurring_windows
from pictolex.model import Background, Concept, Dictionary, Event, Lineage
from pictolex.settings import Settings

SAME_HUE = 0.12
"""Colours nearer than this in every channel are one hue."""
LARGEST = 0.8
"""Members of a kind at least this large, relative to the largest, say what it looks like."""
ENOUGH = 48
"""Members that are averaged."""
MARGIN = 2
"""Pixels around what a concept shows, for it to grow into."""
SAME_SIZE = 0.97
"""Sizes that differ by less than this factor are the same, up to pixels."""
SHOWN = 0.1
"""A patch shows something where alpha is above this."""
WELL = 0.8
"""Pieces that explain this share of what is shown need no windows."""
MORE = 1.2
"""Windows have to explain so much more than pieces."""
TIGHT = 0.03
"""Members of a kind nearer to its exemplar than this are averaged, where there are enough."""

Floats = NDArray[np.float32]
Make = Callable[[Survey, Settings, Look], list[Floats]]


@one_thread()
def first_dictionary(survey: Survey, settings: Settings, formation: Formation) -> Dictionary:
    """Concepts from pieces that recur, or from noise; hues from their colours; the background from the images' most frequent colour."""
    found = look(survey, settings)
    learning = settings.learning
    patches = _STARTS[learning.start](survey, settings, found)
    count = learning.concepts if learning.initial is None else min(learning.initial, learning.concepts)
    made = []
    for number, patch in enumerate(patches[:count]):
        made.append(to_concept(number, patch))
    figures = [{"explains": kind.score} for kind in found.kinds] + [{}] * len(made)
    lineage = Lineage(tuple(Event(0, "born", c.id, (), figures[c.id]) for c in made))
    hues = _hues(found, settings, survey.channels)
    background = create_background(settings, survey)
    sharpness = float(getattr(formation, "sharpness", 1.0))
    return Dictionary(tuple(made), hues, background, settings.formation.kind, sharpness, lineage=lineage)


def look(survey: Survey, settings: Settings) -> Look:
    """The survey's look that goes with the settings: pieces of one colour where colour is found apart, turned where placement turns."""
    place = settings.placement
    return survey.look(one_colour(settings) and survey.channels > 1, place.rotations > 1 or len(place.scales) > 1, 2**20)


def one_colour(settings: Settings) -> bool:
    """Whether elements bring the colour of their concept, so that a piece of an image is of one."""
    return _COLOURED[settings.colour.kind]


_COLOURED = {"none": False, "hues": True, "free": True}


def to_concept(id: int, patch: Floats, name: str = "") -> Concept:
    """A concept from straight shape channels and alpha (channels + 1, height, width)."""
    return Concept(id, np.moveaxis(patch[:-1].clip(0, 1), 0, -1), patch[-1].clip(0, 1), name)


def _recurring(survey: Survey, settings: Settings, found: Look) -> list[Floats]:
    """The pieces that recur, most explained first; noise where there are none."""
    luminance = not settings.learning.colour_shapes
    patches = _common(survey, settings, found)
    if luminance:
        patches = [np.concatenate([p[:-1].max(0, keepdims=True), p[-1:]]) for p in patches]
    patches = [p for p in patches if p[-1].max() > 0.5]
    return patches or _noise(survey, settings, found)


def _common(survey: Survey, settings: Settings, found: Look) -> list[Floats]:
    """Pieces that recur, or windows where these explain more: pictures that touch are no pieces."""
    place, size = settings.placement, settings.learning.concept_size
    alone = place.rotations == 1 and len(place.scales) == 1 and not found.one_colour
    if alone and found.explained < WELL * survey.shown:
        windows = recurring_windows(survey, size, settings.learning.concepts)
        if sum(w.pixels for w in windows) > MORE * found.explained:
            return [framed(w.patch, size)[0].numpy() for w in windows]
    return [kind_patch(found, kind, size, 1 / max(place.scales)) for kind in found.kinds]


def _noise(survey: Survey, settings: Settings, found: Look) -> list[Floats]:
    """Half-clear grey with a little noise, nothing known."""
    learning = settings.learning
    generator = np.random.default_rng([survey.seed, 1])
    channels = survey.channels if learning.colour_shapes else 1
    count = learning.concepts if learning.initial is None else learning.initial
    noise = generator.random((count, channels + 1, learning.concept_size, learning.concept_size), dtype=np.float32)
    return list(noise * 0.5 + 0.25)


_STARTS: dict[str, Make] = {"pieces": _recurring, "noise": _noise}


def kind_patch(found: Look, kind: Kind, most: int, zoom: float = 1.0) -> Floats:
    """What a kind looks like: its members turned and scaled onto the largest (`zoom` times that), averaged.

    Straight shape channels, then alpha.
    """
    pieces, likeness = found.pieces, found.likeness
    assert likeness is not None
    apart = likeness.distance[kind.exemplar, kind.members]
    order = kind.members[apart.argsort()]
    tight = kind.members[apart < TIGHT]
    members = (tight if len(tight) >= 4 else order[: max(1, len(order) // 2)]).tolist()
    radius = {i: centre_and_radius(pieces[i].mask)[2] for i in members}
    largest = _largest(sorted(radius.values(), reverse=True))
    chosen = [i for i in members if radius[i] >= LARGEST * largest][:ENOUGH] or members[:1]
    stacks = [stack(pieces[i], found.one_colour) for i in chosen]
    if float(likeness.angle.abs().max()) == 0 and found.turns.scales[0] == 1 and zoom == 1:
        side = [max(s.shape[d] for s in stacks) for d in (1, 2)]
        total = torch.stack([centred(s, side[0], side[1]) for s in stacks]).median(0).values
    else:
        angles = [float(likeness.angle[kind.exemplar, i]) for i in chosen]
        grown = [zoom * largest / radius[i] for i in chosen]
        turn = upright_angle(_aligned(stacks, angles, grown)) if float(likeness.angle.abs().max()) > 0 else 0.0
        total = _aligned(stacks, [angle + turn for angle in angles], grown)
    alpha = total[-1:]
    patch = torch.cat([torch.where(alpha > 0.01, total[:-1] / alpha.clamp_min(0.01), total[:-1]), alpha])
    return framed(patch, most)[0].numpy().astype(np.float32)


def _largest(radii: list[float]) -> float:
    """The largest size, if it is not that of one piece alone."""
    return next((a for a, b in itertools.pairwise(radii) if b >= SAME_SIZE * a), radii[0])


def _aligned(stacks: list[Tensor], angles: list[float], growth: list[float]) -> Tensor:
    """The mean of stacks turned back and grown, around their centres of mass."""
    reach = max(math.hypot(s.shape[1], s.shape[2]) * g for s, g in zip(stacks, growth, strict=True))
    side = 2 * math.ceil(reach / 2) + 1
    steps = torch.arange(side) + 0.5 - side / 2
    across, down = steps[None, :].expand(side, side), steps[:, None].expand(side, side)
    total = torch.zeros(stacks[0].shape[0], side, side)
    for one, angle, grown in zip(stacks, angles, growth, strict=True):
        x, y, _ = centre_and_radius(one[-1])
        cos, sin = math.cos(angle) / grown, math.sin(angle) / grown
        u, v = x + cos * across + sin * down, y - sin * across + cos * down
        grid = torch.stack([u * (2 / one.shape[2]) - 1, v * (2 / one.shape[1]) - 1], dim=-1)
        total += functional.grid_sample(one.unsqueeze(0), grid.unsqueeze(0), padding_mode="zeros", align_corners=False)[0]
    return total / len(stacks)


def framed(patch: Tensor, most: int) -> tuple[Tensor, float, float]:
    """A patch cut anew to what it shows and a margin, at most `most` pixels a side, and where its middle now lies in the old one.

    Sides keep their parity, so that the middle moves by whole pixels.
    """
    cut, moved = patch, []
    for dim in (1, 2):
        shown = (patch[-1] > SHOWN).any(2 - dim)
        length = patch.shape[dim]
        where = shown.nonzero()[:, 0]
        if not len(where):
            moved.append(0.0)
            continue
        first, last = int(where[0]) - MARGIN, int(where[-1]) + 1 + MARGIN
        side = min(last - first, most)
        side -= (side - length) % 2
        begin = round((first + last - side) / 2)
        before, after = max(0, -begin), max(0, begin + side - length)
        pad = (0, 0, before, after) if dim == 1 else (before, after)
        cut = functional.pad(cut, pad).narrow(dim, max(0, begin), side)
        moved.append(begin + side / 2 - length / 2)
    return cut, moved[1], moved[0]


def _hues(found: Look, settings: Settings, channels: int) -> Floats | None:
    """The most frequent colours of pieces that recur, far enough apart; the corners of the colour cube where there are too few."""
    count = getattr(settings.colour, "count", 0)
    if not count:
        return None
    chosen = [mean for mean, _ in frequent_colours(found)][:count]
    for corner in np.ndindex(*(2,) * channels):
        if len(chosen) < count and any(corner):
            chosen.append(np.array(corner, np.float32))
    while len(chosen) < count:
        chosen.append(np.full(channels, 0.5, np.float32))
    return np.stack(chosen).clip(0, 1).astype(np.float32)


def frequent_colours(found: Look) -> list[tuple[Floats, int]]:
    """The colours of pieces in kinds (of all where there are no kinds), most frequent first, and how often they come."""
    members = torch.cat([k.members for k in found.kinds]).tolist() if found.kinds else range(len(found.pieces))
    colours = [found.pieces[i].colour.numpy() for i in members]
    left = np.stack(colours) if colours else np.zeros((0, 1), np.float32)
    chosen: list[tuple[Floats, int]] = []
    while len(left):
        near = np.abs(left[:, None] - left[None]).max(-1) < SAME_HUE
        best = int(near.sum(1).argmax())
        chosen.append((np.median(left[near[best]], axis=0).astype(np.float32), int(near[best].sum())))
        left = left[~near[best]]
    return chosen


def create_background(settings: Settings, survey: Survey) -> Background:
    """Where the background starts: the median of the images' most frequent colours, or the median image."""
    if settings.background.kind == "plain":
        return Background("plain", survey.behind.median(0).values.numpy())
    if settings.background.kind == "image":
        if len({tuple(image.shape) for image in survey.images}) > 1:
            raise InputError("background.kind is 'image' but the images differ in size: resize them, or set it to plain or free")
        return Background("image", torch.stack(survey.images).median(0).values.permute(1, 2, 0).numpy())
    return Background(settings.background.kind)
