"""The experiments as data: what was published, and what this project asks of itself.

Shares and ARI are 0 to 1. "paper": Search for Concepts, its Tables 1 and 2; its figures are on the original sets.
"""

from __future__ import annotations

from pictolex.experiments.reproduce_base import Experiment, Figure, Row, Statistic, Target

ARI, L1 = "ari_foreground", "concept_l1"
CLASS_ACCURACY, CLASS_MIOU = "class_accuracy", "class_miou"
PLACEMENTS, PRECISION = "placements_exact", "placement_precision"
SECONDS = "learn_seconds"

FIGURES = (
    Figure(ARI, "foreground ARI %", "higher", scale=100, digits=2, published_digits=1),
    Figure(L1, "concept L1", "lower"),
    Figure(CLASS_ACCURACY, "class mAcc", "higher", published_digits=3),
    Figure(CLASS_MIOU, "class mIoU", "higher", published_digits=3),
    Figure(PLACEMENTS, "placements exact", "higher", digits=3),
    Figure(PRECISION, "placement precision", "higher", digits=3),
    Figure("mse", "MSE", "lower", digits=6),
    Figure("concepts", "concepts", None, digits=1),
    Figure(SECONDS, "learning s", "lower", digits=0),
)
"""The columns of tables, in their order; one in which nobody has a value is left out."""

PUBLISHED = "published"
PAPER = "Search for Concepts (the paper)"
SAME_TERMS = "with the paper's element transformations and number of concepts"


def _published(method: str, note: str = "", **figures: tuple[float, float | None]) -> Row:
    """A method's published figures: value and deviation."""
    return Row(method, PUBLISHED, {key: Statistic(*values) for key, values in figures.items()}, note)


EXPERIMENTS = {
    experiment.name: experiment
    for experiment in (
        Experiment(
            name="tetrominoes",
            module="reproduce_sets",
            file="tetrominoes_recreated.npz",
            preset="tetrominoes",
            published=(
                _published("IODINE", ari_foreground=(0.992, 0.004)),
                _published("Slot Attention", ari_foreground=(0.995, 0.002)),
                _published(
                    "DTI-Sprites",
                    note="class mAcc and mIoU as published by DTI-Sprites' authors",
                    ari_foreground=(0.996, 0.002),
                    class_accuracy=(0.995, None),
                    class_miou=(0.992, None),
                ),
                _published(PAPER, ari_foreground=(0.995, 0.001)),
            ),
            targets=(Target(ARI, 0.998, 0.9999), Target(SECONDS, 180, 30)),
        ),
        Experiment(
            name="dsprites-bin",
            module="reproduce_sets",
            file="multi_dsprites_bin_recreated.npz",
            preset="dsprites-bin",
            published=(
                _published("IODINE", ari_foreground=(0.648, 0.172)),
                _published("Slot Attention", ari_foreground=(0.694, 0.009), concept_l1=(0.0312, None)),
                _published("DTI-Sprites", note=SAME_TERMS, ari_foreground=(0.755, 0.004), concept_l1=(0.0133, None)),
                _published(PAPER, ari_foreground=(0.851, 0.007), concept_l1=(0.0033, None)),
            ),
            targets=(Target(ARI, 0.90, 0.97), Target(L1, 0.0033, 0.001), Target(SECONDS, 1200, 300)),
        ),
        Experiment(
            name="dsprites-adv",
            module="reproduce_sets",
            file="multi_dsprites_adv_recreated.npz",
            preset="dsprites-adv",
            published=(
                _published("IODINE"),
                _published("Slot Attention", ari_foreground=(0.127, 0.011), concept_l1=(0.0497, None)),
                _published("DTI-Sprites", note=SAME_TERMS, ari_foreground=(0.753, 0.004), concept_l1=(0.0219, None)),
                _published(PAPER, ari_foreground=(0.764, 0.024), concept_l1=(0.0051, None)),
            ),
            targets=(Target(ARI, 0.98, 0.999), Target(L1, 0.004, 0.001), Target(SECONDS, 600, 60)),
        ),
        Experiment(
            name="dsprites-color",
            module="reproduce_sets",
            file="multi_dsprites_color_recreated.npz",
            preset="dsprites-color",
            published=(
                _published("IODINE", ari_foreground=(0.767, 0.056)),
                _published("Slot Attention", ari_foreground=(0.913, 0.003)),
                _published("DTI-Sprites", ari_foreground=(0.925, 0.003)),
                _published(PAPER, ari_foreground=(0.906, 0.008)),
            ),
            targets=(Target(ARI, 0.95, 0.99), Target(SECONDS, 1200, 300)),
        ),
        Experiment(
            name="pattern",
            module="reproduce_pattern",
            file="xmas_pattern.npz",
            preset="pattern",
            targets=(Target(PLACEMENTS, 0.98, 1.0), Target(SECONDS, 60)),
            sides=(85, 64),
        ),
    )
}
