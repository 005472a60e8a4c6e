"""A survey of some images: what is behind everything, which pieces there are in front of it, and which of them recur."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
import torch
from torch import Tensor

from pictolex.decompose.background import FreePlain
from pictolex.decompose.engine import Pictures
from pictolex.decompose.parallel import one_thread
from pictolex.errors import InputError
from pictolex.learn.likeness import Kind, Likeness, Turns, centre_and_radius, needed, recurring, turnable, upright
from pictolex.learn.pieces import SEEN, Piece, cut, threshold

SAMPLES = 300
"""Images looked at."""
PIXELS = 2_000_000
"""Pixels looked at, at most; of images larger than that a window."""
PIECES = 900
"""Pieces compared with each other, at most."""
RARE = 0.03
"""A kind that explains fewer than this share of the pieces is an accident."""
FEWEST = 2.5
"""The same in pieces."""
FEW = 24
"""Where there are fewer whole pieces than this, those that the border cuts are looked at too."""


@dataclass(frozen=True)
class Look:
    """The pieces of some images, cut and compared in one way."""

    pieces: list[Piece]
    kinds: list[Kind]
    turns: Turns
    likeness: Likeness | None
    one_colour: bool

    @property
    def explained(self) -> float:
        """Pixels that recurring kinds explain."""
        return sum(kind.score * self.pieces[kind.exemplar].area for kind in self.kinds)


@dataclass(frozen=True)
class Survey:
    """Some images of a source, and what was found in them."""

    images: list[Tensor]
    """(channels, height, width) each, composited on black where they are transparent."""
    behind: Tensor
    """(images, channels): each image's most frequent colour."""
    seed: int
    _looks: dict[tuple[bool, bool], Look] = field(default_factory=dict, repr=False)

    @staticmethod
    @one_thread()
    def of(source: Pictures, seed: int, samples: int = SAMPLES) -> Survey:
        """Look at some images of a source, chosen by the seed; those that cannot be read are left out."""
        generator = np.random.default_rng(seed)
        chosen = generator.permutation(len(source))[: min(samples, len(source))]
        images: list[Tensor] = []
        pixels = 0
        for i in chosen.tolist():
            try:
                picture = source.read(i)
            except InputError:
                continue
            values = torch.from_numpy(np.array(picture.pixels)).permute(2, 0, 1)
            image = values if picture.opacity is None else values * torch.from_numpy(np.array(picture.opacity))
            images.append(_window(image, generator))
            pixels += images[-1][0].numel()
            if pixels > PIXELS:
                break
        if not images:
            raise InputError("none of the images could be read; see the warnings above")
        channels = max(i.shape[0] for i in images)
        images = [i.expand(channels, -1, -1) for i in images]
        free = FreePlain()
        behind = [free.start(i.unsqueeze(0), torch.ones(1, 1, *i.shape[1:]))[0, :, 0, 0] for i in images]
        return Survey(images, torch.stack(behind), seed)

    @property
    def channels(self) -> int:
        """Channels of the images."""
        return self.images[0].shape[0]

    @cached_property
    def seen(self) -> float:
        """How far from the background a pixel shows something."""
        return threshold(self.images)

    @cached_property
    def planes(self) -> list[Tensor]:
        """What is behind each image: its most frequent colour, or what the images have in common where most of them agree on that."""
        plain = [colour[:, None, None].expand_as(image).contiguous() for colour, image in zip(self.behind, self.images, strict=True)]
        if len({tuple(i.shape) for i in self.images}) > 1 or len(self.images) < 8:
            return plain
        median = torch.stack(self.images).median(0).values
        common = sum(_near(i, median) for i in self.images) / len(plain)
        alone = sum(_near(i, p) for i, p in zip(self.images, plain, strict=True)) / len(plain)
        return [median] * len(self.images) if common > max(0.4, alone + 0.1) else plain

    @cached_property
    def shown(self) -> int:
        """Pixels in front of the background."""
        return sum(int(((i - p).abs().amax(0) > self.seen).sum()) for i, p in zip(self.images, self.planes, strict=True))

    @property
    def shared_image(self) -> bool:
        """Whether an image of its own is behind all of them, not a plain colour."""
        return bool((self.planes[0] - self.planes[0][:, :1, :1]).abs().max() > SEEN)

    def look(self, one_colour: bool, turning: bool, most: int) -> Look:
        """Cut the images into pieces and find those that recur; `turning`: up to rotation and scale."""
        key = (one_colour, turning)
        if key not in self._looks:
            self._looks[key] = self._look(one_colour, turning)
        found = self._looks[key]
        return Look(found.pieces, found.kinds[:most], found.turns, found.likeness, one_colour)

    def _look(self, one_colour: bool, turning: bool) -> Look:
        pieces: list[Piece] = []
        for number, (image, plane) in enumerate(zip(self.images, self.planes, strict=True)):
            pieces += cut(image, plane, number, self.seen, one_colour)
        whole = [p for p in pieces if p.whole]
        pieces = (whole if len(whole) >= FEW else whole + [p for p in pieces if not p.whole])[:PIECES]
        if not pieces:
            return Look([], [], Turns(False, False, (1.0, 1.0)), None, one_colour)
        stacks = [stack(piece, one_colour) for piece in pieces]
        likeness = turnable(stacks) if turning else upright(stacks)
        least = max(FEWEST, RARE * len(pieces)) if turning else max(FEWEST, RARE / 4 * len(pieces))
        kinds = recurring(likeness, len(pieces), least)
        radius = torch.tensor([centre_and_radius(piece.mask)[2] for piece in pieces])
        return Look(pieces, kinds, needed(likeness, kinds, radius), likeness, one_colour)


def _near(image: Tensor, plane: Tensor) -> float:
    """Share of the pixels where an image is what a plane is."""
    return float(((image - plane).abs().amax(0) < SEEN).float().mean())


def stack(piece: Piece, one_colour: bool) -> Tensor:
    """Premultiplied shape and alpha of a piece: (channels + 1, height, width)."""
    shape = piece.relative() if one_colour else piece.straight
    return torch.cat([shape * piece.mask, piece.mask.unsqueeze(0)])


def _window(image: Tensor, generator: np.random.Generator) -> Tensor:
    """The image, or a window of it that is small enough."""
    side = int(PIXELS**0.5)
    top, left = (int(generator.integers(0, max(1, n - side + 1))) for n in image.shape[1:])
    return image[:, top : top + side, left : left + side]
