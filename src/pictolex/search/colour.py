"""How an element's colour is found: fixed, one of a set of hues, or free (in closed form)."""

from __future__ import annotations

from abc import ABC, abstractmethod

import torch
from torch import Tensor

from pictolex.formation import Form, Forms


class Colour(ABC):
    """Turns forms (polynomials in the colour) into what is correlated, and correlations into gains for the colours to choose from."""

    @abstractmethod
    def split(self, forms: Forms) -> list[Form]:
        """The single forms to correlate."""

    @abstractmethod
    def evaluate(self, gains: Tensor, inners: Tensor | None) -> tuple[Tensor, Tensor | None]:
        """Gain, and inner product where given, for each colour that may be chosen: (colours, ...) from (forms, ...)."""

    @abstractmethod
    def colours(self, gains: Tensor, choice: Tensor) -> Tensor:
        """The colours (..., channels) that were chosen, from the same correlations (forms, ...) and the index chosen (...)."""

    def hues(self, choice: Tensor) -> Tensor:
        """The hue index of each choice; -1 where colours are not from a set."""
        return torch.full_like(choice, -1)

    def renewed(self, hue: Tensor, colour: Tensor) -> Tensor:
        """The colours (..., channels) of earlier elements as they are by now; `hue` (...) is the index each had."""
        return colour


class Fixed(Colour):
    """Concepts show their own colours."""

    def __init__(self, channels: int) -> None:
        self.channels = channels

    def split(self, forms: Forms) -> list[Form]:
        """One form: the polynomial at unit colour."""
        return [forms.at((1.0,) * self.channels)]

    def evaluate(self, gains: Tensor, inners: Tensor | None) -> tuple[Tensor, Tensor | None]:
        """As they are."""
        return gains, inners

    def colours(self, gains: Tensor, choice: Tensor) -> Tensor:
        """Ones."""
        return torch.ones(*choice.shape, self.channels, device=choice.device)


class HueSet(Colour):
    """One of the dictionary's hues (hues, channels): a matrix product over the forms."""

    def __init__(self, hues: Tensor) -> None:
        self.table = hues

    def split(self, forms: Forms) -> list[Form]:
        """Linear, square, rest."""
        return [*forms.linear, *forms.square, forms.rest]

    def _weights(self, count: int) -> Tensor:
        channels = self.table.shape[1]
        squares = self.table.square()
        middle = count - channels - 1
        if middle == 0:
            parts = [self.table]
        elif middle == 1:
            parts = [self.table, squares.sum(1, keepdim=True)]
        else:
            parts = [self.table, squares]
        return torch.cat([*parts, torch.ones_like(self.table[:, :1])], dim=1)

    def evaluate(self, gains: Tensor, inners: Tensor | None) -> tuple[Tensor, Tensor | None]:
        """Every hue at once."""
        return self._all(gains), None if inners is None else self._all(inners)

    def _all(self, outputs: Tensor) -> Tensor:
        return (self._weights(outputs.shape[0]) @ outputs.flatten(1)).view(-1, *outputs.shape[1:])

    def colours(self, gains: Tensor, choice: Tensor) -> Tensor:
        """Looked up."""
        return self.table[choice]

    def hues(self, choice: Tensor) -> Tensor:
        """The choice is the hue."""
        return choice

    def renewed(self, hue: Tensor, colour: Tensor) -> Tensor:
        """Looked up again."""
        return torch.where((hue >= 0).unsqueeze(-1), self.table[hue.clamp(0, len(self.table) - 1)], colour)


class Free(Colour):
    """The best colour in closed form: `h_k = -L_k / 2 S_k`, clipped to [0, 1]."""

    def __init__(self, channels: int) -> None:
        self.channels = channels

    def split(self, forms: Forms) -> list[Form]:
        """Linear, square, rest."""
        return [*forms.linear, *forms.square, forms.rest]

    def _best(self, gains: Tensor) -> Tensor:
        linear, square = gains[: self.channels], gains[self.channels : -1]
        return (linear / (-2 * square).clamp_min(1e-9)).clamp(0, 1)

    def evaluate(self, gains: Tensor, inners: Tensor | None) -> tuple[Tensor, Tensor | None]:
        """The polynomials at the best colour."""
        best = self._best(gains)
        gain = (best * gains[: self.channels]).sum(0) + (best.square() * gains[self.channels : -1]).sum(0) + gains[-1]
        inner = None if inners is None else (best * inners[: self.channels]).sum(0) + inners[-1]
        return gain.unsqueeze(0), None if inner is None else inner.unsqueeze(0)

    def colours(self, gains: Tensor, choice: Tensor) -> Tensor:
        """The closed form once more."""
        return self._best(gains).movedim(0, -1)
