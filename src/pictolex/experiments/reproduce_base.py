"""What an experiment of the paper is, and what running it gives. No torch here."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, Protocol

if TYPE_CHECKING:
    from pictolex.api import Learned
    from pictolex.decompose import Progress
    from pictolex.learn import Callback
    from pictolex.model import Collection
    from pictolex.sources import Source
    from pictolex.sources.truth import Truth

DEFAULT_SEEDS = (0, 1, 2)
AUTO = "auto"
"""The preset that is made from the images themselves."""


@dataclass(frozen=True)
class Figure:
    """One column: the key of a figure, its title, which way is better (None: neither), and how it is shown (times `scale`)."""

    key: str
    title: str
    better: Literal["higher", "lower"] | None
    scale: float = 1.0
    digits: int = 4
    published_digits: int = 4

    def worst(self, values: tuple[float, ...]) -> float | None:
        """The worst of some values; None where neither way is better."""
        return None if self.better is None else min(values) if self.better == "higher" else max(values)

    def reaches(self, value: float, wanted: float) -> bool:
        """Whether a value is as good as is wanted."""
        return value >= wanted if self.better == "higher" else value <= wanted


@dataclass(frozen=True)
class Statistic:
    """A figure over seeds (deviation: of the sample, None for one seed), or as published. None where it is not known."""

    mean: float | None
    deviation: float | None = None
    worst: float | None = None
    values: tuple[float | None, ...] = ()


@dataclass(frozen=True)
class Row:
    """One method's figures, and where they come from: published, or measured here and on which images."""

    method: str
    source: str
    figures: Mapping[str, Statistic]
    note: str = ""
    preset: str | None = None
    variant: str = ""
    seeds: tuple[int, ...] = ()


@dataclass(frozen=True)
class Target:
    """What every seed must reach (floor), and what it should (goal)."""

    figure: str
    floor: float
    goal: float | None = None


@dataclass(frozen=True)
class Verdict:
    """A target beside the worst seed; None where the figure is not known."""

    preset: str
    variant: str
    figure: str
    worst: float | None
    floor: float
    floor_met: bool | None
    goal: float | None
    goal_met: bool | None
    seeds: tuple[int, ...]


@dataclass(frozen=True)
class Experiment:
    """One experiment, as data.

    `module`: the module of this package whose `case(experiment, side, seed, images)` opens its images. `file`: of the shared
    sets. `sides`: the canvas, one row each (None: as the images are); `preset`: its own one.
    """

    name: str
    module: str
    file: str
    preset: str
    published: tuple[Row, ...] = ()
    targets: tuple[Target, ...] = ()
    sides: tuple[int | None, ...] = (None,)


@dataclass(frozen=True, eq=False)
class Case:
    """What one seed learns from and is measured on. The truth is opened when there is something to measure."""

    learn: Source
    evaluate: Source
    truth: Callable[[], Truth | None]
    data: str
    """The images, in words."""
    note: str = ""
    """What a reader of the figures has to know about the images."""
    spec: str | None = None
    """How a user names the images to learn from; None where they have no name."""


@dataclass(frozen=True)
class Task:
    """One seed of one preset on one canvas."""

    experiment: Experiment
    preset: str
    side: int | None
    seed: int

    @property
    def variant(self) -> str:
        """The canvas, where there are several."""
        return "" if self.side is None else f"{self.side}x{self.side}"

    @property
    def title(self) -> str:
        """For people."""
        return f"{self.experiment.name}{' ' + self.variant if self.variant else ''}, preset {self.preset}, seed {self.seed}"

    def folder(self, out: Path) -> Path:
        """Where this seed is kept; a canvas other than the first one has a folder of its own."""
        inner = self.preset if self.side == self.experiment.sides[0] else f"{self.preset}/{self.variant}"
        return out / self.experiment.name / inner / f"seed-{self.seed}"


@dataclass(frozen=True)
class Result:
    """One finished seed, as kept in its `result.json`."""

    experiment: str
    preset: str
    variant: str
    seed: int
    settings_hash: str
    data: str
    note: str
    figures: Mapping[str, float | None]
    seconds: float
    device: str
    machine: str
    versions: Mapping[str, str]
    settings: Mapping[str, Any]


@dataclass(frozen=True)
class Left:
    """A seed that is left for the next call, and why."""

    preset: str
    variant: str
    seed: int
    reason: str

    @property
    def title(self) -> str:
        """For people."""
        return " ".join(part for part in (self.preset, self.variant, f"seed {self.seed}") if part)


@dataclass(frozen=True)
class Step:
    """A seed that is about to be run; `seconds_left` for it and those after it, infinite where not known."""

    title: str
    number: int
    total: int
    seconds_left: float


@dataclass(frozen=True)
class Report:
    """All of an experiment so far."""

    name: str
    folder: str
    rows: tuple[Row, ...]
    targets: tuple[Verdict, ...]
    seeds: tuple[Result, ...]
    left: tuple[Left, ...]
    notes: tuple[str, ...]


class Draw(Protocol):
    """Draws a dictionary and some images taken apart into a folder."""

    def __call__(self, learned: Learned, collection: Collection, images: Source, folder: Path, /) -> None:
        """Draw."""
        ...


def _nothing(*_: object) -> None:
    """Nobody watches."""


@dataclass(frozen=True)
class Watch:
    """Those who watch: seeds, lines of text, learning's progress, progress of a pass over images; and who draws the pictures."""

    step: Callable[[Step], None] = _nothing
    say: Callable[[str], None] = _nothing
    learning: Callback = _nothing
    images: Callable[[Progress], None] = _nothing
    draw: Draw = _nothing


@dataclass(frozen=True)
class Order:
    """How seeds are run: where they are kept, with how many images at most, on which device, how long each may learn."""

    out: Path
    images: int | None = None
    device: str = "auto"
    learn_budget: float | None = None
    watch: Watch = field(default_factory=Watch)
