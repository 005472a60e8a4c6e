"""Random access to what can only be read forward: rows of one size, kept on disk as they go by."""

from __future__ import annotations

import tempfile
import threading
import weakref
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from typing import IO, Any

from pictolex.errors import InputError


class Spool:
    """Rows (of `size` bytes) from a stream of blocks (of whole rows), which is read as far as was asked for, and once.

    What went by lies in a temporary file without a name, which the system removes with the process: memory does not grow.
    """

    def __init__(self, blocks: Callable[[], Iterator[bytes]], size: int, title: str) -> None:
        self._blocks, self._size, self._title = blocks, size, title
        self._lock = threading.Lock()
        self._file = _nameless(self)
        self._coming = blocks()
        self._kept = 0
        self._failed: str | None = None

    def __reduce__(self) -> tuple[Any, ...]:
        return Spool, (self._blocks, self._size, self._title)

    def row(self, i: int) -> bytes:
        """Row i; where the stream ends or breaks before it, an error that says so, each time it is asked for."""
        with self._lock:
            if i >= self._kept:
                self._read_to(i)
            self._file.seek(i * self._size)
            return self._file.read(self._size)

    def _read_to(self, i: int) -> None:
        """Keep rows until row i is among them. What is interrupted begins anew when it is asked for again."""
        if self._failed is not None:
            raise InputError(self._failed)
        try:
            self._file.seek(self._kept * self._size)
            while i >= self._kept:
                self._keep(next(self._coming, None))
        except InputError as error:
            self._failed = str(error)
            raise
        except OSError as error:
            self._failed = (
                f"{self._title}: its unpacked images need more room than {tempfile.gettempdir()} has ({error.strerror or error}); "
                f"set TMPDIR to a larger disk, or read a part, e.g. {self._title}[:{max(1, self._kept)}]"
            )
            raise InputError(self._failed) from None
        except BaseException:
            self._coming, self._kept = self._blocks(), 0
            raise

    def _keep(self, block: bytes | None) -> None:
        """Add a block."""
        if block is None:
            raise InputError(
                f"{self._title}: ends after {self._kept} images, before it should; fetch it again, or read {self._title}[:{self._kept}]"
            )
        if self._file.write(block) < len(block):
            raise OSError("it is full")
        self._kept += len(block) // self._size


def _nameless(owner: object) -> IO[bytes]:
    """A temporary file that lives as long as its owner."""
    with ExitStack() as stack:
        file = stack.enter_context(tempfile.TemporaryFile(buffering=0, prefix="pictolex-"))
        weakref.finalize(owner, stack.pop_all().close)
    return file
