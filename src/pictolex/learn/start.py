"""Good starts: pieces of the images that recur become the first concepts, their most frequent colours the first hues."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn import functional

from pictolex.decompose.background import background_model
from pictolex.decompose.engine import Pictures
from pictolex.errors import InputError
from pictolex.model import Background, Concept, Dictionary
from pictolex.settings import Settings

SAMPLES = 300
"""Images looked at."""
PIECES = 6
"""Pieces cut from each."""
SEEN = 0.08
"""A pixel this far from the background shows something."""
SAME_COLOUR = 0.2
"""Pixels of one piece differ in colour (brightness set aside) by less than this."""
ALIKE = 0.12
"""Pieces whose relative squared difference is below this are one concept."""

Floats = NDArray[np.float32]


def first_dictionary(source: Pictures, settings: Settings) -> Dictionary:
    """Concepts from pieces that recur; hues from their colours; the background from the images' most frequent colour."""
    generator = np.random.default_rng(settings.seed)
    chosen = generator.permutation(len(source))[: min(SAMPLES, len(source))]
    images: list[Tensor] = []
    for i in sorted(chosen.tolist()):
        try:
            picture = source.read(i)
        except InputError:
            continue
        pixels = torch.from_numpy(np.array(picture.pixels)).permute(2, 0, 1)
        images.append(pixels if picture.opacity is None else pixels * torch.from_numpy(np.array(picture.opacity)))
    if not images:
        raise InputError("none of the images could be read; see the warnings above")
    channels = max(i.shape[0] for i in images)
    images = [i.expand(channels, -1, -1) for i in images]
    background = _BACKGROUNDS[settings.background.kind](images)
    model = background_model(settings, Dictionary((), background=background), channels, torch.device("cpu"))
    behind = [model.start(image.unsqueeze(0), torch.ones(1, 1, *image.shape[1:]))[0] for image in images]
    size = settings.learning.concept_size
    luminance = channels == 1 or not settings.learning.colour_shapes
    pieces, colours = [], []
    for image, plane in zip(images, behind, strict=True):
        for piece, colour in _pieces(image, plane, size, generator):
            pieces.append(np.concatenate([piece[:-1].max(0, keepdims=True), piece[-1:]]) if luminance else piece)
            colours.append(colour)
    kinds = _recurring(pieces, settings.learning.concepts, size, 1 if luminance else channels, generator)
    hues = _hues(colours, settings, channels)
    made = [Concept(n, np.moveaxis(kind[:-1].clip(0, 1), 0, -1), kind[-1].clip(0, 1)) for n, kind in enumerate(kinds)]
    sharpness = float(getattr(settings.formation, "sharpness", 1.0))
    return Dictionary(tuple(made), hues=hues, background=background, formation=settings.formation.kind, sharpness=sharpness)


def _pieces(image: Tensor, plane: Tensor, size: int, generator: np.random.Generator) -> list[tuple[Floats, Floats]]:
    """Connected pieces of one colour, centred in patches: (straight colour and alpha (channels + 1, size, size), the colour)."""
    channels = image.shape[0]
    shown = (image - plane).abs().amax(0)
    where = (shown > SEEN).nonzero()
    if not len(where):
        return []
    bright = image.amax(0, keepdim=True).clamp_min(1e-3)
    chroma = image / bright
    found = []
    for index in generator.integers(0, len(where), PIECES).tolist():
        y, x = where[index].tolist()
        like = shown > SEEN
        if channels == 3:
            like &= (chroma - chroma[:, y : y + 1, x : x + 1]).abs().amax(0) < SAME_COLOUR
        piece = _connected(like, y, x, 2 * size)
        rows, columns = piece.nonzero().unbind(1)
        span = (int(rows.max() - rows.min()) + 1, int(columns.max() - columns.min()) + 1)
        if len(rows) < 4 or max(span) > size:
            continue
        alpha = piece.float() if channels == 3 else (shown * piece).clamp(0, 1)
        # Centred on the middle of its box, so that pieces of one kind fall on one another.
        top = int(rows.min()) - (size - span[0]) // 2
        left = int(columns.min()) - (size - span[1]) // 2
        straight = image if channels == 3 else torch.where(shown > SEEN, image / shown.clamp_min(1e-3), image).clamp(0, 1)
        stack = torch.cat([straight * piece, alpha.unsqueeze(0)])
        padded = functional.pad(stack, (size, size, size, size))
        patch = padded[:, top + size : top + 2 * size, left + size : left + 2 * size]
        found.append((patch.numpy().copy(), chroma[:, y, x].numpy().copy()))
    return found


def _connected(like: Tensor, y: int, x: int, reach: int) -> Tensor:
    """The pixels connected to (y, x) within `like`."""
    piece = torch.zeros_like(like)
    piece[y, x] = True
    for _ in range(reach):
        grown = functional.max_pool2d(piece[None, None].float(), 3, 1, 1)[0, 0].bool() & like
        if bool((grown == piece).all()):
            break
        piece = grown
    return piece


def _recurring(pieces: Sequence[Floats], count: int, size: int, channels: int, generator: np.random.Generator) -> list[Floats]:
    """The most frequent kinds of pieces, at most `count`; noise where there are none at all."""
    chosen: list[Floats] = []
    if pieces:
        # Brightness and alpha decide, not hue: premultiplied luminance and alpha.
        values = np.stack([np.stack([p[:-1].max(0) * p[-1], p[-1]]).ravel() for p in pieces])
        power = (values**2).sum(1)
        distance = np.maximum(power[:, None] + power[None, :] - 2 * values @ values.T, 0) / (power[:, None] + power[None, :] + 1e-9)
        alike = distance < ALIKE / 2
        left = np.ones(len(pieces), bool)
        while left.any() and len(chosen) < count:
            votes = (alike & left).sum(1) * left
            best = int(votes.argmax())
            kind = alike[best] & left
            chosen.append(np.median(np.stack([pieces[i] for i in np.nonzero(kind)[0].tolist()]), axis=0).astype(np.float32))
            left &= ~kind
    if not chosen:
        noise = generator.random((count, channels + 1, size, size), dtype=np.float32)
        chosen = list(noise * 0.5 + 0.25)
    return chosen


def _hues(colours: Sequence[Floats], settings: Settings, channels: int) -> Floats | None:
    """The most frequent colours of pieces, far enough apart; the corners of the colour cube where there are too few."""
    count = getattr(settings.colour, "count", 0)
    if not count:
        return None
    left = np.stack(colours) if colours else np.zeros((0, channels), np.float32)
    chosen: list[Floats] = []
    while len(left) and len(chosen) < count:
        near = np.abs(left[:, None] - left[None]).max(-1) < SAME_COLOUR
        best = int(near.sum(1).argmax())
        chosen.append(left[near[best]].mean(0))
        left = left[~near[best]]
    for corner in np.ndindex(*(2,) * channels):
        if len(chosen) < count and any(corner):
            chosen.append(np.array(corner, np.float32))
    while len(chosen) < count:
        chosen.append(np.full(channels, 0.5, np.float32))
    return np.stack(chosen).clip(0, 1).astype(np.float32)


def _plain(images: Sequence[Tensor]) -> Background:
    """The colour that is in the middle of most images: the paper starts at one half, this is nearer."""
    middle = torch.stack([image.flatten(1).median(1).values for image in images]).median(0).values
    return Background("plain", middle.numpy())


def _image(images: Sequence[Tensor]) -> Background:
    """The median image."""
    if len({tuple(image.shape) for image in images}) > 1:
        raise InputError("background.kind is 'image' but the images differ in size: resize them, or set it to plain or free")
    return Background("image", torch.stack(list(images)).median(0).values.permute(1, 2, 0).numpy())


_BACKGROUNDS: dict[str, Callable[[Sequence[Tensor]], Background]] = {
    "none": lambda images: Background("none"),
    "free": lambda images: Background("free"),
    "plain": _plain,
    "image": _image,
}
