"""Fine search: each hit held against its neighbours in shift and rotation, with kernels at one pooling."""

from __future__ import annotations

import torch

from pictolex.search.bank import Bank, Shelf
from pictolex.search.correlate import Plan, lines, phased
from pictolex.search.hits import Hits
from pictolex.search.objective import Sums
from pictolex.search.score import Scorer


def refine(
    scorer: Scorer, bank: Bank, shelf: Shelf, request: Plan, totals: Sums, hits: Hits, *, pool: int, step: int, working: int
) -> Hits:
    """Each hit's best among shifts `step` pixels away (0: only where it is) and the rotations beside its own."""
    batch, count = hits.kernel.shape
    device = hits.kernel.device
    high, wide = shelf.size[0] // pool, shelf.size[1] // pool
    turns = [hits.kernel, bank.before[hits.kernel], bank.after[hits.kernel]] if step and bank.turns else [hits.kernel]
    kernels = torch.stack(turns, dim=-1)
    reach = torch.tensor([0, -step, step] if step else [0], device=device)
    move_y, move_x = (m.flatten() for m in torch.meshgrid(reach, reach, indexing="ij"))
    edge = -(-(max(shelf.size) + 2 * max(step, 1)) // pool) * pool
    maps = phased(request.maps, pool, edge)
    tall, across = maps.shape[1], maps.shape[2] * maps.shape[3]
    rows = torch.arange(high, device=device) * (pool * across)
    top = (hits.top.unsqueeze(-1) + move_y + edge).clamp(0, tall - shelf.size[0])
    left = (hits.left.unsqueeze(-1) + move_x + edge).clamp(0, across - shelf.size[1])
    item = torch.arange(batch, device=device)[:, None, None]
    corner = (item * tall + top) * across + left % pool * maps.shape[3] + torch.div(left, pool, rounding_mode="floor")
    moves, turned = len(move_y), len(turns)
    each = 8 * batch * high * wide * (moves + turned) * (1 + len(request.names))
    some = max(1, working // each)
    results = []
    for start in range(0, count, some):
        part = slice(start, start + some)
        n = kernels[:, part].shape[1]
        index = (corner[:, part].reshape(-1, 1) + rows).flatten()
        place = bank.place[kernels[:, part]].flatten()
        outputs = []
        for form in range(request.forms):
            pairs = request.pairs(form)
            if pairs.stop == pairs.start:
                outputs.append(torch.zeros(batch, n, moves * turned, device=device))
                continue
            taken = lines(maps[..., pairs], wide).index_select(0, index).view(batch * n, moves, -1)
            held = shelf.stacked(request.names[pairs], pool).index_select(0, place).view(batch * n, turned, -1)
            outputs.append(torch.bmm(taken, held.mT).view(batch, n, moves * turned) * (pool * pool))
        results.append(scorer.choose(torch.stack(outputs), totals, request.gains))
    pick, score, choice, colour, gain = (torch.cat(parts, dim=1) for parts in zip(*results, strict=True))
    turn, move = pick % turned, torch.div(pick, turned, rounding_mode="floor")
    kernel = kernels.gather(2, turn.unsqueeze(-1)).squeeze(-1)
    return Hits(kernel, hits.left + move_x[move], hits.top + move_y[move], score, choice, colour, gain)
