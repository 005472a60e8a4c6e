"""`pictolex show`: pictures of a run."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from pictolex.api import Learned
from pictolex.cli.common import open_learned, ready_folder, tell
from pictolex.cli.progress import Reporter
from pictolex.errors import InputError
from pictolex.model import Collection
from pictolex.pictures import Explained, dictionary_sheet, layers_picture, save_png
from pictolex.sources import Image, Source, open_source


def command(
    learned: Annotated[str, Parameter(name="RUN_OR_SPRITES")],
    source: str | None = None,
    /,
    *,
    out: Annotated[str | None, Parameter(name=["--out", "-o"])] = None,
    count: int = 8,
    quiet: Annotated[bool, Parameter(name=["--quiet", "-q"])] = False,
) -> None:
    """Draw pictures: dictionary.png, every concept with its id and use, and layers.png, some images taken apart. Prints their names.

    Parameters
    ----------
    learned
        The folder of a run, or a folder of RGBA sprites.
    source
        Images to take apart; without it those the run learned from.
    out
        The folder for the pictures; without it RUN/pictures (pictures, for a folder of sprites).
    count
        How many images to take apart.
    quiet
        No progress.
    """
    if count < 0:
        raise InputError(f"--count must be 0 or more; got {count}")
    found = open_learned(learned)
    images = None if source is None else open_source(source, seed=found.settings.seed)
    folder = ready_folder(out or (Path(learned) / "pictures" if found.run else "pictures"))
    collection = _elements(found, images, count, quiet)
    usage = None if found.run is None or found.run.elements is None else _usage(found.run.elements)
    print(save_png(dictionary_sheet(found.dictionary, usage), folder / "dictionary.png"))
    if collection is not None and len(collection):
        explained = explain(found, collection, images or _learned_from(found, quiet))
        print(save_png(layers_picture(explained), folder / "layers.png"))


def _elements(learned: Learned, images: Source | None, count: int, quiet: bool) -> Collection | None:
    """Elements of the first images: of those given, else of those the run learned from."""
    if images is None:
        elements = None if learned.run is None else learned.run.elements
        return None if elements is None else elements[:count]
    from pictolex.decompose import Engine

    with Reporter(quiet) as reporter:
        return Engine(learned.dictionary, learned.settings).run(images.take(slice(count)), progress=reporter.images)


def _usage(elements: Collection) -> dict[int, int]:
    import numpy as np

    ids, counts = np.unique(elements.columns["concept"], return_counts=True)
    return dict(zip(ids.tolist(), counts.tolist(), strict=True))


def _learned_from(learned: Learned, quiet: bool) -> Source | None:
    """The images the run learned from, where they are still to be had."""
    if learned.run is None:
        return None
    specs = [str(entry["source"]) for entry in learned.run.history if entry.get("event") == "source"]
    if not specs:
        return None
    try:
        return open_source(specs[-1], seed=learned.settings.seed)
    except InputError as error:
        tell(f"the images it learned from cannot be shown beside: {error}", quiet)
        return None


def explain(learned: Learned, collection: Collection, images: Source | None) -> list[Explained]:
    """Some images with their layers, ready to be drawn."""
    from pictolex.decompose import Renderer

    renderer = Renderer(learned.dictionary, learned.settings)
    explained = []
    for place, decomposition in enumerate(collection):
        rendered = renderer.render(decomposition)
        image: Image | None = None if images is None or decomposition.index >= len(images) else images.read(decomposition.index)
        if image is not None and (image.height, image.width) != (decomposition.height, decomposition.width):
            image = None
        explained.append(
            Explained(
                name=decomposition.name or f"image {place}",
                image=None if image is None else image.on(),
                rebuilt=rendered.image,
                alphas=rendered.alphas,
                colours=rendered.colours,
                labels=rendered.labels,
                concepts=tuple(element.concept for element in decomposition),
            )
        )
    return explained
