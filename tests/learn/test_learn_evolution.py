"""Evolution: the paper's thresholds counted by hand; what pays, on scenes whose concepts are known."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest
import torch
from PIL import Image, ImageDraw

from drawn import Placed, coverage
from pictolex.learn import Run, learn
from pictolex.learn.evolution import Evolved, Surroundings, create_evolution
from pictolex.learn.evolution.census import rendered, take_census
from pictolex.learn.kept import Kept
from pictolex.model import Background, Concept, Dictionary
from pictolex.settings import Settings
from pictolex.sources import open_source

CPU = torch.device("cpu")
SIDE = 6
Elements = Sequence[Sequence[tuple[int, float, float]]]


def around(images: np.ndarray, evolution: dict[str, Any], frozen: Sequence[int] = (), **values: Any) -> Surroundings:
    learning = {"concepts": 8, "concept_size": 17, "epochs": 10} | values.pop("learning", {})
    settings = Settings.model_validate({"layers": 4, "price": 2.0, "learning": learning, "evolution": evolution} | values)
    return Surroundings(settings, open_source(images), CPU, None, frozenset(frozen))


def keep(found: Elements, ids: Sequence[int], slots: int = 4, channels: int = 1) -> Kept:
    """Unturned elements (id, x, y) of all images, put as they are found."""
    from pictolex.decompose import Layout

    concept = torch.full((len(found), slots), -1)
    pose = torch.zeros(len(found), slots, 5)
    for i, image in enumerate(found):
        for k, (id, x, y) in enumerate(image):
            concept[i, k] = list(ids).index(id)
            pose[i, k, :2] = torch.tensor([x, y])
    kept = Kept(len(found), slots, channels)
    layout = Layout(concept, pose, torch.full_like(concept, -1), torch.ones(*concept.shape, channels))
    kept.put(range(len(found)), layout, torch.ones(len(found)), ids)
    return kept


def decomposed(scene: Surroundings, dictionary: Dictionary) -> Kept:
    """The elements of all images, searched."""
    engine = scene.engine(dictionary)
    kept = Kept(len(scene.source), scene.settings.layers, 1)
    with torch.inference_mode():
        for batch in scene.read(range(len(scene.source)), engine):
            problem, layout = engine.layout(batch.image, batch.weight)
            stage = engine.ready(1)[0]
            error = stage.error(problem, stage.layers(layout, *batch.image.shape[-2:]))
            kept.put(batch.index, layout.clone(), (error + scene.settings.price * layout.count).clone(), dictionary.ids)
    return kept


def error_of(scene: Surroundings, dictionary: Dictionary, kept: Kept) -> float:
    """Squared error of all images with the elements that are kept."""
    engine, total = scene.engine(dictionary), 0.0
    for problem, _, layers in rendered(scene, engine, kept, list(range(len(scene.source)))):
        total += float(engine.ready(1)[0].error(problem, layers).sum())
    return total


def evolve(scene: Surroundings, dictionary: Dictionary, kept: Kept, epoch: int = 1) -> Evolved:
    """One evolution; elements follow."""
    found = create_evolution(scene).evolve(epoch, dictionary, kept)
    kept.follow(found.moves)
    assert set(kept.uses()) <= set(found.dictionary.ids)
    return found


def assert_told(before: Dictionary, after: Dictionary) -> None:
    """Every change is in the lineage with its figures, and ids are new."""
    events = [event for event in after.lineage.events[len(before.lineage) :] if event.kind != "given"]
    # What is never seen fits neither well nor badly: its quality alone may be no number.
    assert all(event.figures and all(math.isfinite(v) for name, v in event.figures.items() if name != "quality") for event in events)
    ids = set(before.ids)
    for event in events:
        if event.kind in ("born", "split"):
            assert event.concept >= before.next_id and event.concept not in ids
            ids.add(event.concept)
        gone = {"removed": {event.concept}, "merged": set(event.parents) - {event.concept}, "split": set(event.parents), "born": set()}
        ids -= gone[event.kind]
    assert ids == set(after.ids) and after.next_id > max(before.next_id - 1, *after.ids)


# --- the paper's -----------------------------------------------------------------------------------------------------------


def opaque(*ids: int, background: Background | None = None) -> Dictionary:
    """White squares that are opaque throughout."""
    concepts = tuple(Concept(id, np.ones((SIDE, SIDE, 1)), np.ones((SIDE, SIDE))) for id in ids)
    return Dictionary(concepts, background=background or Background("none"))


def correlation(seen: np.ndarray) -> float:
    """Of what is seen with the white square that it is rebuilt as."""
    return float(seen.sum() / math.sqrt(np.square(seen).sum() * seen.size))


def striped(dark: float) -> np.ndarray:
    """A square with two darker rows."""
    seen = np.ones((SIDE, SIDE))
    seen[:2] = dark
    return seen


# Four elements an image, eight images, four concepts: the fair part is eight uses, a quarter of it two.
USES = {2: 1, 5: 2, 6: 3, 7: 7}
POOR, FAIR = striped(0.05), striped(0.5)


def counted(looks: dict[int, np.ndarray], uses: dict[int, int]) -> tuple[np.ndarray, Elements]:
    """Eight images in which each concept is used so often, where the image looks so."""
    images, found = np.zeros((8, 20, 20)), [[] for _ in range(8)]  # type: ignore[var-annotated]
    places = [(k // 2, x, y) for k in range(16) for x, y in (((4, 4), (12, 4)) if k % 2 else ((4, 12), (12, 12)))]
    at = iter(places)
    for id, count in uses.items():
        for _ in range(count):
            i, x, y = next(at)
            images[i, y - 3 : y + 3, x - 3 : x + 3] = looks.get(id, np.ones((SIDE, SIDE)))
            found[i].append((id, x, y))
    return images.astype(np.float32), found


def paper(**more: Any) -> dict[str, Any]:
    return {"kind": "paper", **more}


def test_the_census_is_what_is_counted_and_computed_by_hand() -> None:
    images, found = counted({6: POOR, 7: FAIR}, USES)
    census = take_census(around(images, paper()), opaque(*USES), keep(found, tuple(USES)))
    assert census.images == 8
    for id, look in {2: np.ones((SIDE, SIDE)), 5: np.ones((SIDE, SIDE)), 6: POOR, 7: FAIR}.items():
        member = census.members[id]
        assert member.uses == USES[id]
        assert member.quality == pytest.approx(correlation(look), abs=1e-5)
        saved = np.square(look).sum() - np.square(look - 1).sum()
        assert member.gain == pytest.approx(USES[id] * saved, rel=1e-4)


def test_quality_is_that_of_what_can_be_seen() -> None:
    """An element that hides half of another; what is hidden altogether has no quality."""
    images = np.zeros((1, 20, 20), np.float32)
    images[0, 4:10, 4:10], images[0, 4:10, 10:13] = 1, 0.5
    kept = keep([[(1, 7, 7), (2, 10, 7), (3, 7, 7)]], (1, 2, 3))
    members = take_census(around(images, paper()), opaque(1, 2, 3), kept).members
    assert members[1].quality == pytest.approx(1) and math.isnan(members[3].quality)
    assert members[2].quality == pytest.approx(1, abs=1e-5)
    assert members[2].gain == pytest.approx(18 * 0.25 - 18 * 0.25, abs=1e-4) and members[3].gain == pytest.approx(0, abs=1e-4)
    assert [members[k].uses for k in (1, 2, 3)] == [1, 1, 1]


@pytest.mark.parametrize("background", [Background("none"), Background("plain", np.zeros(1))])
def test_the_papers_thresholds(background: Background) -> None:
    """Less than two uses: removed. Exactly two: neither. More, and a correlation below 0.95: split. The background is no concept."""
    assert correlation(POOR) < 0.95 < correlation(FAIR)
    images, found = counted({2: POOR, 5: POOR, 6: POOR, 7: FAIR}, USES)
    start = opaque(*USES, background=background)
    kept = keep(found, tuple(USES))
    scene = around(images, paper(), background={"kind": background.kind})
    done = evolve(scene, start, kept)
    assert done.dictionary.ids == (5, 8, 9, 7)
    assert_told(start, done.dictionary)
    kinds = [(e.kind, e.concept, e.parents) for e in done.dictionary.lineage]
    assert kinds == [("removed", 2, ()), ("split", 8, (6,)), ("split", 9, (6,))]
    removed, child, _ = done.dictionary.lineage
    assert removed.figures["uses"] == 1 and removed.figures["threshold"] == 2
    assert child.figures["quality"] == pytest.approx(correlation(POOR), abs=1e-5) and child.figures["uses"] == 3
    for id in (8, 9):
        assert np.array_equal(done.dictionary[id].alpha, start[6].alpha)
    assert kept.uses() == {5: 2, 7: 7}
    assert kept.stale.tolist() == [any(e[0] in (2, 6) for e in image) for image in found]


def test_the_threshold_of_quality_is_where_the_setting_says() -> None:
    images, found = counted({7: FAIR, 6: POOR}, {7: 8, 6: 8})
    for quality, split in ((correlation(FAIR) - 0.001, {6}), (correlation(FAIR) + 0.001, {6, 7}), (correlation(POOR) - 0.001, set())):
        done = evolve(around(images, paper(quality=quality)), opaque(6, 7), keep(found, (6, 7)))
        assert {e.parents[0] for e in done.dictionary.lineage if e.kind == "split"} == split


@pytest.mark.parametrize("uses,goes", [(3, True), (4, False), (5, False)])
def test_the_fair_part_depends_on_images_layers_and_concepts_alone(uses: int, goes: bool) -> None:
    """Two concepts: 0.25 * 4 * 8 / 2 = 4 uses are enough."""
    images, found = counted({}, {1: uses, 2: 20})
    done = evolve(around(images, paper()), opaque(1, 2), keep(found, (1, 2)))
    assert (1 not in done.dictionary) is goes


def test_no_more_concepts_than_the_settings_allow_and_the_worst_are_split_first() -> None:
    looks = {1: striped(0.1), 2: striped(0.0), 3: striped(0.05)}
    images, found = counted(looks, {1: 8, 2: 8, 3: 8})
    for most, split in ((3, []), (4, [2]), (5, [2, 3]), (6, [1, 2, 3])):
        done = evolve(around(images, paper(), learning={"concepts": most}), opaque(1, 2, 3), keep(found, (1, 2, 3)))
        assert sorted({e.parents[0] for e in done.dictionary.lineage}) == split
        assert len(done.dictionary) == 3 + len(split)


def test_what_is_removed_makes_room() -> None:
    images, found = counted({2: POOR}, {1: 1, 2: 20})
    done = evolve(around(images, paper(), learning={"concepts": 2}), opaque(1, 2), keep(found, (1, 2)))
    assert done.dictionary.ids == (3, 4)


def test_one_concept_stays_though_nothing_is_used() -> None:
    images, found = counted({}, {1: 1, 2: 2})
    done = evolve(around(images, paper()), opaque(1, 2, 3), keep(found, (1, 2, 3)))
    assert done.dictionary.ids == (2,)


def test_the_paper_evolves_neither_after_the_last_epoch_nor_between() -> None:
    images, found = counted({6: POOR}, USES)
    for epoch, every, changed in ((10, 1, False), (9, 1, True), (3, 2, False), (4, 2, True)):
        done = evolve(around(images, paper(every=every)), opaque(*USES), keep(found, tuple(USES)), epoch)
        assert (len(done.dictionary.lineage) > 0) is changed and done.changed is changed


def test_the_loop_is_told_of_a_removal_alone() -> None:
    images, found = counted({}, {1: 1, 2: 20})
    done = evolve(around(images, paper()), opaque(1, 2), keep(found, (1, 2)))
    assert done.dictionary.ids == (2,) and done.changed


def test_the_loop_removes_what_the_paper_removes() -> None:
    nowhere = np.zeros((15, 15))
    nowhere[::2, ::2] = 1
    init = Dictionary((alone(ring, 2), alone(plus, 4), Concept(5, np.ones((15, 15, 1)), nowhere)))
    run = learned(lettered((ring, plus), 16), init, 3, evolution={"kind": "paper", "quality": 0.5})
    assert run.dictionary.ids == (2, 4)


@pytest.mark.parametrize("kind", ["paper", "pays"])
def test_frozen_concepts_are_neither_removed_nor_split_nor_merged(kind: str) -> None:
    images, found = counted({2: POOR, 5: POOR, 6: POOR, 7: FAIR}, USES)
    start = opaque(*USES)
    done = evolve(around(images, {"kind": kind}, frozen=tuple(USES)), start, keep(found, tuple(USES)))
    assert done.dictionary.ids[:4] == start.ids
    for concept in start:
        assert done.dictionary[concept.id] is concept


def test_no_evolution_changes_nothing() -> None:
    images, found = counted({6: POOR}, USES)
    start = opaque(*USES)
    done = evolve(around(images, {"kind": "none"}), start, keep(found, tuple(USES)))
    assert done.dictionary is start and not done.changed and not done.moves


# --- what pays -------------------------------------------------------------------------------------------------------------

PAYS = {"kind": "pays"}
TURNING = {"placement": {"rotations": 24, "continuous": True}, "formation": {"kind": "alpha", "sharpness": 1.5}}


def patch(id: int, kind: str, turn: float = 0.0, side: int = 21, scale: float = 0.7) -> Concept:
    return Concept(id, np.ones((side, side, 1)), coverage(Placed(kind, side / 2, side / 2, turn, scale), side, side))


def scattered(count: int, kinds: Sequence[str], turned: bool = True, seed: int = 0) -> np.ndarray:
    """Two of Pillow's shapes an image, apart from each other."""
    rng = np.random.default_rng(seed)
    images = []
    for _ in range(count):
        image = np.zeros((24, 44), np.float32)
        for x in (11, 33):
            turn = float(rng.uniform(0, 2 * math.pi)) if turned else 0.0
            at = (rng.integers(-1, 2, 2) + 0.5) if not turned else rng.uniform(-1, 1, 2)
            image += coverage(Placed(str(rng.choice(list(kinds))), x + at[0], 12 + at[1], turn, 0.7), 24, 44)
        images.append(image)
    return np.stack(images)


@pytest.mark.parametrize("seed", range(2))
def test_two_concepts_that_are_one_but_for_a_turn_are_merged_and_elements_follow(seed: int) -> None:
    scene = around(scattered(20, ("wedge",), seed=seed), PAYS, layers=2, **TURNING)
    start = Dictionary((patch(3, "wedge"), patch(8, "wedge", 1.1), patch(9, "bar")))
    kept = decomposed(scene, start)
    uses = kept.uses()
    assert min(uses[3], uses[8]) >= 3
    before = error_of(scene, start, kept)
    done = evolve(scene, start, kept)
    stays, goes = (3, 8) if uses[3] >= uses[8] else (8, 3)
    assert done.dictionary.ids == (stays,)
    assert_told(start, done.dictionary)
    merged = next(e for e in done.dictionary.lineage if e.kind == "merged")
    assert merged.concept == stays and set(merged.parents) == {stays, goes}
    assert 0 <= merged.figures["loses_each"] < merged.figures["allowed"] and merged.figures["uses"] == uses[goes]
    assert kept.uses() == {stays: sum(uses[id] for id in (3, 8))}
    # What resampling a patch once more blurs, no more.
    assert error_of(scene, done.dictionary, kept) < before + merged.figures["allowed"] * uses[goes]


def test_concepts_that_differ_are_not_merged() -> None:
    scene = around(scattered(20, ("wedge", "ell")), PAYS, layers=2, **TURNING)
    start = Dictionary((patch(3, "wedge"), patch(8, "ell")))
    done = evolve(scene, start, decomposed(scene, start))
    assert done.dictionary.ids == start.ids and not done.dictionary.lineage.events


def test_a_turned_double_is_another_concept_where_nothing_turns() -> None:
    images = np.stack([scattered(20, ("wedge",), turned=False)[i][:, :: (-1 if i % 2 else 1)] for i in range(20)])
    scene = around(images, PAYS, layers=2)
    flipped = patch(3, "wedge")
    start = Dictionary((flipped, Concept(8, flipped.shape, flipped.alpha[:, ::-1])))
    done = evolve(scene, start, decomposed(scene, start))
    assert done.dictionary.ids == (3, 8)


def test_a_shifted_double_is_merged_where_nothing_turns_and_its_elements_stay_where_they_were_seen() -> None:
    images = scattered(20, ("wedge",), turned=False)
    scene = around(images, PAYS, layers=2)
    one = patch(3, "wedge")
    start = Dictionary((one, Concept(8, one.shape, np.roll(one.alpha, (2, -1), (0, 1)))))
    ids = np.random.default_rng(0).integers(0, 2, (20, 2))
    found = decomposed(scene, Dictionary((one,)))
    places = [
        [
            (3, *found.pose[i, k, :2].tolist()) if ids[i, k] else (8, *(found.pose[i, k, :2] + torch.tensor([1.0, -2.0])).tolist())
            for k in range(2)
        ]
        for i in range(20)
    ]
    kept = keep(places, (3, 8), 2)
    before = error_of(scene, start, kept)
    assert before < 1
    done = evolve(scene, start, kept)
    assert len(done.dictionary) == 1
    assert error_of(scene, done.dictionary, kept) < before + 0.5


def test_what_saves_less_than_it_costs_is_removed_and_the_best_stays_whatever_it_saves() -> None:
    images = scattered(16, ("wedge",), turned=False)
    start = Dictionary((patch(1, "wedge"), patch(2, "ell"), patch(4, "bar")))
    scene = around(images, PAYS, layers=2)
    done = evolve(scene, start, decomposed(scene, start))
    assert done.dictionary.ids == (1,)
    assert_told(start, done.dictionary)
    for event in done.dictionary.lineage:
        assert event.kind == "removed" and event.figures["saves"] < event.figures["costs"]
        assert event.figures["costs"] >= 4 * 2.0
    nothing = around(np.zeros((4, 20, 40), np.float32), PAYS, layers=2)
    assert len(evolve(nothing, start, decomposed(nothing, start)).dictionary) == 1


@pytest.mark.parametrize("uses,stays", [(1, False), (6, True)])
def test_a_concept_must_save_its_worth_beside_its_elements(uses: int, stays: bool) -> None:
    """A square of 36 pixels that each of its elements saves whole: 36 u > 2 u + worth * 2 with a worth of 30 prices is u > 1.8."""
    images, found = counted({}, {1: uses, 2: 20})
    images[:, 0, 0] = 0
    scene = around(images, {"kind": "pays", "worth": 30.0})
    other = Concept(1, np.ones((SIDE, SIDE, 1)), np.ones((SIDE, SIDE)))
    unlike = np.ones((SIDE, SIDE))
    unlike[0, 0] = 0
    start = Dictionary((other, Concept(2, np.ones((SIDE, SIDE, 1)), unlike)))
    census = take_census(scene, start, keep(found, (1, 2)))
    assert census.members[1].gain == pytest.approx(36 * uses, rel=1e-5)
    done = create_evolution(scene).evolve(1, start, keep(found, (1, 2)))
    removed = [e.concept for e in done.dictionary.lineage if e.kind == "removed"]
    assert (removed == []) is stays


def lettered(kinds: Sequence[Callable[[ImageDraw.ImageDraw, int, int], None]], count: int, seed: int = 0) -> np.ndarray:
    """Two white figures an image at whole places."""
    rng = np.random.default_rng(seed)
    images = []
    for i in range(count):
        image = Image.new("L", (40, 22))
        for k, x in enumerate((10, 30)):
            kinds[(i + k * (i // 2)) % len(kinds)](ImageDraw.Draw(image), x + int(rng.integers(-3, 4)), 11 + int(rng.integers(-3, 4)))
        images.append(np.array(image))
    return np.stack(images)


def ring(draw: ImageDraw.ImageDraw, x: int, y: int) -> None:
    draw.ellipse((x - 5, y - 5, x + 5, y + 5), outline=255, width=2)


def cup(draw: ImageDraw.ImageDraw, x: int, y: int) -> None:
    """A box with a bar to the right of its middle."""
    draw.rectangle((x - 5, y - 5, x + 5, y + 5), outline=255, width=2)
    draw.rectangle((x + 1, y - 3, x + 3, y + 3), fill=255)


def can(draw: ImageDraw.ImageDraw, x: int, y: int) -> None:
    """The same box with the bar to the left of its middle."""
    draw.rectangle((x - 5, y - 5, x + 5, y + 5), outline=255, width=2)
    draw.rectangle((x - 3, y - 3, x - 1, y + 3), fill=255)


def plus(draw: ImageDraw.ImageDraw, x: int, y: int) -> None:
    draw.rectangle((x - 5, y - 1, x + 5, y + 1), fill=255)
    draw.rectangle((x - 1, y - 5, x + 1, y + 5), fill=255)


def alone(draw_one: Callable[[ImageDraw.ImageDraw, int, int], None], id: int = 0, side: int = 15) -> Concept:
    image = Image.new("L", (side, side))
    draw_one(ImageDraw.Draw(image), side // 2, side // 2)
    return Concept(id, np.ones((side, side, 1)), np.array(image) / 255)


def apart(found: Dictionary, truth: Sequence[Concept]) -> list[float]:
    """Of each true concept, the mean difference from the nearest found, the patches' middles together."""
    distances = []
    for concept in truth:
        best = 1.0
        for one in found:
            wide = np.zeros((2, 31, 31))
            for k, c in enumerate((one, concept)):
                top, left = (31 - c.height) // 2, (31 - c.width) // 2
                wide[k, top : top + c.height, left : left + c.width] = c.shape[..., 0] * c.alpha
            for dy, dx in np.ndindex(3, 3):
                best = min(best, float(np.abs(np.roll(wide[0], (dy - 1, dx - 1), (0, 1)) - wide[1]).sum() / wide[1].sum()))
        distances.append(best)
    return distances


def learned(images: np.ndarray, init: Dictionary, epochs: int, **values: Any) -> Run:
    learning = {"concepts": 4, "concept_size": 15, "epochs": epochs, "group": 16}
    settings = Settings.model_validate({"layers": 2, "price": 1.0, "learning": learning} | values)
    run = learn(images, settings=settings, init=init)
    assert_told(init, run.dictionary)
    return run


def changes(run: Run) -> list[str]:
    return [event.kind for event in run.lineage if event.kind not in ("given", "frozen")]


def test_a_concept_that_averages_two_shapes_is_split_and_each_child_becomes_one_of_them() -> None:
    images = lettered((cup, can), 24)
    both = Concept(5, np.ones((15, 15, 1)), (alone(cup).alpha + alone(can).alpha) / 2)
    run = learned(images, Dictionary((both,)), 4)
    children = [e for e in run.lineage if e.kind == "split"]
    assert [e.parents for e in children] == [(5,), (5,)]
    assert children[0].figures["saves"] > children[0].figures["costs"] and children[0].figures["uses"] >= 40
    assert len(run.dictionary) == 2 and max(apart(run.dictionary, (alone(cup), alone(can)))) < 0.03
    assert run.elements is not None and float(np.max(run.elements.images["error"])) < 0.5


def test_a_concept_of_one_shape_is_not_split_though_images_are_noisy() -> None:
    noisy = lettered((cup,), 24) / 255 + 0.05 * np.random.default_rng(0).standard_normal((24, 22, 40))
    run = learned(noisy.clip(0, 1).astype(np.float32), Dictionary((alone(cup, 5),)), 3)
    assert run.dictionary.ids == (5,) and changes(run) == []


def test_a_shape_that_is_missing_is_born_from_what_is_left_over_and_pays() -> None:
    images = lettered((ring, plus), 24)
    run = learned(images, Dictionary((alone(ring, 5),)), 3)
    born = [e for e in run.lineage if e.kind == "born"]
    assert born and all(e.figures["saves"] > e.figures["costs"] for e in born)
    stayed = Dictionary(tuple(run.dictionary[e.concept] for e in born if e.concept in run.dictionary))
    assert len(run.dictionary) == 2 and apart(stayed, (alone(plus),))[0] < 0.03
    assert max(apart(run.dictionary, (alone(ring), alone(plus)))) < 0.03
    assert run.elements is not None and float(np.mean(run.elements.images["error"])) < 0.5


@pytest.mark.parametrize("grey,behind", [(0.0, 1.0), (0.4, 0.0), (0.3, 0.8)])
def test_a_grey_or_black_shape_that_is_missing_is_born_grey_or_black(grey: float, behind: float) -> None:
    white = lettered((ring, plus), 20) / 255
    images = (white * grey + (1 - white) * behind).astype(np.float32)
    known = Concept(5, np.full((15, 15, 1), grey), alone(ring).alpha)
    init = Dictionary((known,), background=Background("plain", np.full(1, behind)))
    run = learned(images, init, 3, background={"kind": "plain"}, price=(grey - behind) ** 2)
    born = [run.dictionary[e.concept] for e in run.lineage if e.kind == "born" and e.concept in run.dictionary]
    assert born and len(run.dictionary) == 2
    for concept in run.dictionary:
        np.testing.assert_allclose(concept.shape[concept.alpha > 0.9], grey, atol=0.04)


def test_two_shapes_that_are_missing_are_born_as_far_as_there_is_room() -> None:
    images = lettered((ring, cup, plus), 30)
    learning = {"concept_size": 15, "epochs": 3, "group": 16}
    for most in (2, 4):
        run = learned(images, Dictionary((alone(ring, 5),)), 3, learning=learning | {"concepts": most})
        assert len(run.dictionary) == min(most, 3)


@pytest.mark.parametrize("seed", range(3))
def test_nothing_is_born_from_noise(seed: int) -> None:
    rng = np.random.default_rng(seed)
    images = lettered((ring,), 20) / 255 * 0.8 + 0.1 * rng.standard_normal((20, 22, 40))
    run = learned(images.clip(0, 1).astype(np.float32), Dictionary((alone(ring, 5),)), 3)
    assert not [e for e in run.lineage if e.kind in ("born", "split")]
    assert run.dictionary.ids == (5,)


@pytest.mark.parametrize("worth,born", [(4.0, True), (5000.0, False)])
def test_what_recurs_but_does_not_save_what_a_concept_costs_is_not_born(worth: float, born: bool) -> None:
    init = Dictionary((alone(ring, 5),))
    run = learned(lettered((ring, plus), 16), init, 2, evolution={"kind": "pays", "worth": worth})
    assert ("born" in changes(run)) is born


def test_nothing_new_comes_after_the_last_epoch() -> None:
    run = learned(lettered((ring, plus), 16), Dictionary((alone(ring, 5),)), 1)
    assert run.dictionary.ids == (5,) and changes(run) == []


def test_what_is_frozen_stays_bit_for_bit_while_others_come_and_go() -> None:
    images = lettered((ring, plus), 24)
    init = Dictionary((alone(ring, 5), alone(can, 6)))
    learning = {"concepts": 4, "concept_size": 15, "epochs": 3, "group": 16}
    run = learn(images, settings=Settings.model_validate({"layers": 2, "price": 1.0, "learning": learning}), init=init, freeze=True)
    for id in (5, 6):
        assert np.array_equal(run.dictionary[id].alpha, init[id].alpha) and np.array_equal(run.dictionary[id].shape, init[id].shape)
    assert changes(run) == ["born"]


def test_ids_are_never_given_twice_whatever_comes_and_goes() -> None:
    images = lettered((ring, cup, can), 24)
    start = Dictionary((alone(ring, 0), alone(ring, 1), Concept(2, np.ones((15, 15, 1)), np.full((15, 15), 0.5))), next_id=40)
    run = learned(images, start, 4)
    given = [e.concept for e in run.lineage if e.kind in ("born", "split")]
    assert given and len(set(given)) == len(given) and min(given) >= 40


def test_patches_are_shown_upright_and_cut_to_what_they_show_and_elements_follow() -> None:
    """A tilted square in a patch much too large, not in its middle."""
    rng = np.random.default_rng(0)
    images = np.stack([coverage(Placed("square", *rng.uniform(14, 22, 2), rng.uniform(0, 6), 0.9), 36, 36) for _ in range(16)])
    scene = around(images, PAYS, layers=1, **TURNING)
    start = Dictionary((Concept(3, np.ones((29, 27, 1)), coverage(Placed("square", 11, 16, 0.12, 0.9), 29, 27)),))
    kept = decomposed(scene, start)
    before = error_of(scene, start, kept)
    done = evolve(scene, start, kept)
    after = done.dictionary[3]
    assert max(after.alpha.shape) < 18
    # Upright it fills its box.
    rows, columns = (after.alpha > 0.5).nonzero()
    assert after.alpha.sum() > 0.93 * (np.ptp(rows) + 1) * (np.ptp(columns) + 1) > 0.93 * 60
    rows, columns = (start[3].alpha > 0.5).nonzero()
    assert start[3].alpha.sum() < 0.85 * (np.ptp(rows) + 1) * (np.ptp(columns) + 1)
    middle = (np.indices(after.alpha.shape) + 0.5).reshape(2, -1) @ after.alpha.ravel() / after.alpha.sum()
    np.testing.assert_allclose(middle, np.array(after.alpha.shape) / 2, atol=0.6)
    assert error_of(scene, done.dictionary, kept) < before + 0.02 * np.square(images).sum()


def test_concepts_of_large_images_stay() -> None:
    images = lettered((ring, cup), 16)
    init = Dictionary((alone(ring, 5), alone(cup, 6)))
    run = learned(images, init, 1, tile=24)
    assert run.dictionary.ids == (5, 6)
