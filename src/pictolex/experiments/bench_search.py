"""One search, coarse to fine: beside the exhaustive reference, and beside the best that plain torch offers.

Plain torch is one `conv2d`, or one product of Fourier transforms (those of the kernels made beforehand), of all kernels padded
to one size with the same maps, and the maximum of the result.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn import functional

from pictolex.decompose import Stage
from pictolex.experiments.bench_base import Order, Row, times_faster
from pictolex.experiments.bench_contexts import among_true, behind_found, searcher
from pictolex.experiments.bench_settings import NAMES, case, lacking
from pictolex.experiments.bench_timing import milliseconds, one_thread
from pictolex.search import Query, calibrate
from pictolex.search.correlate import plan

IMAGES = {"cpu": 32, "cuda": 256}
SLOW_IMAGES = {"cpu": 2, "cuda": 16}


def measure(order: Order) -> Iterator[Row]:
    """Three rows a setting; the references on fewer images."""
    with one_thread():
        for device in order.devices:
            for name in NAMES:
                yield from _setting(order, device, name)


def _setting(order: Order, device: str, name: str) -> Iterator[Row]:
    kind = torch.device(device).type
    count, few = order.count(IMAGES[kind]), order.count(SLOW_IMAGES[kind])
    found = case(name, count)
    if found is None:
        order.say(lacking(name))
        return
    stage = found.stage(device)
    query = among_true(found, stage, device) or behind_found(found, stage, device, "coarse")
    order.say(f"search: {name}, {len(stage.bank)} kernels, {count} images on {device}; {few} for each reference")
    coarse = searcher(stage, "coarse")
    coarse.best(query.take(slice(0, 2 if kind == "cpu" else count)), 1)
    value = milliseconds(lambda: coarse.best(query, 1), count, device)
    small = query.take(slice(0, few))
    exhaustive = searcher(stage, "exhaustive", calibrate(device))
    plain = Plain.of(stage, small)
    others: dict[str, Callable[[], object]] = {
        "exhaustive": lambda: exhaustive.best(small, 1),
        "conv2d": plain.by_convolution,
        "fft": plain.by_transform,
    }
    for other, work in others.items():
        work()
        slow = milliseconds(work, few, device, repeats=2)
        yield Row(f"search-{other}", name, device, value, "ms", "lower", slow, times_faster(value, slow))


@dataclass(frozen=True)
class Plain:
    """The same search by calls that anyone would write: maps and kernels of each group of forms that share kernels."""

    stage: Stage
    groups: tuple[tuple[list[int], Tensor, Tensor, Tensor], ...]
    """(forms, maps (forms * batch, pairs, h, w) padded for every shift, kernels (kernels, pairs, h, w), their transforms)."""
    forms: int

    @staticmethod
    def of(stage: Stage, query: Query) -> Plain:
        """The maps and kernels of a search."""
        forms = stage.colour.split(stage.formation.gain(query.image, query.weight, query.context))
        request = plan(forms, [], stage.bank.alias)
        high, wide = (max(shelf.size[d] for shelf in stage.bank.shelves) for d in (0, 1))
        groups = []
        for members, pairs, names in request.blocks():
            maps = torch.cat([request.maps[:, p] for p in pairs])
            maps = functional.pad(maps, (wide - 1, wide - 1, high - 1, high - 1))
            parts = []
            for shelf in stage.bank.shelves:
                kernels = torch.stack([shelf.feature(name, 1) for name in names], dim=1)
                parts.append(functional.pad(kernels, (0, wide - shelf.size[1], 0, high - shelf.size[0])))
            kernels = torch.cat(parts)
            groups.append((members, maps, kernels, torch.fft.rfft2(kernels, s=_size(maps)).conj()))
        return Plain(stage, tuple(groups), request.forms)

    def by_convolution(self) -> Tensor:
        """The best gain of each image."""
        return self._best([functional.conv2d(maps, kernels) for _, maps, kernels, _ in self.groups])

    def by_transform(self) -> Tensor:
        """The same through the frequency domain."""
        outputs = []
        for _, maps, kernels, spectra in self.groups:
            down, right = (maps.shape[d] - kernels.shape[d] + 1 for d in (-2, -1))
            product = torch.einsum("bmij,kmij->bkij", torch.fft.rfft2(maps, s=_size(maps)), spectra)
            outputs.append(torch.fft.irfft2(product, s=_size(maps))[..., :down, :right])
        return self._best(outputs)

    def _best(self, outputs: list[Tensor]) -> Tensor:
        """Forms to gains (in every colour) to their maximum over colours, kernels and shifts."""
        members = self.groups[0][0]
        if len(outputs) == 1 and len(members) == self.forms:
            gains = outputs[0].unflatten(0, (self.forms, -1))
        else:
            batch = outputs[0].shape[0] // len(members)
            gains = outputs[0].new_zeros(self.forms, batch, *outputs[0].shape[1:])
            for (forms, *_), output in zip(self.groups, outputs, strict=True):
                gains[forms] = output.unflatten(0, (len(forms), -1))
        return self.stage.colour.evaluate(gains, None)[0].amax((0, 2, 3, 4))


def _size(maps: Tensor) -> tuple[int, int]:
    """The maps' size, rounded up to sides that transform fast."""
    high, wide = (-(-int(side) // 16) * 16 for side in maps.shape[-2:])
    return high, wide
