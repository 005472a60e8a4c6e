"""Concepts, dictionaries, elements, decompositions and lineage: what they accept, refuse and keep."""

from __future__ import annotations

from dataclasses import FrozenInstanceError, replace

import numpy as np
import pytest

from pictolex.errors import InputError
from pictolex.model import Background, Concept, Decomposition, Dictionary, Element, Event, Lineage


def patch(id: int, channels: int = 1, height: int = 3, width: int = 4, value: float = 0.5) -> Concept:
    return Concept(id, np.full((height, width, channels), value), np.full((height, width), value))


def test_concept_keeps_read_only_copies() -> None:
    shape, alpha = np.full((3, 4, 3), 0.5), np.ones((3, 4), np.float32)
    concept = Concept(np.int64(7), shape, alpha, "leaf")
    alpha[:] = 0
    assert (concept.id, type(concept.id), concept.height, concept.width, concept.channels) == (7, int, 3, 4, 3)
    assert concept.alpha.dtype == concept.shape.dtype == np.float32
    assert concept.alpha.min() == 1
    assert repr(concept) == "Concept(7 'leaf', 3x4 RGB)"
    with pytest.raises(ValueError, match="read-only"):
        concept.alpha[0, 0] = 0
    with pytest.raises(FrozenInstanceError):
        concept.id = 8  # type: ignore[misc]


def test_concept_clips_rounding_only() -> None:
    concept = patch(0, value=1 + 1e-6)
    assert concept.alpha.max() == 1
    with pytest.raises(InputError, match=r"alpha of concept 0 must have values in \[0, 1\], found 1.01 to 1.01"):
        Concept(0, np.ones((3, 4, 1)), np.full((3, 4), 1.01))


@pytest.mark.parametrize(
    ("id", "shape", "alpha", "message"),
    [
        (-1, np.ones((3, 4, 1)), np.ones((3, 4)), "id must be a whole number"),
        (1.5, np.ones((3, 4, 1)), np.ones((3, 4)), "id must be a whole number"),
        (True, np.ones((3, 4, 1)), np.ones((3, 4)), "id must be a whole number"),
        (0, np.ones((3, 4)), np.ones((3, 4)), r"must be \(3, 4, 1\) or \(3, 4, 3\)"),
        (0, np.ones((3, 4, 2)), np.ones((3, 4)), r"got \(3, 4, 2\)"),
        (0, np.ones((4, 3, 1)), np.ones((3, 4)), r"got \(4, 3, 1\)"),
        (0, np.ones(()), np.ones((3, 4)), r"got \(\)"),
        (0, np.ones((0, 4, 1)), np.ones((0, 4)), r"got \(0, 4\)"),
        (0, np.ones((3, 4, 1)), np.full((3, 4), np.nan), "NaN or infinite"),
        (0, np.full((3, 4, 1), 255), np.ones((3, 4)), "divide by 255"),
        (0, "red", np.ones((3, 4)), "array of numbers"),
        (0, np.full((2, 3, 4, 1), 0.5), np.ones((2, 3, 4)), "must be all ones"),
        (0, np.ones((2, 3, 4, 3)), np.ones((2, 3, 4)), r"must be \(2, 3, 4, 1\)"),
    ],
)
def test_concept_refuses(id: int, shape: np.ndarray, alpha: np.ndarray, message: str) -> None:
    with pytest.raises(InputError, match=message):
        Concept(id, shape, alpha)


def test_voxel_concept() -> None:
    concept = Concept.voxel(2, np.full((5, 3, 4), 0.25))
    assert (concept.is_voxel, concept.depth, concept.height, concept.width, concept.values) == (True, 5, 3, 4, 60)
    assert repr(concept) == "Concept(2, 5x3x4 voxels)"


def test_dictionary_finds_by_id_and_counts_values() -> None:
    dictionary = Dictionary((patch(5), patch(2, height=9)), hues=np.eye(3), background=Background("plain", np.zeros(3)))
    assert (len(dictionary), dictionary.ids, dictionary.next_id) == (2, (5, 2), 6)
    assert dictionary[2] is dictionary.concepts[1]
    assert [concept.id for concept in dictionary] == [5, 2]
    assert 5 in dictionary
    assert 3 not in dictionary
    assert dictionary.values == 2 * 12 + 2 * 36 + 9 + 3
    with pytest.raises(InputError, match="no concept 3; its ids are 5, 2"):
        dictionary[3]


def test_ids_are_never_reused() -> None:
    dictionary = Dictionary((patch(0), patch(1)))
    fewer = dictionary.with_concepts(dictionary.concepts[:1])
    assert fewer.next_id == 2
    assert fewer.with_concepts((patch(7),)).next_id == 8
    assert Dictionary(()).next_id == 0
    with pytest.raises(InputError, match="next_id must be above its largest concept id 1, got 1"):
        replace(dictionary, next_id=1)


def test_with_concepts_replaces_lineage_where_given() -> None:
    lineage = Lineage((Event(0, "born", 0),))
    dictionary = Dictionary((patch(0),), lineage=lineage)
    assert dictionary.with_concepts(()).lineage is lineage
    assert len(dictionary.with_concepts((), Lineage()).lineage) == 0


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"concepts": (patch(1), patch(0), patch(1))}, "concept 1 is in the dictionary twice"),
        ({"concepts": (patch(1), patch(0, 3))}, "of one kind, got 1-channel patches and 3-channel patches"),
        ({"hues": np.ones((2, 4))}, r"hues must be \(count, 3\)"),
        ({"hues": np.ones((0, 3))}, "None for no hues"),
        ({"formation": ""}, "formation must be a name"),
        ({"sharpness": float("nan")}, "sharpness must be above 0"),
        ({"next_id": 0.5}, "next_id must be a whole number"),
    ],
)
def test_dictionary_refuses(options: dict[str, object], message: str) -> None:
    with pytest.raises(InputError, match=message):
        Dictionary(**({"concepts": (patch(0),)} | options))  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("kind", "values", "message"),
    [
        ("sky", None, "one of none, plain, free, image"),
        ("none", np.ones(3), "has no values"),
        ("plain", None, "needs values"),
        ("plain", np.ones(2), "1 or 3 channels"),
        ("plain", np.ones((2, 3)), "must be"),
        ("image", np.ones((4, 4)), "must be"),
    ],
)
def test_background_refuses(kind: str, values: np.ndarray | None, message: str) -> None:
    with pytest.raises(InputError, match=message):
        Background(kind, values)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"x": float("nan")}, "x must be a finite number"),
        ({"scale": 0.0}, "scale must be above 0"),
        ({"hue": -2}, "hue must be -1 or more"),
        ({"depth": -1}, "depth must be 0 or more"),
        ({"confidence": 1.5}, "confidence must be from 0 to 1"),
        ({"z": float("inf")}, "z must be a finite number"),
    ],
)
def test_element_refuses(options: dict[str, float], message: str) -> None:
    with pytest.raises(InputError, match=message):
        Element(**({"concept": 0, "x": 1.5, "y": 2.5} | options))  # type: ignore[arg-type]


def test_decomposition_numbers_depths() -> None:
    front, behind = Element(0, 1.5, 2.5), Element(1, 3.5, 4.5)
    with pytest.raises(InputError, match=r"image 3 \(cat\): depths must grow from front to back"):
        Decomposition("cat", 3, 8, 8, (front, behind), 0.0)
    decomposition = Decomposition("cat", 3, 8, 8, (), 0.0).with_elements((front, behind), error=0.5)
    assert [element.depth for element in decomposition] == [0, 1]
    assert decomposition[1].concept == 1
    assert repr(decomposition) == "Decomposition(image 3 (cat), 8x8, 2 elements, error 0.5)"


@pytest.mark.parametrize(("index", "height", "background"), [(-1, 8, None), (0, 0, None), (0, 8, (1.0, 1.0))])
def test_decomposition_refuses(index: int, height: int, background: tuple[float, ...] | None) -> None:
    with pytest.raises(InputError):
        Decomposition("", index, height, 8, (), 0.0, background)


def test_lineage_answers_who_came_from_whom() -> None:
    lineage = Lineage((Event(0, "born", 0), Event(1, "split", 1, (0,), {"quality": 0.9}), Event(1, "split", 2, (0,))))
    lineage = lineage.with_events(Event(2, "merged", 1, (1, 2)), Event(3, "removed", 0))
    assert lineage.parents(1) == (0, 2)
    assert lineage.children(0) == (1, 2)
    assert lineage.parents(0) == ()
    assert [event.kind for event in lineage.of(1)] == ["split", "merged"]
    assert repr(lineage) == "Lineage(1 born, 2 split, 1 merged, 1 removed)"
    assert Lineage.from_json(lineage.to_json()) == lineage


def test_lineage_keeps_figures_that_json_cannot() -> None:
    event = Event(0.5, "split", 1, (), {"psnr": float("inf")})
    assert np.isnan(Lineage.from_json(Lineage((event,)).to_json()).events[0].figures["psnr"])
    with pytest.raises(InputError, match="kind must be a word"):
        Event(0, "", 1)
