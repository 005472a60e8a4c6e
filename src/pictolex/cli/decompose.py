"""`pictolex decompose`: the elements of new images with a fixed dictionary."""

from __future__ import annotations

from typing import Annotated

from cyclopts import Parameter

from pictolex.cli.common import open_learned, ready_file, tell
from pictolex.cli.options import Changes, with_settings
from pictolex.cli.progress import Reporter


@with_settings
def command(
    learned: Annotated[str, Parameter(name="RUN_OR_SPRITES")],
    source: str,
    /,
    *,
    out: Annotated[str, Parameter(name=["--out", "-o"])],
    arrays: str | None = None,
    preset: str | None = None,
    quiet: Annotated[bool, Parameter(name=["--quiet", "-q"])] = False,
    changes: Changes,
) -> None:
    """Find the elements of new images with a fixed dictionary. Prints the file's name.

    Parameters
    ----------
    learned
        The folder of a run, or a folder of RGBA sprites: that is a dictionary too.
    source
        A folder, glob, image, .npz file (file.npz:key[:4500]) or built-in set.
    out
        The file of elements, .parquet or .safetensors.
    arrays
        Also an .npz file with the rebuilt images, instance masks and visible alphas of the layers.
    preset
        Settings of a preset in place of the run's.
    quiet
        No progress.
    """
    table = ready_file(out, (".parquet", ".safetensors"))
    archive = None if arrays is None else ready_file(arrays, (".npz",))
    found = open_learned(learned, changes, preset)
    from pictolex.sources import open_source, require_one_size

    images = open_source(source, seed=found.settings.seed)
    shape = None if archive is None else require_one_size(images)
    tell(images.describe(), quiet)
    from pictolex.decompose import Engine

    with Reporter(quiet) as reporter:
        collection = Engine(found.dictionary, found.settings).run(images, progress=reporter.images)
    collection.save(table)
    print(table)
    if archive is not None and shape is not None:
        from pictolex.cli.arrays import write_arrays

        write_arrays(collection, found, shape, archive)
        print(archive)
