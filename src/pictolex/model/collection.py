"""The elements of many images, held as columns."""

from __future__ import annotations

import math
import operator
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Any, TypeAlias, overload

import numpy as np
from numpy.typing import ArrayLike, NDArray

from pictolex.errors import InputError
from pictolex.model.arrays import read_only
from pictolex.model.decomposition import Decomposition, Painter
from pictolex.model.element import Element

Column: TypeAlias = NDArray[Any]
Columns: TypeAlias = dict[str, Column]

ELEMENT_COLUMNS: Mapping[str, type] = MappingProxyType(
    {
        "image": np.int64,
        "depth": np.int32,
        "concept": np.int64,
        "hue": np.int32,
        "red": np.float32,
        "green": np.float32,
        "blue": np.float32,
        "x": np.float64,
        "y": np.float64,
        "rotation": np.float32,
        "scale": np.float32,
        "mirror": np.bool_,
        "gain": np.float32,
        "visible": np.float32,
        "confidence": np.float32,
        "z": np.float64,
    }
)
"""The columns of elements and their types; `z` is there for voxel scenes only."""

IMAGE_COLUMNS: Mapping[str, type] = MappingProxyType(
    {
        "image": np.int64,
        "name": np.object_,
        "height": np.int32,
        "width": np.int32,
        "error": np.float64,
        "background_red": np.float32,
        "background_green": np.float32,
        "background_blue": np.float32,
    }
)
"""The columns of the table of images and their types. Background columns are NaN where an image has no colour of its own;
a grey one has red only."""

_ELEMENT_DEFAULTS: Mapping[str, Any] = MappingProxyType(
    {"hue": -1, "red": 1, "green": 1, "blue": 1, "rotation": 0, "scale": 1, "mirror": False, "gain": 0, "visible": 0, "confidence": 1}
)
_BACKGROUND = ("background_red", "background_green", "background_blue")


class Collection:
    """The elements of all images of a source; immutable.

    `columns` has one row per element, ordered as the images are and by depth within each (`ELEMENT_COLUMNS`);
    `images` has one row per image, images without elements too (`IMAGE_COLUMNS`).
    A number picks one `Decomposition`; a slice, a mask or a list of places picks a Collection.
    """

    def __init__(self, columns: Mapping[str, ArrayLike], images: Mapping[str, ArrayLike], painter: Painter | None = None) -> None:
        self._painter = painter
        table = _columns(images, IMAGE_COLUMNS, dict.fromkeys(_BACKGROUND, math.nan), "image")
        rows = _columns(columns, ELEMENT_COLUMNS, _ELEMENT_DEFAULTS, "element", optional=("z",))
        _check_images(table)
        _check_elements(rows)
        place = _places(rows["image"], table["image"])
        order = np.lexsort((rows["depth"], place))
        place = place[order]
        rows = {name: column[order] for name, column in rows.items()}
        double = (place[1:] == place[:-1]) & (rows["depth"][1:] == rows["depth"][:-1])
        if double.any():
            row = int(double.argmax())
            raise InputError(f"image {rows['image'][row]} has two elements of depth {rows['depth'][row]}; give each a depth of its own")
        self._columns = {name: read_only(column) for name, column in rows.items()}
        self._images = {name: read_only(column) for name, column in table.items()}
        self._starts = read_only(np.searchsorted(place, np.arange(len(table["image"]) + 1)))

    @property
    def columns(self) -> Mapping[str, Column]:
        """The columns of the elements, read-only."""
        return MappingProxyType(self._columns)

    @property
    def images(self) -> Mapping[str, Column]:
        """The columns of the table of images, read-only."""
        return MappingProxyType(self._images)

    @property
    def elements_per_image(self) -> NDArray[np.int64]:
        """The number of elements of every image."""
        return np.diff(self._starts).astype(np.int64)

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the images."""
        return tuple(self._images["name"])

    def __len__(self) -> int:
        return len(self._images["image"])

    def __iter__(self) -> Iterator[Decomposition]:
        return (self._decomposition(place) for place in range(len(self)))

    @overload
    def __getitem__(self, which: int | np.integer[Any]) -> Decomposition: ...

    @overload
    def __getitem__(self, which: slice | Sequence[int] | Sequence[bool] | NDArray[Any]) -> Collection: ...

    def __getitem__(self, which: Any) -> Decomposition | Collection:
        if isinstance(which, (slice, Sequence)) or (isinstance(which, np.ndarray) and which.ndim):
            return self._pick(which)
        place = operator.index(which)
        if not -len(self) <= place < len(self):
            raise IndexError(f"there is no image at place {place}: the collection has {len(self)}")
        return self._decomposition(place % len(self))

    def _pick(self, which: slice | Sequence[int] | Sequence[bool] | NDArray[Any]) -> Collection:
        if not isinstance(which, slice):
            which = np.asarray(which)
            if which.size == 0:
                which = which.astype(np.int64)
        places = np.arange(len(self))[which]
        starts, counts = self._starts[places], self.elements_per_image[places]
        ends = np.cumsum(counts)
        rows = np.repeat(starts - ends + counts, counts) + np.arange(counts.sum())
        return Collection(_take(self._columns, rows), _take(self._images, places), self._painter)

    def _decomposition(self, place: int) -> Decomposition:
        image = {name: column[place] for name, column in self._images.items()}
        rows = range(self._starts[place], self._starts[place + 1])
        names = [name for name in self._columns if name != "image"]
        elements = (Element(**{name: self._columns[name][row].item() for name in names}) for row in rows)
        background = tuple(float(image[name]) for name in _BACKGROUND if not math.isnan(image[name]))
        return Decomposition(
            name=image["name"],
            index=int(image["image"]),
            height=int(image["height"]),
            width=int(image["width"]),
            elements=tuple(elements),
            error=float(image["error"]),
            background=background or None,
            painter=self._painter,
        )

    def drawn_by(self, painter: Painter) -> Collection:
        """The same, its decompositions able to `render()` and to give their `layers()`."""
        return Collection(self._columns, self._images, painter)

    def where(self, mask: ArrayLike) -> Collection:
        """The same images with only those elements for which `mask` (one per element) is true."""
        mask = np.asarray(mask)
        if mask.dtype != np.bool_ or mask.shape != self._columns["image"].shape:
            raise InputError(f"a mask of elements must be {len(self._columns['image'])} booleans, got {mask.dtype} {mask.shape}")
        return Collection(_take(self._columns, mask), self._images, self._painter)

    @classmethod
    def concatenate(cls, collections: Iterable[Collection]) -> Collection:
        """One collection of the images of several, which must be different images of one source."""
        collections = list(collections)
        filled = [collection for collection in collections if len(collection._columns["image"])] or collections[:1]
        if len({"z" in collection._columns for collection in filled}) > 1:
            raise InputError("collections of voxel scenes and of flat images cannot be concatenated")
        names = filled[0]._columns if filled else _required(ELEMENT_COLUMNS, "z")
        columns = {name: _join([c._columns[name] for c in filled], ELEMENT_COLUMNS[name]) for name in names}
        images = {name: _join([c._images[name] for c in collections], kind) for name, kind in IMAGE_COLUMNS.items()}
        return cls(columns, images)

    @classmethod
    def from_decompositions(cls, decompositions: Iterable[Decomposition]) -> Collection:
        """The collection of some decompositions, in their order."""
        all_of = list(decompositions)
        elements = [(d.index, element) for d in all_of for element in d.elements]
        voxel = any(element.z is not None for _, element in elements)
        if voxel and any(element.z is None for _, element in elements):
            raise InputError("either all elements of a collection have a z (voxel scenes) or none")
        columns: dict[str, Any] = {"image": [index for index, _ in elements]}
        for name in ELEMENT_COLUMNS:
            if name != "image" and (voxel or name != "z"):
                columns[name] = [getattr(element, name) for _, element in elements]
        images: dict[str, Any] = {name: [getattr(d, name) for d in all_of] for name in ("name", "height", "width", "error")}
        images["image"] = [d.index for d in all_of]
        for channel, name in enumerate(_BACKGROUND):
            images[name] = [(d.background or ())[channel] if channel < len(d.background or ()) else math.nan for d in all_of]
        return cls(columns, images)

    def save(self, path: str | Path) -> None:
        """Write a `.parquet` or `.safetensors` file, whole or not at all."""
        from pictolex.model.tables import save_collection

        save_collection(self, path)

    @classmethod
    def load(cls, path: str | Path) -> Collection:
        """Read what `save` wrote."""
        from pictolex.model.tables import load_collection

        return load_collection(path)

    def to_parquet(self, path: str | Path) -> None:
        """Write a Parquet file: one row per element, the table of images in the schema's metadata."""
        from pictolex.model.tables import write_parquet

        write_parquet(self, path)

    @classmethod
    def from_parquet(cls, path: str | Path) -> Collection:
        """Read what `to_parquet` wrote."""
        from pictolex.model.tables import read_parquet

        return read_parquet(path)

    def __repr__(self) -> str:
        count = len(self._columns["image"])
        known = self._images["error"][~np.isnan(self._images["error"])]
        mean = f" ({count / len(self):.2g} per image)" if len(self) else ""
        error = f", mean error {known.mean():.4g}" if len(known) else ""
        return f"Collection({len(self)} images, {count} elements{mean}{error})"


def _required(kinds: Mapping[str, type], *without: str) -> list[str]:
    return [name for name in kinds if name not in without]


def _columns(
    given: Mapping[str, ArrayLike], kinds: Mapping[str, type], defaults: Mapping[str, Any], what: str, optional: tuple[str, ...] = ()
) -> Columns:
    """Copies of the given columns in their types, with defaults for those left out."""
    unknown = sorted(set(given) - set(kinds))
    missing = [name for name in kinds if name not in given and name not in defaults and name not in optional]
    if unknown or missing:
        wrong = f"unknown: {', '.join(unknown)}" if unknown else f"missing: {', '.join(missing)}"
        raise InputError(f"wrong {what} columns ({wrong}); a collection has {', '.join(kinds)}")
    columns = {name: _cast(given[name], kinds[name], f"the {what} column {name!r}") for name in kinds if name in given}
    count = len(columns["image"])
    for name, column in columns.items():
        if len(column) != count:
            raise InputError(f"the {what} column {name!r} has {len(column)} rows where 'image' has {count}")
    columns |= {name: np.full(count, value, kinds[name]) for name, value in defaults.items() if name not in columns}
    return {name: columns[name] for name in kinds if name in columns}


def _cast(values: ArrayLike, kind: type, what: str) -> Column:
    """A copy of `values` in the type of its column, refused where that would change them."""
    if kind is np.object_:
        texts: list[Any] = list(values)  # type: ignore[arg-type]
        if not all(isinstance(text, str) for text in texts):
            raise InputError(f"{what} must hold texts")
        names: Column = np.empty(len(texts), dtype=object)
        names[:] = [str(text) for text in texts]
        return names
    array = np.asarray(values)
    if array.size == 0:
        array = array.reshape(0).astype(kind)
    allowed = {"i": "iu", "f": "iuf", "b": "b"}[np.dtype(kind).kind]
    if array.ndim != 1 or array.dtype.kind not in allowed:
        raise InputError(f"{what} must be one-dimensional and of type {np.dtype(kind)}, got {array.dtype} {array.shape}")
    column: Column = array.astype(kind)
    if allowed == "iu" and not np.array_equal(column, array):
        raise InputError(f"{what} holds numbers too large for {np.dtype(kind)}")
    return column


def _check_images(table: Columns) -> None:
    """Refuse a table of images that could not be."""
    for name, low in (("image", 0), ("height", 1), ("width", 1)):
        if (table[name] < low).any():
            raise InputError(f"the image column {name!r} must be {low} or more, found {table[name].min()}")
    if np.isinf(table["error"]).any():
        raise InputError("the image column 'error' must be finite, or NaN where it is not known")
    index, count = np.unique(table["image"], return_counts=True)
    if (count > 1).any():
        raise InputError(f"image {index[count > 1][0]} is in the collection twice")


def _check_elements(rows: Columns) -> None:
    """Refuse elements that could not be placed."""
    for name, column in rows.items():
        if column.dtype.kind == "f" and not np.isfinite(column).all():
            raise InputError(f"the element column {name!r} holds NaN or infinite values")
    limits = {"depth": (0, math.inf), "concept": (0, math.inf), "hue": (-1, math.inf), "confidence": (0, 1)}
    for name, (low, high) in limits.items():
        if ((rows[name] < low) | (rows[name] > high)).any():
            raise InputError(f"the element column {name!r} must be from {low} to {high}, found {rows[name].min()} to {rows[name].max()}")
    if (rows["scale"] <= 0).any():
        raise InputError(f"the element column 'scale' must be above 0, found {rows['scale'].min()}")


def _places(wanted: NDArray[np.int64], index: NDArray[np.int64]) -> NDArray[np.int64]:
    """The place in the table of images of each element's image."""
    order = np.argsort(index, kind="stable")
    found = np.searchsorted(index, wanted, sorter=order)
    known = found < len(index)
    known[known] = index[order[found[known]]] == wanted[known]
    if not known.all():
        raise InputError(f"elements belong to image {wanted[~known][0]}, which is not in the table of images")
    return order[found] if len(index) else found


def _take(columns: Mapping[str, Column], which: Column) -> Columns:
    return {name: column[which] for name, column in columns.items()}


def _join(columns: list[Column], kind: type) -> Column:
    return np.concatenate(columns) if columns else np.empty(0, kind)
