"""Ablations of the search with true dictionaries: rounds, shuffling, strategy, objective. Nothing is learned here."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pictolex.api import Learned
from pictolex.experiments.ablate_base import ARI, ELEMENTS, MIXES, MSE, TIME, Ablation, Found, Images, Job, Variant
from pictolex.experiments.ablate_figures import side_by_side
from pictolex.experiments.ablate_gradient import Descent, composited
from pictolex.experiments.ablate_measured import with_true_concepts
from pictolex.model import Collection

COLUMNS = (ARI, MSE, ELEMENTS, MIXES, TIME)
GRADIENT = "gradient"
PAPER = {"objective": {"kind": "ncc"}, "price": 0.0}
"""The paper's search beside its rounds: normalised correlation, and no price."""


def _rounds(policy: str, **changes: Any) -> dict[str, Any]:
    """The paper's rounds, decided by what we decide by (squared error and the price) or by what the paper does."""
    setting = {"strategy": {"kind": "rounds", "policy": policy, **changes}}
    return {"ours": {}, "paper": PAPER}[policy] | setting


def _each(sets: tuple[str, ...], variants: Mapping[str, Mapping[str, Any]]) -> tuple[Variant, ...]:
    """Every variant on every set; nothing in them is random."""
    return tuple(Variant(f"{name}-{title}", name, changes, random=False) for name in sets for title, changes in variants.items())


def _search(job: Job, images: Images) -> Found:
    return with_true_concepts(job, images)


def _by_method(job: Job, images: Images) -> Found:
    return with_true_concepts(job, images, _composited if job.variant.method == GRADIENT else None)


def _composited(learned: Learned, images: Images, job: Job) -> Collection:
    descent = Descent(seed=job.seed)
    return composited(learned.dictionary, learned.settings, images.measure, descent, job.clock.checked(job.watch.images))


ROUNDS = Ablation(
    name="rounds",
    question="How many rounds of greedy search does an image need? (The true concepts are given.)",
    columns=COLUMNS,
    variants=_each(
        ("dsprites-bin",), {f"{policy}-{count}": _rounds(policy, rounds=count) for policy in ("ours", "paper") for count in (1, 2, 3)}
    ),
    images=200,
    run=_search,
    draw=side_by_side,
)

SHUFFLING = Ablation(
    name="shuffling",
    question="What does it bring to try every element in front once the greedy rounds are over? (The true concepts are given.)",
    columns=COLUMNS,
    variants=_each(
        ("tetrominoes-occluded", "dsprites-color"),
        {
            f"{policy}-{'shuffled' if shuffle else 'as-found'}": _rounds(policy, shuffle=shuffle)
            for policy in ("ours", "paper")
            for shuffle in (True, False)
        },
    ),
    images=150,
    run=_search,
    draw=side_by_side,
)

_SETS = ("dsprites-bin", "dsprites-adv")
STRATEGY = Ablation(
    name="strategy",
    question="Propose, select, polish against greedy rounds and against differentiable compositing. (The true concepts are given.)",
    columns=COLUMNS,
    variants=tuple(
        variant
        for name in _SETS
        for variant in (
            *_each((name,), {"propose": {}, "rounds-ours": _rounds("ours"), "rounds-paper": _rounds("paper")}),
            Variant(f"{name}-gradient", name, method=GRADIENT),
        )
    ),
    images=64,
    run=_by_method,
    draw=side_by_side,
)

OBJECTIVE = Ablation(
    name="objective",
    question="Normalised cross-correlation or squared error, in the same greedy rounds without a price? (The true concepts are given.)",
    columns=COLUMNS,
    variants=_each(("tetrominoes", "dsprites-bin"), {"squared": _rounds("ours") | {"price": 0.0}, "ncc": _rounds("paper")}),
    images=200,
    run=_search,
    draw=side_by_side,
)
