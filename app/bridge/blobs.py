"""Blobs in the caller's own store or the group's: bytes on the disk first, then the row.

Bytes are streamed both ways; no more than a few segments are ever in memory. What comes is
written under its own key beside the store, and becomes real with its row; whatever is left
without a row, by a crash or by somebody who went away, is swept away after the grace time.
"""

import contextlib
import hmac
from collections.abc import AsyncIterable, AsyncIterator, Awaitable, Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Final, Literal, TypeVar

from app import telemetry
from app.bridge import access, layout, reports
from app.bridge.access import with_own
from app.bridge.callers import Call, Caller
from app.bridge.strongroom import Strongroom
from app.crypto.keys import Key
from app.crypto.segments import SEGMENT_BYTES
from app.db import blobs as disk
from app.db.context import Actor
from app.db.owner.store import OwnerReader, OwnerStore, OwnerTransactor
from app.db.pool import StoreClosedError
from app.errors import NotPermittedError, PayloadTooLargeError, QuotaExceededError, StoreError
from app.ids import UserId
from app.owner import blobs
from app.owner import reports as owner_reports
from app.owner.blobs import Blob, BlobCondition, Content, May, NewBlob, Put, Which
from app.runtime import files
from app.runtime.files import File, NewFile

T = TypeVar("T")
Home = Literal["own", "group"]

_PIECE_SEGMENTS: Final = 16
PIECE_BYTES: Final = _PIECE_SEGMENTS * SEGMENT_BYTES
"""Bytes that go to or come from a thread at a time."""
SWEEP_BATCH: Final = 500
"""Rows that one call of `sweep` removes at most."""
_HOUR_MS: Final = 3_600_000
_UNSURE: Final = frozenset({"store_error", "store_damaged", "store_missing", "store_swapped"})
"""Errors of a write after which it may be on the disk all the same."""


@dataclass(slots=True)
class Arrival:
    """Bytes that have come, and wait for their row."""

    file: disk.NewFile | None
    """None when they were only compared with those that are there."""
    content: Content | None = None
    """None until they are there, whole."""
    is_in_doubt: bool = False
    """Whether a row may hold them: then they are not to be taken away."""


def _owner_of(caller: Caller, home: Home) -> UserId:
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


async def _in_home(
    room: Strongroom,
    caller: Caller,
    call: Call,
    home: Home,
    work: Callable[[OwnerReader], T],
) -> T:
    if home == "group":
        return await room.stores.group.read(work)
    return await with_own(room, caller, call, lambda store: store.read(work))


@contextlib.asynccontextmanager
async def arriving(  # noqa: PLR0913, PLR0917 - who sends what where, and how much of it
    room: Strongroom,
    caller: Caller,
    call: Call,
    home: Home,
    new: NewBlob,
    body: AsyncIterable[bytes],
    announced_bytes: int | None,
) -> AsyncIterator[Arrival]:
    """Take bytes in, as far as the disk; left without a row they are gone again.

    Args:
        room: The service.
        caller: Who sends them.
        call: The request.
        home: Whose store they are for.
        new: What they are to be.
        body: They, in pieces.
        announced_bytes: How many there will be; None when nobody said.

    Yields:
        What has come, whole.

    Raises:
        NotPermittedError: See `require_may_write`.
        PayloadTooLargeError: There are more than one blob may have.
        QuotaExceededError: The caller's quota has no room for them.
        DiskFullError: The disk has none.
    """
    require_may_write(caller, home, on_report=new.report_id is not None)
    blobs.require_new(new)
    may = await visible(room, caller, home)
    is_there, digest = await _in_home(
        room,
        caller,
        call,
        home,
        lambda reader: (blobs.find(reader, new.id, may), files.content_digest(reader)),
    )
    left = await _room_left(room, caller, home) if is_there is None else None
    limit = _Limit(room.settings.blob_bytes_max, left)
    limit.require(announced_bytes or 0)
    with Key.generate() as key:
        file = None
        if is_there is None:
            # What is there already is only compared.
            folder = room.settings.files_folder(_owner_of(caller, home))
            file = await room.stores.on_thread(lambda: disk.NewFile(folder, key, room.clock))
        arrival = Arrival(file)
        try:
            arrival.content = await _take_in(room, body, digest, file, key, limit)
            if file is not None:
                await _require_still_room(room, caller, home)
            room.reach("blob.arrived")
            yield arrival
        finally:
            if file is not None and not arrival.is_in_doubt:
                await room.stores.on_thread(file.discard)


@dataclass(frozen=True, slots=True)
class _Limit:
    """How much may come."""

    blob_bytes_max: int
    left_bytes: int | None
    """Of the quota; None for no quota."""

    def require(self, size_bytes: int) -> None:
        if size_bytes > self.blob_bytes_max:
            raise PayloadTooLargeError
        if self.left_bytes is not None and size_bytes > self.left_bytes:
            raise QuotaExceededError


async def _room_left(room: Strongroom, caller: Caller, home: Home) -> int | None:
    if home == "group" or caller.quota_bytes is None:
        return None
    used = await access.used_bytes(room, caller.user_id)
    return max(0, caller.quota_bytes - used)


async def _require_still_room(room: Strongroom, caller: Caller, home: Home) -> None:
    """Others may have come at the same time: all are counted, this one with them."""
    if home == "own" and caller.quota_bytes is not None:
        used = await access.used_bytes(room, caller.user_id)
        if used > caller.quota_bytes:
            raise QuotaExceededError


async def _take_in(  # noqa: PLR0913, PLR0917 - where from, where to, and how much
    room: Strongroom,
    body: AsyncIterable[bytes],
    digest: "hmac.HMAC",
    file: disk.NewFile | None,
    key: Key,
    limit: _Limit,
) -> Content:
    """Take every piece of the body to the disk, or only compare it."""
    size = 0

    def take(piece: bytes) -> None:
        digest.update(piece)
        if file is not None:
            file.add(piece)

    async for piece in _in_pieces(body):
        size += len(piece)
        limit.require(size)
        await room.stores.on_thread(partial(take, piece))
    if file is None:
        return Content(digest.digest(), size, None)
    await room.stores.on_thread(file.finish)
    new = NewFile(file.name, bytes(key.view()), digest.digest(), size)
    return Content(new.digest, size, new)


async def _in_pieces(body: AsyncIterable[bytes]) -> AsyncIterator[bytes]:
    """The body in pieces that are worth a thread."""
    waiting = bytearray()
    async for chunk in body:
        waiting += chunk
        if len(waiting) >= PIECE_BYTES:
            yield bytes(waiting)
            waiting.clear()
    if waiting:
        yield bytes(waiting)


async def keep(  # noqa: PLR0913, PLR0917 - who keeps what where, and on what condition
    room: Strongroom,
    caller: Caller,
    call: Call,
    home: Home,
    new: NewBlob,
    arrival: Arrival,
    condition: BlobCondition,
) -> Put:
    """Make what has come a blob.

    Returns:
        The blob as it stands.

    Raises:
        NotFoundError: There is no such note or report for this caller.
        BlobDiffersError: Another blob stands under the id.
        AlreadyExistsError: The condition does not hold.
        VersionConflictError: The condition does not hold.
    """
    may = await visible(room, caller, home)
    actor = caller.actor(call)
    content = arrival.content
    if content is None:
        message = "what has not come cannot be kept"
        raise RuntimeError(message)

    async def write(store: OwnerStore) -> Put:
        return await store.write(
            lambda tx: blobs.put(tx, new, content, caller.author, may, condition),
            actor,
            once=call.once,
        )

    # Until the outcome is known a row may hold the file, also when this is cut short.
    arrival.is_in_doubt = True
    try:
        put = await _write_in(room, caller, call, home, write)
    except Exception as error:
        arrival.is_in_doubt = isinstance(error, StoreError) and error.code in _UNSURE
        raise
    room.reach("blob.kept")
    arrival.is_in_doubt = arrival.file is not None and put.file_name == arrival.file.name
    return put


async def _write_in(
    room: Strongroom,
    caller: Caller,
    call: Call,
    home: Home,
    write: Callable[[OwnerStore], Awaitable[T]],
) -> T:
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
    blob, file = await _in_home(
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
    path = room.settings.files_folder(_owner_of(caller, held.home)) / held.file.name
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
    return await _in_home(
        room,
        caller,
        call,
        home,
        lambda reader: blobs.list_page(reader, which, after, limit, may, on_notes=memory),
    )


def _on_no_report(_report: object) -> bool:
    return False


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

    await _write_in(room, caller, call, home, write)


async def sweep(
    room: Strongroom, owner_id: UserId, store: OwnerStore, actor: Actor, limit: int = SWEEP_BATCH
) -> int:
    """Take away the bytes that nobody needs beside one store; for housekeeping.

    One call is one batch: rows that nothing has held for the grace time go first, in one
    transaction, and then their files. Once there are none the folder is compared with the
    rows: what has no row, or was never finished, goes when it is older than the grace time;
    a row without its file is told to the operator.

    Args:
        room: The service.
        owner_id: Whose store; `layout.GROUP` for the group's.
        store: It, open.
        actor: Who does it.
        limit: Most rows of one call.

    Returns:
        How many files were taken away; as many as `limit` when there may be more.
    """
    grace_ms = room.settings.file_grace_hours * _HOUR_MS
    folder = room.settings.files_folder(owner_id)

    def forget(tx: OwnerTransactor) -> list[str]:
        blobs.remove_forgotten(tx)
        return [row.name for row in files.remove_unreferenced(tx, grace_ms, limit)]

    names = await store.write(forget, actor)
    room.reach("sweep.rows_removed")
    if names:
        await room.stores.on_thread(lambda: disk.remove(folder, names))
    if len(names) == limit:
        return limit
    return len(names) + await _compare(room, folder, store, grace_ms)


async def _compare(room: Strongroom, folder: Path, store: OwnerStore, grace_ms: int) -> int:
    """Files without rows, rows without files."""
    # Files first: one that is made meanwhile is too young to go.
    found = await room.stores.on_thread(lambda: disk.list_folder(folder))
    rows = await store.watch(files.list_all)
    before = room.clock() - grace_ms
    old = [each for each in found if each.changed_at <= before]
    new = [each.name for each in old if each.is_new]
    lost = [each.name for each in old if not each.is_new and each.name not in rows]

    def unlink() -> None:
        disk.remove_new(folder, new)
        disk.remove(folder, lost)

    await room.stores.on_thread(unlink)
    if new or lost:
        telemetry.janitor_repaired("file_without_row", len(new) + len(lost))
    present = {each.name for each in found if not each.is_new}
    missing = sum(not (folder / name).exists() for name in rows.keys() - present)
    if missing:
        telemetry.janitor_found("row_without_file", missing)
    return len(new) + len(lost)
