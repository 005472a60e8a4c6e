"""The bank: every concept drawn in every grid pose (rotation x scale x mirror), once, ready to be correlated.

Kernels of similar size stand on one shelf, so that a dictionary of large and small patches pays for each by its size.
Poses of one concept that look alike (a square turned by a quarter) are kept once.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field

import torch
from torch import Tensor
from torch.nn import functional

from pictolex.formation import Formation, Patches, sample

SUPPORT = 2e-3
"""Alpha below which a pixel of a kernel counts as empty."""
ALIKE = 1e-3
"""Relative squared difference under which two poses of one concept are the same kernel."""
SECTORS = 3
"""Runs of rotations that a group of many is cut into."""
FIDELITY = 0.998
"""Share of the kernels' energy that their shared low-rank basis keeps."""


@dataclass(frozen=True)
class Shelf:
    """Kernels of one size."""

    sheets: Tensor
    """(kernels, channels + 1, height, width)."""
    number: Tensor
    """(kernels): the number of each in the bank."""
    formation: Formation
    pool: int
    """How much the coarse level is pooled; sides are multiples of it."""
    _cache: dict[tuple[str, int], Tensor] = field(default_factory=dict, repr=False, compare=False)
    _stacks: dict[tuple[tuple[str, ...], int], Tensor] = field(default_factory=dict, repr=False, compare=False)
    _bases: dict[tuple[tuple[str, ...], int], tuple[Tensor, Tensor] | None] = field(default_factory=dict, repr=False, compare=False)

    @property
    def size(self) -> tuple[int, int]:
        """Height and width of the kernels."""
        return int(self.sheets.shape[-2]), int(self.sheets.shape[-1])

    def __len__(self) -> int:
        return int(self.sheets.shape[0])

    def feature(self, name: str, pool: int) -> Tensor:
        """The kernels that a form names, mean-pooled: (kernels, height / pool, width / pool)."""
        if (name, pool) not in self._cache:
            if pool == 1:
                for key, kernels in self.formation.features(self.sheets).items():
                    self._cache[key, 1] = kernels.contiguous()
            else:
                self._cache[name, pool] = functional.avg_pool2d(self.feature(name, 1).unsqueeze(1), pool).squeeze(1)
        return self._cache[name, pool]

    def stacked(self, names: tuple[str, ...], pool: int) -> Tensor:
        """The kernels of several names, innermost: (kernels, height / pool * width / pool * names)."""
        if (names, pool) not in self._stacks:
            self._stacks[names, pool] = torch.stack([self.feature(name, pool) for name in names], dim=-1).flatten(1)
        return self._stacks[names, pool]

    def basis(self, names: tuple[str, ...], pool: int) -> tuple[Tensor, Tensor] | None:
        """A shared basis (rank, names, h, w) and coefficients (kernels, rank) of the stacked kernels, where that saves work."""
        if (names, pool) not in self._bases:
            stacked = torch.stack([self.feature(name, pool) for name in names], dim=1)
            self._bases[names, pool] = _low_rank(stacked)
        return self._bases[names, pool]


def _low_rank(stacked: Tensor) -> tuple[Tensor, Tensor] | None:
    """The principal directions that keep `FIDELITY` of the energy; None where they are not at least twice fewer than the kernels."""
    kernels = stacked.shape[0]
    flat = stacked.flatten(1).double()
    if kernels < 32:
        return None
    if flat.shape[1] < kernels:
        power, directions = torch.linalg.eigh(flat.T @ flat)
        basis = directions.T
    else:
        power, left = torch.linalg.eigh(flat @ flat.T)
        basis = (left.T @ flat) / power.clamp_min(1e-12).sqrt()[:, None]
    power, basis = power.flip(0).clamp_min(0), basis.flip(0)
    kept = power.cumsum(0) / power.sum().clamp_min(1e-12)
    rank = int((kept < FIDELITY).sum()) + 1
    if rank * 2 > kernels:
        return None
    basis = basis[:rank]
    return basis.view(rank, *stacked.shape[1:]).float(), (flat @ basis.T).float()


@dataclass(frozen=True)
class Bank:
    """All kernels and what each of them is."""

    shelves: tuple[Shelf, ...]
    concept: Tensor
    """(kernels): position of the concept in the dictionary."""
    rotation: Tensor
    log_scale: Tensor
    mirror: Tensor
    centre: Tensor
    """(kernels, 2): x and y of the element's centre in the kernel."""
    group: Tensor
    """(kernels): kernels of one concept, scale and mirror, in order of rotation."""
    sector: Tensor
    """(kernels): each group cut into a few runs of rotations, so that a shape that nearly fits turned does not hide the right turn."""
    before: Tensor
    """(kernels): the neighbour at the next smaller rotation."""
    after: Tensor
    shelf: Tensor
    """(kernels): the shelf each stands on."""
    place: Tensor
    """(kernels): its position on that shelf."""
    turns: bool
    """Whether any kernel has a neighbour at another rotation."""
    alias: dict[str, str]
    """Kernels that are the same throughout (white shapes: Q = A) by the name that stands for them."""

    def __len__(self) -> int:
        return int(self.concept.shape[0])

    @property
    def groups(self) -> int:
        """Number of (concept, scale, mirror) groups."""
        return int(self.group.max()) + 1 if len(self) else 0

    def pose(self, kernel: Tensor, left: Tensor, top: Tensor) -> Tensor:
        """The pose (..., 5) of kernels whose windows have their top left corner at (left, top)."""
        centre = self.centre[kernel]
        x, y = left + centre[..., 0], top + centre[..., 1]
        return torch.stack([x, y, self.rotation[kernel], self.log_scale[kernel], self.mirror[kernel]], dim=-1)


def build_bank(patches: Patches, formation: Formation, rotations: int, scales: Sequence[float], mirror: bool = False) -> Bank:
    """Draw every concept in every pose of the grid."""
    device = patches.values.device
    angles = [2 * math.pi * r / rotations for r in range(rotations)]
    drawn: list[Tensor] = []
    rows: list[tuple[int, float, float, float, float, float, int]] = []
    group = 0
    for j in range(len(patches)):
        for scale in scales:
            for flip in (0.0, 1.0) if mirror else (0.0,):
                for sheet, row in _draw_group(patches, formation, j, angles, scale, flip):
                    drawn.append(sheet)
                    rows.append((*row, group))
                group += 1
    table = torch.tensor([r[1:6] for r in rows], dtype=torch.float32, device=device).reshape(-1, 5)
    groups = torch.tensor([r[6] for r in rows], device=device, dtype=torch.long)
    shelves, shelf, place = _shelve(drawn, formation, device)
    before, after = _ring(groups)
    concept = torch.tensor([r[0] for r in rows], device=device, dtype=torch.long)
    return Bank(
        shelves,
        concept,
        table[:, 0],
        table[:, 1],
        table[:, 2],
        table[:, 3:5],
        groups,
        _sectors(groups),
        before,
        after,
        shelf,
        place,
        bool((before != after).any()),
        _aliases(shelves),
    )


def _draw_group(
    patches: Patches, formation: Formation, concept: int, angles: Sequence[float], scale: float, flip: float
) -> list[tuple[Tensor, tuple[int, float, float, float, float, float]]]:
    """One concept at one scale in every rotation, trimmed to its support, without poses that look alike."""
    high, wide = (int(s) for s in patches.size[concept])
    reach = math.ceil(math.hypot(high, wide) * scale / 2) + 1 if len(angles) > 1 else math.ceil(max(high, wide) * scale / 2) + 1
    side = 2 * reach + 1
    device = patches.values.device
    # A patch of even width has its centre between two pixels: keep it there, so that unturned kernels are exact.
    centres = []
    for angle in angles:
        quarter = abs(math.sin(angle)) > 0.999
        across, down = (high, wide) if quarter else (wide, high)
        centres.append((reach + (0.5 if across % 2 else 0.0), reach + (0.5 if down % 2 else 0.0)))
    n = len(angles)
    pose = torch.zeros(n, 5, device=device)
    pose[:, :2] = torch.tensor(centres, device=device)
    pose[:, 2] = torch.tensor(angles, device=device)
    pose[:, 3] = math.log(scale)
    pose[:, 4] = flip
    which = torch.full((n,), concept, device=device)
    sheets = formation.sheet(sample(patches, which, pose, side, side))
    top, left, sheets = _trim(sheets)
    flat = sheets.flatten(1)
    power = flat.square().sum(1)
    distance = power[:, None] + power[None, :] - 2 * flat @ flat.T
    alike = (distance <= ALIKE * power[:, None].clamp_min(1e-9)) & (pose[:, None, :2] == pose[None, :, :2]).all(-1)
    first = alike.to(torch.float32).argmax(1).tolist()
    return [
        (sheets[i], (concept, angles[i], math.log(scale), flip, centres[i][0] - left, centres[i][1] - top))
        for i in range(n)
        if first[i] == i
    ]


def _trim(sheets: Tensor) -> tuple[int, int, Tensor]:
    """Cut away the borders that are empty in every rotation: top, left, and what is left (at least one pixel)."""
    full = (sheets.abs().amax((0, 1)) > SUPPORT).nonzero()
    if not len(full):
        return 0, 0, sheets[..., :1, :1]
    top, left = (int(v) for v in full.amin(0))
    bottom, right = (int(v) for v in full.amax(0))
    return top, left, sheets[..., top : bottom + 1, left : right + 1]


def _shelve(drawn: list[Tensor], formation: Formation, device: torch.device) -> tuple[tuple[Shelf, ...], Tensor, Tensor]:
    """Group kernels by size; each shelf is padded to its largest."""
    sides = [max(s.shape[-2:]) for s in drawn]
    order = sorted(range(len(drawn)), key=lambda k: (sides[k], k))
    shelves: list[Shelf] = []
    shelf = torch.zeros(len(drawn), dtype=torch.long, device=device)
    place = torch.zeros(len(drawn), dtype=torch.long, device=device)
    start = 0
    while start < len(order):
        smallest = max(sides[order[start]], 6)
        stop = start
        while stop < len(order) and sides[order[stop]] <= 1.5 * smallest + 1:
            stop += 1
        members = sorted(order[start:stop])
        high, wide = (max(drawn[k].shape[d] for k in members) for d in (-2, -1))
        pool = _pool(min(high, wide))
        high, wide = -(-high // pool) * pool, -(-wide // pool) * pool
        sheets = torch.stack([functional.pad(drawn[k], (0, wide - drawn[k].shape[-1], 0, high - drawn[k].shape[-2])) for k in members])
        number = torch.tensor(members, device=device)
        shelf[number] = len(shelves)
        place[number] = torch.arange(len(members), device=device)
        shelves.append(Shelf(sheets, number, formation, pool))
        start = stop
    return tuple(shelves), shelf, place


def _pool(side: int) -> int:
    """Pooling of the coarse level: thin strokes do not survive it, so small kernels are not pooled."""
    return 4 if side >= 48 else 2 if side >= 14 else 1


def _aliases(shelves: Sequence[Shelf]) -> dict[str, str]:
    """Names of kernels that equal those of an earlier name on every shelf."""
    if not shelves:
        return {}
    names = list(shelves[0].formation.features(shelves[0].sheets[:1]))
    names.sort(key=lambda n: (len(n), n))
    alias: dict[str, str] = {}
    for name in names:
        for earlier in names:
            if earlier == name:
                alias[name] = name
                break
            same = (torch.allclose(s.feature(name, 1), s.feature(earlier, 1), atol=1e-6) for s in shelves)
            if alias[earlier] == earlier and all(same):
                alias[name] = earlier
                break
    return alias


def _sectors(group: Tensor) -> Tensor:
    """Numbers that rise along the kernels: `SECTORS` for each group of many rotations, one for each group of few."""
    counts = torch.bincount(group) if len(group) else group
    start = counts.cumsum(0) - counts
    sectors = torch.where(counts >= 4 * SECTORS, SECTORS, 1)
    first = sectors.cumsum(0) - sectors
    place = torch.arange(len(group), device=group.device) - start[group]
    return first[group] + torch.div(place * sectors[group], counts[group].clamp_min(1), rounding_mode="floor")


def _ring(group: Tensor) -> tuple[Tensor, Tensor]:
    """For each kernel its neighbours in its group, closed to a ring."""
    before, after = torch.arange(len(group), device=group.device), torch.arange(len(group), device=group.device)
    for g in group.unique():
        members = (group == g).nonzero()[:, 0]
        before[members] = members.roll(1)
        after[members] = members.roll(-1)
    return before, after
