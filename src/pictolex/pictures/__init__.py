"""Pictures of what was learned and found, made with Pillow alone."""

from pictolex.pictures.canvas import save_png
from pictolex.pictures.layers import Explained, layers_picture
from pictolex.pictures.sheet import dictionary_sheet

__all__ = ["Explained", "dictionary_sheet", "layers_picture", "save_png"]
