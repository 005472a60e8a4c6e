"""The most memory that decomposing a folder of many images takes, by the real program in a process of its own."""

from __future__ import annotations

import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from pictolex.errors import PictolexError
from pictolex.experiments.bench_base import Order, Row

IMAGES, SIDE = 10_000, 128
FLOOR = 2.0
DISC, BAR = 12, (7, 25)

# A process inherits the peak of the one it was forked from; this small one in between has none to speak of.
_WATCH = """
import resource, subprocess, sys
code = subprocess.call(sys.argv[1:], stdout=sys.stderr)
print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss * (1 if sys.platform == "darwin" else 1024))
sys.exit(code)
"""


def measure(order: Order) -> Iterator[Row]:
    """Peak of resident memory."""
    if sys.platform == "win32":
        order.say("memory is skipped: this system does not tell the peak of a process")
        return
    count = order.count(IMAGES)
    with tempfile.TemporaryDirectory(prefix="pictolex-bench-") as folder:
        order.say(f"memory: writing {count} images of {SIDE}x{SIDE}")
        _run([sys.executable, "-c", f"from {__name__} import write_images; write_images({folder!r}, {count})"])
        order.say(f"memory: decomposing {count} images (about 10 minutes for {IMAGES} on one core)")
        sprites, images, out = (str(Path(folder, name)) for name in ("sprites", "images", "elements.safetensors"))
        command = ["-m", "pictolex", "decompose", sprites, images, "-o", out, "--device", order.fastest]
        peak = int(_run([sys.executable, "-c", _WATCH, sys.executable, *command]).split()[-1])
    yield Row("memory", f"{count} images", order.fastest, peak / 2**30, "GiB", "lower", floor=FLOOR)


def _run(command: list[str]) -> str:
    """What a program printed; where it failed, its last line is the error."""
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode:
        raise PictolexError(f"the memory benchmark failed: {(done.stderr.strip().splitlines() or ['no reason given'])[-1]}")
    return done.stdout


def write_images(folder: str, count: int) -> None:
    """`images/`: PNG files with two or three of the sprites in `sprites/` on black, grey."""
    from PIL import Image

    sprites, images = Path(folder, "sprites"), Path(folder, "images")
    sprites.mkdir()
    images.mkdir()
    rows, columns = np.mgrid[: 2 * DISC + 1, : 2 * DISC + 1] - DISC
    patches = [(np.hypot(rows, columns) <= DISC).astype(np.uint8) * 255, np.full(BAR, 255, np.uint8)]
    for name, patch in zip(("disc", "bar"), patches, strict=True):
        Image.merge("RGBA", [Image.fromarray(np.full_like(patch, 255))] * 3 + [Image.fromarray(patch)]).save(sprites / f"{name}.png")
    rng = np.random.default_rng(0)
    for i in range(count):
        canvas = np.zeros((SIDE, SIDE), np.uint8)
        for _ in range(int(rng.integers(2, 4))):
            patch = patches[int(rng.integers(len(patches)))]
            y, x = (int(rng.integers(SIDE - side + 1)) for side in patch.shape)
            np.maximum(window := canvas[y : y + patch.shape[0], x : x + patch.shape[1]], patch, out=window)
        Image.fromarray(canvas).save(images / f"{i:05d}.png", compress_level=1)
