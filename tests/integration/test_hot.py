"""The read in front of the router, and the ordinary route behind it, are one to a client."""

import asyncio
import json
import time
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any, Final, cast
from urllib.parse import quote, unquote

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from starlette.types import Message, Scope
from typing_extensions import override

from app.bridge import quick
from app.bridge.strongroom import Strongroom
from app.db.context import system_actor
from app.db.registry import statements as sql
from app.ids import UserId
from app.main import create_app
from app.web.envelope import Envelope
from app.web.hot import Answer, HotPath
from app.web.rules import RULES
from tests.support import rooms
from tests.support.rooms import CHEAP, PASSWORD
from tests.support.stores import MovedClock

Headers = list[tuple[bytes, bytes]]
_KIND: Final = (b"content-type", b"text/markdown")
_JSON: Final = (b"content-type", b"application/json")
_ACTOR: Final = system_actor("test")
_NOTE: Final = b"path=user-memory/note.md"


@dataclass(frozen=True, slots=True)
class Heard:
    """An answer, without what differs from one to the next."""

    status: int
    headers: Headers
    body: bytes


class CountedHotPath(HotPath):
    """The hot path, which can be switched off and counts its answers."""

    def __init__(self, inner: HotPath) -> None:
        super().__init__()
        self._inner = inner
        self.is_on = True
        self.answers = 0

    @override
    def answer(self, scope: Scope) -> Answer | None:
        """As the path within, while it is on."""
        found = self._inner.answer(scope) if self.is_on else None
        self.answers += found is not None
        return found


class Service:
    """The application on a loop that stands between two requests."""

    def __init__(self, runner: asyncio.Runner, envelope: Envelope, clock: MovedClock) -> None:
        self.runner = runner
        self.envelope = envelope
        self.clock = clock
        self.inner = envelope._hot
        self.hot = CountedHotPath(self.inner)
        envelope._hot = self.hot
        self.bearer = (b"authorization", b"")
        self.user_id = UserId("")

    @property
    def room(self) -> Strongroom:
        """The service within."""
        assert self.inner.room is not None
        return self.inner.room

    def ask(
        self,
        query: bytes,
        headers: Headers,
        method: str = "GET",
        path: str = "/api/file",
        body: bytes = b"",
    ) -> Heard:
        """Send one request as the server in front would hand it on."""
        heard: list[Message] = []
        pieces = [{"type": "http.request", "body": body, "more_body": False}]

        async def receive() -> Message:
            return pieces.pop() if pieces else {"type": "http.disconnect"}

        async def send(message: Message) -> None:
            heard.append(message)

        scope = {
            "type": "http",
            "method": method,
            "path": unquote(path),
            "raw_path": path.encode(),
            "query_string": query,
            "headers": headers,
            "client": ("192.0.2.1", 1),
            "server": ("127.0.0.1", 8321),
            "scheme": "http",
            "http_version": "1.1",
            "root_path": "",
        }
        self.runner.run(self.envelope(scope, receive, send))
        start, *rest = heard
        own = dict(start["headers"])[b"x-request-id"]
        kept = sorted(pair for pair in start["headers"] if pair[0] != b"x-request-id")
        whole = b"".join(piece.get("body", b"") for piece in rest)
        return Heard(start["status"], kept, whole.replace(own, b"ID"))

    def compare(self, query: bytes, headers: Headers, method: str = "GET") -> tuple[Heard, bool]:
        """Ask with the hot path and without: one answer; and whether the hot path gave it."""
        before = self.hot.answers
        self.hot.is_on = False
        ordinary = self.ask(query, headers, method)
        self.hot.is_on = True
        hot = self.ask(query, headers, method)
        assert hot == ordinary
        return hot, self.hot.answers > before

    def send_json(self, path: str, body: dict[str, Any], headers: Headers) -> dict[str, Any]:
        """Post; the answer's body."""
        made = self.ask(b"", [*headers, _JSON], "POST", path, json.dumps(body).encode())
        assert made.status == 201, made
        return dict(json.loads(made.body))

    def token(self, *scopes: str) -> tuple[bytes, bytes]:
        """A new API token, as a header."""
        body = {"label": "test", "scopes": list(scopes)}
        made = self.send_json("/api/tokens", body, [self.bearer])
        return (b"authorization", b"Bearer " + made["token"].encode())


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    """Ana, her notes and the group's, on a clock that is moved."""
    chosen = rooms.prepared(tmp_path_factory.mktemp("hot"), inline_note_bytes_max=1_000)
    clock = MovedClock()
    envelope = cast("Envelope", create_app(chosen, clock=clock, kdf_params=CHEAP))
    within = cast("Any", envelope._app)
    with asyncio.Runner() as runner:
        life = within.router.lifespan_context(within)
        runner.run(life.__aenter__())
        made = Service(runner, envelope, clock)
        setup = chosen.setup_token_file.read_text().strip()
        body = {"setup_token": setup, "username": "ana", "password": PASSWORD}
        made.user_id = made.send_json("/api/setup", body, [])["user"]["id"]
        session = made.send_json("/api/session", {"username": "ana", "password": PASSWORD}, [])
        made.bearer = (b"authorization", b"Bearer " + session["token"].encode())
        for path, text in (
            ("user-memory/note.md", "a note, ünd möre\n"),
            ("user-memory/a b+c&d%41.md", "odd"),
            ("user-memory/grüße/日記.md", "far"),
            ("user-memory/empty.md", ""),
            ("user-memory/large.md", "x" * 1_001),
            ("shared-memory/note.md", "the group's"),
        ):
            query = b"path=" + quote(path).encode()
            put = made.ask(query, [made.bearer, _KIND], "PUT", body=text.encode())
            assert put.status == 201, put
        yield made
        runner.run(life.__aexit__(None, None, None))


def test_the_hot_path_asks_for_the_scope_of_its_routes_rule() -> None:
    """The rule of the call in front of the router is the rule of the route behind it."""
    rule = RULES["GET /api/file"]
    assert rule == replace(type(rule)(scope=quick.SCOPE), repeats=rule.repeats)


@pytest.mark.parametrize(
    ("query", "headers", "status"),
    [
        pytest.param(_NOTE, [], 200, id="plain"),
        pytest.param(_NOTE, [(b"accept", b"*/*")], 200, id="anything is accepted"),
        pytest.param(_NOTE, [(b"accept", b"text/plain")], 200, id="text is accepted"),
        pytest.param(_NOTE, [(b"idempotency-key", b"k")], 200, id="a key that reads pass over"),
        pytest.param(b"path=shared-memory/note.md", [], 200, id="the group's note"),
        pytest.param(b"path=/user-memory/./x/..//note.md", [], 200, id="another spelling"),
        pytest.param(b"path=user-memory%2Fnote%2emd", [], 200, id="percent-encoded"),
        pytest.param(b"path=user-memory/a%20b%2Bc%26d%2541.md", [], 200, id="odd name"),
        pytest.param(b"path=user-memory/a b%2bc%26d%2541.md", [], 200, id="a raw space"),
        pytest.param(
            b"path=user-memory/gr%C3%BC%C3%9Fe/%E6%97%A5%E8%A8%98.md", [], 200, id="not ASCII"
        ),
        pytest.param(b"path=user-memory/gru%CC%88%C3%9Fe/%E6%97%A5%E8%A8%98.md", [], 200, id="NFD"),
        pytest.param(b"path=user-memory/empty.md", [], 200, id="an empty note"),
    ],
)
def test_a_plain_read_is_answered_at_once(
    service: Service, query: bytes, headers: Headers, status: int
) -> None:
    """In front of the router, byte for byte as the route behind it would answer."""
    sent = [service.bearer, *headers]
    heard, is_hot = service.compare(query, sent)
    for _ in range(4):
        if not is_hot:  # a loop had lent the handle just then
            heard, is_hot = service.compare(query, sent)
    assert (heard.status, is_hot) == (status, True)


@pytest.mark.parametrize(
    ("query", "headers", "status"),
    [
        pytest.param(_NOTE, [(b"content-length", b"3")], 200, id="a body nobody reads"),
        pytest.param(_NOTE, [(b"accept", b"application/json")], 200, id="JSON"),
        pytest.param(_NOTE, [(b"accept", b"text/html, */*;q=0.8")], 200, id="a browser's list"),
        pytest.param(_NOTE, [(b"accept", b"image/png")], 406, id="nothing on offer"),
        pytest.param(_NOTE, [(b"if-none-match", b'"1"')], 304, id="the version is known"),
        pytest.param(_NOTE, [(b"if-none-match", b'"9"')], 200, id="another version is known"),
        pytest.param(_NOTE, [(b"cookie", b"a=b")], 200, id="a stranger's cookie"),
        pytest.param(_NOTE, [(b"cookie", b"strongroom_session=x")], 401, id="a bad cookie beside"),
        pytest.param(_NOTE, [(b"authorization", b"Bearer x")], 401, id="two credentials"),
        pytest.param(_NOTE + b"&x=1", [], 422, id="an unknown parameter"),
        pytest.param(_NOTE + b"&path=user-memory/note.md", [], 422, id="the path twice"),
        pytest.param(b"x=1&" + _NOTE, [], 422, id="an unknown parameter first"),
        pytest.param(b"p%61th=user-memory/note.md", [], 200, id="an encoded name"),
        pytest.param(b"path=user-memory/a+b%2Bc%26d%2541.md", [], 200, id="a plus is a space"),
        pytest.param(b"path=user-memory/%FF", [], 422, id="no UTF-8"),
        pytest.param("path=user-memory/grüße".encode(), [], 422, id="bytes that are not ASCII"),
        pytest.param(b"path=user-memory/%00", [], 422, id="NUL"),
        pytest.param(b"path=", [], 404, id="an empty path"),
        pytest.param(b"", [], 422, id="no query"),
        pytest.param(b"path", [], 404, id="no value"),
        pytest.param(b"path=elsewhere/note.md", [], 404, id="no such root"),
        pytest.param(b"path=user-memory/none.md", [], 404, id="no such note"),
        pytest.param(b"path=user-memory", [], 404, id="the root"),
        pytest.param(b"path=user-memory/gr%C3%BC%C3%9Fe", [], 404, id="a folder"),
        pytest.param(b"path=user-memory/" + b"n" * 256, [], 422, id="a name too long"),
        pytest.param(b"path=user-memory/" + b"n/" * 9_000, [], 422, id="a path too long"),
        pytest.param(b"path=user-memory/large.md", [], 200, id="a large note"),
    ],
)
def test_every_other_read_is_left_to_the_route(
    service: Service, query: bytes, headers: Headers, status: int
) -> None:
    """What is not plain is not answered in front of the router."""
    heard, is_hot = service.compare(query, [service.bearer, *headers])
    assert (heard.status, is_hot) == (status, False)


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        pytest.param([], 401, id="none"),
        pytest.param([(b"authorization", b"Basic YTpi")], 401, id="another scheme"),
        pytest.param([(b"authorization", b"Bearer sr_session_x")], 401, id="no token"),
        pytest.param(
            [
                (
                    b"authorization",
                    b"Bearer sr_session_01890000-0000-7000-8000-000000000001_" + b"A" * 43,
                )
            ],
            401,
            id="of nobody",
        ),
    ],
)
def test_a_credential_that_does_not_hold_is_refused_by_the_route(
    service: Service, headers: Headers, status: int
) -> None:
    """The hot path refuses nobody by itself."""
    heard, is_hot = service.compare(_NOTE, headers)
    assert (heard.status, is_hot) == (status, False)


@pytest.mark.parametrize("method", ["HEAD", "OPTIONS", "PUT", "DELETE"])
def test_only_get_is_answered_at_once(service: Service, method: str) -> None:
    """Another method on the same path is the router's."""
    before = service.hot.answers
    service.ask(b"path=user-memory/none.md", [service.bearer], method)
    assert service.hot.answers == before


@pytest.mark.parametrize(
    ("scopes", "status"),
    [
        pytest.param(["memory:read"], 200, id="made for reading"),
        pytest.param(["memory:write", "memory:read"], 200, id="made for both"),
        pytest.param(["memory:write"], 403, id="made for writing"),
        pytest.param(["reports:read"], 403, id="made for reports"),
    ],
)
def test_a_token_reads_at_once_what_it_was_made_for(
    service: Service, scopes: list[str], status: int
) -> None:
    """Scopes hold in front of the router as behind it."""
    token = service.token(*scopes)
    heard, is_hot = service.compare(_NOTE, [token])
    assert (heard.status, is_hot) == (status, status == 200)


@pytest.mark.parametrize(
    ("change", "status"),
    [
        pytest.param("revoked_at = 1", 401, id="revoked"),
        pytest.param("ends_at = 1", 401, id="ended"),
        pytest.param("kind = 'browser'", 401, id="of another kind"),
        pytest.param("verifier = zeroblob(32)", 401, id="of another secret"),
        pytest.param("slot_id = NULL", 401, id="its slot destroyed"),
        pytest.param("slot_id = NULL, needs_store = 0", 423, id="made without a slot"),
        pytest.param("is_cookie = 1, last_seen_at = 1", 401, id="a cookie long unused"),
    ],
)
def test_a_credential_is_judged_anew_at_each_read(
    service: Service, change: str, status: int
) -> None:
    """What becomes of a credential holds at its next read, and the open store helps nobody."""
    token = service.token("memory:read")
    assert service.compare(_NOTE, [token])[1]
    row_id = token[1].split(b"_")[2].decode()

    def spoil(tx: Any) -> None:  # noqa: ANN401 - a transactor, looked into
        statement = f"UPDATE sessions SET {change} WHERE id = :id"  # noqa: S608 - of this table
        tx._connection.all(statement, {"id": row_id})

    service.runner.run(service.room.stores.registry.write(spoil, _ACTOR))
    heard, is_hot = service.compare(_NOTE, [token])
    assert (heard.status, is_hot) == (status, False)


def test_a_locked_store_is_opened_by_the_route_and_then_read_at_once(service: Service) -> None:
    """Opening is never done in front of the router."""
    service.runner.run(service.room.stores.lock(service.user_id))
    before = service.hot.answers
    opened = service.ask(_NOTE, [service.bearer])
    assert service.hot.answers == before
    assert service.ask(_NOTE, [service.bearer]) == opened
    assert service.hot.answers == before + 1


@pytest.mark.parametrize("name", ["registry", "own"])
def test_a_lent_handle_leaves_the_read_to_a_thread(service: Service, name: str) -> None:
    """The event loop waits for no handle."""
    service.ask(_NOTE, [service.bearer])
    stores = service.room.stores
    own = stores.unlocked()[service.user_id].store
    handles = stores.registry.handles if name == "registry" else own.handles
    lent = []
    while (reader := handles.try_reader()) is not None:
        lent.append(reader)
    try:
        assert service.hot.answer(_scope_of(service)) is None
    finally:
        for reader in lent:
            handles.give_back(reader)
    assert service.hot.answer(_scope_of(service)) is not None


def test_a_file_that_is_gone_is_read_by_no_way(service: Service) -> None:
    """Though it is open still; as soon as it is back it is read again, by both."""
    file = service.room.settings.user_file(service.user_id)
    elsewhere = file.with_suffix(".away")
    assert service.hot.answer(_scope_of(service)) is not None
    file.rename(elsewhere)
    time.sleep(2 * quick._LOOK_S)
    try:
        assert service.hot.answer(_scope_of(service)) is None
        assert service.compare(_NOTE, [service.bearer])[0].status == 500
    finally:
        elsewhere.rename(file)
    assert service.compare(_NOTE, [service.bearer])[0].status == 200
    assert service.compare(_NOTE, [service.bearer])[1]


def _scope_of(service: Service) -> Scope:
    return {
        "path": "/api/file",
        "method": "GET",
        "query_string": _NOTE,
        "headers": [service.bearer],
    }


def test_nothing_is_answered_before_the_service_is_open(service: Service) -> None:
    """Until then every request is the application's, which refuses it."""
    assert HotPath().answer(_scope_of(service)) is None


def test_a_read_at_once_is_a_use_of_the_session(service: Service) -> None:
    """Its last use is written, though seldom and not on the read's way."""

    async def last_seen() -> int:
        await service.room.seen.settle()
        row = await service.room.stores.registry.one(sql.FIND_CREDENTIAL, session_id=session)
        assert row is not None
        return row.last_seen_at

    session = service.bearer[1].split(b"_")[2].decode()
    service.clock.advance(service.room.settings.last_seen_every_s * 1000)
    assert service.runner.run(last_seen()) < service.clock.now_ms
    before = service.hot.answers
    service.ask(_NOTE, [service.bearer])
    assert service.hot.answers == before + 1
    assert service.runner.run(last_seen()) == service.clock.now_ms


_PIECES: Final = [b"path=", b"&", b"+", b"%", b"%2F", b"%2e", b"%C3%BC", b"%ff", b"user-memory/"]
_PIECES_MORE: Final = [b"note.md", b"shared-memory", b"/", b"..", b"\\", b"~", b"\xc3", b";", b"="]


@settings(max_examples=80)
@given(st.lists(st.sampled_from(_PIECES + _PIECES_MORE), max_size=8))
def test_any_query_gets_one_answer(service: Service, pieces: list[bytes]) -> None:
    """Whatever stands in a query, hot path and route agree."""
    heard, _ = service.compare(b"path=user-memory/" + b"".join(pieces), [service.bearer])
    assert heard.status < 500
    service.compare(b"".join(pieces), [service.bearer])
