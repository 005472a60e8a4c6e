"""Time per image: of the processor on one core, or on a GPU by the clock with everything finished."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import torch


@contextmanager
def one_thread() -> Iterator[None]:
    """torch on one thread inside, on as many as before afterwards; no gradients."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        with torch.inference_mode():
            yield
    finally:
        torch.set_num_threads(before)


def milliseconds(work: Callable[[], object], images: int, device: str, repeats: int = 3) -> float:
    """The least time per image over some repeats. The caller has warmed up."""
    best = float("inf")
    for _ in range(repeats):
        start = _now(device)
        work()
        best = min(best, _now(device) - start)
    return 1000 * best / images


def _now(device: str) -> float:
    """Seconds of this process' CPU time, which other programs do not slow; on a GPU, of the clock."""
    if torch.device(device).type != "cuda":
        return time.process_time()
    torch.cuda.synchronize(device)
    return time.perf_counter()
