"""Files over HTTP: streamed in and out, in the hands of those who may, whole or not there."""

import contextlib
import http.client
import itertools
import os
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import httpx
import pytest

from app.crypto.segments import SEGMENT_BYTES
from tests.support.clients import Client, code_of
from tests.support.outside import eventually
from tests.support.people import People, people_on

MIB: Final = 1024 * 1024
BIG: Final = 40 * MIB
NUMBERS: Final = itertools.count()
PNG: Final = {"content-type": "image/png"}
_ABSENT = "5e07dced-51d3-434d-a357-2096ac66238d"


@pytest.fixture(scope="module")
def people(tmp_path_factory: pytest.TempPathFactory) -> Iterator[People]:
    """A group on a running service."""
    with people_on(tmp_path_factory.mktemp("blobs"), measured=True, blob_bytes_max=BIG) as made:
        yield made


def put(
    who: Client,
    blob_id: str,
    content: bytes | Iterator[bytes],
    headers: dict[str, str] | None = None,
    **params: str,
) -> httpx.Response:
    """Store a file."""
    return who.service.client.put(
        f"/api/blobs/{blob_id}",
        params=params,
        content=content,
        headers=who.headers | PNG | (headers or {}),
    )


def get(who: Client, blob_id: str, home: str = "own", **headers: str) -> httpx.Response:
    """Read a file."""
    sent = who.headers | {name.replace("_", "-"): value for name, value in headers.items()}
    return who.service.client.get(f"/api/blobs/{blob_id}", params={"home": home}, headers=sent)


def new_id() -> str:
    """An id of a client's own."""
    return str(uuid.uuid4())


def listed(who: Client, **params: str) -> list[str]:
    """Ids of the files in a list."""
    answer = who.call("GET", "/api/blobs", params=params)
    assert answer.status_code == 200, answer.text
    return [item["id"] for item in answer.json()["items"]]


def folder(who: Client) -> Path:
    """Where a member's files lie."""
    return who.service.database / "files" / who.user_id


def files_of(path: Path) -> set[str]:
    """Names of the files in a folder."""
    return {each.name for each in path.iterdir()} if path.exists() else set()


def require_present(answer: httpx.Response, code: str, tag: str) -> None:
    """A 412 that tells what stands, in its body and as its ETag."""
    assert (answer.status_code, code_of(answer)) == (412, code)
    assert answer.headers["etag"] == tag == f'"{answer.json()["current_version"]}"'


def test_a_file_is_stored_and_read(people: People) -> None:
    """201 when it is new, 200 when it is the same again, and the bytes come back as they were."""
    blob_id, content = new_id(), os.urandom(3 * MIB + 17)
    made = put(people.member, blob_id, content, name="Bild ö.png")
    assert made.status_code == 201, made.text
    body = made.json()
    assert (body["id"], body["home"], body["name"]) == (blob_id, "own", "Bild ö.png")
    assert (body["size_bytes"], body["media_type"]) == (len(content), "image/png")
    again = put(people.member, blob_id, content, name="Bild ö.png")
    assert (again.status_code, again.json()) == (200, body)
    read = get(people.member, blob_id)
    assert read.content == content
    assert read.headers["content-length"] == str(len(content))
    assert read.headers["content-type"] == "image/png"
    assert read.headers["etag"] == made.headers["etag"]
    assert read.headers["x-content-type-options"] == "nosniff"
    assert read.headers["content-disposition"] == "attachment; filename*=UTF-8''Bild%20%C3%B6.png"
    assert get(people.member, blob_id, if_none_match=read.headers["etag"]).status_code == 304
    require_present(
        get(people.member, blob_id, if_match='"other"'), "version_conflict", made.headers["etag"]
    )


def test_anything_else_under_the_same_id_is_refused(people: People) -> None:
    """Other bytes, another name; the file that stands stays."""
    blob_id = new_id()
    assert put(people.member, blob_id, b"one").status_code == 201
    for refused in (
        put(people.member, blob_id, b"two"),
        put(people.member, blob_id, b"one", name="other"),
        put(people.member, blob_id, b"one", {"content-type": "text/plain"}),
    ):
        assert (refused.status_code, code_of(refused)) == (409, "blob_differs")
    must_be_new = put(people.member, blob_id, b"one", {"if-none-match": "*"})
    tag = get(people.member, blob_id).headers["etag"]
    require_present(must_be_new, "already_exists", tag)
    assert get(people.member, blob_id).content == b"one"


def head_of(who: Client, path: str, headers: dict[str, str]) -> httpx.Response:
    """Ask for what a file's headers are."""
    return who.service.client.head(path, headers=who.headers | headers)


def test_a_head_says_what_a_get_would(people: People) -> None:
    """The same headers for the whole, no byte of it; a part is nothing that a HEAD can ask for."""
    who, blob_id = people.member, new_id()
    put(who, blob_id, b"some bytes", name="a.png")
    read = get(who, blob_id)
    path = f"/api/blobs/{blob_id}"
    for more in ({}, {"range": "bytes=2-3"}, {"range": "bytes=99-"}):
        head = head_of(who, path, more)
        assert (head.status_code, head.content) == (200, b"")
        for name in ("content-length", "content-type", "content-disposition", "etag"):
            assert head.headers[name] == read.headers[name]
        assert head.headers["accept-ranges"] == "bytes"
        assert "content-range" not in head.headers
    tag = read.headers["etag"]
    for name, value, status in (
        ("if-none-match", tag, 304),
        ("if-none-match", '"other"', 200),
        ("if-match", tag, 200),
        ("if-match", '"other"', 412),
    ):
        head = head_of(who, path, {name: value})
        assert (head.status_code, head.content) == (status, b"")
    for absent in (people.other.call("HEAD", path), who.call("HEAD", f"/api/blobs/{new_id()}")):
        assert (absent.status_code, absent.content) == (404, b"")


def test_what_may_stand_in_no_url_is_said_by_a_body(people: People) -> None:
    """A name and a note's path, once; the same again is no change, anything else is refused."""
    who, blob_id, path = people.member, new_id(), f"user-memory/{next(NUMBERS)}.md"
    who.put(path, "text")
    tag = put(who, blob_id, b"bytes").headers["etag"]
    at = f"/api/blobs/{blob_id}/place"
    said = {"name": "Bild.png", "path": path}
    unmet = who.headers | {"if-match": '"other"'}
    stale = who.service.client.post(at, json=said, headers=unmet)
    require_present(stale, "version_conflict", tag)
    for _ in range(2):
        placed = who.call("POST", at, json=said)
        assert placed.status_code == 200, placed.text
        assert (placed.json()["name"], placed.json()["path"]) == ("Bild.png", path)
        assert placed.headers["etag"] == tag
    assert listed(who, path=path) == [blob_id]
    for body, status, code in (
        ({"name": "other.png"}, 409, "blob_differs"),
        ({"home": "group", "path": path}, 422, "invalid_input"),
        ({"path": path, "report": _ABSENT}, 422, "invalid_input"),
        ({"path": "user-memory/none.md"}, 404, "not_found"),
        ({"report": _ABSENT}, 404, "not_found"),
        ({"home": "own"}, 422, "invalid_input"),
    ):
        refused = who.call("POST", at, json=body)
        assert (refused.status_code, code_of(refused)) == (status, code), body
    assert people.other.call("POST", at, json=said).status_code == 404
    read_only = people.token(who, "memory:read")
    assert read_only.call("POST", at, json=said).status_code == 403


def test_only_a_files_bytes_may_be_long(people: People) -> None:
    """What is said of it, and what removes it, has the bound of any other JSON."""
    long = b'{"name": "' + b" " * 2 * MIB + b'"}'
    blob_id = new_id()
    put(people.member, blob_id, b"bytes")
    headers = people.member.headers | {"content-type": "application/json"}
    for method, path in (
        ("POST", f"/api/blobs/{blob_id}/place"),
        ("POST", "/api/blobs/list"),
        ("DELETE", f"/api/blobs/{blob_id}"),
    ):
        refused = people.service.client.request(method, path, content=long, headers=headers)
        assert (refused.status_code, code_of(refused)) == (413, "payload_too_large")


def test_an_empty_file_is_a_file(people: People) -> None:
    """Of no bytes, of which there is no part."""
    blob_id = new_id()
    assert put(people.member, blob_id, b"").json()["size_bytes"] == 0
    assert get(people.member, blob_id).content == b""
    assert get(people.member, blob_id, range="bytes=0-0").status_code == 416


SIZE: Final = 2 * SEGMENT_BYTES + 100
RANGES: Final = [
    ("bytes=0-0", 0, 1),
    ("bytes=0-", 0, SIZE),
    (f"bytes={SEGMENT_BYTES - 1}-{SEGMENT_BYTES}", SEGMENT_BYTES - 1, SEGMENT_BYTES + 1),
    (f"bytes={SEGMENT_BYTES}-{2 * SEGMENT_BYTES - 1}", SEGMENT_BYTES, 2 * SEGMENT_BYTES),
    ("bytes=-1", SIZE - 1, SIZE),
    (f"bytes=-{SIZE + 1}", 0, SIZE),
    (f"bytes=5-{10 * SIZE}", 5, SIZE),
]


@pytest.fixture(scope="module")
def stored(people: People) -> tuple[str, bytes]:
    """A file of three segments."""
    blob_id, content = new_id(), os.urandom(SIZE)
    assert put(people.member, blob_id, content).status_code == 201
    return blob_id, content


@pytest.mark.parametrize(("asked", "start", "end"), RANGES, ids=[asked for asked, *_ in RANGES])
def test_a_part_is_read(
    people: People, stored: tuple[str, bytes], asked: str, start: int, end: int
) -> None:
    """Across the segments and up to the end."""
    blob_id, content = stored
    part = get(people.member, blob_id, range=asked)
    assert part.status_code == 206
    assert part.content == content[start:end]
    assert part.headers["content-range"] == f"bytes {start}-{end - 1}/{SIZE}"


@pytest.mark.parametrize("asked", [f"bytes={SIZE}-", "bytes=-0", f"bytes={10**17}-{10**17 + 1}"])
def test_a_part_outside_is_refused(people: People, stored: tuple[str, bytes], asked: str) -> None:
    """With the size that there is."""
    refused = get(people.member, stored[0], range=asked)
    assert (refused.status_code, code_of(refused)) == (416, "range_not_satisfiable")
    assert refused.headers["content-range"] == f"bytes */{SIZE}"


@pytest.mark.parametrize(
    "asked", ["bytes=0-1,4-5", "bytes=5-4", "pages=1-2", "bytes=a-b", "bytes=-", "bytes"]
)
def test_what_is_no_single_part_gets_the_whole(
    people: People, stored: tuple[str, bytes], asked: str
) -> None:
    """Several parts, another unit, nonsense."""
    whole = get(people.member, stored[0], range=asked)
    assert (whole.status_code, whole.content) == (200, stored[1])


def test_a_part_of_another_content_gets_the_whole(
    people: People, stored: tuple[str, bytes]
) -> None:
    """`If-Range` with another tag; with its own it gets the part."""
    tag = get(people.member, stored[0]).headers["etag"]
    asked = {"range": "bytes=0-9"}
    assert get(people.member, stored[0], if_range=tag, **asked).status_code == 206
    assert get(people.member, stored[0], if_range='"other"', **asked).status_code == 200


@pytest.mark.parametrize(
    ("blob_id", "headers", "params", "status"),
    [
        ("no-id", {}, {}, 404),
        (_ABSENT.upper(), {}, {}, 404),
        (_ABSENT, {"content-type": "nonsense"}, {}, 422),
        (_ABSENT, {"content-encoding": "gzip"}, {}, 415),
        (_ABSENT, {}, {"path": "user-memory/none.md"}, 404),
        (_ABSENT, {}, {"report": "none"}, 404),
        (_ABSENT, {}, {"path": "user-memory/n.md", "report": "x"}, 422),
        (_ABSENT, {}, {"path": "shared-memory/n.md", "home": "own"}, 422),
        (_ABSENT, {}, {"name": "a\0b"}, 422),
        (_ABSENT, {}, {"other": "x"}, 422),
        (_ABSENT, {"if-match": "nonsense"}, {}, 422),
    ],
)
def test_what_cannot_be_stored_leaves_nothing(
    people: People, blob_id: str, headers: dict[str, str], params: dict[str, str], status: int
) -> None:
    """Neither a row nor a byte."""
    before = files_of(folder(people.member))
    refused = put(people.member, blob_id, os.urandom(100), headers, **params)
    assert refused.status_code == status, refused.text
    assert files_of(folder(people.member)) == before


def test_a_file_over_the_limit_is_refused_before_it_is_read_on(people: People) -> None:
    """Announced or not."""
    before = files_of(folder(people.member))

    refused = put(people.member, new_id(), bytes(BIG + 1))
    assert (refused.status_code, code_of(refused)) == (413, "payload_too_large")
    # The connection may be closed on a client that still sends.
    with contextlib.suppress(httpx.TransportError):
        content = (bytes(MIB) for _ in range(BIG // MIB + 2))
        assert put(people.member, new_id(), content).status_code == 413
    eventually(lambda: files_of(folder(people.member)), lambda found: found == before)


def test_a_client_that_goes_away_leaves_nothing(people: People) -> None:
    """In the middle of what it announced."""
    before = files_of(folder(people.member))
    address = people.service.client.base_url
    connection = http.client.HTTPConnection(address.host, address.port or 0)
    connection.putrequest("PUT", f"/api/blobs/{new_id()}")
    for name, value in (people.member.headers | {"Content-Length": str(9 * MIB)}).items():
        connection.putheader(name, value)
    connection.endheaders()
    connection.send(bytes(3 * MIB))
    eventually(lambda: files_of(folder(people.member)), lambda found: found != before)
    connection.close()
    eventually(lambda: files_of(folder(people.member)), lambda found: found == before)


def _memory(people: People) -> int:
    """Most memory that the worker ever had, bytes."""
    [pid] = people.service.workers()
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    return int(next(line for line in lines if line.startswith("VmHWM")).split()[1]) * 1024


def test_a_large_file_is_never_whole_in_memory(people: People) -> None:
    """Going in and coming out, it takes a few pieces."""
    blob_id, block = new_id(), os.urandom(MIB)
    put(people.member, new_id(), block).raise_for_status()
    before = _memory(people)
    assert put(people.member, blob_id, (block for _ in range(BIG // MIB))).status_code == 201
    client, count = people.service.client, 0
    path = f"/api/blobs/{blob_id}"
    with client.stream("GET", path, headers=people.member.headers) as answer:
        for piece in answer.iter_raw(MIB):
            assert piece == block
            count += 1
    assert count == BIG // MIB
    assert _memory(people) - before < BIG / 2


def test_attachments_follow_their_note(people: People) -> None:
    """Listed by its path, moved with it, gone when it is purged."""
    note, target = (f"user-memory/{next(NUMBERS)}.md" for _ in range(2))
    member, ids = people.member, sorted(new_id() for _ in range(3))
    member.put(note, "text").raise_for_status()
    for blob_id in ids:
        assert put(member, blob_id, blob_id.encode(), path=note).json()["path"] == note
    first = member.call("GET", "/api/blobs", params={"path": note, "limit": 2}).json()
    rest = {"path": note, "cursor": first["next_cursor"]}
    second = member.call("POST", "/api/blobs/list", json=rest).json()
    assert [item["id"] for item in first["items"] + second["items"]] == ids
    assert second["next_cursor"] is None
    member.call("POST", "/api/file/move", json={"from": note, "to": target}).raise_for_status()
    assert listed(member, path=target) == ids
    member.call("DELETE", "/api/file", params={"path": target}).raise_for_status()
    assert listed(member, path=target) == ids
    purge = {"path": target, "purge": True}
    member.call("POST", "/api/file/delete", json=purge).raise_for_status()
    assert get(member, ids[0]).status_code == 404
    assert member.call("GET", "/api/blobs", params={"path": target}).status_code == 404


def test_a_file_is_taken_away(people: People) -> None:
    """Its bytes stay for the grace time, and for as long as another holds the same."""
    member, ids, content = people.member, [new_id(), new_id()], os.urandom(100)
    for blob_id in ids:
        put(member, blob_id, content).raise_for_status()
    path = f"/api/blobs/{ids[0]}"
    sent = member.headers | {"if-match": '"other"'}
    unmet = member.service.client.delete(path, headers=sent)
    require_present(unmet, "version_conflict", get(member, ids[0]).headers["etag"])
    assert member.call("DELETE", path).status_code == 204
    assert member.call("DELETE", path).status_code == 404
    assert get(member, ids[0]).status_code == 404
    assert get(member, ids[1]).content == content
    assert put(member, ids[0], b"other").status_code == 201


def test_a_members_files_are_their_own(people: People) -> None:
    """Nobody else finds, lists or takes them, an administrator no more than others."""
    blob_id = new_id()
    put(people.member, blob_id, b"mine").raise_for_status()
    for other in (people.other, people.admin):
        assert get(other, blob_id).status_code == 404
        assert get(other, blob_id, "group").status_code == 404
        assert other.call("DELETE", f"/api/blobs/{blob_id}").status_code == 404
        assert blob_id not in listed(other)
        # The same id is free in every other store.
        assert put(other, blob_id, b"theirs").status_code == 201
    assert get(people.member, blob_id).content == b"mine"
    assert get(people.anonymous(), blob_id).status_code == 401


def test_the_groups_files_are_everybodys(people: People) -> None:
    """Stored by one, read and taken away by another; on a shared note by its path."""
    blob_id, hung = new_id(), new_id()
    assert put(people.member, blob_id, b"ours", home="group").json()["home"] == "group"
    assert get(people.other, blob_id, "group").content == b"ours"
    note = f"shared-memory/{next(NUMBERS)}.md"
    people.member.put(note, "text").raise_for_status()
    assert put(people.other, hung, b"hung", path=note).json()["path"] == note
    assert listed(people.admin, path=note) == [hung]
    assert {blob_id, hung} <= set(listed(people.admin, home="group"))
    gone = people.other.call("DELETE", f"/api/blobs/{blob_id}", params={"home": "group"})
    assert gone.status_code == 204


def test_a_token_reaches_what_its_scopes_reach(people: People) -> None:
    """Memory and reports apart, and an agent writes nothing that others read."""
    member = people.member
    report = {"kind": "k", "title": "t", "body": "b", "produced_by": "p"}
    report_id = member.call("POST", "/api/reports", json=report).json()["id"]
    free, hung = new_id(), new_id()
    put(member, free, b"free").raise_for_status()
    put(member, hung, b"hung", report=report_id).raise_for_status()
    memory = people.token(member, "memory:read", "memory:write", is_agent=False)
    reports = people.token(member, "reports:read", "reports:write", is_agent=False)
    assert [get(memory, each).status_code for each in (free, hung)] == [200, 403]
    assert [get(reports, each).status_code for each in (free, hung)] == [403, 200]
    assert hung not in listed(memory)
    assert listed(reports) == [hung]
    assert listed(reports, report=report_id) == [hung]
    assert memory.call("GET", "/api/blobs", params={"report": report_id}).status_code == 403
    assert put(memory, new_id(), b"x", report=report_id).status_code == 403
    assert put(reports, new_id(), b"x").status_code == 403
    assert put(memory, new_id(), b"x", home="group").status_code == 403
    for scopes in ("shared:write", "reports:write"):
        agent = people.token(member, scopes)
        assert put(agent, new_id(), b"x", home="group").status_code == 403
    neither = people.token(member, "events:read")
    assert neither.call("GET", "/api/blobs").status_code == 403
    assert memory.call("DELETE", f"/api/blobs/{hung}").status_code == 403
    assert reports.call("DELETE", f"/api/blobs/{hung}").status_code == 204


def test_what_hangs_on_the_groups_report_is_read_as_the_report_is(people: People) -> None:
    """Never by its subject, nor by whoever does not supervise them; it goes with the report."""
    body = {"kind": "k", "title": "t", "body": "b", "produced_by": "p"}
    body |= {"audience": "admins", "subject_user_id": people.member.user_id}
    report_id = people.admin.call("POST", "/api/reports", json=body).json()["id"]
    blob_id = new_id()
    made = put(people.admin, blob_id, b"evidence", home="group", report=report_id)
    assert made.status_code == 201, made.text
    assert get(people.admin, blob_id, "group").content == b"evidence"
    for other in (people.member, people.other):
        assert get(other, blob_id, "group").status_code == 404
        assert blob_id not in listed(other, home="group")
        asked = {"home": "group", "report": report_id}
        assert other.call("GET", "/api/blobs", params=asked).status_code == 404
        assert put(other, new_id(), b"x", **asked).status_code == 404
        gone = other.call("DELETE", f"/api/blobs/{blob_id}", params={"home": "group"})
        assert gone.status_code == 404
    people.admin.call("DELETE", f"/api/reports/group/{report_id}").raise_for_status()
    assert get(people.admin, blob_id, "group").status_code == 404


def test_a_quota_counts_files(people: People) -> None:
    """What does not fit is refused, announced or not, and leaves nothing."""
    uma = people.add("uma", "member")
    put(uma, new_id(), os.urandom(MIB)).raise_for_status()
    used = uma.service.settings.database.joinpath(f"{uma.user_id}.db").stat().st_size + MIB
    patch = {"quota_bytes": used + 3 * MIB}
    people.admin.call("PATCH", f"/api/admin/users/{uma.user_id}", json=patch).raise_for_status()
    before = files_of(folder(uma))
    for content in (os.urandom(4 * MIB), iter([os.urandom(4 * MIB)])):
        refused = put(uma, new_id(), content)
        assert (refused.status_code, code_of(refused)) == (507, "quota_exceeded")
    assert files_of(folder(uma)) == before
    put(uma, new_id(), os.urandom(2 * MIB)).raise_for_status()
    refused = uma.put("user-memory/n.md", "x" * 2 * MIB)
    assert (refused.status_code, code_of(refused)) == (507, "quota_exceeded")


def test_a_damaged_file_is_told_and_no_other_bytes_are_given(people: People) -> None:
    """In its first piece by an error, later by an answer that ends too soon."""
    member, blob_id, content = people.member, new_id(), os.urandom(3 * MIB)
    before = files_of(folder(member))
    put(member, blob_id, content).raise_for_status()
    [name] = files_of(folder(member)) - before
    path = folder(member) / name
    whole = bytearray(path.read_bytes())
    for at, is_told in ((100, True), (len(whole) - 100, False)):
        damaged = bytearray(whole)
        damaged[at] ^= 1
        path.write_bytes(damaged)
        if is_told:
            assert code_of(get(member, blob_id)) == "file_damaged"
            continue
        with pytest.raises(httpx.TransportError):
            get(member, blob_id)
        assert get(member, blob_id, range="bytes=0-99").content == content[:100]
    path.unlink()
    assert code_of(get(member, blob_id)) == "file_damaged"


def _read_on(who: Client, blob_id: str, act: Any) -> int:  # noqa: ANN401 - any call
    """Read the first piece, do something, read on; the bytes that came."""
    count = 0
    path = f"/api/blobs/{blob_id}"
    with who.service.client.stream("GET", path, headers=who.headers) as answer:
        try:
            for number, piece in enumerate(answer.iter_raw()):
                if number == 0:
                    act()
                count += len(piece)
        except httpx.TransportError:
            pass
    return count


def test_a_session_that_ends_gets_no_more_of_a_file(people: People) -> None:
    """Signing out ends what is under way, though not what is on its way already."""
    vic = people.add("vic", "member")
    blob_id = new_id()
    put(vic, blob_id, bytes(BIG)).raise_for_status()
    keeper = Client(vic.service, "vic", "", vic.service.sign_in("vic"), vic.user_id)
    assert _read_on(vic, blob_id, lambda: None) == BIG
    got = _read_on(vic, blob_id, lambda: vic.call("DELETE", "/api/session").raise_for_status())
    assert got < BIG
    got = _read_on(keeper, blob_id, lambda: keeper.call("POST", "/api/me/lock").raise_for_status())
    assert got < BIG


def test_a_rotation_leaves_files_as_they_are(people: People) -> None:
    """Their keys are rows, which go into the new file with all others."""
    wim = people.add("wim", "member")
    blob_id = new_id()
    put(wim, blob_id, b"kept").raise_for_status()
    before = {each.name: each.stat().st_ino for each in folder(wim).iterdir()}
    body = {"password": wim.password or "a fine long password"}
    wim.call("POST", "/api/me/rotate", json=body).raise_for_status()
    assert get(wim, blob_id).content == b"kept"
    assert {each.name: each.stat().st_ino for each in folder(wim).iterdir()} == before


def test_an_erasure_takes_the_files_along(people: People) -> None:
    """And the receipt counts them."""
    xia = people.add("xia", "member")
    put(xia, new_id(), os.urandom(MIB)).raise_for_status()
    people.admin.call("POST", "/api/session/confirm", json={"password": people.admin.password})
    erased = people.admin.call("DELETE", f"/api/admin/users/{xia.user_id}")
    assert erased.json()["receipt"]["file_bytes"] > MIB
    assert not folder(xia).exists()
