"""Finished seeds of variants on the disk: one file each, written whole or not at all, and told apart by all that decides the result."""

from __future__ import annotations

import math
import os
import platform
from collections.abc import Mapping
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

from pictolex import __version__
from pictolex.errors import FormatError
from pictolex.experiments.ablate_base import Found, Images, Job, Kept
from pictolex.model.files import Format, atomic, checksum, dictionary_of, dictionary_parts, fitting, read_tensors, tensor_bytes
from pictolex.model.lineage import Lineage
from pictolex.settings import Settings

FORMAT = Format("pictolex ablated variant")
_ARRAY, _DICTIONARY = "array.", "dictionary."


def place(job: Job, folder: Path) -> Path:
    """The file of a seed of a variant."""
    return folder / job.variant.name / f"seed-{job.seed}.safetensors"


def request(job: Job, images: Images) -> str:
    """Of all that decides a result: the variant, its settings and images, the seed, the device, and our version."""
    decides = {
        "variant": asdict(job.variant),
        "settings": job.settings(images).model_dump(mode="json"),
        "data": images.data,
        "learned": len(images.learn),
        "seed": job.seed,
        "device": job.device,
        "version": __version__,
    }
    return checksum({}, decides)


def save(job: Job, images: Images, found: Found, seconds: float, folder: Path) -> Kept:
    """Keep what a seed gave."""
    found = replace(found, figures=finite(found.figures), details=finite(found.details))
    kept = Kept(job.variant, job.seed, seconds, _machine(job.device), images.data, job.settings(images), found)
    tensors = {f"{_ARRAY}{name}": array for name, array in found.arrays.items()}
    content: dict[str, Any] = {
        "request": request(job, images),
        "seconds": seconds,
        "machine": kept.machine,
        "figures": found.figures,
        "details": found.details,
        "settings": kept.settings.model_dump(mode="json"),
    }
    if found.dictionary is not None:
        patches, content["dictionary"] = dictionary_parts(found.dictionary)
        content["lineage"] = found.dictionary.lineage.to_json()
        tensors |= {f"{_DICTIONARY}{name}": array for name, array in patches.items()}
    with atomic(place(job, folder)) as file:
        file.write(tensor_bytes(FORMAT, content, tensors))
    return kept


def load(job: Job, images: Images, folder: Path) -> Kept | None:
    """What was kept of a seed, if it is of the same request; says so where it is not, or is damaged."""
    path = place(job, folder)
    if not path.is_file():
        return None
    try:
        content, tensors = read_tensors(path, FORMAT)
        with fitting(path):
            dictionary = content.get("dictionary")
            parts = {name.removeprefix(_DICTIONARY): array for name, array in tensors.items() if name.startswith(_DICTIONARY)}
            found = Found(
                content["figures"],
                content["details"],
                {name.removeprefix(_ARRAY): array for name, array in tensors.items() if name.startswith(_ARRAY)},
                None if dictionary is None else dictionary_of(parts, dictionary, Lineage.from_json(content["lineage"])),
            )
            settings = Settings.model_validate(content["settings"])
            kept = Kept(job.variant, job.seed, content["seconds"], content["machine"], images.data, settings, found)
    except FormatError as error:
        job.watch.say(f"{error}: this seed is run again")
        return None
    if content["request"] != request(job, images):
        job.watch.say(f"{job.variant.name}, seed {job.seed}: kept from another request or version, so it is run again")
        return None
    return kept


def finite(value: Any) -> Any:
    """Mappings, lists and NumPy values as JSON holds them; what is not a finite number is not known."""
    if isinstance(value, Mapping):
        return {str(key): finite(inner) for key, inner in value.items()}
    if isinstance(value, list | tuple):
        return [finite(inner) for inner in value]
    if hasattr(value, "tolist"):
        return finite(value.tolist())
    return None if isinstance(value, float) and not math.isfinite(value) else value


def _machine(device: str) -> str:
    """The device, and the machine in words."""
    import torch

    from pictolex.decompose.device import choose_device

    chosen = choose_device(device)
    processor = torch.cuda.get_device_name(chosen) if chosen.type == "cuda" else platform.processor() or platform.machine()
    return f"{chosen} ({processor}, {os.cpu_count()} cores, torch {torch.__version__})"
