"""`pictolex bench`: speed, memory and quality beside references."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated

from cyclopts import Parameter

from pictolex.cli.common import tell, write_json

if TYPE_CHECKING:
    from pictolex.experiments.bench import Row


def command(
    name: str | None = None,
    /,
    *,
    device: str = "auto",
    images: int | None = None,
    json: bool = False,
    quiet: Annotated[bool, Parameter(name=["--quiet", "-q"])] = False,
) -> None:
    """Measure speed, memory and quality beside references.

    Parameters
    ----------
    name
        One benchmark: startup, search, speed, agreement, quality, memory. Without it all of them.
    device
        auto (the CPU and, where there is one, the GPU too), cpu, cuda or cuda:0.
    images
        Use at most so many images in each measurement, to be done sooner.
    json
        As one JSON object with a list of rows.
    quiet
        No progress.
    """
    from pictolex.experiments.bench import run_bench

    def told(row: Row) -> None:
        if not json:
            print(_line(row), flush=True)

    rows = run_bench(name, report=told, say=lambda text: tell(text, quiet), device=device, images=images)
    if json:
        write_json({"rows": [asdict(row) for row in rows]})


def _line(row: Row) -> str:
    """One row for people: the value, and what it is measured against."""
    parts = [f"{row.name:<28} {row.setting:<14} {row.device:<6} {row.value:>10.4g} {row.unit}"]
    beside = {
        "reference": row.reference,
        "ratio": row.ratio,
        "at least" if row.better == "higher" else "at most": row.floor,
        "goal": row.goal,
    }
    return ", ".join([*parts, *(f"{label} {value:.4g}" for label, value in beside.items() if value is not None)])
