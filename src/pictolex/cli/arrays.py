"""What `decompose --arrays` writes, so that others can recompute every metric from plain arrays."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from pictolex.api import Learned
from pictolex.decompose import Renderer
from pictolex.model import Collection
from pictolex.model.files import atomic


def write_arrays(collection: Collection, learned: Learned, shape: tuple[int, int, int], path: Path) -> None:
    """`rebuilt` (as the images), `masks` (0 = background, k = depth k-1), `alphas` (image, depth, height, width; float16).

    `shape` is the height, width and channels that all images have; grey images have no axis of channels.
    """
    renderer = Renderer(learned.dictionary, learned.settings)
    height, width, channels = shape
    count, most = len(collection), int(collection.elements_per_image.max(initial=0))
    rebuilt = np.zeros((count, height, width, channels), np.float32)
    masks = np.zeros((count, height, width), np.uint8 if most < 256 else np.uint16)
    alphas = np.zeros((count, most, height, width), np.float16)
    for place, decomposition in enumerate(collection):
        rendered = renderer.render(decomposition)
        rebuilt[place] = rendered.image
        masks[place] = rendered.labels
        alphas[place, : len(rendered.alphas)] = rendered.alphas
    with atomic(path) as file:
        np.savez_compressed(file, rebuilt=rebuilt if channels > 1 else rebuilt[..., 0], masks=masks, alphas=alphas)
