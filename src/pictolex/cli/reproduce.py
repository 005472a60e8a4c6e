"""`pictolex reproduce`: one experiment of the paper, its figures beside the published ones."""

from __future__ import annotations

from collections import Counter
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from cyclopts import Parameter

from pictolex.cli.common import seconds, tell, write_json
from pictolex.cli.progress import Reporter, left
from pictolex.errors import InputError

if TYPE_CHECKING:
    from pictolex.api import Learned
    from pictolex.experiments.reproduce_base import Step
    from pictolex.model import Collection
    from pictolex.sources import Source

SHOWN = 8
"""Images taken apart in a seed's picture."""


def command(
    name: str,
    /,
    *,
    out: Annotated[str, Parameter(name=["--out", "-o"])] = "reproduced",
    seeds: str = "0,1,2",
    presets: str | None = None,
    budget: str | None = None,
    learn_budget: str | None = None,
    images: int | None = None,
    device: str = "auto",
    json: bool = False,
    quiet: Annotated[bool, Parameter(name=["--quiet", "-q"])] = False,
) -> None:
    """Run one experiment of the paper, and put its figures beside the published ones. Prints a table.

    Seeds that are finished are kept and not run again: the same command goes on where it was stopped.

    Parameters
    ----------
    name
        tetrominoes, dsprites-bin, dsprites-adv, dsprites-color or pattern.
    out
        The folder for runs, pictures, results and NAME/table.md.
    seeds
        Which seeds to run.
    presets
        Which presets to learn with; without it the set's own one and auto. The paper's settings: paper-NAME.
    budget
        The most time for all, 90s, 5m, 1h; what does not fit is left for the next call.
    learn_budget
        The most time to learn a seed.
    images
        Learn from at most so many images, and measure on at most so many, to be done sooner.
    device
        auto, cpu, cuda or cuda:0.
    json
        As one JSON object.
    quiet
        No progress.
    """
    wanted = _numbers(seeds)
    recipes = None if presets is None else tuple(part.strip() for part in presets.split(",") if part.strip())
    most, each = (None if text is None else seconds(text) for text in (budget, learn_budget))
    from pictolex.experiments.reproduce import Order, Watch, run_experiment, table

    def step(told: Step) -> None:
        tell(f"{told.title} ({told.number} of {told.total}){left(told.seconds_left)}", quiet)

    with Reporter(quiet) as reporter:
        watch = Watch(step, lambda text: tell(text, quiet), reporter.learning, reporter.images, draw)
        order = Order(Path(out), images, device, each, watch)
        try:
            report = run_experiment(name, order, seeds=wanted, presets=recipes, budget=most)
        except KeyboardInterrupt:
            tell(f"finished seeds are kept in {Path(out) / name}; the same command goes on from there", quiet)
            raise
    if json:
        write_json(asdict(report))
    else:
        print(table(report), end="")


def _numbers(text: str) -> tuple[int, ...]:
    try:
        return tuple(int(part) for part in text.split(",") if part.strip())
    except ValueError:
        raise InputError(f"--seeds {text!r}: not whole numbers; write 0,1,2") from None


def draw(learned: Learned, collection: Collection, images: Source, folder: Path) -> None:
    """dictionary.png, every concept with its use, and layers.png, some of the measured images taken apart."""
    from pictolex.cli.show import explain
    from pictolex.pictures import dictionary_sheet, layers_picture, save_png

    usage = Counter(collection.columns["concept"].tolist())
    save_png(dictionary_sheet(learned.dictionary, usage), folder / "dictionary.png")
    save_png(layers_picture(explain(learned, collection[:SHOWN], images)), folder / "layers.png")
