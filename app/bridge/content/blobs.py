"""Blobs in the caller's own store or the group's: who may, and their bytes on the way out.

Bytes are streamed; no more than a few segments are ever in memory.
"""

from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Final, Literal, TypeVar

from app.bridge import access, layout
from app.bridge.access import with_own
from app.bridge.callers import Call, Caller
from app.bridge.content import reports
from app.bridge.strongroom import Strongroom
from app.crypto.keys import Key
from app.crypto.segments import SEGMENT_BYTES
from app.db import blobs as disk
from app.db.owner.store import OwnerReader, OwnerStore
from app.db.pool import StoreClosedError
from app.errors.callers import NotPermittedError
from app.ids import UserId
from app.owner import blob_list, blobs
from app.owner import reports as owner_reports
from app.owner.blob_list import Which
from app.owner.blobs import Blob, BlobCondition, May, Placing
from app.runtime.files import File

T = TypeVar("T")
Home = Literal["own", "group"]

_PIECE_SEGMENTS: Final = 16
PIECE_BYTES: Final = _PIECE_SEGMENTS * SEGMENT_BYTES
"""Bytes that go to or come from a thread at a time."""


def owner_of(caller: Caller, home: Home) -> UserId:
    """Whose store a home is."""
    return layout.GROUP if home == "group" else caller.user_id


def require_may_write(caller: Caller, home: Home, *, on_report: bool) -> None:
    """Refuse a credential that was not made for writing there.

    Raises:
        NotPermittedError: Its scopes do not reach there, or it is an agent's and others
            would read what it writes.
    """
    scope = "memory:write" if home == "own" else "shared:write"
    if not caller.has_scope("reports:write" if on_report else scope):
        raise NotPermittedError
    if home == "group" and caller.is_agent:
        raise NotPermittedError


def require_may_read(caller: Caller, *, on_report: bool) -> None:
    """Refuse a credential that was not made for reading this.

    Raises:
        NotPermittedError: Its scopes do not reach it.
    """
    if not caller.has_scope("reports:read" if on_report else "memory:read"):
        raise NotPermittedError


async def visible(room: Strongroom, caller: Caller, home: Home) -> May:
    """Of which reports the caller may see what hangs on them."""
    if home == "own":
        return blobs.may_all
    rights = await reports.rights_of(room, caller)
    return lambda report: owner_reports.may_read_report(report, rights)


async def in_home(
    room: Strongroom,
    caller: Caller,
    call: Call,
    home: Home,
    work: Callable[[OwnerReader], T],
) -> T:
    """Read in one home."""
    if home == "group":
        return await room.stores.group.read(work)
    return await with_own(room, caller, call, lambda store: store.read(work))


async def write_in(
    room: Strongroom,
    caller: Caller,
    call: Call,
    home: Home,
    write: Callable[[OwnerStore], Awaitable[T]],
) -> T:
    """Write in one home."""
    if home == "group":
        return await write(room.stores.group)
    return await with_own(room, caller, call, write)


@dataclass(frozen=True, slots=True)
class Held:
    """A blob that the caller may read, and where its bytes are."""

    blob: Blob
    file: File
    home: Home


async def get(room: Strongroom, caller: Caller, call: Call, home: Home, blob_id: str) -> Held:
    """Find a blob.

    Returns:
        It, with where its bytes are.

    Raises:
        NotFoundError: There is none for this caller.
        NotPermittedError: The credential was not made for reading this.
    """
    may = await visible(room, caller, home)
    blob, file = await in_home(
        room, caller, call, home, lambda reader: blobs.get(reader, blob_id, may)
    )
    require_may_read(caller, on_report=blob.report_id is not None)
    return Held(blob, file, home)


async def pieces(
    room: Strongroom, caller: Caller, held: Held, start: int, end: int
) -> AsyncIterator[bytes]:
    """A blob's bytes from one place up to another, a piece at a time.

    The caller is judged anew before each piece: whose session ends, or whose store is
    locked, gets no more.

    Yields:
        At least one piece.

    Raises:
        FileDamagedError: The file does not hold what was written.
        InvalidCredentialsError: The caller's session ended.
        StoreClosedError: The store was closed meanwhile.
    """
    path = room.settings.files_folder(owner_of(caller, held.home)) / held.file.name
    first = start // SEGMENT_BYTES
    while True:
        stop = min(end, (first + _PIECE_SEGMENTS) * SEGMENT_BYTES)
        piece = await room.stores.on_thread(partial(_read, path, held.file, first))
        yield piece[max(0, start - first * SEGMENT_BYTES) : stop - first * SEGMENT_BYTES]
        if stop >= end:
            return
        first += _PIECE_SEGMENTS
        present = await access.authenticate(room, caller.token)
        if held.home == "own" and present.account.generation != caller.account.generation:
            raise StoreClosedError


def _read(path: Path, file: File, first: int) -> bytes:
    with Key(file.key) as key:
        return disk.read(path, key, file.size_bytes, first, _PIECE_SEGMENTS)


async def list_page(  # noqa: PLR0913, PLR0917 - who lists which, from where, how many
    room: Strongroom, caller: Caller, call: Call, home: Home, which: Which, after: str, limit: int
) -> list[Blob]:
    """Blobs that the caller may read, in the order of their ids.

    A credential that was not made for reports, or for memory, lists those of the other alone.

    Returns:
        The rows.

    Raises:
        NotFoundError: There is no such note or report for this caller.
        NotPermittedError: The credential was not made for reading these.
    """
    memory, on_reports = caller.has_scope("memory:read"), caller.has_scope("reports:read")
    if which.report_id is not None:
        require_may_read(caller, on_report=True)
    elif which.note_key is not None or not on_reports:
        require_may_read(caller, on_report=False)
    may = await visible(room, caller, home) if on_reports else _on_no_report
    return await in_home(
        room,
        caller,
        call,
        home,
        lambda reader: blob_list.list_page(reader, which, after, limit, may, on_notes=memory),
    )


def _on_no_report(_report: object) -> bool:
    return False


async def place(  # noqa: PLR0913, PLR0917 - who places what where, and on what condition
    room: Strongroom,
    caller: Caller,
    call: Call,
    home: Home,
    blob_id: str,
    placing: Placing,
    condition: BlobCondition,
) -> Blob:
    """Name a blob that is there, and hang it on a note or report.

    Returns:
        The blob as it stands.

    Raises:
        NotFoundError: There is no such blob, note or report for this caller.
        NotPermittedError: The credential was not made for writing there.
        BlobDiffersError: It has another name already, or hangs on something else.
        VersionConflictError: The condition does not hold.
    """
    may = await visible(room, caller, home)
    actor = caller.actor(call)
    if placing.report_id is not None:
        require_may_write(caller, home, on_report=True)

    def allow(blob: Blob) -> None:
        require_may_write(caller, home, on_report=blob.report_id is not None)

    async def write(store: OwnerStore) -> Blob:
        return await store.write(
            lambda tx: blobs.place(tx, blob_id, placing, may, allow, condition),
            actor,
            once=call.once,
        )

    return await write_in(room, caller, call, home, write)


async def remove(  # noqa: PLR0913, PLR0917 - who removes what where, and on what condition
    room: Strongroom,
    caller: Caller,
    call: Call,
    home: Home,
    blob_id: str,
    condition: BlobCondition,
) -> None:
    """Take a blob away; its bytes go after the grace time.

    Raises:
        NotFoundError: There is none for this caller.
        NotPermittedError: The credential was not made for writing there.
        VersionConflictError: The condition does not hold.
    """
    may = await visible(room, caller, home)
    actor = caller.actor(call)

    def allow(blob: Blob) -> None:
        require_may_write(caller, home, on_report=blob.report_id is not None)

    async def write(store: OwnerStore) -> None:
        await store.write(
            lambda tx: blobs.remove(tx, blob_id, may, allow, condition), actor, once=call.once
        )

    await write_in(room, caller, call, home, write)
