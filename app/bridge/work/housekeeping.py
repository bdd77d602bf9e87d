"""Housekeeping of one store: what its time is over for goes, a batch a transaction.

Each batch holds the round by its generation, so whoever lost it writes nothing; between two
batches others write. A round that was cut is begun anew: what went is gone, the rest is
looked at again.
"""

from collections.abc import Callable, Sequence
from typing import Final, Generic, NamedTuple, TypeVar

from app.bridge import layout
from app.bridge.content import file_folders, waiting
from app.bridge.strongroom import Strongroom
from app.clock import Millis
from app.db.context import system_actor
from app.db.owner.store import OwnerStore, OwnerTransactor
from app.db.registry.store import RegistryTransactor
from app.db.runtime.store import RuntimeReader, RuntimeStore, RuntimeTransactor
from app.ids import UserId
from app.owner import access, scheduled_jobs, thinning
from app.registry import approvals, invitations, sessions, throttle
from app.runtime import (
    audit,
    deliveries,
    events,
    housekeeping,
    idempotency,
    jobs,
    leases,
    schedules,
)
from app.runtime.housekeeping import Round, Terms
from app.settings import Settings

ReaderT = TypeVar("ReaderT", bound=RuntimeReader)
TxT = TypeVar("TxT", bound=RuntimeTransactor)
ACTOR: Final = system_actor("housekeeping")
_HOUR_MS: Final = 3_600_000
_DAY_MS: Final = 24 * _HOUR_MS


class Swept(NamedTuple):
    """What one call of a sweep did."""

    removed: int
    cost: int
    """In rows removed, with what it took to look."""
    after: str | None
    """Where to go on, the sweep's own words; None when it is through."""


Sweep = Callable[[TxT, str, int], Swept]
"""Removes what its time is over for, from a place on, up to a cost."""
Prune = Callable[[TxT, int], int]
"""Removes up to so many rows; fewer when there are no more."""


class Place(NamedTuple):
    """How far a round has come."""

    sweep: int = 0
    after: str = ""


class Batch(NamedTuple):
    """What one transaction of a round did."""

    removed: int
    place: Place | None
    """Where to go on; None at the end."""


class Part(NamedTuple, Generic[TxT]):
    """The sweeps of a round that go through one face of a file."""

    sweeps: Sequence[Sweep[TxT]]

    def batch(self, tx: TxT, place: Place, limit: int) -> Batch:
        """Go on from a place, through as many sweeps as the limit allows.

        Args:
            tx: In the store.
            place: Where the batch before ended.
            limit: About how many rows to remove.

        Returns:
            What was done.
        """
        removed = spent = 0
        number, after = place
        while number < len(self.sweeps):
            swept = self.sweeps[number](tx, after, limit - spent)
            removed += swept.removed
            spent += swept.cost
            number, after = (number + 1, "") if swept.after is None else (number, swept.after)
            if spent >= limit:
                return Batch(removed, Place(number, after))
        return Batch(removed, None)


def _plain(prune: Prune[TxT]) -> Sweep[TxT]:
    """A sweep that begins anew each time, for what it removed is gone."""

    def sweep(tx: TxT, _after: str, limit: int) -> Swept:
        removed = prune(tx, limit)
        return Swept(removed, removed, None if removed < limit else "")

    return sweep


def _ago(tx: RuntimeTransactor, ms: int) -> Millis:
    return Millis(tx.now_ms - ms)


def of_every_store(settings: Settings) -> Part[OwnerTransactor]:
    """What is swept in a member's store and in the group's alike."""
    run_ms = settings.schedule_run_days * _DAY_MS

    def right(tx: OwnerTransactor, limit: int) -> int:
        return leases.right(tx, settings.job_lease_s * 1000, limit)

    def purge_jobs(tx: OwnerTransactor, limit: int) -> int:
        done = _ago(tx, settings.job_done_days * _DAY_MS)
        dead = _ago(tx, settings.job_dead_days * _DAY_MS)
        return jobs.purge(tx, done, dead, limit)

    def prune_deliveries(tx: OwnerTransactor, limit: int) -> int:
        done = _ago(tx, settings.delivered_days * _DAY_MS)
        dead = _ago(tx, settings.delivery_dead_days * _DAY_MS)
        return deliveries.prune(tx, done, limit, dead)

    def thin(tx: OwnerTransactor, after: str, limit: int) -> Swept:
        before = _ago(tx, settings.versions_thin_hours * _HOUR_MS)
        return Swept(*thinning.thin(tx, before, after, limit))

    audit_ms = settings.audit_field_days * _DAY_MS
    access_ms = settings.access_log_days * _DAY_MS
    record_ms = settings.operation_days * _DAY_MS
    return Part(
        [
            _plain(lambda tx, limit: idempotency.prune(tx, tx.now_ms, limit)),
            _plain(right),
            _plain(purge_jobs),
            _plain(prune_deliveries),
            _plain(lambda tx, limit: schedules.prune(tx, _ago(tx, run_ms), limit)),
            _plain(lambda tx, limit: scheduled_jobs.prune_runs(tx, _ago(tx, run_ms), limit)),
            thin,
            _plain(lambda tx, limit: thinning.shrink(tx, settings.versions_bytes_max, limit)),
            _plain(lambda tx, limit: access.prune(tx, _ago(tx, access_ms), limit)),
            _plain(lambda tx, limit: audit.expire_fields(tx, _ago(tx, audit_ms), limit)),
            _plain(lambda tx, limit: housekeeping.prune_records(tx, _ago(tx, record_ms), limit)),
        ]
    )


def of_the_group(settings: Settings) -> Part[OwnerTransactor]:
    """What is swept in the group's store alone: members prune their own events."""
    event_ms = settings.event_days * _DAY_MS
    return Part([_plain(lambda tx, limit: events.prune(tx, _ago(tx, event_ms), limit))])


def of_the_registry(settings: Settings) -> Part[RegistryTransactor]:
    """What is swept in the registry."""
    kept_ms = settings.session_kept_days * _DAY_MS
    approval_ms = settings.approval_kept_days * _DAY_MS
    return Part(
        [
            _plain(lambda tx, limit: sessions.prune(tx, _ago(tx, kept_ms), limit)),
            _plain(lambda tx, limit: invitations.prune(tx, _ago(tx, kept_ms), limit)),
            _plain(throttle.prune),
            _plain(approvals.expire),
            _plain(lambda tx, limit: approvals.prune(tx, _ago(tx, approval_ms), limit)),
        ]
    )


def terms_of(settings: Settings) -> Terms:
    """The figures of rounds."""
    return Terms(settings.housekeeping_s * 1000, settings.housekeeping_lease_s * 1000)


async def run(
    room: Strongroom, user_id: UserId | None, store: OwnerStore, owner: str
) -> int | None:
    """Do a whole round in a store, if one is due and nobody is at it.

    Args:
        room: The service.
        user_id: Whose store; None for the group's, and with it the registry.
        store: It.
        owner: Who does it; one name a process.

    Returns:
        How many rows and files went; None when there was no round to do.

    Raises:
        LeaseLostError: Another has taken the round over.
        StoreClosedError: The store was closed amid it.
    """
    terms = terms_of(room.settings)
    present = await store.write(
        lambda tx: housekeeping.take(tx, owner, terms), ACTOR, is_watch=True
    )
    if present is None:
        return None
    room.reach("housekeeping.taken")
    try:
        removed = await _sweep_all(room, user_id, store, present)
    except _EndingError:
        await store.write(lambda tx: housekeeping.release(tx, present), ACTOR, is_watch=True)
        return None
    await store.write(lambda tx: housekeeping.complete(tx, present, removed), ACTOR, is_watch=True)
    room.reach("housekeeping.completed")
    return removed


class _EndingError(Exception):
    """The process is about to end."""


async def _sweep_all(
    room: Strongroom, user_id: UserId | None, store: OwnerStore, present: Round
) -> int:
    removed = await _sweep(room, store, of_every_store(room.settings), present)
    if user_id is None:
        removed += await _sweep(room, store, of_the_group(room.settings), present)
        removed += await _sweep(room, room.stores.registry, of_the_registry(room.settings), present)
    else:
        removed += await waiting.settle(room.stores.registry, user_id, store)
    return removed + await _sweep_files(room, user_id or layout.GROUP, store, present)


async def _sweep(
    room: Strongroom, store: RuntimeStore[ReaderT, TxT], part: Part[TxT], present: Round
) -> int:
    terms, limit = terms_of(room.settings), room.settings.housekeeping_batch
    removed, place = 0, Place()
    while True:
        _require_going_on(room)

        def write(tx: TxT, place: Place = place) -> Batch:
            housekeeping.hold(tx, present, terms)
            return part.batch(tx, place, limit)

        done = await store.write(write, ACTOR, is_watch=True)
        room.reach("housekeeping.batch")
        removed += done.removed
        if done.place is None:
            return removed
        place = done.place


async def _sweep_files(
    room: Strongroom, owner_id: UserId, store: OwnerStore, present: Round
) -> int:
    terms, limit = terms_of(room.settings), room.settings.housekeeping_batch
    removed = 0
    while True:
        _require_going_on(room)
        await store.write(lambda tx: housekeeping.hold(tx, present, terms), ACTOR, is_watch=True)
        gone = await file_folders.sweep(room, owner_id, store, ACTOR, limit)
        removed += gone
        if gone < limit:
            return removed


def _require_going_on(room: Strongroom) -> None:
    if room.ending.is_set():
        raise _EndingError
