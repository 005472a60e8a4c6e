"""Checkpoints: what goes on from one does bit for bit what would have been done; damaged ones, other settings and other data are told."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from PIL import Image, ImageDraw
from scipy import ndimage

from pictolex.decompose import Layout, Problem
from pictolex.errors import FormatError, InputError, SettingError
from pictolex.formation import Alpha
from pictolex.learn import LearningProgress, Run, learn
from pictolex.learn.checkpoint import Checkpoints, DamagedCheckpointWarning, Position, fingerprint
from pictolex.learn.kept import Kept
from pictolex.learn.step import DictionaryStep, create_step
from pictolex.model import Background, Concept, Dictionary, Event, Lineage
from pictolex.settings import Settings
from pictolex.sources import open_source

CPU = torch.device("cpu")
OPTIMIZERS = {"solve": 1.0, "adadelta": 1.0, "sgd": 1e-4, "adam": 0.002, "rmsprop": 0.001}


def planted(background: bool = True) -> tuple[Dictionary, Problem, Layout]:
    """Two concepts of different sizes, two hues, a plain background; images of noise to move them on."""
    rng = np.random.default_rng(0)
    concepts = tuple(Concept(id, rng.uniform(0.2, 0.8, (*size, 1)), rng.uniform(0.2, 0.8, size)) for id, size in ((3, (7, 9)), (8, (6, 5))))
    lineage = Lineage((Event(0, "born", 3, (), {"explains": 2.0}), Event(1, "split", 8, (5,), {"saves": 3.5})))
    behind = Background("plain", rng.uniform(0.3, 0.6, 3)) if background else Background("none")
    dictionary = Dictionary(concepts, hues=rng.uniform(0.2, 0.8, (2, 3)), background=behind, next_id=12, lineage=lineage)
    generator = torch.Generator().manual_seed(0)
    image = torch.rand(6, 3, 18, 20, generator=generator)
    pose = torch.rand(6, 3, 5, generator=generator) * torch.tensor([16.0, 14.0, 6.0, 0.4, 0.0]) + 2
    layout = Layout(
        torch.randint(-1, 2, (6, 3), generator=generator),
        pose * torch.tensor([1, 1, 1, 0.1, 0]),
        torch.randint(0, 2, (6, 3), generator=generator),
        torch.ones(6, 3, 3),
    )
    return dictionary, Problem(image, torch.ones(6, 1, 18, 20), torch.full_like(image, 0.4)), layout


def settings_of(optimizer: str = "solve", **learning: Any) -> Settings:
    values = {"optimizer": optimizer, "rate": OPTIMIZERS[optimizer], "concepts": 4, "concept_size": 11, "epochs": 3, "group": 6} | learning
    return Settings.model_validate({"layers": 2, "strategy": {"kind": "rounds", "rounds": 2}, "learning": values})


def step_of(settings: Settings, dictionary: Dictionary) -> DictionaryStep:
    return create_step(settings.learning, dictionary, Alpha(1), CPU, frozenset())


def assert_equal(one: Dictionary, other: Dictionary) -> None:
    assert (one.ids, one.next_id, one.lineage.to_json()) == (other.ids, other.next_id, other.lineage.to_json())
    for a, b in zip(one, other, strict=True):
        assert np.array_equal(a.shape, b.shape) and np.array_equal(a.alpha, b.alpha)
    for x, y in ((one.hues, other.hues), (one.background.values, other.background.values)):
        assert (x is None) == (y is None) and (x is None or y is None or np.array_equal(x, y))


@pytest.mark.parametrize("background", [True, False])
@pytest.mark.parametrize("optimizer", OPTIMIZERS)
def test_the_next_step_is_the_same_bit_for_bit(tmp_path: Path, optimizer: str, background: bool) -> None:
    dictionary, problem, layout = planted(background)
    settings = settings_of(optimizer)
    step = step_of(settings, dictionary)
    for _ in range(3):
        step.step(problem, layout)
    checkpoints = Checkpoints(tmp_path, "these images")
    checkpoints.save(Position(dictionary, epoch=1, group=2, step=step.state()), settings)
    back = checkpoints.newest(settings)
    assert back is not None
    assert_equal(back.dictionary, dictionary)
    resumed = step_of(settings, back.dictionary)
    resumed.resume(back.step)
    for _ in range(2):
        assert_equal(resumed.dictionary(), step.dictionary())
        assert resumed.step(problem, layout) == step.step(problem, layout)
    assert_equal(resumed.finished(), step.finished())
    fresh = step_of(settings, back.dictionary)
    fresh.step(problem, layout)
    assert not np.array_equal(fresh.dictionary().concepts[0].alpha, step.dictionary().concepts[0].alpha)


def test_every_number_of_a_position_comes_back(tmp_path: Path) -> None:
    dictionary, _, layout = planted()
    kept = Kept(6, 3, 3)
    kept.put([0, 2, 5], layout.take(torch.tensor([0, 2, 5])), torch.tensor([1.5, 2.5, 3.5]), dictionary.ids)
    kept.stale[2] = True
    numbers = {"epoch": 7, "group": 3, "limit": 1.25, "error": 0.1, "values": 60.0, "elements": 11.0, "images": 18, "seconds": 12.75}
    checkpoints = Checkpoints(tmp_path, "x")
    checkpoints.save(Position(dictionary, **numbers, kept=kept.state()), settings_of())  # type: ignore[arg-type]
    back = checkpoints.newest(settings_of())
    assert back is not None and {name: getattr(back, name) for name in numbers} == numbers
    assert isinstance(back.epoch, int) and isinstance(back.group, int) and isinstance(back.images, int)
    other = Kept(6, 3, 3)
    other.resume(back.kept)
    for name, value in kept.state().items():
        found = other.state()[name]
        assert found.dtype == value.dtype and torch.equal(found.nan_to_num(-9), value.nan_to_num(-9))


def test_the_newest_is_taken_and_few_are_kept(tmp_path: Path) -> None:
    dictionary, _, _ = planted()
    checkpoints = Checkpoints(tmp_path, "x")
    assert checkpoints.newest(settings_of()) is None
    for epoch, group in ((0, 0), (0, 9), (0, 10), (1, 0), (9, 2), (10, 0)):
        checkpoints.save(Position(dictionary, epoch=epoch, group=group), settings_of())
        back = checkpoints.newest(settings_of())
        assert back is not None and (back.epoch, back.group) == (epoch, group)
    assert 2 <= len(list((tmp_path / "checkpoints").iterdir())) <= 3


DAMAGES: dict[str, Callable[[bytes], bytes]] = {
    "cut": lambda data: data[: len(data) // 2],
    "empty": lambda data: b"",
    "a bit": lambda data: data[:-20] + bytes([data[-20] ^ 1]) + data[-19:],
    "text": lambda data: b"{}" * 40,
    "header": lambda data: bytes([255]) * 8 + data[8:],
}


@pytest.mark.parametrize("damage", DAMAGES)
def test_a_damaged_newest_one_gives_way_to_the_one_before(tmp_path: Path, damage: str) -> None:
    dictionary, _, _ = planted()
    checkpoints = Checkpoints(tmp_path, "x")
    for epoch in (1, 2):
        checkpoints.save(Position(dictionary, epoch=epoch), settings_of())
    paths = sorted((tmp_path / "checkpoints").iterdir())
    paths[-1].write_bytes(DAMAGES[damage](paths[-1].read_bytes()))
    with pytest.warns(DamagedCheckpointWarning):
        back = checkpoints.newest(settings_of())
    assert back is not None and back.epoch == 1
    paths[0].write_bytes(DAMAGES[damage](paths[0].read_bytes()))
    with pytest.raises(FormatError, match="learn again"):
        checkpoints.newest(settings_of())


@pytest.mark.parametrize(
    "changed",
    [{"price": 2.0}, {"seed": 1}, {"layers": 3}, {"learning": {"rate": 0.5}}, {"learning": {"group": 7}}, {"placement": {"rotations": 2}}],
)
def test_other_settings_are_refused_with_what_to_do(tmp_path: Path, changed: dict[str, Any]) -> None:
    dictionary, _, _ = planted()
    checkpoints = Checkpoints(tmp_path, "x")
    checkpoints.save(Position(dictionary), settings_of())
    values = settings_of().model_dump()
    for name, value in changed.items():
        values[name] = {**values[name], **value} if isinstance(value, dict) else value
    with pytest.raises(SettingError, match="other settings"):
        checkpoints.newest(Settings.model_validate(values))


def test_more_epochs_another_device_and_other_workers_are_no_other_settings(tmp_path: Path) -> None:
    dictionary, _, _ = planted()
    checkpoints = Checkpoints(tmp_path, "x")
    checkpoints.save(Position(dictionary, epoch=2), settings_of())
    for values in ({"workers": 3}, {"device": "cpu"}):
        assert checkpoints.newest(settings_of().model_copy(update=values)) is not None
    assert checkpoints.newest(settings_of(epochs=40)) is not None


def test_other_images_are_refused(tmp_path: Path) -> None:
    dictionary, _, _ = planted()
    Checkpoints(tmp_path, "x").save(Position(dictionary), settings_of())
    with pytest.raises(InputError, match="other images"):
        Checkpoints(tmp_path, "y").newest(settings_of())


def test_a_fingerprint_tells_images_apart_by_number_size_and_pixels() -> None:
    images = np.random.default_rng(0).integers(0, 256, (12, 9, 8), dtype=np.uint8)
    one = fingerprint(open_source(images))
    assert one == fingerprint(open_source(images.copy()))
    brighter = images.copy()
    brighter[-1, 4, 4] ^= 1
    turned = images.transpose(0, 2, 1).copy()
    flat = images.reshape(12, 8, 9).copy()
    others = (images[:11], images[::-1].copy(), brighter, turned, flat, np.concatenate([images, images[:1]]))
    assert len({one, *(fingerprint(open_source(other)) for other in others)}) == 1 + len(others)


def scenes(count: int, seed: int = 0) -> np.ndarray:
    rng = np.random.default_rng(seed)
    images = []
    for i in range(count):
        image = Image.new("L", (32, 20))
        draw = ImageDraw.Draw(image)
        for k, x in enumerate((8, 24)):
            x, y = x + int(rng.integers(-2, 3)), int(rng.integers(7, 13))
            if (i + k) % 2:
                draw.rectangle((x - 4, y - 1, x + 4, y + 1), 255)
                draw.rectangle((x - 1, y - 4, x + 1, y + 4), 255)
            else:
                draw.ellipse((x - 4, y - 4, x + 4, y + 4), outline=255, width=2)
        images.append(np.array(image))
    return np.stack(images)


def blurred() -> Dictionary:
    """Something to start from that has much to learn, and one concept too many."""
    rng = np.random.default_rng(1)
    white, y, x = np.ones((11, 11, 1)), *np.abs(np.mgrid[-5:6, -5:6])
    alphas = [
        np.clip(1.2 - np.minimum(y, x) / 2, 0, 1),
        np.clip(1.2 - np.abs(np.hypot(y, x) - 3.5) / 2, 0, 1),
        rng.uniform(0, 0.3, (11, 11)),
    ]
    return Dictionary(tuple(Concept(k, white, alpha) for k, alpha in enumerate(alphas)))


def stopped_at(epoch: int, done: int) -> Callable[[LearningProgress], None]:
    def stop(progress: LearningProgress) -> None:
        if progress.phase == "learning" and (progress.epoch, progress.done) == (epoch, done):
            raise KeyboardInterrupt

    return stop


@pytest.mark.parametrize("optimizer,evolution", [("solve", "pays"), ("adam", "paper"), ("adadelta", "none")])
@pytest.mark.parametrize("epoch,done", [(1, 6), (2, 12)])
def test_a_run_that_was_stopped_goes_on_to_where_it_would_have_come(
    tmp_path: Path, optimizer: str, evolution: str, epoch: int, done: int
) -> None:
    images, settings = scenes(18), settings_of(optimizer).model_copy(update={"evolution": evolution_of(evolution)})
    straight = learn(images, settings=settings, init=blurred())
    with pytest.raises(KeyboardInterrupt):
        learn(images, settings=settings, init=blurred(), out=tmp_path / "run", callbacks=(stopped_at(epoch, done),))
    assert Run.open(tmp_path / "run").elements is None
    resumed = learn(images, out=tmp_path / "run", resume=True)
    assert_equal(resumed.dictionary, straight.dictionary)
    assert resumed.elements is not None and straight.elements is not None
    assert np.array_equal(resumed.elements.images["error"], straight.elements.images["error"])


def evolution_of(kind: str) -> Any:
    return Settings.model_validate({"evolution": {"kind": kind}}).evolution


def test_a_run_stopped_twice_goes_on_all_the_same(tmp_path: Path) -> None:
    images, settings = scenes(12), settings_of(epochs=3)
    straight = learn(images, settings=settings, init=blurred())
    for k, stop in enumerate((stopped_at(1, 6), stopped_at(3, 12))):
        with pytest.raises(KeyboardInterrupt):
            given = {"settings": settings, "init": blurred()} if k == 0 else {"resume": True}
            learn(images, out=tmp_path / "run", callbacks=(stop,), **given)  # type: ignore[arg-type]
    assert_equal(learn(images, out=tmp_path / "run", resume=True).dictionary, straight.dictionary)


def test_resuming_with_other_images_or_settings_is_refused_and_the_run_stays_as_it_was(tmp_path: Path) -> None:
    images = scenes(12)
    with pytest.raises(KeyboardInterrupt):
        learn(images, settings=settings_of(), init=blurred(), out=tmp_path / "run", callbacks=(stopped_at(1, 6),))
    before = {path: path.read_bytes() for path in sorted((tmp_path / "run").rglob("*")) if path.is_file()}
    with pytest.raises(InputError, match="other images"):
        learn(scenes(12, seed=3), out=tmp_path / "run", resume=True)
    with pytest.raises(SettingError, match=r"price|other settings"):
        learn(images, settings=settings_of().model_copy(update={"price": 3.0}), out=tmp_path / "run", resume=True)
    assert {path: path.read_bytes() for path in sorted((tmp_path / "run").rglob("*")) if path.is_file()} == before


def test_a_run_in_memory_keeps_no_checkpoints(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    learn(scenes(4), settings=settings_of(epochs=1), init=blurred())
    assert list(tmp_path.iterdir()) == []


def test_a_run_stopped_in_its_last_pass_finds_the_same_elements_when_it_goes_on(tmp_path: Path) -> None:
    """Clouds, in which there is always something more to be found."""
    clouds = np.stack([ndimage.gaussian_filter(image, 1.5) for image in np.random.default_rng(0).random((24, 24, 24))])
    images = ((clouds - clouds.min()) / np.ptp(clouds)).astype(np.float32)
    settings = settings_of(epochs=1).model_copy(update={"price": 0.05, "layers": 5})
    straight = learn(images, settings=settings, init=blurred())

    def stop(progress: LearningProgress) -> None:
        if progress.phase == "elements" and progress.done >= 12:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        learn(images, settings=settings, init=blurred(), out=tmp_path / "run", callbacks=(stop,))
    resumed = learn(images, out=tmp_path / "run", resume=True)
    assert_equal(resumed.dictionary, straight.dictionary)
    assert resumed.elements is not None and straight.elements is not None
    assert np.array_equal(resumed.elements.images["error"], straight.elements.images["error"])
