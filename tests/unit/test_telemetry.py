"""The log."""

import json
import subprocess
import sys

import pytest

from app.project import PROJECT_FOLDER

_CANARY = "canary-3f1c"

_PRELUDE = f"""
import gc, logging, threading
from pathlib import Path
from app import clock, telemetry
from app.ids import UserId

secret = "{_CANARY}"

def fail():
    clock.parse_rfc3339(secret)
"""


def _log_of(body: str, *, configure: str = "telemetry.configure()") -> list[dict[str, object]]:
    """The lines that a process of its own writes; the whole of its standard error."""
    ended = subprocess.run(  # noqa: S603 - the test's own program
        [sys.executable, "-c", f"{_PRELUDE}\n{configure}\n{body}"],
        cwd=PROJECT_FOLDER,
        capture_output=True,
        text=True,
        check=False,
        timeout=30,
    )
    assert ended.stdout == ""
    assert _CANARY not in ended.stderr
    return [json.loads(line) for line in ended.stderr.splitlines()]


def test_each_event_is_one_line_with_its_facts() -> None:
    """Every event's line says when, how grave, which process, which event and its facts."""
    body = """
telemetry.serving("127.0.0.1", 8321, 2)
telemetry.setup_token_ready(Path("/r/database/setup.token"))
telemetry.worker_started(7, 0)
telemetry.worker_ended(7, 0)
telemetry.worker_ended(7, -9)
telemetry.gave_up(5)
telemetry.stopping()
telemetry.stopped()
telemetry.store_opened(UserId("u1"))
telemetry.store_locked(UserId("u1"))
telemetry.operation_finished("rotate")
telemetry.operation_undone("sign_up")
telemetry.operation_late("erase", "k")
telemetry.operation_diverged("erase", "k")
telemetry.janitor_repaired("orphan_slot", 2)
telemetry.janitor_found("missing_file", 1)
telemetry.request_failed("/api/file", "internal_error", "r1")
"""
    lines = _log_of(body, configure="telemetry.configure('debug')")
    assert len({line.pop("pid") for line in lines}) == 1
    assert all(str(line.pop("at")).endswith("Z") for line in lines)
    assert [tuple(line.values()) for line in lines] == [
        ("info", "serving", "127.0.0.1", 8321, 2),
        ("info", "setup_token_ready", "/r/database/setup.token"),
        ("info", "worker_started", 7, 0),
        ("info", "worker_ended", 7, 0),
        ("warning", "worker_ended", 7, -9),
        ("error", "gave_up", 5),
        ("info", "stopping"),
        ("info", "stopped"),
        ("debug", "store_opened", "u1"),
        ("debug", "store_locked", "u1"),
        ("warning", "operation_finished", "rotate"),
        ("warning", "operation_undone", "sign_up"),
        ("error", "operation_late", "erase", "k"),
        ("error", "operation_diverged", "erase", "k"),
        ("warning", "janitor_repaired", "orphan_slot", 2),
        ("error", "janitor_found", "missing_file", 1),
        ("error", "request_failed", "/api/file", "internal_error", "r1"),
    ]


def test_a_level_hides_what_is_less_grave() -> None:
    """Below the chosen level nothing is written."""
    body = "telemetry.stopping(); telemetry.operation_undone('sign_up')"
    lines = _log_of(body, configure="telemetry.configure('warning')")
    assert [line["event"] for line in lines] == ["operation_undone"]


def test_a_worker_is_named_in_its_lines() -> None:
    """A worker's lines carry its index, those of another process none."""
    assert (
        _log_of("telemetry.stopping()", configure="telemetry.configure(worker=3)")[0]["worker"] == 3
    )
    assert "worker" not in _log_of("telemetry.stopping()")[0]


def test_an_unexpected_error_is_told_by_types_and_own_frames_only() -> None:
    """The types of an error and its causes are named, the lines of this package, and no text."""
    body = """
try:
    try:
        fail()
    except ValueError as error:
        raise OSError(secret) from error
except OSError as error:
    telemetry.unexpected("test", error)
"""
    (line,) = _log_of(body)
    assert (line["event"], line["where"]) == ("unexpected", "test")
    assert line["errors"] == ["builtins.OSError", "builtins.ValueError"]
    assert isinstance(line["frames"], list)
    assert [frame.split(":")[0] for frame in line["frames"]] == ["app/clock.py"]


def test_a_group_of_errors_is_told_by_its_members() -> None:
    """A group's members are named, each once; a long list is cut."""
    body = """
one = ValueError(secret)
telemetry.unexpected("test", ExceptionGroup(secret, [one, one, KeyError(secret)]))
telemetry.unexpected("test", ExceptionGroup(secret, [KeyError(n) for n in range(100)]))
"""
    few, many = _log_of(body)
    assert few["errors"] == ["builtins.ExceptionGroup", "builtins.ValueError", "builtins.KeyError"]
    assert isinstance(many["errors"], list)
    assert len(many["errors"]) == 8


@pytest.mark.parametrize(
    ("body", "where"),
    [
        pytest.param("fail()", "process", id="main thread"),
        pytest.param(
            "t = threading.Thread(target=fail); t.start(); t.join()", "thread", id="thread"
        ),
        pytest.param(
            "class Bad:\n    def __del__(self): fail()\nBad()\ngc.collect()",
            "finalizer",
            id="finalizer",
        ),
    ],
)
def test_an_error_nobody_caught_is_told_the_same_way(body: str, where: str) -> None:
    """No text of an uncaught error reaches standard error, wherever it arose."""
    (line,) = _log_of(body)
    assert (line["event"], line["where"]) == ("unexpected", where)


def test_a_hook_without_an_error_writes_nothing() -> None:
    """The interpreter may report that something went wrong without saying what."""
    body = "telemetry._uncaught('thread', None)"
    assert _log_of(body) == []


def test_what_a_library_logs_is_cut_down() -> None:
    """A library's record says where it was made and which error it carries, never its text."""
    body = """
library = logging.getLogger("library")
library.info("hello %s", secret)
library.error("bad %s", secret)
try:
    fail()
except ValueError:
    library.exception(secret)
"""
    plain, with_error = _log_of(body)
    assert (plain["event"], plain["logger"], plain["level"]) == ("library", "library", "error")
    assert str(plain["source"]).startswith("<string>:")
    assert "errors" not in plain
    assert with_error["errors"] == ["builtins.ValueError"]
