"""What `evaluate` says of decompositions whose figures are known: the truth itself, and the truth with known mistakes."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import fields, replace
from pathlib import Path

import numpy as np
import pytest

from pictolex.api import Learned, suited
from pictolex.experiments.evaluation import Evaluation, evaluate, measure
from pictolex.model import Collection, Concept, Decomposition, Dictionary, Element
from pictolex.settings import Settings
from pictolex.sources import Source, open_source
from pictolex.sources.synthetic import true_dictionary
from pictolex.sources.truth import Truth, open_truth

COUNT = 5
needs_data = pytest.mark.skipif("PICTOLEX_DATA" not in os.environ, reason="PICTOLEX_DATA names no folder of data sets")


def pair(spec: str) -> tuple[Source, Truth]:
    truth = open_truth(spec)
    assert truth is not None
    return open_source(spec), truth


def learned(dictionary: Dictionary) -> Learned:
    return Learned(dictionary, suited(Settings(device="cpu"), dictionary), None)


def tetromino(dictionary: Dictionary, shape: int, colour: int, y: int, x: int) -> Element:
    concept, hue = dictionary[shape], dictionary.hues[colour].tolist()
    red, green, blue = hue
    return Element(shape, x + concept.width / 2, y + concept.height / 2, hue=colour, red=red, green=green, blue=blue)


def motif(dictionary: Dictionary, motif: int, y: int, x: int) -> Element:
    return Element(motif, x + dictionary[motif].width / 2, y + dictionary[motif].height / 2)


def decomposed(images: Source, elements: Callable[[int], Sequence[Element]], plain: bool = False) -> Collection:
    """`plain`: on black, where the dictionary does not say it."""
    made = []
    for i in range(len(images)):
        height, width, channels = images.shape(i)
        behind = (0.0,) * channels if channels == 3 and plain else None
        made.append(Decomposition(images.names[i], i, height, width, (), 0.0, behind).with_elements(elements(i), 0.0))
    return Collection.from_decompositions(made)


def of_tetrominoes(
    changed: Callable[[Element], Element | None] = lambda element: element, dictionary: Dictionary | None = None
) -> Evaluation:
    """The true pieces, changed (None: left out), against the true dictionary or another of as many patches."""
    images, truth = pair(f"tetrominoes[:{COUNT}]")
    true = true_dictionary("tetrominoes")
    # To compare all pairs of 17 patches takes long.
    truth = replace(truth, concepts=true.concepts[:1])

    def elements(i: int) -> list[Element]:
        assert truth.factors is not None
        pieces = [tetromino(true, *row) for row in truth.factors(i)["factors"].tolist()]
        return [element for piece in pieces if (element := changed(piece)) is not None]

    return measure(learned(dictionary or true), images, truth, decomposed(images, elements, plain=True), 1.0)


def of_pattern(changed: Callable[[list[Element]], list[Element]], dictionary: Dictionary | None = None) -> Evaluation:
    images, truth = pair(f"pattern[:{COUNT}]")
    true = true_dictionary("pattern")

    def elements(i: int) -> list[Element]:
        rows = truth.placements(i)
        assert rows is not None
        return changed([motif(true, *row[:3]) for row in reversed(rows.tolist())])

    return measure(learned(dictionary or true), images, truth, decomposed(images, elements), 1.0)


def test_the_truth_is_right_in_everything() -> None:
    figures = of_tetrominoes()
    assert figures.ari_foreground == figures.class_accuracy == figures.class_miou == 1.0
    assert figures.concept_l1_strict == pytest.approx(0, abs=1e-6)
    assert figures.placements_exact is figures.placement_precision is figures.cluster_accuracy is None


def test_the_fields_stand_in_the_order_told() -> None:
    names = [field.name for field in fields(Evaluation)]
    start = names.index("cluster_accuracy")
    assert names[start + 1 : start + 5] == ["class_accuracy", "class_miou", "placements_exact", "placement_precision"]


def test_ids_of_concepts_do_not_matter() -> None:
    true = true_dictionary("tetrominoes")
    renamed = Dictionary(tuple(replace(concept, id=40 + 3 * concept.id) for concept in true), hues=true.hues)
    figures = of_tetrominoes(lambda element: replace(element, concept=40 + 3 * element.concept), renamed)
    assert figures.class_accuracy == figures.class_miou == 1.0


def test_a_shape_never_found_is_a_class_lost() -> None:
    _, truth = pair(f"tetrominoes[:{COUNT}]")
    pixels = np.zeros(18, int)
    for i in range(COUNT):
        mask, classes = truth.masks(i), truth.classes(i)
        assert mask is not None and classes is not None
        pixels += np.bincount(np.concatenate([[0], classes + 1])[mask].ravel(), minlength=18)
    there = np.flatnonzero(pixels)
    lost = there[1]
    figures = of_tetrominoes(lambda element: None if element.concept == lost - 1 else element)
    assert figures.class_accuracy == pytest.approx((len(there) - 1) / len(there))
    background = pixels[0] / (pixels[0] + pixels[lost])
    assert figures.class_miou == pytest.approx((background + len(there) - 2) / len(there))


def test_of_tied_orders_the_one_of_the_ari_is_looked_at() -> None:
    """Two equal white shapes that overlap, the true front one found behind: both orders rebuild the same image."""
    images, truth = pair("dsprites-bin[:60]")
    true = true_dictionary("dsprites-bin")

    def elements(turn: int) -> Callable[[int], list[Element]]:
        def of(i: int) -> list[Element]:
            assert truth.factors is not None
            rows = [row for row in truth.factors(i)["factors"].tolist() if row[6] == 1]
            made = [
                Element(s, 16 + x * 32 / 31, 16 + y * 32 / 31, rotation=o * 2 * np.pi / 39, scale=0.5 + 0.1 * k)
                for s, k, o, x, y, *_ in rows
            ]
            return made[::turn]

        return of

    front, back = (measure(learned(true), images, truth, decomposed(images, elements(turn)), 1.0) for turn in (-1, 1))
    assert front.class_accuracy is not None and back.class_accuracy is not None
    assert back.ari_foreground_fixed_order < front.ari_foreground_fixed_order - 0.02  # type: ignore[operator]
    assert back.class_accuracy == pytest.approx(front.class_accuracy, abs=0.01) and front.class_accuracy > 0.97


def test_true_placements_are_all_found() -> None:
    figures = of_pattern(lambda elements: elements)
    assert figures.placements_exact == figures.placement_precision == 1.0
    assert figures.class_accuracy is not None and figures.class_accuracy > 0.98


def test_placements_found_up_to_half_a_pixel() -> None:
    def jittered(elements: list[Element]) -> list[Element]:
        return [replace(e, x=e.x + 0.4 * (-1) ** k, y=e.y - 0.4 * (-1) ** k) for k, e in enumerate(elements)]

    figures = of_pattern(jittered)
    assert figures.placements_exact == figures.placement_precision == 1.0


def test_placements_a_pixel_off_left_out_and_too_many() -> None:
    shifted = of_pattern(lambda elements: [replace(elements[0], x=elements[0].x + 1), *elements[1:]])
    assert shifted.placement_precision == pytest.approx(1 - COUNT / _elements(), abs=1e-9)
    doubled = of_pattern(lambda elements: [*elements, *(replace(e, concept=1 - e.concept) for e in elements)])
    assert (doubled.placements_exact, doubled.placement_precision) == (1.0, 0.5)
    nothing = of_pattern(lambda elements: [])
    assert (nothing.placements_exact, nothing.placement_precision) == (0.0, None)


def test_a_larger_patch_with_the_motif_off_its_middle() -> None:
    true = true_dictionary("pattern")
    padded = [
        Concept(c.id, np.pad(c.shape, [(1 + c.id, 4), (0, 3), (0, 0)]), np.pad(c.alpha, [(1 + c.id, 4), (0, 3)])) for c in true.concepts
    ]
    wide = Dictionary(tuple(padded), background=true.background)

    def moved(element: Element) -> Element:
        return replace(element, x=element.x + 1.5, y=element.y + (4 - 1 - element.concept) / 2)

    figures = of_pattern(lambda elements: [moved(element) for element in elements], wide)
    assert figures.placements_exact == figures.placement_precision == 1.0


def test_without_truth_all_of_it_is_none() -> None:
    images = open_source("tetrominoes[:2]")
    figures = measure(learned(true_dictionary("tetrominoes")), images, None, decomposed(images, lambda i: [], plain=True), 1.0)
    for name in ("ari_foreground", "ari_all", "concept_l1", "class_accuracy", "class_miou", "placements_exact", "placement_precision"):
        assert getattr(figures, name) is None


def test_without_objects_the_background_is_all_there_is(tmp_path: Path) -> None:
    np.savez(tmp_path / "a.npz", images=np.zeros((2, 35, 35), np.uint8), masks=np.zeros((2, 35, 35), np.uint8))
    images, truth = pair(str(tmp_path / "a.npz"))
    figures = measure(learned(true_dictionary("dsprites-bin")), images, truth, decomposed(images, lambda i: []), 1.0)
    assert figures.ari_foreground is None and figures.ari_all == 1.0 and figures.class_accuracy is None


@needs_data
def test_the_recreated_sets_have_concept_errors_and_classes() -> None:
    path = Path(os.environ["PICTOLEX_DATA"]) / "multi_dsprites_bin_recreated.npz"
    images, truth = pair(f"{path}[-3:]")
    figures = evaluate(learned(true_dictionary("dsprites-bin")), images, truth)
    assert figures.concept_l1 == figures.concept_l1_strict == pytest.approx(0, abs=1e-6)
    assert figures.class_accuracy is not None and figures.class_miou is not None


def _elements() -> int:
    _, truth = pair(f"pattern[:{COUNT}]")
    return sum(len(rows) for i in range(COUNT) if (rows := truth.placements(i)) is not None)
