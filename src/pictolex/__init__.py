"""Pictolex learns the visual vocabulary of a set of images.

    import pictolex

    run = pictolex.learn(images, preset="tetrominoes")  # a run: dictionary, elements, settings
    found = pictolex.decompose(run, other_images)  # a Collection: the elements of each image
    again = pictolex.load("run")

Importing this package imports nothing heavy: each name is fetched when it is first used.
"""

from __future__ import annotations

import sys
from importlib import import_module
from types import ModuleType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pictolex.api import Vocabulary, decompose, load
    from pictolex.learn import learn
    from pictolex.model import Decomposition, Dictionary

__version__ = "0.1.0"
__all__ = ["Decomposition", "Dictionary", "Vocabulary", "__version__", "decompose", "learn", "load"]

_PLACES = {"load": "pictolex.api", "Vocabulary": "pictolex.api", "Dictionary": "pictolex.model", "Decomposition": "pictolex.model"}
# Two rooms bear the name of what they do: the package `pictolex.learn` can be called, and is the function `learn` then.
_CALLED = {"learn": "pictolex.learn", "decompose": "pictolex.api"}


class _CallablePackage(ModuleType):
    """A package that is also the function of its name."""

    def __call__(self, *args: Any, **keywords: Any) -> Any:
        name = self.__name__.rpartition(".")[2]
        return getattr(import_module(_CALLED[name]), name)(*args, **keywords)


class _Pictolex(ModuleType):
    """This package: makes `pictolex.learn` and `pictolex.decompose` callable however they came to be imported."""

    def __setattr__(self, name: str, value: Any) -> None:
        if name in _CALLED and type(value) is ModuleType:
            value.__class__ = _CallablePackage
        super().__setattr__(name, value)

    def __getattr__(self, name: str) -> Any:
        if name in _CALLED:
            return import_module(f"pictolex.{name}")
        if name in _PLACES:
            return getattr(import_module(_PLACES[name]), name)
        raise AttributeError(f"module 'pictolex' has no attribute {name!r}")

    def __dir__(self) -> list[str]:
        return sorted({*super().__dir__(), *__all__})


sys.modules[__name__].__class__ = _Pictolex
