"""Concept error: zero for the same patch however placed, honest about what lies outside, continuous in rotation and scale."""

from __future__ import annotations

import math

import numpy as np
import pytest

from pictolex.metrics import concept_errors, concept_l1, concept_l1_strict, concepts
from pictolex.model import Concept
from pictolex.sources.families.base import coverage_patch
from pictolex.sources.families.dsprites import inside
from pictolex.sources.synthetic import true_dictionary


def white(alpha: np.ndarray, id: int = 0) -> Concept:
    return Concept(id, np.ones((*alpha.shape, 1), np.float32), alpha.astype(np.float32))


def drawn(shape: str, angle: float, scale: float, dx: float = 0.0, dy: float = 0.0, reach: float = 20) -> Concept:
    """The recipe's shape turned counter-clockwise as seen, drawn afresh (not resampled)."""

    def covers(x: np.ndarray, y: np.ndarray) -> np.ndarray:
        x, y = (x - dx) / scale, (y - dy) / scale
        return inside(shape, math.cos(angle) * x - math.sin(angle) * y, math.sin(angle) * x + math.cos(angle) * y)

    return white(coverage_patch(covers, reach, reach))


def test_the_same_patch_however_shifted_or_padded() -> None:
    for name in ("dsprites-bin", "tetrominoes", "pattern", "voxel"):
        concepts = tuple(true_dictionary(name))[:4]
        moved = []
        for concept in concepts:
            pad = [(1 + k, 3) for k in range(concept.alpha.ndim)]
            moved.append(Concept(50 + concept.id, np.pad(concept.shape, [*pad, (0, 0)], constant_values=1), np.pad(concept.alpha, pad)))
        assert concept_l1_strict(concepts, moved) == pytest.approx(0, abs=1e-7)
        assert concept_l1(concepts, moved) == pytest.approx(0, abs=1e-7)
        assert [id for _, id in concept_errors(concepts, moved, strict=True)] == [50 + c.id for c in concepts]


def test_strict_is_brute_force() -> None:
    rng = np.random.default_rng(0)
    true, learned = white(rng.random((3, 4))), white(rng.random((5, 2)))
    best = math.inf
    for dy in range(-4, 3):
        for dx in range(-1, 4):
            canvas_t, canvas_l = np.zeros((20, 20)), np.zeros((20, 20))
            canvas_t[8:11, 8:12] = true.alpha
            canvas_l[8 + dy : 13 + dy, 8 + dx : 10 + dx] = learned.alpha
            best = min(best, np.abs(canvas_t - canvas_l).sum() / 12)
    assert concept_l1_strict([true], [learned]) == pytest.approx(best, abs=1e-6)


def test_what_lies_outside_of_the_true_area_counts() -> None:
    square = next(iter(true_dictionary("dsprites-bin")))
    everything = white(np.ones((60, 60)))
    error = concept_l1_strict([square], [everything])
    assert error is not None and error > 5


@pytest.mark.parametrize("shape", ["ellipse", "heart"])
@pytest.mark.parametrize(("angle", "scale", "dx", "dy"), [(0.5, 1.0, 0, 0), (2.2, 0.8, 2.3, -1.4), (4.0, 1.3, -3.1, 0.6)])
def test_rotation_scale_and_fractions_of_pixels(shape: str, angle: float, scale: float, dx: float, dy: float) -> None:
    true = [c for c in true_dictionary("dsprites-bin") if c.name == shape]
    learned = [drawn(shape, angle, scale, dx, dy)]
    strict, free = concept_l1_strict(true, learned), concept_l1(true, learned)
    assert strict is not None and free is not None
    x, y = -(math.cos(angle) * dx - math.sin(angle) * dy) / scale, -(math.sin(angle) * dx + math.cos(angle) * dy) / scale
    placed = np.array([[-angle, -math.log(scale), x, y]])
    exact = concepts._errors_at(concepts._premultiplied(true[0]), concepts._premultiplied(learned[0]), placed)[0]
    assert exact < 0.05 < strict
    assert free <= exact + 1e-3


def test_free_is_never_above_strict_and_tells_shapes_apart() -> None:
    rng = np.random.default_rng(1)
    dictionary = true_dictionary("dsprites-bin")
    for _ in range(3):
        noise = [white(rng.random((9, 11)))]
        strict, free = concept_l1_strict(dictionary, noise), concept_l1(dictionary, noise)
        assert strict is not None and free is not None and free <= strict
    square, _, heart = tuple(dictionary)
    error = concept_l1([square], [heart])
    assert error is not None and error > 0.05


def test_nothing_learned_is_none_and_blank_patches_are_survived() -> None:
    dictionary = true_dictionary("dsprites-bin")
    assert concept_l1(dictionary, []) is None and concept_l1_strict([], dictionary) is None
    blank = [white(np.zeros((5, 5)))]
    expected = np.mean([c.alpha.mean() for c in dictionary])
    assert concept_l1(dictionary, blank) == pytest.approx(expected, abs=1e-6)
    assert concept_l1(blank, blank) == 0


def test_luminance_against_rgb_under_a_pure_hue() -> None:
    piece = true_dictionary("tetrominoes")[3]
    red = Concept(0, piece.shape * np.array([1, 0, 0], np.float32), piece.alpha)
    assert concept_l1_strict([piece], [red]) == pytest.approx(0, abs=1e-7)
    assert concept_errors([piece], [true_dictionary("voxel")[0]], strict=True)[0][0] == math.inf
