"""Paths and searches by the thousands, on the whole application in this process.

The faults of memory that were seen in public, and what shows that each kind is shut out:

- a silent overwrite, and an edit between read and write that vanishes while both sides report
  success: `unit/bridge/content/test_memory_model.py`, `unit/owner/test_note_model.py`;
- a note that search does not find after an edit: `unit/owner/test_note_model.py` after each step,
  and the index against its texts (`rank = 1`) in `unit/bridge/content/test_memory_model.py`,
  `unit/bridge/maintenance/test_inspection.py`;
- `../`, a trailing `..`, encoded and doubly encoded dots: here, and `unit/owner/test_paths.py`;
- a search that a hyphen, quote or colon breaks, or that quoting all of it cures so that nothing is
  found: here, and `unit/owner/test_search_query.py`, which asks the real tokenizer; CJK inside of
  words, of one character too, stands there as well;
- a write over the limit that failed and was stored: `integration/test_quota.py`,
  `unit/bridge/content/test_quotas.py`;
- one member's deletion that took everybody's: `integration/test_isolation.py`;
- a snippet that takes minutes: `unit/owner/test_snippets.py`, `unit/owner/test_search.py`.
"""

import asyncio
import json
from collections.abc import Iterator
from typing import Any, Final, cast
from urllib.parse import quote

import httpx
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from app.errors.root import StrongroomError
from app.main import create_app
from app.owner.paths import clean
from tests.support import rooms
from tests.support.matrix import chosen
from tests.support.rooms import CHEAP, PASSWORD

EXAMPLES: Final = chosen([30], [4_000])[0]
CANARY: Final = "canary-of-ben-51d0"
PIECES: Final = st.sampled_from(
    [
        *("..", ".", "", "~", "a", "b.md", "%2e%2e", "%252e%252e", "..%2f", "\\", "\x00", "\ud800"),
        *(
            "e\u0301",
            "é",
            "日本",
            "\uff0e\uff0e",
            "user-memory",
            "shared-memory",
            "projects",
            "ben",
        ),
        *(
            "ben",
            "\u202e",
            "\u2024\u2024",
            "C:",
            "a" * 256,
            "note.md",
            "/etc/passwd",
            "'",
            '"',
            "a:b",
        ),
    ]
)
PATHS: Final = st.one_of(
    st.lists(PIECES, max_size=8).map("/".join),
    st.lists(PIECES, max_size=8).map(lambda parts: "/".join(["user-memory", *parts])),
    st.text(st.characters(codec=None), max_size=30).map(lambda text: f"user-memory/{text}"),
    st.text(st.characters(codec=None), max_size=30),
)
QUERIES: Final = st.one_of(
    st.text(st.characters(codec=None), max_size=60),
    st.lists(
        st.sampled_from([*"\"'*:-+^(){}%@.", "AND", "NEAR(", "canary", "of ben", "本", "e\u0301"])
    ).map(" ".join),
)


class Service:
    """The application, and one member of it who asks."""

    def __init__(self, runner: asyncio.Runner, client: httpx.AsyncClient) -> None:
        self._runner = runner
        self._client = client
        self.token = ""

    def ask(self, method: str, target: str, body: object = None) -> httpx.Response:
        """Send one request, its body as JSON that may hold any text whatever."""
        headers = {"Authorization": f"Bearer {self.token}"} if self.token else {}
        content = None if body is None else json.dumps(body).encode()
        kind = {"Content-Type": "application/json"} if body is not None else {}
        return self._runner.run(
            self._client.request(method, target, content=content, headers=headers | kind)
        )

    def tried(self, method: str, target: str, body: object = None) -> httpx.Response:
        """The same, held against what holds for every answer."""
        answer = self.ask(method, target, body)
        assert answer.status_code < 500, (target, body)
        assert CANARY not in answer.text
        return answer

    def signed_in(self, username: str) -> str:
        """A new session's token."""
        self.token = ""
        made = self.ask("POST", "/api/session", {"username": username, "password": PASSWORD})
        return str(made.json()["token"])


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    """Ana, who asks, and Ben, whose notes have a word that nobody else's have."""
    found = rooms.prepared(tmp_path_factory.mktemp("faults"))
    app = create_app(found, kdf_params=CHEAP)
    within = cast("Any", app)._app
    with asyncio.Runner() as runner:
        life = within.router.lifespan_context(within)
        runner.run(life.__aenter__())
        transport = httpx.ASGITransport(app=cast("Any", app), client=("192.0.2.1", 1))
        client = httpx.AsyncClient(transport=transport, base_url="http://127.0.0.1:8321")
        made = Service(runner, client)
        token = found.setup_token_file.read_text().strip()
        first = {"setup_token": token, "username": "ana", "password": PASSWORD}
        assert made.ask("POST", "/api/setup", first).status_code == 201
        made.token = made.signed_in("ana")
        ben = {"username": "ben", "password": PASSWORD, "role_id": "member", "encrypted": True}
        assert made.ask("POST", "/api/admin/users", ben).status_code == 201
        made.token = made.signed_in("ben")
        for path in ("user-memory/note.md", "user-memory/a/b.md"):
            body = {"path": path, "content": f"{CANARY} canary of ben 日本"}
            assert made.ask("POST", "/api/file/write", body).status_code == 201
        made.token = made.signed_in("ana")
        yield made
        runner.run(client.aclose())
        runner.run(life.__aexit__(None, None, None))


_SETTINGS: Final = settings(
    max_examples=EXAMPLES, suppress_health_check=list(HealthCheck), deadline=None
)


@_SETTINGS
@given(path=PATHS, tool_path=PATHS)
def test_any_path_is_one_note_or_none(service: Service, path: str, tool_path: str) -> None:
    """No path is a fault or leads to another's text; each spelling of a name is one note."""
    written = service.tried("POST", "/api/file/write", {"path": path, "content": "mine"})
    for call in ("read", "list", "versions"):
        service.tried("POST", f"/api/file/{call}", {"path": path})
    service.tried("POST", "/api/tools/view", {"path": tool_path})
    service.tried("POST", "/api/tools/read_file", {"path": tool_path})
    try:
        ref = clean(path)
        query = quote(path)
    except (StrongroomError, UnicodeEncodeError):
        assert written.status_code in {404, 422}
        return
    service.tried("GET", f"/api/file?path={query}")
    if written.is_success:
        assert written.json()["path"] == ref.display
        one = service.tried("GET", f"/api/file?path={query}")
        other = service.tried("POST", "/api/file/read", {"path": ref.display})
        assert one.text == other.text == "mine"
        assert one.headers["etag"] == other.headers["etag"] == written.headers["etag"]


@_SETTINGS
@given(q=QUERIES)
def test_any_text_is_a_search_and_finds_ones_own(service: Service, q: str) -> None:
    """200 for whatever can be sent, and not a word of another's."""
    answer = service.tried("POST", "/api/search", {"q": q})
    is_text = not any("\ud800" <= character <= "\udfff" for character in q)
    assert answer.status_code == 200 or not is_text
    if is_text:
        assert service.tried("GET", f"/api/search?q={quote(q)}").json() == answer.json()
    service.tried("POST", "/api/tools/memory_search", {"query": q})
