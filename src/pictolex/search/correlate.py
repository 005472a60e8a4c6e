"""Correlating image maps with kernels over every shift: directly, by FFT, or through a basis that the kernels share."""

from __future__ import annotations

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


@dataclass(frozen=True)
class Box:
    """Part of an image: top, left, bottom, right."""

    top: int
    left: int
    bottom: int
    right: int


def where_wrong(error: Tensor) -> Box:
    """The smallest box outside of which no image (batch, height, width) has an error: no element can gain there."""
    wrong = error.amax(0) > 0
    rows, columns = wrong.any(1).nonzero()[:, 0], wrong.any(0).nonzero()[:, 0]
    if not len(rows):
        return Box(0, 0, 1, 1)
    return Box(int(rows[0]), int(columns[0]), int(rows[-1]) + 1, int(columns[-1]) + 1)


def pooled(maps: Tensor, pool: int, size: tuple[int, int], box: Box) -> tuple[Tensor, tuple[int, int]]:
    """Maps mean-pooled, just as far around `box` that every shift of a kernel that touches it has a window.

    Zeros stand outside of the image. Also the row and column of the image that the first window starts at.
    """
    top, left = (_down(edge - side + pool, pool) for edge, side in ((box.top, size[0]), (box.left, size[1])))
    bottom, right = (-_down(-(edge + side - pool), pool) for edge, side in ((box.bottom, size[0]), (box.right, size[1])))
    high, wide = maps.shape[-2:]
    inside = maps[..., max(0, top) : min(high, bottom), max(0, left) : min(wide, right)]
    padded = functional.pad(inside, (max(0, -left), max(0, right - wide), max(0, -top), max(0, bottom - high)))
    return (functional.avg_pool2d(padded, pool) if pool > 1 else padded), (top, left)


def _down(value: int, pool: int) -> int:
    return value // pool * pool


def phased(maps: Tensor, pool: int, edge: int) -> Tensor:
    """Maps padded by `edge`, each pixel the mean of the `pool` x `pool` block that starts there, columns sorted by their phase.

    (batch, rows, pool, columns / pool, pairs): a kernel pooled alike can be held against any shift, not only multiples of `pool`,
    and the pixels of one row that it meets stand side by side.
    """
    wide = maps.shape[-1]
    padded = functional.pad(maps, (edge, edge + pool - 1 + -wide % pool, edge, edge + pool - 1))
    if pool > 1:
        padded = functional.avg_pool2d(padded, pool, stride=1)
    batch, pairs, rows, columns = padded.shape
    return padded.view(batch, pairs, rows, columns // pool, pool).permute(0, 2, 4, 3, 1).contiguous()


def lines(maps: Tensor, wide: int) -> Tensor:
    """Every run of `wide` pixels of maps (..., pairs) as one row, so that a window is copied in a few pieces: rows overlap in memory."""
    flat = maps.reshape(-1, maps.shape[-1]).contiguous()
    pixels, depth = flat.shape
    return flat.as_strided((pixels - wide + 1, wide * depth), (depth, 1))


def correlate(request: Plan, padded: Tensor, shelf: Shelf, kernels: slice, pool: int, method: str, half: bool) -> Tensor:
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
            out = combine(basis[1][kernels], out.flatten(2), half).float()
        out = out.view(len(members), batch, count, down, right)
        if total is None:
            return out
        total[members] = out
    return total if total is not None else torch.zeros(request.forms, batch, count, down, right, device=padded.device)


def combine(coefficients: Tensor, basis: Tensor, half: bool) -> Tensor:
    """Kernels from their shared basis, as a product; half precision (bfloat16) is enough to look for peaks, which are then refined."""
    return coefficients.bfloat16() @ basis.bfloat16() if half else coefficients @ basis


def direct(maps: Tensor, weights: Tensor) -> Tensor:
    """The library's convolution."""
    return functional.conv2d(maps, weights)


def fft(maps: Tensor, weights: Tensor) -> Tensor:
    """By Fourier transforms; equal to `direct` within rounding."""
    high, wide = maps.shape[-2:]
    size = (fast_size(high), fast_size(wide))
    spectrum = torch.fft.rfft2(maps, s=size)
    kernel = torch.fft.rfft2(weights, s=size).conj()
    product = torch.einsum("bmij,kmij->bkij", spectrum, kernel)
    shifts: Tensor = torch.fft.irfft2(product, s=size)
    return shifts[..., : high - weights.shape[-2] + 1, : wide - weights.shape[-1] + 1].contiguous()


def fast_size(n: int) -> int:
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
