"""Image files through Pillow: what a header promises, and pixels from any mode (palettes, 16 bit, opacity, EXIF turned)."""

from __future__ import annotations

import struct
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from pictolex.errors import InputError, MissingExtraError
from pictolex.sources.image import Image, as_image

if TYPE_CHECKING:
    from PIL.Image import Image as PillowImage

_LOSSLESS = (".png", ".apng", ".gif", ".bmp", ".dib", ".tif", ".tiff", ".ppm", ".pgm", ".pbm", ".pnm", ".tga", ".ico", ".pcx", ".sgi")
SUFFIXES = frozenset((*_LOSSLESS, ".jpg", ".jpeg", ".jpe", ".jfif", ".webp", ".jp2", ".avif"))
VIDEO_SUFFIXES = frozenset((".mp4", ".mov", ".avi", ".mkv", ".webm", ".m4v", ".mpg", ".mpeg", ".wmv"))

_GREY_MODES = frozenset(("1", "L", "LA", "La", "I;16", "I;16L", "I;16B", "I;16N", "I", "F"))
_ANIMATED = frozenset(("GIF", "WEBP", "TIFF", "PNG", "AVIF"))
_ORIENTATION_TAG = 0x0112
_PNG_MAGIC = b"\x89PNG\r\n\x1a\n"
_JPEG_TAIL = 4096


@dataclass(frozen=True)
class Header:
    """What a file holds: frames of height x width, grey (1) or colour (3)."""

    height: int
    width: int
    channels: int
    frames: int


@contextmanager
def pillow_errors(name: str) -> Iterator[None]:
    """Pillow's many kinds of failure as one line that names the file."""
    try:
        from PIL import Image as Pillow
        from PIL import UnidentifiedImageError
    except ImportError:
        raise MissingExtraError(f"{name}: reading image files needs pillow; run: pip install pillow") from None
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    except UnidentifiedImageError:
        raise InputError(f"{name}: not an image, whatever its name says; remove it or save it anew") from None
    except FileNotFoundError:
        raise InputError(f"{name}: no such file; check the path") from None
    except PermissionError:
        raise InputError(f"{name}: may not be read; change its permissions") from None
    except Pillow.DecompressionBombError:
        limit = 2 * (Pillow.MAX_IMAGE_PIXELS or 0) // 10**6
        raise InputError(f"{name}: more than {limit} million pixels; cut it into parts") from None
    except (OSError, SyntaxError, ValueError, EOFError, IndexError, TypeError, struct.error) as error:
        reason = (str(error).splitlines() or [type(error).__name__])[0]
        raise InputError(f"{name}: damaged or truncated ({reason}); fetch or save it again") from None


def open_file(path: Path) -> PillowImage:
    """A Pillow image that holds no file handle."""
    from PIL import Image as Pillow

    return Pillow.open(BytesIO(path.read_bytes()))


def read_header(path: Path, name: str) -> Header:
    """Sizes without decoding; a file that is cut short is found out here, so that it can be left out before work begins."""
    with pillow_errors(name):
        from PIL import Image as Pillow

        if path.stat().st_size == 0:
            raise InputError(f"{name}: an empty file; remove it or save it anew")
        with Pillow.open(path) as image:
            frames = int(getattr(image, "n_frames", 1)) if image.format in _ANIMATED else 1
            height, width = image.height, image.width
            if _orientation(image) >= 5:
                height, width = width, height
            grey = image.mode in _GREY_MODES and image.format != "GIF"
            header = Header(height, width, 1 if grey else 3, frames)
            if not _complete(path, image.format or ""):
                for frame in range(frames):
                    image.seek(frame)
                    decode(image, name)
    return header


def decode(image: PillowImage, name: str, channels: int | None = None) -> Image:
    """The current frame as an Image: straight colour, opacity where the file has it, turned upright as its EXIF says."""
    orientation = _orientation(image)
    array: NDArray[Any]
    if image.mode.startswith("I;16"):
        array = np.asarray(image).astype(np.uint16)
    elif image.mode == "I":
        array = _from_int32(np.asarray(image), name)
    elif image.mode == "F":
        array = np.asarray(image)
    else:
        clear = image.mode in ("LA", "La", "PA", "RGBA", "RGBa") or "transparency" in image.info
        grey = image.mode in _GREY_MODES and image.format != "GIF"
        array = np.asarray(image.convert(("LA" if clear else "L") if grey else ("RGBA" if clear else "RGB")))
    return as_image(_upright(array, orientation), name, channels=channels)


def _upright(array: NDArray[Any], orientation: int) -> NDArray[Any]:
    """An (h, w, ...) array turned and flipped as EXIF's orientations 1 to 8 ask for."""
    if orientation >= 5:
        array = array.swapaxes(0, 1)
    if orientation in (3, 4, 7, 8):
        array = array[::-1]
    if orientation in (2, 3, 6, 7):
        array = array[:, ::-1]
    return array


def _from_int32(array: NDArray[Any], name: str) -> NDArray[Any]:
    """32-bit integers hold 16-bit greys in practice; anything larger has no known scale."""
    if array.size and (array.min() < 0 or array.max() > 65535):
        raise InputError(f"{name}: 32-bit values from {array.min()} to {array.max()}; save it with 8 or 16 bits a channel")
    return array.astype(np.uint16)


def _orientation(image: PillowImage) -> int:
    """The EXIF orientation, 1 to 8. Only from data before the pixels: asking Pillow for more would decode a PNG."""
    if image.format == "PNG" and "exif" not in image.info:
        return 1
    value = image.getexif().get(_ORIENTATION_TAG, 1)
    return value if isinstance(value, int) and 1 <= value <= 8 else 1


def _complete(path: Path, kind: str) -> bool:
    """Whether a file surely ends where it should; False means: decode it to know."""
    if kind == "PNG":
        return _png_complete(path)
    if kind in ("JPEG", "MPO"):
        with path.open("rb") as file:
            file.seek(max(0, path.stat().st_size - _JPEG_TAIL))
            return b"\xff\xd9" in file.read()
    return False


def _png_complete(path: Path) -> bool:
    """Walk the chunks of a PNG by their lengths to its end mark."""
    size = path.stat().st_size
    with path.open("rb") as file:
        if file.read(8) != _PNG_MAGIC:
            return False
        while True:
            head = file.read(8)
            if len(head) < 8:
                return False
            length, kind = struct.unpack(">I4s", head)
            if kind == b"IEND":
                return True
            file.seek(length + 4, 1)
            if file.tell() > size:
                return False
