"""A folder of RGBA sprites is a dictionary: reading, writing, and files that cannot be used."""

from __future__ import annotations

import json
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from PIL import Image

from model_strategies import assert_same, dictionaries
from pictolex.errors import FormatError, InputError, MissingExtraError, OutputError
from pictolex.model import Background, Concept, Dictionary, Lineage, SkippedWarning, load_any, read_sprites, write_sprites


def save(path: Path, pixels: object, mode: str | None = None) -> None:
    image = Image.fromarray(np.asarray(pixels))
    (image.convert(mode) if mode else image).save(path)


def rgba(height: int, width: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).integers(0, 256, (height, width, 4), np.uint8)


@settings(max_examples=40, deadline=None)
@given(dictionaries())
def test_sprites_survive_to_8_bit(tmp_path_factory: pytest.TempPathFactory, dictionary: Dictionary) -> None:
    folder = tmp_path_factory.mktemp("sprites") / "out"
    write_sprites(dictionary, folder)
    again = read_sprites(folder)
    exact = replace(again, hues=dictionary.hues)
    assert_same(again, dictionary, tolerance=0.5 / 255 + 1e-6)
    before = {path.name: path.read_bytes() for path in folder.iterdir()}
    write_sprites(again, folder)
    assert before == {path.name: path.read_bytes() for path in folder.iterdir()}
    assert_same(load_any(folder), exact)


def test_pixels_are_exact(tmp_path: Path) -> None:
    pixels = rgba(5, 7)
    pixels[:, [0, -1], 3] = 0
    save(tmp_path / "leaf.png", pixels)
    (concept,) = read_sprites(tmp_path)
    assert (concept.id, concept.name, concept.height, concept.width) == (0, "leaf", 5, 7)
    assert np.array_equal(np.rint(concept.shape * 255), pixels[..., :3])
    assert np.array_equal(np.rint(concept.alpha * 255), pixels[..., 3])


@pytest.mark.parametrize(
    ("name", "mode", "channels"),
    [("a.png", "L", 1), ("a.png", "1", 1), ("a.PNG", "RGB", 3), ("a.png", "P", 3), ("a.tif", "CMYK", 3), ("a.jpg", "RGB", 3)],
)
def test_images_without_alpha_are_opaque(name: str, mode: str, channels: int, tmp_path: Path) -> None:
    save(tmp_path / name, np.full((4, 6, 3), 255, np.uint8), mode)
    (concept,) = read_sprites(tmp_path)
    assert concept.channels == channels
    assert concept.alpha.min() == 1
    assert concept.shape.min() > 0.99


def test_16_bit_and_palettes_with_transparency(tmp_path: Path) -> None:
    save(tmp_path / "deep.png", np.array([[0, 13107], [32768, 65535]], np.uint16))
    assert np.allclose(read_sprites(tmp_path).concepts[0].shape[..., 0], [[0, 0.2], [0.5, 1]], atol=1e-4)
    palette = Image.new("P", (2, 1))
    palette.putpalette([255, 0, 0, 0, 255, 0])
    palette.putpixel((1, 0), 1)
    palette.save(tmp_path / "palette.png", transparency=1)
    dictionary = read_sprites(tmp_path)
    assert dictionary.concepts[1].alpha.tolist() == [[1, 0]]
    assert dictionary.channels == 3  # one in colour makes all RGB


def test_natural_order_and_other_files(tmp_path: Path) -> None:
    for name in ("b10.png", "b9.png", "B2.png", "a.gif", ".hidden.png"):
        save(tmp_path / name, np.zeros((2, 2), np.uint8))
    (tmp_path / "notes.txt").write_text("hello")
    (tmp_path / "folder.png").mkdir()
    assert [c.name for c in read_sprites(tmp_path)] == ["a", "B2", "b9", "b10"]


def test_bad_files_are_counted_and_told(tmp_path: Path) -> None:
    save(tmp_path / "good.png", rgba(64, 64))
    (tmp_path / "text.png").write_text("not an image")
    (tmp_path / "cut.png").write_bytes((tmp_path / "good.png").read_bytes()[:5000])
    (tmp_path / "empty.png").write_bytes(b"")
    frames = [Image.new("L", (2, 2), value) for value in (0, 255)]
    frames[0].save(tmp_path / "film.gif", save_all=True, append_images=frames[1:])
    save(tmp_path / "hot.tif", np.full((2, 2), 7, np.float32))
    with pytest.warns(SkippedWarning, match=r"5 of its sprites left out \(cut.png: .*; and 2 more\)"):
        dictionary = read_sprites(tmp_path)
    assert [concept.name for concept in dictionary] == ["good"]
    (tmp_path / "good.png").unlink()
    with pytest.raises(InputError, match=r"none of its 5 images can be used .*cut\.png"):
        read_sprites(tmp_path)


def test_empty_and_missing_folders(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="there are no images in it"):
        read_sprites(tmp_path)
    with pytest.raises(InputError, match="there is no such folder"):
        read_sprites(tmp_path / "none")


def square(id: int) -> Concept:
    return Concept(id, np.ones((2, 2, 1)), np.full((2, 2), id / 255))


def test_edited_folders(tmp_path: Path) -> None:
    write_sprites(Dictionary((square(4), square(2)), next_id=9), tmp_path)
    save(tmp_path / "added.png", np.zeros((3, 3), np.uint8))
    assert read_sprites(tmp_path).ids == (4, 2, 9)
    (tmp_path / "concept-4.png").unlink()
    with pytest.warns(SkippedWarning, match="1 of its sprites left out .*concept-4.png: listed in sprites.json but not there"):
        dictionary = read_sprites(tmp_path)
    assert (dictionary.ids, dictionary.next_id) == ((2, 9), 10)
    (tmp_path / "sprites.json").unlink()
    assert [(c.id, c.name) for c in read_sprites(tmp_path)] == [(0, "added"), (1, "concept-2")]


def test_names_that_no_disk_takes(tmp_path: Path) -> None:
    names = ["a", "A", "a/b", "a:b", "..", "background", "", "concept-6", "x" * 300, "ß", "caf\udce9"]
    dictionary = Dictionary(tuple(replace(square(id), name=name) for id, name in enumerate(names)))
    write_sprites(dictionary, tmp_path)
    assert len(list(tmp_path.glob("*.png"))) == len(names)
    assert [c.name for c in read_sprites(tmp_path)] == names


def test_images_of_others_are_in_the_way(tmp_path: Path) -> None:
    save(tmp_path / "photo.jpg", np.zeros((2, 2), np.uint8))
    with pytest.raises(OutputError, match=r"would become sprites \(photo.jpg\); choose an empty folder"):
        write_sprites(Dictionary((square(0),)), tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["photo.jpg"]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"version": 2}, "version 2 of the pictolex sprites format is not known"),
        ({"format": "sprites"}, "this is a sprites file"),
        ({"sprites": None}, "does not fit together"),
        ({"sprites": [{"file": "concept-0.png"}]}, "missing 'id'"),
        ({"sprites": [{"file": "concept-0.png", "id": 0.5, "name": ""}]}, "an id is not a whole number"),
        ({"sprites": [{"file": "concept-0.png", "id": 0, "name": ""}] * 2}, "listed twice"),
        ({"sprites": [{"file": "concept-0.png", "id": 0, "name": "", "depth": 3}]}, "does not fit together"),
        ({"hues": [[2, 0, 0]]}, "the hues must have values in"),
        ({"background": "image"}, "needs values"),
        ({"background": "image", "background_file": "sky.png"}, "sky.png: there is no such file"),
        ({"formation": 5}, "formation must be a name"),
        ({"sharpness": "high"}, "does not fit together"),
    ],
)
def test_wrong_side_files_are_told(change: dict[str, object], message: str, tmp_path: Path) -> None:
    write_sprites(Dictionary((square(0),), background=Background()), tmp_path)
    side = tmp_path / "sprites.json"
    side.write_text(json.dumps(json.loads(side.read_bytes()) | change))
    with pytest.raises(FormatError, match=message) as caught:
        read_sprites(tmp_path)
    assert str(side) in str(caught.value)
    side.write_text("{")
    with pytest.raises(FormatError, match="not valid JSON"):
        read_sprites(tmp_path)


def test_a_run_wins_over_its_images(tmp_path: Path) -> None:
    Dictionary((square(3),), lineage=Lineage()).save(tmp_path)
    save(tmp_path / "sheet.png", np.zeros((2, 2), np.uint8))
    assert load_any(tmp_path).ids == (3,)


def test_pillow_missing_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    save(tmp_path / "a.png", np.zeros((2, 2), np.uint8))
    monkeypatch.setitem(sys.modules, "PIL", None)
    with pytest.raises(MissingExtraError, match="pip install pillow"):
        read_sprites(tmp_path)
