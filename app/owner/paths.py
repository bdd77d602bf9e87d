"""Names of texts: any spelling of a path becomes one root and one canonical key.

The key is what the store holds and compares, so two spellings of a path can never be two
texts, and no spelling reaches out of its root.
"""

import re
import unicodedata
from dataclasses import dataclass
from typing import Final

from app.errors.callers import NotFoundError
from app.errors.inputs import InvalidPathError
from app.ids import COMPONENT_BYTES_MAX, is_component, name_key

USER_MEMORY: Final = "user-memory"
"""The root of the caller's own notes."""

SHARED_MEMORY: Final = "shared-memory"
"""The root of the group's notes."""

SHARED: Final = "shared"
"""Where the group's folders on the disk are: `shared/{folder}/...`."""

PROJECTS: Final = "projects"
"""Where members' projects on the disk are: `projects/{owner}/{slug}/...`."""

RESERVED: Final = ".strongroom-"
"""How the program's own names in a folder on the disk begin; none of them is a text."""

MAX_NAME_BYTES: Final = COMPONENT_BYTES_MAX
MAX_DEPTH: Final = 32
MAX_PATH_BYTES: Final = 4096

_PARTS = {USER_MEMORY: 0, SHARED_MEMORY: 0, SHARED: 1, PROJECTS: 2}
"""How many names beside the first component say which root it is."""

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
    """`user-memory`, `shared-memory`, or a folder on the disk: `shared/{folder}` or
    `projects/{owner}/{slug}`, its names folded as they are compared. Less than that,
    `shared`, `projects` or `projects/{owner}`, is where such folders are listed."""

    key: str
    """Canonical components joined by `/`, NFC; empty for the root itself."""

    @property
    def kind(self) -> str:
        """The first component, which alone decides where the text is."""
        return self.root.partition("/")[0]

    @property
    def is_on_disk(self) -> bool:
        """Whether it is in a folder on the disk, or where such folders are listed."""
        return _PARTS[self.kind] > 0

    @property
    def is_above_roots(self) -> bool:
        """Whether it is where folders on the disk are listed, and nothing is written."""
        return self.root.count("/") < _PARTS[self.kind]

    @property
    def display(self) -> str:
        """The path as callers write it; cleaning it gives this reference again."""
        return f"{self.root}/{self.key}" if self.key else self.root

    @property
    def is_canonical(self) -> bool:
        """Whether a path can name it; what was put on the disk beside the service may not be."""
        try:
            return clean(self.display) == self
        except (InvalidPathError, NotFoundError):
            return False


def clean(text: str) -> PathRef:
    r"""Bring a path into its one canonical form.

    NFC first, `\` counts as `/`, empty and `.` components fall away and so does a leading
    `~`. The first component left decides the root, alone; only then is `..` resolved, and
    it stops there. What follows `shared` or `projects` names a folder on the disk, compared
    by its folded form. Percent-decoding is the framework's and happens before.

    Args:
        text: What the caller wrote, percent-decoded once.

    Returns:
        The root and the key; the key is empty for the root itself.

    Raises:
        InvalidPathError: A control character or lone surrogate anywhere, a name over 255
            bytes of UTF-8, more than 32 components below the root, or over 4,096 bytes.
        NotFoundError: The first component names no root, as `..` never does, or what follows
            can be the name of no folder on the disk.
    """
    if len(text) > MAX_PATH_BYTES:
        raise InvalidPathError
    if _CANONICAL.fullmatch(text):
        root, _, key = text.partition("/")
        return PathRef(root, key)
    if _FORBIDDEN.search(text):
        raise InvalidPathError
    components = _components(unicodedata.normalize("NFC", text))
    if not components or components[0] not in _PARTS:
        raise NotFoundError
    names = _resolve(components[1:])
    parts, names = names[: _PARTS[components[0]]], names[_PARTS[components[0]] :]
    if parts and any(name.startswith(RESERVED) for name in names):
        raise InvalidPathError
    ref = PathRef("/".join([components[0], *map(_folded, parts)]), "/".join(names))
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


def _folded(name: str) -> str:
    """The name of a folder, or of its owner, as it is compared.

    Returns:
        It; folded again it is the same.

    Raises:
        NotFoundError: Folded it is no name, or another at each folding: no folder has it.
    """
    key = name_key(name)
    if _FORBIDDEN.search(key) or not is_component(key):
        raise NotFoundError
    return key
