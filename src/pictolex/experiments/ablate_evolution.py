"""Ablation of evolution: few concepts to start with, eight shapes that are nearly alike, three ways for concepts to become more."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np

from pictolex.experiments.ablate_base import (
    CONCEPTS,
    L1_SHIFTED,
    LEARNED,
    LEARNING,
    MIXES,
    MSE,
    Ablation,
    Found,
    Images,
    Job,
    Kept,
    Variant,
)
from pictolex.experiments.ablate_figures import by_use, dictionaries, first_seeds, heat_map, sheets
from pictolex.experiments.ablate_likeness import likeness
from pictolex.experiments.ablate_measured import learned_from

FACES = "faces"
POLICIES = {
    "none": {"kind": "none"},
    "paper": {"kind": "paper"},
    # The mean of these faces correlates with each of them by more than the paper's 0.95, which is then no reason to split.
    "paper-0.99": {"kind": "paper", "quality": 0.99},
    "pays": {"kind": "pays"},
}


def run(job: Job, images: Images) -> Found:
    """Learn and measure, and compare the true concepts with each other."""
    found = learned_from(job, images)
    alike = likeness(images.dictionary.concepts, job.settings(images).placement)
    names = [concept.name for concept in images.dictionary]
    return replace(found, details={**found.details, "true_concepts": names, "likeness": alike.tolist()})


def draw(kept: Sequence[Kept], folder: Path) -> list[str]:
    """A sheet of each seed, all dictionaries below each other, and the confusion matrix of the true concepts."""
    sheets(kept, folder)
    rows = {
        one.variant.name: by_use(one.found.dictionary, one.found.details["uses"])
        for one in first_seeds(kept)
        if one.found.dictionary is not None
    }
    told = dictionaries(rows, "concepts in use, the most used first", folder / "dictionaries.png")
    if kept:
        details = kept[0].found.details
        title = "likeness of the true concepts (1 = the same)"
        told += heat_map(np.array(details["likeness"]), details["true_concepts"], title, folder / "confusion.png")
    return told


EVOLUTION = Ablation(
    name="evolution",
    question="Shapes that are nearly alike, few concepts to start with: does evolution tell them apart?",
    columns=(CONCEPTS, L1_SHIFTED, MIXES, MSE, LEARNED, LEARNING),
    variants=tuple(
        Variant(f"{name}-from-{initial}", FACES, {"evolution": policy, "learning.initial": initial})
        for initial in (1, 2)
        for name, policy in POLICIES.items()
    ),
    images=128,
    run=run,
    draw=draw,
)
