"""The error that means: something the user gave cannot be used."""

from __future__ import annotations


class InputError(ValueError):
    """Something the user gave cannot be used; the message names it and the accepted form."""
