"""Collections: columns and decompositions are two views of the same, and survive their files."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pictolex.errors import FormatError, InputError, OutputError
from pictolex.model import Collection, Decomposition, Element

ENDINGS = (".parquet", ".safetensors")

float32 = st.floats(-1e6, 1e6, width=32)
share = st.floats(0, 1, width=32)


@st.composite
def decompositions(draw: st.DrawFn) -> list[Decomposition]:
    voxel = draw(st.booleans())
    found = []
    for index in draw(st.lists(st.integers(0, 2**40), max_size=5, unique=True)):
        elements = []
        for depth in range(draw(st.integers(0, 4))):
            element = Element(
                concept=draw(st.integers(0, 2**40)),
                x=draw(st.floats(-1e9, 1e9)),
                y=draw(st.floats(-1e9, 1e9)),
                rotation=draw(float32),
                scale=draw(st.floats(0.125, 8, width=32)),
                mirror=draw(st.booleans()),
                hue=draw(st.integers(-1, 300)),
                red=draw(share),
                green=draw(share),
                blue=draw(share),
                depth=2 * depth,
                gain=draw(float32),
                visible=draw(float32),
                confidence=draw(share),
                z=draw(st.floats(-1e9, 1e9)) if voxel else None,
            )
            elements.append(element)
        background = draw(st.none() | st.tuples(share) | st.tuples(share, share, share))
        name = draw(st.text(st.characters(), max_size=8))
        error = draw(st.floats(0, 1e9))
        found.append(Decomposition(name, index, draw(st.integers(1, 99)), draw(st.integers(1, 99)), tuple(elements), error, background))
    return found


def small() -> Collection:
    """Three images out of order, with 2, 0 and 1 elements."""
    columns = {"image": [3, 9, 9], "depth": [0, 1, 0], "concept": [4, 5, 6], "x": [0.5, 1.5, 2.5], "y": [0.5, 1.5, 2.5]}
    images = {"image": [9, 7, 3], "name": ["nine", "seven", "three"], "height": [4, 5, 6], "width": [7, 8, 9], "error": [0.5, 1.5, np.nan]}
    return Collection(columns, images)


@given(decompositions())
def test_decompositions_survive(found: list[Decomposition]) -> None:
    collection = Collection.from_decompositions(found)
    assert list(collection) == found
    assert collection.elements_per_image.tolist() == [len(d) for d in found]
    assert collection.names == tuple(d.name for d in found)


@pytest.mark.parametrize("ending", ENDINGS)
@settings(max_examples=25, deadline=None)
@given(found=decompositions())
def test_files_survive(found: list[Decomposition], ending: str, tmp_path_factory: pytest.TempPathFactory) -> None:
    path = tmp_path_factory.mktemp("collection") / f"elements{ending}"
    Collection.from_decompositions(found).save(path)
    assert list(Collection.load(path)) == found
    assert list(path.parent.iterdir()) == [path]


@given(decompositions(), st.data())
def test_picking_is_as_of_a_list(found: list[Decomposition], data: st.DataObject) -> None:
    collection = Collection.from_decompositions(found)
    some = data.draw(st.slices(len(found)))
    mask = data.draw(st.lists(st.booleans(), min_size=len(found), max_size=len(found)))
    order = data.draw(st.permutations(range(len(found))))
    assert list(collection[some]) == found[some]
    assert list(collection[np.array(mask, bool)]) == [d for d, wanted in zip(found, mask, strict=True) if wanted]
    assert list(collection[order]) == [found[place] for place in order]
    assert list(collection[np.array(order, np.int64)]) == [found[place] for place in order]
    cut = data.draw(st.integers(0, len(found)))
    assert list(Collection.concatenate([collection[:cut], collection[cut:]])) == found


def test_rows_are_put_in_order() -> None:
    collection = small()
    assert collection.columns["concept"].tolist() == [6, 5, 4]
    assert collection.elements_per_image.tolist() == [2, 0, 1]
    assert collection[-1].name == "three"
    assert collection[0][0] == Element(6, 2.5, 2.5)
    assert collection[0].background is None
    assert repr(collection) == "Collection(3 images, 3 elements (1 per image), mean error 1)"
    with pytest.raises(IndexError, match="no image at place 3: the collection has 3"):
        collection[3]


def test_columns_cannot_be_written() -> None:
    collection = small()
    with pytest.raises(ValueError, match="read-only"):
        collection.columns["x"][0] = 5
    with pytest.raises(TypeError):
        collection.images["error"] = np.zeros(3)  # type: ignore[index]


def test_where_keeps_images_and_depths() -> None:
    collection = small()
    kept = collection.where(collection.columns["concept"] != 6)
    assert kept.elements_per_image.tolist() == [1, 0, 1]
    assert kept[0][0].depth == 1
    with pytest.raises(InputError, match="must be 3 booleans"):
        collection.where([True])


def test_concatenate_refuses_what_does_not_go_together() -> None:
    with pytest.raises(InputError, match="image 3 is in the collection twice"):
        Collection.concatenate([small(), small()])
    voxel = Collection.from_decompositions([Decomposition("", 0, 4, 4, (Element(0, 1, 1, z=1.0),), 0.0)])
    with pytest.raises(InputError, match="voxel scenes"):
        Collection.concatenate([small(), voxel])
    assert len(Collection.concatenate([])) == 0
    with pytest.raises(InputError, match="z"):
        Collection.from_decompositions([voxel[0], Decomposition("", 1, 4, 4, (Element(0, 1, 1),), 0.0)])


@pytest.mark.parametrize(
    ("columns", "images", "message"),
    [
        ({"colour": [1]}, {}, "unknown: colour"),
        ({"x": None}, {}, "missing: x"),
        ({"x": [1.0, 2.0]}, {}, "'x' has 2 rows where 'image' has 1"),
        ({"x": [np.nan]}, {}, "'x' holds NaN"),
        ({"x": [[1.0]]}, {}, "one-dimensional"),
        ({"depth": [0.5]}, {}, "'depth' must be one-dimensional and of type int32"),
        ({"depth": [2**40]}, {}, "too large for int32"),
        ({"mirror": [1.0]}, {}, "of type bool"),
        ({"concept": [-1]}, {}, "'concept' must be from 0"),
        ({"confidence": [1.5]}, {}, "'confidence' must be from 0 to 1"),
        ({"scale": [0.0]}, {}, "'scale' must be above 0"),
        ({"image": [1]}, {}, "image 1, which is not in the table"),
        ({"image": [0, 0], "depth": [0, 0], "concept": [1, 1], "x": [1, 1], "y": [1, 1]}, {}, "two elements of depth 0"),
        ({}, {"image": [-1]}, "'image' must be 0 or more"),
        ({}, {"height": [0]}, "'height' must be 1 or more"),
        ({}, {"name": [5]}, "must hold texts"),
        ({}, {"error": [np.inf]}, "'error' must be finite"),
        ({}, {"weight": [1]}, "unknown: weight"),
    ],
)
def test_collection_refuses(columns: dict[str, Any], images: dict[str, Any], message: str) -> None:
    good = {"image": [0], "depth": [0], "concept": [1], "x": [1.5], "y": [1.5]} | columns
    table = {"image": [0], "name": ["a"], "height": [4], "width": [4], "error": [0.0]} | images
    with pytest.raises(InputError, match=message):
        Collection({name: values for name, values in good.items() if values is not None}, table)


def test_parquet_has_the_columns_of_the_contract(tmp_path: Path) -> None:
    import pyarrow.parquet as pq

    small().to_parquet(tmp_path / "elements.parquet")
    table = pq.read_table(tmp_path / "elements.parquet")
    wanted = "image name depth concept hue red green blue x y rotation scale mirror gain visible confidence"
    assert table.column_names == wanted.split()
    assert table.column("name").to_pylist() == ["nine", "nine", "three"]


@pytest.mark.parametrize("ending", ENDINGS)
def test_names_that_are_no_utf8_survive(ending: str, tmp_path: Path) -> None:
    found = [Decomposition("caf\udce9.png", 0, 4, 4, (Element(0, 1, 1),), 0.0)]
    Collection.from_decompositions(found).save(tmp_path / f"e{ending}")
    assert list(Collection.load(tmp_path / f"e{ending}")) == found


@pytest.mark.parametrize("ending", ENDINGS)
def test_damage_is_noticed(ending: str, tmp_path: Path) -> None:
    path, hurt = tmp_path / f"good{ending}", tmp_path / f"hurt{ending}"
    collection = small()
    collection.save(path)
    good = path.read_bytes()
    for place in range(0, len(good), 10):
        hurt.write_bytes(good[:place])
        with pytest.raises(FormatError, match=f"hurt{ending}: the file is damaged"):
            Collection.load(hurt)
        for flip in (0x01, 0x80):
            hurt.write_bytes(good[:place] + bytes([good[place] ^ flip]) + good[place + 1 :])
            try:
                found = Collection.load(hurt)
            except FormatError as error:
                assert str(hurt) in str(error)
            else:  # a byte that says nothing, such as one of Parquet's statistics
                assert all(np.array_equal(found.columns[n], c) for n, c in collection.columns.items()), place
                assert all(np.array_equal(found.images[n], c, equal_nan=n != "name") for n, c in collection.images.items()), place


def test_foreign_and_newer_parquet_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    from pictolex.model import tables
    from pictolex.model.files import Format

    pq.write_table(pa.table({"x": [1.0]}), tmp_path / "foreign.parquet")
    with pytest.raises(FormatError, match="no table of images from Pictolex"):
        Collection.load(tmp_path / "foreign.parquet")
    for ending in ENDINGS:
        with monkeypatch.context() as patch:
            patch.setattr(tables, "ELEMENTS", Format("pictolex elements", 2))
            small().save(tmp_path / f"new{ending}")
        with pytest.raises(FormatError, match=r"version 2 of the pictolex elements format is not known.*update Pictolex"):
            Collection.load(tmp_path / f"new{ending}")


def test_endings_and_missing_files_are_told(tmp_path: Path) -> None:
    with pytest.raises(OutputError, match=r"must end in .parquet or .safetensors"):
        small().save(tmp_path / "e.csv")
    with pytest.raises(InputError, match=r"ends in .parquet or .safetensors"):
        Collection.load(tmp_path / "e.csv")
    for ending in ENDINGS:
        with pytest.raises(InputError, match="there is no such file"):
            Collection.load(tmp_path / f"none{ending}")


def test_pyarrow_missing_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import sys

    from pictolex.errors import MissingExtraError

    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(MissingExtraError, match="safetensors"):
        small().save(tmp_path / "e.parquet")
    small().save(tmp_path / "e.safetensors")
    assert len(Collection.load(tmp_path / "e.safetensors")) == 3
