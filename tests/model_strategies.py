"""Dictionaries of every kind for property tests, and what it means that two are the same."""

from __future__ import annotations

from typing import Any

import numpy as np
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from pictolex.model import Background, Concept, Dictionary, Event, Lineage


def values(*shape: int) -> st.SearchStrategy[np.ndarray]:
    return hnp.arrays(np.float32, shape, elements=st.floats(0, 1, width=32))


@st.composite
def dictionaries(draw: st.DrawFn) -> Dictionary:
    channels, side = draw(st.sampled_from([0, 1, 3])), st.integers(1, 4)
    concepts = []
    for id in draw(st.lists(st.integers(0, 99), max_size=4, unique=True)):
        size, name = (draw(side), draw(side)), draw(st.text(st.characters(), max_size=6))
        if channels == 0:
            concepts.append(Concept.voxel(id, draw(values(draw(side), *size)), name))
        else:
            concepts.append(Concept(id, draw(values(*size, channels)), draw(values(*size)), name))
    background = draw(
        st.sampled_from([Background(), Background("free")])
        | st.builds(Background, st.just("plain"), values(3))
        | st.builds(Background, st.just("image"), values(3, 2, 1))
    )
    events = st.builds(
        Event,
        st.floats(0, 9),
        st.sampled_from(["born", "split"]),
        st.integers(0, 9),
        st.tuples(st.integers(0, 9)),
        st.dictionaries(st.text(max_size=4), st.floats(-9, 9)),
    )
    return Dictionary(
        tuple(concepts),
        draw(st.none() | values(2, 3)),
        background,
        draw(st.sampled_from(["alpha", "ink"])),
        draw(st.floats(1, 64)),
        draw(st.integers(100, 200)),
        Lineage(tuple(draw(st.lists(events, max_size=3)))),
    )


def assert_same(one: Dictionary, other: Dictionary, *, tolerance: float = 0.0) -> None:
    def close(a: Any, b: Any) -> bool:
        return (a is None) == (b is None) and (a is None or (a.shape == b.shape and np.allclose(a, b, rtol=0, atol=tolerance)))

    assert one.ids == other.ids
    assert [c.name for c in one] == [c.name for c in other]
    for a, b in zip(one, other, strict=True):
        assert close(a.shape, b.shape)
        assert close(a.alpha, b.alpha)
    assert close(one.hues, other.hues)
    assert one.background.kind == other.background.kind
    assert close(one.background.values, other.background.values)
    assert (one.formation, one.sharpness, one.next_id) == (other.formation, other.sharpness, other.next_id)
