"""`pictolex data make` with options: twins of the built-in sets."""

import json
from pathlib import Path

import numpy as np
import pytest

from cli.program import pictolex, refused, write_sprites


def test_every_option_says_what_is_made(tmp_path: Path) -> None:
    out = tmp_path / "a.npz"
    looks = ["--shapes", "Ring,star", "--palette", "#e07020,20a0c0", "--backgrounds", "#f0e8d0", "--inverted"]
    sizes = ["--count", "4", "--seed", "3", "--size", "48", "--objects", "1-5"]
    done = pictolex("data", "make", "dsprites-color", *sizes, *looks, "-o", out)
    assert (done.returncode, done.stdout.strip()) == (0, str(out))
    with np.load(out) as z:
        assert z["images"].shape == (4, 48, 48, 3)
        assert z["factors"].shape == (4, 5, 7)
        assert z["shape_names"].tolist() == ["ring", "star"]
        assert (255 - z["color_rgb"]).tolist() == [[224, 112, 32], [32, 160, 192]]
        assert (255 - z["background_rgb"]).tolist() == [[240, 232, 208]]
        np.testing.assert_array_equal(z["images"][z["masks"] == 0], np.broadcast_to([15, 23, 47], ((z["masks"] == 0).sum(), 3)))


def test_evaluate_measures_the_concepts_of_what_was_made(tmp_path: Path) -> None:
    out = tmp_path / "a.npz"
    for options in (["tetrominoes"], ["tetrominoes", "--size", "64", "--cell", "8", "--objects", "4"]):
        assert pictolex("data", "make", *options, "--count", "2", "-q", "-o", out).returncode == 0
        sprites = tmp_path / "sprites"
        learned = sprites if sprites.exists() else write_sprites(sprites)
        done = pictolex("evaluate", learned, out, "--json", "--quiet", "--device", "cpu")
        assert done.returncode == 0, done.stderr
        figures = json.loads(done.stdout)
        assert 0 < figures["concept_l1"] <= figures["concept_l1_strict"] <= 1


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["voxel", "--objects", "1-5"], "voxel has no option objects (it goes with tetrominoes, dsprites-bin"),
        (["dsprites-bin", "--objects", "one"], "--objects must be a number or a range, such as 4 or 1-5; got 'one'"),
        (["dsprites-bin", "--objects", "5-1"], "objects from 5 to 1"),
        (["dsprites-bin", "--shapes", "ring,blob"], "no shape 'blob'"),
        (["dsprites-bin", "--shapes", ","], "shapes: an empty list"),
        (["tetrominoes", "--palette", "red"], "--palette must be colours as '#rrggbb'"),
        (["dsprites-color", "--backgrounds", "#12345"], "--backgrounds must be colours as '#rrggbb'"),
        (["tetrominoes", "--cell", "20"], "the canvas must be 98 pixels or more, not 35"),
        (["tetrominoes", "--size", "9"], "a canvas of 9 pixels; choose 35 to 1024"),
    ],
)
def test_what_does_not_go_is_told_in_one_line(options: list[str], message: str, tmp_path: Path) -> None:
    assert message in refused(pictolex("data", "make", *options, "-o", tmp_path / "a.npz"))
    assert not list(tmp_path.iterdir())
