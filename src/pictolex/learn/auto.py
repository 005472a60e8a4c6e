"""Settings chosen from the images themselves: what is behind them, which pieces recur and how these are turned, coloured and sized."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch

from pictolex.decompose.parallel import one_thread
from pictolex.learn.start import WELL, frequent_colours, kind_patch
from pictolex.learn.survey import Look, Survey
from pictolex.learn.windows import Window, recurring_windows
from pictolex.settings import Settings

AUTO = "auto"
"""The name by which this is asked for in place of a preset's."""
FLAT = 0.03
"""Colours nearer than this are the same."""
KIND = 3.0
"""A kind of pieces has to explain so many of its pieces more to be worth being one: the cost of a concept, in elements."""
FINER = 2.0
"""Concepts that are turned or scaled are kept so much finer than the images' pixels."""
FINE = 1.22
"""Ratio of neighbouring scales that are tried."""
FEW = 24
"""With so many images, pieces that do not touch can be had from some of them."""
SIDES = (11, 15, 21, 31, 45)
"""Sides of windows that are tried."""
MOST_WINDOWS = 24
NO_WINDOWS: tuple[int, float, list[Window]] = (0, 0.0, [])
MORE = 1.2
"""Windows have to be worth so much more than pieces."""
ROOM = 1.5
"""More elements than fill what an image shows."""
EXACT_SHARE = 0.008
MOST_HUES = 16
COVERED = 0.95
"""Share of the pieces that hues have to colour."""
SHARE = 0.015
"""The price of an element, as a share of the squared error that a typical one saves."""
OFTEN = 0.98
"""Share of the images that the number of layers is enough for."""


@dataclass(frozen=True)
class Chosen:
    """Settings, and in a line each why."""

    settings: Settings
    reasons: tuple[str, ...]


@one_thread()
def chosen_settings(survey: Survey) -> Chosen:
    """Settings for images like those of a survey."""
    background, behind_why = _background(survey)
    look, turning = _best_look(survey)
    side, worth, found = _best_side(survey) if look.explained < WELL * survey.shown else NO_WINDOWS
    if worth > MORE * max(0.0, _worth(look)):
        return _windows(survey, side, found, background, behind_why)
    if not look.kinds:
        return _nothing_recurs(survey, background, behind_why)
    reasons = [behind_why]
    turns = look.turns
    free = turning and turns.free
    low = turns.scales[0] if turning else 1.0
    zoom = FINER if turning else 1.0
    placement: dict[str, Any] = {
        "rotations": 40 if free else 4 if turning and turns.quarter else 1,
        "scales": tuple(scale / zoom for scale in _scales(low)),
    }
    placement["continuous"] = turning or not _on_the_grid(look)
    reasons.append(f"{len(look.kinds)} kinds of pieces recur, {_turned(free, turning and turns.quarter, low)}")
    colour, colour_shapes, why = _colour(survey, look)
    reasons.append(why)
    hard = _hard(look, survey)
    sharpness = 6.0 if turning and hard else 2.0 if turning else 1.0
    size = max(max(kind_patch(look, kind, 4096, zoom).shape[1:]) for kind in look.kinds)
    energy = _energy(survey, look)
    layers = _layers(survey, look)
    reasons.append(f"up to {layers} elements an image; one is worth {energy:.3g} in squared error, and costs {SHARE * energy:.2g}")
    strategy = {"kind": "propose", "passes": 4, "candidates": 12, "context_candidates": 4, "polish_steps": 8}
    plain = {"kind": "propose", "passes": 2, "candidates": 4, "context_candidates": 2}
    few = len(survey.images) < 8
    values = {
        "layers": layers,
        "price": SHARE * energy,
        "seed": survey.seed,
        "formation": {"kind": "alpha", "sharpness": sharpness},
        "placement": placement,
        "background": {"kind": background},
        "colour": colour,
        "strategy": strategy if turning else plain,
        "learning": {
            "concepts": max(2 * len(look.kinds), len(look.kinds) + 8),
            "concept_size": int(size + 2 * zoom),
            "colour_shapes": colour_shapes,
            "epochs": 12 if few else 4 if turning else 3,
            "limit": 384,
        },
    }
    return Chosen(Settings.model_validate(values), tuple(reasons))


def _best_side(survey: Survey) -> tuple[int, float, list[Window]]:
    """The side of windows that explain most, what they are worth, and they; looked for where there are few images to cut pieces from."""
    if len(survey.images) >= FEW:
        return NO_WINDOWS
    best = NO_WINDOWS
    for side in SIDES:
        found = recurring_windows(survey, side, MOST_WINDOWS)
        worth = sum(w.pixels - KIND * float(w.patch[-1].sum()) for w in found)
        best = max(best, (side, worth, found), key=lambda one: one[1])
    return best


def _windows(survey: Survey, side: int, found: list[Window], background: str, why: str) -> Chosen:
    """Settings for pictures whose pieces touch."""
    plane = survey.planes[0].mean((1, 2))[:, None, None]
    energy = float(np.median([float(((w.patch[:-1] - plane).square() * w.patch[-1]).sum()) for w in found]))
    smallest = min(float(w.patch[-1].sum()) for w in found)
    shown = max(float(((i - p).abs().amax(0) > survey.seen).sum()) for i, p in zip(survey.images, survey.planes, strict=True))
    layers = math.ceil(ROOM * shown / smallest)
    values = {
        "layers": layers,
        "price": EXACT_SHARE * energy,
        "seed": survey.seed,
        "background": {"kind": background},
        "strategy": {"kind": "propose", "passes": 2, "candidates": 24, "context_candidates": 8},
        "learning": {
            "concepts": len(found) + 8,
            "concept_size": side,
            "colour_shapes": survey.channels > 1,
            "epochs": 12 if len(survey.images) < 8 else 3,
            "limit": 384,
        },
    }
    reasons = (
        why,
        f"{len(found)} pictures recur that touch each other, within {side} pixels",
        f"up to {layers} elements an image; one is worth {energy:.3g} in squared error, and costs {EXACT_SHARE * energy:.2g}",
    )
    return Chosen(Settings.model_validate(values), reasons)


def _nothing_recurs(survey: Survey, background: str, why: str) -> Chosen:
    """The best guess where no piece recurs: patches of an eighth of the images."""
    side = min(min(i.shape[1:]) for i in survey.images)
    values = {
        "seed": survey.seed,
        "background": {"kind": background},
        "learning": {"concepts": 16, "concept_size": max(5, side // 4), "colour_shapes": survey.channels > 1, "epochs": 3, "limit": 384},
    }
    return Chosen(Settings.model_validate(values), (why, "no piece of these images recurs; what is learned says little of other images"))


def _background(survey: Survey) -> tuple[str, str]:
    """What is behind everything."""
    if survey.shared_image:
        return "image", "the images share a background"
    apart = float((survey.behind - survey.behind.median(0).values).abs().amax(1).quantile(0.9))
    if apart > FLAT:
        return "free", "each image has a plain background of its own"
    if float(survey.behind.median(0).values.max()) < FLAT:
        return "none", "the background is black"
    return "plain", "all images have the same plain background"


def _best_look(survey: Survey) -> tuple[Look, bool]:
    """How pieces are cut and compared: what explains most at the least number of kinds."""
    ways = (False, True) if survey.channels > 1 else (False,)
    best: tuple[float, Look, bool] | None = None
    for one_colour in ways:
        turning = survey.look(one_colour, True, 2**20)
        plain = survey.look(one_colour, False, 2**20)
        turned = turning.turns.free or turning.turns.scales[0] < 1
        look = turning if turned else plain
        worth = _worth(look)
        if best is None or worth > best[0]:
            best = (worth, look, turned)
    assert best is not None
    return best[1], best[2]


def _worth(look: Look) -> float:
    """Pixels explained, less what the kinds cost."""
    return sum((kind.score - KIND) * look.pieces[kind.exemplar].area for kind in look.kinds)


def _turned(free: bool, quarter: bool, low: float) -> str:
    how = "at any angle" if free else "at quarter turns" if quarter else "never turned"
    return how + (f" and at sizes from {low:.2f} to 1" if low < 1 else " and at one size")


def _scales(low: float) -> tuple[float, ...]:
    """From the smallest size to 1, evenly in ratio."""
    if low == 1:
        return (1.0,)
    steps = math.ceil(math.log(1 / low) / math.log(FINE))
    return tuple(round(low ** (1 - k / steps), 4) for k in range(steps + 1))


def _on_the_grid(look: Look) -> bool:
    """Whether the members of kinds are the same pixel for pixel."""
    if look.likeness is None:
        return True
    apart = torch.cat([look.likeness.distance[kind.exemplar, kind.members] for kind in look.kinds])
    return float(apart.quantile(0.8)) < 0.005


def _colour(survey: Survey, look: Look) -> tuple[dict[str, Any], bool, str]:
    """Colour setting, whether concepts hold their own RGB, and why."""
    if not look.one_colour:
        coloured = survey.channels > 1
        return {"kind": "none"}, coloured, "pieces have their own colours" if coloured else "pieces are grey"
    colours = frequent_colours(look)
    total = sum(count for _, count in colours)
    covered = 0
    for number, (_, count) in enumerate(colours[:MOST_HUES]):
        covered += count
        if covered >= COVERED * total:
            return {"kind": "hues", "count": number + 1}, False, f"pieces of one colour each, of {number + 1} hues"
    return {"kind": "free"}, False, "pieces of one colour each, of any hue"


def _hard(look: Look, survey: Survey) -> bool:
    """Whether pieces end at a pixel: few of their border pixels are between their colour and the background's."""
    between = border = 0
    for kind in look.kinds:
        for i in kind.members[:20].tolist():
            piece = look.pieces[i]
            plane = survey.behind[piece.image][:, None, None]
            reach = (piece.colour[:, None, None] - plane).abs().amax().clamp_min(1e-3)
            share = (piece.straight - plane).abs().amax(0) / reach
            inner = torch.nn.functional.max_pool2d(1 - torch.nn.functional.pad(piece.mask, (1, 1, 1, 1))[None, None], 3, 1)[0, 0] < 0.5
            edge = (piece.mask > 0) & ~inner
            border += int(edge.sum())
            between += int((edge & (share < 0.8)).sum())
    return between < 0.2 * border


def _energy(survey: Survey, look: Look) -> float:
    """The squared error that a typical element saves."""
    saved = []
    for kind in look.kinds:
        for i in kind.members.tolist():
            piece = look.pieces[i]
            plane = survey.behind[piece.image][:, None, None]
            saved.append(float(((piece.straight - plane).square() * piece.mask).sum()))
    return float(torch.tensor(saved).median())


def _layers(survey: Survey, look: Look) -> int:
    """Enough elements for nearly every image: its pieces, and one more for each typical area that no recurring piece explains."""
    known = {i for kind in look.kinds for i in kind.members.tolist()}
    sizes = torch.tensor([look.pieces[i].area for i in known])
    typical = float(sizes.quantile(0.75))
    counts = torch.zeros(len(survey.images))
    for i, piece in enumerate(look.pieces):
        counts[piece.image] += 1 if i in known else max(1, math.ceil(piece.area / typical))
    return max(1, int(counts.quantile(OFTEN).ceil()))
