"""Every setting, typed and validated. No torch here: `--help` and validation must be instant.

What can be chosen stands behind a `kind`; the factory of the room concerned turns it into an object.
"""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field


class Setting(BaseModel):
    """Base of all settings: frozen, and unknown names are errors."""

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)


class AlphaFormation(Setting):
    """Front-to-back alpha compositing: `sum_i P_i prod_{j<i} (1 - A_j)`."""

    kind: Literal["alpha"] = "alpha"
    sharpness: float = Field(1.0, ge=1.0, le=64.0, description="slope of the squash on resampled alpha; 1 = plain resampling")


class AdditiveFormation(Setting):
    """The sum of the elements."""

    kind: Literal["additive"] = "additive"


class VoxelFormation(Setting):
    """3D densities seen through orthographic views."""

    kind: Literal["voxel"] = "voxel"


FormationSetting = Annotated[AlphaFormation | AdditiveFormation | VoxelFormation, Field(discriminator="kind")]


class Placement(Setting):
    """What transformations an element may have."""

    rotations: int = Field(1, ge=1, le=720, description="rotations tried, uniform in [0, 2 pi)")
    scales: tuple[float, ...] = Field((1.0,), min_length=1, description="scales tried")
    mirror: bool = Field(False, description="also try every concept mirrored left-right")
    continuous: bool = Field(False, description="polish position (and rotation, scale where several are tried) between grid points")


class NoColour(Setting):
    """Elements show their concept's own colours."""

    kind: Literal["none"] = "none"


class HueColour(Setting):
    """Elements take one of the dictionary's hues."""

    kind: Literal["hues"] = "hues"
    count: int = Field(6, ge=1, le=256)


class FreeColour(Setting):
    """Each element's colour is solved in closed form."""

    kind: Literal["free"] = "free"


ColourSetting = Annotated[NoColour | HueColour | FreeColour, Field(discriminator="kind")]


class NoBackground(Setting):
    """Black behind everything."""

    kind: Literal["none"] = "none"


class PlainBackground(Setting):
    """One learned colour for all images."""

    kind: Literal["plain"] = "plain"


class FreeBackground(Setting):
    """One plain colour per image, found with its elements."""

    kind: Literal["free"] = "free"


class ImageBackground(Setting):
    """One learned image for all images."""

    kind: Literal["image"] = "image"


BackgroundSetting = Annotated[NoBackground | PlainBackground | FreeBackground | ImageBackground, Field(discriminator="kind")]


class SquaredError(Setting):
    """Minimise the squared error (the true objective)."""

    kind: Literal["squared"] = "squared"


class Correlation(Setting):
    """Maximise the normalised cross-correlation (the paper's objective)."""

    kind: Literal["ncc"] = "ncc"


ObjectiveSetting = Annotated[SquaredError | Correlation, Field(discriminator="kind")]


class Rounds(Setting):
    """The paper's greedy rounds: one element at a time from the front, then shuffling."""

    kind: Literal["rounds"] = "rounds"
    rounds: int = Field(3, ge=1, le=100)
    shuffle: bool = True
    policy: Literal["ours", "paper"] = Field("ours", description="paper: no price, NCC decides in shuffling too")


class Propose(Setting):
    """Propose, select, polish: many candidates, the best sets of them, all parameters polished together."""

    kind: Literal["propose"] = "propose"
    passes: int = Field(2, ge=1, le=20, description="searches in the context of the best answer, the first one included")
    candidates: int = Field(24, ge=1, le=4096, description="candidates kept per (concept, scale) group and ranking")
    context_candidates: int = Field(8, ge=1, le=4096, description="the same in later passes")
    beam: int = Field(64, ge=1, le=4096, description="sets of elements kept while growing")
    finalists: int = Field(8, ge=1, le=512, description="sets of each size that are polished")
    polish_steps: int = Field(5, ge=0, le=200)


StrategySetting = Annotated[Rounds | Propose, Field(discriminator="kind")]


class Search(Setting):
    """How the grid is searched."""

    method: Literal["auto", "coarse", "exhaustive"] = Field("auto", description="coarse: coarse-to-fine; auto: by size of the kernels")
    candidates: int = Field(64, ge=1, le=4096, description="candidates taken from the coarse level to the next")


class NoEvolution(Setting):
    """The concepts that learning starts with are those it ends with."""

    kind: Literal["none"] = "none"


class PaperEvolution(Setting):
    """The paper's thresholds: split what is used often and fits badly, remove what is used rarely."""

    kind: Literal["paper"] = "paper"
    every: int = Field(1, ge=1, le=1000, description="epochs between two evolutions")
    often: float = Field(0.25, ge=0, le=10, description="uses, in shares of a concept's fair part, to be kept or split")
    quality: float = Field(0.95, ge=-1, le=1, description="paper: concepts that fit worse than this (NCC under their own mask) are split")


class PaysEvolution(Setting):
    """One currency: what saves more squared error than it costs is kept; doubles are merged, what recurs unexplained is added."""

    kind: Literal["pays"] = "pays"
    every: int = Field(1, ge=1, le=1000)
    worth: float = Field(4.0, ge=0, le=1e6, description="pays: elements' prices that a concept must save in all")


EvolutionSetting = Annotated[NoEvolution | PaperEvolution | PaysEvolution, Field(discriminator="kind")]


class Learning(Setting):
    """The dictionary step and its loop."""

    concepts: int = Field(8, ge=1, le=100_000, description="most concepts")
    initial: int | None = Field(None, ge=1, description="concepts to start with; none: as many as recur")
    start: Literal["pieces", "noise"] = Field("pieces", description="start from pieces that recur, or from nothing known")
    concept_size: int = Field(16, ge=1, le=4096, description="largest side of a concept's patch in pixels")
    colour_shapes: bool = Field(False, description="concepts hold their own RGB (else luminance)")
    epochs: int = Field(10, ge=0, le=100_000)
    group: int = Field(64, ge=1, le=65_536, description="images whose elements are found before the dictionary moves")
    batch: int = Field(8, ge=1, le=65_536, description="images per gradient step")
    optimizer: Literal["solve", "adadelta", "sgd", "adam", "rmsprop"] = Field(
        "solve", description="solve: least squares in closed form, no rate; the others: gradient steps"
    )
    rate: float = Field(1.0, gt=0, le=1000, description="learning rate of the gradient steps")
    crisp: float = Field(0.0, ge=0, le=100, description="squared error charged for alpha between clear and opaque, A (1 - A) a pixel")
    warm: bool = Field(True, description="keep each image's elements between epochs and search again only what fits badly")
    starts: int = Field(1, ge=1, le=32, description="cheap starts that are tried; the best goes on")
    limit: int | None = Field(None, ge=1, description="use at most this many images")
    fixed_images: int = Field(4, ge=0, le=1000, description="images whose elements are kept in the history")


class Settings(Setting):
    """Everything that decides a run."""

    formation: FormationSetting = AlphaFormation()
    placement: Placement = Placement()
    colour: ColourSetting = NoColour()
    background: BackgroundSetting = NoBackground()
    objective: ObjectiveSetting = SquaredError()
    strategy: StrategySetting = Propose()
    search: Search = Search()
    learning: Learning = Learning()
    evolution: EvolutionSetting = PaysEvolution()
    layers: int = Field(3, ge=1, le=5000, description="most elements in one image (of a tile, in large images)")
    price: float = Field(1.0, ge=0, description="squared error that each element must save")
    tile: int = Field(192, ge=16, le=8192, description="images with a longer side are decomposed in tiles of this size")
    seed: int = Field(0, ge=0, lt=2**63)
    device: str = Field("auto", description="auto, cpu, cuda, cuda:1, ...")
    workers: int = Field(0, ge=0, le=1024, description="batches decomposed side by side on a CPU; 0 = one a core, at most 4")
    memory: int = Field(512 * 2**20, ge=2**24, description="bytes a search may use for its working arrays")
