"""What correlations cost on this machine, measured once: decides between direct and FFT, and between single and half precision."""

from __future__ import annotations

import functools
import time
from collections.abc import Callable
from dataclasses import dataclass

import torch

from pictolex.search.correlate import combine, direct, fast_size


@dataclass(frozen=True)
class CostModel:
    """Seconds per multiply-add of a direct correlation, and per butterfly and per spectral product of one by FFT."""

    direct: float = 1.2e-11
    transform: float = 2.0e-10
    product: float = 4.0e-10
    half: bool = False
    """Whether products in half precision (bfloat16) are much faster here."""

    def choose(self, batch: int, pairs: int, kernels: int, kernel: tuple[int, int], image: tuple[int, int]) -> str:
        """The method expected to be faster."""
        down, right = image[0] - kernel[0] + 1, image[1] - kernel[1] + 1
        by_hand = self.direct * batch * kernels * pairs * kernel[0] * kernel[1] * down * right
        size = fast_size(image[0]) * fast_size(image[1])
        transforms = self.transform * (batch * pairs + kernels * pairs + batch * kernels) * size * max(1, size.bit_length())
        products = self.product * batch * kernels * pairs * size / 2
        return "direct" if by_hand <= transforms + products else "fft"


def calibrate(device: torch.device | str = "cpu") -> CostModel:
    """Measure this machine once (a fraction of a second)."""
    maps, small = torch.ones(4, 4, 64, 64, device=device), torch.ones(64, 4, 9, 9, device=device)
    seconds = _time(lambda: direct(maps, small), device)
    per_multiply = seconds / (4 * 64 * 4 * 81 * 56 * 56)
    size = 64 * 64
    per_butterfly = _time(lambda: torch.fft.rfft2(maps), device) / (16 * size * size.bit_length())
    a, b = torch.fft.rfft2(maps), torch.fft.rfft2(small, s=(64, 64))
    per_product = _time(lambda: torch.einsum("bmij,kmij->bkij", a, b), device) / (4 * 64 * 4 * size / 2)
    left, right = torch.ones(512, 256, device=device), torch.ones(256, 1024, device=device)
    whole = _time(lambda: combine(left, right.unsqueeze(0), False), device)
    half = _time(lambda: combine(left, right.unsqueeze(0), True), device)
    return CostModel(per_multiply, per_butterfly, per_product, half * 1.5 < whole)


@functools.cache
def calibrated(device: str) -> CostModel:
    """The cost model of this machine, measured once in a process."""
    return calibrate(device)


def _time(call: Callable[[], object], device: torch.device | str) -> float:
    best = float("inf")
    for _ in range(12):
        start = time.perf_counter()
        call()
        if torch.device(device).type == "cuda":
            torch.cuda.synchronize()
        best = min(best, time.perf_counter() - start)
    return best
