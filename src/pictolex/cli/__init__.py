"""The command line. Each command lives in a module of its own, imported when it is called: `--help` must be instant."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Sequence
from typing import TextIO

from cyclopts import App, CycloptsError, Parameter

from pictolex import __version__
from pictolex.errors import PictolexError

COMMANDS = {
    "learn": "Learn a dictionary of visual concepts from images.",
    "decompose": "Find the elements of new images with a fixed dictionary.",
    "evaluate": "Measure a dictionary on images: error, and agreement with the truth where it is known.",
    "info": "Say what is in a run or a folder of sprites.",
    "show": "Draw pictures of a run: its dictionary, and some images with their layers.",
    "render": "Draw images back from their elements.",
    "reproduce": "Run one experiment of the paper, and put its figures beside the published ones.",
    "ablate": "Measure what one choice does: its variants side by side, on the same images.",
    "bench": "Measure speed, memory and quality beside references.",
}


def build() -> App:
    """The program: names and help texts only, nothing of the commands themselves."""
    app = App(
        name="pictolex",
        help="Learn the visual vocabulary of a set of images, and rebuild each image from it.",
        version=f"pictolex {__version__}",
        help_format="plaintext",
        default_parameter=Parameter(negative=(), show_default=_default),
        exit_on_error=False,
        print_error=False,
        suppress_keyboard_interrupt=False,
        result_action="return_value",
    )
    for name, text in COMMANDS.items():
        app.command(f"pictolex.cli.{name}:command", name=name, help=text)
    data = App(name="data", help="Make image sets with known truth.")
    data.command("pictolex.cli.data:make", name="make", help="Write a synthetic set with truth to an .npz file.")
    app.command(data)
    return app


def _default(value: object) -> str | None:
    """How a default is shown in help texts: not at all for a flag or an absent value."""
    return None if value is None or isinstance(value, bool) else str(value)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the program and return its exit code: 0, 2 for what the user can mend, 130 when interrupted."""
    warnings.showwarning = _warn
    try:
        build()(sys.argv[1:] if arguments is None else list(arguments))
        sys.stdout.flush()
    except (PictolexError, CycloptsError, OSError) as error:
        if isinstance(error, BrokenPipeError):
            return _closed_pipe()
        return _fail(error)
    except MemoryError:
        return _fail(MemoryError("out of memory; lower --memory, use smaller images, or fewer concepts, rotations and scales"))
    except KeyboardInterrupt:
        print("pictolex: interrupted", file=sys.stderr)
        return 130
    return 0


def _fail(error: Exception) -> int:
    print(f"pictolex: {' '.join(str(error).split())}", file=sys.stderr)
    return 2


def _closed_pipe() -> int:
    """Whoever read our output has gone (`pictolex info run | head -1`): that is not an error."""
    sys.stdout = None  # keeps the interpreter from flushing into the closed pipe
    return 0


def _warn(
    message: Warning | str, category: type[Warning], filename: str, lineno: int, file: TextIO | None = None, line: str | None = None
) -> None:
    print(f"pictolex: warning: {' '.join(str(message).split())}", file=sys.stderr)
