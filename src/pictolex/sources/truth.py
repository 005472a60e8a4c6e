"""What is known about images, apart from them: learning, decomposing and searching never see this module."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from pictolex.errors import InputError
from pictolex.sources.base import Which, resolve, scene_images, whole_scenes
from pictolex.sources.npz import Archive, NpzSpec, parse_npz

if TYPE_CHECKING:
    from pictolex.model import Concept, Dictionary

Labels = NDArray[np.int64]
Mask = NDArray[np.integer[Any]]


@dataclass(frozen=True, eq=False)
class Truth:
    """Truth of a source's images, image by image in the source's order.

    `mask_of(i)`: instance ids (h, w), 0 = background, later objects in front. `labels`: one class an image. `factors(i)`: the
    arrays of its scene. `concepts`, `dictionary`: the true patches (the dictionary with hues and background, where known).
    """

    count: int
    mask_of: Callable[[int], Mask] | None = None
    labels: Labels | None = None
    concepts: tuple[Concept, ...] | None = None
    dictionary: Dictionary | None = None
    factors: Callable[[int], dict[str, NDArray[np.generic]]] | None = None
    views: int = 1

    def __len__(self) -> int:
        return self.count

    @property
    def has_masks(self) -> bool:
        """Whether objects are known."""
        return self.mask_of is not None

    def masks(self, i: int) -> Mask | None:
        """The instance ids of image i, or None where objects are not known."""
        return None if self.mask_of is None else self.mask_of(i)

    def take(self, which: Which) -> Truth:
        """The truth of a part of the source."""
        indices = resolve(which, self.count)
        mask_of, factors = self.mask_of, self.factors
        return Truth(
            len(indices),
            None if mask_of is None else lambda i: mask_of(int(indices[i])),
            None if self.labels is None else self.labels[indices],
            self.concepts,
            self.dictionary,
            None if factors is None else lambda i: factors(int(indices[i])),
            self.views if whole_scenes(indices, self.views) else 1,
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

    return Truth(len(source), mask_of, None, None if dictionary is None else dictionary.concepts, dictionary, factors, source.views)


def _stored(spec: NpzSpec) -> Truth | None:
    """What stands beside the images under the same prefix: `masks`, `labels`, `concepts`, `factors`, `placements`."""
    with Archive(spec.path) as archive:
        key = archive.image_key(spec.key)
        shape = archive.shape(key)
        prefix = NpzSpec(spec.path, key).prefix
        views = shape[1] if "view_matrices" in archive.keys and len(shape) >= 4 else 1
        stored = {k: archive.read(prefix + k) for k in ("masks", "labels", "factors", "placements") if prefix + k in archive.keys}
        patches = archive.read(prefix + "concepts") if prefix + "concepts" in archive.keys else None
        sizes = archive.read(prefix + "concept_sizes") if prefix + "concept_sizes" in archive.keys else None
    if not stored and patches is None:
        return None
    for name, array in stored.items():
        if array.ndim == 0 or len(array) != shape[0]:
            raise InputError(f"{spec.path}: {len(np.atleast_1d(array))} {prefix}{name} for {shape[0]} {key}; store one for each")
    indices = resolve(spec.part or slice(None), shape[0])
    masks, labels = stored.pop("masks", None), stored.pop("labels", None)
    if masks is not None and masks.dtype.kind not in "iub":
        raise InputError(f"{spec.path}: {prefix}masks of type {masks.dtype}; expected instance ids as integers, 0 = background")
    flat = None if masks is None else _flat_masks(masks[indices], views, _height_width(shape, views), f"{spec.path}:{prefix}masks")
    return Truth(
        len(indices) * views,
        None if flat is None else _reader(flat),
        None if labels is None else np.repeat(_whole_labels(labels[indices], f"{spec.path}:{prefix}labels"), views),
        None if patches is None else concepts_from(patches, f"{spec.path}:{prefix}concepts", sizes),
        None,
        (lambda i: {k: v[indices[i // views]] for k, v in stored.items()}) if stored else None,
        views,
    )


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
    """The truth with masks from another file."""
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
    return Truth(len(truth), _reader(flat), truth.labels, truth.concepts, truth.dictionary, truth.factors, truth.views)


def concepts_from(patches: NDArray[np.generic], title: str, sizes: NDArray[Any] | None = None) -> tuple[Concept, ...]:
    """True patches (n, h, w) or (n, h, w, c): 2 and 4 channels carry alpha last, else all is opaque; (n, d, h, w, 1) of voxels.

    `sizes` (n, 2): the height and width of each, in the top left corner of its patch.
    """
    from pictolex.model import Concept
    from pictolex.sources.image import as_image, to_unit

    if patches.ndim == 5 and patches.shape[4] == 1 and patches.size:
        return tuple(Concept.voxel(k, to_unit(patch[..., 0], f"{title}[{k}]")) for k, patch in enumerate(patches))
    if patches.ndim not in (3, 4) or len(patches) == 0:
        raise InputError(f"{title}: patches of shape {patches.shape}; expected concepts x height x width (x 1 to 4 channels)")
    if sizes is not None and not _fit(sizes, patches.shape):
        raise InputError(
            f"{title}: {sizes.shape} concept_sizes for patches of shape {patches.shape}; store the whole height and width of each"
        )
    made = []
    for k, patch in enumerate(patches):
        height, width = patch.shape[:2] if sizes is None else sizes[k]
        image = as_image(patch[:height, :width], f"{title}[{k}]")
        alpha = image.opacity if image.opacity is not None else np.ones(image.pixels.shape[:2], np.float32)
        made.append(Concept(k, image.pixels, alpha))
    return tuple(made)


def _fit(sizes: NDArray[Any], shape: tuple[int, ...]) -> bool:
    """Whether each is a height and width within its patch."""
    return sizes.dtype.kind in "iu" and sizes.shape == (shape[0], 2) and bool(((sizes >= 1) & (sizes <= shape[1:3])).all())
