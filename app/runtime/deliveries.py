"""What is owed to subscribers: claimed, tried, settled, at least once each.

    pending -> running            claimed, for as long as its lease; the try counts
    running -> succeeded          it was taken
    running -> retry              it failed: again after a pause
    running -> dead               it failed for the last time, or its endpoint is gone
    running -> pending, retry     broken off from our side: the try does not count
    pending, retry -> held        its connection's breaker is open; no try is spent
    held    -> pending, retry     the breaker closed, or this one is the probe
    any     -> cancelled          not to be told, or an operator's act

Only the claim of the present generation may settle it. Deliveries of one subscriber and
entity go one by one, in the order of their events: who comes behind another is `is_waiting`,
kept by triggers beside the table. A member's row is in the member's own store.
"""

from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from typing import Final, Literal, NamedTuple

from app.db.runtime import statements as sql
from app.db.runtime.rows import BreakerRow, ClaimRow, OwedRow, TargetRow
from app.db.runtime.store import RuntimeReader, RuntimeTransactor
from app.runtime import breakers
from app.runtime.subscriptions import connection_of

Owed = OwedRow
"""What a delivery tells: an event, as it was."""

GONE: Final = "gone"
"""The failure of an endpoint that asks for no more, ever."""
NOT_PERMITTED: Final = "not_permitted"
"""Why a delivery was cancelled: its subscriber may not see the event now."""
_HOLD_MAX: Final = 200
"""Deliveries that one look holds back; the next look takes the others."""


@dataclass(frozen=True, slots=True)
class Policy:
    """How often and when it is tried."""

    retries_ms: Sequence[int]
    """Pauses between tries; after the last of them it is dead."""
    lease_ms: int
    """How long a claim holds."""
    breaker: breakers.Rule


class Due(NamedTuple):
    """One delivery that may be tried, or must be held."""

    id: str
    subscription_id: str
    connection: str
    is_blocked: bool
    """Whether its connection's breaker is open and pauses: then it is held, not tried."""


@dataclass(frozen=True, slots=True)
class Claimed:
    """One delivery, taken: what is told, and to whom."""

    id: str
    generation: int
    attempts: int
    """Tries, this one included."""
    owed: Owed
    target: TargetRow
    connection: str
    is_probe: bool = False


@dataclass(frozen=True, slots=True)
class Result:
    """How a try went."""

    failure: str | None = None
    """A class of failure, as `timeout`; None when it was taken."""
    status: int | None = None
    """Of the HTTP answer; None when there was none."""
    is_connections: bool = False
    """Whether the failure is the connection's, and moves its breaker."""
    retry_after_ms: int = 0
    """How long the endpoint asks to be left alone."""


Turn = Literal["open", "closed"]
"""The state that a breaker came into: closed, only after it was open."""
Settled = Literal["succeeded", "retry", "held", "dead", "lost"]
"""What became of a delivery; `lost`: somebody else has it, or an operator cancelled it."""


def look(reader: RuntimeReader, most: int, busy: Collection[str] = ()) -> list[Due]:
    """What may be tried now, fairly over subscribers.

    Args:
        reader: Of the store.
        most: Of one subscriber.
        busy: Subscribers, by id, that are to be passed over.

    Returns:
        What is due, of each subscriber the longest due first.
    """
    now = reader.now_ms
    due: list[Due] = []
    open_ones = {row.connection: row for row in reader.all(sql.LIST_OPEN_BREAKERS)}
    pausing = {name for name, row in open_ones.items() if not breakers.may_probe(row, now)}
    for connection in open_ones.keys() - pausing:
        probe = reader.one(sql.FIND_PROBE, connection=connection)
        if probe is None or probe.next_attempt_at > now or probe.subscription_id in busy:
            continue
        due.append(Due(probe.id, probe.subscription_id, connection, is_blocked=False))
    for subscriber in reader.all(sql.LIST_SUBSCRIBERS):
        connection = connection_of(subscriber)
        is_blocked = connection in pausing
        if subscriber.id in busy and not is_blocked:
            continue
        limit = _HOLD_MAX if is_blocked else most
        found = reader.all(sql.LIST_DUE, subscription_id=subscriber.id, now=now, limit=limit)
        due += [Due(row.value, subscriber.id, connection, is_blocked) for row in found]
    return due


@dataclass(slots=True)
class _Claims:
    """One round of claiming in one transaction."""

    tx: RuntimeTransactor
    owner: str
    policy: Policy
    targets: dict[str, TargetRow | None] = field(default_factory=dict)
    breakers: dict[str, BreakerRow | None] = field(default_factory=dict)

    def take(self, due: Due) -> Claimed | None:
        target = self._target(due.subscription_id)
        if target is None:
            return None
        connection = connection_of(target)
        breaker = self._breaker(connection)
        is_probe = False
        if breaker is not None and breakers.is_open(breaker):
            if not breakers.may_probe(breaker, self.tx.now_ms):
                now = self.tx.now_ms
                self.tx.run(sql.HOLD_DELIVERY, id=due.id, connection=connection, now=now)
                return None
            is_probe = True
            self.tx.run(sql.RELEASE_PROBE, id=due.id, now=self.tx.now_ms)
        claim = self._claim(due.id)
        if claim is None:
            return None
        if is_probe and breaker is not None:
            until = self.tx.now_ms + self.policy.lease_ms
            self.breakers[connection] = breakers.begin_probe(self.tx, breaker, until)
        owed = self.tx.one(sql.FIND_OWED, event_seq=claim.event_seq)
        if owed is None:  # pragma: no cover - its foreign key forbids it
            return None
        return Claimed(
            claim.id, claim.generation, claim.attempts, owed, target, connection, is_probe
        )

    def _claim(self, delivery_id: str) -> ClaimRow | None:
        now = self.tx.now_ms
        until = now + self.policy.lease_ms
        rows = self.tx.run(
            sql.CLAIM_DELIVERY, id=delivery_id, owner=self.owner, now=now, until=until
        )
        return rows[0] if rows else None

    def _target(self, subscription_id: str) -> TargetRow | None:
        if subscription_id not in self.targets:
            self.targets[subscription_id] = self.tx.one(sql.FIND_TARGET, id=subscription_id)
        return self.targets[subscription_id]

    def _breaker(self, connection: str) -> BreakerRow | None:
        if connection not in self.breakers:
            self.breakers[connection] = breakers.find(self.tx, connection)
        return self.breakers[connection]


def claim(tx: RuntimeTransactor, due: Sequence[Due], owner: str, policy: Policy) -> list[Claimed]:
    """Take deliveries that a look found, as far as they are still to be had.

    What a breaker holds back is marked so and not taken.

    Args:
        tx: In their store.
        due: As `look` found them.
        owner: Name of the runner, for the record.
        policy: How long a claim holds.

    Returns:
        Those taken: each try counts, and its lease runs.
    """
    claims = _Claims(tx, owner, policy)
    taken = (claims.take(each) for each in due)
    return [each for each in taken if each is not None]


def settle(
    tx: RuntimeTransactor, claimed: Claimed, result: Result, policy: Policy, jitter: float
) -> tuple[Settled, Turn | None]:
    """Record how a try went.

    Args:
        tx: In the delivery's store.
        claimed: As it was taken.
        result: How it went.
        policy: When it is tried again.
        jitter: Factor of that pause, as 1.1.

    Returns:
        What became of it, and the state that its connection's breaker came into by it.
    """
    settled = _settle_row(tx, claimed, result, policy, jitter)
    if settled == "lost":
        return settled, None
    is_open, turn = _settle_breaker(tx, claimed, result, policy)
    if is_open and settled == "retry":
        tx.run(sql.HOLD_FAILED, id=claimed.id, connection=claimed.connection, now=tx.now_ms)
        settled = "held"
    return settled, turn


def _settle_row(
    tx: RuntimeTransactor, claimed: Claimed, result: Result, policy: Policy, jitter: float
) -> Settled:
    of_it: dict[str, str | int | None] = {
        "id": claimed.id,
        "generation": claimed.generation,
        "last_failure": result.failure,
        "last_status": result.status,
    }
    settled: Settled = "succeeded"
    if result.failure is not None:
        is_last = claimed.attempts > len(policy.retries_ms) or result.failure == GONE
        settled = "dead" if is_last else "retry"
    if settled == "retry":
        pause = int(policy.retries_ms[claimed.attempts - 1] * jitter)
        at = tx.now_ms + max(pause, min(result.retry_after_ms, max(policy.retries_ms)))
        rows = tx.run(sql.DELAY_DELIVERY, next_attempt_at=at, **of_it)
    else:
        rows = tx.run(sql.FINISH_DELIVERY, status=settled, now=tx.now_ms, **of_it)
    if not rows:
        return "lost"
    if result.failure == GONE:
        subscriber = claimed.target.id
        tx.run(sql.DISABLE_SUBSCRIPTION, id=subscriber, reason=GONE, now=tx.now_ms)
        tx.run(sql.END_SUBSCRIPTION, subscription_id=subscriber, now=tx.now_ms)
    return settled


def _settle_breaker(
    tx: RuntimeTransactor, claimed: Claimed, result: Result, policy: Policy
) -> tuple[bool, Turn | None]:
    """Whether the connection's breaker is open now, and the state it came into by this."""
    if claimed.target.url is None:
        return False, None
    if result.is_connections:
        is_open, opened = breakers.note_failure(
            tx, claimed.connection, policy.breaker, is_probe=claimed.is_probe
        )
        return is_open, "open" if opened else None
    if result.failure is not None and result.status is None:
        # Refused before anything was sent: it says nothing of the connection.
        breakers.end_probe(tx, claimed.connection)
        return breakers.is_open(breakers.find(tx, claimed.connection)), None
    closed = breakers.note_success(tx, claimed.connection)
    return False, "closed" if closed else None


def release(tx: RuntimeTransactor, claimed: Sequence[Claimed]) -> int:
    """Give claims back whose tries were broken off from our side; they do not count.

    Returns:
        How many were still held.
    """
    count = 0
    for each in claimed:
        if tx.run(sql.RELEASE_DELIVERY, id=each.id, generation=each.generation):
            count += 1
            if each.is_probe:
                breakers.end_probe(tx, each.connection)
    return count


def drop(tx: RuntimeTransactor, claimed: Claimed) -> None:
    """End a claimed delivery untold: its subscriber may not see the event now."""
    tx.run(
        sql.FINISH_DELIVERY,
        id=claimed.id,
        generation=claimed.generation,
        status="cancelled",
        now=tx.now_ms,
        last_failure=NOT_PERMITTED,
        last_status=None,
    )
    if claimed.is_probe:
        breakers.end_probe(tx, claimed.connection)


def handled(tx: RuntimeTransactor, delivery_id: str, subscriber: str) -> bool:
    """Note that a delivery has its effect in this store with this transaction.

    Args:
        tx: In the store that the effect is written in, which may be another than the delivery's.
        delivery_id: Of the delivery, the same at every try.
        subscriber: Name of the part of the program that acts.

    Returns:
        Whether it had it before: then the caller does nothing.
    """
    noted = tx.run(sql.NOTE_HANDLED, delivery_id=delivery_id, subscriber=subscriber, now=tx.now_ms)
    return not noted


def next_due_at(reader: RuntimeReader, alert_ms: int) -> int | None:
    """When there is next something to do here.

    Args:
        reader: Of the store.
        alert_ms: How long a breaker is open before that is told.

    Returns:
        Unix milliseconds UTC; None until somebody writes.
    """
    found = reader.one(sql.FIND_NEXT_DELIVERY, alert_ms=alert_ms)
    return None if found is None else found.value


def prune(
    tx: RuntimeTransactor, before_ms: int, limit: int, dead_before_ms: int | None = None
) -> int:
    """Remove what every subscriber was told, or will not be, since before a moment.

    Args:
        tx: In any store.
        before_ms: Deliveries that ended since are kept.
        limit: Rows of each kind at most.
        dead_before_ms: Dead ones that ended since are kept, and the marks of what was handled;
            None: as `before_ms`.

    Returns:
        How many rows went; fewer than the limit when nothing is left.
    """
    dead_before = before_ms if dead_before_ms is None else dead_before_ms
    gone = len(tx.run(sql.REMOVE_DELIVERED, before=before_ms, dead_before=dead_before, limit=limit))
    gone += len(tx.run(sql.REMOVE_UNOWED, before=before_ms, limit=limit))
    return gone + len(tx.run(sql.REMOVE_HANDLED, before=dead_before, limit=limit))
