"""Files are written whole or not at all, and read whole or refused with file and reason."""

from __future__ import annotations

import errno
import json
import os
import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings

from model_strategies import assert_same, dictionaries
from pictolex.errors import FormatError, InputError, OutputError
from pictolex.model import Background, Concept, Dictionary, Event, Lineage, atomic, files, load_any, write_sprites

FILES = ("dictionary.json", "dictionary.safetensors", "lineage.json")


def example(id: int = 0) -> Dictionary:
    ramp = np.linspace(0, 1, 12).reshape(3, 4)
    lineage = Lineage((Event(0, "born", id),))
    return Dictionary((Concept(id, ramp[..., None], ramp, "ramp"),), np.eye(3), Background("plain", np.full(3, 0.5)), lineage=lineage)


@settings(max_examples=40, deadline=None)
@given(dictionaries())
def test_dictionaries_survive(tmp_path_factory: pytest.TempPathFactory, dictionary: Dictionary) -> None:
    folder = tmp_path_factory.mktemp("run") / "deeper"
    dictionary.save(folder)
    assert sorted(path.name for path in folder.iterdir()) == sorted(FILES)
    again = Dictionary.load(folder)
    assert_same(again, dictionary)
    assert again.lineage == dictionary.lineage
    before = {path.name: path.read_bytes() for path in folder.iterdir()}
    again.save(folder)
    assert before == {path.name: path.read_bytes() for path in folder.iterdir()}


def test_lineage_alone_and_missing(tmp_path: Path) -> None:
    example().save(tmp_path)
    assert Lineage.load(tmp_path / "lineage.json") == example().lineage
    (tmp_path / "lineage.json").unlink()
    assert len(Dictionary.load(tmp_path).lineage) == 0
    example().lineage.save(tmp_path / "lineage.json")
    assert Dictionary.load(tmp_path).lineage == example().lineage


@pytest.mark.parametrize("name", FILES)
def test_damage_is_noticed(name: str, tmp_path: Path) -> None:
    example().save(tmp_path)
    good = (tmp_path / name).read_bytes()
    for place in range(0, len(good.rstrip()), 10):
        (tmp_path / name).write_bytes(good[:place])
        with pytest.raises(FormatError, match=f"{name}: the file is damaged"):
            Dictionary.load(tmp_path)
        for flip in (0x01, 0x20, 0x80):
            (tmp_path / name).write_bytes(good[:place] + bytes([good[place] ^ flip]) + good[place + 1 :])
            try:
                found = Dictionary.load(tmp_path)
            except FormatError as error:
                assert str(tmp_path / name) in str(error)
            else:  # white space between two entries
                assert_same(found, example())
                assert found.lineage == example().lineage


def edit(path: Path, change: Callable[[dict[str, Any]], object]) -> None:
    document = json.loads(path.read_bytes())
    change(document)
    path.write_text(json.dumps(document))


def test_versions_formats_and_pairs_are_told(tmp_path: Path) -> None:
    path = tmp_path / "dictionary.json"
    example().save(tmp_path)
    edit(path, lambda document: document.update(version=7))
    with pytest.raises(FormatError, match=r"dictionary.json: version 7 .* is not known \(this Pictolex reads version 1\); update Pictolex"):
        load_any(tmp_path)
    edit(path, lambda document: document.update(format="pictolex lineage"))
    with pytest.raises(FormatError, match="this is a pictolex lineage file, not a pictolex dictionary file"):
        load_any(tmp_path)
    path.write_text("[]")
    with pytest.raises(FormatError, match="this is something else"):
        load_any(tmp_path)
    example(1).save(tmp_path / "other")
    example().save(tmp_path)
    shutil.copy(tmp_path / "other" / "dictionary.safetensors", tmp_path)
    with pytest.raises(FormatError, match=r"not from the same save as dictionary\.json"):
        load_any(tmp_path)


def test_sealed_nonsense_is_told(tmp_path: Path) -> None:
    example().save(tmp_path)
    document = json.loads((tmp_path / "dictionary.json").read_bytes())
    content = {"concepts": [{"id": 5, "name": ""}], "values_sha256": document["values_sha256"]}
    (tmp_path / "dictionary.json").write_bytes(files.json_bytes(files.sealed(files.DICTIONARY, content)))
    with pytest.raises(FormatError, match=r"does not fit together \(missing 'concept.5.alpha'\)"):
        load_any(tmp_path)


def test_missing_files_are_told(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="there is no such folder"):
        load_any(tmp_path / "none")
    with pytest.raises(InputError, match=r"no dictionary\.json in it"):
        Dictionary.load(tmp_path)
    example().save(tmp_path)
    with pytest.raises(InputError, match="this is a file"):
        load_any(tmp_path / "dictionary.json")
    (tmp_path / "dictionary.safetensors").unlink()
    with pytest.raises(InputError, match=r"dictionary.safetensors: there is no such file"):
        load_any(tmp_path)


# --- faults while writing ------------------------------------------------------------------------------------------------


class FullDisk:
    """Makes the n-th call of a function fail as a full disk does."""

    def __init__(self, function: Callable[..., Any], fails: int) -> None:
        self.function, self.left = function, fails

    def __call__(self, *args: Any, **keywords: Any) -> Any:
        self.left -= 1
        if self.left == 0:
            raise OSError(errno.ENOSPC, "No space left on device")
        return self.function(*args, **keywords)


def write(dictionary: Dictionary, folder: Path, form: str) -> None:
    dictionary.save(folder) if form == "run" else write_sprites(dictionary, folder)


@pytest.mark.parametrize(("form", "fails"), [("run", 1), ("run", 2), ("run", 3), ("sprites", 1), ("sprites", 2)])
@pytest.mark.parametrize("function", ["fsync", "open"])
def test_disk_full_leaves_the_old_files(form: str, fails: int, function: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write(example(), tmp_path, form)
    before = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
    if function == "open":
        monkeypatch.setattr(files, "open", FullDisk(open, fails), raising=False)
    else:
        monkeypatch.setattr(os, "fsync", FullDisk(os.fsync, fails))
    with pytest.raises(OutputError, match=rf"cannot write {tmp_path}.*: disk full; free some space"):
        write(replace(example(), sharpness=2.0), tmp_path, form)
    assert before == {path.name: path.read_bytes() for path in tmp_path.iterdir()}


def test_disk_full_while_data_goes_out(tmp_path: Path) -> None:
    target = tmp_path / "new" / "file.bin"
    with pytest.raises(OutputError, match="disk full"), atomic(target) as file:
        file.write(b"half")
        raise OSError(errno.ENOSPC, "No space left on device")
    assert list(target.parent.iterdir()) == []


@pytest.mark.parametrize("error", [KeyboardInterrupt, ValueError])
def test_other_errors_pass_and_leave_nothing(error: type[BaseException], tmp_path: Path) -> None:
    (tmp_path / "file.bin").write_bytes(b"old")
    with pytest.raises(error), atomic(tmp_path / "file.bin") as file:
        file.write(b"new")
        raise error
    assert [path.read_bytes() for path in tmp_path.iterdir()] == [b"old"]


def test_atomic_follows_links_and_replaces(tmp_path: Path) -> None:
    (tmp_path / "real.bin").write_bytes(b"old")
    (tmp_path / "link.bin").symlink_to("real.bin")
    with atomic(tmp_path / "link.bin") as file:
        file.write(b"new")
    assert (tmp_path / "link.bin").is_symlink()
    assert (tmp_path / "real.bin").read_bytes() == b"new"


@pytest.mark.parametrize(
    ("code", "message"),
    [
        (errno.EACCES, "permission denied; choose a place you may write to"),
        (errno.EROFS, "the disk is read-only"),
        (errno.EIO, "Input/output error; choose another place"),
    ],
)
def test_reasons_are_named(code: int, message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*args: Any) -> None:
        raise OSError(code, os.strerror(code))

    monkeypatch.setattr(os, "replace", refuse)
    with pytest.raises(OutputError, match=message), atomic(tmp_path / "file.bin") as file:
        file.write(b"new")
    assert list(tmp_path.iterdir()) == []


def test_folders_and_devices_are_not_replaced(tmp_path: Path) -> None:
    with pytest.raises(OutputError, match="it is a folder"), atomic(tmp_path):
        pass
    with pytest.raises(OutputError, match="it is a device"), atomic("/dev/null"):
        pass
    (tmp_path / "file").write_bytes(b"")
    for place in ("file/inner.bin", "file/deep/inner.bin"):
        with pytest.raises(OutputError, match="a file"), atomic(tmp_path / place):
            pass
    with pytest.raises(OutputError, match="a file"):
        example().save(tmp_path / "file")


def test_a_folder_in_the_way_of_one_file_keeps_the_others(tmp_path: Path) -> None:
    example().save(tmp_path)
    (tmp_path / "lineage.json").unlink()
    (tmp_path / "lineage.json").mkdir()
    before = {path.name: path.read_bytes() for path in tmp_path.iterdir() if path.is_file()}
    with pytest.raises(OutputError, match=r"lineage.json: it is a folder"):
        example(1).save(tmp_path)
    assert before == {path.name: path.read_bytes() for path in tmp_path.iterdir() if path.is_file()}
