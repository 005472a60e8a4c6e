"""What an evolution is: what it sees, what it gives back, and the operations that all policies share."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Protocol

import numpy as np
import torch
from numpy.typing import NDArray

from pictolex.decompose import Batch, Engine, batches
from pictolex.formation import Formation
from pictolex.learn.kept import Kept, Move
from pictolex.learn.start import to_concept
from pictolex.model import Concept, Dictionary, Event
from pictolex.settings import NoEvolution, Settings
from pictolex.sources import Source


@dataclass(frozen=True)
class Surroundings:
    """What does not change between two evolutions."""

    settings: Settings
    source: Source
    device: torch.device
    formation: Formation | None = None
    frozen: frozenset[int] = frozenset()

    def engine(self, dictionary: Dictionary) -> Engine:
        """A dictionary ready to decompose."""
        return Engine(dictionary, self.settings, formation=self.formation)

    def read(self, index: Sequence[int], engine: Engine) -> list[Batch]:
        """Some images of the source, those of one size together."""
        found = []
        for batch in batches(self.source.take(list(index)), lambda h, w, c: 32, engine.channels, self.device):
            found.append(Batch([int(index[i]) for i in batch.index], batch.names, batch.image, batch.weight))
        return found


@dataclass(frozen=True)
class Evolved:
    """A dictionary after an evolution, and what becomes of the elements of concepts that are not what they were."""

    dictionary: Dictionary
    moves: Mapping[int, Move | None] = field(default_factory=dict)
    changed: bool = False

    def then(self, dictionary: Dictionary, moves: Mapping[int, Move | None]) -> Evolved:
        """This, and another change after it; each concept is in one change an evolution."""
        return Evolved(dictionary, {**self.moves, **moves}, self.changed or dictionary is not self.dictionary)


class Evolution(Protocol):
    """Changes a dictionary between two epochs."""

    def evolve(self, epoch: int, dictionary: Dictionary, kept: Kept) -> Evolved:
        """The dictionary after `epoch` epochs."""
        ...


class Still:
    """No evolution."""

    def __init__(self, around: Surroundings, setting: NoEvolution) -> None:
        self.around = around

    def evolve(self, epoch: int, dictionary: Dictionary, kept: Kept) -> Evolved:
        """As it is."""
        return Evolved(dictionary)


def removed(dictionary: Dictionary, epoch: float, figures: Mapping[int, Mapping[str, float]]) -> Evolved:
    """Without some concepts, the figures that decided it in the lineage."""
    if not figures:
        return Evolved(dictionary)
    events = [Event(epoch, "removed", id, (), numbers) for id, numbers in figures.items()]
    left = [c for c in dictionary if c.id not in figures]
    return Evolved(dictionary.with_concepts(left, dictionary.lineage.with_events(*events)), dict.fromkeys(figures))


def split(
    dictionary: Dictionary, epoch: float, children: Mapping[int, Sequence[Concept]], figures: Mapping[int, Mapping[str, float]]
) -> Evolved:
    """With some concepts replaced by children, which get ids of their own."""
    if not children:
        return Evolved(dictionary)
    concepts: list[Concept] = []
    events: list[Event] = []
    next_id = dictionary.next_id
    for concept in dictionary:
        if concept.id not in children:
            concepts.append(concept)
            continue
        for child in children[concept.id]:
            concepts.append(replace(child, id=next_id))
            events.append(Event(epoch, "split", next_id, (concept.id,), figures[concept.id]))
            next_id += 1
    lineage = dictionary.lineage.with_events(*events)
    return Evolved(dictionary.with_concepts(concepts, lineage), dict.fromkeys(children))


def merged(dictionary: Dictionary, epoch: float, pairs: Mapping[int, Move], figures: Mapping[int, Mapping[str, float]]) -> Evolved:
    """Without concepts that another one can stand for; their elements become that one's."""
    if not pairs:
        return Evolved(dictionary)
    events = [Event(epoch, "merged", move.concept, (move.concept, id), figures[id]) for id, move in pairs.items()]
    left = [c for c in dictionary if c.id not in pairs]
    return Evolved(dictionary.with_concepts(left, dictionary.lineage.with_events(*events)), dict(pairs))


def born(dictionary: Dictionary, epoch: float, patch: NDArray[np.float32], figures: Mapping[str, float]) -> Dictionary:
    """With one more concept: straight shape channels and alpha (channels + 1, height, width)."""
    id = dictionary.next_id
    return dictionary.with_concepts(
        [*dictionary, to_concept(id, patch)], dictionary.lineage.with_events(Event(epoch, "born", id, (), figures))
    )
