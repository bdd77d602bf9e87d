"""What every request passes, whatever answers it."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any, Final

import pytest
from starlette.types import Message, Receive, Scope, Send

from app import metrics
from app.errors.callers import NotFoundError
from app.errors.stores import StoreLockedError
from app.web.envelope import TRACE_ID, Envelope
from app.web.errors import CODES, REQUEST_ID, response_to
from app.web.hot import HotPath

_LIMIT: Final = 10
_ALWAYS: Final = {
    b"x-content-type-options",
    b"referrer-policy",
    b"content-security-policy",
    b"cache-control",
    b"x-request-id",
}
App = Callable[[Scope, Receive, Send], Awaitable[None]]


async def answer_well(_scope: Scope, _receive: Receive, send: Send) -> None:
    """Answer with nothing but a body."""
    await send({"type": "http.response.start", "status": 200, "headers": [(b"a", b"b")]})
    await send({"type": "http.response.body", "body": b"well"})


async def read_all(scope: Scope, receive: Receive, send: Send) -> None:
    """Read the body to its end, then answer."""
    while (await receive()).get("more_body"):
        continue
    await answer_well(scope, receive, send)


async def read_on(scope: Scope, receive: Receive, send: Send) -> None:
    """Read until the client is gone, then answer."""
    while (await receive())["type"] == "http.request":
        continue
    await answer_well(scope, receive, send)


async def fail(_scope: Scope, _receive: Receive, _send: Send) -> None:
    """Fail as no program should."""
    message = "a secret"
    raise ValueError(message)


async def refuse(_scope: Scope, _receive: Receive, _send: Send) -> None:
    """Fail as the program does."""
    raise NotFoundError


async def fail_late(scope: Scope, receive: Receive, send: Send) -> None:
    """Fail once the answer is under way."""
    await answer_well(scope, receive, send)
    await fail(scope, receive, send)


async def refuse_late(scope: Scope, receive: Receive, send: Send) -> None:
    """Refuse once the answer is under way."""
    await answer_well(scope, receive, send)
    await refuse(scope, receive, send)


def ask(  # noqa: PLR0913 - the parts of one request
    app: App,
    *,
    method: str = "GET",
    headers: tuple[tuple[bytes, bytes], ...] = (),
    body: tuple[bytes, ...] = (b"",),
    path: str = "/x",
    host: str | None = None,
) -> tuple[list[Message], Scope]:
    """Send one request through an envelope; the answer and the scope as it was left."""
    pieces = [
        {"type": "http.request", "body": piece, "more_body": number < len(body) - 1}
        for number, piece in enumerate(body)
    ]
    heard: list[Message] = []

    async def receive() -> Message:
        return pieces.pop(0) if pieces else {"type": "http.disconnect"}

    async def send(message: Message) -> None:
        heard.append(message)

    scope: dict[str, Any] = {
        "type": "http",
        "method": method,
        "path": path,
        "query_string": b"",
        "headers": list(headers),
    }
    envelope = Envelope(app, HotPath(), json_bytes_max=1, body_limits={"/x": _LIMIT}, host=host)
    asyncio.run(envelope(scope, receive, send))
    return heard, scope


@pytest.mark.parametrize("app", [answer_well, refuse, fail])
def test_every_answer_is_named_and_guarded(app: App) -> None:
    """The headers that all answers have are there once, on errors as well."""
    heard, scope = ask(app)
    names = [name for name, _ in heard[0]["headers"]]
    assert set(names) >= _ALWAYS
    assert len(names) == len(set(names))
    assert dict(heard[0]["headers"])[b"x-request-id"].decode() == scope[REQUEST_ID]


def test_a_shared_answer_is_left_as_it_was() -> None:
    """The headers of an answer that is given again do not grow."""
    shared = [(b"a", b"b")]

    async def app(_scope: Scope, _receive: Receive, send: Send) -> None:
        await send({"type": "http.response.start", "status": 200, "headers": shared})
        await send({"type": "http.response.body", "body": b""})

    ask(app)
    assert shared == [(b"a", b"b")]


@pytest.mark.parametrize(
    ("app", "status"), [pytest.param(refuse, 404, id="known"), pytest.param(fail, 500, id="not")]
)
def test_what_escapes_the_application_becomes_a_problem(app: App, status: int) -> None:
    """And says nothing of what was wrong."""
    heard, _ = ask(app)
    assert heard[0]["status"] == status
    assert b"secret" not in heard[1]["body"]


@pytest.mark.parametrize(
    ("app", "kind"),
    [
        pytest.param(fail_late, ValueError, id="not"),
        pytest.param(refuse_late, NotFoundError, id="known"),
    ],
)
def test_an_answer_under_way_is_broken_off(app: App, kind: type[Exception]) -> None:
    """No second head follows the first; the server in front closes the connection."""
    with pytest.raises(kind):
        ask(app)


@pytest.mark.parametrize(
    ("headers", "body", "status"),
    [
        pytest.param((), (b"x" * _LIMIT,), 200, id="fits"),
        pytest.param((), (b"x" * _LIMIT, b"x"), 413, id="too large in pieces"),
        pytest.param(((b"content-length", b"11"),), (b"",), 413, id="too large as announced"),
        pytest.param(
            ((b"content-length", b"9" * 5_000),), (b"",), 413, id="announced beyond reason"
        ),
        pytest.param(((b"content-length", b"-1"),), (b"",), 413, id="announced as no number"),
        pytest.param(((b"transfer-encoding", b" Chunked"),), (b"",), 200, id="in chunks"),
        pytest.param(((b"transfer-encoding", b"gzip, chunked"),), (b"",), 400, id="compressed"),
        pytest.param(((b"x", b"y" * 65_536),), (b"",), 400, id="headers too large"),
        pytest.param(((b"idempotency-key", b"k"),), (b"",), 200, id="a key on a write"),
        pytest.param(((b"idempotency-key", b"a key"),), (b"",), 422, id="a key that is none"),
        pytest.param(((b"idempotency-key", b"k"),) * 2, (b"",), 422, id="two keys"),
    ],
)
def test_no_request_is_larger_than_its_call_takes(
    headers: tuple[tuple[bytes, bytes], ...], body: tuple[bytes, ...], status: int
) -> None:
    """A body's limit holds as announced and as it comes; the headers have one too."""
    heard, _ = ask(read_all, method="PUT", headers=headers, body=body)
    assert heard[0]["status"] == status


def test_the_end_of_a_connection_is_handed_on() -> None:
    """It is no part of a body."""
    heard, _ = ask(read_on)
    assert heard[0]["status"] == 200


@pytest.mark.parametrize(
    ("headers", "path", "status"),
    [
        pytest.param(((b"host", b"room.example"),), "/x", 200, id="its name"),
        pytest.param(((b"host", b"Room.Example"),), "/x", 200, id="its name in capitals"),
        pytest.param(((b"host", b"evil.example"),), "/x", 421, id="another name"),
        pytest.param((), "/x", 421, id="no name"),
        pytest.param(((b"host", b"room.example"),) * 2, "/x", 421, id="two names"),
        pytest.param(((b"host", b"127.0.0.1"),), "/healthz", 200, id="health of the box"),
    ],
)
def test_a_service_with_a_public_name_answers_to_that_alone(
    headers: tuple[tuple[bytes, bytes], ...], path: str, status: int
) -> None:
    """A page of another site cannot make its own name point here and be trusted."""
    heard, _ = ask(answer_well, headers=headers, path=path, host="room.example")
    assert heard[0]["status"] == status


@pytest.mark.parametrize(
    ("value", "trace_id"),
    [
        pytest.param(b"00-" + b"ab" * 16 + b"-" + b"cd" * 8 + b"-01", "ab" * 16, id="well made"),
        pytest.param(b"00-xyz-01", None, id="not"),
        pytest.param(b"00-" + b"00" * 16 + b"-" + b"cd" * 8 + b"-01", None, id="no trace"),
        pytest.param(b"00-" + b"ab" * 16 + b"-" + b"00" * 8 + b"-01", None, id="no parent"),
    ],
)
def test_a_callers_trace_is_taken_when_it_can_be_read(value: bytes, trace_id: str | None) -> None:
    """What cannot be read is passed over."""
    _, scope = ask(answer_well, headers=((b"traceparent", value),))
    assert scope.get(TRACE_ID) == trace_id


async def refuse_inside(scope: Scope, receive: Receive, send: Send) -> None:
    """Refuse as the application answers a refusal."""
    await response_to(StoreLockedError(), "r")(scope, receive, send)


@pytest.mark.parametrize(
    ("app", "labels"),
    [
        pytest.param(answer_well, (200, ""), id="well"),
        pytest.param(refuse, (404, "not_found"), id="refused"),
        pytest.param(refuse_inside, (423, "store_locked"), id="refused inside"),
        pytest.param(fail, (500, "internal_error"), id="failed"),
    ],
)
def test_an_answer_is_counted_by_the_code_of_its_problem(
    monkeypatch: pytest.MonkeyPatch, app: App, labels: tuple[int, str]
) -> None:
    """One of the codes that there are; nothing for what is no problem."""
    counted: list[tuple[object, ...]] = []
    monkeypatch.setattr(metrics, "answered", lambda *each: counted.append(each))
    ask(app)
    assert counted == [("GET", "unrouted", *labels)]
    assert labels[1] in CODES | {""}


def test_what_is_no_request_is_passed_on_as_it_is() -> None:
    """The lifespan is the application's own."""
    seen = []

    async def app(scope: Scope, _receive: Receive, _send: Send) -> None:
        seen.append(scope)

    async def nothing(*_: Any) -> Any:  # noqa: ANN401 - never called
        raise AssertionError

    envelope = Envelope(app, HotPath(), json_bytes_max=1, body_limits={})
    asyncio.run(envelope({"type": "lifespan"}, nothing, nothing))
    assert seen == [{"type": "lifespan"}]
