"""The true patches of stored sets, and the classes that their objects' numbers stand for, by what a file itself holds."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from pictolex.errors import InputError
from pictolex.sources.families.catalogue import family
from pictolex.sources.families.variation import Variation

if TYPE_CHECKING:
    from pictolex.model import Concept
    from pictolex.sources.families.base import Family

KEYS = ("concepts", "concept_sizes", "sprites_rgba", "shapes", "shape_names", "motif_names", "view_matrices")
"""What may stand in a file and is read for this."""
_RECIPES = ("tetrominoes", "dsprites-bin", "dsprites-adv", "dsprites-color")


def patches_and_classes(
    known: dict[str, NDArray[Any]], recipe: Family | None, images: int, title: str
) -> tuple[tuple[Concept, ...] | None, NDArray[np.int64]]:
    """The true patches, and the classes (images, numbers) that the numbers of objects stand for, by what the file itself holds.

    Patches: `concepts`; else RGBA `sprites_rgba` of all images (motifs, h, w, 4) or of each (images, motifs, h, w, 4); else, beside
    `view_matrices`, voxel `shapes` (n, d, h, w); else those of the recipe that draws the images. Classes: with `concepts` or
    without any patches as many as `shape_names` or `motif_names`, else the patches.
    """
    sprites, solids = known.get("sprites_rgba"), known.get("shapes") if "view_matrices" in known else None
    numbers: NDArray[np.int64] = np.arange(named(known))
    if "concepts" in known:
        concepts = concepts_from(known["concepts"], f"{title}concepts", known.get("concept_sizes"))
    elif sprites is not None and sprites.ndim in (4, 5) and sprites.shape[-1] == 4 and (sprites.ndim == 4 or len(sprites) == images):
        patches, which = np.unique(sprites.reshape(-1, *sprites.shape[-3:]), axis=0, return_inverse=True)
        concepts, numbers = concepts_from(patches, f"{title}sprites_rgba"), which.reshape(-1, sprites.shape[-4])
    elif solids is not None and solids.ndim == 4 and solids.size:
        concepts = concepts_from(solids[..., None] / np.float32(max(1, solids.max())), f"{title}shapes")
        numbers = np.arange(len(concepts))
    elif recipe is not None:
        concepts = recipe.dictionary().concepts
        numbers = np.arange(len(concepts))
    else:
        concepts = None
    return concepts, np.broadcast_to(numbers, (images, numbers.shape[-1]))


def named(known: dict[str, NDArray[Any]]) -> int:
    """How many shapes or motifs have a name."""
    return len(known.get("shape_names", known.get("motif_names", ())))


def drawn_by(factors: NDArray[Any], images: NDArray[Any], masks: NDArray[np.integer[Any]]) -> Family | None:
    """The built-in set whose recipe, given the factors of the first image that shows an object, draws its mask and its objects.

    So nothing is taken for a set that it only resembles: every pixel must agree. Backgrounds may differ.
    """
    first = int(masks.any(axis=(1, 2)).argmax())
    inside = masks[first] > 0
    if not inside.any() or factors.ndim != 3 or factors.dtype.kind not in "iu":
        return None
    for name in _RECIPES:
        try:
            made = family(name, Variation(size=masks.shape[1]))
            scene = made.render({"factors": factors[first], "background": np.zeros((), np.int64)})
        except (InputError, ArithmeticError, LookupError, ValueError):
            continue
        if np.array_equal(scene.masks[0], masks[first]) and np.array_equal(scene.images[0][inside], images[first][inside]):
            return made
    return None


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
