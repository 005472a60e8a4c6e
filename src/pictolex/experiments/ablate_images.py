"""The images of an ablation: the shared sets (learned on the first ones, measured on the last), our generated ones, and those made here."""

from __future__ import annotations

from pictolex.experiments.ablate_base import Images, Job
from pictolex.experiments.ablate_made import MADE, MadeSource
from pictolex.experiments.bench_base import data_file
from pictolex.experiments.reproduce_pattern import case as pattern_case
from pictolex.experiments.reproduce_published import EXPERIMENTS
from pictolex.experiments.reproduce_sets import LEARNED_SEED, MEASURED_SEED
from pictolex.experiments.reproduce_sets import case as set_case
from pictolex.presets import load_preset
from pictolex.settings import Settings
from pictolex.sources.synthetic import true_dictionary
from pictolex.sources.truth import open_truth

PATTERN = "pattern"
_FACES = {
    "layers": 3,
    "price": 1.0,
    "strategy": {"kind": "propose", "passes": 2, "candidates": 4, "context_candidates": 2},
    "learning": {"concepts": 12, "concept_size": 21, "epochs": 6},
}
_BASES = {"faces": lambda: Settings.model_validate(_FACES), "tetrominoes-occluded": lambda: load_preset("tetrominoes")}


def open_images(job: Job) -> Images:
    """The images of a seed of a variant, and the settings that go with them."""
    if job.variant.images in MADE:
        return _made(job)
    return _pattern(job) if job.variant.images == PATTERN else _set(job)


def _set(job: Job) -> Images:
    name = job.variant.images
    experiment = EXPERIMENTS[name]
    measured = set_case(experiment, None, job.seed, job.images)
    path = data_file(experiment.file)
    own = f"our generated {name}: {len(measured.evaluate)} images of seed {MEASURED_SEED}"
    return Images(
        set_case(experiment, None, job.seed, job.learned_images).learn,
        measured.evaluate,
        measured.truth(),
        true_dictionary(name),
        _unlimited(load_preset(name)),
        own if path is None else f"{path.name} (re-created set): the last {len(measured.evaluate)} images",
        measured.note,
    )


def _pattern(job: Job) -> Images:
    """Learned from and measured on one image; each seed has its own."""
    found = pattern_case(EXPERIMENTS[PATTERN], None, job.seed, None)
    return Images(found.learn, found.evaluate, found.truth(), true_dictionary(PATTERN), load_preset(PATTERN), found.data, found.note)


def _made(job: Job) -> Images:
    name = job.variant.images
    measured = MadeSource(name, job.images, MEASURED_SEED)
    return Images(
        MadeSource(name, job.learned_images, LEARNED_SEED),
        measured,
        open_truth(measured),
        MADE[name].dictionary(),
        _unlimited(_BASES[name]()),
        f"{name} (made for this): {job.images} images of seed {MEASURED_SEED}",
    )


def _unlimited(settings: Settings) -> Settings:
    """Without a preset's own limit on the images it learns from: an ablation says how many."""
    return settings.model_copy(update={"learning": settings.learning.model_copy(update={"limit": None})})
