"""How elements become images: one interface, one module per formation, and the reference they are tested against."""

from __future__ import annotations

from collections.abc import Callable

from pictolex.formation.additive import Additive
from pictolex.formation.alpha import Alpha
from pictolex.formation.base import Context, Form, Formation, Forms, paint
from pictolex.formation.transform import Patches, pack, sample, slopes
from pictolex.formation.voxel import Voxel
from pictolex.settings import AdditiveFormation, AlphaFormation, VoxelFormation

__all__ = ["Additive", "Alpha", "Context", "Form", "Formation", "Forms", "Patches", "Voxel", "create", "pack", "paint", "sample", "slopes"]

_MAKERS: dict[str, Callable[..., Formation]] = {
    "alpha": lambda setting, channels: Alpha(channels, setting.sharpness),
    "additive": lambda setting, channels: Additive(channels),
}


def create(setting: AlphaFormation | AdditiveFormation | VoxelFormation, shape_channels: int) -> Formation:
    """The formation that a setting names, for concepts with so many shape channels."""
    return _MAKERS[setting.kind](setting, shape_channels)
