"""The throttle on guessing."""

import pytest

from app.db.registry import statements as sql
from app.db.registry.store import RegistryTransactor
from app.errors.callers import TooManyAttemptsError
from app.registry import throttle
from app.registry.throttle import ACCOUNT_FREE, NETWORK_FREE, WINDOW_MS, Attempt
from tests.support.stores import MovedClock

_KEY = b"key"
_ATTEMPT = Attempt.of(_KEY, "ana", "192.0.2.0/24")


def _guess(tx: RegistryTransactor, attempt: Attempt = _ATTEMPT, times: int = 1) -> None:
    for _ in range(times):
        throttle.admit(tx, attempt)
        throttle.fail(tx, attempt)


def _wait(tx: RegistryTransactor, attempt: Attempt = _ATTEMPT) -> int:
    """Seconds that the next attempt must wait; 0 when it need not."""
    try:
        throttle.admit(tx, attempt)
    except TooManyAttemptsError as error:
        return error.retry_after_s
    return 0


def test_five_failures_are_free_and_then_the_delay_doubles(
    tx: RegistryTransactor, clock: MovedClock
) -> None:
    """After the sixth 1 s, then 2, 4 and so on to a minute, and never more."""
    _guess(tx, times=ACCOUNT_FREE)
    delays = []
    for _ in range(9):
        _guess(tx)
        delays.append(_wait(tx))
        clock.advance(delays[-1] * 1000)
    assert delays == [1, 2, 4, 8, 16, 32, 60, 60, 60]


def test_a_burst_gets_one_guess_a_delay(tx: RegistryTransactor) -> None:
    """Once delays are in force an attempt counts before its outcome is known."""
    _guess(tx, times=ACCOUNT_FREE)
    throttle.admit(tx, _ATTEMPT)
    with pytest.raises(TooManyAttemptsError):
        throttle.admit(tx, _ATTEMPT)


def test_a_part_of_a_second_is_a_second(tx: RegistryTransactor, clock: MovedClock) -> None:
    """Nobody is told to come back too early."""
    _guess(tx, times=ACCOUNT_FREE + 1)
    clock.advance(1)
    assert _wait(tx) == 1


@pytest.mark.parametrize("forget", [throttle.succeed, throttle.forget])
def test_a_success_or_an_erasure_clears_the_account(tx: RegistryTransactor, forget: object) -> None:
    """From this network; the next failures are free again."""
    _guess(tx, times=ACCOUNT_FREE + 1)
    assert callable(forget)
    forget(tx, _ATTEMPT)
    _guess(tx, times=ACCOUNT_FREE)
    assert _wait(tx) == 0


def test_a_quarter_of_an_hour_without_failures_starts_anew(
    tx: RegistryTransactor, clock: MovedClock
) -> None:
    """The window is counted from the last failure."""
    _guess(tx, times=ACCOUNT_FREE)
    clock.advance(WINDOW_MS + 1)
    _guess(tx, times=ACCOUNT_FREE)
    assert _wait(tx) == 0


def test_a_clock_set_back_locks_nobody_out(tx: RegistryTransactor, clock: MovedClock) -> None:
    """A counter from the future is no counter."""
    _guess(tx, times=ACCOUNT_FREE + 1)
    clock.advance(-3_600_000)
    assert _wait(tx) == 0


def test_other_accounts_and_networks_are_counted_apart(tx: RegistryTransactor) -> None:
    """Neither the name from elsewhere nor another name from here waits."""
    _guess(tx, times=ACCOUNT_FREE + 1)
    assert _wait(tx, Attempt.of(_KEY, "ben", "192.0.2.0/24")) == 0
    assert _wait(tx, Attempt.of(_KEY, "ana", "198.51.100.0/24")) == 0


def test_a_network_has_a_bucket_of_its_own(tx: RegistryTransactor) -> None:
    """A hundred failures over all names are free, then the network waits as one."""
    for number in range(NETWORK_FREE + 1):
        _guess(tx, Attempt.of(_KEY, f"name {number}", "192.0.2.0/24"))
    fresh = Attempt.of(_KEY, "one more", "192.0.2.0/24")
    assert _wait(tx, fresh) == 1


def test_a_network_with_a_success_is_not_locked_out(
    tx: RegistryTransactor, clock: MovedClock
) -> None:
    """For a day its bucket is not judged; each account's own counter still is."""
    throttle.succeed(tx, _ATTEMPT)
    for number in range(NETWORK_FREE + 3):
        _guess(tx, Attempt.of(_KEY, f"name {number}", "192.0.2.0/24"))
    assert throttle.admit(tx, _ATTEMPT)
    _guess(tx, times=ACCOUNT_FREE + 1)
    assert _wait(tx) == 1
    clock.advance(throttle.SUCCESS_MS)
    assert not throttle.is_trusted(tx, _ATTEMPT)


def test_the_table_is_bounded(tx: RegistryTransactor, clock: MovedClock) -> None:
    """Whoever fills it, the oldest counters go; a thousand at a time."""
    tx.run(
        sql.SET_THROTTLE,
        key=b"old",
        kind="account",
        failures=9,
        window_started_at=0,
        next_allowed_at=0,
    )
    connection = tx._connection
    connection.all(
        "WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < :rows) "
        "INSERT INTO sign_in_throttle SELECT CAST(i AS BLOB), 'account', 1, i, 0 FROM n",
        {"rows": throttle.ROWS_MAX},
    )
    clock.advance(1)
    throttle.succeed(tx, _ATTEMPT)
    counted = tx.one(sql.COUNT_THROTTLE)
    assert counted is not None
    assert counted.value < throttle.ROWS_MAX
    assert tx.one(sql.FIND_THROTTLE, key=b"old") is None
    assert throttle.is_trusted(tx, _ATTEMPT)


def test_counters_never_say_what_was_typed() -> None:
    """They are keyed, apart for every use, and an odd text is counted like any other."""
    odd = Attempt.of(_KEY, "\ud800", "192.0.2.0/24")
    assert len({odd.account, odd.network, odd.success, _ATTEMPT.account}) == 4
    assert odd.network == _ATTEMPT.network
    assert Attempt.of(b"other", "ana", "192.0.2.0/24").account != _ATTEMPT.account
    assert "ana" not in repr(_ATTEMPT)
