"""The true concepts beside generated images: as a file keeps them, and as they are where images are inverted."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from pictolex.model import Concept, Dictionary


def stored(concepts: tuple[Concept, ...]) -> dict[str, NDArray[np.generic]]:
    """`concepts` (n, height, width, 1 or 3 channels and alpha), each in the top left corner, and `concept_sizes` (n, 2).

    Voxel concepts: `concepts` (n, depth, height, width, 1), their densities.
    """
    if concepts[0].is_voxel:
        return {"concepts": np.stack([concept.alpha for concept in concepts])[..., None]}
    sizes = np.array([concept.alpha.shape for concept in concepts], np.int16)
    patches = np.zeros((len(concepts), *sizes.max(axis=0), concepts[0].channels + 1), np.float32)
    for patch, concept in zip(patches, concepts, strict=True):
        patch[: concept.height, : concept.width] = np.concatenate([concept.shape, concept.alpha[..., None]], axis=2)
    return {"concepts": patches, "concept_sizes": sizes}


def inverse(dictionary: Dictionary) -> Dictionary | None:
    """The dictionary of the inverted images: white shapes in other hues, or other colours, on the other background.

    None where the images are on black: white shapes become black, which `shape x alpha`, what concepts are compared by, does not
    tell apart, and the shades of a hue become what no shade times a hue is.
    """
    background = dictionary.background
    if background.kind == "none":
        return None
    behind = background if background.values is None else replace(background, values=1 - background.values)
    if dictionary.hues is not None:
        return replace(dictionary, hues=1 - dictionary.hues, background=behind)
    concepts = tuple(replace(concept, shape=1 - concept.shape) for concept in dictionary)
    return replace(dictionary, concepts=concepts, background=behind)
