"""A folder of RGBA sprites as a dictionary, and back: what people who match templates have already.

`sprites.json` beside the images keeps what PNG files cannot: ids, full names, hues, formation, sharpness, background.
It may be missing, and it and the images are there to be edited, so it carries no checksum.
"""

from __future__ import annotations

import io
import re
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pictolex.errors import FormatError, InputError, MissingExtraError, OutputError
from pictolex.model.arrays import unit_array
from pictolex.model.concept import Concept
from pictolex.model.dictionary import Background, Dictionary
from pictolex.model.files import (
    Format,
    SkippedWarning,
    fitting,
    json_bytes,
    load_dictionary,
    opened,
    parse_json,
    read_bytes,
    write_together,
)

SPRITES = Format("pictolex sprites")

_SIDE = "sprites.json"
_SUFFIXES = frozenset({".png", ".webp", ".tif", ".tiff", ".bmp", ".gif", ".jpg", ".jpeg"})
_Pixels = NDArray[np.float32]


def load_any(path: str | Path) -> Dictionary:
    """The dictionary of a run folder or of a folder of sprites."""
    folder = _folder(path)
    if any((folder / f"dictionary.{suffix}").exists() for suffix in ("json", "safetensors")):
        return load_dictionary(folder)
    return read_sprites(folder)


def read_sprites(folder: str | Path) -> Dictionary:
    """One concept per image file, in natural order of the names; images without alpha are opaque.

    Files that cannot be used are left out with a `SkippedWarning`; none that can is an InputError.
    """
    folder = _folder(folder)
    side = _read_side(folder / _SIDE)
    files = {path.name: path for path in sorted(folder.iterdir(), key=_natural) if _is_sprite(path) and path.name != side.background_file}
    skipped = [f"{name}: listed in {_SIDE} but not there" for name in side.sprites if name not in files]
    order = [name for name in side.sprites if name in files] + [name for name in files if name not in side.sprites]
    patches: dict[str, tuple[_Pixels, _Pixels]] = {}
    for name in order:
        try:
            patches[name] = _decode(files[name])
        except InputError as error:
            skipped.append(str(error))
    if not patches and side.sprites.keys() | files.keys():
        raise InputError(f"{folder}: none of its {len(files)} images can be used ({_few(skipped)}); give a folder of RGBA images")
    if not patches and not side.is_there:
        raise InputError(f"{folder}: there are no images in it; give the folder of a run, or one of RGBA images such as PNG files")
    if skipped:
        warnings.warn(f"{folder}: {len(skipped)} of its sprites left out ({_few(skipped)})", SkippedWarning, stacklevel=2)
    with fitting(folder / _SIDE):
        next_id = max([side.next_id, *(int(entry["id"]) + 1 for entry in side.sprites.values())])
        coloured = any(shape.shape[-1] == 3 for shape, _ in patches.values())
        concepts = []
        for name, (shape, alpha) in patches.items():
            entry = side.sprites.get(name)
            if entry is None:
                entry, next_id = {"id": next_id, "name": Path(name).stem}, next_id + 1
            concepts.append(_concept(entry, shape, alpha, coloured))
        background = Background(side.settings.get("background", "none"), _background_values(folder, side))
        return Dictionary(
            concepts=tuple(concepts),
            hues=side.settings.get("hues"),
            background=background,
            formation=side.settings.get("formation", "alpha"),
            sharpness=side.settings.get("sharpness", 1.0),
            next_id=next_id,
        )


def write_sprites(dictionary: Dictionary, folder: str | Path) -> None:
    """One PNG file per concept and a `sprites.json`; `read_sprites` gives the same dictionary back, to 8 bit, without lineage."""
    folder = Path(folder)
    names = _file_names(dictionary)
    contents = {folder / names[concept.id]: _encode(concept) for concept in dictionary}
    background = dictionary.background
    settings: dict[str, Any] = {
        "formation": dictionary.formation,
        "sharpness": dictionary.sharpness,
        "next_id": dictionary.next_id,
        "hues": None if dictionary.hues is None else dictionary.hues.tolist(),
        "background": background.kind,
    }
    if background.kind == "plain" and background.values is not None:
        settings["background_colour"] = background.values.tolist()
    if background.kind == "image" and background.values is not None:
        settings["background_file"] = "background.png"
        contents[folder / "background.png"] = _png(background.values)
    sprites = [{"file": names[c.id], "id": c.id, "name": c.name} | ({"depth": c.depth} if c.is_voxel else {}) for c in dictionary]
    contents[folder / _SIDE] = json_bytes({"format": SPRITES.name, "version": SPRITES.version, **settings, "sprites": sprites})
    if folder.is_dir():
        foreign = [path.name for path in sorted(folder.iterdir(), key=_natural) if _is_sprite(path) and path not in contents]
        if foreign:
            raise OutputError(f"cannot write {folder}: it holds images that would become sprites ({_few(foreign)}); choose an empty folder")
    write_together(contents)


# --- the side file -------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Side:
    """What `sprites.json` says; all empty where there is none."""

    is_there: bool = False
    settings: Mapping[str, Any] = field(default_factory=dict)
    sprites: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    next_id: int = 0
    background_file: str | None = None


def _read_side(path: Path) -> _Side:
    if not path.exists():
        return _Side()
    settings = opened(parse_json(read_bytes(path), path), SPRITES, path)
    with fitting(path):
        sprites = {entry["file"]: entry for entry in settings["sprites"]}
        if len(sprites) < len(settings["sprites"]):
            raise FormatError(f"{path}: a file is listed twice; list each sprite once")
        if any(entry["id"] != int(entry["id"]) for entry in sprites.values()):
            raise FormatError(f"{path}: an id is not a whole number; give each sprite a whole number of its own")
        return _Side(True, settings, sprites, int(settings.get("next_id", 0)), settings.get("background_file"))


def _background_values(folder: Path, side: _Side) -> Any:
    if side.background_file is None:
        return side.settings.get("background_colour")
    shape, _ = _decode(folder / Path(side.background_file).name)
    return shape


def _concept(entry: Mapping[str, Any], shape: _Pixels, alpha: _Pixels, coloured: bool) -> Concept:
    if "depth" in entry:
        return Concept.voxel(entry["id"], alpha.reshape(entry["depth"], -1, alpha.shape[1]), entry["name"])
    if coloured and shape.shape[-1] == 1:
        shape = np.repeat(shape, 3, axis=-1)
    return Concept(entry["id"], shape, alpha, entry["name"])


# --- images --------------------------------------------------------------------------------------------------------------


def _decode(path: Path) -> tuple[_Pixels, _Pixels]:
    """Shape (height, width, 1 or 3) and alpha (height, width) of an image file."""
    pillow, turned = _pillow()
    data = read_bytes(path)
    try:
        with pillow.open(io.BytesIO(data)) as file:
            frames = getattr(file, "n_frames", 1)
            if frames > 1:
                raise InputError(f"{path.name}: has {frames} frames; save each as an image of its own")
            image = turned(file)
            if image.mode.startswith(("I", "F")):  # 16 bit (also as 32-bit integers) and floating point: grey, no alpha
                grey = np.asarray(image).astype(np.float32) / (65535 if image.mode.startswith("I") else 1)
                return unit_array(grey[..., None], f"{path.name}: its grey"), np.ones_like(grey)
            pixels = np.asarray(image.convert("LA" if image.mode in ("1", "L", "LA") else "RGBA"))
    except InputError:
        raise
    except Exception as error:  # Pillow raises errors of many classes on damaged files
        reason = "not an image that Pillow knows" if isinstance(error, pillow.UnidentifiedImageError) else error
        raise InputError(f"{path.name}: cannot be read ({reason})") from error
    values: _Pixels = pixels.astype(np.float32) / np.float32(255)
    return values[..., :-1], values[..., -1]


def _encode(concept: Concept) -> bytes:
    """A PNG file of a concept; the layers of a voxel concept stand one below the other."""
    pixels = np.concatenate([concept.shape, concept.alpha[..., None]], axis=-1)
    return _png(pixels.reshape(-1, concept.width, concept.channels + 1))


def _png(values: _Pixels) -> bytes:
    """A PNG file of (height, width, 1 to 4) values: grey, grey with alpha, RGB, RGBA."""
    pillow, _ = _pillow()
    pixels = np.rint(values * 255).astype(np.uint8)
    file = io.BytesIO()
    pillow.fromarray(pixels[..., 0] if pixels.shape[-1] == 1 else pixels).save(file, "PNG")
    return file.getvalue()


def _pillow() -> tuple[Any, Any]:
    try:
        from PIL import Image, ImageOps
    except ImportError as error:
        raise MissingExtraError("image files need Pillow: pip install pillow") from error
    return Image, ImageOps.exif_transpose


# --- names ---------------------------------------------------------------------------------------------------------------


def _file_names(dictionary: Dictionary) -> dict[int, str]:
    """A file name for every concept: its own name where that is usable and free on every system, else with its id."""
    names: dict[int, str] = {}
    taken = {"background.png"}
    for concept in dictionary:
        stem = re.sub(r"[^\w .,+()-]|^[. ]+|[. ]+$", "_", concept.name)[:80] if concept.name else f"concept-{concept.id}"
        name = f"{stem}.png"
        while name.casefold() in taken:
            stem = f"{stem}-{concept.id}"
            name = f"{stem}.png"
        taken.add(name.casefold())
        names[concept.id] = name
    return names


def _folder(path: str | Path) -> Path:
    folder = Path(path)
    if not folder.exists():
        raise InputError(f"{folder}: there is no such folder; give the folder of a run, or one of RGBA images")
    if not folder.is_dir():
        raise InputError(f"{folder}: this is a file; give the folder of a run, or one of RGBA images")
    return folder


def _is_sprite(path: Path) -> bool:
    return path.suffix.lower() in _SUFFIXES and not path.name.startswith(".") and path.is_file()


def _natural(path: Path) -> tuple[list[tuple[int, str]], str]:
    """A key that sorts sprite-2 before sprite-10."""
    parts = re.findall(r"\d+|\D+", path.name.casefold())
    return [(int(part), "") if part.isdecimal() else (-1, part) for part in parts], path.name


def _few(reasons: Sequence[str]) -> str:
    more = f"; and {len(reasons) - 3} more" if len(reasons) > 3 else ""
    return "; ".join(reasons[:3]) + more
