"""Identifiers: one NewType a kind, UUIDv7 for everything the program names itself."""

import secrets
import unicodedata
import uuid
from typing import Final, NewType

UserId = NewType("UserId", str)
SessionId = NewType("SessionId", str)
SlotId = NewType("SlotId", str)
DekId = NewType("DekId", str)
RoleId = NewType("RoleId", str)
InvitationId = NewType("InvitationId", str)
NoteId = NewType("NoteId", str)
ReportId = NewType("ReportId", str)

NAME_MAX: Final = 64
"""Characters of a username, or of a shared folder's name."""
COMPONENT_BYTES_MAX: Final = 255
"""Bytes, in UTF-8, of one name in a path."""
_RANDOM_BITS = 74
_NO_COMPONENT: Final = frozenset({"", ".", ".."})


def new_uuid7(now_ms: int) -> str:
    """Make a UUIDv7, the canonical 36-character lower-case text (RFC 9562, 5.7).

    Args:
        now_ms: Unix milliseconds UTC; its 48 low bits are the id's time.

    Returns:
        A text that sorts by time to the millisecond; 74 bits of it are random.
    """
    random = secrets.randbits(_RANDOM_BITS)
    value = (now_ms & (1 << 48) - 1) << 80
    value |= 0x7 << 76 | (random >> 62) << 64
    value |= 0b10 << 62 | random & (1 << 62) - 1
    text = f"{value:032x}"  # by hand: uuid.UUID takes as long again
    return f"{text[:8]}-{text[8:12]}-{text[12:16]}-{text[16:20]}-{text[20:]}"


def is_uuid(text: str) -> bool:
    """Whether the text is a UUID in canonical form; anything else names no row."""
    try:
        return str(uuid.UUID(text)) == text
    except ValueError:
        return False


def name_key(name: str) -> str:
    """The form in which two spellings of one name are equal: NFKC and case-folded.

    Returns:
        Any text for a name that nothing can have; no row has it.
    """
    if len(name) > NAME_MAX:
        # Judged first: normalization is quadratic in a run of combining marks.
        return name
    folded = unicodedata.normalize("NFKC", name).casefold()
    return unicodedata.normalize("NFKC", folded)


def is_component(key: str) -> bool:
    """Whether a name's folded form is one component of a path, so that a path can name it.

    Args:
        key: As `name_key` folds; without lone surrogates.

    Returns:
        False for `.` and `..`, with a slash or backslash in it, over 255 bytes, and for
        what folds to another form again.
    """
    return (
        key not in _NO_COMPONENT
        and "/" not in key
        and "\\" not in key
        and name_key(key) == key
        and len(key.encode()) <= COMPONENT_BYTES_MAX
    )
