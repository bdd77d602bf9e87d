"""Identifiers: one NewType a kind, UUIDv7 for everything the program names itself."""

import secrets
import uuid
from typing import NewType

UserId = NewType("UserId", str)
SessionId = NewType("SessionId", str)
SlotId = NewType("SlotId", str)
DekId = NewType("DekId", str)
RoleId = NewType("RoleId", str)
InvitationId = NewType("InvitationId", str)
NoteId = NewType("NoteId", str)
ReportId = NewType("ReportId", str)
RequestId = NewType("RequestId", str)

_RANDOM_BITS = 74


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
    return str(uuid.UUID(int=value))


def is_uuid(text: str) -> bool:
    """Whether the text is a UUID in canonical form; anything else names no row."""
    try:
        return str(uuid.UUID(text)) == text
    except ValueError:
        return False
