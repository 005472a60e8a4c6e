"""What a benchmark is asked for and what it gives: rows of figures. No torch here."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

DATA = "PICTOLEX_DATA"
"""The environment variable that names the folder of data sets."""


@dataclass(frozen=True)
class Row:
    """One figure.

    `reference`: what the same is without our shortcuts, measured in the same run; `ratio`: how many times better than that the
    value is (above 1: better). `floor`: what it must at least be; `goal`: what it should be.
    """

    name: str
    setting: str
    device: str
    value: float
    unit: str
    better: Literal["higher", "lower"]
    reference: float | None = None
    ratio: float | None = None
    floor: float | None = None
    goal: float | None = None


@dataclass(frozen=True)
class Order:
    """How to measure: on which devices, with how many images at most (None: as many as the benchmark thinks right)."""

    devices: tuple[str, ...] = ("cpu",)
    images: int | None = None
    say: Callable[[str], None] = lambda text: None

    def count(self, usual: int) -> int:
        """How many images to use where `usual` is right."""
        return usual if self.images is None else min(usual, self.images)

    @property
    def fastest(self) -> str:
        """The device for figures that do not depend on it."""
        return self.devices[-1]


def data_file(name: str) -> Path | None:
    """A file of the data sets; None where they, or it, are not there: the reason is `missing(name)`."""
    folder = os.environ.get(DATA)
    path = Path(folder) / name if folder else None
    return path if path is not None and path.is_file() else None


def missing(name: str) -> str:
    """Why a file of the data sets cannot be used."""
    folder = os.environ.get(DATA)
    return f"{name} is not in {folder}" if folder else f"it needs {name}; set {DATA} to the folder of data sets"


def times_faster(milliseconds: float, reference: float) -> float:
    """The ratio of a row of times."""
    return reference / max(milliseconds, 1e-9)
