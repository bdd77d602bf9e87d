"""Rounds of housekeeping: one owner at a time, by a lease and a generation.

A round is due so long after the last whole one, so hours that were missed make one round.
"""

from dataclasses import dataclass
from typing import Final

from app.clock import Millis
from app.db.runtime import statements as sql
from app.db.runtime.rows import HousekeepingRow
from app.db.runtime.store import RuntimeReader, RuntimeTransactor
from app.errors.conflicts import LeaseLostError

HOURLY: Final = "hourly"
"""The one kind of round there is."""


@dataclass(frozen=True, slots=True)
class Round:
    """A round, as whoever has it names it."""

    owner: str
    generation: int


@dataclass(frozen=True, slots=True)
class Terms:
    """The figures of rounds, from the settings."""

    every_ms: int
    lease_ms: int


def find(reader: RuntimeReader) -> HousekeepingRow | None:
    """How rounds go in a store; None before the first."""
    return reader.one(sql.FIND_HOUSEKEEPING, name=HOURLY)


def due_at(row: HousekeepingRow | None, now: Millis, terms: Terms) -> int:
    """When the next round may begin, as far as its row tells; a time that is past for at once."""
    if row is None:
        return now
    done = row.last_completed_at
    # A time of the future is one by a clock that was set back since.
    next_at = now if done is None or done > now else done + terms.every_ms
    if row.lease_until is not None and now < row.lease_until <= now + terms.lease_ms:
        return max(next_at, row.lease_until)
    return next_at


def take(tx: RuntimeTransactor, owner: str, terms: Terms) -> Round | None:
    """Begin a round; None when none is due, or another is at it."""
    rows = tx.run(
        sql.TAKE_HOUSEKEEPING,
        name=HOURLY,
        owner=owner,
        now=tx.now_ms,
        until=tx.now_ms + terms.lease_ms,
        completed_by=tx.now_ms - terms.every_ms,
    )
    return Round(owner, rows[0].value) if rows else None


def hold(tx: RuntimeTransactor, present: Round, terms: Terms) -> None:
    """Keep a round for longer, in the transaction of what it does.

    Raises:
        LeaseLostError: Another has it: nothing of this may be committed.
    """
    until = tx.now_ms + terms.lease_ms
    if not tx.run(sql.RENEW_HOUSEKEEPING, until=until, **_names(present)):
        raise LeaseLostError


def release(tx: RuntimeTransactor, present: Round) -> None:
    """Let an unfinished round go; another may begin at once."""
    tx.run(sql.RELEASE_HOUSEKEEPING, **_names(present))


def complete(tx: RuntimeTransactor, present: Round, removed: int) -> None:
    """End a whole round.

    Raises:
        LeaseLostError: Another has it.
    """
    done = tx.run(sql.COMPLETE_HOUSEKEEPING, now=tx.now_ms, removed=removed, **_names(present))
    if not done:
        raise LeaseLostError


def prune_records(tx: RuntimeTransactor, before: Millis, limit: int) -> int:
    """Forget operations that were over before a time; how many."""
    return len(tx.run(sql.REMOVE_FINISHED_RECORDS, before=before, limit=limit))


def _names(present: Round) -> dict[str, str | int]:
    return {"name": HOURLY, "owner": present.owner, "generation": present.generation}
