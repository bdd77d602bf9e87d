"""What holds for every call: headers, routing, queries, whatever comes on the wire."""

import contextlib
import json
import re
import socket
from collections.abc import Iterator
from typing import Final

import pytest

from app.web.errors import CODES
from app.web.rules import RULES, methods_of
from app.web.wire import HEAD_BYTES_MAX
from tests.support.clients import Client
from tests.support.people import People, people_on
from tests.support.problems import CANARY, raw_call, require_problem

NOTE: Final = {"path": "user-memory/n.md"}
TIME: Final = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z")


@pytest.fixture(scope="module")
def people(tmp_path_factory: pytest.TempPathFactory) -> Iterator[People]:
    """A group on a running service."""
    with people_on(tmp_path_factory.mktemp("root")) as found:
        yield found


@pytest.fixture(scope="module")
def me(people: People) -> Client:
    """A member."""
    return people.member


@pytest.fixture
def note(me: Client) -> str:
    """A note that stands; its ETag."""
    return str(me.put(NOTE["path"], "text\n").headers["etag"])


@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("GET", "/healthz"),
        ("GET", "/api/file?path=user-memory/n.md"),
        ("GET", "/api/nothing"),
        ("PATCH", "/api/search"),
        ("POST", "/api/search"),
        ("GET", "/api/docs"),
    ],
)
def test_every_answer_has_an_id_and_guards(method: str, path: str, me: Client, note: str) -> None:
    """The good and the bad ones, from the router or before it."""
    assert note
    first, second = me.call(method, path), me.call(method, path)
    ids = {first.headers["x-request-id"], second.headers["x-request-id"]}
    assert len(ids) == 2
    assert all(re.fullmatch(r"[\w.-]{8,64}", one) for one in ids)
    assert first.headers["x-content-type-options"] == "nosniff"
    assert "default-src 'none'" in first.headers["content-security-policy"]
    assert first.headers["referrer-policy"] == "no-referrer"
    assert len(first.headers.get_list("x-request-id")) == 1


def test_times_are_utc_with_milliseconds(people: People) -> None:
    """In every answer that has one."""
    answers = [
        people.member.call("GET", "/api/session"),
        people.member.call("GET", "/api/sessions"),
        people.member.call("GET", "/api/me"),
        people.admin.call("GET", "/api/admin/users"),
        people.member.put("user-memory/t.md", "x"),
    ]
    for answer in answers:
        found = re.findall(r'"(\w+_at)":"([^"]+)"', answer.text)
        assert found
        assert all(TIME.fullmatch(text) for _, text in found), found


@pytest.mark.parametrize(
    "path",
    [
        "/",
        "/api",
        "/api/",
        f"/api/{CANARY}",
        "/api/file/",
        "/api/session/",
        "/docs",
        "/favicon.ico",
        "/openapi.json",
        "/api//file",
        "/API/file",
        "/api/file/versions/",
        "/healthz/",
        "/%00",
    ],
)
def test_an_unknown_path_is_a_problem(path: str, me: Client) -> None:
    """404, also with a slash too many; nothing redirects."""
    require_problem(me.call("GET", path), 404, "not_found")


def methods_of_ids_beside(path: str) -> set[str]:
    """Methods of the path's siblings with an id in its place: for them it is an absent thing."""
    calls = (call.split() for call in RULES)
    parent = path.rpartition("/")[0]
    return {
        method
        for method, other in calls
        if other.rpartition("/")[0] == parent and other.endswith("}")
    }


@pytest.mark.parametrize("path", sorted({call.split()[1] for call in RULES if "{" not in call}))
def test_another_method_is_told_what_is_allowed(path: str, me: Client) -> None:
    """405 with every method of the path; HEAD and OPTIONS are no exception."""
    allowed = methods_of(path)
    unknown = {"GET", "HEAD", "OPTIONS", "PUT", "POST", "PATCH", "DELETE", "TRACE"}
    for method in unknown.difference(allowed, methods_of_ids_beside(path)):
        answer = me.call(method, path)
        assert answer.status_code == 405
        assert answer.headers["allow"].split(", ") == allowed
        if method != "HEAD":
            require_problem(answer, 405, "method_not_allowed")


@pytest.mark.parametrize(
    "query",
    [
        f"path=user-memory/n.md&{CANARY}=1",
        f"path=user-memory/n.md&path={CANARY}",
        "path=user-memory/n.md&%70ath=x",
        "path=user-memory/n.md&",
        f"path={CANARY}%ff",
        f"path={CANARY}%ed%a0%80",
        f"path={CANARY}%c3&x=%a9",
        "",
        "Path=x",
    ],
    ids=[
        "unknown",
        "twice",
        "twice in disguise",
        "empty name",
        "no UTF-8",
        "half a pair",
        "split",
        "missing",
        "case",
    ],
)
def test_a_query_is_read_strictly(query: str, me: Client) -> None:
    """What is unknown, there twice or no UTF-8 is refused, and not named."""
    answer = me.call("GET", f"/api/file?{query}")
    if query.endswith("&"):
        assert answer.status_code in {200, 404}  # an empty pair is no parameter
        return
    require_problem(answer, 422, "invalid_request")


def test_raw_bytes_in_a_query_are_refused(people: People) -> None:
    """A URL is ASCII; nothing guesses what else it may be."""
    token = people.member.headers["Authorization"]
    line = b"GET /api/file?path=user-memory/\xc3\xa9 HTTP/1.1\r\n"
    answer = raw_call(people.service, line + f"Host: x\r\nAuthorization: {token}\r\n".encode())
    assert b" 4" in answer.split(b"\r\n")[0]


@pytest.mark.parametrize("limit", ["0", "201", "-1", "x", "", "1e2", "9" * 50, "\u0661"])
def test_a_limit_is_1_to_200(limit: str, people: People) -> None:
    """In every list."""
    for client, path in (
        (people.member, "/api/search?q=x&"),
        (people.member, "/api/file/versions?path=user-memory/n.md&"),
        (people.member, "/api/reports?"),
        (people.member, "/api/me/access?"),
        (people.admin, "/api/admin/users?"),
        (people.admin, "/api/admin/supervision?"),
    ):
        require_problem(client.call("GET", f"{path}limit={limit}"), 422, "invalid_request")
        for good in ("1", "200"):
            assert client.call("GET", f"{path}limit={good}").is_success


@pytest.mark.parametrize("cursor", ["", "x", "!!", "bm90IGEgY3Vyc29y", CANARY, "%00", "A" * 5_000])
def test_a_cursor_is_one_that_was_given(cursor: str, people: People) -> None:
    """In every list that has them."""
    for client, path in (
        (people.member, "/api/file/versions?path=user-memory/n.md&"),
        (people.member, "/api/reports?"),
        (people.member, "/api/me/access?"),
        (people.admin, "/api/admin/users?"),
        (people.admin, "/api/admin/supervision?"),
    ):
        require_problem(client.call("GET", f"{path}cursor={cursor}"), 422, "invalid_input")


def test_cursors_lead_through_a_whole_list(people: People) -> None:
    """Page by page, everything once."""
    ids, cursor = [], None
    while True:
        params = {"limit": "1"} | ({"cursor": cursor} if cursor else {})
        page = people.admin.call("GET", "/api/admin/users", params=params).json()
        ids += [item["id"] for item in page["items"]]
        cursor = page["next_cursor"]
        if cursor is None:
            break
    whole = people.admin.call("GET", "/api/admin/users").json()["items"]
    assert ids == [item["id"] for item in whole]
    assert len(ids) == 3


@pytest.mark.parametrize(
    "head",
    [
        b"GET /api/session HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer \xff\xfe\r\n",
        b"GET /api/session HTTP/1.1\r\nHost: x\r\nCookie: strongroom_session=\xff\r\n",
        b"POST /api/session HTTP/1.1\r\nHost: x\r\nContent-Type: \xff\r\nContent-Length: 0\r\n",
        b"GET /api/file?path=%ff HTTP/1.1\r\nHost: x\r\n",
        b"GET /api/%ff HTTP/1.1\r\nHost: x\r\n",
        b"GET /api/\xff HTTP/1.1\r\nHost: x\r\n",
        b"GET http://other/api/session HTTP/1.1\r\nHost: x\r\n",
        b"GET * HTTP/1.1\r\nHost: x\r\n",
        b"OPTIONS * HTTP/1.1\r\nHost: x\r\n",
        b"PROPFIND /api/file HTTP/1.1\r\nHost: x\r\n",
        b"GET /api/session HTTP/1.1\r\nHost: x\r\nX: " + b"y" * 70_000 + b"\r\n",
        b"POST /api/session HTTP/1.1\r\nHost: x\r\nContent-Length: 99999999999999999999\r\n",
    ],
    ids=[
        "token",
        "cookie",
        "kind",
        "query",
        "path",
        "raw path",
        "absolute",
        "star",
        "options",
        "method",
        "headers",
        "length",
    ],
)
def test_no_oddity_on_the_wire_is_a_fault_of_ours(head: bytes, people: People) -> None:
    """Whatever bytes come, the answer is a problem like any other, by the server itself too."""
    answer = raw_call(people.service, head)
    assert answer.startswith(b"HTTP/1.1 4")
    assert b"content-type: application/problem+json\r\n" in answer
    assert answer.count(b"x-request-id: ") == 1
    assert answer.count(b"x-content-type-options: nosniff") == 1
    assert json.loads(answer.partition(b"\r\n\r\n")[2])["code"] in CODES


@pytest.mark.parametrize("piece", [b"x-a: " + b"a" * 4000 + b"\r\n", b"a" * 4000])
def test_a_head_without_an_end_is_not_kept(people: People, piece: bytes) -> None:
    """Many headers or one long one: the connection ends before it fills the memory."""
    url = people.service.client.base_url
    sent = 0
    with socket.create_connection((url.host, url.port or 0), timeout=20) as wire:
        wire.sendall(b"GET /healthz HTTP/1.1\r\nHost: x\r\nx-long: ")
        with contextlib.suppress(ConnectionError):
            while sent < 64 * HEAD_BYTES_MAX:
                wire.sendall(piece)
                sent += len(piece)
    # What the two ends of a loopback connection buffer comes on top.
    assert sent < 32 * HEAD_BYTES_MAX
    assert people.service.client.get("/healthz").is_success


def test_a_client_that_leaves_is_no_fault_of_ours(people: People) -> None:
    """Half a body and gone: nothing is logged, nothing is written."""
    before = len(people.service.log)
    url = people.service.client.base_url
    token = people.member.headers["Authorization"]
    with socket.create_connection((url.host, url.port or 0), timeout=20) as wire:
        head = (
            "PUT /api/file?path=user-memory/half.md HTTP/1.1\r\nHost: x\r\nContent-Length: 99\r\n"
        )
        wire.sendall(f"{head}Authorization: {token}\r\n\r\nhalf".encode())
    assert people.member.get("user-memory/half.md").status_code == 404
    assert people.service.log[before:] == []


def test_a_trace_is_taken_and_passed_on(people: People) -> None:
    """The caller's trace id stands beside what they changed; one that is none is passed over."""
    for parent in (f"00-{'ab' * 16}-{'cd' * 8}-01", CANARY, f"00-{'0' * 32}-{'cd' * 8}-01"):
        headers = people.member.headers | {"traceparent": parent}
        answer = people.service.client.put("/api/file", params=NOTE, content=b"x", headers=headers)
        assert answer.is_success


def test_the_pages_for_people_need_nothing_from_elsewhere(people: People) -> None:
    """One page with every call on it; no script, no other origin."""
    page = people.anonymous().call("GET", "/api/docs")
    assert page.headers["content-type"] == "text/html; charset=utf-8"
    for call in RULES:
        assert f"<code>{call.split()[1]}</code>" in page.text
    assert "<script" not in page.text
    assert "http" not in page.text.replace("<!doctype html>", "")
