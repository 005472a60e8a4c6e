"""`pictolex ablate`: variants of one choice, measured side by side."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from cyclopts import Parameter

from pictolex.cli.common import seconds, tell, write_json
from pictolex.cli.progress import Reporter, left
from pictolex.errors import InputError

if TYPE_CHECKING:
    from pictolex.experiments.reproduce_base import Step


def command(
    name: str,
    /,
    *,
    out: Annotated[str, Parameter(name=["--out", "-o"])] = "ablated",
    images: int | None = None,
    seeds: str = "0",
    budget: str | None = None,
    device: str = "auto",
    json: bool = False,
    quiet: Annotated[bool, Parameter(name=["--quiet", "-q"])] = False,
) -> None:
    """Measure what one choice does: its variants side by side, on the same images. Prints a table.

    What is finished is kept and not run again: the same command goes on where it was stopped.

    Parameters
    ----------
    name
        evolution, optimizers, rounds, shuffling, strategy, objective, data or sizes.
    out
        The folder for NAME/table.md, NAME/table.json, results and pictures.
    images
        Learn from at most so many images, and measure on at most so many; without it few enough for some minutes.
    seeds
        Which seeds to run, where there is something random.
    budget
        The most time for all, 90s, 5m, 1h; what does not fit is left for the next call.
    device
        auto, cpu, cuda or cuda:0.
    json
        As one JSON object.
    quiet
        No progress.
    """
    wanted = _numbers(seeds)
    most = None if budget is None else seconds(budget)
    from pictolex.experiments.ablate import Order, Watch, known_ablation, run_ablation, table

    def step(told: Step) -> None:
        tell(f"{told.title} ({told.number} of {told.total}){left(told.seconds_left)}", quiet)

    ablation = known_ablation(name)
    with Reporter(quiet) as reporter:
        watch = Watch(step, lambda text: tell(text, quiet), reporter.learning, reporter.images)
        try:
            report = run_ablation(ablation, Order(Path(out), images, device, watch), seeds=wanted, budget=most)
        except KeyboardInterrupt:
            tell(f"what is finished is kept in {Path(out) / name}; the same command goes on from there", quiet)
            raise
    if json:
        write_json(asdict(report))
    else:
        print(table(ablation, report), end="")


def _numbers(text: str) -> tuple[int, ...]:
    try:
        return tuple(int(part) for part in text.split(",") if part.strip())
    except ValueError:
        raise InputError(f"--seeds {text!r}: not whole numbers; write 0,1,2") from None
