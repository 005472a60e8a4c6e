"""Ablations of how much learning is given: images to learn from (`data`), and concepts it may have (`sizes`)."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from pictolex.experiments.ablate_base import ARI, CONCEPTS, L1, LEARNED, LEARNING, MIXES, MSE, Ablation, Kept, Variant
from pictolex.experiments.ablate_figures import Line, Panel, by_use, curves, dictionaries, first_seeds, sheets
from pictolex.experiments.ablate_measured import learned_from
from pictolex.experiments.ablate_table import rows_of
from pictolex.experiments.reproduce_base import Figure

AMOUNTS = (16, 64, 256, 1024, 4500)
SETS = ("tetrominoes", "dsprites-adv", "dsprites-bin")
SIZES = (1, 2, 3, 6, 12, 22)
SCALES: dict[str, dict[str, Any]] = {"free-scale": {}, "one-scale": {"placement.scales": [1.0], "learning.concept_size": 33}}
"""Ours, and the paper's: what has another size is another concept."""


def _panels(kept: Sequence[Kept], groups: Sequence[str], figures: Sequence[Figure], x: str, log_x: bool = False) -> list[Panel]:
    """A diagram for each figure, with a line for each group: variants named `group-number`."""
    rows = rows_of(kept)
    panels = []
    for figure in figures:
        lines = []
        for number, group in enumerate(groups):
            own = [row for row in rows if row.variant.rpartition("-")[0] == group]
            points = [(float(row.variant.rpartition("-")[2]), row.figures[figure.key].mean) for row in own if figure.key in row.figures]
            if points:
                lines.append(Line(group, [at for at, _ in points], [value for _, value in points], number, number))
        panels.append(Panel(figure.title.removesuffix(" %"), lines, x, figure.title.removesuffix(" %"), log_x))
    return panels


def draw_data(kept: Sequence[Kept], folder: Path) -> list[str]:
    """ARI and concept error by the number of images."""
    sheets(kept, folder)
    return curves(_panels(kept, SETS, (ARI, L1), "images learned from", log_x=True), folder / "curves.png")


def draw_sizes(kept: Sequence[Kept], folder: Path) -> list[str]:
    """All dictionaries as heat maps, those of one setting in one figure; concept error and mixing by the number of concepts."""
    sheets(kept, folder)
    told = curves(_panels(kept, tuple(SCALES), (L1, MIXES, ARI), "concepts at most", log_x=True), folder / "curves.png")
    for scale in SCALES:
        rows = {
            one.variant.name.removeprefix(f"{scale}-"): by_use(one.found.dictionary, one.found.details["uses"])
            for one in first_seeds(kept)
            if one.variant.name.startswith(scale) and one.found.dictionary is not None
        }
        told += dictionaries(rows, f"{scale}: concepts in use, by the most there may be", folder / f"dictionaries-{scale}.png")
    return told


DATA = Ablation(
    name="data",
    question="How few images are enough? Measured on the same images throughout.",
    columns=(ARI, L1, MSE, CONCEPTS, LEARNED, LEARNING),
    variants=tuple(Variant(f"{name}-{amount}", name, learn=amount) for name in SETS for amount in AMOUNTS),
    images=256,
    run=learned_from,
    draw=draw_data,
    measured=64,
)

SIZES_ABLATION = Ablation(
    name="sizes",
    question="What do concepts become where there may be fewer of them than shapes, or more? With scales to choose from, and without.",
    columns=(CONCEPTS, L1, MIXES, ARI, MSE, LEARNED, LEARNING),
    variants=tuple(
        Variant(f"{scale}-{count}", "dsprites-bin", {"learning.concepts": count, **changes})
        for scale, changes in SCALES.items()
        for count in SIZES
    ),
    images=96,
    run=learned_from,
    draw=draw_sizes,
)
