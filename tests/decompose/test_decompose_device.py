"""One code for CPU and CUDA: the same images within rounding, the same energies."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from drawn import dictionary, scene
from pictolex.decompose import Engine, Renderer
from pictolex.decompose.device import choose_device
from pictolex.errors import SettingError
from pictolex.settings import HueColour
from scenes import HUES, KINDS, Arrays, apart, settings

cuda = pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device")


def test_devices_are_chosen_or_refused() -> None:
    assert choose_device("cpu").type == "cpu"
    assert choose_device("auto").type == ("cuda" if torch.cuda.is_available() else "cpu")
    for name in ("abacus", "meta", "cuda:99"):
        with pytest.raises(SettingError, match=name):
            choose_device(name)


@pytest.mark.parametrize("strategy", ["rounds", "propose"])
def test_the_cpu_repeats_itself_to_the_bit_in_colour(strategy: str) -> None:
    rng = np.random.default_rng(50)
    images = Arrays([scene(apart(rng, 4, 40, distance=6, hues=HUES), 40, 40, (0.0,) * 3) for _ in range(5)])
    setting = settings(strategy, colour=HueColour(count=3))
    a, b = (Engine(dictionary(*KINDS, hues=HUES), setting).run(images) for _ in range(2))
    assert [d.elements for d in a] == [d.elements for d in b]
    assert [d.error for d in a] == [d.error for d in b]


@cuda
@pytest.mark.parametrize("strategy", ["rounds", "propose"])
def test_cuda_reaches_the_energies_of_the_cpu(strategy: str) -> None:
    rng = np.random.default_rng(51)
    images = Arrays([scene(apart(rng, 3, 48), 48, 48) for _ in range(40)])
    energies = []
    for device in ("cpu", "cuda"):
        setting = settings(strategy, device=device)
        energies.append(np.array([d.error + setting.price * len(d) for d in Engine(dictionary(*KINDS), setting).run(images)]))
    assert np.mean(np.abs(energies[0] - energies[1]) <= 1e-3 * energies[0]) >= 0.97


@cuda
def test_fixed_elements_render_alike() -> None:
    rng = np.random.default_rng(52)
    concepts, setting = dictionary(*KINDS, hues=HUES), settings(colour=HueColour(count=3))
    images = Arrays([scene(apart(rng, 4, 48, distance=6, hues=HUES), 48, 48, (0.0,) * 3) for _ in range(4)])
    for decomposition in Engine(concepts, setting).run(images):
        one, other = (Renderer(concepts, setting, device=device).render(decomposition) for device in ("cpu", "cuda"))
        np.testing.assert_allclose(one.image, other.image, atol=1e-5)
