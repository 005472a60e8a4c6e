"""Our evolution: everything is kept that saves more squared error than it costs, and nothing else.

An element costs its price; a concept costs `worth` elements' prices in all. So a concept whose elements save less goes; two that
can stand for each other for less than half a price an element are one; one whose elements fall into two kinds that would each fit
better by as much is two; and what recurs in what is left over becomes a concept, if a trial shows that it pays.
"""

from __future__ import annotations

import numpy as np
import torch
from numpy.typing import NDArray

from pictolex.decompose import Engine
from pictolex.learn.evolution.base import Evolved, Surroundings, born, merged, removed, split
from pictolex.learn.evolution.census import rendered, take_census
from pictolex.learn.evolution.pose import cut_anew, posed
from pictolex.learn.evolution.twins import halves, stand_in
from pictolex.learn.kept import Kept, Move
from pictolex.learn.likeness import Turns, recurring, turnable, upright
from pictolex.learn.pieces import Piece, cut, threshold
from pictolex.learn.start import kind_patch, one_colour
from pictolex.learn.survey import Look, stack
from pictolex.model import Concept, Dictionary
from pictolex.settings import PaysEvolution

TOLERANCE = 0.5
"""Prices an element may lose when its concept is replaced by another, and must win when it is split."""
LEFT = 64
"""Images, those that cost most, whose left-over is looked at for new concepts."""
TRIAL = 24
"""Images on which a new concept has to prove itself."""
BIRTHS = 3
"""New concepts that are tried in one evolution."""
PLAIN = 0.25
"""A pixel this far from what it was rebuilt as is left over."""


class PaysPolicy:
    """Removes, merges, splits, adds, and cuts patches anew around what they show."""

    def __init__(self, around: Surroundings, setting: PaysEvolution) -> None:
        self.around = around
        self.setting = setting
        self.price = max(around.settings.price, 1e-6)

    @property
    def worth(self) -> float:
        """What a concept costs."""
        return self.setting.worth * self.price

    def evolve(self, epoch: int, dictionary: Dictionary, kept: Kept) -> Evolved:
        """All operations in turn; nothing new in the last epoch, as it could not be learned any more."""
        if epoch % self.setting.every:
            return Evolved(dictionary)
        last = epoch >= self.around.settings.learning.epochs
        found = self._remove(epoch, Evolved(dictionary), kept)
        found = self._merge(epoch, found, kept)
        touched = set(found.moves) | {move.concept for move in found.moves.values() if move is not None}
        if not last:
            found = self._split(epoch, found, kept, touched)
            found = self._add(epoch, found, kept)
        return self._shown_well(found, kept, last)

    def _remove(self, epoch: int, found: Evolved, kept: Kept) -> Evolved:
        """Concepts whose elements save too little; the best stays whatever it saves."""
        census = take_census(self.around, found.dictionary, kept)
        best = max(found.dictionary.ids, key=lambda id: census.members[id].gain)
        poor = {
            id: {"uses": float(m.uses), "saves": m.gain, "costs": self.worth + self.price * m.uses}
            for id, m in census.members.items()
            if m.gain < self.worth + self.price * m.uses and id != best and id not in self.around.frozen
        }
        done = removed(found.dictionary, epoch, poor)
        return found.then(done.dictionary, done.moves)

    def _merge(self, epoch: int, found: Evolved, kept: Kept) -> Evolved:
        """Concepts that a more frequent one can stand for."""
        uses = kept.uses()
        order = sorted(found.dictionary.ids, key=lambda id: -uses.get(id, 0))
        pairs: dict[int, Move] = {}
        figures: dict[int, dict[str, float]] = {}
        for k, id in enumerate(order):
            if id in self.around.frozen:
                continue
            for other in order[:k]:
                if other in pairs:
                    continue
                stood = stand_in(found.dictionary[other], found.dictionary[id], self.around.settings.placement)
                if stood is not None and stood.cost < TOLERANCE * self.price:
                    pairs[id] = Move(other, stood.x, stood.y, stood.rotation, stood.log_scale)
                    figures[id] = {"uses": float(uses.get(id, 0)), "loses_each": stood.cost, "allowed": TOLERANCE * self.price}
                    break
        done = merged(found.dictionary, epoch, pairs, figures)
        return found.then(done.dictionary, done.moves)

    def _split(self, epoch: int, found: Evolved, kept: Kept, touched: set[int]) -> Evolved:
        """Concepts whose elements are of two kinds."""
        room = self.around.settings.learning.concepts - len(found.dictionary)
        children: dict[int, tuple[Concept, Concept]] = {}
        figures: dict[int, dict[str, float]] = {}
        for concept in found.dictionary:
            if room <= len(children) or concept.id in touched or concept.id in self.around.frozen:
                continue
            two = halves(self.around, found.dictionary, concept, kept)
            if two is not None and two.saves > TOLERANCE * self.price * two.uses + self.worth:
                children[concept.id] = two.children
                figures[concept.id] = {"uses": float(two.uses), "saves": two.saves, "costs": TOLERANCE * self.price * two.uses + self.worth}
        done = split(found.dictionary, epoch, children, figures)
        return found.then(done.dictionary, done.moves)

    def _add(self, epoch: int, found: Evolved, kept: Kept) -> Evolved:
        """What recurs in the left-over, if it pays on trial."""
        room = min(BIRTHS, self.around.settings.learning.concepts - len(found.dictionary))
        known = (~kept.energy.isnan()).nonzero()[:, 0]
        if room <= 0 or not len(known):
            return found
        worst = known[kept.energy[known].argsort(descending=True)[:LEFT]].tolist()
        engine = self.around.engine(found.dictionary)
        pieces = self._left_over(engine, kept, sorted(worst))
        dictionary = found.dictionary
        for patch, images in self._candidates(pieces)[:room]:
            tried = born(dictionary, epoch, patch, {})
            chosen = list(dict.fromkeys([*images, *worst]))[:TRIAL]
            saves, share = self._trial(dictionary, tried, chosen)
            expected = saves / max(1, len(chosen)) * len(worst)
            if saves > self.worth:
                figures = {"saves": saves, "costs": self.worth, "images": float(len(chosen)), "expected": expected, "share": share}
                dictionary = born(dictionary, epoch, patch, figures)
        if dictionary is found.dictionary:
            return found
        kept.stale[torch.tensor(worst)] = True
        return found.then(dictionary, {})

    def _left_over(self, engine: Engine, kept: Kept, index: list[int]) -> list[Piece]:
        """Pieces of images where they differ from what they were rebuilt as; `image` is the index in the source."""
        coloured = one_colour(self.around.settings)
        pieces: list[Piece] = []
        for number in index:
            for problem, _, layers in rendered(self.around, engine, kept, [number]):
                stage = engine.ready(problem.image.shape[1])[0]
                made = stage.formation.render(layers, problem.background)[0].cpu()
                image = problem.image[0].cpu()
                seen = max(threshold([image]), PLAIN)
                pieces += [p for p in cut(image, made, number, seen, coloured and image.shape[0] > 1) if p.whole]
        return pieces

    def _candidates(self, pieces: list[Piece]) -> list[tuple[NDArray[np.float32], list[int]]]:
        """Patches of pieces that recur, and the images they are in."""
        place, learning = self.around.settings.placement, self.around.settings.learning
        if len(pieces) < 3:
            return []
        luminance = not learning.colour_shapes
        coloured = one_colour(self.around.settings) and len(pieces[0].colour) > 1
        stacks = [stack(p, coloured) for p in pieces]
        likeness = (turnable if place.rotations > 1 or len(place.scales) > 1 else upright)(stacks)
        kinds = recurring(likeness, BIRTHS, 2.0)
        look = Look(pieces, kinds, Turns(place.rotations > 1, False, (min(place.scales), 1.0)), likeness, coloured)
        zoom = 1 / max(place.scales)
        patches = [
            (kind_patch(look, kind, learning.concept_size, zoom), [pieces[i].image for i in kind.members.tolist()]) for kind in kinds
        ]
        return [(np.concatenate([p[:-1].max(0, keepdims=True), p[-1:]]) if luminance else p, images) for p, images in patches]

    def _trial(self, before: Dictionary, after: Dictionary, index: list[int]) -> tuple[float, float]:
        """What a dictionary saves over another on some images, prices paid; and the share of images that use its last concept."""
        costs: list[float] = []
        using = 0.0
        for dictionary in (before, after):
            engine = self.around.engine(dictionary)
            total = 0.0
            for batch in self.around.read(index, engine):
                for found in engine.solve(batch):
                    total += found.error + self.price * len(found)
                    using += any(e.concept == after.ids[-1] for e in found)
            costs.append(total)
        return costs[0] - costs[1], using / max(1, len(index))

    def _shown_well(self, found: Evolved, kept: Kept, last: bool) -> Evolved:
        """Patches upright, as large as their largest elements, and cut around what they show; their elements follow."""
        concepts: list[Concept] = []
        moves: dict[int, Move | None] = {}
        for concept in found.dictionary:
            move = Move(concept.id)
            if concept.id not in self.around.frozen and not concept.is_voxel:
                if not last:
                    concept, move = posed(concept, kept, self.around.settings.placement)
                concept, move = cut_anew(concept, move, self.around.settings.learning.concept_size)
            concepts.append(concept)
            if move != Move(concept.id):
                moves[concept.id] = move
        if not moves:
            return found
        # Elements that a merger has handed on move with the concept they are now of.
        handed = {id: move if move is None else move.then(moves.get(move.concept)) for id, move in found.moves.items()}
        return Evolved(found.dictionary.with_concepts(concepts), {**handed, **moves}, True)
