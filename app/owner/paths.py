"""Names of notes: any spelling of a path becomes one root and one canonical key.

The key is what the store holds and compares, so two spellings of a path can never be two
notes, and no spelling reaches out of its root.
"""

import re
import unicodedata
from dataclasses import dataclass
from typing import Final

from app.errors.callers import NotFoundError
from app.errors.inputs import InvalidPathError

USER_MEMORY: Final = "user-memory"
"""The root of the caller's own notes."""

SHARED_MEMORY: Final = "shared-memory"
"""The root of the group's notes."""

MAX_NAME_BYTES: Final = 255
MAX_DEPTH: Final = 32
MAX_PATH_BYTES: Final = 4096

_ROOTS = frozenset({USER_MEMORY, SHARED_MEMORY})

# Paths that are canonical as they stand: printable ASCII, no backslash, no component that
# is empty or begins with a dot. Nearly every path of nearly every request is one of these.
_NAME = r"[ -\-0-\[\]-~][ -.0-\[\]-~]{0,254}+"
_CANONICAL = re.compile(rf"(?:{USER_MEMORY}|{SHARED_MEMORY})(?:/{_NAME}){{0,{MAX_DEPTH}}}+")

# Category Cc, which is closed for ever by Unicode's stability policy, and lone surrogates,
# which no UTF-8 can hold. Nothing else is refused: format and bidi characters are text.
_FORBIDDEN = re.compile("[\x00-\x1f\x7f-\x9f\ud800-\udfff]")


@dataclass(frozen=True, slots=True)
class PathRef:
    """One place in one root."""

    root: str
    """`user-memory` or `shared-memory`."""

    key: str
    """Canonical components joined by `/`, NFC; empty for the root itself."""

    @property
    def display(self) -> str:
        """The path as callers write it; cleaning it gives this reference again."""
        return f"{self.root}/{self.key}" if self.key else self.root


def clean(text: str) -> PathRef:
    r"""Bring a path into its one canonical form.

    NFC first, `\` counts as `/`, empty and `.` components fall away and so does a leading
    `~`. The first component left decides the root, alone; only then is `..` resolved, and
    it stops at that root. Percent-decoding is the framework's and happens before.

    Args:
        text: What the caller wrote, percent-decoded once.

    Returns:
        The root and the key; the key is empty for the root itself.

    Raises:
        InvalidPathError: A control character or lone surrogate anywhere, a name over 255
            bytes of UTF-8, more than 32 components below the root, or over 4,096 bytes.
        NotFoundError: The first component names no root; `..` never does.
    """
    if len(text) > MAX_PATH_BYTES:
        raise InvalidPathError
    if _CANONICAL.fullmatch(text):
        root, _, key = text.partition("/")
        return PathRef(root, key)
    if _FORBIDDEN.search(text):
        raise InvalidPathError
    components = _components(unicodedata.normalize("NFC", text))
    if not components or components[0] not in _ROOTS:
        raise NotFoundError
    names = _resolve(components[1:])
    ref = PathRef(components[0], "/".join(names))
    if (
        len(names) > MAX_DEPTH
        or any(len(name.encode()) > MAX_NAME_BYTES for name in names)
        or len(ref.display.encode()) > MAX_PATH_BYTES
    ):
        raise InvalidPathError
    return ref


def parents(key: str) -> list[str]:
    """The keys of the folders a key lies in, outermost first.

    Args:
        key: A canonical key.

    Returns:
        Proper ancestors without the root, so `a/b/c` has `a` and `a/b`, and `a` has none.
    """
    return [key[:at] for at, character in enumerate(key) if character == "/"]


def is_under(key: str, folder: str) -> bool:
    """Whether a key lies inside a folder, at any depth, the root's "" included; never itself."""
    return key.startswith(f"{folder}/") if folder else key != ""


def _components(text: str) -> list[str]:
    parts = [part for part in text.replace("\\", "/").split("/") if part not in {"", "."}]
    return parts[1:] if parts[:1] == ["~"] else parts


def _resolve(parts: list[str]) -> list[str]:
    names: list[str] = []
    for part in parts:
        if part != "..":
            names.append(part)
        elif names:
            names.pop()
    return names
