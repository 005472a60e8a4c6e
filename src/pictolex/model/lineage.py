"""How concepts came to be: the tree of births, splits, merges and removals."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from pictolex.errors import InputError
from pictolex.model.arrays import whole


@dataclass(frozen=True)
class Event:
    """One thing that happened to a concept: "born", "split", "merged", "removed", "reseeded", ...

    `concept` is the id that the event left or took away, `parents` are the ids it came from,
    `figures` the numbers it was decided on.
    """

    epoch: float
    kind: str
    concept: int
    parents: tuple[int, ...] = ()
    figures: Mapping[str, float] = field(default_factory=dict, hash=False)

    def __post_init__(self) -> None:
        if not self.kind or not isinstance(self.kind, str):
            raise InputError(f"an event's kind must be a word such as 'born' or 'split', got {self.kind!r}")
        object.__setattr__(self, "epoch", float(self.epoch))
        object.__setattr__(self, "concept", whole(self.concept, "an event's concept"))
        object.__setattr__(self, "parents", tuple(whole(parent, "an event's parent") for parent in self.parents))
        object.__setattr__(self, "figures", {str(key): float(value) for key, value in self.figures.items()})


@dataclass(frozen=True, repr=False)
class Lineage:
    """All events in the order they happened."""

    events: tuple[Event, ...] = ()

    def __post_init__(self) -> None:
        object.__setattr__(self, "events", tuple(self.events))

    def __len__(self) -> int:
        return len(self.events)

    def __iter__(self) -> Iterator[Event]:
        return iter(self.events)

    def __repr__(self) -> str:
        counts: dict[str, int] = {}
        for event in self.events:
            counts[event.kind] = counts.get(event.kind, 0) + 1
        return f"Lineage({', '.join(f'{count} {kind}' for kind, count in counts.items()) or 'empty'})"

    def with_events(self, *events: Event) -> Lineage:
        """This lineage and what happened next."""
        return Lineage((*self.events, *events))

    def of(self, concept: int) -> tuple[Event, ...]:
        """The events of one concept."""
        return tuple(event for event in self.events if event.concept == concept)

    def parents(self, concept: int) -> tuple[int, ...]:
        """The concepts that this one came from, itself not among them."""
        return _distinct((parent for event in self.of(concept) for parent in event.parents), concept)

    def children(self, concept: int) -> tuple[int, ...]:
        """The concepts that came from this one, itself not among them."""
        return _distinct((event.concept for event in self.events if concept in event.parents), concept)

    def to_json(self) -> list[dict[str, Any]]:
        """Plain lists, texts and numbers, to be read back by `from_json`; a figure that is not finite becomes None, and NaN again."""
        return [
            {
                "epoch": event.epoch,
                "kind": event.kind,
                "concept": event.concept,
                "parents": list(event.parents),
                "figures": {key: value if math.isfinite(value) else None for key, value in event.figures.items()},
            }
            for event in self.events
        ]

    @classmethod
    def from_json(cls, events: Iterable[Mapping[str, Any]]) -> Lineage:
        """A lineage from what `to_json` gave."""
        return cls(
            tuple(
                Event(
                    epoch=event["epoch"],
                    kind=event["kind"],
                    concept=event["concept"],
                    parents=tuple(event["parents"]),
                    figures={key: math.nan if value is None else value for key, value in event["figures"].items()},
                )
                for event in events
            )
        )

    def save(self, path: str | Path) -> None:
        """Write a JSON file, whole or not at all."""
        from pictolex.model.files import write_lineage

        write_lineage(self, path)

    @classmethod
    def load(cls, path: str | Path) -> Lineage:
        """Read what `save` wrote."""
        from pictolex.model.files import read_lineage

        return read_lineage(path)


def _distinct(ids: Iterable[int], without: int) -> tuple[int, ...]:
    return tuple(id for id in dict.fromkeys(ids) if id != without)
