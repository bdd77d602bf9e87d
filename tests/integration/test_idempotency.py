"""`Idempotency-Key`: a request that comes again is answered again and done once."""

import re
from collections.abc import Iterator
from typing import Any, Final

import httpx
import pytest

from app.web.rules import RULES
from tests.support import repeats_of_content as content
from tests.support import repeats_of_disk as disk
from tests.support import repeats_of_people as people
from tests.support import repeats_of_work as work
from tests.support.clients import Client
from tests.support.people import people_on
from tests.support.problems import require_problem
from tests.support.repeats import (
    Build,
    Group,
    Request,
    append,
    counted,
    erase,
    group_report,
    number,
    opened,
    patch_user,
    put,
)

CASES: Final = (*content.CASES, *people.CASES, *work.CASES, *disk.CASES)
REPLAYED: Final = "idempotency-replayed"
UNSAFE: Final = {route for route in RULES if route.split()[0] not in {"GET", "HEAD"}}
REFUSED: Final = sorted(route for route in UNSAFE if RULES[route].repeats == "refused")
UNNEEDED: Final = sorted(route for route in UNSAFE if RULES[route].repeats == "unneeded")
KEPT: Final = UNSAFE - set(REFUSED) - set(UNNEEDED)
SECRET: Final = re.compile(
    r"password|passphrase|secret|token|recovery|(^|_)code$|credential|private_key", re.IGNORECASE
)
"""Names of fields that hold what opens something."""


@pytest.fixture(scope="module")
def group(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Group]:
    """A group on a running service."""
    with people_on(tmp_path_factory.mktemp("idempotency"), measured=True) as found:
        yield Group(found)


def _key() -> str:
    return f"key-{number()}"


def _parts(answer: httpx.Response) -> tuple[int, bytes, dict[str, str | None]]:
    kept = ("etag", "location", "content-type")
    return answer.status_code, answer.content, {name: answer.headers.get(name) for name in kept}


def require_replay(request: Request, key: str, first: httpx.Response) -> None:
    """Ask again, and have the first answer."""
    again = request.send(key)
    assert again.headers.get(REPLAYED) == "true", again.text
    assert _parts(again) == _parts(first)


def require_acted(request: Request, key: str) -> httpx.Response:
    """Ask, and have it done."""
    answer = request.send(key)
    assert answer.is_success, answer.text
    assert REPLAYED not in answer.headers
    return answer


def test_every_call_that_keeps_its_answer_is_tried() -> None:
    """A new call is given a request here, or says that it takes no key."""
    assert {route for route, _ in CASES} | people.ENDS_ITSELF == KEPT


def _ids(value: object) -> str | None:
    return getattr(value, "__name__", None)


@pytest.mark.parametrize(("route", "build"), CASES, ids=_ids)
def test_a_request_that_comes_again_adds_nothing(route: str, build: Build, group: Group) -> None:
    """The same answer; no event, audit row, job, delivery, version or opening more."""
    request, key = build(group), _key()
    first = require_acted(request, key)
    before = group.counts()
    require_replay(request, key, first)
    other = request.send(key, **{"If-Match": '"999999999"'})
    if RULES[route].takes_conditions:
        require_problem(other, 422, "idempotency_key_reused")
    else:
        require_problem(other, 412, "version_conflict")
    assert group.counts() == before


@pytest.mark.parametrize("call", REFUSED)
def test_a_call_with_a_secret_takes_no_key(call: str, group: Group) -> None:
    """Whoever sends one would rely on it, and an answer with a secret is never kept."""
    method, path = call.split()
    answer = group.people.admin.service.client.request(
        method, path, headers=group.people.admin.headers | {"Idempotency-Key": "k"}
    )
    require_problem(answer, 422, "idempotency_not_supported")


def test_a_change_of_a_member_takes_no_key_with_a_password(group: Group) -> None:
    """What is kept of a request would be a quick way to try passwords."""
    request = patch_user(group.people.admin, group.plain.user_id, password="some fine password")
    require_problem(request.send("k"), 422, "idempotency_not_supported")


def test_a_call_that_only_reads_lets_a_key_be(group: Group) -> None:
    """It may be repeated as it is, so nothing is kept."""
    group.plain.put("user-memory/read.md", "first").raise_for_status()
    request = Request(
        group.plain, "POST", "/api/file/read", {"json": {"path": "user-memory/read.md"}}
    )
    assert request.send("read").text == "first"
    group.plain.put("user-memory/read.md", "second").raise_for_status()
    again = request.send("read")
    assert again.text == "second"
    assert REPLAYED not in again.headers


def _fields(schema: Any, components: dict[str, Any]) -> Iterator[tuple[str, Any]]:  # noqa: ANN401 - JSON
    """Every named field of a form, however deep."""
    if isinstance(schema, list):
        for each in schema:
            yield from _fields(each, components)
    if not isinstance(schema, dict):
        return
    if "$ref" in schema:
        yield from _fields(components[schema["$ref"].rpartition("/")[2]], components)
    yield from schema.get("properties", {}).items()
    for each in schema.values():
        yield from _fields(each, components)


def test_the_list_of_calls_with_a_secret_is_whole(group: Group) -> None:
    """No call that takes a key has a field for a secret; the header is described where it is."""
    description = group.people.service.client.get("/api/openapi.json").json()
    components = description["components"]["schemas"]
    for route in UNSAFE:
        method, path = route.split()
        operation = description["paths"][path][method.lower()]
        headers = {each["name"] for each in operation.get("parameters", ()) if each["in"] != "path"}
        rule = RULES[route]
        assert ("Idempotency-Key" in headers) == (route in KEPT), route
        if route in KEPT:
            answers = [operation["responses"].get(status, {}) for status in ("200", "201")]
            forms = [operation.get("requestBody", {}), *answers]
            named = {name for form in forms for name, _ in _fields(form, components)}
            secret = {name for name in named if SECRET.search(name)} - {rule.secret_field}
            assert not secret, (route, secret)


@pytest.mark.parametrize("key", ["", "x" * 129, "two words", "tab\there", "é"], ids=repr)
def test_a_key_has_its_form(key: str, group: Group) -> None:
    """1 to 128 visible ASCII characters; the form is told, not the key."""
    headers = [(name.encode(), value.encode()) for name, value in group.plain.headers.items()]
    answer = group.service.client.put(
        "/api/file",
        params={"path": "user-memory/form.md"},
        content=b"x",
        headers=[*headers, (b"Idempotency-Key", key.encode())],
    )
    require_problem(answer, 422, "invalid_idempotency_key")
    assert group.plain.get("user-memory/form.md").status_code == 404


def test_a_key_is_sent_once(group: Group) -> None:
    """Of two nobody knows which holds, even of two alike."""
    headers = [*group.plain.headers.items(), ("Idempotency-Key", "a"), ("Idempotency-Key", "a")]
    answer = group.service.client.post("/api/me/lock", headers=headers)
    require_problem(answer, 422, "invalid_idempotency_key")


def test_a_key_of_full_length_does(group: Group) -> None:
    """And every visible character is one."""
    visible = "".join(chr(code) for code in range(0x21, 0x7F))
    for key in (visible, "z" * 128):
        request = put(group.plain, f"user-memory/key-{number()}.md")
        require_replay(request, key, require_acted(request, key))


def _changed(path: str) -> list[dict[str, Any]]:
    note = {"params": {"path": path}}
    return [
        {**note, "content": b"another text"},
        {"params": {"path": f"{path}x"}, "content": b"text"},
    ]


@pytest.mark.parametrize("which", [0, 1], ids=["another text", "another path"])
def test_a_key_is_of_one_request(which: int, group: Group) -> None:
    """Another body or place is refused and does nothing; nothing of the first is told."""
    path, key = f"user-memory/one-{number()}.md", _key()
    require_acted(put(group.plain, path, "text"), key)
    before = group.counts()
    other = Request(group.plain, "PUT", "/api/file", _changed(path)[which])
    answer = other.send(key)
    require_problem(answer, 422, "idempotency_key_reused")
    assert path not in answer.text
    assert group.counts() == before


def test_a_key_is_of_one_route(group: Group) -> None:
    """The same key at another call is another request."""
    key = _key()
    require_acted(put(group.plain, f"user-memory/route-{number()}.md"), key)
    answer = Request(group.plain, "POST", "/api/me/lock").send(key)
    require_problem(answer, 422, "idempotency_key_reused")


def test_a_key_is_of_one_request_in_both_stores(group: Group) -> None:
    """A key used in the group's store is known in one's own, and the reverse."""
    for first, second in (("user", "shared"), ("shared", "user")):
        key = _key()
        require_acted(put(group.plain, f"{first}-memory/both-{number()}.md"), key)
        answer = put(group.plain, f"{second}-memory/both-{number()}.md").send(key)
        require_problem(answer, 422, "idempotency_key_reused")


def test_a_key_is_of_one_caller(group: Group) -> None:
    """Another member's, and another agent's of the same member, is another key."""
    key, path = _key(), f"shared-memory/caller-{number()}.md"
    require_acted(put(group.plain, path), key)
    require_acted(put(group.people.member, path), key)
    own = f"user-memory/caller-{number()}.md"
    for agent in ("one", "two", None):
        client = _agent(group.plain, agent)
        request = append(client, own)
        require_replay(request, f"agent-{key}", require_acted(request, f"agent-{key}"))
    assert group.plain.read(own).count("line") == 3


def test_an_answer_is_given_again_to_the_same_scopes(group: Group) -> None:
    """It may tell what a credential that was made for less may not read."""
    key, path = _key(), f"user-memory/scopes-{number()}.md"
    request = append(_agent(group.plain, None), path)
    first = require_acted(request, key)
    require_replay(append(_agent(group.plain, None), path), key, first)
    for client in (_agent(group.plain, None, "memory:write"), group.plain):
        require_problem(append(client, path).send(key), 422, "idempotency_key_reused")
    assert group.plain.read(path).count("line") == 1


def _agent(owner: Client, agent_id: str | None, *scopes: str) -> Client:
    body = {"scopes": scopes or ["memory:read", "memory:write"], "agent_id": agent_id}
    made = owner.call("POST", "/api/tokens", json=body)
    assert made.status_code == 201, made.text
    headers = {"Authorization": f"Bearer {made.json()['token']}"}
    return Client(owner.service, owner.username, "", headers, owner.user_id)


def test_another_session_of_the_same_member_is_answered(group: Group) -> None:
    """Whoever signed in again asks again."""
    request, key = append(group.plain, f"user-memory/session-{number()}.md"), _key()
    first = require_acted(request, key)
    headers = group.service.sign_in("pia")
    again = Client(group.service, "pia", group.plain.password, headers, group.plain.user_id)
    require_replay(append(again, request.more["params"]["path"]), key, first)


def test_a_refusal_is_not_kept(group: Group) -> None:
    """The request is judged anew, and done once nothing stands against it."""
    path, key = f"user-memory/later-{number()}.md", _key()
    body = {"json": {"path": path, "edits": [{"old": "one", "new": "two"}]}}
    request = Request(group.plain, "POST", "/api/file/edit", body)
    require_problem(request.send(key), 404, "not_found")
    group.plain.put(path, "zero").raise_for_status()
    require_problem(request.send(key), 409, "no_match")
    group.plain.put(path, "one").raise_for_status()
    require_replay(request, key, require_acted(request, key))


def test_a_failure_is_not_kept_and_a_full_quota_hides_no_answer(group: Group) -> None:
    """507 is judged anew; what was done before the quota was full is answered as it was."""
    admin, member = group.people.admin, group.plain
    request, key = put(member, f"user-memory/quota-{number()}.md"), _key()
    patch_user(admin, member.user_id, quota_bytes=1).send(None).raise_for_status()
    require_problem(request.send(key), 507, "quota_exceeded")
    patch_user(admin, member.user_id, quota_bytes=None).send(None)
    patch_user(admin, member.user_id, quota_bytes=1 << 40).send(None).raise_for_status()
    first = require_acted(request, key)
    patch_user(admin, member.user_id, quota_bytes=1).send(None).raise_for_status()
    require_replay(request, key, first)
    require_problem(put(member, f"user-memory/q-{number()}.md").send(_key()), 507, "quota_exceeded")
    patch_user(admin, member.user_id, quota_bytes=1 << 40).send(None).raise_for_status()


def test_what_may_not_be_done_any_more_is_not_answered(group: Group) -> None:
    """Rights are judged before a kept answer is given."""
    admin = group.people.admin
    second = group.people.add(f"second-{number()}", "admin")
    request, key = patch_user(second, group.plain.user_id, notes="a note"), _key()
    require_acted(request, key)
    patch_user(admin, second.user_id, role_id="member").send(None).raise_for_status()
    require_problem(request.send(key), 403, "not_permitted")
    patch_user(admin, second.user_id, active=False).send(None).raise_for_status()
    require_problem(request.send(key), 401, "invalid_credentials")


def test_what_may_not_be_read_any_more_is_not_answered(group: Group) -> None:
    """A report of the group's that the caller sees no more is a 404 again."""
    admin, subject = group.people.admin, group.leaver()
    watcher = group.people.add(f"watcher-{number()}", "member")
    edge = f"/api/admin/supervision/{subject.user_id}/{watcher.user_id}"
    Request(admin, "PUT", edge).send(None).raise_for_status()
    body = {**group_report(admin).more["json"], "audience": "supervisors"}
    body["subject_user_id"] = subject.user_id
    made = Request(admin, "POST", "/api/reports", {"json": body}).send(None).json()
    request, key = Request(watcher, "POST", f"/api/reports/group/{made['id']}/read"), _key()
    require_replay(request, key, require_acted(request, key))
    Request(admin, "DELETE", edge).send(None).raise_for_status()
    require_problem(request.send(key), 404, "not_found")


def test_what_is_there_no_more_is_not_answered(group: Group) -> None:
    """A change of what another has removed is a 404; a removal by the same request is not."""
    path, key = f"user-memory/gone-{number()}.md", _key()
    group.plain.put(path, "one").raise_for_status()
    edits = {"params": {"path": path}, "json": {"edits": [{"old": "one", "new": "two"}]}}
    request = Request(group.plain, "PATCH", "/api/file", edits)
    require_replay(request, key, require_acted(request, key))
    removal, other = Request(group.plain, "DELETE", "/api/file", {"params": {"path": path}}), _key()
    first = require_acted(removal, other)
    require_problem(request.send(key), 404, "not_found")
    require_replay(removal, other, first)


def test_signing_out_is_done_once_by_itself(group: Group) -> None:
    """The credential is gone with it, so nobody is answered again."""
    headers = group.service.sign_in("pia")
    client = Client(group.service, "pia", "", headers, group.plain.user_id)
    request, key = Request(client, "DELETE", "/api/session"), _key()
    require_acted(request, key)
    require_problem(request.send(key), 401, "invalid_credentials")


def test_what_was_answered_about_an_erased_member_is_gone(group: Group) -> None:
    """Their own keys go; of an administrator's answer about them only that it was given stays."""
    admin, leaver = group.people.admin, group.leaver()
    profile = Request(leaver, "PATCH", "/api/me", {"json": {"display_name": "Unforgettable"}})
    require_acted(profile, _key())
    change, key = patch_user(admin, leaver.user_id, notes="Unforgettable too"), _key()
    require_acted(change, key)
    report = {**group_report(admin).more["json"], "subject_user_id": leaver.user_id}
    require_acted(Request(admin, "POST", "/api/reports", {"json": report}), _key())
    before = counted(group.service)["sys_idempotency_keys"]
    removal, last = erase(admin, leaver.user_id), _key()
    require_replay(removal, last, require_acted(removal, last))
    assert counted(group.service)["sys_idempotency_keys"] == before
    require_problem(change.send(key), 404, "not_found")
    with opened(group.service) as connection:
        kept = connection.all("SELECT body FROM sys_idempotency_keys WHERE body IS NOT NULL")
    bodies = [body for (body,) in kept if isinstance(body, bytes)]
    about = [body for body in bodies if leaver.user_id.encode() in body]
    assert len(about) == 1, "the receipt of the erasure"
