"""Arrays that stay as they were given: read-only copies, checked on the way in."""

from __future__ import annotations

import operator
from typing import Any, TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from pictolex.errors import InputError

Scalar = TypeVar("Scalar", bound=np.generic)

ROUNDING = 1e-5
"""How far a value may lie beyond [0, 1] and still count as rounding."""


def unit_array(values: ArrayLike, what: str) -> NDArray[np.float32]:
    """A read-only float32 copy of `values`, which must be in [0, 1]; rounding beyond the ends is clipped."""
    try:
        array = np.array(values, dtype=np.float32)
    except (TypeError, ValueError, RuntimeError) as error:
        raise InputError(f"{what} must be an array of numbers: {error}") from error
    if array.size:
        low, high = float(array.min()), float(array.max())
        if not (np.isfinite(low) and np.isfinite(high)):
            raise InputError(f"{what} holds NaN or infinite values; give finite values in [0, 1]")
        if low < -ROUNDING or high > 1 + ROUNDING:
            hint = "; divide by 255" if low >= 0 and 1 < high <= 255 and high == round(high) else ""
            raise InputError(f"{what} must have values in [0, 1], found {low:g} to {high:g}{hint}")
    return read_only(np.clip(array, 0.0, 1.0, out=array))


def read_only(array: NDArray[Scalar]) -> NDArray[Scalar]:
    """The same array, locked against writing."""
    array.flags.writeable = False
    return array


def whole(value: Any, what: str) -> int:
    """`value` as a Python int of 0 or more."""
    try:
        number = operator.index(value)
    except TypeError:
        number = -1
    if isinstance(value, bool) or number < 0:
        raise InputError(f"{what} must be a whole number of 0 or more, got {value!r}")
    return number
