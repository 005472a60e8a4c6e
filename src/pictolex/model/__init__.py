"""What is learned and found: dictionaries, elements, decompositions, collections, and their files."""

from pictolex.model.collection import Collection
from pictolex.model.concept import Concept
from pictolex.model.decomposition import Decomposition
from pictolex.model.dictionary import Background, Dictionary
from pictolex.model.element import Element
from pictolex.model.files import SkippedWarning, atomic, load_dictionary, save_dictionary
from pictolex.model.lineage import Event, Lineage
from pictolex.model.sprites import load_any, read_sprites, write_sprites

__all__ = [
    "Background",
    "Collection",
    "Concept",
    "Decomposition",
    "Dictionary",
    "Element",
    "Event",
    "Lineage",
    "SkippedWarning",
    "atomic",
    "load_any",
    "load_dictionary",
    "read_sprites",
    "save_dictionary",
    "write_sprites",
]
