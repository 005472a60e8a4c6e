"""Ablation of the dictionary step: in closed form, and by four optimisers at four rates, on the pattern."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from pictolex.experiments.ablate_base import L1_SHIFTED, LEARNING, MSE, Ablation, Found, Images, Job, Kept, Variant
from pictolex.experiments.ablate_figures import Line, Panel, curves, first_seeds
from pictolex.experiments.ablate_measured import learned_from

EPOCHS = 10
STARTS = ("noise", "pieces")
OPTIMIZERS = ("sgd", "adam", "adadelta", "rmsprop")
RATES = (0.001, 0.01, 0.1, 1.0)
SOLVE = "solve"
COMMON: dict[str, Any] = {
    "evolution": {"kind": "none"},
    # Learned by the same steps, as the paper has it.
    "background": {"kind": "plain"},
    "learning.concepts": 2,
    "learning.epochs": EPOCHS,
    # One image: what was found would be kept for good, however the concepts become.
    "learning.warm": False,
    "strategy": {"kind": "propose", "passes": 1, "candidates": 8, "beam": 16, "finalists": 2, "polish_steps": 0},
}


def _variants() -> tuple[Variant, ...]:
    made = []
    for start in STARTS:
        made.append(Variant(f"{start}-{SOLVE}", "pattern", {**COMMON, "learning.start": start, "learning.optimizer": SOLVE}))
        for optimizer in OPTIMIZERS:
            for rate in RATES:
                step = {"learning.start": start, "learning.optimizer": optimizer, "learning.rate": rate}
                made.append(Variant(f"{start}-{optimizer}-{rate:g}", "pattern", {**COMMON, **step}))
    return tuple(made)


def run(job: Job, images: Images) -> Found:
    """The error of each epoch is that before its step; the one measured at the end is that after the last."""
    found = learned_from(job, images)
    found.details["errors"].append(found.figures[MSE.key])
    return found


def draw(kept: Sequence[Kept], folder: Path) -> list[str]:
    """Error by step, a diagram for each start."""
    panels = []
    for start in STARTS:
        lines = []
        for one in first_seeds(kept):
            learning = one.settings.learning
            if learning.start != start:
                continue
            solved = learning.optimizer == SOLVE
            colour = 0 if solved else 1 + OPTIMIZERS.index(learning.optimizer)
            style = 0 if solved else RATES.index(learning.rate)
            errors = one.found.details["errors"]
            lines.append(Line(one.variant.name.removeprefix(f"{start}-"), range(len(errors)), errors, colour, style))
        panels.append(Panel(f"from {start}", lines, "steps", "MSE", log_y=True))
    return curves(panels, folder / "curves.png")


OPTIMIZERS_ABLATION = Ablation(
    name="optimizers",
    question=f"How much hangs on the optimiser and its rate? {EPOCHS} steps on one pattern, elements searched anew before each.",
    columns=(MSE, L1_SHIFTED, LEARNING),
    variants=_variants(),
    images=1,
    run=run,
    draw=draw,
)
