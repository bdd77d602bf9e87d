"""What a prompt needs of the files: several texts at once, in little room."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from app.bridge.callers import Call, Caller
from app.bridge.content import files, notes
from app.bridge.strongroom import Strongroom
from app.db.owner.rows import NoteRow
from app.errors.callers import NotFoundError
from app.errors.conflicts import NotTextError
from app.owner.excerpts import Excerpt, read_beginnings
from app.owner.paths import SHARED_MEMORY, USER_MEMORY, PathRef

_STORES: Final = (USER_MEMORY, SHARED_MEMORY)

Found = Mapping[PathRef, Excerpt | None]


@dataclass(frozen=True, slots=True)
class Injected:
    """One text of a context."""

    ref: PathRef
    excerpt: Excerpt | None
    """None where the caller has no text."""


async def gather(
    room: Strongroom, caller: Caller, call: Call, refs: Sequence[PathRef]
) -> list[Injected]:
    """Read what is to be put into a prompt; each store in one snapshot of its own.

    Args:
        room: The service.
        caller: Who asks.
        call: The request.
        refs: Which; what comes first has the room of `context_bytes_max` first.

    Returns:
        One for each, in this order.

    Raises:
        StoreLockedError: One is the caller's own, and this credential cannot open it.
    """
    bytes_max = room.settings.context_bytes_max
    found: dict[PathRef, Excerpt | None] = {}
    for root in _STORES:
        found |= await _in_store(room, caller, call, root, refs)
    left = bytes_max
    gathered: list[Injected] = []
    for ref in refs:
        if ref.root not in _STORES and ref not in found:
            found[ref] = await _on_disk(room, caller, call, ref, left)
        excerpt = found[ref]
        if excerpt is not None:
            excerpt = excerpt.within(left)
            left -= len(excerpt.content.encode())
        gathered.append(Injected(ref, excerpt))
    return gathered


async def _in_store(
    room: Strongroom, caller: Caller, call: Call, root: str, refs: Sequence[PathRef]
) -> Found:
    """All that is asked for in one store; each of them has the whole room, for now."""
    wanted = list(dict.fromkeys(ref for ref in refs if ref.root == root))
    if not wanted:
        return {}
    bytes_max, keys = room.settings.context_bytes_max, [ref.key for ref in wanted]
    read = await notes.read(
        room, caller, call, wanted[0], lambda reader: read_beginnings(reader, keys, bytes_max)
    )
    return dict(zip(wanted, read, strict=True))


async def _on_disk(
    room: Strongroom, caller: Caller, call: Call, ref: PathRef, bytes_max: int
) -> Excerpt | None:
    try:
        text: NoteRow = await files.get(room, caller, call, ref)
    except (NotFoundError, NotTextError):
        return None
    whole = Excerpt(text.content, text.version, text.size_bytes, text.updated_at)
    return whole.within(bytes_max)
