"""Alpha and additive formation against plain loops: rendering, contexts, effects, and what search computes from them."""

from __future__ import annotations

import hypothesis.strategies as st
import numpy as np
import pytest
import torch
from hypothesis import given, settings
from torch import Tensor

from pictolex.formation import Additive, Alpha, Formation, Forms, create, paint, reference
from pictolex.settings import AdditiveFormation, AlphaFormation

FORMATIONS = [Alpha, Additive]
sizes = st.integers(1, 5)


class Case:
    """Random sheets, colours, image and weight: everything in double."""

    def __init__(self, seed: int, count: int, channels: int, rgb_shapes: bool, high: int, wide: int) -> None:
        rng = torch.Generator().manual_seed(seed)

        def unit(*shape: int) -> Tensor:
            return torch.rand(*shape, generator=rng, dtype=torch.float64)

        self.shape_channels = channels if rgb_shapes else 1
        alpha = unit(count, 1, high, wide)
        # Some pixels wholly covered, some not at all.
        alpha = ((alpha - 0.5) * 1.6 + 0.5).clamp(0, 1)
        self.sheets = torch.cat([unit(count, self.shape_channels, high, wide) * alpha, alpha], 1)
        self.colours = unit(count, channels)
        self.layers = paint(self.sheets, self.colours)
        self.background = unit(channels, high, wide)
        self.image = unit(channels, high, wide)
        self.weight = (unit(1, high, wide) > 0.2).double()


@st.composite
def cases(draw: st.DrawFn) -> Case:
    return Case(
        draw(st.integers(0, 10**6)),
        draw(st.integers(0, 4)),
        draw(st.sampled_from([1, 3])),
        draw(st.booleans()),
        draw(sizes),
        draw(sizes),
    )


def looped(formation: Formation, layers: Tensor, background: Tensor) -> Tensor:
    """The image by the loops of `reference.py`."""
    colours, alphas = layers[:, :-1].numpy(), layers[:, -1].numpy()
    if formation.name == "alpha":
        return torch.from_numpy(reference.alpha_composite(colours, alphas, background.numpy()))
    return torch.from_numpy(reference.additive_composite(colours, background.numpy()))


def without(layers: Tensor, index: int) -> Tensor:
    return torch.cat([layers[:index], layers[index + 1 :]])


def value(formation: Formation, forms: Forms, sheet: Tensor, colour: Tensor) -> float:
    """Forms at a colour, dotted with the kernels they name."""
    kernels = formation.features(sheet)
    return sum(float((image * kernels[name]).sum()) for name, image in forms.at(tuple(colour.tolist())).items())


@pytest.mark.parametrize("make", FORMATIONS)
@settings(max_examples=40, deadline=None)
@given(case=cases())
def test_rendering_equals_the_loops(make: type[Formation], case: Case) -> None:
    formation = make(case.shape_channels)
    torch.testing.assert_close(formation.render(case.layers, case.background), looped(formation, case.layers, case.background))


@pytest.mark.parametrize("make", FORMATIONS)
@settings(max_examples=25, deadline=None)
@given(case=cases())
def test_contexts_and_effects_say_what_placing_an_element_does(make: type[Formation], case: Case) -> None:
    formation = make(case.shape_channels)
    whole = looped(formation, case.layers, case.background)
    for i in range(len(case.layers)):
        context = formation.context(case.layers, case.background, i)
        others = looped(formation, without(case.layers, i), case.background)
        torch.testing.assert_close(context.rebuilt, others)
        torch.testing.assert_close(others + formation.effect(context, case.layers[i]), whole)


@pytest.mark.parametrize("make", FORMATIONS)
@settings(max_examples=25, deadline=None)
@given(case=cases())
def test_all_contexts_at_once_are_the_single_ones(make: type[Formation], case: Case) -> None:
    if not len(case.layers):
        return
    formation = make(case.shape_channels)
    together = formation.contexts(case.layers, case.background)
    for i in range(len(case.layers)):
        alone = formation.context(case.layers, case.background, i)
        for name in ("rebuilt", "light", "behind"):
            torch.testing.assert_close(getattr(together, name)[i], getattr(alone, name))


@pytest.mark.parametrize("make", FORMATIONS)
@settings(max_examples=25, deadline=None)
@given(case=cases())
def test_covering_one_layer_after_the_other_renders(make: type[Formation], case: Case) -> None:
    formation = make(case.shape_channels)
    context = formation.empty(case.background)
    for i in range(len(case.layers)):
        context = formation.cover(context, case.layers[i])
        torch.testing.assert_close(context.rebuilt, looped(formation, case.layers[: i + 1], case.background))


@pytest.mark.parametrize("make", FORMATIONS)
@settings(max_examples=40, deadline=None)
@given(case=cases())
def test_forms_dotted_with_kernels_are_the_exact_gain(make: type[Formation], case: Case) -> None:
    formation = make(case.shape_channels)
    weight, image = case.weight, case.image
    after = (weight * (image - looped(formation, case.layers, case.background)) ** 2).sum()
    for i in range(len(case.layers)):
        context = formation.context(case.layers, case.background, i)
        layer, sheet, colour = case.layers[i], case.sheets[i], case.colours[i]
        effect = formation.effect(context, layer)
        before = (weight * (image - looped(formation, without(case.layers, i), case.background)) ** 2).sum()
        saved = float(before - after)
        assert float(formation.exact_gain(image, weight, context, layer)) == pytest.approx(saved, abs=1e-9)
        assert value(formation, formation.gain(image, weight, context), sheet, colour) == pytest.approx(saved, abs=1e-9)
        inner, norm = formation.inner(image * weight, context), formation.norm(weight, context)
        assert value(formation, inner, sheet, colour) == pytest.approx(float((weight * image * effect).sum()), abs=1e-9)
        assert value(formation, norm, sheet, colour) == pytest.approx(float((weight * effect**2).sum()), abs=1e-9)


@pytest.mark.parametrize("make", FORMATIONS)
@settings(max_examples=15, deadline=None)
@given(case=cases())
def test_painted_layers_are_sheets_of_a_recast_formation(make: type[Formation], case: Case) -> None:
    formation = make(case.shape_channels)
    recast = formation.recast(case.image.shape[0])
    assert (recast.shape_channels, formation.shape_channels) == (case.image.shape[0], case.shape_channels)
    one = torch.ones(case.image.shape[0], dtype=torch.float64)
    for i in range(len(case.layers)):
        context = formation.context(case.layers, case.background, i)
        exact = float(formation.exact_gain(case.image, case.weight, context, case.layers[i]))
        assert value(recast, recast.gain(case.image, case.weight, context), case.layers[i], one) == pytest.approx(exact, abs=1e-9)


@pytest.mark.parametrize("make", FORMATIONS)
@settings(max_examples=20, deadline=None)
@given(case=cases())
def test_what_of_an_error_lies_under_an_element(make: type[Formation], case: Case) -> None:
    formation = make(case.shape_channels)
    for sheet in case.sheets:
        kernels = formation.features(sheet)
        under = sum(float((image * kernels[name]).sum()) for name, image in formation.covered(case.image[0]).items())
        assert under == pytest.approx(float((case.image[0] * sheet[-1]).sum()), abs=1e-9)


@settings(max_examples=25, deadline=None)
@given(case=cases())
def test_shares_of_alpha_are_what_each_layer_shows(case: Case) -> None:
    formation = Alpha(case.shape_channels)
    shares = formation.shares(case.layers)
    for i in range(len(case.layers)):
        # Paint one layer white and all others black: the image is its share.
        colours = np.zeros((len(case.layers), 1, *case.image.shape[1:]))
        colours[i, 0] = case.layers[i, -1].numpy()
        shown = reference.alpha_composite(colours, case.layers[:, -1].numpy(), np.zeros((1, *case.image.shape[1:])))
        np.testing.assert_allclose(shares[i].numpy(), shown[0], atol=1e-12)
    assert float((shares.sum(0)).max() if len(shares) else 0) <= 1 + 1e-12


@settings(max_examples=25, deadline=None)
@given(case=cases())
def test_shares_of_additive_never_exceed_the_whole(case: Case) -> None:
    shares = Additive(case.shape_channels).shares(case.layers)
    assert bool((shares >= 0).all())
    assert bool((shares.sum(0) <= 1 + 1e-12).all())


@settings(max_examples=25, deadline=None)
@given(case=cases(), seed=st.integers(0, 10**6))
def test_forms_add_and_scale_like_polynomials(case: Case, seed: int) -> None:
    if not len(case.layers):
        return
    colour = torch.rand(case.image.shape[0], generator=torch.Generator().manual_seed(seed), dtype=torch.float64)
    formation = Alpha(case.shape_channels)
    context = formation.context(case.layers, case.background, 0)
    a, b = formation.gain(case.image, case.weight, context), formation.norm(case.weight, context)
    sheet = case.sheets[0]
    added = value(formation, a, sheet, colour) + value(formation, b, sheet, colour)
    assert value(formation, a + b, sheet, colour) == pytest.approx(added, abs=1e-9)
    assert value(formation, a * -2.5, sheet, colour) == pytest.approx(-2.5 * value(formation, a, sheet, colour), abs=1e-9)


def test_batches_render_item_by_item() -> None:
    cases = [Case(seed, 3, 3, True, 4, 5) for seed in range(4)]
    layers, background = torch.stack([c.layers for c in cases]), torch.stack([c.background for c in cases])
    for formation in (Alpha(3), Additive(3)):
        together = formation.render(layers, background)
        for case, image in zip(cases, together, strict=True):
            torch.testing.assert_close(image, looped(formation, case.layers, case.background))


@pytest.mark.parametrize("make", FORMATIONS)
def test_rendering_is_differentiable(make: type[Formation]) -> None:
    case = Case(3, 3, 3, False, 3, 4)
    sheets, colours, background = (t.clone().requires_grad_() for t in (case.sheets, case.colours, case.background))
    formation = make(1)
    assert torch.autograd.gradcheck(lambda s, h, b: formation.render(paint(s, h), b), (sheets, colours, background))


def test_settings_name_formations() -> None:
    alpha = create(AlphaFormation(sharpness=3.0), 3)
    assert isinstance(alpha, Alpha)
    assert (alpha.sharpness, alpha.shape_channels, alpha.ordered) == (3.0, 3, True)
    additive = create(AdditiveFormation(), 1)
    assert (type(additive), additive.shape_channels, additive.ordered) == (Additive, 1, False)
