"""The independent scorer: it imports nothing of pictolex, and agrees with the metrics of pictolex."""

from __future__ import annotations

import ast
import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from pictolex.metrics import Tally, foreground_ari, mean_known
from pictolex.sources import open_source
from pictolex.sources.synthetic import write_npz
from pictolex.sources.truth import open_truth

SCRIPT = Path(__file__).parents[2] / "benchmarks" / "score_arrays.py"

pytest.importorskip("sklearn")


def run(*arguments: str) -> dict[str, float]:
    done = subprocess.run([sys.executable, "-I", str(SCRIPT), *arguments], check=True, capture_output=True, text=True)
    figures: dict[str, float] = json.loads(done.stdout)
    return figures


def test_it_imports_nothing_of_pictolex() -> None:
    tree = ast.parse(SCRIPT.read_text(encoding="utf-8"))
    imported = {alias.name for node in ast.walk(tree) if isinstance(node, ast.Import) for alias in node.names}
    imported |= {node.module or "" for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)}
    assert not any("pictolex" in name for name in imported)


@pytest.mark.parametrize("name", ["dsprites-color", "dsprites-bin", "voxel"])
def test_it_agrees_with_the_metrics(name: str, tmp_path: Path) -> None:
    truth_path = write_npz(tmp_path / "t.npz", name, 6 if name != "voxel" else 1)
    source, truth = open_source(truth_path), open_truth(truth_path)
    assert truth is not None
    with np.load(truth_path) as file:
        images, masks = file["images"], file["masks"]
    rng = np.random.default_rng(0)
    rebuilt = np.clip(images / 255 + rng.normal(0, 0.1, images.shape), 0, 1).astype(np.float32)
    labels = np.where(rng.random(masks.shape) < 0.2, 0, masks).astype(np.uint8)
    np.savez(tmp_path / "a.npz", rebuilt=rebuilt, masks=labels, alphas=np.zeros((6, 3, 4, 4), np.float16))
    figures = run(str(truth_path), str(tmp_path / "a.npz"))

    flat_rebuilt = rebuilt.reshape(len(source), *source.shape(0))
    flat_labels = labels.reshape(len(source), *source.shape(0)[:2])
    tally = Tally()
    aris = []
    for i in range(len(source)):
        tally.add(source.read(i).pixels, flat_rebuilt[i])
        mask = truth.masks(i)
        assert mask is not None
        aris.append(foreground_ari(mask, flat_labels[i]))
    ours = tally.figures()
    assert ours is not None
    assert figures["images"] == len(source)
    assert figures["mse"] == pytest.approx(ours.mse, abs=1e-6)
    assert figures["ari_foreground_fixed_order"] == pytest.approx(mean_known(aris), abs=1e-9)


def test_parts_empty_images_and_missing_masks(tmp_path: Path) -> None:
    images = np.zeros((4, 3, 3), np.uint8)
    masks = np.zeros((4, 3, 3), np.uint8)
    masks[2, 0, 0] = 1
    masks[3] = [[1, 1, 1], [2, 2, 2], [0, 0, 0]]
    np.savez(tmp_path / "t.npz", images=images, masks=masks)
    np.savez(tmp_path / "a.npz", rebuilt=np.zeros((3, 3, 3), np.float32), masks=masks[1:])
    figures = run(str(tmp_path / "t.npz"), str(tmp_path / "a.npz"), "--part", "1:")
    assert figures == {"images": 3, "mse": 0.0, "ari_foreground_fixed_order": 1.0, "ari_images": 2}
    np.savez(tmp_path / "t.npz", images=images[1:])
    assert run(str(tmp_path / "t.npz"), str(tmp_path / "a.npz"))["ari_foreground_fixed_order"] is None


def test_opacity_is_on_mid_grey(tmp_path: Path) -> None:
    images = np.zeros((1, 2, 2, 4), np.uint8)
    images[0, 0, 0, 3] = 255
    np.savez(tmp_path / "t.npz", images=images)
    np.savez(tmp_path / "a.npz", rebuilt=np.ones((1, 2, 2, 3), np.float32), masks=np.zeros((1, 2, 2), np.uint8))
    assert run(str(tmp_path / "t.npz"), str(tmp_path / "a.npz"))["mse"] == pytest.approx(0.25)
