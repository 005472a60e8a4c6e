"""Progress on stderr: a live line on a terminal, plain lines now and then elsewhere, nothing when quiet."""

from __future__ import annotations

import math
import sys
import time
from types import TracebackType
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from pictolex.decompose import Progress
    from pictolex.learn.progress import LearningProgress

BETWEEN_LINES = 5.0
"""Seconds between plain lines."""


class _Display(Protocol):
    def show(self, text: str, done: float, total: float) -> None: ...

    def close(self) -> None: ...


class Reporter:
    """Shows where a long work is; use it as a context manager, so that the terminal is left as it was."""

    def __init__(self, quiet: bool = False) -> None:
        self._display: _Display = _Silent() if quiet else _Live() if sys.stderr.isatty() else _Lines()

    def __enter__(self) -> Reporter:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self._display.close()

    def images(self, progress: Progress) -> None:
        """A pass over images."""
        text = f"images {progress.done}/{progress.total}{figures(progress.error, progress.elements)}{left(progress.seconds_left)}"
        self._display.show(text, progress.done, progress.total)

    def learning(self, progress: LearningProgress) -> None:
        """Epochs of learning, then the last pass."""
        where = f"epoch {progress.epoch}/{progress.epochs}, " if progress.phase == "learning" else f"{progress.phase}, "
        text = f"{where}{progress.done}/{progress.total}{figures(progress.error, progress.elements)}"
        text += f", {progress.concepts} concepts{left(progress.seconds_left)}"
        before = max(0, progress.epoch - 1) if progress.phase == "learning" else progress.epochs
        self._display.show(text, before * progress.total + progress.done, (progress.epochs + 1) * progress.total)


def figures(error: float, elements: float) -> str:
    """Error and elements so far."""
    return f", error {error:.3g}, {elements:.2f} elements" if math.isfinite(error) else ""


def left(seconds: float) -> str:
    """The time left, as people say it."""
    if not math.isfinite(seconds):
        return ""
    whole = round(seconds)
    if whole < 100:
        return f", {whole} s left"
    hours, rest = divmod(whole, 3600)
    return f", {hours} h {rest // 60} min left" if hours else f", {rest // 60} min {rest % 60} s left"


class _Silent:
    def show(self, text: str, done: float, total: float) -> None:
        """Nothing."""

    def close(self) -> None:
        """Nothing."""


class _Lines:
    """The first state, then one every few seconds, and the last."""

    def __init__(self) -> None:
        self._last = -math.inf
        self._pending = ""

    def show(self, text: str, done: float, total: float) -> None:
        now = time.monotonic()
        self._pending = text
        if now - self._last >= BETWEEN_LINES:
            self._print(now)

    def _print(self, now: float) -> None:
        print(self._pending, file=sys.stderr, flush=True)
        self._last, self._pending = now, ""

    def close(self) -> None:
        if self._pending:
            self._print(time.monotonic())


class _Live:
    """A bar that is drawn over itself."""

    def __init__(self) -> None:
        from rich.console import Console
        from rich.progress import BarColumn, Progress, TextColumn

        self._bar = Progress(BarColumn(bar_width=24), TextColumn("{task.description}"), console=Console(stderr=True))
        self._task = self._bar.add_task("", total=1.0)
        self._bar.start()

    def show(self, text: str, done: float, total: float) -> None:
        self._bar.update(self._task, description=text, completed=done, total=max(total, 1.0))

    def close(self) -> None:
        self._bar.stop()
