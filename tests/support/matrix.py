"""How much of a matrix is run: the short way every time, the long way with `--long`."""

from collections.abc import Sequence
from typing import TypeVar

T = TypeVar("T")
_asked = {"long": False}


def ask(*, long: bool) -> None:
    """Note what the run was asked for; before any test is collected."""
    _asked["long"] = long


def chosen(short: Sequence[T], long: Sequence[T]) -> Sequence[T]:
    """The values to parametrize with: `short`, or `long` in a run with `--long`."""
    return long if _asked["long"] else short
