"""The one table from code to status, and answers that give nothing back."""

import json

import pytest

from app.errors.callers import (
    InvalidCredentialsError,
    TooManyApprovalsError,
    TooManyAttemptsError,
    TooManyStreamsError,
)
from app.errors.conflicts import AlreadyExistsError, ManyMatchesError, VersionConflictError
from app.errors.root import StrongroomError
from app.errors.starting import StartError
from app.errors.stores import DiskFullError, StoreBusyError
from app.web.errors import (
    CODES,
    STATUS,
    field_errors,
    framework_problem,
    response_to,
    unexpected_problem,
)


def kinds(parent: type[StrongroomError] = StrongroomError) -> list[type[StrongroomError]]:
    """Every class of error that a request can meet."""
    below = [kind for child in parent.__subclasses__() for kind in kinds(child)]
    return [kind for kind in [parent, *below] if not issubclass(kind, StartError)]


def own_kinds() -> list[type[StrongroomError]]:
    """Those of the one tree; the program has a few more, which no answer shows."""
    return [kind for kind in kinds() if kind.__module__.startswith("app.errors.")]


def test_every_error_has_its_status() -> None:
    """The table names each code that a request can meet, and no other."""
    assert {kind.code for kind in kinds()} == set(STATUS)


def test_every_429_says_when_to_come_back() -> None:
    """A class knows it, or whoever raises it must say."""
    limits = [kind for kind in own_kinds() if STATUS[kind.code] == 429]
    assert len(limits) >= 3
    for kind in limits:
        error = kind(7) if kind is TooManyAttemptsError else kind()
        assert int(response_to(error, "").headers["retry-after"]) > 0, kind


def test_no_two_errors_share_a_code() -> None:
    """A program can tell them apart."""
    codes = [kind.code for kind in own_kinds()]
    assert len(codes) == len(set(codes))


@pytest.mark.parametrize(
    ("error", "headers", "more"),
    [
        (
            TooManyAttemptsError(17),
            {"retry-after": "17", "ratelimit": '"attempts";r=0;t=17'},
            {},
        ),
        (TooManyStreamsError(), {"retry-after": "10"}, {}),
        (TooManyApprovalsError(), {"retry-after": "60"}, {}),
        (StoreBusyError(), {"retry-after": "1"}, {}),
        (DiskFullError(), {}, {}),
        (VersionConflictError(4), {"etag": '"4"'}, {"current_version": 4}),
        (VersionConflictError(), {}, {"current_version": None}),
        (VersionConflictError("0f"), {"etag": '"0f"'}, {"current_version": "0f"}),
        (AlreadyExistsError(9), {"etag": '"9"'}, {"current_version": 9}),
        (ManyMatchesError([2, 5]), {}, {"lines": [2, 5]}),
        (InvalidCredentialsError(), {"www-authenticate": "Bearer"}, {}),
    ],
    ids=[
        "throttle",
        "streams",
        "approvals",
        "busy",
        "full disk",
        "stale",
        "gone",
        "other content",
        "exists",
        "many",
        "credentials",
    ],
)
def test_an_error_says_what_helps(
    error: StrongroomError, headers: dict[str, str], more: dict[str, object]
) -> None:
    """When to come back, and what stands there now."""
    answer = response_to(error, "some-id")
    body = json.loads(bytes(answer.body))
    assert answer.status_code == body["status"] == STATUS[error.code]
    assert answer.media_type == "application/problem+json"
    known = {"type", "title", "status", "detail", "code", "request_id"}
    assert {name: body[name] for name in body if name not in known} == more
    assert body["code"] == error.code
    assert body["request_id"] == "some-id"
    sent = dict(answer.headers)
    assert {name: sent[name] for name in sent if not name.startswith("content-")} == headers


def test_the_program_answers_no_code_that_is_not_listed() -> None:
    """Whatever status the framework comes with."""
    for status in (400, 404, 405, 406, 413, 415, 418, 421):
        assert json.loads(bytes(framework_problem(status, "").body))["code"] in CODES
    assert json.loads(bytes(unexpected_problem("").body))["code"] in CODES


@pytest.mark.parametrize(
    ("location", "kind", "expected"),
    [
        (("body", "canary"), "extra_forbidden", ["body"]),
        (("body", "edits", 3, "canary"), "extra_forbidden", ["body", "edits", 3]),
        (("query", ""), "extra_forbidden", ["query"]),
        (("body", "metadata", "canary", "int"), "int_type", ["body", "metadata"]),
        (("body", "metadata", "canary", "[key]"), "string_too_long", ["body", "metadata"]),
        (("body", "edits", 0, "lines"), "list_type", ["body", "edits", 0, "lines"]),
    ],
)
def test_names_that_a_client_made_up_are_left_out(
    location: tuple[str | int, ...], kind: str, expected: list[str | int]
) -> None:
    """An unknown field may itself be a secret, put in the wrong place."""
    [found] = field_errors([{"loc": location, "type": kind, "input": "canary", "msg": "canary"}])
    assert found["location"] == expected
    assert "canary" not in str(found)
