"""The elements of one image."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from pictolex.errors import InputError
from pictolex.model.element import Element


class Painter(Protocol):
    """Draws decompositions: knows their dictionary."""

    def image(self, decomposition: Decomposition) -> NDArray[np.float32]:
        """The rebuilt image (height, width, channels)."""
        ...

    def layers(self, decomposition: Decomposition) -> NDArray[np.float32]:
        """Straight colour and alpha of every element (elements, height, width, channels + 1), front to back."""
        ...


@dataclass(frozen=True, repr=False)
class Decomposition:
    """One image as elements, front to back.

    `index`: the image's place in its source. `error`: the sum of squared errors of the rebuilt image; NaN where unknown.
    `background`: its plain colour (1 or 3 channels) where each image has one of its own, else None.
    """

    name: str
    index: int
    height: int
    width: int
    elements: tuple[Element, ...]
    error: float
    background: tuple[float, ...] | None = None
    painter: Painter | None = field(default=None, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "elements", tuple(self.elements))
        if self.index < 0:
            raise InputError(f"{self._what}: its index must be 0 or more, got {self.index!r}")
        if self.height < 1 or self.width < 1:
            raise InputError(f"{self._what}: its height and width must be 1 or more, got {self.height!r} and {self.width!r}")
        depths = [element.depth for element in self.elements]
        if any(behind <= front for front, behind in pairwise(depths)):
            raise InputError(f"{self._what}: depths must grow from front to back, got {depths[:8]}; with_elements() numbers them")
        if self.background is not None:
            object.__setattr__(self, "background", tuple(float(value) for value in self.background))
            if len(self.background) not in (1, 3):
                raise InputError(f"{self._what}: its background must have 1 or 3 channels, got {self.background!r}")

    @property
    def _what(self) -> str:
        return f"image {self.index}" + (f" ({self.name})" if self.name else "")

    def __len__(self) -> int:
        return len(self.elements)

    def __iter__(self) -> Iterator[Element]:
        return iter(self.elements)

    def __getitem__(self, place: int) -> Element:
        return self.elements[place]

    def with_elements(self, elements: Iterable[Element], error: float = float("nan")) -> Decomposition:
        """The same image with other elements, given front to back; their depths are numbered from 0."""
        numbered = tuple(replace(element, depth=depth) for depth, element in enumerate(elements))
        return replace(self, elements=numbered, error=error)

    def render(self) -> NDArray[np.float32]:
        """The image rebuilt from its elements (height, width, channels)."""
        return self._painter.image(self)

    def layers(self) -> NDArray[np.float32]:
        """Straight colour and alpha of every element on the image's canvas (elements, height, width, channels + 1), front to back."""
        return self._painter.layers(self)

    @property
    def _painter(self) -> Painter:
        if self.painter is None:
            raise InputError(f"{self._what}: its dictionary is not known here, so it cannot be drawn; use run.render(decomposition)")
        return self.painter

    def __repr__(self) -> str:
        count = f"{len(self)} element{'' if len(self) == 1 else 's'}"
        return f"Decomposition({self._what}, {self.height}x{self.width}, {count}, error {self.error:.4g})"
