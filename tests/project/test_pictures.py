"""Pictures show what they are given."""

from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from pictolex.errors import OutputError
from pictolex.model import Background, Concept, Dictionary
from pictolex.pictures import Explained, dictionary_sheet, layers_picture, save_png
from pictolex.pictures.canvas import on_checkerboard
from pictolex.pictures.layers import instance_colours


def colours_in(picture: np.ndarray) -> set[tuple[int, ...]]:
    return {tuple(colour) for colour in np.unique(picture.reshape(-1, 3), axis=0).tolist()}


def test_opaque_pixels_keep_their_colour_and_clear_ones_show_the_board() -> None:
    colour = np.zeros((6, 6, 3), np.float32)
    colour[..., 1] = 1
    alpha = np.zeros((6, 6), np.float32)
    alpha[:3] = 1
    picture = on_checkerboard(colour, alpha, zoom=4)
    assert picture.shape == (24, 24, 3)
    assert colours_in(picture[:12]) == {(0, 255, 0)}
    assert len(colours_in(picture[12:])) == 2 and (0, 255, 0) not in colours_in(picture[12:])


def test_a_sheet_shows_every_concept_hue_and_background() -> None:
    reds = [Concept(i, np.full((4 + i, 5, 3), (i / 5, 0, 0)), np.ones((4 + i, 5)), name="x" * i) for i in range(1, 6)]
    background = Background("plain", np.array([0, 0, 1.0]))
    sheet = dictionary_sheet(Dictionary(tuple(reds), hues=np.array([[0.2, 1.0, 0.4]]), background=background), {3: 7})
    wanted = {(51 * i, 0, 0) for i in range(1, 6)} | {(51, 255, 102), (0, 0, 255)}
    assert sheet.dtype == np.uint8 and wanted <= colours_in(sheet)


def test_sheets_of_voxels_and_of_nothing() -> None:
    assert dictionary_sheet(Dictionary((Concept.voxel(0, np.ones((3, 4, 5))),))).ndim == 3
    assert dictionary_sheet(Dictionary(())).ndim == 3


def explained(count: int, size: tuple[int, int] = (20, 30), image: bool = True) -> Explained:
    height, width = size
    labels = np.arange(height * width).reshape(size) % (count + 1)
    alphas = (labels == np.arange(1, count + 1).reshape(-1, 1, 1)).astype(np.float32)
    flat = np.full((height, width, 1), 0.5, np.float32)
    return Explained(
        "a", flat if image else None, flat, alphas, np.ones((count, height, width, 3), np.float32), labels, tuple(range(count))
    )


def test_layers_of_any_number_and_size() -> None:
    few, many = layers_picture([explained(2)]), layers_picture([explained(2), explained(30)])
    assert many.shape[0] > few.shape[0] and many.shape[1] > few.shape[1]
    assert layers_picture([explained(0, image=False)]).ndim == 3
    assert max(layers_picture([explained(1, size=(3000, 10))]).shape) < 1500


def test_instances_have_colours_of_their_own() -> None:
    colours = instance_colours(40)
    distances = np.abs(colours[:, None] - colours[None]).max(-1) + np.eye(41)
    assert colours.shape == (41, 3) and distances.min() > 0.01


def test_png_files_are_written_whole_or_not_at_all(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    ramp = np.linspace(0, 1, 12, dtype=np.float32).reshape(3, 4, 1)
    path = save_png(ramp, tmp_path / "ramp.png")
    assert np.array_equal(np.asarray(Image.open(path)), np.rint(ramp[..., 0] * 255))

    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("os.fsync", full)
    with pytest.raises(OutputError, match=r"other\.png: disk full"):
        save_png(ramp, tmp_path / "other.png")
    assert [found.name for found in tmp_path.iterdir()] == ["ramp.png"]
