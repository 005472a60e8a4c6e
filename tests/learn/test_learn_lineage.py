"""The lineage tells all: from its events alone the concepts of every stage of the history can be named; the same seed, the same story."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import safetensors.numpy
from PIL import Image, ImageDraw

from pictolex.errors import InputError
from pictolex.learn import Run, learn
from pictolex.model import Concept, Dictionary, Event, Lineage
from pictolex.settings import Settings

EVOLUTIONS = {"none": {"kind": "none"}, "pays": {"kind": "pays"}, "paper": {"kind": "paper", "often": 0.6, "quality": 0.995}}
Figure = Callable[[ImageDraw.ImageDraw, int, int], None]


def ring(draw: ImageDraw.ImageDraw, x: int, y: int) -> None:
    draw.ellipse((x - 5, y - 5, x + 5, y + 5), outline=255, width=2)


def plus(draw: ImageDraw.ImageDraw, x: int, y: int) -> None:
    draw.rectangle((x - 5, y - 1, x + 5, y + 1), fill=255)
    draw.rectangle((x - 1, y - 5, x + 1, y + 5), fill=255)


def box(draw: ImageDraw.ImageDraw, x: int, y: int) -> None:
    draw.rectangle((x - 4, y - 5, x + 4, y + 5), outline=255, width=2)
    draw.rectangle((x - 2, y + 1, x + 2, y + 3), fill=255)


def scenes(count: int, figures: tuple[Figure, ...] = (ring, plus, box), seed: int = 0) -> np.ndarray:
    """Two white figures an image at whole places, in turn."""
    rng = np.random.default_rng(seed)
    images = []
    for i in range(count):
        image = Image.new("L", (40, 22))
        for k, x in enumerate((10, 30)):
            figure = figures[(2 * i + k) % len(figures)]
            figure(ImageDraw.Draw(image), x + int(rng.integers(-3, 4)), 11 + int(rng.integers(-3, 4)))
        images.append(np.array(image))
    return np.stack(images)


def alone(figure: Figure, id: int = 0, side: int = 15) -> Concept:
    image = Image.new("L", (side, side))
    figure(ImageDraw.Draw(image), side // 2, side // 2)
    return Concept(id, np.ones((side, side, 1)), np.array(image) / 255)


def small(evolution: str = "pays", **values: Any) -> Settings:
    learning = {"concepts": 5, "concept_size": 15, "epochs": 3, "group": 12} | values.pop("learning", {})
    return Settings.model_validate({"layers": 2, "price": 1.0, "learning": learning, "evolution": EVOLUTIONS[evolution]} | values)


def replayed(events: Iterable[Event], until: float) -> set[int]:
    """The ids that there are after an epoch, from the events alone; each has to be possible when it happens."""
    ids: set[int] = set()
    for event in events:
        if event.epoch > until:
            continue
        if event.kind in ("born", "given", "frozen"):
            assert event.concept not in ids
            ids.add(event.concept)
        elif event.kind == "removed":
            ids.remove(event.concept)
        elif event.kind == "merged":
            assert event.concept in ids
            ids -= set(event.parents) - {event.concept}
        elif event.kind == "split":
            ids -= set(event.parents)
            ids.add(event.concept)
        else:
            raise AssertionError(event.kind)
    return ids


def stages(folder: Path) -> list[tuple[int, int, set[int], dict[str, np.ndarray]]]:
    """Epoch, group, ids and tensors of every file of the history, read by safetensors itself."""
    found = []
    for path in sorted((folder / "history").glob("*.safetensors")):
        data = path.read_bytes()
        header = json.loads(data[8 : 8 + int.from_bytes(data[:8], "little")])
        content = json.loads(header["__metadata__"]["pictolex"])
        tensors = safetensors.numpy.load(data)
        ids = {concept["id"] for concept in content["concepts"]}
        assert ids == {int(name.split(".")[1]) for name in tensors if name.startswith("concept.")}
        assert path.stem == f"{content['epoch']:06d}-{content['group']:06d}"
        found.append((content["epoch"], content["group"], ids, tensors))
    return found


def confused() -> Dictionary:
    """A ring twice, something that is nowhere, and the mean of two others: there is much to mend."""
    mean = (alone(plus).alpha + alone(box).alpha) / 2
    nowhere = np.zeros((15, 15))
    nowhere[::2, ::2] = 1
    white = np.ones((15, 15, 1))
    return Dictionary((alone(ring, 2), alone(ring, 4), Concept(5, white, nowhere), Concept(9, white, mean)))


@pytest.mark.parametrize(
    "evolution,init,figures",
    [
        ("pays", None, (ring, plus, box)),
        ("pays", confused, (ring, plus, box)),
        ("paper", confused, (ring, plus, box)),
        ("none", None, (ring,)),
    ],
)
def test_the_concepts_of_every_stage_follow_from_the_events(
    tmp_path: Path, evolution: str, init: Callable[[], Dictionary] | None, figures: tuple[Figure, ...]
) -> None:
    run = learn(scenes(20 if init else 9, figures), settings=small(evolution), out=tmp_path / "run", init=None if init is None else init())
    lineage = Lineage.load(tmp_path / "run" / "lineage.json")
    assert lineage.to_json() == run.lineage.to_json()
    kept = stages(tmp_path / "run")
    assert [epoch for epoch, group, _, _ in kept if group == 0] == [0, 1, 2, 3]
    for epoch, _, ids, _ in kept:
        assert replayed(lineage, epoch) == ids
    assert replayed(lineage, 3) == set(run.dictionary.ids)
    kinds = {event.kind for event in lineage}
    if init is not None:
        assert kinds >= ({"split", "removed"} if evolution == "paper" else {"removed"}), kinds
    assert all(event.figures for event in lineage if event.kind != "given")
    epochs = [event.epoch for event in lineage]
    assert epochs == sorted(epochs) and all(epoch == int(epoch) for epoch in epochs)


def test_the_history_shows_elements_of_the_first_images_by_the_ids_of_that_time(tmp_path: Path) -> None:
    learn(scenes(16), settings=small(learning={"fixed_images": 3}), out=tmp_path / "run", init=confused())
    for epoch, _, ids, tensors in stages(tmp_path / "run"):
        concept = tensors["elements.concept"]
        assert concept.shape[0] == 3 and set(concept.ravel().tolist()) <= ids | {-1}
        assert tensors["elements.pose"].shape == (*concept.shape, 5)
        assert bool((concept >= 0).any()) is (epoch > 0)
    # The last stage is the dictionary that was kept.
    last = stages(tmp_path / "run")[-1][3]
    for concept in Run.open(tmp_path / "run").dictionary:
        assert np.array_equal(last[f"concept.{concept.id}.alpha"], concept.alpha)


def test_no_history_of_images_where_none_is_wanted(tmp_path: Path) -> None:
    learn(scenes(4), settings=small(learning={"fixed_images": 0, "epochs": 1}), out=tmp_path / "run", init=confused())
    assert not [name for _, _, _, tensors in stages(tmp_path / "run") for name in tensors if name.startswith("elements")]


def same(one: Run, other: Run) -> None:
    assert one.dictionary.ids == other.dictionary.ids and one.lineage.to_json() == other.lineage.to_json()
    for mine, theirs in zip(one.dictionary, other.dictionary, strict=True):
        assert np.array_equal(mine.shape, theirs.shape) and np.array_equal(mine.alpha, theirs.alpha)
    assert one.elements is not None and other.elements is not None
    assert np.array_equal(one.elements.images["error"], other.elements.images["error"])


@pytest.mark.parametrize("evolution", ["pays", "paper"])
def test_the_same_seed_tells_the_same_story_whatever_the_workers(evolution: str) -> None:
    images = scenes(20)
    runs = [learn(images, settings=small(evolution, workers=workers), init=confused()) for workers in (1, 2)]
    assert len({event.kind for event in runs[0].lineage}) > 1
    same(*runs)


def test_other_images_before_it_do_not_change_a_run() -> None:
    images = scenes(12)
    first = learn(images, settings=small(), init=confused())
    learn(scenes(6, seed=9), settings=small(learning={"epochs": 1}), init=confused())
    same(first, learn(images, settings=small(), init=confused()))


def test_other_seeds_find_the_same_concepts() -> None:
    """Whatever the order of the images, and though a third of the start is wrong."""
    images = scenes(20)
    truth = [alone(figure).alpha for figure in (ring, plus, box)]
    orders = []
    for seed in range(3):
        run = learn(images, settings=small(), init=confused(), seed=seed)
        assert len(run.dictionary) == 3
        nearest = []
        for one in run.dictionary:
            wide = np.zeros((31, 31))
            top, left = (31 - one.height) // 2, (31 - one.width) // 2
            wide[top : top + one.height, left : left + one.width] = one.shape[..., 0] * one.alpha
            wrong = [
                min(np.abs(np.roll(wide, shift, (0, 1)) - np.pad(alpha, 8)).sum() for shift in np.ndindex(2, 2)) / alpha.sum()
                for alpha in truth
            ]
            nearest.append(int(np.argmin(wrong)))
            assert min(wrong) < 0.02
        assert sorted(nearest) == [0, 1, 2]
        orders.append([event.kind for event in run.lineage])
    assert all("removed" in order for order in orders)


def test_images_without_a_pixel_worth_telling_learn_nothing_and_say_so() -> None:
    black = learn(np.zeros((6, 20, 24), np.uint8), settings=small(), init=confused())
    assert len(black.dictionary) == 1 and black.elements is not None and int(black.elements.elements_per_image.sum()) == 0
    assert [event.kind for event in black.lineage if event.epoch == 1] == ["removed"] * 3


def test_images_that_are_all_the_same_have_the_same_elements() -> None:
    image = scenes(1)
    run = learn(np.repeat(image, 6, 0), settings=small(learning={"epochs": 2}), init=Dictionary((alone(ring), alone(plus, 1))))
    assert run.elements is not None and len({tuple(e.concept for e in one) for one in run.elements}) == 1
    assert float(np.max(run.elements.images["error"])) < 1e-3


def test_a_single_image_keeps_what_pays_in_it() -> None:
    run = learn(scenes(1), settings=small("pays", learning={"epochs": 2}), init=confused())
    assert run.elements is not None and len(run.elements) == 1 and len(run.elements[0]) == 2
    assert float(run.elements.images["error"][0]) < 5


def test_noise_keeps_no_concept_that_does_not_pay() -> None:
    noise = np.random.default_rng(0).random((8, 22, 40)).astype(np.float32) * 0.4
    run = learn(noise, settings=small(price=8.0), init=confused())
    assert len(run.dictionary) == 1


def test_images_with_nan_are_refused_before_anything_is_written(tmp_path: Path) -> None:
    images = scenes(6).astype(np.float32) / 255
    images[4, 3, 2] = np.nan
    with pytest.raises(InputError, match="image 4"):
        learn(images, settings=small(), out=tmp_path / "run")
    assert not (tmp_path / "run").exists()
