"""Blobs on their way in: bytes to the disk first, under a key of their own, then the row.

What comes becomes real with its row; whatever is left without one, by a crash or by
somebody who went away, is swept away after the grace time.
"""

import contextlib
import hmac
from collections.abc import AsyncIterable, AsyncIterator
from dataclasses import dataclass
from functools import partial
from typing import Final

from app.bridge import access
from app.bridge.callers import Call, Caller
from app.bridge.content.blobs import (
    PIECE_BYTES,
    Home,
    in_home,
    owner_of,
    require_may_write,
    visible,
    write_in,
)
from app.bridge.strongroom import Strongroom
from app.crypto.keys import Key
from app.db import blobs as disk
from app.db.owner.store import OwnerStore, OwnerTransactor
from app.errors.inputs import PayloadTooLargeError
from app.errors.stores import QuotaExceededError, StoreError
from app.owner import blobs
from app.owner.blobs import BlobCondition, Content, NewBlob, Put
from app.owner.quota import Quota
from app.runtime import files
from app.runtime.files import NewFile

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
        QuotaExceededError: The store has no room for them.
        DiskFullError: The disk has none.
    """
    require_may_write(caller, home, on_report=new.report_id is not None)
    blobs.require_new(new)
    may = await visible(room, caller, home)
    quota = _quota_of(room, caller, home)
    is_there, digest, used = await in_home(
        room,
        caller,
        call,
        home,
        lambda reader: (
            blobs.find(reader, new.id, may),
            files.content_digest(reader),
            quota.used(reader),
        ),
    )
    # Judged again when the row is made, for others may come at the same time.
    left = max(0, quota.bytes_max - used) if is_there is None else None
    limit = _Limit(room.settings.blob_bytes_max, quota.bytes_max, left)
    limit.require(announced_bytes or 0)
    with Key.generate() as key:
        file = None
        if is_there is None:
            # What is there already is only compared.
            folder = room.settings.files_folder(owner_of(caller, home))
            file = await room.stores.on_thread(lambda: disk.NewFile(folder, key, room.clock))
        arrival = Arrival(file)
        try:
            arrival.content = await _take_in(room, body, digest, file, key, limit)
            room.reach("blob.arrived")
            yield arrival
        finally:
            if file is not None and not arrival.is_in_doubt:
                await room.stores.on_thread(file.discard)


@dataclass(frozen=True, slots=True)
class _Limit:
    """How much may come."""

    blob_bytes_max: int
    quota_bytes_max: int
    left_bytes: int | None
    """Of the quota; None when nothing is to be added."""

    def require(self, size_bytes: int) -> None:
        if size_bytes > self.blob_bytes_max:
            raise PayloadTooLargeError
        if self.left_bytes is not None and size_bytes > self.left_bytes:
            raise QuotaExceededError(limit_max=self.quota_bytes_max, left=self.left_bytes)


def _quota_of(room: Strongroom, caller: Caller, home: Home) -> Quota:
    return access.group_quota(room) if home == "group" else access.own_quota(room, caller)


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
        QuotaExceededError: Others took the room that there was.
    """
    may = await visible(room, caller, home)
    actor = caller.actor(call)
    quota = _quota_of(room, caller, home)
    content = arrival.content
    if content is None:
        message = "what has not come cannot be kept"
        raise RuntimeError(message)

    def put_within(tx: OwnerTransactor) -> Put:
        put = blobs.put(tx, new, content, caller.author, may, condition)
        if put.created:
            # The bytes lie beside the store already, and so do those of whoever comes as well.
            quota.require_within(tx)
        return put

    async def write(store: OwnerStore) -> Put:
        return await store.write(put_within, actor, once=call.once)

    # Until the outcome is known a row may hold the file, also when this is cut short.
    arrival.is_in_doubt = True
    try:
        put = await write_in(room, caller, call, home, write)
    except Exception as error:
        arrival.is_in_doubt = isinstance(error, StoreError) and error.code in _UNSURE
        raise
    room.reach("blob.kept")
    arrival.is_in_doubt = arrival.file is not None and put.file_name == arrival.file.name
    return put
