"""Progress: plain lines now and then where there is no terminal, a live bar on one, nothing when quiet."""

import io
import sys
from dataclasses import dataclass

import pytest

from pictolex.cli import progress
from pictolex.cli.progress import Reporter, left
from pictolex.learn.progress import LearningProgress


@dataclass(frozen=True)
class Pass:
    done: int
    total: int = 10
    error: float = 0.01234
    elements: float = 2.5
    seconds_left: float = 7.2


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def shown(monkeypatch: pytest.MonkeyPatch, stderr: io.StringIO, quiet: bool = False) -> str:
    monkeypatch.setattr(sys, "stderr", stderr)
    with Reporter(quiet) as reporter:
        for done in range(1, 11):
            reporter.images(Pass(done))  # type: ignore[arg-type]
    return stderr.getvalue()


def test_plain_lines_are_few_and_tell_error_elements_and_time_left(monkeypatch: pytest.MonkeyPatch) -> None:
    lines = shown(monkeypatch, io.StringIO()).splitlines()
    assert lines == [f"images {done}/10, error 0.0123, 2.50 elements, 7 s left" for done in (1, 10)]


def test_plain_lines_keep_coming(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(progress, "BETWEEN_LINES", 0.0)
    assert len(shown(monkeypatch, io.StringIO()).splitlines()) == 10


def test_a_terminal_gets_a_live_bar(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TERM", "xterm")
    text = shown(monkeypatch, Terminal())
    assert "images 10/10" in text and "\x1b[" in text


def test_quiet_is_quiet(monkeypatch: pytest.MonkeyPatch) -> None:
    assert shown(monkeypatch, io.StringIO(), quiet=True) == shown(monkeypatch, Terminal(), quiet=True) == ""


def test_learning_tells_epoch_and_concepts(monkeypatch: pytest.MonkeyPatch) -> None:
    stderr = io.StringIO()
    monkeypatch.setattr(sys, "stderr", stderr)
    with Reporter() as reporter:
        reporter.learning(LearningProgress("learning", 2, 5, 30, 100, 0.02, 2.9, 17, 130.0))
    assert stderr.getvalue() == "epoch 2/5, 30/100, error 0.02, 2.90 elements, 17 concepts, 2 min 10 s left\n"


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (0.4, ", 0 s left"),
        (99, ", 99 s left"),
        (100, ", 1 min 40 s left"),
        (7380, ", 2 h 3 min left"),
        (float("inf"), ""),
        (float("nan"), ""),
    ],
)
def test_time_left(seconds: float, text: str) -> None:
    assert left(seconds) == text
