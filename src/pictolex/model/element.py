"""One placed, transformed concept."""

from __future__ import annotations

import math
from dataclasses import KW_ONLY, dataclass, fields

from pictolex.errors import InputError


@dataclass(frozen=True)
class Element:
    """Where and how a concept appears in an image.

    `x, y`: the concept's centre in pixels from the image's top left corner, y down, pixel centres at .5.
    `rotation`: radians, counter-clockwise as seen; `mirror` (left-right) comes before it.
    `hue`: index into the dictionary's hues, -1 for none; `red, green, blue`: the colour that the shape is multiplied with.
    `depth`: 0 = front. `gain`: squared error saved. `visible`: pixels of it that are seen. `z`: voxel scenes only.
    `confidence`: 0 to 1.
    """

    concept: int
    x: float
    y: float
    _: KW_ONLY
    rotation: float = 0.0
    scale: float = 1.0
    mirror: bool = False
    hue: int = -1
    red: float = 1.0
    green: float = 1.0
    blue: float = 1.0
    depth: int = 0
    gain: float = 0.0
    visible: float = 0.0
    z: float | None = None
    confidence: float = 1.0

    def __post_init__(self) -> None:
        for name in _FLOATS:
            value = getattr(self, name)
            if value is not None and not math.isfinite(value):
                raise InputError(f"an element's {name} must be a finite number, got {value!r}")
        for name, low in (("concept", 0), ("hue", -1), ("depth", 0)):
            if getattr(self, name) < low:
                raise InputError(f"an element's {name} must be {low} or more, got {getattr(self, name)!r}")
        if self.scale <= 0:
            raise InputError(f"an element's scale must be above 0, got {self.scale!r}")
        if not 0 <= self.confidence <= 1:
            raise InputError(f"an element's confidence must be from 0 to 1, got {self.confidence!r}")

    @property
    def colour(self) -> tuple[float, float, float]:
        """Red, green and blue."""
        return self.red, self.green, self.blue


_FLOATS = tuple(field.name for field in fields(Element) if "float" in str(field.type))
