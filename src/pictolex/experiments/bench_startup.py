"""How long `pictolex --help` takes: the CPU time of the whole program."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator

from pictolex.experiments.bench_base import Order, Row

TRIES = 5


def measure(order: Order) -> Iterator[Row]:
    """The least of some tries; the first one also fills the disk's cache."""
    order.say(f"startup: pictolex --help, {TRIES} times")
    yield Row("startup", "--help", "cpu", min(_cpu_seconds() for _ in range(TRIES)), "s", "lower", floor=0.6, goal=0.4)


def _cpu_seconds() -> float:
    before = os.times()
    subprocess.run([sys.executable, "-m", "pictolex", "--help"], check=True, stdout=subprocess.DEVNULL)
    after = os.times()
    return after.children_user + after.children_system - before.children_user - before.children_system
