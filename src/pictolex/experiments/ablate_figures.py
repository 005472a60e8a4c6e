"""Pictures of ablations: curves and heat maps through matplotlib, which is optional; sheets and images side by side through ours."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from pictolex.experiments.ablate_base import MSE, Kept
from pictolex.model.files import atomic
from pictolex.pictures import dictionary_sheet, save_png
from pictolex.pictures.canvas import Picture, Tile, enlarge, grid, zoom_for

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from pictolex.model import Concept, Dictionary

SIDE = 90
"""The side that an image is enlarged to."""
ACROSS = 12
"""Most concepts of a dictionary that a figure shows."""
_TAB, _STYLES, _MARKS = "tab10", ("-", "--", "-.", ":"), ("o", "s", "^", "d")


@dataclass(frozen=True)
class Line:
    """One curve; lines of one colour belong together, and those of one style too."""

    name: str
    x: Sequence[float]
    y: Sequence[float | None]
    colour: int = 0
    style: int = 0


@dataclass(frozen=True)
class Panel:
    """One diagram."""

    title: str
    lines: Sequence[Line]
    x: str
    y: str
    log_x: bool = False
    log_y: bool = False


def lacking() -> list[str]:
    """Why curves and heat maps cannot be drawn, in a line; nothing where they can."""
    return [] if find_spec("matplotlib") else ["curves and heat maps are left out: they need matplotlib: pip install 'pictolex[plots]'"]


def curves(panels: Sequence[Panel], path: Path) -> list[str]:
    """Diagrams beside each other, one legend each."""
    panels = [panel for panel in panels if panel.lines]
    if lacking() or not panels:
        return lacking()
    figure, axes = _figure(1, len(panels), (6.0 * len(panels), 4.2))
    for axis, panel in zip(axes[0], panels, strict=True):
        for line in panel.lines:
            y = [np.nan if value is None else value for value in line.y]
            mark = _MARKS[line.style % len(_MARKS)] if len(y) < 10 else None
            axis.plot(line.x, y, _STYLES[line.style % len(_STYLES)], color=f"C{line.colour}", marker=mark, markersize=4, label=line.name)
        axis.set(title=panel.title, xlabel=panel.x, ylabel=panel.y)
        if panel.log_x:
            axis.set_xscale("log", base=2)
        if panel.log_y:
            axis.set_yscale("log")
        axis.grid(alpha=0.3)
        axis.legend(fontsize=7, ncols=2)
    _save(figure, path)
    return []


def heat_map(values: NDArray[np.floating[Any]], names: Sequence[str], title: str, path: Path) -> list[str]:
    """A square table of shares, each written in its cell."""
    if lacking():
        return lacking()
    side = 1.6 + 0.62 * len(names)
    figure, axes = _figure(1, 1, (side + 0.8, side))
    axis = axes[0][0]
    shown = axis.imshow(values, vmin=float(values.min()), vmax=1.0, cmap="viridis")
    axis.set_xticks(range(len(names)), names, rotation=60, ha="right")
    axis.set_yticks(range(len(names)), names)
    middle = (float(values.min()) + 1) / 2
    for (row, column), value in np.ndenumerate(values):
        axis.text(column, row, f"{value:.2f}", ha="center", va="center", fontsize=7, color="black" if value > middle else "white")
    axis.set_title(title)
    figure.colorbar(shown, ax=axis, fraction=0.046)
    _save(figure, path)
    return []


def dictionaries(rows: Mapping[str, Sequence[Concept]], title: str, path: Path) -> list[str]:
    """Dictionaries one below the other, their concepts as heat maps of `shape x alpha`, all on one scale."""
    if lacking() or not rows:
        return lacking()
    across = min(ACROSS, max(1, *(len(concepts) for concepts in rows.values())))
    figure, axes = _figure(len(rows), across, (1.0 * across + 2.2, 1.05 * len(rows) + 0.5))
    for (name, concepts), line in zip(rows.items(), axes, strict=True):
        for axis in line:
            axis.set_axis_off()
        for axis, concept in zip(line, concepts, strict=False):
            axis.imshow(concept.shape.mean(axis=2) * concept.alpha, vmin=0.0, vmax=1.0, cmap="magma")
        hidden = len(concepts) - across
        label = f"{name}\n(and {hidden} more)" if hidden > 0 else name
        line[0].text(-0.15, 0.5, label, transform=line[0].transAxes, ha="right", va="center", fontsize=8)
    figure.suptitle(title, fontsize=10)
    _save(figure, path)
    return []


def by_use(dictionary: Dictionary, uses: Mapping[str, int]) -> list[Concept]:
    """The concepts that are used, most often first."""
    return sorted((c for c in dictionary if uses.get(str(c.id), 0)), key=lambda concept: -uses[str(concept.id)])


def sheets(kept: Sequence[Kept], folder: Path) -> None:
    """The dictionary of every seed, with its uses."""
    for one in kept:
        if one.found.dictionary is not None:
            usage = {int(id): count for id, count in one.found.details["uses"].items()}
            save_png(dictionary_sheet(one.found.dictionary, usage), folder / f"{one.stem}-dictionary.png")


def side_by_side(kept: Sequence[Kept], folder: Path) -> list[str]:
    """For each set the same images in rows: as they are, then as each variant (its first seed) rebuilt them, and its elements."""
    firsts = first_seeds(kept)
    for name in dict.fromkeys(one.variant.images for one in firsts):
        variants = [one for one in firsts if one.variant.images == name]
        rows = []
        for place, image in enumerate(variants[0].found.arrays["image"]):
            row = [Tile(_enlarged(image), f"image {place}")]
            for one in variants:
                arrays = one.found.arrays
                title = one.variant.name.removeprefix(f"{name}-")
                row.append(Tile(_enlarged(arrays["rebuilt"][place]), title))
                row.append(Tile(_enlarged(arrays["instances"][place]), f"mse {arrays[MSE.key][place]:.1g}"))
            rows.append(row)
        save_png(grid(rows), folder / f"{name}.png")
    return []


def first_seeds(kept: Sequence[Kept]) -> list[Kept]:
    """The first seed of each variant."""
    chosen: dict[str, Kept] = {}
    for one in kept:
        chosen.setdefault(one.variant.name, one)
    return list(chosen.values())


def _enlarged(picture: NDArray[Any]) -> Picture:
    return enlarge(np.asarray(picture, np.uint8), zoom_for(max(picture.shape[:2]), SIDE))


def _figure(rows: int, columns: int, size: tuple[float, float]) -> tuple[Any, list[list[Axes]]]:
    """A figure without a window, and its axes row by row."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=size, layout="constrained")
    axes = figure.subplots(rows, columns, squeeze=False)
    return figure, [list(line) for line in axes]


def _save(figure: Any, path: Path) -> None:
    with atomic(path) as file:
        figure.savefig(file, format="png", dpi=110)
