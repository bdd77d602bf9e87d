"""The log: one function an event, one JSON object a line, on standard error.

A line holds counts, codes, opaque ids, route templates and files of the box: never
content, a key, a note's path, a username, nor the text of an exception, for any of
these may quote what a member wrote. What a library logs is cut down by the same rule.
"""

import json
import logging
import sys
import threading
import traceback
from collections.abc import Iterator
from pathlib import Path
from typing import Literal

from typing_extensions import override

from app.clock import Millis, rfc3339
from app.ids import UserId

_LOGGER = logging.getLogger("strongroom")
_APP_FOLDER = Path(__file__).resolve().parent
_CAUSES_MAX = 8

_Fact = str | int | list[str]


def configure(
    level: Literal["debug", "info", "warning", "error"] = "info", worker: int | None = None
) -> None:
    """Send this process's log to standard error, errors that nobody caught included.

    Args:
        level: Least level of Strongroom's own events; a library's are kept from warning up.
        worker: Index of this worker, named in each line; None in any other process.
    """
    handler = logging.StreamHandler()
    handler.setFormatter(_JsonLine(worker))
    logging.raiseExceptions = False  # else a failing handler prints the record's arguments
    root = logging.getLogger()
    root.handlers = [handler]
    root.setLevel(logging.WARNING)
    _LOGGER.setLevel(level.upper())
    sys.excepthook = lambda _kind, error, _trace: unexpected("process", error)
    threading.excepthook = lambda caught: _uncaught("thread", caught.exc_value)
    sys.unraisablehook = lambda caught: _uncaught("finalizer", caught.exc_value)


def serving(host: str, port: int, workers: int) -> None:
    """The socket listens and the workers are being started."""
    _write(logging.INFO, "serving", host=host, port=port, workers=workers)


def setup_token_ready(file: Path) -> None:
    """The token that makes the first administrator stands in this file."""
    _write(logging.INFO, "setup_token_ready", file=str(file))


def worker_started(pid: int, index: int) -> None:
    """The parent started a worker."""
    _write(logging.INFO, "worker_started", worker_pid=pid, index=index)


def worker_ended(pid: int, code: int) -> None:
    """A worker is gone; a negative code is the signal that ended it."""
    _write(
        logging.INFO if code == 0 else logging.WARNING, "worker_ended", worker_pid=pid, code=code
    )


def gave_up(deaths: int) -> None:
    """A worker died too young this many times in a row; the server stops."""
    _write(logging.ERROR, "gave_up", deaths=deaths)


def stopping() -> None:
    """The parent asks its workers to end."""
    _write(logging.INFO, "stopping")


def stopped() -> None:
    """Every worker is gone."""
    _write(logging.INFO, "stopped")


def store_opened(user_id: UserId) -> None:
    """This process opened a member's store."""
    _write(logging.DEBUG, "store_opened", user_id=user_id)


def store_locked(user_id: UserId) -> None:
    """This process closed a member's store and zeroed its key."""
    _write(logging.DEBUG, "store_locked", user_id=user_id)


def store_migrated(owner: str, version: str) -> None:
    """A store was brought to the present version, as `8.4`."""
    _write(logging.INFO, "store_migrated", owner=owner, version=version)


def store_migration_failed(owner: str, code: str) -> None:
    """A store could not be brought to the present version, and is as it was."""
    _write(logging.ERROR, "store_migration_failed", owner=owner, code=code)


def store_drifted(owner: str, objects: int) -> None:
    """The schema of a store differs in so many objects from what the migrations make."""
    _write(logging.ERROR, "store_drifted", owner=owner, objects=objects)


def operation_finished(name: str) -> None:
    """A half-done operation was found and finished."""
    _write(logging.WARNING, "operation_finished", name=name)


def operation_undone(name: str) -> None:
    """A half-done operation was found and undone."""
    _write(logging.WARNING, "operation_undone", name=name)


def operation_late(name: str, key: str) -> None:
    """An operation has been half-done for long; told once."""
    _write(logging.ERROR, "operation_late", name=name, key=key)


def operation_diverged(name: str, key: str) -> None:
    """A half-done operation was begun otherwise than this program knows: a person decides."""
    _write(logging.ERROR, "operation_diverged", name=name, key=key)


def janitor_repaired(kind: str, count: int) -> None:
    """The janitor put right what had drifted apart."""
    _write(logging.WARNING, "janitor_repaired", kind=kind, count=count)


def janitor_found(kind: str, count: int) -> None:
    """The janitor found what only the operator can put right."""
    _write(logging.ERROR, "janitor_found", kind=kind, count=count)


def job_dead(kind: str, attempts: int) -> None:
    """One of the program's own jobs will not be tried again, after so many attempts."""
    _write(logging.ERROR, "job_dead", kind=kind, attempts=attempts)


def record_broken(fault: str) -> None:
    """The chain of system.db's audit does not hold; what is wrong with it."""
    _write(logging.ERROR, "record_broken", fault=fault)


def job_stuck(code: str) -> None:
    """A store stood in the way of its jobs; they are tried again."""
    _write(logging.WARNING, "job_stuck", code=code)


def delivery_dead(failure: str) -> None:
    """A subscriber was not told of an event, and will not be; the last failure's class."""
    _write(logging.WARNING, "delivery_dead", failure=failure)


def delivery_chain_ended(subscriber: str) -> None:
    """What a part of the program writes is a chain's last link: nobody is told of it."""
    _write(logging.WARNING, "delivery_chain_ended", subscriber=subscriber)


def breaker_opened() -> None:
    """A connection failed so often that it is left alone for a while."""
    _write(logging.WARNING, "breaker_opened")


def breakers_stay_open(count: int) -> None:
    """So many connections have failed for long; told once each."""
    _write(logging.ERROR, "breakers_stay_open", count=count)


def housekeeping_done(removed: int) -> None:
    """A round in one store took so many rows and files away."""
    _write(logging.INFO, "housekeeping_done", removed=removed)


def request_failed(route: str, code: str, request_id: str | None) -> None:
    """A request met a fault of the service.

    Args:
        route: The route's template, never the path that was asked for.
        code: The error's stable code.
        request_id: What the client was told to quote.
    """
    _write(logging.ERROR, "request_failed", route=route, code=code, request_id=request_id or "")


def unexpected(where: str, error: BaseException) -> None:
    """An error reached a boundary that expects none.

    Args:
        where: The boundary, a fixed word.
        error: Told by the names of its types and the lines of this package it passed.
    """
    _write(logging.ERROR, "unexpected", where=where, **_outline(error))


def _write(level: int, event: str, **facts: _Fact) -> None:
    _LOGGER.log(level, event, extra={"facts": {"event": event, **facts}})


def _uncaught(where: str, error: BaseException | None) -> None:
    if error is not None:
        unexpected(where, error)


class _JsonLine(logging.Formatter):
    """Turns a record into its line; of a library's record only where and what kind."""

    def __init__(self, worker: int | None) -> None:
        super().__init__()
        self._place = {} if worker is None else {"worker": worker}

    @override
    def format(self, record: logging.LogRecord) -> str:
        line = {
            "at": rfc3339(Millis(int(record.created * 1000))),
            "level": record.levelname.lower(),
            "pid": record.process,
            **self._place,
            **(getattr(record, "facts", None) or _cut_down(record)),
        }
        return json.dumps(line)


def _cut_down(record: logging.LogRecord) -> dict[str, _Fact]:
    """A library's record without its text: the line of its source tells what it says."""
    facts: dict[str, _Fact] = {
        "event": "library",
        "logger": record.name,
        "source": f"{record.filename}:{record.lineno}",
    }
    error = record.exc_info[1] if record.exc_info else None
    return facts if error is None else facts | _outline(error)


def _outline(error: BaseException) -> dict[str, list[str]]:
    causes = list(_walk_causes(error))
    return {
        "errors": [f"{type(cause).__module__}.{type(cause).__qualname__}" for cause in causes],
        "frames": [frame for cause in causes for frame in _walk_frames(cause)],
    }


def _walk_causes(error: BaseException) -> Iterator[BaseException]:
    """The error, the members of its group and what caused it, the first few, each once."""
    waiting, seen = [error], set[int]()
    while waiting and len(seen) < _CAUSES_MAX:
        cause = waiting.pop(0)
        if id(cause) in seen:
            continue
        seen.add(id(cause))
        yield cause
        if isinstance(cause, BaseExceptionGroup):
            waiting += cause.exceptions
        behind = cause.__cause__ or cause.__context__
        if behind is not None:
            waiting.append(behind)


def _walk_frames(error: BaseException) -> Iterator[str]:
    for frame, line in traceback.walk_tb(error.__traceback__):
        file = Path(frame.f_code.co_filename)
        if file.is_relative_to(_APP_FOLDER):
            yield f"{file.relative_to(_APP_FOLDER.parent)}:{line}"
