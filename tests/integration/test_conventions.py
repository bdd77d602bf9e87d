"""What holds for every call: strictness, conditions, problems, headers, cookies."""

import json
import re
import socket
from collections.abc import Iterator
from typing import Any, Final

import httpx
import pytest

from app.web.errors import CODES
from app.web.rules import RULES, methods_of
from tests.support.clients import Client, code_of
from tests.support.people import People, people_on
from tests.support.service import PASSWORD

CANARY: Final = "canary-7f3a91"
NOTE: Final = {"path": "user-memory/n.md"}
JSON: Final = {"content-type": "application/json"}
TIME: Final = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z")


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


@pytest.fixture
def note(me: Client) -> str:
    """A note that stands; its ETag."""
    return str(me.put(NOTE["path"], "text\n").headers["etag"])


def require_problem(answer: httpx.Response, status: int, code: str) -> dict[str, Any]:
    """The body of a problem with this status and code, in which nothing sent comes back."""
    assert (answer.status_code, code_of(answer)) == (status, code), answer.text
    assert answer.headers["content-type"] == "application/problem+json"
    found: dict[str, Any] = answer.json()
    assert found["status"] == status
    assert found["code"] in CODES
    assert found["request_id"] == answer.headers["x-request-id"]
    assert CANARY not in answer.text
    assert all(set(item) == {"location", "kind", "message"} for item in found.get("errors", []))
    return found


# -- What every answer carries ---------------------------------------------------------------


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


# -- Routing ------------------------------------------------------------------------------


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


@pytest.mark.parametrize("path", sorted({call.split()[1] for call in RULES if "{" not in call}))
def test_another_method_is_told_what_is_allowed(path: str, me: Client) -> None:
    """405 with every method of the path; HEAD and OPTIONS are no exception."""
    allowed = methods_of(path)
    for method in {"GET", "HEAD", "OPTIONS", "PUT", "POST", "PATCH", "DELETE", "TRACE"} - set(
        allowed
    ):
        answer = me.call(method, path)
        assert answer.status_code == 405
        assert answer.headers["allow"].split(", ") == allowed
        if method != "HEAD":
            require_problem(answer, 405, "method_not_allowed")


# -- Queries ------------------------------------------------------------------------------


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
    answer = raw_call(people, line + f"Host: x\r\nAuthorization: {token}\r\n".encode())
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


# -- Bodies -------------------------------------------------------------------------------

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
    answer = raw_call(people, head.encode(), endless * 8)
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


@pytest.mark.parametrize("call", [call for call in RULES if not call.startswith("GET")])
def test_an_idempotency_key_is_refused_everywhere(call: str, people: People) -> None:
    """Whoever sends one would rely on it."""
    method, path = call.split()
    headers = {"Idempotency-Key": CANARY}
    answer = people.service.client.request(method, path, headers=headers)
    require_problem(answer, 422, "idempotency_not_supported")


# -- Conditions ---------------------------------------------------------------------------

WRITES: Final[dict[str, tuple[str, str, dict[str, Any] | None]]] = {
    "put": ("PUT", "/api/file?path=user-memory/n.md", None),
    "write": ("POST", "/api/file/write", {**NOTE, "content": "new"}),
    "append": ("POST", "/api/file/append?path=user-memory/n.md", None),
    "append as JSON": ("POST", "/api/file/append", {**NOTE, "content": "new"}),
    "patch": (
        "PATCH",
        "/api/file?path=user-memory/n.md",
        {"edits": [{"insert_at_line": 1, "text": "new\n"}]},
    ),
    "edit": ("POST", "/api/file/edit", {**NOTE, "edits": [{"insert_at_line": 1, "text": "new\n"}]}),
    "restore": ("POST", "/api/file/restore", {**NOTE, "version": 1}),
    "move": ("POST", "/api/file/move", {"from": NOTE["path"], "to": "user-memory/m.md"}),
    "delete": ("DELETE", "/api/file?path=user-memory/n.md", None),
    "delete by body": ("POST", "/api/file/delete", NOTE),
}


def write(me: Client, name: str, **headers: str) -> httpx.Response:
    """One of the writes, with these headers; underscores in their names stand for dashes."""
    method, path, body = WRITES[name]
    more = {name.replace("_", "-"): text for name, text in headers.items()}
    if body is not None:
        content = json.dumps(body).encode()
        return me.service.client.request(
            method, path, content=content, headers=me.headers | JSON | more
        )
    content = b"" if method == "DELETE" else b"new"
    return me.service.client.request(method, path, content=content, headers=me.headers | more)


@pytest.fixture
def fresh(me: Client) -> Iterator[str]:
    """A note that stands alone; its ETag."""
    me.call("DELETE", "/api/file?path=user-memory/m.md")
    yield str(me.put(NOTE["path"], "text\n").headers["etag"])
    me.call("DELETE", "/api/file?path=user-memory/n.md")


@pytest.mark.parametrize("name", WRITES)
@pytest.mark.parametrize("stale", ['"0"', '"999999"', "W/{}", '"abc"', 'W/"1", "999999"'])
def test_a_stale_condition_stops_every_write(name: str, stale: str, me: Client, fresh: str) -> None:
    """412 with the version that stands; and nothing was written."""
    found = require_problem(write(me, name, If_Match=stale.format(fresh)), 412, "version_conflict")
    assert f'"{found["current_version"]}"' == fresh
    seen = me.get(NOTE["path"])
    assert (seen.text, seen.headers["etag"]) == ("text\n", fresh)


@pytest.mark.parametrize("name", WRITES)
@pytest.mark.parametrize("good", ["{}", '"7", {}', "*"])
def test_a_condition_that_holds_lets_every_write_through(
    name: str, good: str, me: Client, fresh: str
) -> None:
    """The right version, alone or in a list, or any."""
    answer = write(me, name, If_Match=good.format(fresh))
    assert answer.is_success, answer.text
    if "version" in answer.text and name != "move":
        assert answer.headers["etag"] == f'"{answer.json()["version"]}"'


@pytest.mark.parametrize("name", WRITES)
@pytest.mark.parametrize(
    "headers",
    [
        {"If_Match": CANARY},
        {"If_Match": "{}{}"},
        {"If_Match": ""},
        {"If_None_Match": "{}"},
        {"If_Match": "*", "If_None_Match": "*"},
    ],
    ids=["no tag", "no comma", "empty", "tags that must not match", "both"],
)
def test_a_condition_that_cannot_be_read_stops_every_write(
    name: str, headers: dict[str, str], me: Client, fresh: str
) -> None:
    """It is not passed over."""
    sent = {key: text.format(fresh, fresh) for key, text in headers.items()}
    require_problem(write(me, name, **sent), 422, "invalid_input")
    assert me.read(NOTE["path"]) == "text\n"


@pytest.mark.parametrize("name", sorted(set(WRITES) - {"move", "delete", "delete by body"}))
def test_a_create_refuses_to_overwrite(name: str, me: Client, fresh: str) -> None:
    """`If-None-Match: *` on a note that stands is 412, with what stands."""
    answer = write(me, name, If_None_Match="*")
    found = require_problem(answer, 412, "already_exists")
    assert f'"{found["current_version"]}"' == answer.headers["etag"] == fresh


@pytest.mark.parametrize("name", ["put", "write", "append", "append as JSON"])
def test_a_create_makes_what_is_not_there(name: str, me: Client, fresh: str) -> None:
    """And any condition on a version is stale then: there is none."""
    me.call("DELETE", "/api/file?path=user-memory/n.md")
    found = require_problem(write(me, name, If_Match=fresh), 412, "version_conflict")
    assert found["current_version"] is None
    require_problem(write(me, name, If_Match="*"), 412, "version_conflict")
    assert write(me, name, If_None_Match="*").status_code == 201


def test_an_etag_saves_reading_again(me: Client, fresh: str) -> None:
    """304 without a body to whoever has the version, by GET and by POST alike."""
    for known in (fresh, f"W/{fresh}", f'"77", {fresh}', "*"):
        headers = me.headers | {"If-None-Match": known}
        for answer in (
            me.service.client.get("/api/file", params=NOTE, headers=headers),
            me.service.client.post("/api/file/read", json=NOTE, headers=headers),
        ):
            assert answer.status_code == 304
            assert answer.content == b""
            assert answer.headers["etag"] == fresh
    for other in ('"77"', CANARY, "", f'"1{fresh[1:]}'):
        headers = me.headers | {"If-None-Match": other}
        assert me.service.client.get("/api/file", params=NOTE, headers=headers).status_code == 200


@pytest.mark.parametrize("way", ["administrator", "member"])
def test_a_profile_has_versions_too(way: str, people: People) -> None:
    """Its ETag guards a change as a note's does."""
    client, path = {
        "administrator": (people.admin, f"/api/admin/users/{people.other.user_id}"),
        "member": (people.other, "/api/me"),
    }[way]
    etag = client.call("GET", path).headers["etag"]

    def patch(name: str, if_match: str) -> httpx.Response:
        headers = client.headers | {"If-Match": if_match}
        return client.service.client.patch(path, json={"display_name": name}, headers=headers)

    first = patch("One", etag)
    assert first.is_success
    found = require_problem(patch("Two", etag), 412, "version_conflict")
    assert f'"{found["current_version"]}"' == first.headers["etag"]
    assert client.call("GET", path).json()["user"]["display_name"] == "One"
    assert client.call("GET", path).headers["etag"] == first.headers["etag"]
    assert patch("Three", f'"1", {first.headers["etag"]}').is_success


# -- Forms of an answer -------------------------------------------------------------------


@pytest.mark.parametrize(
    ("accept", "kind"),
    [
        ("*/*", "text/markdown; charset=utf-8"),
        ("text/markdown", "text/markdown; charset=utf-8"),
        ("application/json", "application/json"),
        ("application/json;q=0.1, text/*", "text/markdown; charset=utf-8"),
    ],
)
def test_a_note_comes_in_the_form_that_is_accepted(
    accept: str, kind: str, me: Client, note: str
) -> None:
    """And caches are told that it depends."""
    headers = me.headers | {"Accept": accept}
    for answer in (
        me.service.client.get("/api/file", params=NOTE, headers=headers),
        me.service.client.post("/api/file/read", json=NOTE, headers=headers),
    ):
        assert answer.headers["content-type"] == kind
        assert answer.headers["vary"] == "Accept"
        assert answer.headers["etag"] == note


def test_a_note_comes_in_no_other_form(me: Client, note: str) -> None:
    """406 where neither is accepted."""
    assert note
    headers = me.headers | {"Accept": f"image/png, text/{CANARY}"}
    answer = me.service.client.get("/api/file", params=NOTE, headers=headers)
    require_problem(answer, 406, "not_acceptable")


# -- Tokens judged first ------------------------------------------------------------------


@pytest.mark.parametrize(
    "fields",
    [{}, {"username": 7}, {"password": None, CANARY: 1}, {"username": "x", "password": "short"}],
    ids=["missing", "of another type", "unknown", "weak"],
)
@pytest.mark.parametrize("token", [CANARY, "", None, 7, "sr_invite_x_y"])
def test_an_invitation_is_judged_before_the_other_fields(
    token: object, fields: dict[str, object], people: People
) -> None:
    """Without a good one nothing is learnt of them."""
    answer = people.anonymous().call(
        "POST", "/api/invitations/accept", json={"token": token, **fields}
    )
    require_problem(answer, 401, "invalid_credentials")


def test_a_setup_is_judged_before_the_other_fields(people: People) -> None:
    """Once there is somebody, that is all there is to say."""
    bodies: list[object] = [{}, {"setup_token": CANARY, "username": 7}, [], {CANARY: 1}]
    for body in bodies:
        answer = people.anonymous().call("POST", "/api/setup", json=body)
        require_problem(answer, 409, "already_set_up")


# -- Cookies ------------------------------------------------------------------------------


def by_cookie(people: People, **headers: str) -> httpx.Response:
    """Sign in by cookie; the Origin is the service's own unless said."""
    client = people.service.client
    origin = str(client.base_url).rstrip("/")
    body = {"username": "ben", "password": PASSWORD, "cookie": True}
    answer = client.post("/api/session", json=body, headers={"Origin": origin, **headers})
    client.cookies.clear()
    return answer


def test_a_cookie_is_out_of_reach_of_scripts(people: People) -> None:
    """And its CSRF token comes beside it, now and later."""
    answer = by_cookie(people)
    cookie = answer.headers["set-cookie"]
    assert cookie.startswith("strongroom_session=sr_session_")
    assert "HttpOnly" in cookie
    assert "SameSite=lax" in cookie
    assert "Path=/" in cookie
    headers = {"Cookie": cookie.split(";")[0]}
    seen = people.service.client.get("/api/session", headers=headers).json()
    assert seen["csrf_token"] == answer.json()["csrf_token"]
    assert "token" not in seen


@pytest.mark.parametrize("origin", ["http://evil.example", "null", "", None])
def test_a_page_of_another_origin_cannot_sign_in_by_cookie(
    origin: str | None, people: People
) -> None:
    """The Origin must be there and match."""
    body = {"username": "ben", "password": PASSWORD, "cookie": True}
    headers = {} if origin is None else {"Origin": origin}
    answer = people.service.client.post("/api/session", json=body, headers=headers)
    require_problem(answer, 403, "cross_site_request")
    assert "set-cookie" not in answer.headers


def test_a_cookie_needs_its_proofs_on_unsafe_methods(people: People) -> None:
    """Origin and CSRF token, both; reading needs neither."""
    made = by_cookie(people)
    client = people.service.client
    cookie = {"Cookie": made.headers["set-cookie"].split(";")[0]}
    origin = {"Origin": str(client.base_url).rstrip("/")}
    proof = {"X-CSRF-Token": made.json()["csrf_token"]}
    assert client.get("/api/session", headers=cookie).is_success
    for headers in (
        {},
        origin,
        proof,
        {**origin, "X-CSRF-Token": CANARY},
        {**origin, "X-CSRF-Token": "\u00e9".encode("latin-1").decode("latin-1")},
        {**proof, "Origin": "http://evil.example"},
    ):
        encoded = {name: text.encode("latin-1") for name, text in {**cookie, **headers}.items()}
        answer = client.patch("/api/me", json={"locale": "de"}, headers=encoded)
        require_problem(answer, 403, "cross_site_request")
    good = {**cookie, **origin, **proof}
    assert client.patch("/api/me", json={"locale": "de"}, headers=good).is_success
    ended = client.delete("/api/session", headers=good)
    assert ended.status_code == 204
    assert 'strongroom_session=""' in ended.headers["set-cookie"]
    require_problem(client.get("/api/session", headers=cookie), 401, "invalid_credentials")


def test_a_token_is_no_cookie(people: People) -> None:
    """What was not made for a cookie does not hold in one."""
    token = people.member.headers["Authorization"].split()[1]
    headers = {"Cookie": f"strongroom_session={token}"}
    answer = people.service.client.get("/api/session", headers=headers)
    require_problem(answer, 401, "invalid_credentials")


def test_two_credentials_must_be_one_caller(people: People) -> None:
    """The same member's are taken, two members' are not."""
    cookie = {"Cookie": by_cookie(people).headers["set-cookie"].split(";")[0]}
    client = people.service.client
    assert client.get("/api/session", headers=cookie | people.member.headers).is_success
    answer = client.get("/api/session", headers=cookie | people.other.headers)
    require_problem(answer, 401, "ambiguous_credentials")
    agent = people.token(people.member, "memory:read")
    assert client.get("/api/session", headers=cookie | agent.headers).is_success


def test_one_authorization_is_enough(people: People) -> None:
    """Two headers are no credential, nor is another scheme."""
    token = people.member.headers["Authorization"]
    client = people.service.client
    twice = [("Authorization", token), ("Authorization", token)]
    require_problem(client.get("/api/session", headers=twice), 401, "invalid_credentials")
    for odd in ("", "Bearer", f"Token {token.split()[1]}", f"Bearer {CANARY}"):
        answer = client.get("/api/session", headers={"Authorization": odd})
        require_problem(answer, 401, "invalid_credentials")
    lower = {"Authorization": token.lower()[:7] + token[7:]}
    assert client.get("/api/session", headers=lower).is_success


# -- Oddities on the wire -----------------------------------------------------------------


def raw_call(people: People, head: bytes, body: bytes = b"") -> bytes:
    """Send bytes; what comes back until the server closes."""
    url = people.service.client.base_url
    with socket.create_connection((url.host, url.port or 0), timeout=20) as wire:
        wire.sendall(head + b"Connection: close\r\n\r\n" + body)
        found = b""
        while part := wire.recv(65_536):
            found += part
    return found


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
    answer = raw_call(people, head)
    assert answer.startswith(b"HTTP/1.1 4")
    assert b"content-type: application/problem+json\r\n" in answer
    assert answer.count(b"x-request-id: ") == 1
    assert answer.count(b"x-content-type-options: nosniff") == 1
    assert json.loads(answer.partition(b"\r\n\r\n")[2])["code"] in CODES


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


# -- Behind a proxy -----------------------------------------------------------------------


def test_behind_tls_everything_is_bound_to_the_public_name(
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    """The cookie's name and Secure, the Origin, and the Host, which must be the public one."""
    public = "https://room.example"
    root = tmp_path_factory.mktemp("public")
    with people_on(root, public_url=public) as people:
        client = people.service.client
        answer = by_cookie(people, Origin=public)
        cookie = answer.headers["set-cookie"]
        assert cookie.startswith("__Host-strongroom_session=")
        assert "Secure" in cookie
        assert "Domain" not in cookie
        headers = {"Cookie": cookie.split(";")[0], "Origin": public}
        headers["X-CSRF-Token"] = answer.json()["csrf_token"]
        ended = client.delete("/api/session", headers=headers)
        assert "Secure" in ended.headers["set-cookie"]
        here = str(client.base_url).rstrip("/")
        require_problem(by_cookie(people, Origin=here), 403, "cross_site_request")
        for host in ("evil.example", "127.0.0.1", ""):
            for path in ("/api/session", "/api/nothing", "/api/file?path=user-memory/n.md"):
                sent = people.member.headers | {"Host": host}
                require_problem(client.get(path, headers=sent), 421, "misdirected_request")
            assert client.get("/healthz", headers={"Host": host}).is_success
