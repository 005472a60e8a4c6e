"""One image with many placements: learned from and measured on the same image, whole and cropped to a smaller canvas."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from pictolex.experiments.bench_base import data_file, missing
from pictolex.experiments.reproduce_base import Case, Experiment
from pictolex.sources import open_source
from pictolex.sources.synthetic import SyntheticSource
from pictolex.sources.truth import Truth, open_truth

GENERATED_SEED = 101
"""The seed of the generated image for seed 0; those of the others follow."""
EMPTY, NOWHERE = -1, -999
"""Motif and place in a row of `placements` that holds none."""


def case(experiment: Experiment, side: int | None, seed: int, images: int | None) -> Case:
    """Image k of the file for seed k (they come round again), cut to `side` from its top left corner where it is larger."""
    path = data_file(experiment.file)
    whole = _generated(experiment, seed) if path is None else _stored(path, seed)
    height, width, _ = whole.learn.shape(0)
    if side is None or side >= max(height, width):
        return whole
    cut = open_source(whole.learn.read(0).pixels[None, :side, :side])

    def truth() -> Truth | None:
        known = whole.truth()
        return None if known is None else cropped(known, side)

    return Case(cut, cut, truth, f"{whole.data}, cut to {side}x{side}", whole.note)


def _stored(path: Path, seed: int) -> Case:
    place = seed % len(open_source(str(path)))
    spec = f"{path.resolve()}[{place}:{place + 1}]"
    source = open_source(spec)
    return Case(source, source, lambda: open_truth(spec), f"{path.name} (re-created): image {place}", spec=spec)


def _generated(experiment: Experiment, seed: int) -> Case:
    """Where the file is not at hand: our own pattern."""
    source = SyntheticSource(experiment.name, 1, GENERATED_SEED + seed)
    note = f"the images are our own generated ones, not the shared set: {missing(experiment.file)}"
    return Case(source, source, lambda: open_truth(source), f"our generated {experiment.name}: the image of seed {source.seed}", note)


def cropped(truth: Truth, side: int) -> Truth:
    """The truth of an image's top left corner: only what has a pixel in it is left, numbered anew."""
    masks = truth.masks(0)
    known = None if truth.factors is None else truth.factors(0).get("placements")
    if masks is None or known is None:
        return replace(truth, mask_of=None if masks is None else lambda i: masks[:side, :side], factors=None)
    ids, mask = _renumbered(masks[:side, :side])
    rows = _kept(known, ids)
    return replace(truth, mask_of=lambda i: mask, factors=lambda i: {"placements": rows})


def _renumbered(mask: NDArray[np.integer]) -> tuple[NDArray[np.integer], NDArray[np.integer]]:
    """The ids in a mask but 0, and the mask with 1, 2, ... for them."""
    ids = np.setdiff1d(mask, [0])
    numbered: NDArray[np.integer] = np.searchsorted(ids, mask, side="right").astype(mask.dtype)
    return ids, numbered


def _kept(rows: NDArray[np.generic], ids: NDArray[np.integer]) -> NDArray[np.generic]:
    """The placements of some instances (the k-th placement is instance k), then empty rows."""
    placed = rows[rows[:, 0] != EMPTY]
    left = np.full_like(rows, NOWHERE)
    left[:, 0] = EMPTY
    left[: len(ids)] = placed[ids - 1]
    return left
