"""The dictionary step in closed form against SciPy's and NumPy's least squares, and what must hold where it is only a step."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import ndimage
from scipy.optimize import lsq_linear
from torch import Tensor

from drawn import Placed, coverage
from pictolex.decompose import Layout, Problem
from pictolex.formation import Additive, Alpha, Formation, Patches, sample
from pictolex.learn.effects import pulled
from pictolex.learn.solve import Solver
from pictolex.learn.step import create_step
from pictolex.model import Background, Concept, Dictionary
from pictolex.settings import Learning

CPU = torch.device("cpu")
SIDE = 7


def white(*alphas: np.ndarray, grey: float = 1.0, **rest: object) -> Dictionary:
    return Dictionary(tuple(Concept(3 * k + 1, np.full((*a.shape, 1), grey), a) for k, a in enumerate(alphas)), **rest)  # type: ignore[arg-type]


def layout_of(
    elements: Sequence[Sequence[tuple[int, float, float]]], channels: int = 1, hues: Sequence[Sequence[int]] | None = None
) -> Layout:
    """Unturned elements (concept, x, y) of each image; as many in every one."""
    concept = torch.tensor([[e[0] for e in image] for image in elements])
    pose = torch.zeros(*concept.shape, 5)
    pose[..., :2] = torch.tensor([[e[1:] for e in image] for image in elements], dtype=torch.float32)
    hue = torch.full_like(concept, -1) if hues is None else torch.tensor(hues)
    return Layout(concept, pose, hue, torch.ones(*concept.shape, channels))


def problem_of(images: np.ndarray, behind: float | Sequence[float] = 0.0, weight: np.ndarray | None = None) -> Problem:
    """Images (n, channels, height, width)."""
    image = torch.from_numpy(images.astype(np.float32))
    plane = torch.tensor(behind, dtype=torch.float32).reshape(-1, 1, 1).expand_as(image).contiguous()
    known = torch.ones(len(image), 1, *image.shape[2:]) if weight is None else torch.from_numpy(weight.astype(np.float32))
    return Problem(image, known, plane)


def apart(rng: np.random.Generator, images: int, kinds: int = 2) -> list[list[tuple[int, float, float]]]:
    """Two elements an image, on whole pixels, that do not overlap (20 x 34 pixels, patches of 7)."""
    x = (rng.integers(4, 13, images) + 0.5, rng.integers(20, 30, images) + 0.5)
    return [[(int(rng.integers(kinds)), x[k][i], int(rng.integers(4, 16)) + 0.5) for k in range(2)] for i in range(images)]


def least_squares(
    images: np.ndarray, elements: Sequence[Sequence[tuple[int, float, float]]], kind: int, effect: float, behind: float, weight: np.ndarray
) -> np.ndarray:
    """The patch of alphas in [0, 1] that fits best, pixel by pixel as SciPy sees it: one row for each image pixel under an element."""
    cells = np.arange(SIDE * SIDE).reshape(SIDE, SIDE)
    rows, targets = [], []
    for i, image in enumerate(elements):
        for concept, x, y in image:
            if concept != kind:
                continue
            top, left = int(y - SIDE / 2), int(x - SIDE / 2)
            for r, c in np.ndindex(SIDE, SIDE):
                if weight[i, 0, top + r, left + c] == 0:
                    continue
                row = np.zeros(SIDE * SIDE)
                row[cells[r, c]] = effect
                rows.append(row)
                targets.append(images[i, 0, top + r, left + c] - behind)
    return lsq_linear(np.stack(rows), np.array(targets), bounds=(0, 1)).x.reshape(SIDE, SIDE)


@pytest.mark.parametrize("behind,grey", [(0.0, 1.0), (0.7, 0.0), (0.2, 0.9)])
@pytest.mark.parametrize("holes", [False, True])
def test_one_step_is_the_least_squares_solution_of_alphas_that_lie_on_whole_pixels(behind: float, grey: float, holes: bool) -> None:
    rng = np.random.default_rng(4)
    truth = [rng.uniform(0, 0.85, (SIDE, SIDE)) for _ in range(2)]
    elements = apart(rng, 48)
    images = np.full((48, 1, 20, 34), behind)
    for i, image in enumerate(elements):
        for concept, x, y in image:
            at = (i, 0, slice(int(y - 3.5), int(y + 3.5)), slice(int(x - 3.5), int(x + 3.5)))
            images[at] += truth[concept] * (grey - behind)
    images += 0.05 * rng.standard_normal(images.shape)
    weight = (rng.random((48, 1, 20, 34)) > 0.3) if holes else np.ones((48, 1, 20, 34))
    images = np.where(weight > 0, images, 5.0)
    start = white(*(rng.uniform(0.2, 0.7, (SIDE, SIDE)) for _ in range(2)), grey=grey)
    solver = Solver(start, Alpha(1), CPU)
    solver.step(problem_of(images, behind, weight), layout_of(elements))
    for kind, concept in enumerate(solver.dictionary()):
        wanted = least_squares(images, elements, kind, grey - behind, behind, weight)
        np.testing.assert_allclose(concept.alpha, wanted, atol=2e-3)
        np.testing.assert_allclose(concept.shape, grey, atol=1e-4)


@pytest.mark.parametrize("formation", [Alpha(1), Additive(1)])
def test_what_is_drawn_on_black_is_the_mean_of_the_images_under_it(formation: Formation) -> None:
    """Shape and alpha together: on black, and where elements add, only their product is seen."""
    rng = np.random.default_rng(1)
    truth = [rng.uniform(0.05, 0.95, (SIDE, SIDE)) for _ in range(2)]
    elements = apart(rng, 48)
    images = np.zeros((48, 1, 20, 34))
    for i, image in enumerate(elements):
        for concept, x, y in image:
            images[i, 0, int(y - 3.5) : int(y + 3.5), int(x - 3.5) : int(x + 3.5)] += truth[concept]
    images += 0.02 * rng.standard_normal(images.shape)
    start = white(*(np.full((SIDE, SIDE), 0.5) for _ in range(2)))
    solver = Solver(start, formation, CPU)
    for _ in range(3):
        solver.step(problem_of(images), layout_of(elements))
    for kind, concept in enumerate(solver.dictionary()):
        wanted = least_squares(images, elements, kind, 1.0, 0.0, np.ones_like(images))
        np.testing.assert_allclose(concept.shape[..., 0] * concept.alpha, wanted, atol=0.01)


def test_elements_that_add_share_what_they_cover_together() -> None:
    """Two patches that overlap on whole pixels, added: both together are one least-squares problem."""
    rng = np.random.default_rng(2)
    truth = [rng.uniform(0.1, 0.5, (SIDE, SIDE)) for _ in range(2)]
    elements = [[(k, x + 0.5, y + 0.5) for k, (x, y) in enumerate(rng.integers(5, 13, (2, 2)).tolist())] for _ in range(60)]
    images = np.zeros((60, 1, 18, 18))
    design = np.zeros((60, 18, 18, 2, SIDE, SIDE))
    for i, image in enumerate(elements):
        for concept, x, y in image:
            for r, c in np.ndindex(SIDE, SIDE):
                design[i, int(y - 3.5) + r, int(x - 3.5) + c, concept, r, c] = 1
                images[i, 0, int(y - 3.5) + r, int(x - 3.5) + c] += truth[concept][r, c]
    images += 0.02 * rng.standard_normal(images.shape)
    wanted = np.linalg.lstsq(design.reshape(-1, 2 * SIDE * SIDE), images.ravel(), rcond=None)[0].reshape(2, SIDE, SIDE)
    solver = Solver(white(*(np.full((SIDE, SIDE), 0.3) for _ in range(2))), Additive(1), CPU)
    errors = [solver.step(problem_of(images), layout_of(elements)) for _ in range(12)]
    assert all(after < before * (1 + 1e-5) for before, after in itertools.pairwise(errors))
    for concept, best in zip(solver.dictionary(), wanted, strict=True):
        np.testing.assert_allclose(concept.shape[..., 0] * concept.alpha, best, atol=0.01)


def placed_blobs(seed: int, slots: int, sharpness: float, additive: bool) -> tuple[Formation, Dictionary, Problem, Layout]:
    """Pillow's wedges and bars, turned, at any place, overlapping, on black with noise; a blurred dictionary to start from."""
    rng = np.random.default_rng(seed)
    images, elements, turns = [], [], []
    names = ("wedge", "bar")
    for _ in range(8):
        kinds, turn = rng.integers(0, 2, slots), rng.uniform(0, 2 * math.pi, slots)
        places = rng.uniform(9, 21, (slots, 2))
        image = np.zeros((30, 30))
        for kind, (x, y), angle in list(zip(kinds, places, turn, strict=True))[::-1]:
            cover = coverage(Placed(names[kind], x, y, angle, 0.7), 30, 30)
            image = image + cover if additive else image * (1 - cover) + cover
        images.append(image + 0.02 * rng.standard_normal(image.shape))
        elements.append([(int(kind), x, y) for kind, (x, y) in zip(kinds, places.tolist(), strict=True)])
        turns.append(turn)
    layout = layout_of(elements)
    layout.pose[..., 2] = torch.from_numpy(np.stack(turns)).float()
    blurred = [ndimage.gaussian_filter(coverage(Placed(name, 8.5, 8.5, scale=0.7), 17, 17), 1.2).clip(0, 1) for name in names]
    formation = Additive(1) if additive else Alpha(1, sharpness)
    return formation, white(*blurred), problem_of(np.stack(images)[:, None]), layout


@settings(max_examples=25, deadline=None)
@given(st.integers(0, 10_000), st.integers(1, 3), st.sampled_from([(1.0, False), (2.0, False), (6.0, False), (1.0, True)]))
def test_steps_never_make_white_shapes_fit_worse(seed: int, slots: int, how: tuple[float, bool]) -> None:
    formation, start, problem, layout = placed_blobs(seed, slots, *how)
    solver = Solver(start, formation, CPU)
    errors = [solver.step(problem, layout) for _ in range(6)]
    # Of edges that are squashed much, a step only knows what they are before.
    slack = 0.05 if how[0] > 2 else 2e-3
    assert all(after < before + slack * errors[0] for before, after in itertools.pairwise(errors))
    assert errors[-1] < 0.8 * errors[0]


def test_many_that_add_up_in_one_place_do_not_overshoot() -> None:
    rng = np.random.default_rng(0)
    disc = coverage(Placed("ellipse", 8.5, 8.5, scale=0.7), 17, 17)
    elements = [[(0, *(12 + rng.integers(-1, 2, 2) + 0.5).tolist()) for _ in range(6)] for _ in range(6)]
    images = np.zeros((6, 1, 25, 25))
    for i, image in enumerate(elements):
        for _, x, y in image:
            images[i, 0, int(y - 8.5) : int(y + 8.5), int(x - 8.5) : int(x + 8.5)] += 0.3 * disc
    solver = Solver(white(0.6 * disc, grey=0.2), Additive(1), CPU)
    errors = [solver.step(problem_of(images), layout_of(elements)) for _ in range(5)]
    assert max(errors[1:]) <= errors[0]


def test_hues_are_the_least_squares_of_what_their_elements_show() -> None:
    rng = np.random.default_rng(5)
    palette = rng.uniform(0.1, 0.9, (3, 3))
    alpha = rng.uniform(0, 1, (SIDE, SIDE)).round()
    elements, hues = apart(rng, 30, 1), rng.integers(0, 2, (30, 2)).tolist()
    images = 0.03 * rng.standard_normal((30, 3, 20, 34))
    rows: list[list[np.ndarray]] = [[], []]
    for i, image in enumerate(elements):
        for (_, x, y), hue in zip(image, hues[i], strict=True):
            at = (i, slice(None), slice(int(y - 3.5), int(y + 3.5)), slice(int(x - 3.5), int(x + 3.5)))
            images[at] += alpha * palette[hue][:, None, None]
            rows[hue].append(images[at])
    start = white(alpha, hues=rng.uniform(0.3, 0.6, (3, 3)))
    solver = Solver(start, Alpha(1), CPU, frozen=frozenset(start.ids))
    layout = layout_of(elements, 3, hues)
    solver.step(problem_of(images), layout)
    found = solver.dictionary().hues
    assert found is not None and start.hues is not None
    for hue in range(2):
        seen = np.stack(rows[hue]).transpose(0, 2, 3, 1).reshape(-1, 3)
        design = np.tile(alpha.reshape(-1, 1), (len(rows[hue]), 1))
        np.testing.assert_allclose(found[hue], np.linalg.lstsq(design, seen, rcond=None)[0][0], atol=1e-3)
    assert np.array_equal(found[2], start.hues[2])


@pytest.mark.parametrize("kind", ["plain", "image"])
def test_the_background_is_the_least_squares_of_what_is_seen_of_it(kind: str) -> None:
    rng = np.random.default_rng(6)
    alpha = rng.uniform(0, 1, (SIDE, SIDE))
    elements = apart(rng, 40, 1)
    truth = rng.uniform(0.1, 0.9, (3, 1, 1) if kind == "plain" else (3, 20, 34))
    through = np.ones((40, 20, 34))
    images = np.zeros((40, 3, 20, 34))
    for i, image in enumerate(elements):
        for _, x, y in image:
            at = (slice(int(y - 3.5), int(y + 3.5)), slice(int(x - 3.5), int(x + 3.5)))
            through[i][at] *= 1 - alpha
            images[i][:, at[0], at[1]] += alpha
        images[i] += truth * through[i]
    images += 0.02 * rng.standard_normal(images.shape)
    left = images - (1 - through[:, None])
    first = np.full((3,) if kind == "plain" else (20, 34, 3), 0.5)
    start = Dictionary((Concept(0, np.ones((SIDE, SIDE, 3)), alpha),), background=Background(kind, first))  # type: ignore[arg-type]
    solver = Solver(start, Alpha(3), CPU, frozen=frozenset({0}))
    solver.step(problem_of(images, [0.5] * 3), layout_of(elements, 3))
    found = solver.dictionary().background.values
    assert found is not None
    if kind == "plain":
        wanted = [np.linalg.lstsq(through.reshape(-1, 1), left[:, c].reshape(-1), rcond=None)[0][0] for c in range(3)]
        np.testing.assert_allclose(found, wanted, atol=1e-4)
    else:
        columns = through.reshape(40, -1)
        wanted_image = (columns[:, None] * left.reshape(40, 3, -1)).sum(0) / np.square(columns).sum(0)
        np.testing.assert_allclose(found, np.moveaxis(wanted_image.clip(0, 1).reshape(3, 20, 34), 0, -1), atol=1e-3)


def textured(behind: float, wrong: float) -> tuple[np.ndarray, list[float], np.ndarray]:
    """An opaque patch of random colours, learned from a start that is a little wrong: what is shown, the errors, what was drawn."""
    rng = np.random.default_rng(7)
    shape = rng.uniform(0.1, 0.9, (SIDE, SIDE, 3))
    elements = apart(rng, 30, 1)
    images = np.full((30, 3, 20, 34), behind)
    for i, image in enumerate(elements):
        for _, x, y in image:
            images[i, :, int(y - 3.5) : int(y + 3.5), int(x - 3.5) : int(x + 3.5)] = np.moveaxis(shape, -1, 0)
    start = Dictionary((Concept(0, (shape + rng.uniform(-wrong, wrong, shape.shape)).clip(0, 1), np.ones((SIDE, SIDE))),))
    solver = Solver(start, Alpha(3), CPU)
    errors = [solver.step(problem_of(images, [behind] * 3), layout_of(elements, 3)) for _ in range(4)]
    found = solver.dictionary().concepts[0]
    return found.shape * found.alpha[..., None] + behind * (1 - found.alpha[..., None]), errors, shape


def test_shapes_in_colour_move_channel_by_channel() -> None:
    shown, errors, shape = textured(0.0, 0.03)
    np.testing.assert_allclose(shown, shape, atol=0.005)
    assert errors[-1] < 1e-3 * errors[0]


@pytest.mark.parametrize("behind,wrong", [(0.5, 0.1), (0.0, 0.1)])
def test_a_texture_that_starts_a_little_wrong_is_learned(behind: float, wrong: float) -> None:
    shown, errors, shape = textured(behind, wrong)
    assert errors[-1] < 0.2 * errors[0]
    np.testing.assert_allclose(shown, shape, atol=0.02)


@pytest.mark.parametrize("optimizer,rate", [("solve", 1.0), ("adam", 0.01), ("sgd", 1e-4), ("adadelta", 1.0), ("rmsprop", 0.01)])
def test_frozen_concepts_stay_bit_for_bit_and_others_move(optimizer: str, rate: float) -> None:
    formation, start, problem, layout = placed_blobs(3, 2, 1.0, False)
    names = [concept.id for concept in start]
    setting = Learning.model_validate({"optimizer": optimizer, "rate": rate})
    step = create_step(setting, start, formation, CPU, frozenset(names[:1]))
    for _ in range(3):
        step.step(problem, layout)
    for made in (step.dictionary(), step.finished()):
        assert np.array_equal(made[names[0]].alpha, start[names[0]].alpha)
        assert np.array_equal(made[names[0]].shape, start[names[0]].shape)
        assert np.abs(made[names[1]].alpha - start[names[1]].alpha).max() > 1e-3


def test_what_is_frozen_is_drawn_as_it_was_too() -> None:
    formation, start, problem, layout = placed_blobs(3, 2, 1.0, False)
    solver = Solver(start, formation, CPU, frozen=frozenset(start.ids))
    errors = {solver.step(problem, layout) for _ in range(3)}
    assert len(errors) == 1


def test_a_concept_without_elements_stays_as_it_is() -> None:
    formation, start, problem, layout = placed_blobs(3, 2, 1.0, False)
    only = Layout(torch.zeros_like(layout.concept), layout.pose, layout.hue, layout.colour)
    solver = Solver(start, formation, CPU)
    solver.step(problem, only)
    moved = solver.dictionary()
    assert np.array_equal(moved.concepts[1].alpha, start.concepts[1].alpha)
    assert not np.array_equal(moved.concepts[0].alpha, start.concepts[0].alpha)


def test_an_image_far_worse_than_the_others_says_nothing() -> None:
    formation, start, problem, layout = placed_blobs(3, 1, 1.0, False)
    clean, spoilt = Solver(start, formation, CPU), Solver(start, formation, CPU)
    image = problem.image.clone()
    image[-1] = torch.from_numpy(np.random.default_rng(0).random((1, 30, 30))).float()
    spoilt.step(Problem(image, problem.weight, problem.background), layout)
    clean.step(problem.take(slice(0, 7)), layout.take(slice(0, 7)))
    for one, other in zip(spoilt.dictionary(), clean.dictionary(), strict=True):
        np.testing.assert_allclose(one.alpha, other.alpha, atol=1e-6)


def test_the_error_told_is_that_before_the_step() -> None:
    formation, start, problem, layout = placed_blobs(5, 2, 1.0, False)
    placed = sample(Solver(start, formation, CPU)._patches(), layout.concept.flatten(), layout.pose.flatten(0, 1), 30, 30)
    shape, alpha = placed.unflatten(0, (8, 2)).numpy()[:, :, 0], placed.unflatten(0, (8, 2)).numpy()[:, :, 1]
    rebuilt = shape[:, 0] + (1 - alpha[:, 0]) * shape[:, 1]
    wanted = float(((problem.image[:, 0].numpy() - rebuilt) ** 2).sum())
    assert Solver(start, formation, CPU).step(problem, layout) == pytest.approx(wanted, rel=1e-4)


def test_values_stay_between_0_and_1_whatever_the_images() -> None:
    formation, start, problem, layout = placed_blobs(6, 3, 1.0, False)
    solver = Solver(start, formation, CPU)
    for sign in (3.0, -3.0):
        solver.step(Problem(sign * problem.image, problem.weight, problem.background), layout)
    for concept in solver.dictionary():
        assert 0 <= concept.alpha.min() <= concept.alpha.max() <= 1 and 0 <= concept.shape.min() <= concept.shape.max() <= 1


@settings(max_examples=30, deadline=None)
@given(st.integers(0, 10_000))
def test_pulling_is_the_adjoint_of_placing(seed: int) -> None:
    rng = np.random.default_rng(seed)
    values: Tensor = torch.from_numpy(rng.standard_normal((3, 2, 6, 8)))
    size = torch.tensor([[6, 8], [5, 7], [6, 3]])
    centre = size.flip(1).double() / 2
    which = torch.from_numpy(rng.integers(-1, 3, 5))
    pose = torch.from_numpy(rng.uniform([0, 0, -4, -0.5, 0], [12, 10, 4, 0.5, 0], (5, 5)))
    pose[:, 4] = torch.from_numpy(rng.integers(0, 2, 5))
    maps = torch.from_numpy(rng.standard_normal((5, 2, 10, 12)))
    forward = (sample(Patches(values, centre, size), which, pose, 10, 12) * maps).sum()
    back = pulled(maps.float(), which, pose.float(), centre.float(), size, (6, 8))
    assert float((back * values).sum()) == pytest.approx(float(forward), rel=2e-4, abs=2e-3)
