"""The design's test: a formation that none of the rooms knows is searched, decomposed and rendered without a change to them.

Ink on paper: every element takes away the share P of the light, `image = background * prod_i (1 - P_i)`.
"""

from __future__ import annotations

import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from PIL import Image, ImageDraw
from torch import Tensor

from drawn import FINE, Placed, dictionary, image_batch, points
from pictolex.decompose import Engine, Renderer
from pictolex.formation import Context, Form, Formation, Forms, pack, paint, sample
from pictolex.model import Background, Decomposition, Dictionary, Element
from pictolex.search import CostModel, Fixed, Free, HueSet, Query, Searcher, build_bank, create_objective
from pictolex.search.reference import every_place
from pictolex.settings import Correlation, FreeColour, HueColour, PlainBackground, SquaredError
from scenes import KINDS, Arrays, apart, recovery, settings


class Ink(Formation):
    """Multiplicative: the effect of an element is `-P R`, with R the image that the others make."""

    name = "ink"
    ordered = False

    def __init__(self, shape_channels: int = 1) -> None:
        self.shape_channels = shape_channels

    def empty(self, background: Tensor) -> Context:
        return Context(background, torch.ones_like(background[..., :1, :, :]), torch.zeros_like(background))

    def effect(self, context: Context, layer: Tensor) -> Tensor:
        return -layer[..., :-1, :, :] * context.rebuilt

    def cover(self, context: Context, layer: Tensor) -> Context:
        return Context(context.rebuilt + self.effect(context, layer), context.light, context.behind)

    def _shape(self, channel: int) -> int:
        return channel if self.shape_channels > 1 else 0

    def inner(self, target: Tensor, context: Context) -> Forms:
        linear: tuple[Form, ...] = tuple(
            {f"q{self._shape(k)}": -target[..., k, :, :] * context.rebuilt[..., k, :, :]} for k in range(target.shape[-3])
        )
        return Forms(linear)

    def norm(self, weight: Tensor, context: Context) -> Forms:
        channels = context.rebuilt.shape[-3]
        square: tuple[Form, ...] = tuple(
            {f"qq{self._shape(k)}": weight[..., 0, :, :] * context.rebuilt[..., k, :, :].square()} for k in range(channels)
        )
        return Forms(tuple({} for _ in range(channels)), square)

    def features(self, sheet: Tensor) -> dict[str, Tensor]:
        kernels = {"a": sheet[..., -1, :, :]}
        for c in range(sheet.shape[-3] - 1):
            kernels |= {f"q{c}": sheet[..., c, :, :], f"qq{c}": sheet[..., c, :, :].square()}
        return kernels

    def shares(self, layers: Tensor) -> Tensor:
        ink = layers[..., :-1, :, :].mean(-3)
        return ink / ink.sum(-3, keepdim=True).clamp_min(1.0)


PAPER = {1: (0.9,), 3: (0.95, 0.9, 0.8)}
INKS = np.array([[0.7, 0.2, 0.1], [0.1, 0.6, 0.3], [0.2, 0.3, 0.8]], np.float32)
DENSITY = 0.6


def printed(shapes: list[Placed], high: int, wide: int, channels: int) -> NDArray[np.float32]:
    """Shapes drawn by Pillow, each taking its share of the light at every fine point of the paper."""
    fine = np.ones((high * FINE, wide * FINE, channels), np.float32) * np.array(PAPER[channels], np.float32)
    for shape in shapes:
        canvas = Image.new("L", (wide * FINE, high * FINE), 0)
        ImageDraw.Draw(canvas).polygon(points(shape), fill=255)
        fine = np.where(np.asarray(canvas)[..., None] > 0, fine * (1 - DENSITY * np.array(shape.colour, np.float32)), fine)
    return fine.reshape(high, FINE, wide, FINE, channels).mean((1, 3)).astype(np.float32)


def book(channels: int, hues: NDArray[np.float32] | None = None) -> Dictionary:
    plain = dictionary(*KINDS, hues=hues, background=Background("plain", np.array(PAPER[channels], np.float32)))
    return plain.with_concepts([type(c)(c.id, c.shape * DENSITY, c.alpha, c.name) for c in plain])


def test_the_formation_of_this_test_keeps_its_own_promises() -> None:
    rng = torch.Generator().manual_seed(0)
    layers, background = torch.rand(3, 4, 5, 6, generator=rng).double(), torch.rand(3, 5, 6, generator=rng).double()
    ink, image = Ink(3), torch.rand(3, 5, 6, generator=rng).double()
    weight = torch.ones(1, 5, 6).double()
    torch.testing.assert_close(ink.render(layers, background), background * (1 - layers[:, :-1]).prod(0))
    for i in range(3):
        context = ink.context(layers, background, i)
        kernels = ink.features(layers[i])
        form = ink.gain(image, weight, context).at((1.0,) * 3)
        gain = sum(float((maps * kernels[name]).sum()) for name, maps in form.items())
        assert gain == pytest.approx(float(ink.exact_gain(image, weight, context, layers[i])), abs=1e-9)


@pytest.mark.parametrize("objective", [SquaredError(), Correlation()], ids=["squared", "ncc"])
@pytest.mark.parametrize("colour", ["fixed", "hues", "free"])
def test_ink_is_searched_like_brute_force(colour: str, objective: SquaredError | Correlation) -> None:
    channels = 1 if colour == "fixed" else 3
    small = Dictionary(tuple(type(c)(c.id, c.shape[3:18:3, 3:18:3], c.alpha[3:18:3, 3:18:3]) for c in book(channels).concepts[:2]))
    patches, ink = pack(small.concepts), Ink()
    palette = torch.from_numpy(INKS) if colour == "hues" else torch.ones(1, channels)
    image = torch.from_numpy(image_batch([printed(apart(np.random.default_rng(1), 3, 30), 30, 30, channels)]))[..., 12:18, 11:18]
    pose = torch.tensor([[3.0, 3.5, 0.3, 0.0, 0.0]])
    there = paint(sample(patches, torch.tensor([0]), pose, 6, 7), torch.ones(1, channels))[None]
    background = torch.tensor(PAPER[channels]).view(1, -1, 1, 1).expand_as(image)
    query = Query(image, torch.ones_like(image[:, :1]), ink.empty(ink.render(there, background)))
    chosen = {"fixed": Fixed(channels), "hues": HueSet(palette), "free": Free(channels)}[colour]
    bank = build_bank(patches, ink, 2, (1.0,))
    places = [] if colour == "free" else every_place(Searcher(bank, ink, chosen, create_objective(objective)), query, palette)
    for cost in (CostModel(0, 1, 1), CostModel(1, 0, 0)):
        hits = Searcher(bank, ink, chosen, create_objective(objective), method="exhaustive", cost=cost).best(query)
        searcher = Searcher(bank, ink, chosen, create_objective(objective))
        if colour == "free":
            places = every_place(searcher, query, hits.colour[0])
        best = max(p.score for p in places)
        score = float(hits.score[0, 0])
        if colour == "free":
            at = (int(hits.kernel[0, 0]), int(hits.top[0, 0]), int(hits.left[0, 0]))
            assert score == pytest.approx(next(p.score for p in places if (p.kernel, p.top, p.left) == at), abs=1e-4)
        if colour != "free" or not searcher.objective.needs_inner:
            assert score == pytest.approx(best, rel=1e-4, abs=1e-4)


@pytest.mark.parametrize("strategy", ["rounds", "propose"])
@pytest.mark.parametrize("colour", ["none", "hues", "free"])
def test_ink_is_decomposed_and_rendered(strategy: str, colour: str) -> None:
    rng = np.random.default_rng(2)
    channels = 1 if colour == "none" else 3
    hues = None if colour == "none" else INKS
    scenes = [apart(rng, 3, 48, distance=9, hues=hues, rotations=8, jitter=0.2) for _ in range(5)]
    images = [printed(s, 48, 48, channels) for s in scenes]
    concepts = book(channels, hues if colour == "hues" else None)
    colours = {"none": {}, "hues": {"colour": HueColour(count=3)}, "free": {"colour": FreeColour()}}[colour]
    setting = settings(strategy, 8, background=PlainBackground(), price=0.8, **colours)
    found = Engine(concepts, setting, formation=Ink()).run(Arrays(images))
    result = recovery(scenes, found, concepts)
    assert result.right >= 0.8
    assert result.away < 0.5
    assert result.turned < 0.15
    renderer = Renderer(concepts, setting, formation=Ink())
    for image, decomposition in zip(images, found, strict=True):
        rendered = renderer.render(decomposition)
        assert float(((rendered.image - image) ** 2).sum()) == pytest.approx(decomposition.error, rel=1e-3, abs=1e-3)
        assert len(list(rendered.tied_labels())) == 1
        assert all(e.gain >= setting.price - 1e-3 for e in decomposition)


def test_ink_in_tiles() -> None:
    shapes = [Placed(KINDS[i % 3], 14.5 + 27 * (i % 4), 14.5 + 27 * (i // 4)) for i in range(12)]
    setting = settings("rounds", 1, background=PlainBackground(), price=0.8, tile=64, layers=6)
    (found,) = Engine(book(1), setting, formation=Ink()).run(Arrays([printed(shapes, 84, 112, 1)]))
    assert sorted((e.concept, e.x, e.y) for e in found) == sorted((10 + KINDS.index(p.kind), p.x, p.y) for p in shapes)


def test_ink_multiplies_where_it_overlaps() -> None:
    elements = (Element(10, 20.5, 20.5), Element(10, 20.5, 20.5, depth=1))
    renderer = Renderer(book(1), settings(background=PlainBackground()), formation=Ink())
    image = renderer.render(Decomposition("", 0, 40, 40, elements, 0.0, PAPER[1])).image
    assert float(image.min()) == pytest.approx(PAPER[1][0] * (1 - DENSITY) ** 2, abs=1e-5)
