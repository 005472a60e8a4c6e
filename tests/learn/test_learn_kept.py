"""Elements kept between epochs: what is put in comes out, and elements that follow their concepts show what they showed."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import ndimage

from pictolex.decompose import Layout
from pictolex.formation import pack, sample
from pictolex.learn.kept import Kept, Move
from pictolex.model import Concept

CPU = torch.device("cpu")
IDS = (4, 7, 9)


def some_layout(seed: int, images: int, slots: int, concepts: int, channels: int = 3) -> Layout:
    rng = np.random.default_rng(seed)
    return Layout(
        torch.from_numpy(rng.integers(-1, concepts, (images, slots))),
        torch.from_numpy(rng.uniform([0, 0, -4, -1, 0], [30, 30, 4, 1, 0], (images, slots, 5))).float(),
        torch.from_numpy(rng.integers(-1, 5, (images, slots))),
        torch.from_numpy(rng.random((images, slots, channels))).float(),
    )


def elements(layout: Layout, image: int) -> list[tuple[object, ...]]:
    """Those of one image, front to back."""
    return [
        (int(layout.concept[image, k]), *layout.pose[image, k].tolist(), int(layout.hue[image, k]), *layout.colour[image, k].tolist())
        for k in range(layout.concept.shape[1])
        if layout.concept[image, k] >= 0
    ]


@settings(deadline=None)
@given(st.integers(0, 10_000), st.integers(1, 5), st.integers(1, 5), st.permutations(range(6)))
def test_what_was_put_comes_back_in_its_order(seed: int, slots: int, found: int, order: list[int]) -> None:
    kept = Kept(6, slots, 3)
    layout = some_layout(seed, 6, min(found, slots), 3)
    kept.put(order, layout, torch.arange(6.0), IDS)
    back = kept.get(order, IDS, CPU)
    for i, image in enumerate(order):
        assert elements(back, i) == elements(layout, i)
        assert float(kept.energy[image]) == i
    assert bool(kept.seen(order).all()) and not bool(kept.stale.any())
    assert kept.uses() == {IDS[k]: int((layout.concept == k).sum()) for k in range(3) if (layout.concept == k).any()}


def test_concepts_are_known_by_their_ids_wherever_they_stand_and_those_that_went_are_gone() -> None:
    kept = Kept(4, 3, 3)
    layout = some_layout(1, 4, 3, 3)
    kept.put([0, 1, 2, 3], layout, torch.zeros(4), IDS)
    back = kept.get([2, 0], (9, 11, 4), CPU)
    for row, image in enumerate((2, 0)):
        wanted = [(IDS[e[0]], *e[1:]) for e in elements(layout, image) if e[0] != 1]  # type: ignore[call-overload]
        assert [((9, 11, 4)[e[0]], *e[1:]) for e in elements(back, row)] == wanted  # type: ignore[call-overload]
    assert bool((kept.get([1], (), CPU).concept == -1).all())


def test_images_that_were_never_put_are_unseen_empty_and_stale() -> None:
    kept = Kept(3, 2, 1)
    kept.put([1], some_layout(0, 1, 2, 3, 1), torch.tensor([2.5]), IDS)
    assert kept.seen([0, 1, 2]).tolist() == [False, True, False]
    assert kept.stale.tolist() == [True, False, True]
    assert not bool(kept.get([0, 2], IDS, CPU).used.any())


def test_no_more_elements_are_kept_than_there_is_room_for_the_front_ones_first() -> None:
    kept = Kept(1, 2, 3)
    layout = some_layout(3, 1, 5, 3)
    layout.concept[0] = torch.tensor([-1, 2, 0, 1, 2])
    kept.put([0], layout, torch.zeros(1), IDS)
    assert elements(kept.get([0], IDS, CPU), 0) == elements(layout, 0)[:2]


def test_state_taken_up_is_the_same_and_no_longer_shared() -> None:
    kept, other = Kept(4, 3, 3), Kept(4, 3, 3)
    kept.put([0, 1, 2], some_layout(1, 3, 3, 3), torch.arange(3.0), IDS)
    other.resume(kept.state())
    for name, value in kept.state().items():
        assert torch.equal(value.nan_to_num(-1), other.state()[name].nan_to_num(-1)) and value.dtype == other.state()[name].dtype
    other.concept[0, 0] = 77
    assert kept.concept[0, 0] != 77


def lumps(rng: np.random.Generator, height: int, width: int) -> np.ndarray:
    """A smooth picture that is no image of itself, in the middle of a patch: resampled twice it hardly changes."""
    y, x = (np.mgrid[0:height, 0:width] + 0.5) - np.array([height, width])[:, None, None] / 2
    picture = np.zeros((height, width))
    for _ in range(4):
        u, v = rng.uniform(-4, 4, 2)
        picture += rng.uniform(0.3, 0.6) * np.exp(-((x - u) ** 2 + (y - v) ** 2) / 20)
    return picture / picture.max()


def seen_by(patch: np.ndarray, move: Move, height: int, width: int) -> np.ndarray:
    """The other concept's patch: what lies at b in it lies at (x, y) + scale R b in the old one, R counter-clockwise as seen."""
    y, x = (np.mgrid[0:height, 0:width] + 0.5) - np.array([height, width])[:, None, None] / 2
    cos, sin = math.cos(move.rotation) * math.exp(move.log_scale), math.sin(move.rotation) * math.exp(move.log_scale)
    u, v = move.x + cos * x + sin * y, move.y + cos * y - sin * x
    rows, columns = v + patch.shape[0] / 2 - 0.5, u + patch.shape[1] / 2 - 0.5
    return ndimage.map_coordinates(patch, [rows, columns], order=1, mode="constant")


def shown(kept: Kept, ids: tuple[int, ...], *patches: np.ndarray) -> np.ndarray:
    """The one element of each image, drawn: (images, 44, 44)."""
    packed = pack([Concept(id, np.ones((*patch.shape, 1)), patch.clip(0, 1)) for id, patch in zip(ids, patches, strict=True)])
    layout = kept.get(list(range(len(kept.energy))), ids, CPU)
    return sample(packed, layout.concept[:, 0], layout.pose[:, 0], 44, 44)[:, -1].numpy()


def with_elements(rng: np.random.Generator, count: int, id: int, scales: tuple[float, float] = (-0.2, 0.3)) -> Kept:
    pose = rng.uniform([16, 16, -4, scales[0], 0], [28, 28, 4, scales[1], 0], (count, 1, 5))
    pose[..., 4] = np.arange(count)[:, None] % 2
    kept = Kept(count, 1, 1)
    none = torch.full((count, 1), -1)
    layout = Layout(torch.zeros(count, 1, dtype=torch.long), torch.from_numpy(pose).float(), none, torch.ones(count, 1, 1))
    kept.put(list(range(count)), layout, torch.zeros(count), (id,))
    return kept


@settings(max_examples=30, deadline=None)
@given(st.integers(0, 10_000), st.floats(-3, 3), st.floats(-3, 3), st.floats(-3.2, 3.2), st.floats(-0.25, 0.25))
def test_elements_that_follow_show_what_they_showed_mirrored_ones_too(seed: int, x: float, y: float, turn: float, grow: float) -> None:
    rng = np.random.default_rng(seed)
    old, move = lumps(rng, 33, 31), Move(8, x, y, turn, grow)
    new = seen_by(old, move, 51, 53)
    kept = with_elements(rng, 6, 5)
    before = shown(kept, (5,), old)
    kept.follow({5: move})
    assert set(kept.concept.flatten().tolist()) == {8}
    after = shown(kept, (8,), new)
    # Twice between pixels: smoother by a little.
    assert np.abs(after - before).max() < 0.08


@pytest.mark.parametrize("mirror", [0, 1])
def test_whole_shifts_and_quarter_turns_follow_exactly(mirror: int) -> None:
    rng = np.random.default_rng(2)
    old = rng.random((9, 9))
    wide = np.pad(old, 6)
    for move, new in (
        (Move(8, 2.0, -1.0), np.roll(wide, (1, -2), (0, 1))),
        (Move(8, 0, 0, math.pi / 2), np.rot90(wide, -1)),
        (Move(8, 3.0, 2.0, math.pi), np.rot90(np.roll(wide, (-2, -3), (0, 1)), 2)),
    ):
        kept = with_elements(rng, 4, 5)
        kept.pose[..., 4] = mirror
        before = shown(kept, (5,), old)
        kept.follow({5: move})
        np.testing.assert_allclose(shown(kept, (8,), new), before, atol=2e-5)


@settings(deadline=None)
@given(st.integers(0, 10_000))
def test_one_move_after_another_is_both_at_once(seed: int) -> None:
    rng = np.random.default_rng(seed)
    first = Move(8, *rng.uniform(-3, 3, 3).tolist(), float(rng.uniform(-0.3, 0.3)))
    second = Move(9, *rng.uniform(-3, 3, 3).tolist(), float(rng.uniform(-0.3, 0.3)))
    apart, together = with_elements(np.random.default_rng(seed), 4, 5), with_elements(np.random.default_rng(seed), 4, 5)
    apart.follow({5: first})
    apart.follow({8: second})
    together.follow({5: first.then(second)})
    assert torch.equal(apart.concept, together.concept)
    torch.testing.assert_close(apart.pose, together.pose, atol=1e-4, rtol=1e-4)
    assert first.then(None) == first


def test_a_merger_takes_only_its_own_elements_along() -> None:
    rng = np.random.default_rng(0)
    layout = some_layout(4, 5, 3, 3, 1)
    kept = Kept(5, 3, 1)
    kept.put(list(range(5)), layout, torch.zeros(5), IDS)
    poses, concepts = kept.pose.clone(), kept.concept.clone()
    kept.follow({7: Move(4, 1.0, 2.0, float(rng.uniform(-1, 1)))})
    others = concepts != 7
    assert torch.equal(kept.pose[others], poses[others]) and torch.equal(kept.concept[others], concepts[others])
    assert bool((kept.concept[~others] == 4).all()) and not torch.equal(kept.pose[~others], poses[~others])
    assert not bool(kept.stale.any())


def test_elements_of_a_concept_that_went_are_gone_and_their_images_stale() -> None:
    kept = Kept(5, 3, 3)
    layout = some_layout(6, 5, 3, 3)
    kept.put(list(range(5)), layout, torch.zeros(5), IDS)
    held = (layout.concept == 1).any(1)
    assert bool(held.any()) and not bool(held.all())
    kept.follow({7: None})
    assert torch.equal(kept.stale, held)
    assert 7 not in kept.uses()
    back = kept.get(list(range(5)), IDS, CPU)
    for i in range(5):
        assert elements(back, i) == [e for e in elements(layout, i) if e[0] != 1]


def test_moves_of_one_evolution_happen_at_once() -> None:
    """As an evolution gives them: 5 is merged into 8, whose own patch is cut anew; both have one element."""
    kept = Kept(2, 1, 1)
    pose = torch.tensor([[[10.0, 10.0, 0.0, 0.0, 0.0]], [[20.0, 20.0, 0.0, 0.0, 0.0]]])
    kept.put([0, 1], Layout(torch.tensor([[0], [1]]), pose, torch.full((2, 1), -1), torch.ones(2, 1, 1)), torch.zeros(2), (5, 8))
    anew = Move(8, 3.0, 0.0)
    kept.follow({5: Move(8).then(anew), 8: anew})
    assert kept.pose[:, 0, 0].tolist() == [13.0, 23.0]
