"""Scenes with a known answer, drawn by Pillow, and how near a decomposition comes to it."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from drawn import Placed
from pictolex.model import Collection, Decomposition, Dictionary, Element
from pictolex.settings import AlphaFormation, Placement, Propose, Rounds, Settings

KINDS = ("ell", "wedge", "ellipse")
SYMMETRY = {"ell": 2 * math.pi, "wedge": 2 * math.pi, "ellipse": math.pi, "bar": math.pi, "square": math.pi / 2}
STRATEGIES = {"rounds": Rounds(), "propose": Propose()}
HUES = np.array([[1.0, 0.2, 0.1], [0.2, 0.8, 0.2], [0.3, 0.4, 1.0]], np.float32)


@dataclass(frozen=True)
class Array:
    """One image as the engine reads it."""

    name: str
    pixels: NDArray[np.float32]
    opacity: NDArray[np.float32] | None = None


class Arrays:
    """Images in memory."""

    def __init__(self, images: Sequence[NDArray[np.float32]], opacity: Sequence[NDArray[np.float32] | None] | None = None) -> None:
        self.images = list(images)
        self.opacity = list(opacity) if opacity is not None else [None] * len(self.images)

    def __len__(self) -> int:
        return len(self.images)

    @property
    def names(self) -> list[str]:
        return [f"image-{i}" for i in range(len(self))]

    def read(self, i: int, /) -> Array:
        return Array(f"image-{i}", self.images[i], self.opacity[i])


def settings(named: str = "propose", rotations: int = 16, **changes: object) -> Settings:
    """Settings for these scenes, on the CPU."""
    values: dict[str, object] = {
        "strategy": STRATEGIES[named],
        "placement": Placement(rotations=rotations, continuous=named == "propose"),
        "formation": AlphaFormation(sharpness=1.5),
        "price": 6.0,
        "layers": 4,
        "device": "cpu",
    }
    return Settings.model_validate(values | changes)


def apart(
    rng: np.random.Generator,
    count: int,
    size: int,
    *,
    distance: float = 12.0,
    rotations: int | None = 16,
    scales: tuple[float, float] = (1.0, 1.0),
    hues: NDArray[np.float32] | None = None,
    jitter: float = 0.4,
    border: float = 7.0,
) -> list[Placed]:
    """Random shapes at least so far apart; rotations from a grid (None: any), at most `jitter` from whole positions."""
    placed: list[Placed] = []
    tries = 0
    while len(placed) < count:
        # The first ones may stand so that there is no room for the last: start again.
        tries += 1
        if tries % 200 == 0:
            placed.clear()
        if tries > 100_000:
            raise ValueError(f"no room for {count} shapes {distance} apart in {size} pixels")
        # A patch of odd side has its centre at .5 when it stands on whole pixels.
        x, y = (np.floor(rng.random(2) * (size - 2 * border) + border) + 0.5 + rng.uniform(-jitter, jitter, 2)).tolist()
        if all(math.hypot(x - p.x, y - p.y) >= distance for p in placed):
            turn = rng.random() if rotations is None else float(rng.integers(rotations)) / rotations
            colour = (1.0,) if hues is None else tuple(hues[rng.integers(len(hues))].tolist())
            placed.append(Placed(str(rng.choice(KINDS)), x, y, turn * 2 * math.pi, rng.uniform(*scales), colour))
    return placed


def turn_between(a: float, b: float, kind: str) -> float:
    """How far two rotations of a shape are apart, given its symmetry."""
    period = SYMMETRY[kind]
    return abs((a - b + period / 2) % period - period / 2)


def match(placed: Placed, decomposition: Decomposition, dictionary: Dictionary, within: float = 1.5) -> Element | None:
    """The element of the right concept near a shape."""
    near = [e for e in decomposition if dictionary[e.concept].name == placed.kind and math.hypot(e.x - placed.x, e.y - placed.y) < within]
    return min(near, key=lambda e: math.hypot(e.x - placed.x, e.y - placed.y), default=None)


@dataclass(frozen=True)
class Recovery:
    """Over many scenes."""

    right: float
    """Share of the scenes with every shape found and nothing else."""
    away: float
    """The largest distance in x or y of those matched."""
    turned: float
    scaled: float
    """The largest ratio of scales."""


def recovery(scenes: Sequence[Sequence[Placed]], found: Collection, dictionary: Dictionary) -> Recovery:
    """How much of the truth was found."""
    right, away, turned, scaled = 0, [0.0], [0.0], [1.0]
    for shapes, decomposition in zip(scenes, found, strict=True):
        matches = [(p, match(p, decomposition, dictionary)) for p in shapes]
        complete = len(decomposition) == len(shapes) and all(e is not None for _, e in matches)
        right += complete
        for p, e in matches:
            if complete and e is not None:
                away.append(max(abs(e.x - p.x), abs(e.y - p.y)))
                turned.append(turn_between(e.rotation, p.rotation, p.kind))
                scaled.append(max(e.scale / p.scale, p.scale / e.scale))
    return Recovery(right / len(scenes), max(away), max(turned), max(scaled))
