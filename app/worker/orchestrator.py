"""Runs the program's own jobs, in every store that this process can work in.

It looks at each of them every second, and at once where its bell rang; a few jobs run at the
same time, of each store fewer still, and stores take turns. A look is two entries of an index
on a handle that is open anyway; a store whose handles are closed is left in peace until its
next work is due, but for a slow look for what dead processes left.
"""

import asyncio
import contextlib
import secrets
import socket
import time
from collections import deque
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Final

from app import metrics, telemetry
from app.bridge.strongroom import Strongroom
from app.bridge.work import waiting
from app.bridge.work.jobs import terms_of
from app.db.bell import heard
from app.db.context import system_actor
from app.db.owner.store import OwnerStore, OwnerTransactor
from app.db.runtime import statements as sql
from app.db.runtime.rows import ExpiredJobRow, NextJobRow
from app.db.runtime.store import Later
from app.errors.root import StrongroomError
from app.ids import UserId
from app.runtime import due, jobs
from app.runtime.jobs import Claim
from app.worker.attempt import Attempt, actor_of, rules_of
from app.worker.handlers import Handlers, JobContext

_ACTOR: Final = system_actor("jobs")
_RANDOM: Final = secrets.SystemRandom().random
_GLANCES: Final = 50
"""Looks in a row before the loop may do something else."""
_BLIND_LOOKS: Final = 20
"""Stores whose handles are closed, and which a bell called for, that one round looks at."""
_COUNTED: Final = 1000
"""Due jobs of one store that are counted."""
_AFTER_TROUBLE_MS: Final = 1000


@dataclass(slots=True, eq=False)
class _Place:
    """One store that this process can work in."""

    user_id: UserId | None
    store: OwnerStore
    next_at: int | None = None
    """Unix milliseconds; when its jobs next want something, as far as known."""
    looked_at: float = 0.0
    """Monotonic seconds of the last look."""
    busy: int = 0
    """Jobs that run, or are just being claimed."""
    claiming: asyncio.Task[None] | None = None
    running: dict[asyncio.Task[None], Attempt] = field(default_factory=dict)
    is_in_line: bool = False
    is_leaving: bool = False
    bell: contextlib.ExitStack = field(default_factory=contextlib.ExitStack)


class Orchestrator:
    """The program's own jobs in one process; told of stores as they come and go."""

    def __init__(
        self,
        room: Strongroom,
        handlers: Handlers,
        random: Callable[[], float] = _RANDOM,
    ) -> None:
        self._room = room
        settings = room.settings
        self._rules = rules_of(handlers, terms_of(settings), settings.idle_lock_s, random)
        self._owner = f"{socket.gethostname()}/{secrets.token_hex(4)}"
        self._wake = asyncio.Event()
        self._rung: set[_Place] = set()
        self._line: deque[_Place] = deque()
        self._busy = 0
        self._is_closing = False
        self._polled_at = -settings.job_poll_s
        self._group = self._add(None, room.stores.group)
        self._members = {
            user_id: self._add(user_id, unlocked.store)
            for user_id, unlocked in room.stores.unlocked().items()
        }

    def _add(self, user_id: UserId | None, store: OwnerStore) -> _Place:
        place = _Place(user_id, store)

        def ring() -> None:
            self._rung.add(place)
            self._wake.set()

        place.bell.enter_context(store.bell.calling(ring))
        ring()
        return place

    # -- stores come and go --------------------------------------------------------------------

    async def joined(self, user_id: UserId, store: OwnerStore) -> None:
        """Begin with a store that was unlocked just now."""
        if self._is_closing:
            return
        self._members[user_id] = self._add(user_id, store)
        await waiting.settle(self._room, user_id)

    async def leaving(self, user_id: UserId, store: OwnerStore) -> None:
        """Give back what is claimed in a store that is about to be closed, and say what waits."""
        place = self._members.pop(user_id, None)
        if place is not None:
            await self._empty([place])
        await waiting.note(self._room, user_id, store)

    async def close(self) -> None:
        """Give back everything that is claimed, and claim no more."""
        self._is_closing = True
        self._wake.set()
        await self._empty([self._group, *self._members.values()])

    async def _empty(self, places: Iterable[_Place]) -> None:
        attempts: dict[asyncio.Task[None], Attempt] = {}
        claiming: set[asyncio.Task[None]] = set()
        for place in places:
            place.is_leaving = True
            place.bell.close()
            self._rung.discard(place)
            attempts |= place.running
            # A claim under way is not cut, for it may be on the disk; it gives back by itself.
            claiming |= {place.claiming} if place.claiming else set()
        for task in attempts:
            task.cancel()
        if attempts or claiming:
            await asyncio.wait(attempts.keys() | claiming)
        for task, attempt in attempts.items():
            # One that was cut before its first step could not do it by itself.
            if task.cancelled():
                await attempt.give_back()

    # -- rounds --------------------------------------------------------------------------------

    async def run(self) -> None:
        """Look and run until `close`; no error ends it."""
        while not self._is_closing:
            try:
                await self._round()
            except Exception as error:  # noqa: BLE001 - the boundary of a loop
                telemetry.unexpected("jobs", error)
            await heard(self._wake, self._room.settings.job_poll_s)

    async def _round(self) -> None:
        """Look where there may be news, and begin what there is room for."""
        settings = self._room.settings
        rung, self._rung = self._rung, set()
        places: Iterable[_Place] = rung
        is_poll = time.monotonic() - self._polled_at >= settings.job_poll_s
        if is_poll:
            self._polled_at = time.monotonic()
            places = [self._group, *self._members.values()]
        blind: list[_Place] = []
        for count, place in enumerate(places, 1):
            if not place.is_leaving and not self._glance(place):
                blind.append(place)
            if count % _GLANCES == 0:
                await asyncio.sleep(0)
        await self._look(self._wanted(blind, rung, is_poll=is_poll))
        self._fill()
        if is_poll:
            await self._measure()

    def _glance(self, place: _Place) -> bool:
        """Look without opening anything; False when that cannot be done."""
        try:
            found = place.store.glance(sql.FIND_NEXT_JOB)
        except StrongroomError:
            return False
        if isinstance(found, Later) or found is None:
            return False
        self._note(place, found)
        return True

    def _wanted(self, blind: list[_Place], rung: set[_Place], *, is_poll: bool) -> list[_Place]:
        """Those of the stores with closed handles that are worth opening them now."""
        now, before = self._room.clock(), time.monotonic() - self._room.settings.job_look_s
        for place in blind:
            if place.next_at is not None and place.next_at <= now:
                self._line_up(place)
        idle = [place for place in blind if not place.is_in_line]
        called = [place for place in idle if place in rung]
        stale = [place for place in idle if place not in rung and place.looked_at < before]
        # Whoever waits longest comes first, for there may be too many for one round.
        stale.sort(key=lambda place: place.looked_at)
        most = self._room.settings.stale_looks_max
        # Those for whom there is no time now are looked at in a later round.
        self._rung |= set(called[_BLIND_LOOKS:])
        return called[:_BLIND_LOOKS] + (stale[:most] if is_poll else [])

    async def _look(self, places: list[_Place]) -> None:
        for place in places:
            if place.is_leaving:
                continue
            try:
                self._note(place, await place.store.watch(due.next_due))
            except StrongroomError as error:
                place.looked_at = time.monotonic()
                telemetry.job_stuck(type(error).__name__)

    def _note(self, place: _Place, found: NextJobRow) -> None:
        place.looked_at = time.monotonic()
        place.next_at = min((at for at in found if at is not None), default=None)
        if place.next_at is not None and place.next_at <= self._room.clock():
            self._line_up(place)

    def _line_up(self, place: _Place) -> None:
        """Have a place wait for its turn, unless it does, or has as much as it may."""
        has_room = place.busy < self._room.settings.jobs_per_store and place.claiming is None
        if has_room and not place.is_in_line and not place.is_leaving:
            place.is_in_line = True
            self._line.append(place)

    def _fill(self) -> None:
        """Give free slots to the places in line: to each one before any has two."""
        settings = self._room.settings
        while self._line and self._busy < settings.jobs_at_once and not self._is_closing:
            place = self._line.popleft()
            place.is_in_line = False
            if place.is_leaving:
                continue
            free = settings.jobs_at_once - self._busy
            share = max(1, free // (len(self._line) + 1))
            count = min(share, settings.jobs_per_store - place.busy)
            self._occupy(place, count)
            place.claiming = asyncio.create_task(self._claim(place, count))

    def _occupy(self, place: _Place, count: int) -> None:
        place.busy += count
        self._busy += count

    # -- claims --------------------------------------------------------------------------------

    async def _claim(self, place: _Place, count: int) -> None:
        """Claim up to so many jobs and begin them."""
        claims: list[Claim] = []
        try:
            expired, claims, found = await place.store.write(
                lambda tx: self._take(tx, count), _ACTOR
            )
            self._tell_expired(expired)
            if claims:
                self._room.reach("job.claimed")
            self._note(place, found)
        except Exception as error:  # noqa: BLE001 - the boundary of a task
            if not isinstance(error, StrongroomError):
                telemetry.unexpected("claim", error)
            place.next_at = self._room.clock() + _AFTER_TROUBLE_MS
        finally:
            place.claiming = None
            self._occupy(place, len(claims) - count)
        for claim in claims:
            await self._begin(place, claim)
        self._look_again(place)

    def _take(
        self, tx: OwnerTransactor, count: int
    ) -> tuple[list[ExpiredJobRow], list[Claim], NextJobRow]:
        expired = jobs.expire(tx, self._rules.terms)
        claims = jobs.claim(tx, self._owner, self._rules.terms, count)
        return expired, claims, due.next_due(tx)

    async def _begin(self, place: _Place, claim: Claim) -> None:
        actor = actor_of(claim, place.user_id)
        context = JobContext(
            self._room, place.store, place.user_id, claim.id, claim.attempts, actor
        )
        attempt = Attempt(self._rules, context, claim)
        if place.is_leaving:
            await attempt.give_back()
            self._occupy(place, -1)
            return
        task = asyncio.create_task(self._run(claim, attempt))
        place.running[task] = attempt
        task.add_done_callback(lambda done: self._end(place, done))

    async def _run(self, claim: Claim, attempt: Attempt) -> None:
        known = self._rules.handlers.find(claim.kind) is not None
        ending = await attempt.run()
        metrics.job_ended(claim.kind if known else "unknown", ending)
        if ending == "dead":
            telemetry.job_dead(claim.kind if known else "unknown", claim.attempts)

    def _end(self, place: _Place, task: asyncio.Task[None]) -> None:
        del place.running[task]
        self._occupy(place, -1)
        if not task.cancelled() and (error := task.exception()) is not None:
            telemetry.unexpected("attempt", error)
        self._look_again(place)

    def _look_again(self, place: _Place) -> None:
        if not place.is_leaving:
            if place.next_at is not None and place.next_at <= self._room.clock():
                self._line_up(place)
                self._fill()
            else:
                self._rung.add(place)
                self._wake.set()

    def _tell_expired(self, expired: Iterable[ExpiredJobRow]) -> None:
        for row in expired:
            kind = metrics.OUTSIDE if row.is_outside else row.kind
            metrics.job_ended(kind, "dead" if row.status == "dead" else "expired")

    async def _measure(self) -> None:
        """Tell how much is due, and since when; counted in a few stores, and up to a bound."""
        if not metrics.is_on():
            return
        now = self._room.clock()
        places = (self._group, *self._members.values())
        owed = {p: p.next_at for p in places if p.next_at is not None and p.next_at <= now}
        count = 0
        for place in list(owed)[:_BLIND_LOOKS]:
            with contextlib.suppress(StrongroomError):
                count += await place.store.watch(lambda r: due.count_due(r, _COUNTED))
        metrics.jobs_due(count, (now - min(owed.values())) / 1000 if owed else 0.0)
