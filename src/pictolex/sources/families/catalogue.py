"""The built-in sets by name: their recipe, how large a canvas may be, and what can be chosen."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from pictolex.errors import InputError
from pictolex.sources.families import dsprites, pattern, tetrominoes, voxel
from pictolex.sources.families.base import Family
from pictolex.sources.families.variation import AS_BUILT_IN, Variation


@dataclass(frozen=True)
class Recipe:
    """A family, the sides its canvas may have (smallest, usual, largest), and what of a Variation goes with it."""

    build: Callable[[Variation], Family]
    sizes: tuple[int, int, int]
    takes: tuple[str, ...] = ("size", "inverted")


_SPRITES = ("size", "inverted", "objects", "shapes")
# Masks are bytes: a pattern may have 255 motifs, which end at a canvas of 246.
RECIPES: dict[str, Recipe] = {
    "tetrominoes": Recipe(tetrominoes.Tetrominoes, (35, tetrominoes.SIZE, 1024), ("size", "inverted", "objects", "palette", "cell")),
    "dsprites-bin": Recipe(lambda chosen: dsprites.MultiDSprites("bin", chosen), (40, dsprites.SIZE, 1024), _SPRITES),
    "dsprites-adv": Recipe(lambda chosen: dsprites.MultiDSprites("adv", chosen), (40, dsprites.SIZE, 1024), _SPRITES),
    "dsprites-color": Recipe(
        lambda chosen: dsprites.MultiDSprites("color", chosen), (40, dsprites.SIZE, 1024), (*_SPRITES, "palette", "backgrounds")
    ),
    "pattern": Recipe(pattern.Pattern, (40, pattern.SIZE, 246)),
    "voxel": Recipe(voxel.Voxel, (40, voxel.SIZE, 128)),
}


def family(name: str, variation: Variation = AS_BUILT_IN) -> Family:
    """The recipe of a built-in set, as it is or varied."""
    recipe = RECIPES.get(name)
    if recipe is None:
        raise InputError(f"{name}: no such built-in set; choose one of {', '.join(RECIPES)}")
    for option in variation.chosen:
        if option not in recipe.takes:
            others = ", ".join(other for other, its in RECIPES.items() if option in its.takes)
            raise InputError(f"{name} has no option {option} (it goes with {others}); {name} takes {', '.join(recipe.takes)}")
    smallest, usual, largest = recipe.sizes
    if variation.size is not None and not smallest <= variation.size <= largest:
        raise InputError(f"{name}: a canvas of {variation.size} pixels; choose {smallest} to {largest}, or leave it at {usual}")
    return recipe.build(variation)
