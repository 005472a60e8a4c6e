"""The learning loop: it learns, the same way each time, keeps what it has when it is stopped, and keeps to a budget."""

import time
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image, ImageDraw

import pictolex
from pictolex.errors import InputError, SettingError
from pictolex.formation import Alpha
from pictolex.learn import LearningProgress, Run, learn
from pictolex.learn.parameters import to_free, to_value
from pictolex.learn.step import create_step
from pictolex.metrics import concept_l1_strict
from pictolex.model import Concept, Dictionary
from pictolex.settings import Learning, PlainBackground, Settings


def drawn_scenes(count: int, seed: int = 0) -> np.ndarray:
    """White crosses and rings on black, drawn by Pillow, two an image, apart from each other."""
    rng = np.random.default_rng(seed)
    images = []
    for _ in range(count):
        image = Image.new("L", (32, 32))
        draw = ImageDraw.Draw(image)
        for x in (int(rng.integers(6, 10)), int(rng.integers(22, 26))):
            y = int(rng.integers(6, 26))
            if rng.random() < 0.5:
                draw.line((x - 4, y, x + 4, y), 255, 3)
                draw.line((x, y - 4, x, y + 4), 255, 3)
            else:
                draw.ellipse((x - 4, y - 4, x + 4, y + 4), outline=255, width=2)
        images.append(np.array(image))
    return np.stack(images)


def small_settings(**learning: object) -> Settings:
    values = {"concepts": 2, "concept_size": 11, "epochs": 2, "optimizer": "adam", "rate": 0.002} | learning
    return Settings.model_validate({"layers": 2, "strategy": {"kind": "rounds", "rounds": 2}, "learning": values})


def test_planted_concepts_are_found() -> None:
    images = drawn_scenes(48)
    run = learn(images, settings=small_settings())
    truth = []
    for number, kind in enumerate(("cross", "ring")):
        patch = Image.new("L", (11, 11))
        draw = ImageDraw.Draw(patch)
        if kind == "cross":
            draw.line((1, 5, 9, 5), 255, 3)
            draw.line((5, 1, 5, 9), 255, 3)
        else:
            draw.ellipse((1, 1, 9, 9), outline=255, width=2)
        truth.append(Concept(number, np.ones((11, 11, 1)), np.array(patch) / 255))
    assert concept_l1_strict(Dictionary(tuple(truth)), run.dictionary) < 0.02
    assert run.elements is not None and len(run.elements) == 48
    assert float((run.elements.elements_per_image == 2).mean()) > 0.95


def test_learning_is_deterministic_whatever_the_workers() -> None:
    images = drawn_scenes(24)
    runs = [learn(images, settings=small_settings().model_copy(update={"workers": w})) for w in (1, 2, 2)]
    for run in runs[1:]:
        for mine, theirs in zip(runs[0].dictionary, run.dictionary, strict=True):
            assert np.array_equal(mine.shape, theirs.shape) and np.array_equal(mine.alpha, theirs.alpha)


def test_another_seed_is_another_run() -> None:
    images = drawn_scenes(24)
    one, other = (learn(images, settings=small_settings(), seed=s).dictionary for s in (0, 1))
    assert any(not np.array_equal(a.alpha, b.alpha) for a, b in zip(one, other, strict=True))


@pytest.mark.parametrize("optimizer,rate", [("solve", 1.0), ("adadelta", 1.0), ("sgd", 1e-5), ("adam", 0.001), ("rmsprop", 0.0005)])
def test_every_optimiser_lowers_the_error(optimizer: str, rate: float) -> None:
    rng = np.random.default_rng(0)
    start = Dictionary((Concept(0, rng.uniform(0.3, 0.7, (9, 9, 1)), rng.uniform(0.3, 0.7, (9, 9))),))
    setting = Learning.model_validate({"optimizer": optimizer, "rate": rate})
    step = create_step(setting, start, Alpha(1), torch.device("cpu"), frozenset())
    from pictolex.decompose import Layout, Problem

    image = torch.zeros(2, 1, 16, 16)
    image[:, :, 5:10, 5:10] = 1
    layout = Layout(
        torch.zeros(2, 1, dtype=torch.long),
        torch.tensor([[[7.5, 7.5, 0, 0, 0]]] * 2),
        torch.full((2, 1), -1),
        torch.ones(2, 1, 1),
    )
    problem = Problem(image, torch.ones_like(image), torch.zeros_like(image))
    errors = [step.step(problem, layout) for _ in range(12)]
    assert errors[-1] < errors[0] * 0.98


def test_values_and_free_numbers_are_inverse() -> None:
    values = torch.linspace(0.02, 0.98, 50)
    torch.testing.assert_close(to_value(to_free(values)), values, atol=1e-5, rtol=0)
    assert float(to_value(torch.linspace(-9, 9, 1000)).min()) >= 0


def test_an_interrupt_keeps_what_was_learned(tmp_path: Path) -> None:
    def stop(progress: LearningProgress) -> None:
        if progress.phase == "learning" and progress.epoch == 2:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        learn(drawn_scenes(16), settings=small_settings(epochs=5), out=tmp_path / "run", callbacks=(stop,))
    run = Run.open(tmp_path / "run")
    assert len(run.dictionary) == 2 and run.elements is None
    assert run.history[-1]["event"] == "interrupted"


def test_a_budget_ends_learning_in_time() -> None:
    start = time.monotonic()
    run = learn(drawn_scenes(64), settings=small_settings(epochs=10_000), budget=6.0)
    assert time.monotonic() - start < 9.0
    assert run.elements is not None and len(run.elements) == 64


def test_colours_shapes_and_backgrounds_are_learned() -> None:
    grey = drawn_scenes(24)[..., None].astype(np.float32) / 255
    images = grey * np.array([1.0, 0.4, 0.1], np.float32) + (1 - grey) * np.array([0.1, 0.2, 0.5], np.float32)
    settings = small_settings(colour_shapes=True).model_copy(update={"background": PlainBackground()})
    run = learn(images, settings=settings)
    assert run.dictionary.background.values is not None
    np.testing.assert_allclose(run.dictionary.background.values, [0.1, 0.2, 0.5], atol=0.05)
    assert run.dictionary.concepts[0].channels == 3
    assert run.elements is not None
    assert float(np.mean(run.elements.images["error"])) / (32 * 32 * 3) < 0.005


def test_the_package_itself_can_be_called() -> None:
    run = pictolex.learn(drawn_scenes(8), settings=small_settings(epochs=1))
    found = run.decompose(drawn_scenes(4, seed=5))
    rendered = run.render(found[0])
    assert rendered.image.shape == (32, 32, 1)


def test_clear_words_for_bad_wishes(tmp_path: Path) -> None:
    with pytest.raises(SettingError, match="device"):
        learn(drawn_scenes(2), settings=small_settings(), device="tpu7", out=tmp_path / "run")
    assert not (tmp_path / "run").exists()
    with pytest.raises(InputError):
        learn(np.zeros((0, 8, 8), np.uint8), settings=small_settings())
    black = learn(np.zeros((4, 16, 16), np.uint8), settings=small_settings())
    assert black.elements is not None and black.elements.elements_per_image.sum() == 0


def test_decompositions_draw_themselves_and_fit_and_transform(tmp_path: Path) -> None:
    images = drawn_scenes(12)
    vocabulary = pictolex.Vocabulary(settings=small_settings(epochs=1))
    with pytest.raises(InputError, match="fit"):
        vocabulary.transform(images)
    found = vocabulary.fit(images).transform(images)
    rebuilt = np.stack([d.render()[..., 0] for d in found])
    error = ((rebuilt - images / 255) ** 2).sum((1, 2))
    np.testing.assert_allclose(error, found.images["error"], rtol=1e-3, atol=1e-3)
    layers = found[1].layers()
    assert layers.shape == (len(found[1]), 32, 32, 2) and layers.min() >= 0 and layers.max() <= 1
    found.save(tmp_path / "found.safetensors")
    with pytest.raises(InputError, match=r"run\.render"):
        type(found).load(tmp_path / "found.safetensors")[0].render()
