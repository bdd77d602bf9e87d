"""What holds for every body: its kind, its form, its size."""

from collections.abc import Iterator
from typing import Final

import pytest

from app.web.rules import RULES
from tests.support.clients import Client
from tests.support.people import People, people_on
from tests.support.problems import CANARY, raw_call, require_problem

NOTE: Final = {"path": "user-memory/n.md"}
JSON: Final = {"content-type": "application/json"}


@pytest.fixture(scope="module")
def people(tmp_path_factory: pytest.TempPathFactory) -> Iterator[People]:
    """A group on a running service that takes small bodies."""
    root = tmp_path_factory.mktemp("root")
    with people_on(root, json_bytes_max=4_096, note_bytes_max=8_192) as found:
        yield found


@pytest.fixture(scope="module")
def me(people: People) -> Client:
    """A member."""
    return people.member


BAD_JSON: Final = {
    "nothing": b"",
    "no JSON": b"{canary-7f3a91",
    "NaN": b'{"path": NaN}',
    "infinity": b'{"path": -Infinity}',
    "a huge number": b'{"path": ' + b"9" * 4_000 + b"}",
    "nesting": b"[" * 4_000,
    "half a pair": b'{"path": "canary-7f3a91\\ud800"}',
    "half a pair as a name": b'{"canary-7f3a91\\ud800": 1}',
    "no UTF-8": b'{"path": "canary-7f3a91\xff"}',
    "UTF-16": '{"path": "user-memory/n.md"}'.encode("utf-16-le"),
    "a byte order mark": b'\xef\xbb\xbf{"path": "user-memory/n.md"}',
    "a field twice": b'{"path": "user-memory/n.md", "path": "canary-7f3a91"}',
    "an unknown field": b'{"path": "user-memory/n.md", "canary-7f3a91": 1}',
    "a list": b'["canary-7f3a91"]',
    "a text": b'"canary-7f3a91"',
    "null": b"null",
    "another type": b'{"path": ["canary-7f3a91"]}',
    "a number for a text": b'{"path": 7}',
}


@pytest.mark.parametrize("raw", BAD_JSON.values(), ids=BAD_JSON.keys())
@pytest.mark.parametrize("path", ["/api/file/read", "/api/file/append"])
def test_a_body_is_read_strictly(path: str, raw: bytes, me: Client) -> None:
    """Whether the framework reads it or the call itself."""
    answer = me.service.client.post(path, content=raw, headers=me.headers | JSON)
    require_problem(answer, 422, "invalid_request")


@pytest.mark.parametrize("kind", ["text/plain", "application/x-www-form-urlencoded", "multipart/x"])
def test_json_is_taken_as_json_only(kind: str, me: Client) -> None:
    """A page of another origin can send the other kinds without asking; here they are 415."""
    for path in ("/api/file/read", "/api/file/append", "/api/me/lock", "/api/session"):
        answer = me.service.client.post(
            path, content=b'{"path": "x"}', headers=me.headers | {"content-type": kind}
        )
        require_problem(answer, 415, "unsupported_media_type")


@pytest.mark.parametrize(
    "kind", ["application/json", "text/html", "text/markdown; charset=latin-1", "image/png"]
)
def test_a_note_is_taken_as_text_only(kind: str, me: Client) -> None:
    """Any other kind of body is 415."""
    answer = me.service.client.put(
        "/api/file", params=NOTE, content=b"x", headers=me.headers | {"content-type": kind}
    )
    require_problem(answer, 415, "unsupported_media_type")


@pytest.mark.parametrize("raw", [b"\xff", b"a\0b", b"\xed\xa0\x80"], ids=["byte", "NUL", "half"])
def test_a_note_is_utf_8_without_nul(raw: bytes, me: Client) -> None:
    """Anything else is refused, raw and as JSON."""
    for method, path in (("PUT", "/api/file"), ("POST", "/api/file/append")):
        answer = me.service.client.request(
            method, path, params=NOTE, content=raw, headers=me.headers
        )
        require_problem(answer, 422, "invalid_input")
    body = {**NOTE, "content": "a\0b"}
    for path in ("/api/file/write", "/api/file/append"):
        require_problem(me.call("POST", path, json=body), 422, "invalid_request")


def test_a_compressed_body_is_refused(me: Client) -> None:
    """It would be kept as it came, and a small one can hold a great deal."""
    headers = me.headers | {"content-encoding": "gzip"}
    answer = me.service.client.put("/api/file", params=NOTE, content=b"\x1f\x8b", headers=headers)
    require_problem(answer, 415, "unsupported_media_type")


def test_a_large_body_is_refused_by_its_length(me: Client) -> None:
    """Before any of it is read."""
    for path in ("/api/search", "/api/session", "/api/nothing"):
        answer = me.service.client.post(path, content=b" " * 5_000, headers=me.headers | JSON)
        require_problem(answer, 413, "payload_too_large")


@pytest.mark.parametrize("path", ["/api/search", "/api/session", "/api/setup", "/api/me/lock"])
def test_a_large_body_in_chunks_is_not_read_to_its_end(path: str, people: People) -> None:
    """The answer comes while the client still sends."""
    token = people.member.headers["Authorization"]
    head = f"POST {path} HTTP/1.1\r\nHost: x\r\nAuthorization: {token}\r\n"
    head += "Content-Type: application/json\r\nTransfer-Encoding: chunked\r\n"
    endless = b"400\r\n" + b" " * 1_024 + b"\r\n"
    answer = raw_call(people.service, head.encode(), endless * 8)
    assert answer.startswith(b"HTTP/1.1 413")
    assert b"payload_too_large" in answer


def test_a_note_has_its_limit_in_every_way_in(me: Client) -> None:
    """Raw, in chunks, as JSON, by appends and by edits."""
    text, limit = "x" * 8_193, "x" * 8_192
    assert me.put("user-memory/large.md", limit).is_success
    assert me.call(
        "POST", "/api/file/write", json={"path": "user-memory/large.md", "content": limit}
    ).is_success
    edit = {"path": "user-memory/large.md", "edits": [{"insert_at_line": 1, "text": "y\n"}]}
    for answer in (
        me.put("user-memory/larger.md", text),
        me.service.client.put(
            "/api/file", params=NOTE, content=iter([text.encode()]), headers=me.headers
        ),
        me.call("POST", "/api/file/write", json={**NOTE, "content": text}),
        me.append("user-memory/larger.md", text),
        me.append("user-memory/large.md", "y"),
        me.call("POST", "/api/file/edit", json=edit),
    ):
        require_problem(answer, 413, "payload_too_large")
    assert me.get("user-memory/larger.md").status_code == 404


def test_a_call_without_fields_says_so(me: Client) -> None:
    """An empty object is let be; a field is refused, not passed over."""
    assert me.call("POST", "/api/me/lock", json={}).status_code == 204
    answer = me.call("POST", "/api/me/lock", json={CANARY: 1})
    require_problem(answer, 422, "invalid_request")


def test_strings_are_not_numbers_and_numbers_are_not_booleans(me: Client) -> None:
    """Types are exact in JSON."""
    path = {"path": "user-memory"}
    for odd in ({"depth": "1"}, {"depth": 1.0}, {"depth": True}, {"depth": None}):
        answer = me.call("POST", "/api/file/list", json={**path, **odd})
        require_problem(answer, 422, "invalid_request")
    for flag in (1, "true", None):
        answer = me.call("POST", "/api/file/delete", json={**path, "recursive": flag})
        require_problem(answer, 422, "invalid_request")


@pytest.mark.parametrize(
    "call",
    [
        call
        for call, rule in RULES.items()
        if rule.repeats == "refused" and not call.startswith(("GET", "HEAD"))
    ],
)
def test_an_idempotency_key_is_refused_where_a_secret_comes_or_goes(
    call: str, people: People
) -> None:
    """Whoever sends one would rely on it, and no such answer is kept."""
    method, path = call.split()
    headers = {"Idempotency-Key": CANARY}
    answer = people.service.client.request(method, path, headers=headers)
    require_problem(answer, 422, "idempotency_not_supported")
