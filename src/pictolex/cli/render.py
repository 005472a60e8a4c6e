"""`pictolex render`: images back from elements."""

from __future__ import annotations

import re
from typing import Annotated

from cyclopts import Parameter

from pictolex.cli.common import open_learned, ready_folder, tell
from pictolex.errors import InputError
from pictolex.model import Collection


def command(
    learned: Annotated[str, Parameter(name="RUN_OR_SPRITES")],
    elements: Annotated[str | None, Parameter(name="FILE")] = None,
    /,
    *,
    out: Annotated[str, Parameter(name=["--out", "-o"])],
    quiet: Annotated[bool, Parameter(name=["--quiet", "-q"])] = False,
) -> None:
    """Draw images back from their elements, one PNG file each. Prints the folder.

    Parameters
    ----------
    learned
        The folder of a run, or a folder of RGBA sprites.
    elements
        A file of elements that `pictolex decompose` wrote; without it the run's own.
    out
        The folder for the images.
    quiet
        Say nothing.
    """
    found = open_learned(learned)
    collection = Collection.load(elements) if elements is not None else None if found.run is None else found.run.elements
    if collection is None:
        raise InputError(f"{learned} holds no elements; name a file of elements that `pictolex decompose` wrote")
    unknown = sorted(set(collection.columns["concept"].tolist()) - set(found.dictionary.ids))
    if unknown:
        raise InputError(f"{elements or learned}: there is no concept {unknown[0]} in {learned}; name the run of these elements")
    folder = ready_folder(out)
    from pictolex.decompose import Renderer
    from pictolex.pictures import save_png

    renderer = Renderer(found.dictionary, found.settings)
    names: set[str] = set()
    for decomposition in collection:
        name = _free(decomposition.name or f"image-{decomposition.index}", names)
        save_png(renderer.render(decomposition).image, folder / f"{name}.png")
    tell(f"{len(collection)} images", quiet)
    print(folder)


def _free(name: str, taken: set[str]) -> str:
    """A file name for an image: no separators, and none twice."""
    stem = re.sub(r"\.(png|jpe?g|gif|bmp|tiff?|webp)$", "", name, flags=re.IGNORECASE)
    stem = re.sub(r"[^\w.#+-]+", "_", stem).strip("._") or "image"
    free, number = stem, 2
    while free.lower() in taken:
        free, number = f"{stem}-{number}", number + 1
    taken.add(free.lower())
    return free
