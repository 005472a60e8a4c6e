"""One seed of an experiment: learn, measure, draw, keep; or what was kept of it before."""

from __future__ import annotations

import math
import os
import platform
import time
from collections.abc import Callable, Mapping
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from pictolex import __version__
from pictolex.errors import FormatError
from pictolex.experiments.reproduce_base import Case, Order, Result, Task
from pictolex.experiments.reproduce_published import SECONDS
from pictolex.model.files import Format, atomic, checksum, fitting, json_bytes, parse_json, read_bytes, sealed, unsealed
from pictolex.presets import load_preset, preset_names

if TYPE_CHECKING:
    from pictolex.learn import Run

RESULT = "result.json"
RUN = "run"
FORMAT = Format("pictolex reproduced seed")

Told = TypeVar("Told")


class OutOfTimeError(KeyboardInterrupt):
    """The time for all is over. It ends learning as Ctrl-C does."""


class Clock:
    """The time that all seeds have together."""

    def __init__(self, seconds: float | None) -> None:
        self._end = math.inf if seconds is None else time.monotonic() + seconds

    @property
    def left(self) -> float:
        """Seconds, infinite where there is no limit."""
        return self._end - time.monotonic()

    def check(self) -> None:
        """Stop what is going on when the time is over."""
        if self.left <= 0:
            raise OutOfTimeError

    def checked(self, callback: Callable[[Told], None]) -> Callable[[Told], None]:
        """A callback that also looks at the clock."""

        def call(told: Told) -> None:
            callback(told)
            self.check()

        return call


def settings_hash(task: Task, case: Case, order: Order) -> str:
    """Of all that decides the result of a seed: the preset's values, the images, the seed, the device, the time to learn.

    A preset that is not a file is made from the images; its name stands for it.
    """
    settings = load_preset(task.preset).model_dump(mode="json") if task.preset in preset_names() else None
    request = {
        "preset": task.preset,
        "settings": settings,
        "variant": task.variant,
        "seed": task.seed,
        "data": case.data,
        "device": order.device,
        "learn_budget": order.learn_budget,
    }
    return checksum({}, request)


def finished(task: Task, case: Case, order: Order) -> Result | None:
    """What was kept of this seed, if it was finished with the same settings by this version."""
    path = task.folder(order.out) / RESULT
    if not path.is_file():
        return None
    try:
        content = unsealed(parse_json(read_bytes(path), path), FORMAT, path)
        with fitting(path):
            result = Result(**content)
    except FormatError as error:
        order.watch.say(f"{error}: this seed is run again")
        return None
    same = result.settings_hash == settings_hash(task, case, order) and result.versions.get("pictolex") == __version__
    if not same:
        order.watch.say(f"{task.title}: kept from other settings or another version, so it is run again")
    return result if same else None


def run_seed(task: Task, case: Case, order: Order, clock: Clock) -> Result:
    """Learn from the images of a case and measure on its others; the result is kept when all is done."""
    from pictolex.learn.run import is_run, remove_run

    folder = task.folder(order.out)
    folder.mkdir(parents=True, exist_ok=True)
    (folder / RESULT).unlink(missing_ok=True)
    if is_run(folder / RUN):
        remove_run(folder / RUN)
    started = time.monotonic()
    run, figures = _learn(task, case, order, clock)
    figures |= _measure(run, case, order, clock, folder)
    result = Result(
        experiment=task.experiment.name,
        preset=task.preset,
        variant=task.variant,
        seed=task.seed,
        settings_hash=settings_hash(task, case, order),
        data=case.data,
        note=case.note,
        figures=figures,
        seconds=time.monotonic() - started,
        versions=_versions(),
        settings=run.settings.model_dump(mode="json"),
        **_place(run),
    )
    with atomic(folder / RESULT) as file:
        file.write(json_bytes(sealed(FORMAT, asdict(result))))
    return result


def _learn(task: Task, case: Case, order: Order, clock: Clock) -> tuple[Run, dict[str, float | None]]:
    """A run in the seed's folder, and what learning took."""
    from pictolex.learn import learn

    wall, cpu = time.monotonic(), _cpu_seconds()
    run = learn(
        case.learn,
        preset=task.preset,
        seed=task.seed,
        device=order.device,
        budget=order.learn_budget,
        out=task.folder(order.out) / RUN,
        callbacks=(clock.checked(order.watch.learning),),
    )
    taken = {SECONDS: time.monotonic() - wall, "learn_cpu_seconds": _cpu_seconds() - cpu}
    if case.spec is not None:
        run.log({"event": "source", "source": case.spec})
    learned = len(case.learn) if run.elements is None else len(run.elements)
    return run, {**taken, "images_offered": len(case.learn), "images_learned": learned}


def _measure(run: Run, case: Case, order: Order, clock: Clock, folder: Path) -> dict[str, float | None]:
    """The figures of `pictolex evaluate`, and the pictures."""
    from pictolex.api import Learned
    from pictolex.decompose import Engine
    from pictolex.experiments.evaluation import measure

    learned = Learned(run.dictionary, run.settings, run)
    start = time.perf_counter()
    collection = Engine(learned.dictionary, learned.settings).run(case.evaluate, progress=clock.checked(order.watch.images))
    seconds = time.perf_counter() - start
    figures = asdict(measure(learned, case.evaluate, case.truth(), collection, seconds))
    order.watch.draw(learned, collection, case.evaluate, folder)
    return {**_known(figures), "evaluate_seconds": seconds}


def _known(figures: Mapping[str, Any]) -> dict[str, float | None]:
    """What is not a finite number is not known."""
    return {key: None if value is None or not math.isfinite(value) else value for key, value in figures.items()}


def _cpu_seconds() -> float:
    """Of all cores, by this program and those it started."""
    times = os.times()
    return times.user + times.system + times.children_user + times.children_system


def _place(run: Run) -> dict[str, str]:
    """The device, and the machine in words."""
    import torch

    from pictolex.decompose.device import choose_device

    device = choose_device(run.settings.device)
    processor = torch.cuda.get_device_name(device) if device.type == "cuda" else platform.processor() or platform.machine()
    return {"device": str(device), "machine": f"{processor}, {os.cpu_count()} cores"}


def _versions() -> dict[str, str]:
    import numpy
    import torch

    return {"pictolex": __version__, "torch": torch.__version__, "numpy": numpy.__version__, "python": platform.python_version()}
