"""The paper's evolution: a concept used less than a share of what would be fair is removed; one used more that fits badly is split."""

from __future__ import annotations

import math

from pictolex.learn.evolution.base import Evolved, Surroundings, removed, split
from pictolex.learn.evolution.census import Census, take_census
from pictolex.learn.kept import Kept
from pictolex.model import Dictionary
from pictolex.settings import PaperEvolution


class PaperPolicy:
    """`N_j` uses of concept j, n elements an image, |I| images, m concepts: the fair part is `n |I| / m`.

    Removed where `N_j < 0.25 n |I| / m`; split into two equal children where `N_j > 0.25 n |I| / m` and the mean correlation
    under its visible alpha is below 0.95. The background counts neither in m nor in n. The last epoch evolves nothing: children
    need an epoch to become different.
    """

    def __init__(self, around: Surroundings, setting: PaperEvolution) -> None:
        self.around = around
        self.setting = setting

    def evolve(self, epoch: int, dictionary: Dictionary, kept: Kept) -> Evolved:
        """Remove, then split as far as the largest number of concepts allows, the worst first."""
        learning = self.around.settings.learning
        if epoch % self.setting.every or epoch >= learning.epochs:
            return Evolved(dictionary)
        census = take_census(self.around, dictionary, kept)
        threshold = self.setting.often * self.around.settings.layers * census.images / max(1, len(dictionary))
        rare = self._rare(dictionary, census, threshold)
        without = removed(dictionary, epoch, {id: self._figures(census, id, threshold) for id in rare})
        found = Evolved(dictionary).then(without.dictionary, without.moves)
        room = learning.concepts - len(found.dictionary)
        poor = [
            id
            for id in found.dictionary.ids
            if census.members[id].uses > threshold and census.members[id].quality < self.setting.quality and id not in self.around.frozen
        ]
        poor = sorted(poor, key=lambda id: census.members[id].quality)[: max(0, room)]
        children = {id: (found.dictionary[id],) * 2 for id in poor}
        grown = split(found.dictionary, epoch, children, {id: self._figures(census, id, threshold) for id in poor})
        return found.then(grown.dictionary, grown.moves)

    def _rare(self, dictionary: Dictionary, census: Census, threshold: float) -> list[int]:
        """Those to remove; one stays whatever its use."""
        rare = [id for id in dictionary.ids if census.members[id].uses < threshold and id not in self.around.frozen]
        return rare if len(rare) < len(dictionary) else sorted(rare, key=lambda id: census.members[id].uses)[:-1]

    def _figures(self, census: Census, id: int, threshold: float) -> dict[str, float]:
        member = census.members[id]
        quality = {"quality": member.quality} if math.isfinite(member.quality) else {}
        return {"uses": member.uses, "threshold": threshold, **quality}
