"""`pictolex data make`: image sets with known truth."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import TYPE_CHECKING, Annotated, TypeVar

from cyclopts import Parameter

from pictolex.cli.common import ready_file, tell
from pictolex.errors import InputError

if TYPE_CHECKING:
    from pictolex.sources.families.variation import Colour

Value = TypeVar("Value")


def make(
    name: str,
    /,
    *,
    count: int = 1000,
    seed: int = 0,
    size: int | None = None,
    inverted: bool = False,
    objects: str | None = None,
    shapes: str | None = None,
    palette: str | None = None,
    backgrounds: str | None = None,
    cell: int | None = None,
    out: Annotated[str, Parameter(name=["--out", "-o"])],
    quiet: Annotated[bool, Parameter(name=["--quiet", "-q"])] = False,
) -> None:
    """Write a synthetic set with truth to an .npz file. Prints the file's name.

    Parameters
    ----------
    name
        tetrominoes, dsprites-bin, dsprites-adv, dsprites-color, pattern or voxel.
    count
        Number of images (scenes, for voxel).
    seed
        Another seed, other images.
    size
        Side of the canvas in pixels. The shapes of dsprites grow with it; the others have more room.
    inverted
        Dark on light.
    objects
        How many in an image, such as 4 or 1-5 (dsprites, tetrominoes).
    shapes
        For dsprites, some of square, ellipse, heart, ring, star, triangle, cross and moon, such as ring,star.
    palette
        Colours of the objects, such as '#e07020,#20a0c0' (dsprites-color, tetrominoes).
    backgrounds
        Colours behind them (dsprites-color).
    cell
        Side of a tetromino's tile in pixels.
    out
        The file, .npz.
    quiet
        Say nothing.
    """
    from pictolex.sources.families.catalogue import family
    from pictolex.sources.families.variation import Variation
    from pictolex.sources.synthetic import write_npz

    if count < 1:
        raise InputError(f"--count must be 1 or more; got {count}")
    if seed < 0:
        raise InputError(f"--seed must be 0 or more; got {seed}")
    variation = Variation(
        size=size,
        inverted=inverted,
        objects=None if objects is None else _range(objects),
        shapes=_listed(shapes, str.lower),
        palette=_listed(palette, lambda text: _colour("--palette", text)),
        backgrounds=_listed(backgrounds, lambda text: _colour("--backgrounds", text)),
        cell=cell,
    )
    family(name, variation)
    path = ready_file(out, (".npz",))
    write_npz(path, name, count, seed, variation)
    tell(f"{count} of {name}", quiet)
    print(path)


def _listed(text: str | None, read: Callable[[str], Value]) -> tuple[Value, ...] | None:
    """What stands between commas."""
    return None if text is None else tuple(read(part.strip()) for part in text.split(",") if part.strip())


def _range(text: str) -> tuple[int, int]:
    """`4` or `1-5` as the least and the most."""
    found = re.fullmatch(r"\s*(\d{1,4})\s*(?:-\s*(\d{1,4})\s*)?", text)
    if found is None:
        raise InputError(f"--objects must be a number or a range, such as 4 or 1-5; got '{text}'")
    return int(found[1]), int(found[2] or found[1])


def _colour(option: str, text: str) -> Colour:
    """`#rrggbb` as bytes."""
    found = re.fullmatch(r"#?([0-9a-f]{2})([0-9a-f]{2})([0-9a-f]{2})", text.lower())
    if found is None:
        raise InputError(f"{option} must be colours as '#rrggbb', such as '#e07020,#20a0c0'; got '{text}'")
    return int(found[1], 16), int(found[2], 16), int(found[3], 16)
