"""Image files: a folder, a glob, one file; the frames of animated ones are images of their own."""

from __future__ import annotations

import glob
import re
import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pictolex.errors import InputError
from pictolex.sources.base import Skip, SkippedImagesWarning, SourceBase
from pictolex.sources.decode import SUFFIXES, Header, decode, open_file, pillow_errors, read_header
from pictolex.sources.image import Image

_TOLD = 3


@dataclass(frozen=True)
class _Frame:
    """One image: frame `index` of a file."""

    path: Path
    index: int
    header: Header


class FolderSource(SourceBase):
    """Files in natural order, decoded when read. Sizes may differ; grey ones become RGB where others are colour."""

    def __init__(self, paths: Sequence[Path], *, title: str, root: Path | None = None) -> None:
        frames: list[_Frame] = []
        names: list[str] = []
        skipped: list[Skip] = []
        for path in paths:
            name = _relative(path, root)
            try:
                header = read_header(path, name)
            except InputError as error:
                skipped.append(Skip(name, str(error).removeprefix(f"{name}: ")))
                continue
            frames.extend(_Frame(path, i, header) for i in range(header.frames))
            names.extend([name] if header.frames == 1 else [f"{name}#{i}" for i in range(header.frames)])
        if not frames and len(skipped) == 1:
            where = "" if skipped[0].name == title else f"{title}: no usable image in it; "
            raise InputError(f"{where}{skipped[0].name}: {skipped[0].reason}")
        if not frames:
            told = "; ".join(f"{s.name}: {s.reason}" for s in skipped[:_TOLD])
            raise InputError(f"{title}: none of its {len(skipped)} image files can be read ({told})")
        if skipped:
            told = "; ".join(f"{s.name}: {s.reason}" for s in skipped[:_TOLD])
            more = f"; and {len(skipped) - _TOLD} more" if len(skipped) > _TOLD else ""
            told = f"{title}: {len(skipped)} of {len(paths)} files left out ({told}{more})"
            warnings.warn(told, SkippedImagesWarning, stacklevel=3)
        self.skipped = tuple(skipped)
        self._frames = tuple(frames)
        self._names = tuple(names)
        self._title = title
        self._channel_count = max(f.header.channels for f in frames)
        self._kept: dict[str, tuple[Path, Any]] = {}

    def __len__(self) -> int:
        return len(self._frames)

    @property
    def names(self) -> Sequence[str]:
        """One name an image."""
        return self._names

    @property
    def paths(self) -> tuple[Path, ...]:
        """The file of each image."""
        return tuple(f.path for f in self._frames)

    def shape(self, i: int) -> tuple[int, int, int]:
        """Height, width, channels of image i."""
        header = self._frames[self.check_index(i)].header
        return header.height, header.width, self._channel_count

    def read(self, i: int) -> Image:
        """Image i."""
        i = self.check_index(i)
        frame, name = self._frames[i], self._names[i]
        with pillow_errors(name):
            image = self._read_frame(frame, name)
        size = (frame.header.height, frame.header.width)
        if (image.height, image.width) != size:
            raise InputError(f"{name}: now {image.height}x{image.width}, was {size[0]}x{size[1]}; it changed meanwhile, start anew")
        return image

    def _read_frame(self, frame: _Frame, name: str) -> Image:
        """One frame; an animation goes on from where the last read stopped: from its start each time would be quadratic."""
        if frame.header.frames == 1:
            return decode(open_file(frame.path), name, self._channel_count)
        kept = self._kept.pop("file", None)
        opened = kept[1] if kept is not None and kept[0] == frame.path else open_file(frame.path)
        opened.seek(frame.index)
        image = decode(opened, name, self._channel_count)
        self._kept["file"] = (frame.path, opened)
        return image

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_kept": {}}

    def describe(self) -> str:
        """One line for people."""
        shapes = {(f.header.height, f.header.width) for f in self._frames}
        size = "{}x{}".format(*next(iter(shapes))) if len(shapes) == 1 else f"{len(shapes)} sizes"
        left_out = f", {len(self.skipped)} files left out" if self.skipped else ""
        return f"{self._title}: {len(self)} images of {size}, {'grey' if self._channel_count == 1 else 'RGB'}{left_out}"


def open_folder(folder: Path) -> FolderSource:
    """The image files right in a folder (not in folders below it), hidden ones left alone."""
    try:
        entries = sorted((p for p in folder.iterdir() if not p.name.startswith(".")), key=natural_key)
    except PermissionError:
        raise InputError(f"{folder}: may not be read; change its permissions") from None
    paths = [p for p in entries if p.suffix.lower() in SUFFIXES and not p.is_dir()]
    if paths:
        return FolderSource(paths, title=str(folder), root=folder)
    if not entries:
        raise InputError(f"{folder}: an empty folder; put images in it or name another one")
    below = next((p for p in folder.glob("*/*") if p.suffix.lower() in SUFFIXES), None)
    if below is not None:
        raise InputError(f"{folder}: no images right in it, but in folders below: write '{folder}/**/*{below.suffix}'")
    raise InputError(f"{folder}: no images among its {len(entries)} entries; expected files such as .png, .jpg, .gif, .tif, .webp")


def open_glob(pattern: str) -> FolderSource:
    """The image files that a pattern (with * ? [ ] **) matches."""
    found = sorted((Path(p) for p in glob.glob(pattern, recursive=True)), key=natural_key)
    files = [p for p in found if p.is_file()]
    paths = [p for p in files if p.suffix.lower() in SUFFIXES]
    if not paths:
        reason = f"matches {len(files)} files, none an image" if files else "matches no file"
        raise InputError(f"{pattern}: {reason}; check the pattern")
    return FolderSource(paths, title=pattern)


def open_image(path: Path) -> FolderSource:
    """One file, of one frame or many."""
    return FolderSource([path], title=str(path))


def natural_key(path: Path) -> list[tuple[int, int, str]]:
    """`image2` before `image10`."""
    parts = re.split(r"(\d+)", str(path).lower())
    return [(1, int(p), "") if p.isdecimal() else (0, 0, p) for p in parts]


def _relative(path: Path, root: Path | None) -> str:
    """A name short enough to read, long enough to find the file."""
    return str(path.relative_to(root)) if root is not None else str(path)
