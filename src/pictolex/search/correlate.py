"""Correlating image maps with kernels over every shift: directly or by FFT, whichever a calibrated cost model expects to be faster."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn import functional

from pictolex.formation import Form
from pictolex.search.bank import Shelf


@dataclass(frozen=True)
class Plan:
    """The (map, kernel) pairs of several forms, ready to be correlated."""

    maps: Tensor
    """(batch, pairs, height, width)."""
    names: tuple[str, ...]
    """The kernel of each pair."""
    owner: tuple[int, ...]
    """The form each pair belongs to."""
    forms: int
    gains: int
    """How many of the forms, the first ones, belong to the gain; the others to the inner product with the image."""

    def blocks(self) -> list[tuple[list[int], list[list[int]], tuple[str, ...]]]:
        """Forms that use the same kernels, together: (forms, their pairs, kernels)."""
        by_kernels: dict[tuple[str, ...], tuple[list[int], list[list[int]]]] = {}
        for form in range(self.forms):
            pairs = [i for i, owner in enumerate(self.owner) if owner == form]
            if pairs:
                key = tuple(self.names[i] for i in pairs)
                members, lists = by_kernels.setdefault(key, ([], []))
                members.append(form)
                lists.append(pairs)
        return [(members, lists, key) for key, (members, lists) in by_kernels.items()]

    def pairs(self, form: int) -> slice:
        """The pairs of one form; they stand together."""
        first = next((i for i, owner in enumerate(self.owner) if owner == form), 0)
        return slice(first, first + sum(owner == form for owner in self.owner))


def plan(gains: Sequence[Form], inners: Sequence[Form], alias: Mapping[str, str]) -> Plan:
    """Collect the pairs of all forms: kernels that are the same share a map, and maps that are zero everywhere are left out."""
    names, owner, maps = [], [], []
    for number, form in enumerate([*gains, *inners]):
        merged: dict[str, Tensor] = {}
        for name, image in form.items():
            known = alias.get(name, name)
            merged[known] = merged[known] + image if known in merged else image
        for name in sorted(merged):
            names.append(name)
            owner.append(number)
            maps.append(merged[name])
    stacked = torch.stack(torch.broadcast_tensors(*maps), dim=1)
    used = (stacked.abs().amax((0, 2, 3)) > 0).tolist()
    kept = [i for i, u in enumerate(used) if u] or [0]
    if len(kept) < len(names):
        stacked = stacked[:, kept]
    return Plan(stacked, tuple(names[i] for i in kept), tuple(owner[i] for i in kept), len(gains) + len(inners), len(gains))


def pooled(maps: Tensor, pool: int, height: int, width: int) -> Tensor:
    """Maps mean-pooled and padded with zeros, so that every shift of a kernel that touches the image has a window."""
    high, wide = maps.shape[-2:]
    if pool > 1:
        maps = functional.avg_pool2d(functional.pad(maps, (0, -wide % pool, 0, -high % pool)), pool)
    across, down = margin(width, pool), margin(height, pool)
    return functional.pad(maps, (across, across, down, down))


def margin(side: int, pool: int) -> int:
    """Pooled pixels of padding for a kernel of this side."""
    return max(1, side // pool - 1)


def smoothed(maps: Tensor, pool: int, edge: int) -> Tensor:
    """Maps (batch, height + 2 edge, width + 2 edge, pairs), each pixel the mean of the `pool` x `pool` block that starts there.

    A kernel pooled alike can then be held against any shift, not only multiples of `pool`.
    """
    padded = functional.pad(maps, (edge, edge + pool - 1, edge, edge + pool - 1))
    if pool > 1:
        padded = functional.avg_pool2d(padded, pool, stride=1)
    return padded.permute(0, 2, 3, 1).contiguous()


def correlate(request: Plan, padded: Tensor, shelf: Shelf, kernels: slice, pool: int, method: str) -> Tensor:
    """The correlations (forms, batch, kernels, shifts down, shifts right) of maps that `pooled` has padded."""
    batch = padded.shape[0]
    high, wide = shelf.size[0] // pool, shelf.size[1] // pool
    down, right = padded.shape[-2] - high + 1, padded.shape[-1] - wide + 1
    blocks = request.blocks()
    count = len(range(*kernels.indices(len(shelf))))
    covered = sum(len(members) for members, _, _ in blocks)
    total: Tensor | None = None
    if covered < request.forms or len(blocks) > 1:
        total = torch.zeros(request.forms, batch, count, down, right, device=padded.device)
    for members, pairs, names in blocks:
        basis = shelf.basis(names, pool) if method == "shared" else None
        weights = basis[0] if basis else torch.stack([shelf.feature(name, pool)[kernels] for name in names], dim=1)
        maps = torch.stack([padded[:, p] for p in pairs], dim=0).flatten(0, 1) if len(pairs) > 1 else padded[:, pairs[0]]
        out = _METHODS[method](maps, weights * pool * pool)
        if basis is not None:
            out = functional.conv2d(out, basis[1][kernels][:, :, None, None])
        out = out.view(len(members), batch, count, down, right)
        if total is None:
            return out
        total[members] = out
    return total if total is not None else torch.zeros(request.forms, batch, count, down, right, device=padded.device)


def direct(maps: Tensor, weights: Tensor) -> Tensor:
    """The library's convolution."""
    return functional.conv2d(maps, weights)


def fft(maps: Tensor, weights: Tensor) -> Tensor:
    """By Fourier transforms; equal to `direct` within rounding."""
    high, wide = maps.shape[-2:]
    size = (_fast(high), _fast(wide))
    spectrum = torch.fft.rfft2(maps, s=size)
    kernel = torch.fft.rfft2(weights, s=size).conj()
    product = torch.einsum("bmij,kmij->bkij", spectrum, kernel)
    shifts: Tensor = torch.fft.irfft2(product, s=size)
    return shifts[..., : high - weights.shape[-2] + 1, : wide - weights.shape[-1] + 1].contiguous()


def _fast(n: int) -> int:
    """The next size whose prime factors are 2, 3 and 5."""
    while True:
        rest = n
        for prime in (2, 3, 5):
            while rest % prime == 0:
                rest //= prime
        if rest == 1:
            return n
        n += 1


_METHODS = {"direct": direct, "shared": direct, "fft": fft}


@dataclass(frozen=True)
class CostModel:
    """Seconds per multiply-add of a direct correlation, and per butterfly and per spectral product of one by FFT."""

    direct: float = 1.2e-11
    transform: float = 2.0e-10
    product: float = 4.0e-10

    def choose(self, batch: int, pairs: int, kernels: int, kernel: tuple[int, int], image: tuple[int, int]) -> str:
        """The method expected to be faster."""
        down, right = image[0] - kernel[0] + 1, image[1] - kernel[1] + 1
        by_hand = self.direct * batch * kernels * pairs * kernel[0] * kernel[1] * down * right
        size = _fast(image[0]) * _fast(image[1])
        transforms = self.transform * (batch * pairs + kernels * pairs + batch * kernels) * size * max(1, size.bit_length())
        products = self.product * batch * kernels * pairs * size / 2
        return "direct" if by_hand <= transforms + products else "fft"


def calibrate(device: torch.device | str = "cpu") -> CostModel:
    """Measure this machine once (a fraction of a second)."""
    torch.manual_seed(0)
    maps, small = torch.randn(4, 4, 64, 64, device=device), torch.randn(64, 4, 9, 9, device=device)
    seconds = _time(lambda: direct(maps, small), device)
    per_multiply = seconds / (4 * 64 * 4 * 81 * 56 * 56)
    size = 64 * 64
    per_butterfly = _time(lambda: torch.fft.rfft2(maps), device) / (16 * size * size.bit_length())
    a, b = torch.fft.rfft2(maps), torch.fft.rfft2(small, s=(64, 64))
    per_product = _time(lambda: torch.einsum("bmij,kmij->bkij", a, b), device) / (4 * 64 * 4 * size / 2)
    return CostModel(per_multiply, per_butterfly, per_product)


def _time(call: object, device: torch.device | str) -> float:
    best = float("inf")
    for _ in range(4):
        start = time.perf_counter()
        call()  # type: ignore[operator]
        if torch.device(device).type == "cuda":
            torch.cuda.synchronize()
        best = min(best, time.perf_counter() - start)
    return best
