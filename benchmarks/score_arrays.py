"""Recompute foreground ARI (fixed order) and MSE from files alone: imports nothing of pictolex.

    python benchmarks/score_arrays.py TRUTH.npz ARRAYS.npz [--images KEY] [--masks KEY] [--part START:STOP]

TRUTH.npz holds `images` and `masks`; ARRAYS.npz is what `pictolex decompose --arrays` wrote: `rebuilt`, `masks`, `alphas`.
A pixel's label is `masks` (0 = background, k = the element of depth k-1); ARI is scikit-learn's, over the pixels of true
objects only; one true object counts 1; an image without objects is left out. MSE is per value in [0, 1], the mean over
images; images with opacity, and what was rebuilt of them, are composited on mid grey. Prints one JSON object.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.metrics import adjusted_rand_score

Array = NDArray[Any]

MID_GREY = 0.5


def unit(images: Array) -> NDArray[np.float64]:
    """Integers scaled to [0, 1] by their type's largest value; floats as they are."""
    largest = {np.dtype(np.uint8): 255.0, np.dtype(np.uint16): 65535.0}.get(images.dtype, 1.0)
    return np.asarray(images, np.float64) / largest


def flatten(array: Array, views: int, tail: int) -> Array:
    """One row an image: (n, ...) stays, (scenes, views, ...) becomes (scenes * views, ...). `tail`: axes of an image."""
    if views and array.ndim == tail + 2:
        return array.reshape(-1, *array.shape[2:])
    return array


def mean_squared_error(image: NDArray[np.float64], rebuilt: NDArray[np.float64]) -> float:
    """Of one image (h, w) or (h, w, 1 to 4) and what was rebuilt of it."""
    image, rebuilt = (a[..., None] if a.ndim == 2 else a for a in (image, rebuilt))
    opacity = image[..., -1:] if image.shape[2] in (2, 4) else np.ones_like(image[..., :1])
    colour = image[..., :-1] if image.shape[2] in (2, 4) else image
    own = rebuilt[..., -1:] if rebuilt.shape[2] in (2, 4) else opacity
    result = rebuilt[..., :-1] if rebuilt.shape[2] in (2, 4) else rebuilt
    difference = (colour * opacity + MID_GREY * (1 - opacity)) - (result * own + MID_GREY * (1 - own))
    return float((difference**2).mean())


def foreground_ari(truth: Array, labels: Array) -> float | None:
    """None without true objects, 1 for one, else scikit-learn's over their pixels."""
    inside = truth > 0
    objects = np.unique(truth[inside])
    if objects.size <= 1:
        return 1.0 if objects.size else None
    return float(adjusted_rand_score(truth[inside].ravel(), labels[inside].ravel()))


def score(images: Array, truth: Array | None, rebuilt: Array, labels: Array, views: int = 0) -> dict[str, float | int | None]:
    """All figures."""
    if images.dtype.kind in "ui" and images.dtype.itemsize > 2:
        raise SystemExit(f"images of type {images.dtype}; expected uint8, uint16 or float")
    tail = images.ndim - (2 if views else 1)
    images, rebuilt = flatten(images, views, tail), flatten(rebuilt, views, tail)
    labels = flatten(labels, views, 2)
    counts = {len(images), len(rebuilt), len(labels)}
    if truth is not None:
        truth = flatten(truth, views, 2)
        counts.add(len(truth))
    if len(counts) != 1:
        raise SystemExit(f"files of different lengths: {sorted(counts)}; use --part START:STOP for the part that was decomposed")
    errors = [mean_squared_error(unit(image), unit(result)) for image, result in zip(images, rebuilt, strict=True)]
    aris = [] if truth is None else [foreground_ari(t, m) for t, m in zip(truth, labels, strict=True)]
    known = [a for a in aris if a is not None]
    return {
        "images": len(images),
        "mse": float(np.mean(errors)),
        "ari_foreground_fixed_order": float(np.mean(known)) if known else None,
        "ari_images": len(known),
    }


def main(arguments: Sequence[str] | None = None) -> int:
    """The command line."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("truth", help="an .npz with images and, where known, masks")
    parser.add_argument("arrays", help="the .npz that `pictolex decompose --arrays` wrote")
    parser.add_argument("--images", default="images", help="key of the images in TRUTH")
    parser.add_argument("--masks", default="masks", help="key of the masks in TRUTH")
    parser.add_argument("--part", default="", help="START:STOP of TRUTH that was decomposed, e.g. 4500: or =-500:")
    options = parser.parse_args(arguments)
    part = slice(*(int(p) if p else None for p in options.part.split(":"))) if options.part else slice(None)
    with np.load(options.truth, allow_pickle=False) as truth, np.load(options.arrays, allow_pickle=False) as arrays:
        for file, name, keys in ((truth, options.truth, [options.images]), (arrays, options.arrays, ["rebuilt", "masks"])):
            missing = [key for key in keys if key not in file.files]
            if missing:
                raise SystemExit(f"{name}: no array {', '.join(missing)}; it has {', '.join(file.files)}")
        views = len(truth["view_matrices"]) if "view_matrices" in truth.files else 0
        masks = truth[options.masks][part] if options.masks in truth.files else None
        figures = score(truth[options.images][part], masks, arrays["rebuilt"], arrays["masks"], views)
    json.dump(figures, sys.stdout)
    sys.stdout.write("\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
