"""What an ablation is: variants that differ in one choice, what is measured of each, and what is drawn. No torch here."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pictolex.experiments.reproduce_base import Figure, Statistic, Watch
from pictolex.experiments.reproduce_published import FIGURES
from pictolex.experiments.reproduce_seed import Clock
from pictolex.settings import Settings

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from pictolex.model import Dictionary
    from pictolex.sources import Source
    from pictolex.sources.truth import Truth

_BY_KEY = {figure.key: figure for figure in FIGURES}
MIXED, MILLISECONDS = "mixed", "ms_per_image"
ARI, L1, MSE, CONCEPTS, LEARNING = (_BY_KEY[key] for key in ("ari_foreground", "concept_l1", "mse", "concepts", "learn_seconds"))
L1_SHIFTED = Figure("concept_l1_strict", "concept L1, shifted only", "lower")
MIXES = Figure(MIXED, "true shapes a concept", "lower", digits=2)
TIME = Figure(MILLISECONDS, "ms an image", "lower", digits=0)
LEARNED = Figure("images_learned", "images learned from", None, digits=0)
ELEMENTS = Figure("elements_per_image", "elements an image", None, digits=2)


@dataclass(frozen=True)
class Variant:
    """One row: a name (that of its folder, too), the set of images, and what is changed in the settings that go with it.

    `changes`: by dotted name (`learning.concepts`), or a whole room of the settings by its own. `learn`: how many images to learn
    from; None: as many as the ablation does. `random`: whether seeds can make a difference. `method`: where a module has several.
    """

    name: str
    images: str
    changes: Mapping[str, Any] = field(default_factory=dict)
    learn: int | None = None
    random: bool = True
    method: str = ""

    def settings(self, base: Settings, seed: int, device: str) -> Settings:
        """Settings with what this variant changes in them."""
        values = base.model_dump()
        for name, value in (*self.changes.items(), ("seed", seed), ("device", device)):
            room, _, inner = name.partition(".")
            values[room] = {**values[room], inner: value} if inner else value
        return Settings.model_validate(values)


@dataclass(frozen=True, eq=False)
class Images:
    """What a seed learns from and is measured on, with the settings that go with it. `data`: the images, in words."""

    learn: Source
    measure: Source
    truth: Truth | None
    dictionary: Dictionary
    """The true concepts."""
    base: Settings
    data: str
    note: str = ""


@dataclass(frozen=True)
class Job:
    """One seed of a variant, to be measured on at most so many images."""

    variant: Variant
    seed: int
    images: int
    device: str
    watch: Watch
    clock: Clock

    def settings(self, images: Images) -> Settings:
        """The settings of this seed."""
        return self.variant.settings(images.base, self.seed, self.device)

    @property
    def learned_images(self) -> int:
        """Images to learn from."""
        return self.images if self.variant.learn is None else self.variant.learn


@dataclass(frozen=True, eq=False)
class Found:
    """What a seed of a variant gave. `details`: curves and tables, as JSON can hold them. `arrays`: what pictures are drawn from."""

    figures: Mapping[str, float | None]
    details: Mapping[str, Any] = field(default_factory=dict)
    arrays: Mapping[str, NDArray[Any]] = field(default_factory=dict)
    dictionary: Dictionary | None = None


@dataclass(frozen=True, eq=False)
class Kept:
    """One finished seed of a variant."""

    variant: Variant
    seed: int
    seconds: float
    machine: str
    data: str
    settings: Settings
    found: Found

    @property
    def stem(self) -> str:
        """The name of its own pictures."""
        return f"{self.variant.name}-seed-{self.seed}"


@dataclass(frozen=True)
class Ablation:
    """One question and how it is answered.

    `columns`: the figures of its table. `images`: how many to learn from and to measure on where nobody says; `measured`: another
    number to measure on. `run`: one seed of a variant. `draw`: pictures of what is finished, into a folder; it gives back a line for
    each one it had to leave out.
    """

    name: str
    question: str
    columns: tuple[Figure, ...]
    variants: tuple[Variant, ...]
    images: int
    run: Callable[[Job, Images], Found]
    draw: Callable[[Sequence[Kept], Path], list[str]]
    measured: int | None = None


@dataclass(frozen=True)
class Row:
    """A variant's figures over its seeds; no seeds where nothing is random."""

    variant: str
    images: str
    figures: Mapping[str, Statistic]
    seeds: tuple[int, ...]


@dataclass(frozen=True)
class Left:
    """A seed that is left for the next call, and why."""

    variant: str
    seed: int
    reason: str


@dataclass(frozen=True)
class One:
    """One finished seed, without what pictures are drawn from."""

    variant: str
    images: str
    seed: int
    data: str
    figures: Mapping[str, float | None]
    details: Mapping[str, Any]
    seconds: float
    machine: str
    settings: Mapping[str, Any]


@dataclass(frozen=True)
class Report:
    """All of an ablation so far."""

    name: str
    question: str
    folder: str
    rows: tuple[Row, ...]
    results: tuple[One, ...]
    left: tuple[Left, ...]
    notes: tuple[str, ...]


@dataclass(frozen=True)
class Order:
    """How an ablation is run: where it is kept, with how many images (None: its own number), on which device."""

    out: Path
    images: int | None = None
    device: str = "auto"
    watch: Watch = field(default_factory=Watch)
