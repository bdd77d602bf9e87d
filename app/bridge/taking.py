"""A store that one operation has alone: closed in every process, its keys zeroed."""

import asyncio
import contextlib
import time
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass
from typing import Final

from app.bridge.strongroom import Strongroom
from app.db.context import Actor
from app.db.registry import statements as sql
from app.db.registry.store import RegistryTransactor
from app.errors.stores import StoreBusyError
from app.ids import UserId
from app.runtime import idempotency
from app.runtime.idempotency import Once

_ASK_AGAIN_S: Final = 0.01
CLOSING: Final = "closing"
"""What a store is out of service for while it is only closed, everywhere."""
Judge = Callable[[RegistryTransactor], None]
"""Refuses an operation, in the transaction that begins it."""


@dataclass(slots=True)
class Hold:
    """One operation's hold of a store that it has alone."""

    must_finish: bool = False
    """Set at the point of no return: what fails after it is finished, never undone."""
    once: Once | None = None
    """For the write that decides the operation; None where it is no request's, or needs none."""


def admit_all(_tx: RegistryTransactor) -> None:
    """Judges nothing."""


@contextlib.asynccontextmanager
async def taken(  # noqa: PLR0913, PLR0917 - whose, which lock, what for, who, and whether
    room: Strongroom,
    user_id: UserId,
    lock_number: int,
    state: str,
    actor: Actor,
    judge: Judge = admit_all,
    *,
    once: Once | None = None,
) -> AsyncIterator[Hold]:
    """Have a member's store alone.

    State and generation are committed first, so every process lets go; then the exclusive
    lock is waited for. Left, the store is in service again, unless the operation passed its
    point of no return and failed: then the janitor finishes it.

    Args:
        room: The service.
        user_id: Whose store.
        lock_number: Its number.
        state: What it is out of service for.
        actor: Who takes it.
        judge: Whether they may.
        once: Of the request, which is in progress from here to the write that decides it.

    Yields:
        The hold.

    Raises:
        Replayed: The request is done; so nothing was.
        StoreBusyError: Somebody has it already, or it was not let go in time; nothing was
            changed.
    """
    registry, locks = room.stores.registry, room.stores.locks
    hold = Hold(once=None if once is None else once.of(user_id))

    def begin(tx: RegistryTransactor, *, is_again: bool = False) -> int:
        if hold.once is not None:
            hold.once.begin(tx, is_again=is_again)
        judge(tx)
        begun = tx.run(sql.BEGIN_STORE_STATE, user_id=user_id, store_state=state)
        if not begun:
            raise StoreBusyError
        return begun[0].value

    async def end() -> None:
        await registry.write(lambda tx: end_state(tx, user_id, state), actor)

    generation = await registry.write(begin, actor)
    try:
        await room.stores.lock(user_id)
        await acquire_exclusive(room, lock_number)
    except BaseException:
        await end()
        raise
    try:
        try:
            present = await registry.one(sql.FIND_ACCOUNT, user_id=user_id)
            if present is None or present.store_generation != generation:
                # A janitor came by while the lock was free, found a state that nobody held,
                # and put the store back in service. Under the lock it cannot any more.
                await registry.write(lambda tx: begin(tx, is_again=True), actor)
            yield hold
            hold.must_finish = False
        finally:
            # In service before the lock is free: a free lock with a state means a crash.
            if not hold.must_finish:
                await end()
    finally:
        locks.release_exclusive(lock_number)


def end_state(tx: RegistryTransactor, user_id: UserId, state: str) -> None:
    """Put a member's store back in service; what was asked and not decided may be asked again."""
    tx.run(sql.END_STORE_STATE, user_id=user_id, store_state=state)
    idempotency.settle(tx, user_id, "undone")


async def acquire_exclusive(room: Strongroom, lock_number: int) -> None:
    """Wait until no process has a store open, and keep it so until the release.

    Asks again and again rather than on a thread: who waits here for ten seconds must not
    keep the threads from those who are to let go.

    Raises:
        StoreBusyError: Somebody still had it when the time was over.
    """
    deadline = time.monotonic() + room.settings.exclusive_wait_s
    while not room.stores.locks.try_exclusive(lock_number):
        if time.monotonic() > deadline:
            raise StoreBusyError
        await asyncio.sleep(_ASK_AGAIN_S)
