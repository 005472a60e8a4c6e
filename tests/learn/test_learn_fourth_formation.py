"""The design's test, learning: concepts of a formation that no room knows are learned without a change to any of them."""

import numpy as np

from decompose.test_fourth_formation import DENSITY, Ink
from pictolex.learn import learn
from pictolex.settings import PlainBackground, Settings


def sheets_of_paper(count: int) -> np.ndarray:
    """Discs of ink on grey paper, two an image; where they overlap the ink is darker. Counted at fine points."""
    rng = np.random.default_rng(3)
    y, x = (np.mgrid[0:96, 0:96] + 0.5) / 3
    images = []
    for _ in range(count):
        fine = np.full((96, 96), 0.9)
        for _ in range(2):
            cx, cy = rng.integers(7, 26, 2)
            fine = np.where((x - cx - 0.5) ** 2 + (y - cy - 0.5) ** 2 < 16, fine * (1 - DENSITY), fine)
        images.append(fine.reshape(32, 3, 32, 3).mean((1, 3)))
    return np.stack(images).astype(np.float32)


def test_ink_is_learned() -> None:
    images = sheets_of_paper(40)
    learning = {"concepts": 1, "concept_size": 11, "epochs": 6, "optimizer": "adam", "rate": 0.002}
    settings = Settings.model_validate({"layers": 2, "strategy": {"kind": "rounds"}, "price": 0.2, "learning": learning})
    settings = settings.model_copy(update={"background": PlainBackground()})
    run = learn(images, settings=settings, formation=Ink())
    concept = run.dictionary.concepts[0]
    ink = concept.shape[..., 0] * concept.alpha
    assert abs(float(ink[5, 5]) - DENSITY) < 0.05 and float(ink[0, 0]) < 0.05
    assert run.elements is not None
    assert float(np.mean(run.elements.images["error"])) / (32 * 32) < 5e-4
