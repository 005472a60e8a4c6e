"""Learning a dictionary from images. Light to import: torch comes with the first call."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from pictolex.learn.progress import Callback, LearningProgress
from pictolex.learn.run import Run
from pictolex.settings import Settings

if TYPE_CHECKING:
    from pictolex.formation import Formation

__all__ = ["Callback", "LearningProgress", "Run", "learn"]


def learn(
    images: Any,
    *,
    preset: str | None = None,
    settings: Settings | None = None,
    out: str | os.PathLike[str] | None = None,
    epochs: int | None = None,
    seed: int | None = None,
    device: str | None = None,
    budget: float | None = None,
    callbacks: Sequence[Callback] = (),
    formation: Formation | None = None,
) -> Run:
    """Learn a dictionary of visual concepts from images.

    `images`: an array (n, h, w) or (n, h, w, c), a tensor, a list of arrays, a path, or the name of a built-in set.
    `budget`: the most seconds to take, the last pass over the images included. `formation`: one of your own in place of the settings'.
    Without `out` the run is kept in memory. Ctrl-C (or KeyboardInterrupt from a callback) saves what has been learned first.
    """
    from pictolex.learn.loop import Learner
    from pictolex.presets import load_preset
    from pictolex.sources import open_source

    chosen = settings if settings is not None else load_preset(preset) if preset is not None else Settings()
    given = {"seed": seed, "device": device}
    chosen = chosen.model_copy(update={name: value for name, value in given.items() if value is not None})
    if epochs is not None:
        chosen = chosen.model_copy(update={"learning": chosen.learning.model_copy(update={"epochs": epochs})})
    chosen = Settings.model_validate(chosen.model_dump())
    source = open_source(images, seed=chosen.seed)
    return Learner(source, chosen, formation=formation, callbacks=callbacks).learn(out, budget)
