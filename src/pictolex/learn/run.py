"""The run folder: settings, dictionary, lineage, elements and log of one learning run."""

from __future__ import annotations

import errno
import json
import os
import shutil
import tomllib
import warnings
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from pydantic import ValidationError

from pictolex.errors import FormatError, InputError, OutputError
from pictolex.model import Collection, Decomposition, Dictionary, Lineage
from pictolex.model.files import DICTIONARY as DICTIONARY_FORMAT
from pictolex.model.files import atomic, opened
from pictolex.settings import Settings

if TYPE_CHECKING:
    from pictolex.decompose import Progress, Rendered, Renderer

FORMAT = "pictolex-run"
VERSION = 1
SETTINGS, DICTIONARY, LOG = "settings.toml", "dictionary.json", "log.jsonl"
ELEMENTS = ("elements.parquet", "elements.safetensors")
CHECKPOINTS, HISTORY = "checkpoints", "history"
CHANGES = ("born", "split", "merged", "removed")
"""What may happen to a concept, as a lineage tells it."""


class UnwrittenWarning(UserWarning):
    """Something that learning can do without could not be written."""


class Run:
    """What a learning run found, and the folder it is kept in; without a folder it lives in memory only.

    A run is made by `Run.create`, filled by the learning loop, and read back with `Run.open`.
    """

    def __init__(self, folder: Path | None, settings: Settings) -> None:
        self._folder = folder
        self._settings = settings
        self._dictionary: Dictionary | None = None
        self._elements: Collection | None = None
        self._log: list[dict[str, Any]] = []
        self.unwritten = 0
        """Writes that failed and that learning could do without."""

    @classmethod
    def create(cls, folder: str | os.PathLike[str] | None, settings: Settings) -> Run:
        """A new run; its folder is made, and must not hold another run."""
        if folder is None:
            return cls(None, settings)
        path = Path(folder)
        try:
            path.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise OutputError(f"{path}: the run's folder cannot be made ({_reason(error)}); choose another one") from None
        if (path / SETTINGS).exists():
            raise taken(path)
        run = cls(path, settings)
        run._write_settings()
        return run

    @classmethod
    def open(cls, folder: str | os.PathLike[str]) -> Run:
        """The run in a folder."""
        path = Path(folder)
        if not path.exists():
            raise InputError(f"{path}: no such folder; name the folder of a run")
        if not is_run(path):
            raise InputError(f"{path} is not a run: it has no {SETTINGS}; name the folder that `pictolex learn -o` wrote")
        return cls(path, read_settings(path / SETTINGS))

    @property
    def folder(self) -> Path | None:
        """Where the run is kept; None in memory."""
        return self._folder

    @property
    def settings(self) -> Settings:
        """The settings it was learned with."""
        return self._settings

    @property
    def dictionary(self) -> Dictionary:
        """What was learned."""
        if self._dictionary is None:
            if self._folder is None or not (self._folder / DICTIONARY).exists():
                raise InputError(f"{self._title} has no dictionary yet: it stopped before its first one was kept; learn again")
            self._dictionary = Dictionary.load(self._folder)
        return self._dictionary

    @property
    def lineage(self) -> Lineage:
        """How the concepts came to be."""
        return self.dictionary.lineage

    @property
    def elements(self) -> Collection | None:
        """The elements of the images it learned from; None where the run was stopped before it had them."""
        if self._elements is None and self._folder is not None:
            found = [self._folder / name for name in ELEMENTS if (self._folder / name).exists()]
            if found:
                self._elements = Collection.load(found[0])
        return None if self._elements is None else self._elements.drawn_by(_LazyPainter(self))

    @property
    def history(self) -> tuple[Mapping[str, Any], ...]:
        """The entries of the log, oldest first."""
        if self._folder is None:
            return tuple(self._log)
        path = self._folder / LOG
        if not path.exists():
            return ()
        # The last line of a process that was killed may be without its end.
        whole, _, _ = path.read_bytes().rpartition(b"\n")
        try:
            return tuple(json.loads(line) for line in whole.splitlines() if line.strip())
        except ValueError:
            raise FormatError(f"{path}: a line is not JSON; remove the damaged line") from None

    def complete(self, epochs: int) -> bool:
        """Whether so many epochs are done and the elements of all images are kept."""
        if self._folder is None:
            return self._elements is not None
        names = [path.name for path in (self._folder / CHECKPOINTS).glob("??????-000000.safetensors")]
        return any((self._folder / name).exists() for name in ELEMENTS) and max(names, default="") >= f"{epochs:06d}"

    def reopen(self, settings: Settings) -> None:
        """Go on learning: with these settings from now on, without elements that are going to be found anew."""
        self._settings, self._elements = settings, None
        if self._folder is None:
            return
        self._write_settings()
        left_behind = [path for name in (".", CHECKPOINTS, HISTORY) for path in (self._folder / name).glob(".*.tmp")]
        for path in (*left_behind, *(self._folder / name for name in ELEMENTS)):
            path.unlink(missing_ok=True)

    def check_version(self) -> None:
        """Refuse a run whose dictionary is of a format that this Pictolex does not know."""
        path = None if self._folder is None else self._folder / DICTIONARY
        if path is None or not path.exists():
            return
        try:
            document = json.loads(path.read_bytes())
        except (OSError, ValueError):
            return  # damaged: it is going to be written anew
        opened(document, DICTIONARY_FORMAT, path)

    @contextmanager
    def spared(self) -> Iterator[None]:
        """For writing what learning can do without: that it failed is told the first time, and counted."""
        try:
            yield
        except OutputError as error:
            self.unwritten += 1
            if self.unwritten == 1:
                warnings.warn(f"{error}; learning goes on, and tries again later", UnwrittenWarning, stacklevel=3)

    def save_dictionary(self, dictionary: Dictionary) -> None:
        """Keep the dictionary and its lineage."""
        self._dictionary = dictionary
        if self._folder is not None:
            dictionary.save(self._folder)

    def save_elements(self, elements: Collection) -> None:
        """Keep the elements: as Parquet, or as safetensors where pyarrow is not installed."""
        self._elements = elements
        if self._folder is None:
            return
        name, other = ELEMENTS if _has_pyarrow() else reversed(ELEMENTS)
        elements.save(self._folder / name)
        (self._folder / other).unlink(missing_ok=True)

    def log(self, entry: Mapping[str, Any]) -> None:
        """Add one line to the log, on disk at once."""
        if self._folder is None:
            self._log.append(dict(entry))
            return
        with self.spared():
            _append(self._folder / LOG, json.dumps(dict(entry), default=float).encode() + b"\n")

    def decompose(self, images: Any, *, progress: Callable[[Progress], None] | None = None) -> Collection:
        """The elements of other images, found with this run's dictionary and settings."""
        from pictolex.decompose import Engine
        from pictolex.sources import open_source

        return Engine(self.dictionary, self.settings).run(open_source(images), progress=progress)

    def render(self, decomposition: Decomposition) -> Rendered:
        """An image rebuilt from its elements, with its layers."""
        from pictolex.decompose import Renderer

        return Renderer(self.dictionary, self.settings).render(decomposition)

    def _write_settings(self) -> None:
        if self._folder is not None:
            with atomic(self._folder / SETTINGS) as file:
                file.write(settings_to_toml(self._settings).encode())

    @property
    def _title(self) -> str:
        return "the run" if self._folder is None else f"the run {self._folder}"

    def __repr__(self) -> str:
        where = "in memory" if self._folder is None else repr(str(self._folder))
        try:
            return f"Run({where}, {self.dictionary!r})"
        except (InputError, FormatError):
            return f"Run({where}, no dictionary yet)"


class _LazyPainter:
    """Draws with the run's dictionary, which is read only when something is drawn."""

    def __init__(self, run: Run) -> None:
        self._run = run

    def image(self, decomposition: Decomposition) -> NDArray[np.float32]:
        """The rebuilt image."""
        return self._renderer().image(decomposition)

    def layers(self, decomposition: Decomposition) -> NDArray[np.float32]:
        """The layers."""
        return self._renderer().layers(decomposition)

    def _renderer(self) -> Renderer:
        from pictolex.decompose import Renderer

        return Renderer(self._run.dictionary, self._run.settings)


def is_run(folder: str | os.PathLike[str]) -> bool:
    """Whether a folder holds a run."""
    return (Path(folder) / SETTINGS).is_file()


def taken(folder: str | os.PathLike[str]) -> OutputError:
    """The error for a folder that a new run was to be made in."""
    return OutputError(f"{folder} already holds a run; go on with it (--resume), replace it (--overwrite), or choose another folder")


def remove_run(folder: str | os.PathLike[str]) -> None:
    """Remove a run, and nothing else that is in its folder."""
    path = Path(folder)
    read_settings(path / SETTINGS)
    try:
        for name in (HISTORY, CHECKPOINTS, "pictures"):
            shutil.rmtree(path / name, ignore_errors=True)
        # The settings go last: until then the folder is known as a run.
        for name in (*ELEMENTS, DICTIONARY, "dictionary.safetensors", "lineage.json", LOG, "report.html", SETTINGS):
            (path / name).unlink(missing_ok=True)
    except OSError as error:
        raise OutputError(f"{path}: the run could not be removed ({_reason(error)})") from None


def lineage_counts(lineage: Lineage) -> dict[str, int]:
    """How often what happened to the concepts."""
    counts = Counter(event.kind for event in lineage)
    return {**dict.fromkeys(CHANGES, 0), **counts}


def settings_to_toml(settings: Settings) -> str:
    """Settings as the text of a run's settings file; what is None is left out."""
    import tomli_w

    return tomli_w.dumps({"format": FORMAT, "version": VERSION, **settings.model_dump(mode="json", exclude_none=True)})


def read_settings(path: Path) -> Settings:
    """The settings in a run's settings file."""
    try:
        values = tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise InputError(f"{path}: could not be read ({_reason(error)})") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise FormatError(f"{path}: not a TOML file ({error}); restore it from a copy") from None
    found, version = values.pop("format", None), values.pop("version", None)
    if found != FORMAT:
        raise FormatError(f"{path}: not the settings of a run (format {found!r}, expected {FORMAT!r})")
    if version != VERSION:
        newer = isinstance(version, int) and version > VERSION
        fix = "a newer pictolex wrote it: use that one" if newer else "use the pictolex that wrote it"
        raise FormatError(f"{path}: version {version!r} of the format is not known, only {VERSION}; {fix}")
    try:
        return Settings.model_validate(values)
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        place = ".".join(str(part) for part in first["loc"])
        raise FormatError(f"{path}: the setting {place} is wrong ({first['msg']}); mend it there") from None


def _append(path: Path, line: bytes) -> None:
    """One more line at the end of a file, whole or not at all; what a killed process left of a line goes."""
    try:
        with path.open("ab", buffering=0) as file:
            end = path.read_bytes().rfind(b"\n") + 1
            if file.tell() > end:
                file.truncate(end)
            if file.write(line) < len(line):
                file.truncate(end)
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
    except OSError as error:
        raise OutputError(f"cannot write {path}: {_reason(error)}") from None


def _has_pyarrow() -> bool:
    from importlib.util import find_spec

    return find_spec("pyarrow") is not None


def _reason(error: OSError) -> str:
    return error.strerror or str(error)
