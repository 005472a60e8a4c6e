"""What a learning loop tells those who watch it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias


@dataclass(frozen=True)
class LearningProgress:
    """Where learning is. `phase` is "learning", or "elements" for the last pass over the images with the finished dictionary."""

    phase: str
    epoch: int
    epochs: int
    done: int
    """Images seen in this epoch."""
    total: int
    """Images of an epoch."""
    error: float
    """Mean squared error per value, lately."""
    elements: float
    """Elements per image, lately."""
    concepts: int
    seconds_left: float


Callback: TypeAlias = Callable[[LearningProgress], None]
"""Called now and then by the learning loop; KeyboardInterrupt raised by it ends learning as Ctrl-C does."""
