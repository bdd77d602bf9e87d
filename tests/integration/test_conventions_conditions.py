"""What holds for every versioned thing: conditions, ETags, the forms it comes in."""

import json
from collections.abc import Iterator
from typing import Any, Final

import httpx
import pytest

from tests.support.clients import Client
from tests.support.people import People, people_on
from tests.support.problems import CANARY, require_problem

NOTE: Final = {"path": "user-memory/n.md"}
JSON: Final = {"content-type": "application/json"}


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
