"""What several commands share: opening what is learned, checking outputs before the work, writing results."""

from __future__ import annotations

import json
import math
import re
import sys
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from pictolex.api import Learned, learned
from pictolex.cli.options import Changes, overlay
from pictolex.errors import InputError, OutputError
from pictolex.presets import load_preset

UNITS = {"": 1.0, "s": 1.0, "m": 60.0, "min": 60.0, "h": 3600.0, "d": 86400.0}


def open_learned(path: str, changes: Changes | None = None, preset: str | None = None) -> Learned:
    """A run, or a folder of sprites, which is a dictionary too; settings typed come over those of the preset or the run."""
    found = learned(path, load_preset(preset) if preset is not None else None)
    return replace(found, settings=overlay(found.settings, changes or {}))


def ready_file(path: str | Path, suffixes: tuple[str, ...]) -> Path:
    """A file that is going to be written: its ending is one of `suffixes`, its folder exists and can be written to."""
    path = Path(path)
    if path.suffix.lower() not in suffixes:
        raise OutputError(f"{path}: the file's name must end in {' or '.join(suffixes)}")
    if path.is_dir():
        raise OutputError(f"{path} is a folder; name a file")
    ready_folder(path.parent)
    return path


def ready_folder(path: str | Path) -> Path:
    """A folder that is going to be written to, made if need be; tried before any work is done."""
    import tempfile

    path = Path(path)
    try:
        path.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=path):
            pass
    except OSError as error:
        raise OutputError(f"{path}: cannot be written to ({error.strerror or error}); choose another place") from None
    return path


def seconds(text: str) -> float:
    """A duration such as `90`, `90s`, `5m`, `1.5h`."""
    found = re.fullmatch(r"\s*([\d.]+)\s*([a-z]*)\s*", text.lower())
    try:
        value = float(found[1]) * UNITS[found[2]] if found else math.nan
    except (KeyError, ValueError):
        value = math.nan
    if value == 0:
        raise InputError(f"--budget {text}: that leaves no time; write 90s, 5m or 1.5h, or leave it out")
    if not math.isfinite(value):
        raise InputError(f"--budget {text!r} is not a duration; write 90s, 5m or 1.5h")
    return value


def tell(text: str, quiet: bool = False) -> None:
    """A line for people, on stderr."""
    if not quiet:
        print(text, file=sys.stderr, flush=True)


def write_json(values: Mapping[str, Any]) -> None:
    """One JSON object on stdout; what is not a number becomes null."""
    print(json.dumps(_plain(values), indent=2, allow_nan=False))


def _plain(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {str(key): _plain(inner) for key, inner in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(inner) for inner in value]
    if hasattr(value, "item"):
        value = value.item()
    return None if isinstance(value, float) and not math.isfinite(value) else value
