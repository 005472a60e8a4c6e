"""Errors a user can act on: one line that names the thing that was wrong and the fix."""

from __future__ import annotations


class PictolexError(Exception):
    """The base of all of ours; the command line prints it as one line and exits with code 2."""


class InputError(PictolexError):
    """An image, folder, array or name given by the user that cannot be used."""


class FormatError(PictolexError):
    """A file of ours that is truncated, tampered with, or of an unknown version."""


class SettingError(PictolexError):
    """A setting with a wrong name, type or value."""


class OutputError(PictolexError):
    """Something that could not be written."""


class MissingExtraError(PictolexError):
    """An optional package that is not installed; the message names the extra to install."""
