"""The table of an ablation: a row a variant, figures over its seeds."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from pictolex.experiments.ablate_base import Ablation, Kept, One, Report, Row
from pictolex.experiments.reproduce_base import Figure, Statistic

MISSING = "-"


def rows_of(kept: Sequence[Kept]) -> tuple[Row, ...]:
    """One row for each variant that has a finished seed."""
    groups: dict[str, list[Kept]] = {}
    for one in kept:
        groups.setdefault(one.variant.name, []).append(one)
    return tuple(_row(group) for group in groups.values())


def _row(group: Sequence[Kept]) -> Row:
    keys = dict.fromkeys(key for one in group for key in one.found.figures)
    figures = {key: _statistic([one.found.figures.get(key) for one in group]) for key in keys}
    variant = group[0].variant
    return Row(variant.name, variant.images, figures, tuple(one.seed for one in group) if variant.random else ())


def _statistic(values: Sequence[float | None]) -> Statistic:
    """Over seeds; not known where it is not for one of them."""
    known = [value for value in values if value is not None]
    if len(known) < len(values):
        return Statistic(None, values=tuple(values))
    return Statistic(float(np.mean(known)), float(np.std(known, ddof=1)) if len(known) > 1 else None, values=tuple(values))


def one_of(kept: Kept) -> One:
    """A finished seed as the report tells it."""
    found, settings = kept.found, kept.settings.model_dump(mode="json")
    name, images = kept.variant.name, kept.variant.images
    return One(name, images, kept.seed, kept.data, found.figures, found.details, kept.seconds, kept.machine, settings)


def table(ablation: Ablation, report: Report) -> str:
    """The report in Markdown, aligned to be read as it is."""
    shown = [figure for figure in ablation.columns if any(_known(row, figure) for row in report.rows)]
    parts = [f"# {report.name}", report.question]
    if report.rows:
        head = ["variant", *(figure.title for figure in shown), "seeds"]
        body = [[row.variant, *(_text(row, figure) for figure in shown), ", ".join(map(str, row.seeds)) or MISSING] for row in report.rows]
        parts.append(aligned([head, *body]))
    lines = [*report.notes, *_left(report)]
    if lines:
        parts.append("\n".join(f"- {line}" for line in lines))
    return "\n\n".join(parts) + "\n"


def _left(report: Report) -> list[str]:
    """What is left for the next call, a line for each reason."""
    reasons: dict[str, list[str]] = {}
    for one in report.left:
        reasons.setdefault(one.reason, []).append(f"{one.variant} (seed {one.seed})")
    return [f"left for the next call: {', '.join(names)}: {reason}" for reason, names in reasons.items()]


def _known(row: Row, figure: Figure) -> bool:
    return figure.key in row.figures and row.figures[figure.key].mean is not None


def _text(row: Row, figure: Figure) -> str:
    """`mean ± deviation`."""
    statistic = row.figures.get(figure.key)
    if statistic is None or statistic.mean is None:
        return MISSING
    told = [statistic.mean] if statistic.deviation is None else [statistic.mean, statistic.deviation]
    return " ± ".join(f"{value * figure.scale:.{figure.digits}f}" for value in told)


def summary(ablation: Ablation, kept: Kept) -> str:
    """One seed in one line."""
    known = [(figure, kept.found.figures.get(figure.key)) for figure in ablation.columns]
    told = [f"{figure.title} {value * figure.scale:.{figure.digits}f}" for figure, value in known if value is not None]
    return ", ".join(told)


def aligned(rows: Sequence[Sequence[str]]) -> str:
    """A Markdown table whose columns are as wide as their widest cell."""
    widths = [max(3, *(len(row[column]) for row in rows)) for column in range(len(rows[0]))]
    lines = ["| " + " | ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)) + " |" for row in rows]
    lines.insert(1, "|" + "|".join("-" * (width + 2) for width in widths) + "|")
    return "\n".join(lines)
