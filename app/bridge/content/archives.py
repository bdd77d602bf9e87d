"""A member's own notes as one archive: given out, and taken in.

Both lie on the disk meanwhile, under a key that is in memory alone: so what a slow client leaves
waiting is neither a snapshot nor memory, and what is sent is looked through before it is written.
"""

import contextlib
from collections.abc import AsyncGenerator, AsyncIterable, AsyncIterator, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Final

from app.bridge import access
from app.bridge.callers import Call, Caller
from app.bridge.content import files
from app.bridge.content.archive_reading import Archive, Bounds
from app.bridge.content.archive_writing import write_archive
from app.bridge.strongroom import Strongroom
from app.crypto.segments import SEGMENT_BYTES
from app.db.owner.store import OwnerReader
from app.db.pool import StoreClosedError
from app.db.spool import Spool
from app.errors.inputs import PayloadTooLargeError
from app.errors.stores import StoreBusyError
from app.owner.copies import TakenIn

_PIECE_SEGMENTS: Final = 16


@dataclass(frozen=True, slots=True)
class Export:
    """An archive that waits to be given out."""

    spool: Spool
    notes: int

    @property
    def size_bytes(self) -> int:
        """Of the archive."""
        return self.spool.size_bytes


@contextlib.contextmanager
def _alone(room: Strongroom, caller: Caller) -> Iterator[None]:
    """Refuse a second archive of the same member at the same time, for each takes up the disk.

    Each worker knows of its own alone: there are at most as many at a time as there are workers.
    """
    if caller.user_id in room.copying:
        raise StoreBusyError
    room.copying.add(caller.user_id)
    try:
        yield
    finally:
        room.copying.discard(caller.user_id)


@contextlib.asynccontextmanager
async def exported(room: Strongroom, caller: Caller, call: Call) -> AsyncIterator[Export]:
    """Make an archive of the caller's own notes, as they are at one moment.

    Yields:
        It, until the end of the block.

    Raises:
        StoreBusyError: Another is made or taken in for the same member.
        StoreLockedError: This credential cannot open the store.
        DiskFullError: The disk has no room.
    """
    folder, now_ms = room.settings.database, room.clock()

    def write(reader: OwnerReader) -> Export:
        spool = Spool(folder)
        try:
            with Spool(folder) as rows:
                count = write_archive(reader, spool, rows, now_ms)
            spool.finish()
        except BaseException:
            spool.close()
            raise
        return Export(spool, count)

    with _alone(room, caller):
        export = await files.copy_own(room, caller, call, write)
        with export.spool:
            yield export


async def pieces(
    room: Strongroom, caller: Caller, call: Call
) -> AsyncGenerator[bytes | Export, None]:
    """An archive of the caller's own notes: what it is, then its bytes, a piece at a time.

    The caller is judged anew before each piece: whose session ends, or whose store is locked,
    gets no more.

    Yields:
        The export, once; then bytes.

    Raises:
        InvalidCredentialsError: The caller's session ended.
        StoreClosedError: The store was closed meanwhile.
    """
    async with exported(room, caller, call) as export:
        yield export
        at = 0
        while at < export.size_bytes:
            present = await access.authenticate(room, caller.token)
            if present.account.generation != caller.account.generation:
                raise StoreClosedError
            piece = await room.stores.on_thread(partial(_read, export.spool, at))
            yield piece
            at += len(piece)


def _read(spool: Spool, start: int) -> bytes:
    parts = []
    for piece in spool.pieces(start):
        parts.append(piece)
        if len(parts) == _PIECE_SEGMENTS:
            break
    return b"".join(parts)


@contextlib.asynccontextmanager
async def arriving(
    room: Strongroom, caller: Caller, body: AsyncIterable[bytes]
) -> AsyncIterator[Spool]:
    """Take an archive in, as far as the disk; at the end of the block it is gone again.

    Yields:
        What came, whole.

    Raises:
        StoreBusyError: Another is made or taken in for the same member.
        PayloadTooLargeError: It is larger than `archive_bytes_max`.
        DiskFullError: The disk has no room.
    """
    with _alone(room, caller):
        spool = await room.stores.on_thread(lambda: Spool(room.settings.database))
        with spool:
            waiting = bytearray()
            async for chunk in body:
                waiting += chunk
                if spool.size_bytes + len(waiting) > room.settings.archive_bytes_max:
                    raise PayloadTooLargeError
                if len(waiting) >= SEGMENT_BYTES:
                    await room.stores.on_thread(partial(spool.write, bytes(waiting)))
                    waiting.clear()
            await room.stores.on_thread(partial(spool.write, bytes(waiting)))
            await room.stores.on_thread(spool.finish)
            yield spool


@contextlib.asynccontextmanager
async def found_at(room: Strongroom, caller: Caller, path: Path) -> AsyncIterator[Spool]:
    """Take an archive in that lies on this box.

    Yields:
        What it holds, whole.

    Raises:
        StoreBusyError: Another is made or taken in for the same member.
        PayloadTooLargeError: It is larger than `archive_bytes_max`.
        OSError: It cannot be read.
    """
    bytes_max = room.settings.archive_bytes_max
    with _alone(room, caller):
        spool = await room.stores.on_thread(lambda: Spool(room.settings.database))
        with spool:
            if not await room.stores.on_thread(lambda: spool.load(path, bytes_max)):
                raise PayloadTooLargeError
            await room.stores.on_thread(spool.finish)
            yield spool


async def take_in(room: Strongroom, caller: Caller, call: Call, spool: Spool) -> TakenIn:
    """Write every note of an archive into the caller's own store, all or none.

    A note that stands at a path is replaced, as by a put: its text stays in its history. What
    the archive says of versions, authors and times is not believed: the writer is the caller.

    Returns:
        How many were written.

    Raises:
        ArchiveError: The archive cannot be taken; which entry, and why.
        QuotaExceededError: There is no room for it.
        PathConflictError: A folder stands where a note is to stand, or the reverse.
    """
    settings = room.settings
    bounds = Bounds(settings.note_bytes_max, settings.archive_text_bytes_max)

    def look_through() -> Archive:
        archive = Archive(spool.reader(), spool.size_bytes, bounds)
        archive.verify()
        return archive

    archive = await room.stores.on_thread(look_through)
    room.reach("import.verified")
    done = await files.take_in(room, caller, call, archive.texts, archive.text_bytes)
    room.reach("import.written")
    return done
