"""The truth in files as others publish them: what the dSprites archive and Multi-Object Datasets know of their images."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pictolex.sources.dsprites import CLASSES, SHAPE_COLUMN, latents, parse_dsprites
from pictolex.sources.multi_object import RecordSpec, chosen, open_records, parse_tfrecords
from pictolex.sources.npz import NpzSpec
from pictolex.sources.truth import Mask, Truth


def truth_of_published(text: str) -> Truth | None:
    """The truth of such a file, or of a part of it; None where the text names none."""
    for parse, known in _PUBLISHED:
        found = parse(text)
        if found is not None:
            return known(found)
    return None


def _dsprites(spec: NpzSpec) -> Truth:
    """The latent factors of the images; their shapes are the labels."""
    known = latents(spec)
    labels = known[CLASSES][:, SHAPE_COLUMN].astype(np.int64)
    truth = Truth(len(labels), labels=labels, factors=lambda i: {key: array[i] for key, array in known.items()})
    return truth if spec.part is None else truth.take(spec.part)


def _recorded(spec: RecordSpec) -> Truth:
    """Masks and factors beside the images of a TFRecord file, read apart from them."""
    file = open_records(spec)
    spool, row = file.truth()
    names = (row.names or ())[1:]

    def scene(i: int) -> NDArray[np.void]:
        return np.frombuffer(spool.row(i), row)

    def mask_of(i: int) -> Mask:
        mask: Mask = scene(i)["mask"][0]
        return mask

    def factors(i: int) -> dict[str, NDArray[np.generic]]:
        values = scene(i)
        return {name: values[name][0] for name in names}

    truth = Truth(file.count, mask_of, factors=factors if names else None)
    return truth if spec.part is None else truth.take(chosen(spec, file.count))


_PUBLISHED: tuple[tuple[Callable[[str], Any], Callable[[Any], Truth]], ...] = (
    (parse_dsprites, _dsprites),
    (parse_tfrecords, _recorded),
)
