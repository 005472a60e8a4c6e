"""What is known about images, apart from them: learning, decomposing and searching never see this module."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from pictolex.errors import InputError
from pictolex.sources.base import Which, resolve, scene_images, whole_scenes
from pictolex.sources.npz import Archive, NpzSpec, parse_npz
from pictolex.sources.truth_patches import KEYS, concepts_from, drawn_by, named, patches_and_classes

if TYPE_CHECKING:
    from pictolex.model import Concept, Dictionary

__all__ = ["Truth", "concepts_from", "open_truth"]

Labels = NDArray[np.int64]
Mask = NDArray[np.integer[Any]]

_OBJECTS = ("factors", "placements")


@dataclass(frozen=True, eq=False)
class Truth:
    """Truth of a source's images, image by image in the source's order.

    `mask_of(i)`: instance ids (h, w), 0 = background, later objects in front. `labels`: one class an image. `factors(i)`: the
    arrays of its scene. `concepts`, `dictionary`: the true patches (the dictionary with hues and background, where known).
    `kinds` (images, numbers): the class that a number in the first column of `factors` or `placements` stands for in image i;
    their row k - 1 is of instance id k. Where there are `concepts`, a class is the id of one.
    """

    count: int
    mask_of: Callable[[int], Mask] | None = None
    labels: Labels | None = None
    concepts: tuple[Concept, ...] | None = None
    dictionary: Dictionary | None = None
    factors: Callable[[int], dict[str, NDArray[np.generic]]] | None = None
    views: int = 1
    kinds: Labels | None = None

    def __len__(self) -> int:
        return self.count

    @property
    def has_masks(self) -> bool:
        """Whether objects are known."""
        return self.mask_of is not None

    def masks(self, i: int) -> Mask | None:
        """The instance ids of image i, or None where objects are not known."""
        return None if self.mask_of is None else self.mask_of(i)

    @property
    def class_count(self) -> int:
        """How many classes of objects there are; 0 where they are not known."""
        return 0 if self.kinds is None else len(np.unique(self.kinds))

    def classes(self, i: int) -> Labels | None:
        """The class of every instance of image i, from id 1 on (-1: none with this id), or None where they are not known."""
        known = None if self.factors is None or self.kinds is None else self.factors(i)
        if known is None or self.kinds is None:
            return None
        numbers = next(known[key] for key in _OBJECTS if key in known)[:, 0].astype(np.int64)
        return np.where(numbers < 0, -1, self.kinds[i][np.maximum(numbers, 0)])

    def placements(self, i: int) -> Labels | None:
        """Rows (class, y, x, pixels that show) of the objects of image i, y and x of the motif's top left corner.

        None but in sets of motifs that are only shifted.
        """
        classes, mask = self.classes(i), self.masks(i)
        rows = None if self.factors is None else self.factors(i).get("placements")
        if classes is None or mask is None or rows is None or rows.shape[1] != 3:
            return None
        shown = np.bincount(mask.ravel(), minlength=len(rows) + 1)[1 : len(rows) + 1]
        return np.column_stack([classes, rows[:, 1:], shown])[classes >= 0]

    def take(self, which: Which) -> Truth:
        """The truth of a part of the source; patches that are of other images only are left out."""
        indices = resolve(which, self.count)
        mask_of, factors = self.mask_of, self.factors
        kinds = None if self.kinds is None else self.kinds[indices]
        gone = () if self.kinds is None or kinds is None else np.setdiff1d(self.kinds, kinds)
        return Truth(
            len(indices),
            None if mask_of is None else lambda i: mask_of(int(indices[i])),
            None if self.labels is None else self.labels[indices],
            None if self.concepts is None else tuple(concept for concept in self.concepts if concept.id not in gone),
            self.dictionary,
            None if factors is None else lambda i: factors(int(indices[i])),
            self.views if whole_scenes(indices, self.views) else 1,
            kinds,
        )


def open_truth(spec: Any, *, count: int | None = None, seed: int = 0, masks: str | None = None) -> Truth | None:
    """The truth beside a source that `open_source` opens with the same arguments, or None where there is none.

    `masks` (`FILE:KEY`) names instance masks kept elsewhere. A part of a generated or stored source keeps its truth.
    """
    truth = _truth_of(spec, count, seed)
    if masks is not None:
        truth = _with_masks(truth, masks)
    return truth if truth is None or count is None or len(truth) <= count * truth.views else truth.take(slice(count * truth.views))


def _truth_of(spec: Any, count: int | None, seed: int) -> Truth | None:
    """By the kind of source, decided as `open_source` does."""
    from pictolex.sources import BUILT_IN, DEFAULT_COUNT, Part, split_slice
    from pictolex.sources.synthetic import SyntheticSource
    from pictolex.sources.truth_published import truth_of_published

    if isinstance(spec, SyntheticSource):
        return _synthetic(spec)
    if isinstance(spec, Part):
        whole = _truth_of(spec.whole, None, seed)
        return None if whole is None else whole.take(spec.indices)
    if not isinstance(spec, str | os.PathLike):
        return None
    text = os.fspath(spec)
    if text in BUILT_IN and not Path(text).exists():
        return _synthetic(SyntheticSource(text, DEFAULT_COUNT if count is None else count, seed))
    published = truth_of_published(text)
    if published is not None:
        return published
    archive = parse_npz(text)
    if archive is not None:
        return _stored(archive) if archive.path.suffix.lower() == ".npz" else None
    what, part = split_slice(text)
    if part is None:
        return None
    whole = _truth_of(what, None, seed)
    return None if whole is None else whole.take(scene_images(part, len(whole), whole.views))


def _synthetic(source: Any) -> Truth:
    """A generator knows everything."""
    dictionary: Dictionary | None = source.dictionary()

    def mask_of(i: int) -> Mask:
        scene, view = divmod(i, source.views)
        mask: Mask = source.scene(scene).masks[view]
        return mask

    def factors(i: int) -> dict[str, NDArray[np.generic]]:
        known: dict[str, NDArray[np.generic]] = source.scene(i // source.views).factors
        return known

    concepts = None if dictionary is None else dictionary.concepts
    own = np.arange(named(source.constants()))
    kinds = np.broadcast_to(own, (len(source), len(own)))
    return Truth(len(source), mask_of, None, concepts, dictionary, factors, source.views, kinds)


def _stored(spec: NpzSpec) -> Truth | None:
    """What stands beside the images under the same prefix: `masks`, `labels`, `factors`, `placements`; and the patches."""
    with Archive(spec.path) as archive:
        key = archive.image_key(spec.key)
        shape = archive.shape(key)
        prefix = NpzSpec(spec.path, key).prefix
        views = shape[1] if "view_matrices" in archive.keys and len(shape) >= 4 else 1
        stored = {k: archive.read(prefix + k) for k in ("masks", "labels", *_OBJECTS) if prefix + k in archive.keys}
        known = {k: archive.read(prefix + k) for k in KEYS if prefix + k in archive.keys}
        drawn = {"masks", "factors"} <= stored.keys() and "concepts" not in known
        images = archive.read(key) if drawn and views == 1 else None
    for name, array in stored.items():
        if array.ndim == 0 or len(array) != shape[0]:
            raise InputError(f"{spec.path}: {len(np.atleast_1d(array))} {prefix}{name} for {shape[0]} {key}; store one for each")
    masks, labels = stored.pop("masks", None), stored.pop("labels", None)
    if masks is not None and masks.dtype.kind not in "iub":
        raise InputError(f"{spec.path}: {prefix}masks of type {masks.dtype}; expected instance ids as integers, 0 = background")
    flat = None if masks is None else _flat_masks(masks, views, _height_width(shape, views), f"{spec.path}:{prefix}masks")
    recipe = None if images is None or flat is None else drawn_by(stored["factors"], images, flat)
    concepts, own = patches_and_classes(known, recipe, shape[0], f"{spec.path}:{prefix}")
    if masks is None and labels is None and not stored and concepts is None:
        return None
    whole = Truth(
        shape[0] * views,
        None if flat is None else _reader(flat),
        None if labels is None else np.repeat(_whole_labels(labels, f"{spec.path}:{prefix}labels"), views),
        concepts,
        None if recipe is None else recipe.dictionary(),
        (lambda i: {k: v[i // views] for k, v in stored.items()}) if stored else None,
        views,
        np.repeat(own, views, axis=0) if _numbered(stored, own.shape[1]) else None,
    )
    return whole if spec.part is None else whole.take(scene_images(spec.part, len(whole), views))


def _numbered(stored: dict[str, NDArray[Any]], count: int) -> bool:
    """Whether the first column of the objects of every image numbers so many classes (below 0: no object)."""
    rows = next((stored[key] for key in _OBJECTS if key in stored), None)
    return rows is not None and rows.ndim == 3 and rows.dtype.kind in "iu" and rows.size > 0 and bool(rows[..., 0].max() < count)


def _height_width(shape: Sequence[int], views: int) -> tuple[int, int]:
    """Of images (n, h, w, ...) or (n, views, h, w, ...)."""
    return (shape[2], shape[3]) if views > 1 else (shape[1], shape[2])


def _flat_masks(masks: NDArray[np.generic], views: int, size: tuple[int, int], title: str) -> Mask:
    """(images, h, w), whether they were stored by scene and view or by image."""
    stored = tuple(masks.shape)
    if masks.ndim == 4 and views > 1:
        masks = masks.reshape(-1, *masks.shape[2:])
    if masks.ndim == 4 and masks.shape[3] == 1:
        masks = masks[..., 0]
    if masks.ndim != 3 or masks.shape[1:] != size:
        raise InputError(f"{title}: masks of shape {stored} for images of {size[0]}x{size[1]}; expected images x height x width")
    flat: Mask = masks.view(np.uint8) if masks.dtype == np.bool_ else masks  # type: ignore[assignment]
    return flat


def _whole_labels(labels: NDArray[np.generic], title: str) -> Labels:
    """One integer an image; names are numbered in sorted order."""
    if labels.ndim != 1:
        raise InputError(f"{title}: labels of shape {labels.shape}; expected one an image")
    return labels.astype(np.int64) if labels.dtype.kind in "iub" else np.unique(labels, return_inverse=True)[1].astype(np.int64)


def _reader(masks: Mask) -> Callable[[int], Mask]:
    return lambda i: masks[i]


def _with_masks(truth: Truth | None, text: str) -> Truth:
    """The truth with masks from another file; what is known of the instances of the set's own masks is not known of these."""
    spec = parse_npz(text)
    if spec is None:
        raise InputError(f"{text}: expected FILE.npz:KEY, an archive and the masks in it")
    with Archive(spec.path) as archive:
        stored = archive.read(None if spec.path.suffix.lower() == ".npy" else spec.key or "masks")
    if stored.ndim not in (3, 4) or stored.dtype.kind not in "iub":
        raise InputError(f"{text}: {stored.dtype} of shape {stored.shape}; expected integer masks of images x height x width")
    stored = stored if spec.part is None else stored[spec.part]
    views = stored.shape[1] if stored.ndim == 4 and stored.shape[3] != 1 else 1
    size = stored.shape[2:4] if views > 1 else stored.shape[1:3]
    flat = _flat_masks(stored, views, (int(size[0]), int(size[1])), text)
    if truth is None:
        return Truth(len(flat), _reader(flat))
    if len(flat) != len(truth):
        raise InputError(f"{text}: {len(flat)} masks for {len(truth)} images; take the same part of both, e.g. {text}[:{len(truth)}]")
    return replace(truth, mask_of=_reader(flat), kinds=None)
