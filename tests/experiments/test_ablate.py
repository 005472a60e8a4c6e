"""Ablations: variants that differ in what they say, measures that count right, a baseline that descends, results kept whole."""

import json
import math
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from PIL import Image

from pictolex.api import Learned
from pictolex.decompose import Engine, Layout, Problem, Progress
from pictolex.decompose.parallel import one_thread
from pictolex.errors import InputError, SettingError
from pictolex.experiments import ablate, ablate_figures, ablate_gradient
from pictolex.experiments.ablate import ABLATIONS, Order, Report, Watch, known_ablation, run_ablation, table
from pictolex.experiments.ablate_base import ARI, MIXED, MSE, Ablation, Found, Images, Job, Kept, Variant
from pictolex.experiments.ablate_gradient import Compositing, Descent, centred, composited
from pictolex.experiments.ablate_images import open_images
from pictolex.experiments.ablate_likeness import likeness
from pictolex.experiments.ablate_made import FACES, MADE, MadeSource, face_patches
from pictolex.experiments.ablate_measured import learned_from, with_true_concepts
from pictolex.experiments.ablate_mixing import effective, mixed, mixing
from pictolex.experiments.ablate_store import load, place, save
from pictolex.experiments.bench_base import DATA
from pictolex.experiments.bench_settings import full_size
from pictolex.experiments.reproduce_base import Step
from pictolex.experiments.reproduce_seed import Clock, OutOfTimeError
from pictolex.formation import pack, sample
from pictolex.model import Concept, Dictionary
from pictolex.presets import load_preset
from pictolex.settings import Placement, Settings
from pictolex.sources.synthetic import true_dictionary
from pictolex.sources.truth import open_truth


@pytest.fixture(autouse=True)
def generated(monkeypatch: pytest.MonkeyPatch) -> None:
    """Our generated images, whatever data sets are at hand."""
    monkeypatch.delenv(DATA, raising=False)


def a_job(variant: Variant, images: int = 2, seed: int = 0) -> Job:
    return Job(variant, seed, images, "cpu", Watch(), Clock(None))


def variant_of(ablation: str, name: str) -> Variant:
    return next(variant for variant in known_ablation(ablation).variants if variant.name == name)


# --- the ablations -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ABLATIONS)
def test_variants_differ_in_name_and_in_settings(name: str) -> None:
    ablation = known_ablation(name)
    assert ablation.name == name and ablation.question and ablation.images >= 1
    names = [variant.name for variant in ablation.variants]
    assert len(set(names)) == len(names) > 1
    asked = set()
    for variant in ablation.variants:
        job = a_job(variant, images=1)
        settings = job.settings(open_images(job))
        assert settings.seed == 0 and settings.device == "cpu" and settings.learning.limit is None
        asked.add((variant.images, variant.learn, variant.method, settings.model_dump_json()))
    assert len(asked) == len(names)


def test_changes_reach_the_settings() -> None:
    base = load_preset("dsprites-bin")
    changes = {"strategy": {"kind": "rounds", "rounds": 2}, "learning.concepts": 5, "price": 0.25}
    made = Variant("x", "dsprites-bin", changes).settings(base, 7, "cpu")
    assert made.strategy.kind == "rounds" and made.strategy.rounds == 2
    assert made.learning == base.learning.model_copy(update={"concepts": 5})
    assert (made.price, made.seed, made.placement) == (0.25, 7, base.placement)


def test_an_unknown_name_is_told_with_the_nearest() -> None:
    with pytest.raises(InputError, match="unknown ablation 'round': did you mean rounds"):
        known_ablation("round")
    with pytest.raises(InputError, match="the ablations are evolution, optimizers"):
        known_ablation("xyz")


def test_true_dictionaries_are_tried_at_their_own_size() -> None:
    settings = Settings(placement=Placement(rotations=4, scales=(0.25, 0.5)))
    assert full_size(settings).placement == Placement(rotations=4, scales=(0.5, 1.0))


# --- sets made for this --------------------------------------------------------------------------------------------------


def test_faces_are_nearly_alike_but_not_the_same() -> None:
    table = likeness(MADE["faces"].dictionary().concepts, Placement())
    others = table[~np.eye(len(FACES), dtype=bool)]
    assert len(FACES) == 8 and others.min() > 0.9 and others.max() < 0.98


def test_faces_are_their_patches_at_the_places_that_the_truth_tells() -> None:
    source = MadeSource("faces", 5, 3)
    truth = open_truth(source)
    assert truth is not None and truth.class_count == 8
    for i in range(5):
        canvas = np.zeros(source.shape(i)[:2])
        rows, mask = truth.placements(i), truth.masks(i)
        assert rows is not None and mask is not None
        for kind, y, x, _ in rows:
            patch = face_patches()[kind]
            assert canvas[y : y + patch.shape[0], x : x + patch.shape[1]][patch > 0].max() == 0, "faces hide nothing"
            canvas[y : y + patch.shape[0], x : x + patch.shape[1]] += patch
        assert np.abs(source.read(i).pixels[..., 0] - canvas).max() < 1 / 255
        assert sorted(np.unique(mask).tolist()) == [0, 1, 2, 3]
    assert not np.array_equal(source.read(0).pixels, source.read(1).pixels)
    assert np.array_equal(source.read(0).pixels, MadeSource("faces", 9, 3).read(0).pixels)


def test_occluded_pieces_hide_each_other_and_can_be_found() -> None:
    source = MadeSource("tetrominoes-occluded", 12, 1)
    truth, known = open_truth(source), true_dictionary("tetrominoes")
    assert truth is not None and truth.factors is not None
    hidden = 0
    for i in range(12):
        mask = truth.masks(i)
        rows = truth.factors(i)["factors"]
        assert mask is not None
        for k, (shape, _, y, x) in enumerate(rows.tolist()):
            inside = known.concepts[shape].alpha > 0
            here = mask[y : y + inside.shape[0], x : x + inside.shape[1]][inside]
            assert (here >= k + 1).all(), "later pieces are in front"
            hidden += int((here > k + 1).sum())
    assert hidden > 100
    found = with_true_concepts(a_job(variant_of("shuffling", "tetrominoes-occluded-ours-shuffled"), 4), a_set("tetrominoes-occluded", 4))
    assert found.figures["mse"] is not None and found.figures["mse"] < 1e-3


def a_set(name: str, count: int) -> Images:
    return open_images(a_job(Variant("x", name), count))


# --- measures ------------------------------------------------------------------------------------------------------------


def test_effective_numbers() -> None:
    counts = np.array([[6, 0, 0], [3, 3, 0], [1, 1, 1], [0, 0, 0]])
    assert np.allclose(effective(counts)[:3], [1, 2, 3]) and np.isnan(effective(counts)[3])
    assert mixed(counts) == pytest.approx((6 * 1 + 6 * 2 + 3 * 3) / 15)
    assert mixed(np.zeros((2, 3), np.int64)) is None
    shares = np.array([0.75, 0.25])
    assert effective(np.array([[3, 1]]))[0] == pytest.approx(math.exp(-(shares * np.log(shares)).sum()))


def test_mixing_counts_what_elements_show() -> None:
    images = a_set("faces", 6)
    known = Learned(images.dictionary, images.base, None)
    assert images.truth is not None and images.truth.kinds is not None
    right = mixing(known, Engine(known.dictionary, known.settings).run(images.measure), images.truth)
    assert right is not None and right.sum() == 18 and np.array_equal(right, np.diag(right.diagonal())), "each face is its own concept"
    one = Learned(Dictionary((images.dictionary.concepts[0],)), images.base, None)
    counts = mixing(one, Engine(one.dictionary, one.settings).run(images.measure), images.truth)
    assert counts is not None and np.array_equal(counts, right.sum(axis=0, keepdims=True)), "one concept stands for all faces"
    elsewhere = mixing(
        known, Engine(known.dictionary, known.settings).run(images.measure), replace(images.truth, kinds=images.truth.kinds + 5)
    )
    assert elsewhere is not None and np.array_equal(elsewhere, right), "classes may have any numbers"
    unknown = replace(images.truth, kinds=None)
    assert mixing(known, Engine(known.dictionary, known.settings).run(images.measure), unknown) is None


def bar(height: int, width: int, side: int = 13) -> Concept:
    alpha = np.zeros((side, side), np.float32)
    top, left = (side - height) // 2, (side - width) // 2
    alpha[top : top + height, left : left + width] = 1
    return Concept(0, np.ones((side, side, 1), np.float32), alpha)


def by_hand(a: Concept, b: Concept) -> float:
    """The best normalised correlation over whole shifts, by a loop."""
    x, y = (c.shape[..., 0] * c.alpha for c in (a, b))
    wide = np.pad(y, max(x.shape))
    norm = math.sqrt(float((x**2).sum() * (y**2).sum()))
    rows, columns = (range(wide.shape[k] - x.shape[k] + 1) for k in (0, 1))
    return max(float((x * wide[r : r + x.shape[0], c : c + x.shape[1]]).sum()) / norm for r in rows for c in columns)


def test_likeness_is_the_best_correlation_over_the_placements_in_use() -> None:
    standing, lying, small = bar(9, 3), bar(3, 9), bar(5, 3, side=8)
    plain = likeness([standing, lying, small], Placement())
    for i, a in enumerate((standing, lying, small)):
        for j, b in enumerate((standing, lying, small)):
            assert plain[i, j] == pytest.approx(by_hand(a, b), abs=1e-5)
    turned = likeness([standing, lying], Placement(rotations=4))
    assert plain[0, 1] < 0.4 and turned[0, 1] == pytest.approx(1, abs=1e-5)
    assert np.array_equal(plain, plain.T) and (plain.diagonal() == 1).all()


def test_likeness_knows_scales_one_way_or_the_other() -> None:
    large, little = bar(12, 8, side=16), bar(6, 4, side=8)
    assert likeness([large, little], Placement())[0, 1] < 0.8
    assert likeness([large, little], Placement(scales=(0.5, 1.0)))[0, 1] > 0.9
    assert likeness([little, large], Placement(scales=(0.5, 1.0)))[0, 1] > 0.9


# --- differentiable compositing ------------------------------------------------------------------------------------------


def two_shapes() -> tuple[Dictionary, Settings]:
    known = true_dictionary("dsprites-bin")
    place = Placement(rotations=40, scales=(0.5, 1.0), continuous=True)
    return Dictionary(known.concepts[:2]), Settings(placement=place, layers=2, price=3.0, device="cpu")


def a_problem(dictionary: Dictionary, poses: Sequence[tuple[int, float, float, float, float]], side: int = 48) -> Problem:
    """An image of white shapes (concept, x, y, rotation, scale), none over another."""
    which = torch.tensor([pose[0] for pose in poses])
    pose = torch.tensor([(x, y, turn, math.log(scale), 0) for _, x, y, turn, scale in poses])
    image = sample(pack(dictionary.concepts), which, pose, side, side)[:, :1].sum(0, keepdim=True).clamp(0, 1)
    return Problem(image, torch.ones_like(image), torch.zeros_like(image))


def test_gradients_find_what_was_placed() -> None:
    dictionary, settings = two_shapes()
    problem = a_problem(dictionary, [(0, 14.0, 15.0, 0.4, 0.7), (1, 33.0, 30.0, 1.1, 0.8)])
    stage = Engine(dictionary, settings).ready(1)[0]
    with one_thread():
        layout = Compositing(stage, dictionary, Descent(starts=8)).solve(problem)
    order = layout.pose[0, :, 0].argsort()
    assert layout.concept[0, order].tolist() == [0, 1]
    assert layout.pose[0, order, :2] == pytest.approx(torch.tensor([[14.0, 15.0], [33.0, 30.0]]), abs=0.5)
    assert layout.pose[0, order, 3].exp().tolist() == pytest.approx([0.7, 0.8], abs=0.04)
    assert float(stage.error(problem, stage.layers(layout, 48, 48))) < 0.05 * float(problem.image.square().sum())


def test_more_starts_are_never_worse() -> None:
    dictionary, settings = two_shapes()
    problem = a_problem(dictionary, [(0, 14.0, 15.0, 0.4, 0.7), (1, 33.0, 30.0, 1.1, 0.8)])
    stage = Engine(dictionary, settings).ready(1)[0]

    def cost(starts: int) -> float:
        with one_thread():
            layout = Compositing(stage, dictionary, Descent(starts=starts, soft=15, hard=5)).solve(problem)
        return float(stage.error(problem, stage.layers(layout, 48, 48)) + settings.price * layout.count)

    costs = [cost(starts) for starts in (1, 20)]
    assert costs[1] < costs[0]


def test_an_empty_image_gets_no_elements() -> None:
    dictionary, settings = two_shapes()
    black = torch.zeros(2, 1, 40, 40)
    stage = Engine(dictionary, settings).ready(1)[0]
    layout = Compositing(stage, dictionary, Descent(starts=2, soft=3, hard=1)).solve(Problem(black, torch.ones_like(black), black))
    assert layout.concept.tolist() == [[-1, -1], [-1, -1]]


def test_elements_that_do_not_pay_are_taken_out() -> None:
    dictionary, settings = two_shapes()
    problem = a_problem(dictionary, [(0, 20.0, 20.0, 0.0, 0.8)])
    stage = Engine(dictionary, settings).ready(1)[0]
    pose = torch.tensor([[[20.0, 20.0, 0.0, math.log(0.8), 0.0]] * 2])
    twice = Layout(torch.zeros(1, 2, dtype=torch.long), pose, torch.full((1, 2), -1), torch.ones(1, 2, 1))
    once, energy = Compositing(stage, dictionary, Descent()).pruned(problem, twice)
    assert once.concept.tolist() == [[0, -1]]
    assert float(energy) == pytest.approx(float(stage.error(problem, stage.layers(once, 48, 48))) + settings.price)
    gone, energy = Compositing(stage, dictionary, Descent()).pruned(replace(problem, image=problem.image * 0), twice)
    assert gone.concept.tolist() == [[-1, -1]] and float(energy) == 0


def test_centred_patches_look_the_same() -> None:
    concepts = [bar(4, 9, side=12), bar(3, 3, side=7)]
    patches = pack(concepts)
    pose = torch.tensor([[20.5, 17.0, 0.0, 0.0, 0.0], [14.5, 9.5, 0.0, 0.0, 0.0]])
    plain, moved = (sample(p, torch.arange(2), pose, 32, 32) for p in (patches, centred(patches)))
    assert torch.equal(centred(patches).centre[0], centred(patches).centre[1])
    # Where a centre lies between pixels of the one frame and on a pixel of the other, the patch is blurred by half a pixel.
    assert float(plain.sum()) == pytest.approx(float(moved.sum()), rel=1e-4)
    assert float((plain[0] - moved[0]).abs().max()) < 1e-5


def test_compositing_is_told_as_the_engine_tells_it() -> None:
    images = a_set("dsprites-adv", 5)
    told: list[Progress] = []
    settings = full_size(images.base).model_copy(update={"device": "cpu"})
    quick = Descent(starts=2, soft=4, hard=2)
    two, one = (
        composited(images.dictionary, settings.model_copy(update={"workers": workers}), images.measure, quick, told.append)
        for workers in (2, 1)
    )
    assert len(two) == 5 and [d.index for d in two] == list(range(5)) and two[0].render().shape == (64, 64, 1)
    assert all(np.array_equal(two.columns[name], one.columns[name]) for name in ("concept", "x", "y"))
    assert [progress.done for progress in told[:3]] == [2, 4, 5] and told[2].total == 5
    other = composited(images.dictionary, settings, images.measure, replace(quick, seed=1))
    assert not np.array_equal(other.columns["x"], one.columns["x"])


def test_compositing_refuses_hues() -> None:
    known = true_dictionary("tetrominoes")
    with pytest.raises(InputError, match="a dictionary without hues"):
        composited(known, load_preset("tetrominoes"), MadeSource("tetrominoes-occluded", 1, 0), Descent())


# --- runs ----------------------------------------------------------------------------------------------------------------


class Quick:
    """An ablation whose variants are over at once; `during(job)` happens while one runs."""

    def __init__(self) -> None:
        self.jobs: list[tuple[str, int, int]] = []
        self.during: Callable[[Job], None] = lambda job: None
        self.drawn: list[int] = []
        variants = (
            Variant("few", "faces", {"learning.concepts": 1}, learn=2),
            Variant("many", "faces", {"learning.concepts": 9}, learn=20),
            Variant("known", "faces", random=False),
        )
        self.ablation = Ablation("quick", "Is it quick?", (ARI, MSE), variants, 20, self.run, self.draw)

    def run(self, job: Job, images: Images) -> Found:
        self.jobs.append((job.variant.name, job.seed, job.images))
        self.during(job)
        figures = {"ari_foreground": 0.5 + job.seed / 10, "mse": None if job.seed == 2 else 0.25}
        return Found(figures, {"errors": [1.0, math.nan]}, {"grid": np.arange(4, dtype=np.uint8)}, images.dictionary)

    def draw(self, kept: Sequence[Kept], folder: Path) -> list[str]:
        self.drawn.append(len(kept))
        return ["something is left out"]


def run(quick: Quick, out: Path, *seeds: int, said: list[str] | None = None, **changes: Any) -> Report:
    watch = Watch(say=(said if said is not None else []).append)
    budget = changes.pop("budget", None)
    return run_ablation(quick.ablation, Order(out, **{"device": "cpu", "watch": watch, **changes}), seeds=seeds, budget=budget)


def test_what_is_finished_is_kept_and_not_run_again(tmp_path: Path) -> None:
    quick, said = Quick(), list[str]()
    first = run(quick, tmp_path, 0)
    both = run(quick, tmp_path, 0, 1, said=said)
    assert quick.jobs == [("few", 0, 20), ("many", 0, 20), ("known", 0, 20), ("few", 1, 20), ("many", 1, 20)]
    assert both.results[0] == first.results[0] and any("few, seed 0: finished before, foreground ARI % 50.00" in text for text in said)
    row = both.rows[0]
    assert row.seeds == (0, 1) and row.figures["ari_foreground"].mean == pytest.approx(0.55)
    assert row.figures["ari_foreground"].deviation == pytest.approx(0.0707, abs=1e-4)
    assert both.rows[2].seeds == () and quick.drawn == [3, 5]
    assert "something is left out" in both.notes and "something is left out" in said


def test_the_table_says_what_is_known(tmp_path: Path) -> None:
    quick = Quick()
    report = run(quick, tmp_path, 0, 2)
    text = table(quick.ablation, report)
    assert text == (tmp_path / "quick" / "table.md").read_text()
    cells = {line.split("|")[1].strip(): [cell.strip() for cell in line.split("|")[2:-1]] for line in text.splitlines() if "|" in line}
    assert cells["variant"] == ["foreground ARI %", "MSE", "seeds"]
    assert cells["few"] == ["60.00 ± 14.14", "-", "0, 2"] and cells["known"] == ["50.00", "0.250000", "-"]
    told = json.loads((tmp_path / "quick" / "table.json").read_text())
    assert told["results"][0]["details"] == {"errors": [1.0, None]} and told["question"] == "Is it quick?"


def test_images_keep_out_what_learns_from_more(tmp_path: Path) -> None:
    quick = Quick()
    report = run(quick, tmp_path, 0, images=3)
    assert [name for name, _, _ in quick.jobs] == ["few", "known"]
    assert any("for all of them --images 20" in note for note in report.notes)
    quick.ablation = replace(quick.ablation, measured=5)
    run(quick, tmp_path / "other", 0)
    assert quick.jobs[2:] == [("few", 0, 5), ("many", 0, 5), ("known", 0, 5)]


def test_another_request_is_run_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    quick, said = Quick(), list[str]()
    run(quick, tmp_path, 0)
    run(quick, tmp_path, 0, images=21, said=said)
    assert len(quick.jobs) == 6 and any("kept from another request" in text for text in said)
    few = replace(quick.ablation.variants[0], changes={"learning.concepts": 2})
    quick.ablation = replace(quick.ablation, variants=(few,))
    run(quick, tmp_path, 0, images=21)
    assert len(quick.jobs) == 7
    monkeypatch.setattr("pictolex.experiments.ablate_store.__version__", "99.0")
    run(quick, tmp_path, 0, images=21)
    assert len(quick.jobs) == 8


@pytest.mark.parametrize("damage", [lambda data: data[: len(data) // 2], lambda data: data.replace(b"mse", b"mze"), lambda data: b""])
def test_a_damaged_result_is_told_and_run_again(damage: Callable[[bytes], bytes], tmp_path: Path) -> None:
    quick, said = Quick(), list[str]()
    run(quick, tmp_path, 0)
    path = tmp_path / "quick" / "few" / "seed-0.safetensors"
    path.write_bytes(damage(path.read_bytes()))
    assert len(run(quick, tmp_path, 0, said=said).results) == 3
    assert len(quick.jobs) == 4 and any("this seed is run again" in text for text in said)


def test_ctrl_c_keeps_what_is_finished(tmp_path: Path) -> None:
    quick = Quick()

    def interrupted(job: Job) -> None:
        if job.variant.name == "many":
            raise KeyboardInterrupt

    quick.during = interrupted
    with pytest.raises(KeyboardInterrupt):
        run(quick, tmp_path, 0)
    assert [path.parent.name for path in tmp_path.rglob("*.safetensors")] == ["few"]
    assert "few" in (tmp_path / "quick" / "table.md").read_text()
    quick.during = lambda job: None
    assert len(run(quick, tmp_path, 0).results) == 3
    assert [name for name, _, _ in quick.jobs] == ["few", "many", "many", "known"]


def test_what_the_budget_does_not_allow_is_left(tmp_path: Path) -> None:
    quick = Quick()

    def slow(job: Job) -> None:
        if job.variant.name == "many":
            time.sleep(0.3)
            job.clock.check()

    quick.during = slow
    report = run(quick, tmp_path, 0, budget=0.25)
    assert [one.variant for one in report.results] == ["few"]
    assert [one.variant for one in report.left] == ["many", "known"]
    assert "the budget was over" in report.left[0].reason and report.left[1].reason == "the budget is over"
    assert "left for the next call: many (seed 0): the budget was over" in table(quick.ablation, report)


def test_what_took_longer_than_is_left_is_not_begun(tmp_path: Path) -> None:
    quick, said = Quick(), list[str]()
    quick.during = lambda job: time.sleep(0.4)
    quick.ablation = replace(quick.ablation, variants=quick.ablation.variants[:1])
    report = run(quick, tmp_path, 0, 1, 2, budget=0.7, said=said)
    assert quick.jobs == [("few", 0, 20)] and [one.seed for one in report.left] == [1, 2]
    assert "it needs about" in report.left[0].reason and any("few, seed 1: left for the next call" in text for text in said)


def test_steps_tell_the_time_left(tmp_path: Path) -> None:
    quick, steps = Quick(), list[Step]()
    run_ablation(quick.ablation, Order(tmp_path, device="cpu", watch=Watch(step=steps.append)), seeds=(0,))
    assert [(step.number, step.total) for step in steps] == [(1, 3), (2, 3), (3, 3)]
    assert steps[0].title == "quick, few, seed 0" and steps[2].title == "quick, known"
    assert math.isinf(steps[0].seconds_left) and math.isfinite(steps[1].seconds_left)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"seeds": ()}, "--seeds is empty"),
        ({"seeds": (-1,)}, "-1 is negative"),
        ({"images": 0}, "--images 0"),
        ({"device": "abacus"}, "abacus"),
    ],
)
def test_refusals_come_before_any_work(changes: dict[str, Any], message: str, tmp_path: Path) -> None:
    quick = Quick()
    with pytest.raises((InputError, SettingError), match=message):
        run(quick, tmp_path / "out", *changes.pop("seeds", (0,)), **changes)
    assert not quick.jobs and not (tmp_path / "out").exists()


def test_a_result_comes_back_as_it_was(tmp_path: Path) -> None:
    job = a_job(variant_of("evolution", "pays-from-1"))
    images = open_images(job)
    found = Found({"mse": 0.125, "ari_foreground": None}, {"rows": [[1, 2]]}, {"a": np.eye(2)}, images.dictionary)
    save(job, images, found, 1.5, tmp_path)
    back = load(job, images, tmp_path)
    assert back is not None and place(job, tmp_path).name == "seed-0.safetensors"
    assert (back.found.figures, back.found.details, back.seconds) == (found.figures, found.details, 1.5)
    assert np.array_equal(back.found.arrays["a"], np.eye(2)) and back.settings == job.settings(images)
    assert back.found.dictionary is not None and [c.name for c in back.found.dictionary] == list(FACES)
    assert load(replace(job, seed=1), images, tmp_path) is None
    other = images.base.model_copy(update={"price": 7.0})
    assert load(job, replace(images, base=other), tmp_path) is None
    assert load(job, replace(images, learn=images.learn.take(slice(1))), tmp_path) is None


# --- what the ablations measure and draw ---------------------------------------------------------------------------------


def test_the_true_dictionary_is_measured_and_shown() -> None:
    variant = variant_of("rounds", "dsprites-bin-ours-1")
    job = a_job(variant, 3)
    found = with_true_concepts(job, open_images(job))
    assert found.figures[ARI.key] is not None and found.figures[ARI.key] > 0.5
    assert found.figures["ms_per_image"] is not None and found.figures["ms_per_image"] > 0
    assert found.figures["concept_l1"] is None and found.figures[MIXED] is not None
    assert found.arrays["image"].shape == found.arrays["rebuilt"].shape == found.arrays["instances"].shape == (3, 64, 64, 3)
    left = (found.arrays["image"].astype(float) - found.arrays["rebuilt"]) / 255
    assert found.arrays["mse"] == pytest.approx((left**2).mean(axis=(1, 2, 3)), abs=2e-3)


def test_learning_is_measured_with_its_curve() -> None:
    variant = replace(variant_of("evolution", "none-from-1"), learn=6)
    variant = replace(variant, changes={**variant.changes, "learning.epochs": 2})
    job = a_job(variant, 4)
    found = learned_from(job, open_images(job))
    assert found.figures["concepts"] == 1 and found.figures["images_learned"] == 6 and found.figures["images"] == 4
    assert len(found.details["errors"]) == 2 and found.details["uses"].keys() == {"0"}
    assert found.figures[MIXED] is not None and found.figures[MIXED] > 2, "one concept mixes many faces"
    assert np.array(found.details["mixing"]["counts"]).shape == (1, 8) and "ms_per_image" not in found.figures


def test_the_clock_ends_learning() -> None:
    job = replace(a_job(variant_of("evolution", "none-from-1"), 3), clock=Clock(0.0))
    with pytest.raises(OutOfTimeError):
        learned_from(job, open_images(job))


def some_kept(ablation: Ablation) -> list[Kept]:
    """Every variant of an ablation as if it were finished, with figures that differ."""
    kept = []
    rng = np.random.default_rng(0)
    for number, variant in enumerate(ablation.variants):
        job = a_job(variant, 1)
        images = open_images(job)
        figures = {figure.key: 0.1 + 0.01 * number for figure in ablation.columns}
        concepts = images.dictionary.concepts[:3]
        details = {
            "uses": {str(c.id): 3 - k for k, c in enumerate(concepts)},
            "errors": [0.5, 0.2 - 0.001 * number, None],
            "likeness": likeness(concepts, Placement()).tolist(),
            "true_concepts": [c.name or str(c.id) for c in concepts],
        }
        arrays = {name: rng.integers(0, 255, (2, 16, 16, 3)).astype(np.uint8) for name in ("image", "rebuilt", "instances")}
        found = Found(figures, details, {**arrays, "mse": np.array([0.1, 0.2])}, replace(images.dictionary, concepts=concepts))
        kept.append(Kept(variant, 0, 1.0, "here", images.data, job.settings(images), found))
    return kept


PICTURES = {
    "evolution": {"confusion.png", "dictionaries.png"},
    "optimizers": {"curves.png"},
    "rounds": {"dsprites-bin.png"},
    "shuffling": {"tetrominoes-occluded.png", "dsprites-color.png"},
    "strategy": {"dsprites-bin.png", "dsprites-adv.png"},
    "objective": {"tetrominoes.png", "dsprites-bin.png"},
    "data": {"curves.png"},
    "sizes": {"curves.png", "dictionaries-free-scale.png", "dictionaries-one-scale.png"},
}


@pytest.mark.parametrize("name", ABLATIONS)
def test_pictures_are_drawn(name: str, tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    ablation = known_ablation(name)
    kept = some_kept(ablation)
    assert ablation.draw(kept, tmp_path) == []
    drawn = {path.name for path in tmp_path.iterdir()}
    sheets = {f"{one.stem}-dictionary.png" for one in kept}
    assert PICTURES[name] <= drawn and drawn - PICTURES[name] in (set(), sheets)
    for path in tmp_path.iterdir():
        picture = np.asarray(Image.open(path).convert("RGB"))
        assert min(picture.shape[:2]) > 50 and len(np.unique(picture)) > 2
    assert ablation.draw(kept[:1], tmp_path / "one") == []


def test_without_matplotlib_the_rest_is_drawn_and_it_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ablate_figures, "find_spec", lambda name: None)
    ablation = known_ablation("evolution")
    told = ablation.draw(some_kept(ablation)[:2], tmp_path)
    assert told and all("pip install 'pictolex[plots]'" in text for text in told)
    assert {path.name for path in tmp_path.iterdir()} == {"none-from-1-seed-0-dictionary.png", "paper-from-1-seed-0-dictionary.png"}


def test_lines_of_a_curve_show_what_they_are_given(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The curves of `data` have a point for each number of images, at its figure."""
    pytest.importorskip("matplotlib")
    shown: list[ablate_figures.Panel] = []
    monkeypatch.setattr("pictolex.experiments.ablate_amounts.curves", lambda panels, path: shown.extend(panels) or [])
    ablation = known_ablation("data")
    ablation.draw(some_kept(ablation), tmp_path)
    assert [panel.title for panel in shown] == ["foreground ARI", "concept L1"]
    lines = {line.name: line for line in shown[0].lines}
    assert lines.keys() == {"tetrominoes", "dsprites-adv", "dsprites-bin"}
    assert list(lines["dsprites-adv"].x) == [16, 64, 256, 1024, 4500]
    assert list(lines["dsprites-adv"].y) == pytest.approx([0.15, 0.16, 0.17, 0.18, 0.19])


def test_one_real_ablation_from_end_to_end(tmp_path: Path) -> None:
    ablation = known_ablation("objective")
    report = run_ablation(ablation, Order(tmp_path, images=2, device="cpu"))
    assert [row.variant for row in report.rows] == [variant.name for variant in ablation.variants]
    assert any("not the shared set" in note for note in report.notes) and not report.left
    assert {"tetrominoes.png", "dsprites-bin.png", "table.md", "table.json"} <= {path.name for path in (tmp_path / "objective").iterdir()}
    again = run_ablation(ablation, Order(tmp_path, images=2, device="cpu"))
    assert again.results == report.results


def test_modules_named_in_the_table_are_there() -> None:
    assert {known_ablation(name).name for name in ABLATIONS} == set(ABLATIONS)
    assert ablate.DEFAULT_SEEDS == (0,) and ablate_gradient.BATCH["cpu"] == 2
