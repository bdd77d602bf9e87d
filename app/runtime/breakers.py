"""Circuit breakers: a connection that fails again and again is left alone, and probed.

    closed  -> open      after so many failures in a row
    open    -> probing   when its pause is over and a held delivery is due by its own times
    probing -> open      the probe failed: the next pause, longer up to a bound
    any     -> closed    somebody got through; then there is no row

A connection is a scheme, a host and a port, as `https://example.com:443`. Its breaker stands
beside the deliveries, in their store, so every process that works there goes by it.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from app.db.runtime import statements as sql
from app.db.runtime.rows import BreakerRow
from app.db.runtime.store import RuntimeReader, RuntimeTransactor
from app.errors.callers import NotFoundError

Breaker = BreakerRow
"""How one connection has done of late."""


@dataclass(frozen=True, slots=True)
class Rule:
    """When a breaker opens, and how long it pauses."""

    failures: int
    """In a row, that open it."""
    pauses_ms: Sequence[int]
    """Before each probe; the last one for every further."""

    def pause_ms(self, number: int) -> int:
        """How long the pause of this number is, counted from 0."""
        return self.pauses_ms[min(number, len(self.pauses_ms) - 1)]


def find(reader: RuntimeReader, connection: str) -> Breaker | None:
    """How a connection has done of late; None when well."""
    return reader.one(sql.FIND_BREAKER, connection=connection)


def list_all(reader: RuntimeReader) -> list[Breaker]:
    """Every connection that failed of late, by name."""
    return reader.all(sql.LIST_BREAKERS)


def is_open(breaker: Breaker | None) -> bool:
    """Whether it holds deliveries back; it does while it probes."""
    return breaker is not None and breaker.opened_at is not None


def may_probe(breaker: Breaker, now_ms: int) -> bool:
    """Whether its pause is over, or the probe under way was lost with its process."""
    return breaker.next_probe_at is not None and breaker.next_probe_at <= now_ms


def begin_probe(tx: RuntimeTransactor, breaker: Breaker, until_ms: int) -> Breaker:
    """Let one delivery through; should nobody say how it went, another may go then."""
    probing = breaker._replace(state="probing", next_probe_at=until_ms)
    _set(tx, probing)
    return probing


def note_success(tx: RuntimeTransactor, connection: str) -> bool:
    """Somebody got through: the breaker closes, and what it held goes on.

    Returns:
        Whether it was open.
    """
    removed = tx.run(sql.REMOVE_BREAKER, connection=connection)
    if not removed or removed[0].value is None:
        return False
    tx.run(sql.RELEASE_CONNECTION, connection=connection)
    return True


def note_failure(
    tx: RuntimeTransactor, connection: str, rule: Rule, *, is_probe: bool
) -> tuple[bool, bool]:
    """Somebody did not get through.

    Args:
        tx: In the store of the delivery.
        connection: That failed.
        rule: When it opens.
        is_probe: Whether it was the probe of an open breaker. Only a probe moves its pause:
            others that fail were under way before it opened.

    Returns:
        Whether the breaker is open now, and whether it was opened by this.
    """
    found = find(tx, connection)
    if found is None:
        found = BreakerRow(connection, "closed", 0, 0, None, None, None, 0)
    failed = found._replace(failures=found.failures + 1)
    opens = found.opened_at is None and failed.failures >= rule.failures
    if opens:
        failed = failed._replace(
            state="open", opened_at=tx.now_ms, next_probe_at=tx.now_ms + rule.pause_ms(0)
        )
    elif found.opened_at is not None and is_probe:
        failed = _paused(failed, found.pauses + 1, tx.now_ms, rule)
    _set(tx, failed)
    return failed.opened_at is not None, opens


def end_probe(tx: RuntimeTransactor, connection: str) -> None:
    """A probe was broken off from our side: the next may go at once."""
    found = find(tx, connection)
    if found is not None and found.state == "probing":
        _set(tx, found._replace(state="open", next_probe_at=tx.now_ms))


def hurry(tx: RuntimeTransactor, connection: str) -> None:
    """End the pause of an open breaker: what is due next is its probe."""
    found = find(tx, connection)
    if found is not None and found.opened_at is not None:
        _set(tx, found._replace(state="open", next_probe_at=tx.now_ms))


def reset(tx: RuntimeTransactor, connection: str) -> Breaker:
    """Close a breaker by hand.

    Returns:
        How it was.

    Raises:
        NotFoundError: This connection has not failed.
    """
    found = find(tx, connection)
    if found is None:
        raise NotFoundError
    note_success(tx, connection)
    return found


def alert(tx: RuntimeTransactor, before_ms: int) -> int:
    """Mark those that are open since before this moment and that nobody was told of.

    Returns:
        How many, to be told once.
    """
    return len(tx.run(sql.ALERT_BREAKERS, before=before_ms, now=tx.now_ms))


def _paused(breaker: Breaker, pauses: int, now_ms: int, rule: Rule) -> Breaker:
    return breaker._replace(
        state="open", pauses=pauses, next_probe_at=now_ms + rule.pause_ms(pauses)
    )


def _set(tx: RuntimeTransactor, breaker: Breaker) -> None:
    tx.run(
        sql.SET_BREAKER,
        connection=breaker.connection,
        state=breaker.state,
        failures=breaker.failures,
        pauses=breaker.pauses,
        opened_at=breaker.opened_at,
        next_probe_at=breaker.next_probe_at,
    )
