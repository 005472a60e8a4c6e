"""Running the real program, in a process of its own, as a user does."""

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
from PIL import Image


def pictolex(*arguments: str | Path, cwd: Path | None = None, env: dict[str, str] | None = None) -> subprocess.CompletedProcess[str]:
    """What `pictolex ARGUMENTS` did: exit code, stdout, stderr. No terminal, no input."""
    return subprocess.run(
        [sys.executable, "-m", "pictolex", *map(str, arguments)],
        capture_output=True,
        text=True,
        stdin=subprocess.DEVNULL,
        cwd=cwd,
        env={**os.environ, "OMP_NUM_THREADS": "1", **(env or {})},
        timeout=300,
    )


def refused(result: subprocess.CompletedProcess[str]) -> str:
    """The one line of a refusal: exit code 2, nothing on stdout, no traceback."""
    assert result.returncode == 2, result
    assert result.stdout == ""
    lines = [line for line in result.stderr.splitlines() if line and not line.startswith("pictolex: warning:")]
    told = [line for line in lines if line.startswith("pictolex: ")]
    assert len(told) == 1 and lines[-1] == told[0], result.stderr
    assert "Traceback" not in result.stderr
    return told[0].removeprefix("pictolex: ")


def write_sprites(folder: Path) -> Path:
    """Two small sprites, a disc and a bar, drawn by Pillow."""
    folder.mkdir()
    disc = np.zeros((9, 9, 4), np.uint8)
    rows, columns = np.mgrid[:9, :9] - 4
    disc[np.hypot(rows, columns) <= 4] = (255, 60, 60, 255)
    bar = np.zeros((5, 11, 4), np.uint8)
    bar[1:4, 1:10] = (60, 120, 255, 255)
    Image.fromarray(disc).save(folder / "disc.png")
    Image.fromarray(bar).save(folder / "bar.png")
    return folder


def scene(sprites: Path, *places: tuple[str, int, int], size: tuple[int, int] = (40, 40)) -> Image.Image:
    """An RGB image with sprites pasted at (left, top) on black, the last in front."""
    image = Image.new("RGB", size)
    for name, left, top in places:
        sprite = Image.open(sprites / f"{name}.png")
        image.paste(sprite, (left, top), sprite)
    return image
