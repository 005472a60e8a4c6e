"""`pictolex bench`: every figure that the project promises, measured by one command."""

from __future__ import annotations

import difflib
from collections.abc import Callable, Iterator
from importlib import import_module

from pictolex.errors import InputError, SettingError
from pictolex.experiments.bench_base import Order, Row

__all__ = ["BENCHMARKS", "Order", "Row", "run_bench"]

_ROOM = "pictolex.experiments"
BENCHMARKS = {
    "startup": "bench_startup",
    "search": "bench_search",
    "speed": "bench_speed",
    "agreement": "bench_agreement",
    "quality": "bench_quality",
    "memory": "bench_memory",
}
"""The module of each benchmark; its function `measure(order)` yields rows."""


def run_bench(
    name: str | None = None,
    *,
    report: Callable[[Row], None] = lambda row: None,
    say: Callable[[str], None] = lambda text: None,
    device: str = "auto",
    images: int | None = None,
) -> list[Row]:
    """Measure one benchmark, or all; rows are reported as they come.

    `device`: `auto` is the CPU and, where there is one, the GPU as well. `images`: use at most so many a measurement.
    """
    chosen = tuple(BENCHMARKS) if name is None else (_known(name),)
    if images is not None and images < 1:
        raise SettingError(f"--images {images}; give 1 or more, or leave it out")
    order = Order(_devices(device), images, say)
    rows: list[Row] = []
    for one in chosen:
        measure: Callable[[Order], Iterator[Row]] = import_module(f"{_ROOM}.{BENCHMARKS[one]}").measure
        for row in measure(order):
            rows.append(row)
            report(row)
    return rows


def _known(name: str) -> str:
    if name in BENCHMARKS:
        return name
    near = difflib.get_close_matches(name, BENCHMARKS, n=1, cutoff=0.5)
    hint = f"did you mean {near[0]}?" if near else f"the benchmarks are {', '.join(BENCHMARKS)}"
    raise InputError(f"unknown benchmark {name!r}: {hint}")


def _devices(name: str) -> tuple[str, ...]:
    from pictolex.decompose.device import choose_device

    if name != "auto":
        return (str(choose_device(name)),)
    best = str(choose_device("auto"))
    return ("cpu",) if best == "cpu" else ("cpu", best)
