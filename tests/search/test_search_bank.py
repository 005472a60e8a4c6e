"""The bank: what every concept looks like in every grid pose, once."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch

from drawn import Placed, concept, coverage
from pictolex.formation import Additive, Alpha, pack, sample
from pictolex.model import Concept
from pictolex.search import Bank, build_bank
from pictolex.search.reference import kernel_sheet


def bank_of(*kinds: str, rotations: int = 1, side: int = 21, scales: tuple[float, ...] = (1.0,), mirror: bool = False) -> Bank:
    return build_bank(pack([concept(i, kind, side) for i, kind in enumerate(kinds)]), Alpha(), rotations, scales, mirror)


@pytest.mark.parametrize("side", [20, 21])
def test_kernels_are_the_concepts_in_their_poses(side: int) -> None:
    patches = pack([concept(0, "ell", side), concept(1, "wedge", side)])
    bank = build_bank(patches, Alpha(1, 1.5), 5, (0.8, 1.0), True)
    for kernel in range(len(bank)):
        sheet = kernel_sheet(bank, kernel)
        pose = bank.pose(torch.tensor([kernel]), torch.tensor([3.0]), torch.tensor([2.0]))
        drawn = Alpha(1, 1.5).sheet(sample(patches, bank.concept[kernel : kernel + 1], pose, 50, 50))[0]
        wide = torch.zeros_like(drawn)
        wide[:, 2 : 2 + sheet.shape[1], 3 : 3 + sheet.shape[2]] = sheet
        torch.testing.assert_close(wide, drawn, atol=3e-3, rtol=0)


def test_unturned_kernels_are_the_patches_exactly() -> None:
    for side in (20, 21):
        one = concept(0, "ell", side)
        bank = build_bank(pack([one]), Alpha(), 1, (1.0,))
        pose = bank.pose(torch.zeros(1, dtype=torch.long), torch.zeros(1), torch.zeros(1))[0]
        sheet = kernel_sheet(bank, 0)[-1].numpy()
        shown = np.argwhere(one.alpha > 2e-3).min(0)
        rows, columns = one.alpha.shape[0] - shown[0], one.alpha.shape[1] - shown[1]
        wide = np.zeros((rows + 30, columns + 30), np.float32)
        wide[: sheet.shape[0], : sheet.shape[1]] = sheet
        np.testing.assert_allclose(wide[:rows, :columns], one.alpha[shown[0] :, shown[1] :], atol=2.1e-3)
        assert pose[:2].tolist() == [side / 2 - shown[1], side / 2 - shown[0]]


def filled(height: int, width: int) -> Concept:
    return Concept(0, np.ones((height, width, 1), np.float32), np.ones((height, width), np.float32))


@pytest.mark.parametrize(
    ("concept", "rotations", "kept"),
    [
        (filled(9, 9), 4, 1),
        (filled(9, 9), 8, 2),
        (filled(10, 10), 4, 1),
        (filled(5, 9), 4, 2),
        (filled(4, 8), 4, 2),
        (filled(1, 1), 4, 1),
        (concept(0, "ell"), 8, 8),
    ],
)
def test_poses_that_look_alike_are_kept_once(concept: Concept, rotations: int, kept: int) -> None:
    assert len(build_bank(pack([concept]), Alpha(), rotations, (1.0,))) == kept


def test_neighbours_are_the_next_rotations_of_the_same_group() -> None:
    bank = build_bank(pack([concept(0, "ell"), filled(9, 9)]), Alpha(), 8, (0.9, 1.2), True)
    assert len(bank) == 4 * 8 + 4 * 2
    assert bank.groups == 2 * 2 * 2
    for kernel in range(len(bank)):
        after, before = int(bank.after[kernel]), int(bank.before[kernel])
        assert int(bank.group[after]) == int(bank.group[kernel]) == int(bank.group[before])
        assert int(bank.before[after]) == kernel
        if int(bank.concept[kernel]) == 0:
            turn = float(bank.rotation[after] - bank.rotation[kernel]) % (2 * math.pi)
            assert turn == pytest.approx(math.pi / 4, abs=1e-5)
    same = (bank.concept, bank.log_scale, bank.mirror)
    for group in range(bank.groups):
        members = bank.group == group
        assert all(len(values[members].unique()) == 1 for values in same)
    assert bank.turns
    assert not bank_of("ell", "square").turns


def test_shelves_hold_kernels_of_similar_size() -> None:
    small, large = concept(0, "square", 13), concept(1, "square", 13)
    big = Concept(2, np.ones((60, 55, 1), np.float32), np.ones((60, 55), np.float32))
    bank = build_bank(pack([small, big, large]), Alpha(), 1, (1.0,))
    assert len(bank.shelves) == 2
    assert int(bank.shelf[0]) == int(bank.shelf[2]) != int(bank.shelf[1])
    assert sorted(k for shelf in bank.shelves for k in shelf.number.tolist()) == list(range(len(bank)))
    for number, shelf in enumerate(bank.shelves):
        assert all(side % shelf.pool == 0 for side in shelf.size)
        for position, kernel in enumerate(shelf.number.tolist()):
            assert (int(bank.shelf[kernel]), int(bank.place[kernel])) == (number, position)
    sizes = [shelf.size for shelf in bank.shelves]
    assert max(sizes[0]) <= 16
    assert max(sizes[1]) <= 64


def test_an_empty_concept_is_one_pixel_of_nothing() -> None:
    nothing = Concept(0, np.ones((9, 9, 1), np.float32), np.zeros((9, 9), np.float32))
    bank = build_bank(pack([nothing]), Alpha(), 4, (1.0,))
    assert len(bank) == 1
    assert not bool(kernel_sheet(bank, 0).any())


def test_white_shapes_need_fewer_kernels_and_grey_ones_do_not() -> None:
    white = bank_of("ell", "wedge", rotations=3).alias
    assert white["q0"] == "a"
    assert white["qa0"] == white["qq0"] == white["aa"] == "aa"
    grey = build_bank(pack([concept(0, "ell", grey=0.5), concept(1, "wedge")]), Alpha(), 3, (1.0,)).alias
    assert all(name == alias for name, alias in grey.items())
    assert build_bank(pack([concept(0, "ell")]), Additive(), 1, (1.0,)).alias["q0"] == "a"


def test_pooled_features_are_means() -> None:
    bank = bank_of("ell", rotations=3)
    shelf = bank.shelves[0]
    kernels, means = shelf.feature("aa", 1), shelf.feature("aa", 2)
    high, wide = shelf.size
    blocks = kernels.view(len(shelf), high // 2, 2, wide // 2, 2).mean((2, 4))
    torch.testing.assert_close(means, blocks)
    stacked = shelf.stacked(("a", "aa"), 1).view(len(shelf), high, wide, 2)
    torch.testing.assert_close(stacked[..., 1], kernels)


def test_a_low_rank_basis_rebuilds_the_kernels() -> None:
    bank = bank_of("ellipse", rotations=90)
    (shelf,) = bank.shelves
    basis = shelf.basis(("a",), shelf.pool)
    assert basis is not None
    directions, coefficients = basis
    assert len(directions) * 2 <= len(shelf)
    kernels = shelf.feature("a", shelf.pool)
    rebuilt = torch.einsum("kr,rnij->knij", coefficients, directions)[:, 0]
    assert float((rebuilt - kernels).square().sum() / kernels.square().sum()) < 0.003
    (few,) = bank_of("ell", rotations=8).shelves
    assert few.basis(("a",), few.pool) is None


def test_turned_kernels_are_the_turned_shape() -> None:
    """Against Pillow, so that the bank cannot agree with a wrong `sample`."""
    bank = bank_of("ell", rotations=8)
    for kernel in range(len(bank)):
        sheet = kernel_sheet(bank, kernel)[-1].numpy()
        x, y = (float(v) for v in bank.centre[kernel])
        truth = coverage(Placed("ell", x, y, float(bank.rotation[kernel])), *sheet.shape)
        assert np.abs(sheet - truth).sum() < 0.12 * truth.sum()
