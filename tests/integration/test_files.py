"""Notes over HTTP: written, read, edited, moved, deleted, and brought back."""

import io
import zipfile
from collections.abc import Iterator
from typing import Any, Final

import httpx
import pytest

from tests.support.archives import zipped
from tests.support.clients import Client, code_of
from tests.support.people import People, people_on


@pytest.fixture(scope="module")
def people(tmp_path_factory: pytest.TempPathFactory) -> Iterator[People]:
    """A group on a running service."""
    with people_on(tmp_path_factory.mktemp("root")) as found:
        yield found


@pytest.fixture(params=["user-memory", "shared-memory"])
def root(request: pytest.FixtureRequest, people: People) -> Iterator[str]:
    """Each root, empty."""
    found = str(request.param)
    yield found
    for item in people.member.call("GET", "/api/files", params={"path": found}).json()["items"]:
        gone = {"path": item["path"], "recursive": True, "purge": True}
        assert people.member.call("POST", "/api/file/delete", json=gone).status_code == 204


@pytest.fixture
def me(people: People) -> Client:
    """A member."""
    return people.member


def post(me: Client, call: str, **fields: Any) -> httpx.Response:  # noqa: ANN401 - as JSON
    """Make one of the calls that take JSON; `source` stands for `from`."""
    body = {"from" if name == "source" else name: value for name, value in fields.items()}
    return me.call("POST", f"/api/file/{call}", json=body)


def names(me: Client, path: str, depth: int = 1) -> list[str]:
    """What lies in a folder, by path."""
    found = me.call("GET", "/api/files", params={"path": path, "depth": depth})
    return [item["path"] for item in found.json()["items"]]


def test_a_note_is_made_replaced_and_read(root: str, me: Client) -> None:
    """201 then 200, and a new version each time the text changes."""
    path = f"{root}/a/b.md"
    first = me.put(path, "one")
    assert first.status_code == 201
    assert set(first.json()) == {
        "path",
        "version",
        "size_bytes",
        "author",
        "created_at",
        "updated_at",
        "replaced_version",
    }
    assert first.json()["replaced_version"] is None
    assert first.json()["author"] == me.user_id
    second = me.put(path, "t\u00fco")
    assert second.status_code == 200
    assert second.json()["version"] == first.json()["version"] + 1
    assert second.json()["size_bytes"] == 4
    same = me.put(path, "t\u00fco")
    assert same.headers["etag"] == second.headers["etag"]
    read = me.service.client.get(
        "/api/file", params={"path": path}, headers=me.headers | {"Accept": "application/json"}
    )
    assert second.json()["replaced_version"] == first.json()["version"]
    facts = {name: value for name, value in second.json().items() if name != "replaced_version"}
    assert read.json() == {**facts, "content": "t\u00fco"}


@pytest.mark.parametrize(
    "spelling",
    [
        "{root}//b.md",
        "/{root}/./b.md",
        "~/{root}/b.md",
        "{root}/x/../b.md",
        "{root}/../../b.md",
        "\\{root}\\b.md",
        "{root}/b.md/",
    ],
)
def test_a_path_has_many_spellings_and_one_note(spelling: str, root: str, me: Client) -> None:
    """All of them are answered under the one."""
    made = me.put(spelling.format(root=root), "text")
    assert made.json()["path"] == f"{root}/b.md"
    assert me.read(f"{root}/b.md") == "text"


NO_PATHS: Final = {
    "no root": ("user-memoryish/a.md", 404, "not_found"),
    "a path of the box": ("/etc/passwd", 404, "not_found"),
    "nothing": ("", 404, "not_found"),
    "above": ("..", 404, "not_found"),
    "from above": ("../user-memory/a.md", 404, "not_found"),
    "NUL": ("user-memory/a\0b", 422, "invalid_path"),
    "a line break": ("user-memory/a\nb", 422, "invalid_path"),
    "another control": ("user-memory/\x85", 422, "invalid_path"),
    "a long name": ("user-memory/" + "x" * 256, 422, "invalid_path"),
    "depth": ("user-memory/" + "x/" * 33, 422, "invalid_path"),
    "length": ("user-memory/" + "x" * 5_000, 422, "invalid_path"),
    "more length": ("x" * 20_000, 422, "invalid_request"),
}


@pytest.mark.parametrize(("path", "status", "code"), NO_PATHS.values(), ids=NO_PATHS.keys())
def test_a_path_that_names_no_note_is_refused(
    path: str, status: int, code: str, me: Client
) -> None:
    """By every call alike, in the query and in the body."""
    answers = [
        me.get(path),
        me.put(path, "x"),
        me.append(path, "x"),
        me.call("DELETE", "/api/file", params={"path": path}),
        me.call("GET", "/api/files", params={"path": path}),
        me.call("GET", "/api/file/versions", params={"path": path}),
        post(me, "read", path=path),
        post(me, "write", path=path, content="x"),
        post(me, "append", path=path, content="x"),
        post(me, "edit", path=path, edits=[{"insert_at_line": 1, "text": "x"}]),
        post(me, "move", source=path, to="user-memory/ok.md"),
        post(me, "restore", path=path, version=1),
        post(me, "list", path=path),
    ]
    assert {(answer.status_code, code_of(answer)) for answer in answers} == {(status, code)}


@pytest.mark.parametrize("spelling", ["{}", "{}/", "{}/..", "{}/x/..", "/{}/."])
def test_a_root_is_neither_written_nor_moved_nor_deleted(
    spelling: str, root: str, me: Client
) -> None:
    """Under any spelling, with everything in it as it was."""
    me.put(f"{root}/kept.md", "kept")
    path = spelling.format(root)
    gone = {"path": path, "recursive": True, "purge": True}
    for answer in (
        me.put(path, "x"),
        me.append(path, "x"),
        post(me, "delete", **gone),
        post(me, "move", source=path, to=f"{root}/below", recursive=True),
        post(me, "move", source=f"{root}/kept.md", to=path),
        post(me, "restore", path=path, version=1),
    ):
        assert code_of(answer) == "invalid_path", answer.text
    assert code_of(me.get(path)) == "not_a_note"
    assert me.read(f"{root}/kept.md") == "kept"


def test_appends_are_lines(root: str, me: Client) -> None:
    """Each on a line of its own; the first makes the note."""
    path = f"{root}/log.md"
    assert me.append(path, "one").status_code == 201
    assert me.append(path, "two\n").status_code == 200
    assert post(me, "append", path=path, content="three").status_code == 200
    assert me.read(path) == "one\ntwo\nthree"
    assert me.append(path, "").status_code == 200


def test_an_append_takes_its_path_from_one_place(me: Client) -> None:
    """The query with raw text, or the body with both; never half of each."""
    answer = me.call(
        "POST",
        "/api/file/append",
        params={"path": "user-memory/a.md"},
        json={"path": "user-memory/b.md", "content": "x"},
    )
    assert code_of(answer) == "unsupported_media_type"
    raw = me.service.client.post(
        "/api/file/append", content=b"x", headers=me.headers | {"content-type": "text/markdown"}
    )
    assert code_of(raw) == "unsupported_media_type"


EDITS: Final = {
    "replace": ([{"old": "two", "new": "2"}], "one\n2\nthree\n"),
    "take away": ([{"old": "two\n", "new": ""}], "one\nthree\n"),
    "insert": ([{"insert_at_line": 2, "text": "new\n"}], "one\nnew\ntwo\nthree\n"),
    "insert at the end": ([{"insert_at_line": 4, "text": "new\n"}], "one\ntwo\nthree\nnew\n"),
    "lines": ([{"lines": [1, 2], "text": "new\n"}], "new\nthree\n"),
    "several": (
        [{"lines": [3, 3], "text": "3\n"}, {"old": "one", "new": "1\n1"}],
        "1\n1\ntwo\n3\n",
    ),
}


@pytest.mark.parametrize(("edits", "text"), EDITS.values(), ids=EDITS.keys())
@pytest.mark.parametrize("way", ["PATCH", "POST"])
def test_edits_are_placed_in_the_text_as_it_was(
    way: str, edits: list[dict[str, Any]], text: str, root: str, me: Client
) -> None:
    """In each of their forms."""
    path = f"{root}/e.md"
    me.put(path, "one\ntwo\nthree\n")
    if way == "PATCH":
        answer = me.call("PATCH", "/api/file", params={"path": path}, json={"edits": edits})
    else:
        answer = post(me, "edit", path=path, edits=edits)
    assert answer.status_code == 200
    assert me.read(path) == text


@pytest.mark.parametrize(
    ("edit", "status", "code"),
    [
        ({"old": "zwei", "new": "x"}, 409, "no_match"),
        ({"old": "t", "new": "x"}, 409, "many_matches"),
        ({"old": "", "new": "x"}, 422, "invalid_input"),
        ({"insert_at_line": 9, "text": "x"}, 422, "invalid_input"),
        ({"lines": [2, 1], "text": "x"}, 422, "invalid_input"),
        ({"lines": [1, 9], "text": "x"}, 422, "invalid_input"),
        ({"lines": [1], "text": "x"}, 422, "invalid_request"),
        ({"insert_at_line": 0, "text": "x"}, 422, "invalid_request"),
        ({"old": "two"}, 422, "invalid_request"),
        ({"old": "two", "new": None}, 422, "invalid_request"),
        ({"old": "two", "new": "x", "text": "x"}, 422, "invalid_request"),
        ({}, 422, "invalid_request"),
    ],
)
def test_an_edit_that_fits_nowhere_changes_nothing(
    edit: dict[str, Any], status: int, code: str, root: str, me: Client
) -> None:
    """Nor do those beside it."""
    path = f"{root}/e.md"
    me.put(path, "one\ntwo\nthree\n")
    edits = [{"old": "one", "new": "1"}, edit]
    for answer in (
        post(me, "edit", path=path, edits=edits),
        me.call("PATCH", "/api/file", params={"path": path}, json={"edits": edits}),
    ):
        assert (answer.status_code, code_of(answer)) == (status, code), answer.text
    if code == "many_matches":
        assert answer.json()["lines"] == [2, 3]
    assert me.read(path) == "one\ntwo\nthree\n"


def test_edits_that_overlap_are_refused(root: str, me: Client) -> None:
    """They would depend on their order."""
    me.put(f"{root}/e.md", "one\ntwo\n")
    edits = [{"old": "one\ntwo", "new": "x"}, {"lines": [2, 2], "text": "y\n"}]
    answer = post(me, "edit", path=f"{root}/e.md", edits=edits)
    assert code_of(answer) == "overlapping_edits"
    missing = post(me, "edit", path=f"{root}/none.md", edits=edits)
    assert code_of(missing) == "not_found"


def test_a_note_and_a_folder_cannot_stand_in_one_place(root: str, me: Client) -> None:
    """409 whichever came first."""
    me.put(f"{root}/a/b.md", "x")
    for path in (f"{root}/a", f"{root}/a/b.md/c.md"):
        for answer in (me.put(path, "x"), me.append(path, "x")):
            assert (answer.status_code, code_of(answer)) == (409, "path_conflict")
    assert code_of(me.get(f"{root}/a")) == "not_a_note"


def test_a_note_moves_with_its_text(root: str, me: Client) -> None:
    """To where nothing stands, and its old place is free."""
    me.put(f"{root}/a.md", "x")
    moved = post(me, "move", source=f"{root}/a.md", to=f"{root}/b/c.md")
    assert moved.status_code == 200
    assert [item["path"] for item in moved.json()["items"]] == [f"{root}/b/c.md"]
    assert me.read(f"{root}/b/c.md") == "x"
    assert me.get(f"{root}/a.md").status_code == 404
    me.put(f"{root}/a.md", "y")
    taken = post(me, "move", source=f"{root}/a.md", to=f"{root}/b/c.md")
    assert (taken.status_code, code_of(taken)) == (412, "already_exists")
    missing = post(me, "move", source=f"{root}/none.md", to=f"{root}/d.md")
    assert code_of(missing) == "not_found"


def test_a_folder_moves_and_goes_only_when_said(root: str, me: Client) -> None:
    """With everything in it, in one step."""
    for name in ("a", "b/c"):
        me.put(f"{root}/d/{name}.md", name)
    assert code_of(post(me, "move", source=f"{root}/d", to=f"{root}/e")) == "recursive_required"
    assert code_of(post(me, "delete", path=f"{root}/d")) == "recursive_required"
    into = post(me, "move", source=f"{root}/d", to=f"{root}/d/e", recursive=True)
    assert code_of(into) == "invalid_path"
    moved = post(me, "move", source=f"{root}/d", to=f"{root}/e", recursive=True)
    assert len(moved.json()["items"]) == 2
    assert names(me, root, 3) == [f"{root}/e", f"{root}/e/a.md", f"{root}/e/b", f"{root}/e/b/c.md"]
    gone = {"path": f"{root}/e", "recursive": "true"}
    assert me.call("DELETE", "/api/file", params=gone).status_code == 204
    assert names(me, root) == []


def test_text_never_changes_its_audience_by_a_move(me: Client) -> None:
    """From one root to another takes a write of its own."""
    me.put("user-memory/secret.md", "x")
    for pair in (("user-memory", "shared-memory"), ("shared-memory", "user-memory")):
        answer = post(me, "move", source=f"{pair[0]}/secret.md", to=f"{pair[1]}/secret.md")
        assert (answer.status_code, code_of(answer)) == (422, "different_roots")


def test_history_is_kept_and_brought_back(root: str, me: Client) -> None:
    """Version by version, newest first, also of a deleted note."""
    path = f"{root}/h.md"
    for text in ("one", "two"):
        me.put(path, text)
    me.call("DELETE", "/api/file", params={"path": path})
    listed = me.call("GET", "/api/file/versions", params={"path": path}).json()
    assert [item["via"] for item in listed["items"]] == ["delete", "put", "put"]
    assert all("content" not in item for item in listed["items"])
    newest, second, first = (item["version"] for item in listed["items"])
    assert newest > second > first
    one = me.call("GET", f"/api/file/versions/{first}", params={"path": path}).json()
    assert one["content"] == "one"
    deletion = me.call("GET", f"/api/file/versions/{newest}", params={"path": path}).json()
    assert deletion["content"] is None
    assert code_of(post(me, "restore", path=path, version=newest)) == "not_found"
    restored = post(me, "restore", path=path, version=first)
    assert restored.status_code == 201
    assert me.read(path) == "one"
    assert post(me, "restore", path=path, version=second).status_code == 200
    assert me.read(path) == "two"
    for odd in ("0", "-1", "x", "1.5", str(10**30), str(newest + 100)):
        answer = me.call("GET", f"/api/file/versions/{odd}", params={"path": path})
        assert (answer.status_code, code_of(answer)) == (404, "not_found"), odd
    cursor, seen = None, []
    while True:
        params = {"path": path, "limit": "2"} | ({"cursor": cursor} if cursor else {})
        page = me.call("GET", "/api/file/versions", params=params).json()
        seen += [item["version"] for item in page["items"]]
        cursor = page["next_cursor"]
        if cursor is None:
            break
    assert seen == sorted(seen, reverse=True)
    assert len(seen) == 5


def test_a_purge_leaves_no_version(root: str, me: Client) -> None:
    """Also of a note that was deleted before; and the old ETag never matches again."""
    path = f"{root}/p.md"
    etag = me.put(path, "one").headers["etag"]
    me.call("DELETE", "/api/file", params={"path": path})
    gone = {"path": path, "purge": "true"}
    assert me.call("DELETE", "/api/file", params=gone).status_code == 204
    assert me.call("DELETE", "/api/file", params=gone).status_code == 404
    assert me.call("GET", "/api/file/versions", params={"path": path}).json()["items"] == []
    assert me.put(path, "two").headers["etag"] != etag


def test_a_listing_shows_folders_by_their_notes(root: str, me: Client) -> None:
    """With what each note is, and no deeper than asked."""
    me.put(f"{root}/a.md", "one\ntwo\n")
    me.put(f"{root}/b/c/d.md", "x")
    listed = me.call("GET", "/api/files", params={"path": root}).json()["items"]
    assert [(item["name"], item["is_dir"]) for item in listed] == [("a.md", False), ("b", True)]
    assert set(listed[0]) == {
        "path",
        "name",
        "is_dir",
        "lines",
        "size_bytes",
        "version",
        "updated_at",
    }
    assert (listed[0]["lines"], listed[0]["size_bytes"]) == (2, 8)
    assert names(me, root, 2) == [f"{root}/a.md", f"{root}/b", f"{root}/b/c"]
    missing = me.call("GET", "/api/files", params={"path": f"{root}/none"})
    assert code_of(missing) == "not_found"


def test_the_forms_that_keep_paths_out_of_urls_answer_alike(root: str, me: Client) -> None:
    """Status, body and headers, but for what names the request."""
    path = f"{root}/t.md"
    me.put(path, "one")
    me.put(path, "two")
    twins: list[tuple[tuple[str, str, dict[str, Any]], tuple[str, dict[str, Any]]]] = [
        (("GET", "/api/file", {"path": path}), ("read", {"path": path})),
        (("GET", "/api/file", {"path": f"{root}/none"}), ("read", {"path": f"{root}/none"})),
        (("GET", "/api/file", {"path": root}), ("read", {"path": root})),
        (("GET", "/api/files", {"path": root, "depth": 2}), ("list", {"path": root, "depth": 2})),
        (("GET", "/api/files", {}), ("list", {})),
        (
            ("GET", "/api/file/versions", {"path": path, "limit": 1}),
            ("versions", {"path": path, "limit": 1}),
        ),
        (
            ("GET", "/api/file/versions/1", {"path": path}),
            ("versions", {"path": path, "version": 1}),
        ),
        (
            ("GET", "/api/file/versions/99", {"path": path}),
            ("versions", {"path": path, "version": 99}),
        ),
        (("DELETE", "/api/file", {"path": root}), ("delete", {"path": root})),
    ]
    for (method, url, query), (call, body) in twins:
        plain, twin = me.call(method, url, params=query), post(me, call, **body)
        assert plain.status_code == twin.status_code, url
        for name in ("content-type", "etag", "vary", "cache-control"):
            assert plain.headers.get(name) == twin.headers.get(name), (url, name)
        if plain.is_success:
            assert plain.content == twin.content
        else:
            assert code_of(plain) == code_of(twin)


def test_a_member_has_a_quota(people: People) -> None:
    """507 before anything is written; reading and deleting go on."""
    member = people.add("quinn", "member")
    member.put("user-memory/a.md", "x")
    people.admin.call("PATCH", f"/api/admin/users/{member.user_id}", json={"quota_bytes": 1})
    for answer in (
        member.put("user-memory/b.md", "x"),
        member.append("user-memory/a.md", "x"),
        post(member, "edit", path="user-memory/a.md", edits=[{"insert_at_line": 1, "text": "x"}]),
        post(member, "restore", path="user-memory/a.md", version=1),
        member.call(
            "POST",
            "/api/reports",
            json={"kind": "k", "title": "t", "body": "b", "produced_by": "p"},
        ),
    ):
        assert (answer.status_code, code_of(answer)) == (507, "quota_exceeded")
    assert member.read("user-memory/a.md") == "x"
    assert member.call("DELETE", "/api/file", params={"path": "user-memory/a.md"}).is_success


@pytest.mark.parametrize("accept", ["text/markdown", "application/json"])
def test_a_read_may_name_the_version_it_wants(me: Client, accept: str) -> None:
    """Another one is refused, and named, by either form."""
    path = f"user-memory/wanted-{accept.partition('/')[2]}.md"
    old = me.put(path, "one").headers["ETag"]
    new = me.put(path, "two").headers["ETag"]
    for wanted, status in ((old, 412), (new, 200), ("*", 200), ("garbage", 422)):
        headers = me.headers | {"If-Match": wanted, "Accept": accept}
        answer = me.service.client.get("/api/file", params={"path": path}, headers=headers)
        assert answer.status_code == status, wanted


@pytest.mark.parametrize("limit", ["1_0", "+5", " 5", "5.0", "0x5"])
def test_a_number_in_a_query_is_digits(me: Client, limit: str) -> None:
    """What only one language reads as a number is none."""
    answer = me.call("GET", "/api/search", params={"q": "x", "limit": limit})
    assert (answer.status_code, code_of(answer)) == (422, "invalid_request")


def test_notes_are_exported_and_imported(people: People) -> None:
    """As a ZIP file, whole; what comes in is all written, or nothing, and why."""
    porter, taker = people.add("porter", "member"), people.add("taker", "member")
    assert porter.put("user-memory/a:b/c.md", "text").is_success
    exported = porter.call("GET", "/api/memory/export")
    assert exported.status_code == 200, exported.text
    assert exported.headers["content-type"] == "application/zip"
    assert "strongroom-memory.zip" in exported.headers["content-disposition"]
    assert int(exported.headers["content-length"]) == len(exported.content)
    with zipfile.ZipFile(io.BytesIO(exported.content)) as archive:
        assert archive.read("user-memory/a%3Ab/c.md") == b"text"

    def send(content: bytes, kind: str = "application/zip") -> httpx.Response:
        headers = {**taker.headers, "Content-Type": kind}
        path = "/api/memory/import"
        return taker.service.client.post(path, content=content, headers=headers)

    for written, unchanged in ((1, 2), (0, 3)):
        done = send(exported.content)
        assert done.json() == {"written": written, "unchanged": unchanged}
    assert taker.read("user-memory/a:b/c.md") == "text"
    assert send(exported.content, "application/octet-stream").status_code == 415
    refused = send(exported.content[:-9])
    assert (refused.status_code, code_of(refused)) == (422, "archive_unreadable")
    refused = send(zipped(("a.md", b"text"), ("../b.md", b"text")))
    assert (refused.status_code, code_of(refused)) == (422, "archive_name")
    assert refused.json()["entry"] == 2
    assert taker.get("user-memory/a.md").status_code == 404


def test_a_context_is_asked_for_by_either_form(people: People) -> None:
    """By a path for each in the query, or as JSON; a template is filled in."""
    me = people.add("prompted", "member")
    asked = {"inject": ["user-memory/index.md", "shared-memory/none"]}
    plain = me.call("GET", "/api/context", params=asked)
    assert plain.json() == me.call("POST", "/api/context", json=asked).json()
    found, missing = plain.json()["items"]
    assert found["content"].startswith("# Index")
    assert (found["version"], found["is_cut"]) == (1, False)
    assert missing == {
        "path": "shared-memory/none",
        "is_missing": True,
        "is_cut": False,
        "content": None,
    }
    for wrong in ({}, {"inject": ["user-memory"] * 65}, {"inject": ["user-memory/\0"]}):
        for answer in (
            me.call("GET", "/api/context", params=wrong),
            me.call("POST", "/api/context", json=wrong),
        ):
            assert answer.status_code == 422
    body = {"template": "<!-- USER_PROFILE -->|<!-- OWN -->|<!-- NO -->", "values": {"OWN": "x"}}
    rendered = me.call("POST", "/api/prompt/render", json=body).json()
    assert rendered["text"].startswith("Name: prompted\n")
    assert rendered["text"].endswith("|x|<!-- NO -->")
    assert (rendered["unknown"], rendered["withheld"]) == (["NO"], [])
    agent = people.token(me, "memory:read")
    assert agent.call("POST", "/api/prompt/render", json=body).json()["withheld"] == [
        "USER_PROFILE"
    ]
