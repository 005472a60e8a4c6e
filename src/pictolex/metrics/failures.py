"""The share of images that the search got wrong: where the polished truth costs less than what was found."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from pictolex.errors import InputError

Values = Sequence[float] | NDArray[np.floating]


def search_failure_rate(found: Values, truth: Values, slack: float = 1e-6) -> float | None:
    """Share of images whose energy from the truth is below the energy found by more than a relative slack; None for no images.

    Energy = squared error + price per element; `truth` starts from the true elements and is polished as `found` was.
    """
    first, second = np.asarray(found, np.float64), np.asarray(truth, np.float64)
    if first.shape != second.shape or first.ndim != 1:
        raise InputError(f"energies of shapes {first.shape} and {second.shape}; expected one of each an image")
    if first.size == 0:
        return None
    return float((second < first - slack * np.maximum(1, np.abs(first))).mean())
