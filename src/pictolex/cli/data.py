"""`pictolex data make`: image sets with known truth."""

from __future__ import annotations

from typing import Annotated

from cyclopts import Parameter

from pictolex.cli.common import ready_file, tell
from pictolex.errors import InputError


def make(
    name: str,
    /,
    *,
    count: int = 1000,
    seed: int = 0,
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
    out
        The file, .npz.
    quiet
        Say nothing.
    """
    from pictolex.sources.synthetic import write_npz

    if count < 1:
        raise InputError(f"--count must be 1 or more; got {count}")
    if seed < 0:
        raise InputError(f"--seed must be 0 or more; got {seed}")
    path = ready_file(out, (".npz",))
    write_npz(path, name, count, seed)
    tell(f"{count} of {name}", quiet)
    print(path)
