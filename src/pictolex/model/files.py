"""Files that are written whole or not at all, and read whole or refused with the reason.

Every file of ours names its format and version and carries a checksum of its content, so that one that is truncated,
tampered with, or from a newer Pictolex is told apart from a good one. No pickle: reading a file runs nothing.
"""

from __future__ import annotations

import errno
import hashlib
import json
import os
import secrets
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
import safetensors.numpy
from numpy.typing import NDArray

from pictolex.errors import FormatError, InputError, OutputError, PictolexError
from pictolex.model.concept import Concept
from pictolex.model.dictionary import Background, Dictionary
from pictolex.model.lineage import Lineage

Tensors = Mapping[str, NDArray[Any]]

_KEY = "pictolex"
_REASONS = {
    errno.ENOSPC: "disk full; free some space or choose another place",
    errno.EDQUOT: "disk full (quota used up); free some space or choose another place",
    errno.EACCES: "permission denied; choose a place you may write to",
    errno.EPERM: "permission denied; choose a place you may write to",
    errno.EROFS: "the disk is read-only; choose another place",
    errno.ENOTDIR: "a part of the path is a file, not a folder; choose another place",
    errno.EEXIST: "a file stands where a folder is needed; choose another place",
    errno.ENAMETOOLONG: "the name is too long; choose a shorter one",
}


class SkippedWarning(UserWarning):
    """Some of what was given could not be used and was left out; the message says what and why."""


@dataclass(frozen=True)
class Format:
    """The name of a file format and the version written and read here."""

    name: str
    version: int = 1


DICTIONARY = Format("pictolex dictionary")
LINEAGE = Format("pictolex lineage")


# --- writing -------------------------------------------------------------------------------------------------------------


@contextmanager
def atomic(path: str | Path) -> Iterator[BinaryIO]:
    """A binary file that takes the place of `path` when the block ends well; otherwise `path` is untouched and nothing is left.

    Missing folders are made. An OSError in the block is told as an OutputError that names `path`.
    """
    with _staged(path) as file:
        yield file
        _settle(file)


def write_together(contents: Mapping[Path, bytes]) -> None:
    """Write several files of one meaning: all of them are safe on the disk before the first takes its place."""
    with ExitStack() as stack:
        for path, data in contents.items():
            file = stack.enter_context(_staged(path))
            with _told(path):
                file.write(data)
                _settle(file)


@contextmanager
def _staged(path: str | Path) -> Iterator[BinaryIO]:
    """A temporary file beside `path` (where the renaming is atomic), renamed to it at the end, removed on any error."""
    target = Path(os.path.realpath(path))
    temporary = target.with_name(f".{target.name[:100]}.{os.getpid()}-{secrets.token_hex(4)}.tmp")
    with _told(path):
        if target.is_dir():
            raise OutputError(f"cannot write {path}: it is a folder; give the name of a file")
        if target.exists() and not target.is_file():
            raise OutputError(f"cannot write {path}: it is a device or pipe; give the name of a file")
        target.parent.mkdir(parents=True, exist_ok=True)
        try:
            with open(temporary, "xb") as file:
                yield file
            os.replace(temporary, target)
        finally:
            temporary.unlink(missing_ok=True)


def _settle(file: BinaryIO) -> None:
    file.flush()
    os.fsync(file.fileno())


@contextmanager
def _told(path: str | Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        reason = _REASONS.get(error.errno or 0) or f"{error.strerror or error}; choose another place"
        raise OutputError(f"cannot write {path}: {reason}") from error


# --- formats -------------------------------------------------------------------------------------------------------------


def checksum(tensors: Tensors, content: Any = None) -> str:
    """The sha256 of arrays (names, types, shapes, values) and of what stands beside them (anything JSON can hold)."""
    digest = hashlib.sha256(_compact(content))
    for name, tensor in sorted(tensors.items()):
        digest.update(f"\n{name} {tensor.dtype.str} {tensor.shape}\n".encode())
        digest.update(np.ascontiguousarray(tensor).data)
    return digest.hexdigest()


def _compact(content: Any) -> bytes:
    return json.dumps(content, sort_keys=True, separators=(",", ":"), allow_nan=False).encode()


def sealed(format: Format, content: Mapping[str, Any], tensors: Tensors | None = None) -> dict[str, Any]:
    """`content` with format, version and checksum in front, to be opened by `unsealed`."""
    return {"format": format.name, "version": format.version, "sha256": checksum(tensors or {}, dict(content)), **content}


def unsealed(document: Any, format: Format, path: str | Path, tensors: Tensors | None = None) -> dict[str, Any]:
    """The content of a sealed document, or a FormatError that says what is wrong with the file at `path`."""
    content = opened(document, format, path)
    if content.pop("sha256", None) != checksum(tensors or {}, content):
        raise damaged(path, "its content does not match its checksum")
    return content


def opened(document: Any, format: Format, path: str | Path) -> dict[str, Any]:
    """The content of a document of this format and version; its checksum, if there is one, stays in it."""
    content = dict(document) if isinstance(document, dict) else {}
    name, version = content.pop("format", None), content.pop("version", None)
    if name != format.name:
        found = f"a {name} file" if isinstance(name, str) else "something else"
        raise FormatError(f"{path}: this is {found}, not a {format.name} file; give the right file")
    if version != format.version:
        known = f"this Pictolex reads version {format.version}"
        raise FormatError(f"{path}: version {version!r} of the {format.name} format is not known ({known}); update Pictolex")
    return content


def damaged(path: str | Path, reason: object) -> FormatError:
    """The error for a file that is truncated or was changed from outside."""
    return FormatError(f"{path}: the file is damaged ({reason}); restore it from a copy or write it again")


@contextmanager
def fitting(path: str | Path) -> Iterator[None]:
    """Tell errors of building something from a file's content as errors of the file."""
    try:
        yield
    except FormatError:
        raise
    except (PictolexError, AttributeError, KeyError, TypeError, ValueError, OverflowError) as error:
        reason = f"missing {error}" if isinstance(error, KeyError) else error
        raise FormatError(f"{path}: its content does not fit together ({reason}); restore it from a copy or write it again") from error


def read_bytes(path: str | Path) -> bytes:
    """The whole of a file, or an InputError that says why not."""
    try:
        return Path(path).read_bytes()
    except FileNotFoundError as error:
        raise InputError(f"{path}: there is no such file; check the path") from error
    except OSError as error:
        raise InputError(f"{path}: cannot be read ({error.strerror or error}); check the path") from error


def parse_json(data: bytes, path: str | Path) -> Any:
    """What a JSON file at `path` holds."""
    try:
        return json.loads(data)
    except (ValueError, RecursionError) as error:
        raise damaged(path, f"not valid JSON: {error}") from error


def json_bytes(document: Any) -> bytes:
    """A JSON file that people can read."""
    return json.dumps(document, indent=1, allow_nan=False).encode() + b"\n"


def tensor_bytes(format: Format, content: Mapping[str, Any], tensors: Tensors) -> bytes:
    """A safetensors file; one metadata entry holds all else, so that equal contents give equal files."""
    arrays = {name: np.ascontiguousarray(tensor) for name, tensor in tensors.items()}
    return safetensors.numpy.save(arrays, {_KEY: json.dumps(sealed(format, content, arrays))})


def read_tensors(path: str | Path, format: Format) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
    """Content and tensors of a safetensors file of ours."""
    data = read_bytes(path)
    try:
        tensors = safetensors.numpy.load(data)
        header = json.loads(data[8 : 8 + int.from_bytes(data[:8], "little")])
        document = json.loads(header.get("__metadata__", {}).get(_KEY, "null"))
    except Exception as error:  # safetensors and its numpy reader raise errors of many classes on damaged files
        raise damaged(path, f"not a whole safetensors file: {error}") from error
    return unsealed(document, format, path, tensors), tensors


# --- dictionaries --------------------------------------------------------------------------------------------------------


def save_dictionary(dictionary: Dictionary, folder: str | Path) -> None:
    """Write `dictionary.safetensors` (values), `dictionary.json` (all else) and `lineage.json` into a folder, made if needed."""
    tensors, content = dictionary_parts(dictionary)
    content["values_sha256"] = checksum(tensors)
    folder = Path(folder)
    write_together(
        {
            folder / "dictionary.safetensors": tensor_bytes(DICTIONARY, {}, tensors),
            folder / "dictionary.json": json_bytes(sealed(DICTIONARY, content)),
            folder / "lineage.json": _lineage_bytes(dictionary.lineage),
        }
    )


def dictionary_parts(dictionary: Dictionary) -> tuple[dict[str, NDArray[np.float32]], dict[str, Any]]:
    """A dictionary as arrays by name, and all else that there is to say of it but its lineage."""
    tensors: dict[str, NDArray[np.float32]] = {}
    for concept in dictionary:
        tensors[f"concept.{concept.id}.alpha"] = concept.alpha
        if not concept.is_voxel:
            tensors[f"concept.{concept.id}.shape"] = concept.shape
    if dictionary.hues is not None:
        tensors["hues"] = dictionary.hues
    if dictionary.background.values is not None:
        tensors["background"] = dictionary.background.values
    content = {
        "formation": dictionary.formation,
        "sharpness": dictionary.sharpness,
        "background": dictionary.background.kind,
        "next_id": dictionary.next_id,
        "concepts": [{"id": concept.id, "name": concept.name, "size": list(concept.alpha.shape)} for concept in dictionary],
    }
    return tensors, content


def dictionary_of(tensors: Tensors, content: Mapping[str, Any], lineage: Lineage) -> Dictionary:
    """The dictionary that `dictionary_parts` took apart."""
    return Dictionary(
        concepts=tuple(_concept(entry, tensors) for entry in content["concepts"]),
        hues=tensors.get("hues"),
        background=Background(content["background"], tensors.get("background")),
        formation=content["formation"],
        sharpness=content["sharpness"],
        next_id=content["next_id"],
        lineage=lineage,
    )


def load_dictionary(folder: str | Path) -> Dictionary:
    """Read what `save_dictionary` wrote; without a `lineage.json` the lineage is empty."""
    folder = Path(folder)
    path = folder / "dictionary.json"
    if folder.is_dir() and not path.exists():
        raise InputError(f"{folder}: there is no dictionary.json in it; give the folder of a run")
    content = unsealed(parse_json(read_bytes(path), path), DICTIONARY, path)
    values = folder / "dictionary.safetensors"
    _, tensors = read_tensors(values, DICTIONARY)
    if content.get("values_sha256") != checksum(tensors):
        raise FormatError(f"{values}: not from the same save as dictionary.json beside it; restore both from one copy")
    lineage = folder / "lineage.json"
    with fitting(path):
        return dictionary_of(tensors, content, read_lineage(lineage) if lineage.exists() else Lineage())


def _concept(entry: Mapping[str, Any], tensors: Tensors) -> Concept:
    id, name = entry["id"], entry["name"]
    alpha, shape = tensors[f"concept.{id}.alpha"], tensors.get(f"concept.{id}.shape")
    return Concept.voxel(id, alpha, name) if shape is None else Concept(id, shape, alpha, name)


def write_lineage(lineage: Lineage, path: str | Path) -> None:
    """Write a lineage as JSON."""
    write_together({Path(path): _lineage_bytes(lineage)})


def read_lineage(path: str | Path) -> Lineage:
    """Read what `write_lineage` wrote."""
    content = unsealed(parse_json(read_bytes(path), path), LINEAGE, path)
    with fitting(path):
        return Lineage.from_json(content["events"])


def _lineage_bytes(lineage: Lineage) -> bytes:
    return json_bytes(sealed(LINEAGE, {"events": lineage.to_json()}))
