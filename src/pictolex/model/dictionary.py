"""The visual vocabulary: concepts, hues, background and lineage."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Literal, get_args

import numpy as np
from numpy.typing import NDArray

from pictolex.errors import InputError
from pictolex.model.arrays import unit_array, whole
from pictolex.model.concept import Concept
from pictolex.model.lineage import Lineage

BackgroundKind = Literal["none", "plain", "free", "image"]


@dataclass(frozen=True, eq=False)
class Background:
    """What lies behind all elements: nothing (black), one learned colour, a free colour per image, or a learned image.

    `values` is (channels,) for "plain" and (height, width, channels) for "image", with 1 or 3 channels; None for the others.
    """

    kind: BackgroundKind = "none"
    values: NDArray[np.float32] | None = None

    def __post_init__(self) -> None:
        if self.kind not in get_args(BackgroundKind):
            raise InputError(f"a background's kind must be one of {', '.join(get_args(BackgroundKind))}; got {self.kind!r}")
        form = {"plain": "(channels,)", "image": "(height, width, channels)"}.get(self.kind)
        if form is None:
            if self.values is not None:
                raise InputError(f"a background of kind {self.kind!r} has no values; leave them out")
            return
        if self.values is None:
            raise InputError(f"a background of kind {self.kind!r} needs values {form}")
        values = unit_array(self.values, f"the {self.kind} background")
        if values.ndim != form.count(",") + (self.kind == "image") or values.size == 0 or values.shape[-1] not in (1, 3):
            raise InputError(f"the values of a background of kind {self.kind!r} must be {form} with 1 or 3 channels, got {values.shape}")
        object.__setattr__(self, "values", values)

    def __repr__(self) -> str:
        if self.values is None:
            return f"Background({self.kind!r})"
        return f"Background({self.kind!r}, {'x'.join(map(str, self.values.shape))})"


@dataclass(frozen=True, eq=False, repr=False)
class Dictionary:
    """Concepts of any sizes but of one kind (luminance, RGB or voxels), with what is needed to render their elements.

    Concepts are found by their id: `dictionary[id]`. An id is never given twice: new concepts count up from `next_id`
    (-1: one more than the largest id). `sharpness` is the slope of the squash on resampled alpha.
    """

    concepts: tuple[Concept, ...]
    hues: NDArray[np.float32] | None = None
    background: Background = field(default_factory=Background)
    formation: str = "alpha"
    sharpness: float = 1.0
    next_id: int = -1
    lineage: Lineage = field(default_factory=Lineage)

    def __post_init__(self) -> None:
        object.__setattr__(self, "concepts", tuple(self.concepts))
        if len(self._index) < len(self.concepts):
            raise InputError(f"concept {_first_double(self.ids)} is in the dictionary twice; give every concept an id of its own")
        kinds = sorted({"voxels" if c.is_voxel else f"{c.channels}-channel patches" for c in self.concepts})
        if len(kinds) > 1:
            raise InputError(f"a dictionary's concepts must be of one kind, got {' and '.join(kinds)}")
        after = max(self.ids, default=-1) + 1
        next_id = after if self.next_id == -1 else whole(self.next_id, "a dictionary's next_id")
        if next_id < after:
            raise InputError(f"a dictionary's next_id must be above its largest concept id {after - 1}, got {next_id}")
        object.__setattr__(self, "next_id", next_id)
        if self.hues is not None:
            hues = unit_array(self.hues, "the hues")
            if hues.ndim != 2 or hues.shape[1] != 3 or not len(hues):
                raise InputError(f"the hues must be (count, 3) with a count of 1 or more, got {hues.shape}; None for no hues")
            object.__setattr__(self, "hues", hues)
        if not self.formation or not isinstance(self.formation, str):
            raise InputError(f"a dictionary's formation must be a name such as 'alpha', got {self.formation!r}")
        if not (math.isfinite(self.sharpness) and self.sharpness > 0):
            raise InputError(f"a dictionary's sharpness must be above 0, got {self.sharpness!r}")
        object.__setattr__(self, "sharpness", float(self.sharpness))

    @cached_property
    def _index(self) -> dict[int, int]:
        return {concept.id: index for index, concept in enumerate(self.concepts)}

    def __len__(self) -> int:
        return len(self.concepts)

    def __iter__(self) -> Iterator[Concept]:
        return iter(self.concepts)

    def __contains__(self, id: object) -> bool:
        return id in self._index

    def __getitem__(self, id: int) -> Concept:
        return self.concepts[self.index_of(id)]

    @property
    def ids(self) -> tuple[int, ...]:
        """The ids in the order of the concepts."""
        return tuple(concept.id for concept in self.concepts)

    def index_of(self, id: int) -> int:
        """The place of a concept among `concepts`."""
        try:
            return self._index[int(id)]
        except KeyError:
            known = ", ".join(map(str, self.ids[:10])) + (", ..." if len(self) > 10 else "")
            raise InputError(f"the dictionary has no concept {id}; its ids are {known or 'none'}") from None

    @property
    def channels(self) -> int:
        """Channels of every concept: 1 or 3 (1 where there are no concepts)."""
        return self.concepts[0].channels if self.concepts else 1

    @property
    def values(self) -> int:
        """The number of stored floats: concepts, hues and background."""
        others = (self.hues, self.background.values)
        return sum(concept.values for concept in self.concepts) + sum(array.size for array in others if array is not None)

    def with_concepts(self, concepts: Iterable[Concept], lineage: Lineage | None = None) -> Dictionary:
        """The same dictionary with other concepts; ids of those that went stay taken."""
        concepts = tuple(concepts)
        next_id = max([self.next_id, *(concept.id + 1 for concept in concepts)])
        return replace(self, concepts=concepts, next_id=next_id, lineage=self.lineage if lineage is None else lineage)

    def save(self, folder: str | Path) -> None:
        """Write `dictionary.safetensors`, `dictionary.json` and `lineage.json` into a folder."""
        from pictolex.model.files import save_dictionary

        save_dictionary(self, folder)

    @classmethod
    def load(cls, folder: str | Path) -> Dictionary:
        """Read what `save` wrote."""
        from pictolex.model.files import load_dictionary

        return load_dictionary(folder)

    def __repr__(self) -> str:
        sizes = sorted({concept.alpha.shape for concept in self.concepts})
        parts = [f"{len(self)} concepts" if len(self) != 1 else "1 concept"]
        if sizes:
            parts[0] += " of " + ", ".join("x".join(map(str, size)) for size in sizes[:3]) + (", ..." if len(sizes) > 3 else "")
        if self.hues is not None:
            parts.append(f"{len(self.hues)} hues")
        return f"Dictionary({', '.join(parts)}, background {self.background.kind}, formation {self.formation})"


def _first_double(ids: Iterable[int]) -> int:
    seen: set[int] = set()
    return next(id for id in ids if id in seen or seen.add(id))  # type: ignore[func-returns-value]
