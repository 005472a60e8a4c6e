"""The table of an experiment: published rows first, then what was measured here, then our floors and goals."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from pictolex.experiments.reproduce_base import Experiment, Figure, Report, Result, Row, Statistic, Verdict
from pictolex.experiments.reproduce_published import FIGURES

BY_KEY = {figure.key: figure for figure in FIGURES}
MISSING = "-"


def measured_rows(results: Sequence[Result]) -> tuple[Row, ...]:
    """One row for each preset and canvas, over its seeds."""
    groups: dict[tuple[str, str], list[Result]] = {}
    for result in results:
        groups.setdefault((result.preset, result.variant), []).append(result)
    return tuple(_measured(group) for group in groups.values())


def _measured(results: Sequence[Result]) -> Row:
    first = results[0]
    data = "; ".join(dict.fromkeys(result.data for result in results))
    used = max(result.figures.get("images_learned") or 0 for result in results)
    fewer = f" ({used:.0f} used)" if used < max(result.figures.get("images_offered") or 0 for result in results) else ""
    return Row(
        method=f"pictolex {first.variant}".rstrip() + f", preset {first.preset}",
        source=f"measured here, on {data}{fewer}",
        figures={key: _statistic(key, results) for key in first.figures},
        preset=first.preset,
        variant=first.variant,
        seeds=tuple(result.seed for result in results),
    )


def _statistic(key: str, results: Sequence[Result]) -> Statistic:
    """Over seeds; not known where it is not for one of them."""
    values = tuple(result.figures.get(key) for result in results)
    known = tuple(value for value in values if value is not None)
    if len(known) < len(values):
        return Statistic(None, values=values)
    figure = BY_KEY.get(key)
    deviation = float(np.std(known, ddof=1)) if len(known) > 1 else None
    return Statistic(float(np.mean(known)), deviation, None if figure is None else figure.worst(known), values)


def verdicts(experiment: Experiment, rows: Sequence[Row]) -> tuple[Verdict, ...]:
    """Our floors and goals beside the worst seed of each measured row."""
    judged = []
    for row in rows:
        for target in experiment.targets:
            figure, worst = BY_KEY[target.figure], row.figures.get(target.figure, Statistic(None)).worst
            judged.append(
                Verdict(
                    preset=row.preset or "",
                    variant=row.variant,
                    figure=target.figure,
                    worst=worst,
                    floor=target.floor,
                    floor_met=None if worst is None else figure.reaches(worst, target.floor),
                    goal=target.goal,
                    goal_met=None if worst is None or target.goal is None else figure.reaches(worst, target.goal),
                    seeds=row.seeds,
                )
            )
    return tuple(judged)


def summary(experiment: Experiment, result: Result) -> str:
    """One seed in one line: its figures that have a target, and the number of concepts."""
    wanted = {target.figure for target in experiment.targets} | {"concepts"}
    shown = [(figure, result.figures.get(figure.key)) for figure in FIGURES if figure.key in wanted]
    return ", ".join(f"{figure.title} {_number(value, figure, figure.digits)}" for figure, value in shown if value is not None)


def table(report: Report) -> str:
    """The report in Markdown, aligned to be read as it is."""
    shown = [figure for figure in FIGURES if any(_mean(row, figure) is not None for row in report.rows)]
    notes = list(dict.fromkeys(row.note for row in report.rows if row.note))
    head = ["method", *(figure.title for figure in shown), "seeds", "source"]
    body = [_cells(row, shown, notes) for row in report.rows]
    parts = [f"# {report.name}", _aligned([head, *body]) if body else "Nothing is published for this set, and no seed is finished."]
    if report.targets:
        parts.append(f"Our floors and goals, for the worst seed:\n\n{_aligned([_TARGET_HEAD, *map(_target_cells, report.targets)])}")
    lines = [f"({number}) {note}" for number, note in enumerate(notes, 1)]
    lines += [*report.notes, *(f"left for the next call: {one.title}: {one.reason}" for one in report.left)]
    if lines:
        parts.append("\n".join(f"- {line}" for line in lines))
    return "\n\n".join(parts) + "\n"


_TARGET_HEAD = ["measured", "figure", "worst", "floor", "", "goal", ""]


def _mean(row: Row, figure: Figure) -> float | None:
    return row.figures[figure.key].mean if figure.key in row.figures else None


def _cells(row: Row, shown: Sequence[Figure], notes: Sequence[str]) -> list[str]:
    mark = f" ({notes.index(row.note) + 1})" if row.note else ""
    figures = [_text(row, figure) for figure in shown]
    return [row.method + mark, *figures, ", ".join(map(str, row.seeds)) or MISSING, row.source]


def _text(row: Row, figure: Figure) -> str:
    """`mean ± deviation, worst ...`, with as many digits as were published, or as are measured."""
    statistic = row.figures.get(figure.key)
    if statistic is None or statistic.mean is None:
        return MISSING
    digits = figure.digits if row.seeds else figure.published_digits
    text = _number(statistic.mean, figure, digits)
    if statistic.deviation is not None:
        text += f" ± {_number(statistic.deviation, figure, digits)}"
    if statistic.worst is not None and len(row.seeds) > 1:
        text += f", worst {_number(statistic.worst, figure, digits)}"
    return text


def _number(value: float, figure: Figure, digits: int) -> str:
    return f"{value * figure.scale:.{digits}f}"


def _target_cells(verdict: Verdict) -> list[str]:
    figure = BY_KEY[verdict.figure]
    worst = MISSING if verdict.worst is None else f"{verdict.worst:.4g}"
    goal = MISSING if verdict.goal is None else f"{verdict.goal:g}"
    name = " ".join(part for part in (verdict.preset, verdict.variant) if part)
    # Targets are shares, 0 to 1; only the column of a percentage says so in its title.
    title = figure.title.removesuffix(" %")
    return [name, title, worst, f"{verdict.floor:g}", _met(verdict.floor_met), goal, _met(verdict.goal_met)]


def _met(met: bool | None) -> str:
    return MISSING if met is None else "met" if met else "not met"


def _aligned(rows: Sequence[Sequence[str]]) -> str:
    """A Markdown table whose columns are as wide as their widest cell."""
    widths = [max(3, *(len(row[column]) for row in rows)) for column in range(len(rows[0]))]
    lines = ["| " + " | ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)) + " |" for row in rows]
    lines.insert(1, "|" + "|".join("-" * (width + 2) for width in widths) + "|")
    return "\n".join(lines)
