"""Which device computes: chosen automatically, honoured when given."""

from __future__ import annotations

import torch

from pictolex.errors import SettingError


def choose_device(name: str) -> torch.device:
    """`auto`: a CUDA device where there is one, else the CPU."""
    if name == "auto":
        return torch.device("cuda" if torch.cuda.is_available() else "cpu")
    try:
        device = torch.device(name)
    except RuntimeError:
        raise SettingError(f"the device {name!r} is not known; use auto, cpu, cuda or cuda:0") from None
    if device.type not in ("cpu", "cuda"):
        raise SettingError(f"the device {name!r} is not supported; use auto, cpu, cuda or cuda:0")
    if device.type == "cuda" and (not torch.cuda.is_available() or (device.index or 0) >= torch.cuda.device_count()):
        raise SettingError(
            f"the device {name!r} is not there: this PyTorch finds {torch.cuda.device_count()} CUDA devices; use --device cpu"
        )
    return device
