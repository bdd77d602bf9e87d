"""The throttle on guessing: a growing delay for an account and network, a bucket for a network.

Counters are keyed by HMAC, so the table never says what was typed. An account that is
unknown, inactive or real is counted alike.
"""

import hmac
from dataclasses import dataclass
from typing import Final, Literal

from app.clock import Millis
from app.db.registry import statements as sql
from app.db.registry.rows import ThrottleRow
from app.db.registry.store import RegistryReader, RegistryTransactor
from app.errors.callers import TooManyAttemptsError

WINDOW_MS: Final = 15 * 60 * 1000
"""After so long without a failure a counter starts anew."""
ACCOUNT_FREE: Final = 5
"""Failures of one account from one network that cost nothing."""
NETWORK_FREE: Final = 100
"""Failures of a whole network that cost nothing; none count after a recent success."""
DELAY_MAX_S: Final = 60
SUCCESS_MS: Final = 24 * 60 * 60 * 1000
"""For so long a network with a success is known as one."""
ROWS_MAX: Final = 100_000
_PRUNE: Final = 1_000

Kind = Literal["account", "network", "success"]


@dataclass(frozen=True, slots=True, repr=False)
class Attempt:
    """One attempt's counters, by the keys they have in the table."""

    account: bytes
    network: bytes
    success: bytes

    @classmethod
    def of(cls, key: bytes, username_key: str, network: str) -> "Attempt":
        """The counters of a name tried from a network, under the instance's throttle key."""

        def digest(kind: Kind, *parts: str) -> bytes:
            # Lone surrogates may have been typed; they name nobody and are counted alike.
            text = "\0".join((kind, *parts)).encode("utf-8", "surrogatepass")
            return hmac.digest(key, text, "sha256")

        return cls(
            account=digest("account", network, username_key),
            network=digest("network", network),
            success=digest("success", network),
        )


def is_trusted(reader: RegistryReader, attempt: Attempt) -> bool:
    """Whether the network had a success within a day."""
    row = reader.one(sql.FIND_THROTTLE, key=attempt.success)
    return row is not None and row.next_allowed_at > reader.now_ms


def admit(tx: RegistryTransactor, attempt: Attempt) -> bool:
    """Let an attempt go on, or refuse it for now.

    Once delays are in force an attempt is counted before its outcome is known, so that
    a burst gets one guess a delay, not one a connection.

    Returns:
        Whether the network is trusted.

    Raises:
        TooManyAttemptsError: Its delay is not over.
    """
    trusted = is_trusted(tx, attempt)
    limits: list[tuple[bytes, Kind, int]] = [(attempt.account, "account", ACCOUNT_FREE)]
    if not trusted:
        limits.append((attempt.network, "network", NETWORK_FREE))
    for key, _, _ in limits:
        row = _current(tx, key)
        if row.next_allowed_at > tx.now_ms:
            raise TooManyAttemptsError(-(-(row.next_allowed_at - tx.now_ms) // 1000))
    for key, kind, free in limits:
        if _current(tx, key).failures >= free:
            _count(tx, key, kind, free)
    return trusted


def fail(tx: RegistryTransactor, attempt: Attempt) -> None:
    """Count a failure that `admit` has not counted already."""
    limits: list[tuple[bytes, Kind, int]] = [
        (attempt.account, "account", ACCOUNT_FREE),
        (attempt.network, "network", NETWORK_FREE),
    ]
    for key, kind, free in limits:
        if _current(tx, key).failures < free:
            _count(tx, key, kind, free)
    _prune(tx)


def succeed(tx: RegistryTransactor, attempt: Attempt) -> None:
    """Forget the account's failures from this network, and remember the network's success."""
    tx.run(sql.REMOVE_THROTTLE, key=attempt.account)
    tx.run(
        sql.SET_THROTTLE,
        key=attempt.success,
        kind="success",
        failures=0,
        window_started_at=tx.now_ms,
        next_allowed_at=tx.now_ms + SUCCESS_MS,
    )
    _prune(tx)


def forget(tx: RegistryTransactor, attempt: Attempt) -> None:
    """Forget the account's failures from this network, as after an erasure."""
    tx.run(sql.REMOVE_THROTTLE, key=attempt.account)


def delay_s(failures: int, free: int) -> int:
    """Seconds to wait after so many failures: none while free, then 1, 2, 4 to 60."""
    if failures <= free:
        return 0
    return min(DELAY_MAX_S, 1 << min(failures - free - 1, 6))


def _current(reader: RegistryReader, key: bytes) -> ThrottleRow:
    row = reader.one(sql.FIND_THROTTLE, key=key)
    # A counter from the future is no counter: a clock set back must lock nobody out.
    if row is None or not 0 <= reader.now_ms - row.window_started_at <= WINDOW_MS:
        return ThrottleRow(0, reader.now_ms, Millis(0))
    return row


def _prune(tx: RegistryTransactor) -> None:
    """Keep the table bounded, whoever fills it: the oldest counters go."""
    total = tx.one(sql.COUNT_THROTTLE)
    if total is not None and total.value > ROWS_MAX:
        tx.run(sql.REMOVE_OLDEST_THROTTLE, count=_PRUNE)


def _count(tx: RegistryTransactor, key: bytes, kind: Kind, free: int) -> None:
    failures = _current(tx, key).failures + 1
    tx.run(
        sql.SET_THROTTLE,
        key=key,
        kind=kind,
        failures=failures,
        window_started_at=tx.now_ms,
        next_allowed_at=tx.now_ms + 1000 * delay_s(failures, free),
    )


def prune(tx: RegistryTransactor, limit: int) -> int:
    """Forget counters that count nothing any more, oldest first; how many."""
    before = tx.now_ms - WINDOW_MS
    return len(tx.run(sql.REMOVE_IDLE_THROTTLE, before=before, now=tx.now_ms, limit=limit))
