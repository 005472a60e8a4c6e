"""`pictolex info`: what is in a run."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Annotated, Any

from cyclopts import Parameter

from pictolex.api import Learned
from pictolex.cli.common import open_learned, write_json
from pictolex.learn.run import lineage_counts


def command(
    learned: Annotated[str, Parameter(name="RUN_OR_SPRITES")],
    /,
    *,
    json: bool = False,
) -> None:
    """Say what is in a run or a folder of sprites.

    Parameters
    ----------
    learned
        The folder of a run, or a folder of RGBA sprites.
    json
        As one JSON object.
    """
    facts = describe(open_learned(learned))
    if json:
        write_json(facts)
        return
    width = max(map(len, facts))
    for name, value in facts.items():
        print(f"{name.replace('_', ' '):<{width}}  {_text(value)}")


def describe(learned: Learned) -> dict[str, Any]:
    """The facts, by name."""
    dictionary, settings = learned.dictionary, learned.settings
    sizes = Counter("x".join(map(str, concept.alpha.shape)) for concept in dictionary)
    kind = "voxels" if any(concept.is_voxel for concept in dictionary) else {1: "luminance", 3: "RGB"}[dictionary.channels]
    facts: dict[str, Any] = {
        "concepts": len(dictionary),
        "sizes": dict(sizes),
        "concept_kind": kind,
        "hues": 0 if dictionary.hues is None else len(dictionary.hues),
        "background": dictionary.background.kind,
        "formation": dictionary.formation,
        "dictionary_values": dictionary.values,
        "most_elements": settings.layers,
        "rotations": settings.placement.rotations,
        "scales": list(settings.placement.scales),
        "mirror": settings.placement.mirror,
        "objective": settings.objective.kind,
        "strategy": settings.strategy.kind,
        "price": settings.price,
    }
    if learned.run is not None:
        facts |= {**_progress(learned.run.history), "lineage": lineage_counts(dictionary.lineage)}
    elements = None if learned.run is None else learned.run.elements
    if elements is not None:
        ids, counts = _usage(elements.columns["concept"])
        facts |= {
            "images": len(elements),
            "elements_per_image": float(elements.elements_per_image.mean()) if len(elements) else 0.0,
            "uses": dict(sorted(zip(ids, counts, strict=True), key=lambda pair: -pair[1])),
        }
    return facts


def _progress(history: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Epochs that are done, and seconds that all sessions took together."""
    last = {name: [entry[name] for entry in history if name in entry][-1:] for name in ("epoch", "seconds")}
    return {"epochs": last["epoch"][0] if last["epoch"] else 0, "seconds": last["seconds"][0] if last["seconds"] else 0.0}


def _usage(concepts: Any) -> tuple[list[int], list[int]]:
    import numpy as np

    ids, counts = np.unique(concepts, return_counts=True)
    return ids.tolist(), counts.tolist()


def _text(value: Any) -> str:
    if isinstance(value, dict):
        shown = [f"{key} x{count}" for key, count in list(value.items())[:12]]
        return ", ".join(shown) + (f", and {len(value) - 12} more" if len(value) > 12 else "")
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, list):
        return ", ".join(f"{item:g}" for item in value)
    return f"{value:.4g}" if isinstance(value, float) else str(value)
