"""Counts for Prometheus: one function an event, and nothing kept unless somebody may read it.

Labels are templates of routes, statuses, codes of problems, kinds that the program registered,
results and states: never a path, a name, or a kind that a member's program made up. The workers
of a server count in files of one folder, so that whoever asks any of them is told the sums.
"""

import contextlib
import os
import re
from pathlib import Path
from typing import TYPE_CHECKING, Final, Literal

from app.settings import share_counts

if TYPE_CHECKING:
    from prometheus_client import CollectorRegistry

OUTSIDE: Final = "outside"
"""The kind, for counting, of every job that programs outside do."""
DeliveryKind = Literal["webhook", "internal"]
BreakerState = Literal["open", "closed"]
_METHODS: Final = frozenset({"GET", "POST", "PUT", "PATCH", "DELETE", "HEAD", "OPTIONS"})
_LIVE: Final = re.compile(r"gauge_live[a-z]*_([0-9]+)\.db")


class _Counts:
    """What one process counts."""

    def __init__(self) -> None:
        from prometheus_client import Counter, Gauge  # noqa: PLC0415 - reads the environment

        self.requests = Counter(
            "strongroom_http_requests_total",
            "Requests answered, by route template, status and the code of a problem.",
            ("route", "status", "code"),
        )
        self.jobs = Counter(
            "strongroom_jobs_total", "Attempts at jobs that ended, by kind.", ("kind", "result")
        )
        self.waiting = Gauge(
            "strongroom_jobs_waiting",
            "Jobs that are due, as the worker that sees the most of them counts.",
            multiprocess_mode="livemax",
        )
        self.oldest = Gauge(
            "strongroom_jobs_oldest_seconds",
            "How long the job that is due for longest has been.",
            multiprocess_mode="livemax",
        )
        self.deliveries = Counter(
            "strongroom_deliveries_total",
            "Tries of deliveries that ended, by kind.",
            ("kind", "result"),
        )
        self.breakers = Counter(
            "strongroom_breakers_total",
            "Breakers of connections that came into a state.",
            ("state",),
        )
        # A counter's own look-up by labels costs four times as much as its counting.
        self.by_answer: dict[tuple[str, str, int, str], Counter] = {}


class _State:
    counts: _Counts | None = None


def clear(folder: Path) -> None:
    """Forget what an earlier start of the server counted; alone on its root."""
    if folder.is_dir():
        for file in folder.glob("*.db"):
            file.unlink()


def begin(folder: Path) -> None:
    """Count from now on, in this process."""
    if _State.counts is None:
        folder.mkdir(mode=0o700, exist_ok=True)
        share_counts(folder)
        _State.counts = _Counts()


def is_on() -> bool:
    """Whether anybody may read them."""
    return _State.counts is not None


def answered(method: str, template: str, status: int, code: str = "") -> None:
    """A request was answered.

    Args:
        method: Of HTTP.
        template: Of its route; a path that is no route's counts as one.
        status: Of the answer.
        code: The problem's, if it is one.
    """
    counts = _State.counts
    if counts is None:
        return
    key = (method, template, status, code)
    counter = counts.by_answer.get(key)
    if counter is None:
        known = method if method in _METHODS else "other"
        counter = counts.requests.labels(f"{known} {template}", str(status), code)
        if known == method:
            counts.by_answer[key] = counter
    counter.inc()


def job_ended(kind: str, result: str) -> None:
    """An attempt at a job is over.

    Args:
        kind: One that the program registered, `unknown`, or OUTSIDE.
        result: How it ended.
    """
    if _State.counts is not None:
        _State.counts.jobs.labels(kind, result).inc()


def delivery_tried(kind: DeliveryKind, result: str) -> None:
    """A try of a delivery is over.

    Args:
        kind: Whom it tells: a webhook, or a part of the program.
        result: What became of the delivery.
    """
    if _State.counts is not None:
        _State.counts.deliveries.labels(kind, result).inc()


def breaker_turned(state: BreakerState) -> None:
    """A connection's breaker opened, or closed after it was open."""
    if _State.counts is not None:
        _State.counts.breakers.labels(state).inc()


def jobs_due(count: int, oldest_s: float) -> None:
    """How many of the program's jobs are due here, and since when the first of them."""
    if _State.counts is not None:
        _State.counts.waiting.set(count)
        _State.counts.oldest.set(oldest_s)


def _gather(folder: Path) -> "CollectorRegistry":
    """The sums over every worker, read anew each time it is asked."""
    from prometheus_client import CollectorRegistry, multiprocess  # noqa: PLC0415 - as above

    registry = CollectorRegistry()
    multiprocess.MultiProcessCollector(registry, path=str(folder))  # type: ignore[no-untyped-call]
    return registry


def exposition(folder: Path) -> bytes:
    """All counts in Prometheus' text format, summed over the workers."""
    from prometheus_client import generate_latest  # noqa: PLC0415 - as above

    _forget_dead(folder)
    return generate_latest(_gather(folder))


def _forget_dead(folder: Path) -> None:
    """What a dead worker saw last is no longer so; what it counted stays."""
    for file in folder.glob("gauge_live*.db"):
        match = _LIVE.fullmatch(file.name)
        if match is not None and not Path(f"/proc/{match[1]}").exists():
            with contextlib.suppress(FileNotFoundError):
                os.unlink(file)  # noqa: PTH108 - as the library does
