"""Collections as files: Parquet for people and other tools, safetensors where pyarrow is not installed."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pictolex.errors import FormatError, InputError, MissingExtraError, OutputError
from pictolex.model.collection import ELEMENT_COLUMNS, Collection
from pictolex.model.files import (
    Format,
    atomic,
    damaged,
    fitting,
    opened,
    parse_json,
    read_bytes,
    read_tensors,
    sealed,
    tensor_bytes,
    unsealed,
)

ELEMENTS = Format("pictolex elements")

_KEY = b"pictolex"
_ORDER = (
    *("image", "name", "depth", "concept", "hue", "red", "green", "blue", "x", "y"),
    *("rotation", "scale", "mirror", "gain", "visible", "confidence", "z"),
)


def save_collection(collection: Collection, path: str | Path) -> None:
    """Write a `.parquet` or `.safetensors` file, by the name's ending."""
    match Path(path).suffix.lower():
        case ".parquet":
            write_parquet(collection, path)
        case ".safetensors":
            write_safetensors(collection, path)
        case _:
            raise OutputError(f"cannot write {path}: a collection's file must end in .parquet or .safetensors")


def load_collection(path: str | Path) -> Collection:
    """Read a `.parquet` or `.safetensors` file, by the name's ending."""
    match Path(path).suffix.lower():
        case ".parquet":
            return read_parquet(path)
        case ".safetensors":
            return read_safetensors(path)
        case _:
            raise InputError(f"{path}: a collection's file ends in .parquet or .safetensors; give one of those")


def write_parquet(collection: Collection, path: str | Path) -> None:
    """One row per element; the table of images, those without elements too, as JSON in the schema's metadata."""
    pa, pq = _pyarrow()
    columns = dict(collection.columns)
    places = np.repeat(np.arange(len(collection), dtype=np.int32), collection.elements_per_image)
    readable = [name.encode(errors="replace").decode() for name in collection.names]
    arrays = {name: pa.array(column) for name, column in columns.items()}
    arrays["name"] = pa.DictionaryArray.from_arrays(places, pa.array(readable, pa.string()))
    table = pa.table({name: arrays[name] for name in _ORDER if name in arrays})
    content = {"images": {name: _plain(column) for name, column in collection.images.items()}}
    document = sealed(ELEMENTS, content, columns)
    with atomic(path) as file:
        pq.write_table(table.replace_schema_metadata({_KEY: json.dumps(document)}), file, compression="zstd", write_page_checksum=True)


def read_parquet(path: str | Path) -> Collection:
    """Read what `write_parquet` wrote."""
    pa, pq = _pyarrow()
    data = read_bytes(path)
    try:
        table = pq.read_table(pa.BufferReader(data), page_checksum_verification=True)
        table.validate(full=True)
    except (pa.ArrowException, OSError, ValueError, KeyError, TypeError, IndexError) as error:
        raise damaged(path, f"not a whole Parquet file: {str(error).splitlines()[0] if str(error) else type(error).__name__}") from error
    metadata = table.schema.metadata or {}
    if _KEY not in metadata:
        raise FormatError(f"{path}: this Parquet file has no table of images from Pictolex; give one written by `pictolex decompose`")
    document = parse_json(metadata[_KEY], path)
    opened(document, ELEMENTS, path)
    with fitting(path):
        columns = {name: table.column(name).to_numpy() for name in ELEMENT_COLUMNS if name in table.column_names}
        content = unsealed(document, ELEMENTS, path, columns)
        images = {name: _unplain(name, values) for name, values in content["images"].items()}
        return Collection(columns, images)


def write_safetensors(collection: Collection, path: str | Path) -> None:
    """All columns as tensors; the names of the images as UTF-8 bytes, one after the other, and their lengths."""
    tensors = {f"elements.{name}": column for name, column in collection.columns.items()}
    tensors |= {f"images.{name}": column for name, column in collection.images.items() if name != "name"}
    names = [name.encode(errors="surrogatepass") for name in collection.names]
    tensors["names"] = np.frombuffer(b"".join(names), np.uint8)
    tensors["name_lengths"] = np.array([len(name) for name in names], np.int64)
    data = tensor_bytes(ELEMENTS, {}, tensors)
    with atomic(path) as file:
        file.write(data)


def read_safetensors(path: str | Path) -> Collection:
    """Read what `write_safetensors` wrote."""
    _, tensors = read_tensors(path, ELEMENTS)
    with fitting(path):
        text, ends = tensors.pop("names").tobytes(), np.cumsum(tensors.pop("name_lengths"))
        names = [
            text[end - length : end].decode(errors="surrogatepass") for end, length in zip(ends, np.diff(ends, prepend=0), strict=True)
        ]
        images: dict[str, Any] = {"name": names, **_within("images.", tensors)}
        return Collection(_within("elements.", tensors), images)


def _within(prefix: str, tensors: Mapping[str, NDArray[Any]]) -> dict[str, NDArray[Any]]:
    return {name.removeprefix(prefix): tensor for name, tensor in tensors.items() if name.startswith(prefix)}


def _plain(column: NDArray[Any]) -> list[Any]:
    """A column as JSON can hold it: NaN becomes null."""
    return [None if isinstance(value, float) and math.isnan(value) else value for value in column.tolist()]


def _unplain(name: str, values: list[Any]) -> list[Any]:
    return [math.nan if value is None and name != "name" else value for value in values]


def _pyarrow() -> tuple[Any, Any]:
    try:
        import pyarrow
        import pyarrow.parquet
    except ImportError as error:
        raise MissingExtraError("Parquet files need pyarrow: pip install pyarrow, or use a name that ends in .safetensors") from error
    return pyarrow, pyarrow.parquet
