"""Pieces of images against SciPy's labelling of the same pixels, and against what Pillow and NumPy drew."""

from __future__ import annotations

import time

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from scipy import ndimage

from pictolex.learn.pieces import LEAST, Piece, cut, label, threshold

CROSS, BLOCK = ndimage.generate_binary_structure(2, 1), np.ones((3, 3), int)
RED, BLUE, GREEN = (0.9, 0.1, 0.1), (0.1, 0.2, 0.9), (0.2, 0.8, 0.1)


def labelled(mask: np.ndarray, corners: bool) -> np.ndarray:
    """`label` with every two neighbours that are shown linked."""
    shown = torch.from_numpy(mask)
    right, down = shown[:, :-1] & shown[:, 1:], shown[:-1] & shown[1:]
    falling, rising = shown[:-1, :-1] & shown[1:, 1:], shown[:-1, 1:] & shown[1:, :-1]
    if not corners:
        falling, rising = torch.zeros_like(falling), torch.zeros_like(rising)
    return label(shown, right, down, falling, rising).numpy()


def assert_same_partition(mine: np.ndarray, theirs: np.ndarray) -> None:
    """The numbers may differ, what shares one may not."""
    pairs = np.unique(np.stack([mine.ravel(), theirs.ravel()]), axis=1)
    assert len(np.unique(pairs[0])) == len(np.unique(pairs[1])) == pairs.shape[1]
    assert np.array_equal(mine == 0, theirs == 0)


def cut_plain(image: np.ndarray, behind: float | tuple[float, ...] = 0.0, *, one_colour: bool = False, seen: float = 0.08) -> list[Piece]:
    """The pieces of (height, width) or (height, width, 3) in front of a plain background."""
    channels = np.atleast_3d(image).astype(np.float32)
    tensor = torch.from_numpy(np.moveaxis(channels, -1, 0).copy())
    plane = torch.tensor(np.broadcast_to(np.float32(behind), (tensor.shape[0],)).copy())[:, None, None].expand_as(tensor)
    return cut(tensor, plane, 0, seen, one_colour)


def painted(height: int, width: int, *blocks: tuple[int, int, int, int, tuple[float, float, float]]) -> np.ndarray:
    """Rectangles (top, left, bottom, right, colour) on black, later ones over earlier ones."""
    image = np.zeros((height, width, 3), np.float32)
    for top, left, bottom, right, colour in blocks:
        image[top:bottom, left:right] = colour
    return image


@settings(deadline=None)
@given(hnp.arrays(np.bool_, hnp.array_shapes(min_dims=2, max_dims=2, max_side=14)), st.booleans())
def test_labels_part_a_mask_as_scipy_does(mask: np.ndarray, corners: bool) -> None:
    assert_same_partition(labelled(mask, corners), ndimage.label(mask, BLOCK if corners else CROSS)[0])


@pytest.mark.parametrize("corners", [False, True])
@pytest.mark.parametrize("density", [0.3, 0.45, 0.6, 0.75])
def test_labels_part_large_masks_near_percolation_as_scipy_does(density: float, corners: bool) -> None:
    mask = np.random.default_rng(round(100 * density)).random((90, 110)) < density
    assert_same_partition(labelled(mask, corners), ndimage.label(mask, BLOCK if corners else CROSS)[0])


def snake(side: int) -> np.ndarray:
    """One path of one pixel's width that fills a square, to and fro."""
    mask = np.zeros((side, side), bool)
    mask[::2] = True
    mask[1::4, -1] = mask[3::4, 0] = True
    return mask


def spiral(side: int) -> np.ndarray:
    """One path inwards, one pixel between its turns."""
    room = np.zeros((side + 4, side + 4), bool)
    at, step = np.array([2, 2]), np.array([0, 1])
    room[2, 2] = True
    stuck = 0
    while stuck < 2:
        inside = bool((at + step >= 2).all() and (at + step < side + 2).all())
        if inside and not room[tuple(at + 2 * step)] and not room[tuple(at + step)]:
            at, stuck = at + step, 0
            room[tuple(at)] = True
        else:
            step, stuck = np.array([step[1], -step[0]]), stuck + 1
    return room[2:-2, 2:-2]


@pytest.mark.parametrize("draw", [snake, spiral])
@pytest.mark.parametrize("corners", [False, True])
def test_a_long_snake_is_one_piece_and_is_found_in_few_sweeps(draw: object, corners: bool) -> None:
    assert callable(draw)
    mask = draw(201)
    assert ndimage.label(mask, CROSS)[1] == 1 and mask.sum() > 19_000
    started = time.monotonic()
    labels = labelled(mask, corners)
    # One pixel a sweep would be twenty thousand sweeps, most of a minute.
    assert time.monotonic() - started < 3
    assert len(np.unique(labels[mask])) == 1
    parted = mask.copy()
    path = np.argwhere(mask)
    cut_row, cut_column = path[len(path) // 2]
    parted[cut_row, cut_column] = False
    assert_same_partition(labelled(parted, corners), ndimage.label(parted, BLOCK if corners else CROSS)[0])


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 10_000), st.floats(0.15, 0.6), st.floats(0.2, 1))
def test_pieces_are_scipys_components_that_are_large_enough(seed: int, density: float, grey: float) -> None:
    mask = np.random.default_rng(seed).random((18, 23)) < density
    pieces = cut_plain(mask * np.float32(grey))
    labels, count = ndimage.label(mask, BLOCK)
    wanted = []
    for k, (rows, columns) in enumerate(ndimage.find_objects(labels)):
        own = labels[rows, columns] == k + 1
        if own.sum() >= LEAST:
            inner = rows.start > 0 and columns.start > 0 and rows.stop < 18 and columns.stop < 23
            wanted.append((own.shape, own.tobytes(), inner))
    found = [(tuple(p.mask.shape), p.mask.numpy().astype(bool).tobytes(), p.whole) for p in pieces]
    assert sorted(found) == sorted(wanted) and len(found) <= count
    for piece in pieces:
        np.testing.assert_allclose(piece.straight[0].numpy()[piece.mask.numpy() > 0], grey, rtol=1e-6)
        np.testing.assert_allclose(piece.colour.numpy(), grey, rtol=1e-6)


@pytest.mark.parametrize(
    "top,left,whole", [(5, 5, True), (1, 1, True), (0, 5, False), (5, 0, False), (14, 5, False), (5, 16, False), (13, 15, True)]
)
def test_a_piece_that_the_border_cuts_is_not_whole(top: int, left: int, whole: bool) -> None:
    image = np.zeros((20, 21), np.float32)
    image[top : top + 6, left : left + 5] = 1
    (piece,) = cut_plain(image)
    assert piece.whole is whole
    assert piece.area == 30 and tuple(piece.mask.shape) == (6, 5)


def test_touching_blocks_of_two_colours_are_two_pieces_where_a_piece_has_one_colour() -> None:
    image = painted(20, 20, (3, 3, 9, 9, RED), (3, 9, 9, 14, BLUE), (9, 3, 15, 14, GREEN))
    pieces = cut_plain(image, one_colour=True)
    found = {tuple(np.round(p.colour.tolist(), 3)): p.area for p in pieces}
    assert found == {RED: 36, BLUE: 30, GREEN: 66}
    (together,) = cut_plain(image)
    assert together.area == 132


def test_blocks_of_one_colour_that_touch_at_a_corner_are_two_pieces() -> None:
    image = painted(20, 20, (2, 2, 7, 7, RED), (7, 7, 12, 12, RED))
    assert [p.area for p in cut_plain(image, one_colour=True)] == [25, 25]
    assert [p.area for p in cut_plain(image)] == [50]


def test_shades_of_one_colour_are_one_piece_and_its_colour_is_that_of_the_bright_ones() -> None:
    """A bevelled block, as tiles of a tetromino have it: three brightnesses of one hue."""
    image = np.zeros((20, 20, 3), np.float32)
    shade = np.full((9, 9), 0.5, np.float32)
    shade[:3], shade[6:] = 1.0, 0.3
    image[4:13, 4:13] = shade[..., None] * np.float32([0.8, 0.4, 0.1])
    (piece,) = cut_plain(image, one_colour=True)
    np.testing.assert_allclose(piece.colour.numpy(), [0.8, 0.4, 0.1], atol=1e-6)
    np.testing.assert_allclose(piece.relative()[0].numpy(), shade, atol=1e-6)


def test_black_on_grey_is_a_piece_of_its_own_beside_a_coloured_one() -> None:
    image = np.full((20, 20, 3), 0.5, np.float32)
    image[4:10, 4:9], image[4:10, 9:14] = 0.0, RED
    pieces = cut_plain(image, 0.5, one_colour=True)
    assert sorted(p.area for p in pieces) == [30, 30]
    black = min(pieces, key=lambda p: float(p.colour.sum()))
    assert float(black.colour.max()) == 0 and bool((black.relative() == 1).all())


def test_black_with_a_little_noise_is_one_piece() -> None:
    """Dark pixels have no chroma to be told apart by."""
    image = np.full((20, 20, 3), 0.5, np.float32)
    image[4:12, 4:12] = np.random.default_rng(0).random((8, 8, 3)) * 0.05
    (piece,) = cut_plain(image, 0.5, one_colour=True)
    assert piece.area == 64


def test_pieces_together_cover_what_is_shown() -> None:
    rng = np.random.default_rng(2)
    image = np.zeros((40, 40, 3), np.float32)
    for _ in range(6):
        top, left = rng.integers(0, 32, 2)
        image[top : top + 7, left : left + 6] = rng.uniform(0.2, 1, 3)
    for one_colour in (False, True):
        shown = sum(p.area for p in cut_plain(image, one_colour=one_colour))
        seen = (image.max(-1) > 0.08).sum()
        # Of one colour, slivers that others leave over may be too small to be pieces.
        assert shown == seen if not one_colour else 0.9 * seen <= shown <= seen


@pytest.mark.parametrize("sigma", [0.02, 0.06, 0.12])
def test_noise_alone_has_no_pieces_and_shapes_in_it_are_seen(sigma: float) -> None:
    rng = np.random.default_rng(0)
    y, x = np.mgrid[0:48, 0:48]
    discs = sum((np.hypot(x - cx, y - cy) < 6).astype(np.float32) for cx, cy in ((12, 13), (34, 30)))
    images = []
    for disc in (0 * discs, discs):
        noisy = 0.1 + 0.85 * disc + sigma * rng.standard_normal(disc.shape)
        images.append(torch.from_numpy(noisy.astype(np.float32)).unsqueeze(0))
    seen = threshold(images)
    assert seen > 3 * sigma
    behind = torch.full((1, 48, 48), 0.1)
    assert cut(images[0], behind, 0, seen, False) == []
    pieces = cut(images[1], behind, 0, seen, False)
    assert len(pieces) == 2
    assert all(abs(p.area - discs.sum() / 2) < 0.1 * p.area for p in pieces)


def test_without_noise_faint_shapes_are_seen() -> None:
    image = np.zeros((24, 24), np.float32)
    image[6:14, 6:14] = 0.15
    seen = threshold([torch.from_numpy(image).unsqueeze(0)])
    assert len(cut_plain(image, seen=seen)) == 1
