"""The settings that speed and agreement are measured on: T (Tetrominoes), D (Multi-dSprites), M (MNIST).

T and D are generated; M cuts its strokes from MNIST and needs the data sets. Searching does not ask whether a dictionary is
good, so these are simply of the sizes and kinds that learning gives.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from pictolex.decompose import Layout, Problem, Stage
from pictolex.experiments.bench_base import data_file, missing
from pictolex.model import Concept, Dictionary
from pictolex.settings import AlphaFormation, HueColour, NoColour, Placement, Rounds, Settings
from pictolex.sources.families.base import pixel_means, sample_points
from pictolex.sources.families.dsprites import ORIENTATIONS, SCALES, SHAPES, inside
from pictolex.sources.npz import Archive
from pictolex.sources.synthetic import SyntheticSource, true_dictionary

Floats = NDArray[np.float32]
SEED = 7
ROTATIONS = 40
PIECES = 9
PIECE_SIDE = 19
MORE_HUES = ((1.0, 1.0, 1.0), (0.5, 0.5, 0.0), (0.5, 0.0, 0.5), (0.0, 0.5, 0.5))
SHAPE_SIDE = 33
STROKES, STROKE_SIDE = 512, 13
UNEVEN = 0.2
"""How far the opacity of D's patches falls from 1, at random: learned ones are not symmetric either, so no pose is spared."""


@dataclass(frozen=True)
class Case:
    """One setting: a dictionary, how to search with it, and its images."""

    name: str
    dictionary: Dictionary
    settings: Settings
    images: Floats
    """(images, channels, height, width)."""
    truth: Layout | None
    """The true elements on the grid, front to back, three an image; None where they are not known."""

    def stage(self, device: str) -> Stage:
        """The dictionary, ready on a device."""
        return Stage(self.dictionary, self.settings, self.images.shape[1], device=device)

    def problem(self, device: str, count: int | None = None) -> Problem:
        """The images on a device; where more are wanted than there are, they repeat."""
        image = torch.from_numpy(self.images).to(device)
        if count is not None:
            image = image[torch.arange(count, device=device) % len(image)]
        return Problem(image, torch.ones_like(image[:, :1]), torch.zeros_like(image))


def case(name: str, count: int) -> Case | None:
    """A setting with so many images; None where it needs data that are not there (see `lacking`)."""
    return _CASES[name](count)


def lacking(name: str) -> str:
    """Why a setting cannot be had."""
    return f"{name} is skipped: {missing('mnist.npz')}"


NAMES = ("T", "D", "M")


def _tetrominoes(count: int) -> Case:
    """35x35 RGB, 9 pieces of 19x19 in 4 rotations and 10 hues. At least two pieces of each image are among the nine."""
    true = true_dictionary("tetrominoes")
    concepts, corners = [], []
    for k in range(PIECES):
        high, wide = true.concepts[k].alpha.shape
        top, left = (PIECE_SIDE - high) // 2, (PIECE_SIDE - wide) // 2
        around = ((top, PIECE_SIDE - high - top), (left, PIECE_SIDE - wide - left))
        concepts.append(Concept(k, np.pad(true.concepts[k].shape, (*around, (0, 0))), np.pad(true.concepts[k].alpha, around)))
        corners.append((top, left))
    hues = np.concatenate([true.hues if true.hues is not None else np.zeros((0, 3)), np.array(MORE_HUES)]).astype(np.float32)
    settings = _rounds(Placement(rotations=4), 3).model_copy(update={"colour": HueColour(count=len(hues))})
    images, factors = _scenes("tetrominoes", count, lambda rows: bool((rows[:, 0] < PIECES).sum() >= 2))
    # Later pieces are in front; one that is not in the dictionary is left out.
    rows = factors[:, ::-1]
    known = rows[..., 0] < PIECES
    at = np.array(corners)[np.where(known, rows[..., 0], 0)]
    x, y = rows[..., 3] - at[..., 1] + PIECE_SIDE / 2, rows[..., 2] - at[..., 0] + PIECE_SIDE / 2
    truth = _layout(np.where(known, rows[..., 0], -1), x, y, np.zeros_like(x), torch.from_numpy(hues), rows[..., 1])
    return Case("T", Dictionary(tuple(concepts), hues=hues), settings, images.transpose(0, 3, 1, 2), truth)


def _dsprites(count: int) -> Case:
    """64x64 grey, three objects; 22 patches of 33x33 in 40 rotations: three shapes at six scales, and four in between."""
    kinds = [(shape, 0.5 + 0.1 * scale) for shape in range(len(SHAPES)) for scale in range(SCALES)]
    kinds += [(k % len(SHAPES), 0.55 + 0.1 * k) for k in range(4)]
    rng = np.random.default_rng(SEED)
    xs, ys = sample_points(SHAPE_SIDE, SHAPE_SIDE, 8)
    concepts = []
    for k, (shape, scale) in enumerate(kinds):
        alpha = pixel_means(inside(SHAPES[shape], xs / scale, ys / scale).astype(np.float64), 8)
        uneven = 1 - UNEVEN * rng.random(alpha.shape)
        concepts.append(Concept(k, np.ones((*alpha.shape, 1), np.float32), (alpha * uneven).astype(np.float32)))
    images, factors = _scenes("dsprites-bin", count, lambda rows: bool((rows[:, 6] == 1).all()))
    rows = factors[:, ::-1].astype(np.float64)
    x, y = (np.floor(16 + rows[..., k] * 32 / 31) + 0.5 for k in (3, 4))
    turn = np.round(rows[..., 2] * ROTATIONS / (ORIENTATIONS - 1)) % ROTATIONS * (2 * math.pi / ROTATIONS)
    concept = (rows[..., 0] * SCALES + rows[..., 1]).astype(np.int64)
    truth = _layout(concept, x, y, turn, torch.ones(1, 1), np.zeros_like(concept))
    return Case("D", Dictionary(tuple(concepts)), _rounds(Placement(rotations=ROTATIONS), 3), images[:, None], truth)


def _mnist(count: int) -> Case | None:
    """28x28 grey digits; 512 patches of 13x13 cut from other digits."""
    path = data_file("mnist.npz")
    if path is None:
        return None
    with Archive(path) as archive:
        digits = np.asarray(archive.read("train_images"))
    rng = np.random.default_rng(SEED)
    concepts = []
    for k in range(STROKES):
        y, x = rng.integers(4, 12, 2)
        alpha = _shares(digits[50_000 + k, y : y + STROKE_SIDE, x : x + STROKE_SIDE])
        concepts.append(Concept(k, np.ones((*alpha.shape, 1), np.float32), alpha))
    return Case("M", Dictionary(tuple(concepts)), _rounds(Placement(), 4), _shares(digits[:count, None]), None)


def full_size(settings: Settings) -> Settings:
    """Settings for the true dictionaries, whose patches are as large as the largest elements."""
    place = settings.placement
    scales = tuple(scale / max(place.scales) for scale in place.scales)
    return settings.model_copy(update={"placement": place.model_copy(update={"scales": scales})})


_CASES: dict[str, Callable[[int], Case | None]] = {"T": _tetrominoes, "D": _dsprites, "M": _mnist}


def _rounds(placement: Placement, layers: int) -> Settings:
    """The paper's rounds with a small price."""
    return Settings(formation=AlphaFormation(), placement=placement, colour=NoColour(), strategy=Rounds(rounds=3), price=1.0, layers=layers)


def _scenes(name: str, count: int, fits: Callable[[NDArray[np.int64]], bool]) -> tuple[Floats, NDArray[np.int64]]:
    """The first scenes of a generated set whose factors fit: images (n, h, w[, 3]) in [0, 1], factors (n, objects, ...)."""
    source = SyntheticSource(name, 1_000_000, SEED)
    images: list[NDArray[np.uint8]] = []
    factors: list[NDArray[np.int64]] = []
    i = 0
    while len(images) < count:
        scene = source.scene(i)
        rows = scene.factors["factors"].astype(np.int64)
        if fits(rows):
            images.append(scene.images[0])
            factors.append(rows)
        i += 1
    return _shares(np.stack(images)), np.stack(factors)


def _shares(levels: NDArray[np.generic]) -> Floats:
    """0 to 255 as 0 to 1."""
    return (levels.astype(np.float32) / 255).astype(np.float32)


def _layout(
    concept: NDArray[np.int64],
    x: NDArray[np.floating],
    y: NDArray[np.floating],
    turn: NDArray[np.floating],
    table: Tensor,
    hue: NDArray[np.int64],
) -> Layout:
    """Elements (images, slots) as a layout; `table` has the colours."""
    pose = torch.zeros(*concept.shape, 5)
    for k, values in enumerate((x, y, turn)):
        pose[..., k] = torch.from_numpy(np.ascontiguousarray(values))
    index = torch.from_numpy(np.ascontiguousarray(hue))
    return Layout(torch.from_numpy(np.ascontiguousarray(concept)), pose, index, table[index])


def on_device(layout: Layout, device: str) -> Layout:
    """A layout on a device."""
    return Layout(*(t.to(device) for t in (layout.concept, layout.pose, layout.hue, layout.colour)))
