"""Claims of programs outside: the next job that is due, or a wait for one.

To wait is no use of a store. One that is locked meanwhile is not unlocked by whoever waits;
they go on waiting, and hear of it again once somebody uses it, be it in another process.
"""

import asyncio
from dataclasses import dataclass, replace
from typing import Final

from app.bridge import flags
from app.bridge.access import authenticate, follow_own, open_own
from app.bridge.callers import Call, Caller
from app.bridge.strongroom import Strongroom
from app.bridge.work.jobs import Home, require_home, terms_of, within, write
from app.db.bell import heard
from app.db.owner.store import OwnerStore
from app.db.pool import StoreClosedError
from app.errors.inputs import InvalidInputError
from app.errors.stores import OutOfHandlesError, StoreBusyError, StoreMigratingError
from app.runtime import due, jobs
from app.runtime.jobs import Claim

_LOOK_S: Final = 1.0
"""Seconds after which one who waits looks again though no bell rang: for other processes."""
_PAUSE_S: Final = 0.01
"""So that a job which others always take first makes no busy loop."""


class Waiting:
    """Somebody who waits for a job, and may cease to."""

    def __init__(self) -> None:
        self.news = asyncio.Event()
        """Set when there may be a job, and when the waiting is over."""
        self.is_over = False
        """Whether nobody waits any more: the client went away, or the service ends."""

    def end(self) -> None:
        """Nobody waits any more."""
        self.is_over = True
        self.news.set()


@dataclass(frozen=True, slots=True)
class _Search:
    """Who looks for which jobs, where and until when."""

    room: Strongroom
    caller: Caller
    call: Call
    home: Home
    kinds: list[str]
    until: float
    """By the loop's clock."""
    waiting: Waiting

    @property
    def left_s(self) -> float:
        """How long the wait still is; 0 when it is over."""
        if self.waiting.is_over:
            return 0.0
        return max(self.until - asyncio.get_running_loop().time(), 0.0)

    async def judged(self) -> "_Search":
        """The same, of the caller as they are now.

        Revoked means now: whoever waited is judged again before anything is theirs.

        Returns:
            It.

        Raises:
            InvalidCredentialsError: They are nobody any more.
            NotPermittedError: The group's jobs are no more for them.
        """
        caller = await authenticate(self.room, self.caller.token)
        require_home(caller, self.home)
        return replace(self, caller=caller)


async def claim(  # noqa: PLR0913, PLR0917 - who, where, which, and for how long
    room: Strongroom,
    caller: Caller,
    call: Call,
    home: Home,
    kinds: list[str],
    wait_s: float,
    waiting: Waiting,
) -> Claim | None:
    """Take a job that is due, or wait for one.

    Args:
        room: The service.
        caller: Whose program.
        call: The request.
        home: Where.
        kinds: Which; none of the program's own is ever found.
        wait_s: How long to wait for one.
        waiting: Ends the wait before.

    Returns:
        The job; None when there was none in time, or nobody waits for it.

    Raises:
        InvalidInputError: That is too long.
    """
    if wait_s > room.settings.job_wait_s:
        raise InvalidInputError(field="wait_s")
    until = asyncio.get_running_loop().time() + wait_s
    search = _Search(room, caller, call, home, kinds, until, waiting)
    found = await _found(search)
    if found is not None and waiting.is_over:
        await give_up(room, caller, call, home, found)
        return None
    return found


async def _found(search: _Search) -> Claim | None:
    async def begin(store: OwnerStore) -> tuple[OwnerStore, Claim | None]:
        _, found = await _look(search, store)
        return store, found

    # The first look is a use, which unlocks the store; what follows is none.
    opened, found = await within(search.room, search.caller, search.call, search.home, begin)
    store: OwnerStore | None = opened
    while found is None and store is not None and search.left_s:
        try:
            found = await _wait(search, store)
            break
        except StoreClosedError:
            if search.home == "group":
                raise
            store = await _unlocked_again(search)
    return found


async def _wait(search: _Search, store: OwnerStore) -> Claim | None:
    """Take the first job that is due in an open store; None when the wait is over."""
    news = search.waiting.news
    with store.bell.calling(news.set):
        while not search.waiting.is_over:
            due_s, found = await _look(search, store)
            if found is not None or not (left_s := search.left_s):
                return found
            await heard(news, min(left_s, _LOOK_S, max(due_s, _PAUSE_S)))
            search = await search.judged()
            if search.home == "own" and await _followed(search) is not store:
                raise StoreClosedError
    return None


async def _unlocked_again(search: _Search) -> OwnerStore | None:
    """The caller's store, once somebody uses it again; None when that was not in time."""
    while left_s := search.left_s:
        await heard(search.waiting.news, min(left_s, _LOOK_S))
        search = await search.judged()
        store = await _followed(search)
        if store is not None:
            return store
    return None


async def _followed(search: _Search) -> OwnerStore | None:
    """The caller's store while somebody uses it, in whichever process; None while it is locked."""
    search.caller.require_key_way()
    try:
        return await follow_own(search.room, search.caller, search.call)
    except (StoreClosedError, StoreBusyError, StoreMigratingError, OutOfHandlesError):
        return None


async def _look(search: _Search, store: OwnerStore) -> tuple[float, Claim | None]:
    """In how many seconds to look again, and the job if one was to be had now."""
    room, kinds = search.room, search.kinds
    due_at = await store.watch(lambda reader: due.next_outside(reader, kinds))
    due_s = _LOOK_S if due_at is None else (due_at - room.clock()) / 1000
    if due_s > 0:
        return due_s, None
    if not await flags.is_on(room, "jobs_outside"):
        return _LOOK_S, None
    return due_s, await _take(search, store)


async def _take(search: _Search, store: OwnerStore) -> Claim | None:
    room, caller = search.room, search.caller
    if search.home == "own":
        # To take one is a use, if the store was only followed so far.
        await open_own(room, caller, search.call)
    terms = terms_of(room.settings)
    found = await store.write(
        lambda tx: jobs.claim_outside(tx, search.kinds, caller.author, terms),
        caller.actor(search.call),
    )
    if found is not None:
        room.reach("job.claimed")
    return found


async def give_up(room: Strongroom, caller: Caller, call: Call, home: Home, taken: Claim) -> None:
    """Give a claim back that reached nobody; the attempt is not charged."""
    await write(room, caller, call, home, lambda tx: jobs.release(tx, taken.id, taken.generation))
