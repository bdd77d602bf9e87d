"""Names of notes as names of files, safe on every system, and back.

What some system would refuse or change is written as `%XX`, the bytes of its UTF-8. Names that
some system takes for the same get a number, `%~2`, and what is too long is shortened with one. A
number says nothing by itself: the archive's manifest names the path of each file.
"""

import re
import unicodedata
from typing import Final
from urllib.parse import unquote

NAME_BYTES_MAX: Final = 240
"""Less than any file system's 255, so that a tool can add to it."""

# What Windows takes in no name, and the sign itself.
_UNSAFE: Final = frozenset('<>:"/\\|?*%')
# Names of devices there, with any extension.
_DEVICE: Final = re.compile(
    r"(?:con|prn|aux|nul|com[0-9\u00b9\u00b2\u00b3]|lpt[0-9\u00b9\u00b2\u00b3]|conin\$|conout\$)"
    r"(?=\.|\s|$)",
    re.IGNORECASE,
)
_FORBIDDEN: Final = re.compile(r"[\x00-\x1f\x7f-\x9f\ud800-\udfff/\\]")


def encode(name: str) -> str:
    """One name of a path as a name that every system takes.

    Args:
        name: Of a note or folder: not empty, without `/`.

    Returns:
        The name; the same one where nothing stands against it.
    """
    last = len(name) - 1
    is_device = _DEVICE.match(name) is not None
    return "".join(
        _escaped(character)
        if character in _UNSAFE
        or not (character.isprintable() or character == " ")
        # An outer space or a dot at the end is dropped by some, and a file hidden by one.
        or (index in {0, last} and character == " ")
        or (index == last and character == ".")
        or (index == 0 and is_device)
        else character
        for index, character in enumerate(name)
    )


def decode(name: str) -> str:
    """A name that may have been encoded, as it was.

    Args:
        name: Of a file or folder in an archive.

    Returns:
        What `encode` made it of, or the name itself when it made it of nothing.
    """
    found = unquote(name, errors="strict") if _is_unquotable(name) else name
    if not found or found in {".", ".."} or _FORBIDDEN.search(found) or encode(found) != name:
        return name
    return found


def _is_unquotable(name: str) -> bool:
    try:
        unquote(name, errors="strict")
    except UnicodeDecodeError:
        return False
    return True


def likeness(name: str) -> str:
    """What two names have in common that some system takes for the same."""
    return unicodedata.normalize("NFC", unicodedata.normalize("NFC", name).upper().casefold())


class SafeNames:
    """The files of one archive: each path gets one of its own, in the folders of its path."""

    def __init__(self) -> None:
        self._folders: dict[str, str] = {"": ""}
        """Folder of the store to folder of the archive, each with a `/` at its end."""
        self._taken: set[str] = set()
        self._numbers: dict[str, int] = {}
        """The last one given, by what is alike; so that many alike cost no more than others."""

    def file_of(self, path: str) -> str:
        """The file of a note.

        Args:
            path: The note's key; asked for once.

        Returns:
            Names joined by `/`.
        """
        folder, _, name = path.rpartition("/")
        return self._free(self._folder_of(folder), name)

    def _folder_of(self, path: str) -> str:
        known = self._folders.get(path)
        if known is None:
            above, _, name = path.rpartition("/")
            known = f"{self._free(self._folder_of(above), name)}/"
            self._folders[path] = known
        return known

    def _free(self, folder: str, name: str) -> str:
        encoded = encode(name)
        found = first = _shortened(encoded, "")
        alike = likeness(folder + first)
        while likeness(folder + found) in self._taken:
            self._numbers[alike] = self._numbers.get(alike, 1) + 1
            found = _shortened(encoded, f"%~{self._numbers[alike]}")
        self._taken.add(likeness(folder + found))
        return folder + found


def _shortened(name: str, mark: str) -> str:
    """The name with a mark before its extension, and not too long."""
    stem, dot, extension = name.rpartition(".")
    if not stem or len(extension) > len("markdown"):
        stem, dot, extension = name, "", ""
    raw = stem.encode()
    room = NAME_BYTES_MAX - len((mark + dot + extension).encode())
    if len(raw) <= room:
        return stem + mark + dot + extension
    mark = mark or "%~1"
    room = NAME_BYTES_MAX - len((mark + dot + extension).encode())
    cut = raw[:room].decode("utf-8", "ignore")
    # No half of an escape, and nothing at the end that would be dropped.
    return re.sub(r"%[0-9A-F]?$", "", cut) + mark + dot + extension


def _escaped(character: str) -> str:
    return "".join(f"%{byte:02X}" for byte in character.encode())
