"""How a generated set differs from the built-in one of its name, so that nothing fitted to that one carries over."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields

import numpy as np

from pictolex.errors import InputError
from pictolex.sources.families.base import Bytes

Colour = tuple[int, int, int]

MOST_OBJECTS = 20


@dataclass(frozen=True)
class Variation:
    """What is chosen; None is as built in. `objects` is (least, most) in an image, colours are (red, green, blue) of 0 to 255.

    `inverted`: dark on light. `palette`: of the objects. `cell`: the side of a tetromino's tile in pixels.
    """

    size: int | None = None
    inverted: bool = False
    objects: tuple[int, int] | None = None
    shapes: tuple[str, ...] | None = None
    palette: tuple[Colour, ...] | None = None
    backgrounds: tuple[Colour, ...] | None = None
    cell: int | None = None

    def __post_init__(self) -> None:
        if self.objects is not None and not 1 <= self.objects[0] <= self.objects[1] <= MOST_OBJECTS:
            low, high = self.objects
            raise InputError(f"objects from {low} to {high}; choose 1 to {MOST_OBJECTS} in an image, the smaller number first, e.g. 1-5")
        _check_list("shapes", self.shapes)
        for name, colours in (("palette", self.palette), ("backgrounds", self.backgrounds)):
            _check_list(name, colours)
            if colours and not all(len(rgb) == 3 and 0 <= min(rgb) <= max(rgb) <= 255 for rgb in colours):
                raise InputError(f"{name}: {colours}; colours have a red, green and blue of 0 to 255")

    @property
    def chosen(self) -> tuple[str, ...]:
        """The names of what is not as built in."""
        return tuple(field.name for field in fields(self) if getattr(self, field.name) != field.default)


def colour_table(chosen: tuple[Colour, ...] | None, usual: Bytes) -> Bytes:
    """(count, 3): the colours chosen, or the usual ones."""
    return usual if chosen is None else np.array(chosen, np.uint8)


def _check_list(name: str, values: Sequence[object] | None) -> None:
    """At least one, none twice."""
    if values is None:
        return
    if not values:
        raise InputError(f"{name}: an empty list; name at least one, or leave {name} out")
    doubled = next((value for k, value in enumerate(values) if value in values[:k]), None)
    if doubled is not None:
        raise InputError(f"{name}: {doubled} is there twice; name each once")


AS_BUILT_IN = Variation()
