"""Work on several batches at once in threads, each with one thread of its own for its tensors. Results come in order."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from typing import TypeVar

import torch

A = TypeVar("A")
B = TypeVar("B")


@contextmanager
def one_thread() -> Iterator[None]:
    """Tensors computed by one thread each: small operations lose more by sharing than they gain."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(before)


def side_by_side(work: Callable[[A], B], items: Iterable[A], workers: int) -> Iterator[tuple[A, B]]:
    """Each item with what `work` made of it, in order; at most a few items are held at a time."""
    if workers <= 1:
        with one_thread():
            for item in items:
                yield item, work(item)
        return
    waiting: deque[tuple[A, Future[B]]] = deque()
    with one_thread(), ThreadPoolExecutor(workers, initializer=torch.set_num_threads, initargs=(1,)) as pool:
        try:
            for item in items:
                waiting.append((item, pool.submit(work, item)))
                if len(waiting) > workers:
                    first, future = waiting.popleft()
                    yield first, future.result()
            while waiting:
                first, future = waiting.popleft()
                yield first, future.result()
        finally:
            for _, future in waiting:
                future.cancel()
