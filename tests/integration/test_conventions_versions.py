"""`If-Match` and ETags of every call that changes something; and the lists of what was changed."""

from collections import defaultdict
from collections.abc import Iterator
from typing import Any, Final

import httpx
import pytest

from app.web.callers import UNSAFE
from app.web.rules import RULES
from tests.support import repeats_of_content as content
from tests.support import repeats_of_disk as disk
from tests.support import repeats_of_people as people
from tests.support import repeats_of_work as work
from tests.support.clients import ENDLESS, Client, add_member
from tests.support.descriptions import DESCRIPTION
from tests.support.people import people_on
from tests.support.problems import require_problem
from tests.support.repeats import Build, Group, Request, note, number, post
from tests.support.service import PASSWORD

CASES: Final = (*content.CASES, *disk.CASES, *people.CASES, *work.CASES)
HELD: Final = frozenset(
    {
        "PUT /api/me/password",
        "POST /api/webhooks/{webhook_id}/secret",
        "POST /api/file/read",
        "POST /api/tools/read_file",
        "POST /api/tools/view",
    }
)
"""Take conditions and keep no answer: each has a test of its own."""


LISTS: Final = frozenset(
    f"GET {path}"
    for path, item in DESCRIPTION["paths"].items()
    if "cursor" in (each["name"] for each in item.get("get", {}).get("parameters", ()))
)
"""Calls that give a page of a list."""
WHOLE: Final = frozenset({"GET /api/files", "GET /api/search"})
"""Lists by a form of their own: a folder down to a depth, and the best hits."""


def _name(value: object) -> str | None:
    return getattr(value, "__name__", None)


def require_unconditional(answer: httpx.Response) -> None:
    """A call that takes no condition says so."""
    told = require_problem(answer, 412, "version_conflict")
    assert told["current_version"] is None
    assert "shows no version" in told["detail"]


@pytest.fixture(scope="module")
def group(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Group]:
    """A group on a running service."""
    with people_on(tmp_path_factory.mktemp("versions")) as found:
        yield Group(found)


@pytest.mark.parametrize(("route", "build"), CASES, ids=_name)
def test_a_stale_version_changes_nothing(route: str, build: Build, group: Group) -> None:
    """412, also where nothing has a version; an answer that shows a version has it as its ETag."""
    request = build(group)
    before = group.counts()
    stale = request.send(None, **{"If-Match": '"999999999"'})
    require_problem(stale, 412, "version_conflict")
    if not RULES[route].takes_conditions:
        require_unconditional(request.send(None, **{"If-None-Match": "*"}))
    assert group.counts() == before
    answer = request.send(None)
    assert answer.is_success, answer.text
    shown = answer.json() if answer.content.startswith(b"{") else {}
    if route == "POST /api/file/move" and len(shown["items"]) == 1:
        [shown] = shown["items"]
    if "version" in shown:
        assert answer.headers["etag"] == f'"{shown["version"]}"'


def test_every_call_takes_conditions_or_refuses_them(group: Group) -> None:
    """None passes one over: what a route's rule says is what it does, before anything else."""
    admin = group.people.admin
    admin.call("POST", "/api/session/confirm", json={"password": PASSWORD}).raise_for_status()
    tried = {route for route, _ in CASES} | HELD
    for route, rule in RULES.items():
        method, path = route.split()
        if method not in UNSAFE:
            continue
        request = Request(admin, method, path.format_map(defaultdict(lambda: "none")))
        for header in ({"If-Match": '"1"'}, {"If-Match": "*"}, {"If-None-Match": '"1"'}):
            answer = request.send(None, **header)
            if rule.takes_conditions:
                assert "shows no version" not in answer.text, route
                assert route in tried, route
            else:
                require_unconditional(answer)


def test_reads_by_post_hold_what_is_asked_of_them(group: Group) -> None:
    """As the calls that they stand for do; a folder has no version."""
    path = note(group.plain)
    etag = group.plain.get(path).headers["etag"]
    shown = path.replace("user-memory", "/memories")
    for route, body in (
        ("/api/file/read", {"path": path}),
        ("/api/tools/read_file", {"path": path}),
        ("/api/tools/view", {"path": shown}),
    ):
        request = post(group, route, body)
        assert request.send(None, **{"If-Match": etag}).is_success
        require_problem(request.send(None, **{"If-Match": '"999"'}), 412, "version_conflict")
    folder = post(group, "/api/tools/view", {"path": "/memories"})
    require_problem(folder.send(None, **{"If-Match": etag}), 412, "version_conflict")


@pytest.mark.parametrize("more", [{}, {"rotate_key": True}], ids=["same key", "new key"])
def test_a_password_is_changed_on_a_version_of_its_account(
    more: dict[str, bool], group: Group
) -> None:
    """As `GET /api/me` shows it; a stale one leaves the password as it is."""
    member = add_member(group.people.admin, f"turns-{number()}")
    stale = member.call("GET", "/api/me").headers["etag"]
    member.call("PATCH", "/api/me", json={"display_name": "Turned"}).raise_for_status()
    present = member.call("GET", "/api/me").headers["etag"]
    body = {"current_password": member.password, "new_password": "another fine password", **more}
    change = Request(member, "PUT", "/api/me/password", {"json": body})
    refused = change.send(None, **{"If-Match": stale})
    told = require_problem(refused, 412, "version_conflict")
    assert f'"{told["current_version"]}"' == refused.headers["etag"] == present
    assert member.call("GET", "/api/me").headers["etag"] == present
    answer = change.send(None, **{"If-Match": present})
    assert answer.status_code == 200, answer.text
    assert member.may_sign_in("another fine password")


def test_what_is_made_read_and_claimed_has_its_version(group: Group) -> None:
    """As its ETag: a member, an old version of a note, a job that is taken."""
    admin, plain = group.people.admin, group.plain
    new = {"username": "etta", "password": PASSWORD, "role_id": "member", "encrypted": False}
    made = admin.call("POST", "/api/admin/users", json=new)
    assert made.headers["etag"] == f'"{made.json()["user"]["version"]}"'
    invited = admin.call("POST", "/api/admin/invitations", json={"role_id": "member"}).json()
    joins = {"token": invited["token"], "username": "ines", "password": PASSWORD}
    joined = admin.service.client.post("/api/invitations/accept", json=joins)
    user = admin.call("GET", f"/api/admin/users/{joined.json()['user']['id']}")
    assert joined.headers["etag"] == user.headers["etag"]
    path = note(plain)
    old = plain.get(path).headers["etag"]
    plain.put(path, "other").raise_for_status()
    number_of = int(old.strip('"'))
    reads = Request(plain, "GET", f"/api/file/versions/{number_of}", {"params": {"path": path}})
    assert reads.send(None).headers["etag"] == old
    require_problem(reads.send(None, **{"If-Match": '"999"'}), 412, "version_conflict")
    by_body = post(group, "/api/file/versions", {"path": path, "version": number_of})
    assert by_body.send(None).headers["etag"] == old
    post(group, "/api/jobs", {"kind": "taken", "payload": {}}).send(None).raise_for_status()
    claim = post(group, "/api/jobs/claim", {"kinds": ["taken"]}).send(None)
    job = claim.json()["job"]
    assert plain.call("GET", f"/api/jobs/{job['id']}").headers["etag"] == claim.headers["etag"]
    nothing = post(group, "/api/jobs/claim", {"kinds": ["taken"]}).send(None)
    assert nothing.json() == {"job": None}
    assert "etag" not in nothing.headers


def test_a_flag_has_a_version_though_it_is_its_default(group: Group) -> None:
    """None comes back, so what was seen before a change matches nothing after it."""
    admin, path = group.people.admin, "/api/admin/flags/jobs_outside"

    def shown() -> str:
        items = admin.call("GET", "/api/admin/flags").json()["items"]
        return next(f'"{each["version"]}"' for each in items if each["name"] == "jobs_outside")

    first = shown()
    changed = Request(admin, "PUT", path, {"json": {"value": False}})
    answer = changed.send(None, **{"If-Match": first})
    assert (answer.status_code, answer.headers["etag"]) == (200, shown())
    require_problem(changed.send(None, **{"If-Match": first}), 412, "version_conflict")
    require_problem(changed.send(None, **{"If-None-Match": "*"}), 422, "invalid_input")
    unset = Request(admin, "DELETE", path)
    require_problem(unset.send(None, **{"If-Match": first}), 412, "version_conflict")
    assert unset.send(None, **{"If-Match": answer.headers["etag"]}).json()["is_default"] is True
    require_problem(unset.send(None, **{"If-Match": first}), 412, "version_conflict")


@pytest.mark.parametrize("base", ["/api/jobs", "/api/admin/jobs"])
def test_a_job_that_is_read_has_its_version(base: str, group: Group) -> None:
    """As its ETag; and one who asks for another is told so."""
    admin = group.people.admin
    body = {"kind": "seen", "payload": {}, "home": "group"}
    made = admin.call("POST", "/api/jobs", json=body)
    assert made.headers["etag"] == '"1"'
    more = {} if base == "/api/admin/jobs" else {"params": {"home": "group"}}
    request = Request(admin, "GET", f"{base}/{made.json()['id']}", more)
    assert request.send(None, **{"If-Match": '"1"'}).headers["etag"] == '"1"'
    require_problem(request.send(None, **{"If-Match": '"2"'}), 412, "version_conflict")


def test_a_rule_that_is_read_has_its_version(group: Group) -> None:
    """As its ETag, alone and in the list; and one who asks for another is told so."""
    admin, base = group.people.admin, "/api/admin/approval-rules"
    said = {"tool_pattern": "@fs_write", "action": "deny", "priority": 7, "note": "why"}
    made = admin.call("POST", base, json={**said, "path_pattern": "shared-memory/closed/*"})
    rule = made.json()
    assert made.headers["etag"] == '"1"'
    assert rule in admin.call("GET", base).json()["items"]
    request = Request(admin, "GET", f"{base}/{rule['id']}")
    assert request.send(None, **{"If-Match": '"1"'}).json() == rule
    require_problem(request.send(None, **{"If-Match": '"2"'}), 412, "version_conflict")
    agent = group.people.token(group.plain, "shared:write")
    refused = Request(agent, "PUT", "/api/file", {"params": {"path": "shared-memory/closed/x"}})
    require_problem(refused.send(None), 403, "denied_by_rule")
    for wrong in ({"tool_pattern": "@none"}, {"group_id": "none"}, {"priority": 1_000_000}):
        assert admin.call("POST", base, json={**said, **wrong}).status_code == 422
    Request(admin, "DELETE", request.path).send(None, **{"If-Match": '"1"'}).raise_for_status()


def test_what_waits_is_seen_by_those_it_concerns(group: Group) -> None:
    """All by its member, page by page; how it stands by the agent; how much by administrators."""
    plain, agent = group.plain, group.people.token(group.plain, "shared:write")
    asked = []
    for each in range(3):
        answer = agent.put(f"shared-memory/waits-{each}.md", "the text")
        assert answer.status_code == 202, answer.text
        asked.append(answer.json()["approval"]["id"])
    seen: list[str] = []
    cursor: dict[str, str] = {}
    while len(seen) < len(asked):
        params = {"status": "pending", "limit": "2", **cursor}
        page = plain.call("GET", "/api/approvals", params=params).json()
        seen += [item["id"] for item in page["items"] if item["id"] in asked]
        cursor = {"cursor": page["next_cursor"]} if page["next_cursor"] else {}
    assert sorted(seen) == sorted(asked)
    one = plain.call("GET", f"/api/approvals/{asked[0]}").json()
    assert (one["path"], one["text"]) == ("shared-memory/waits-0.md", "the text")
    told = agent.call("GET", f"/api/approvals/{asked[0]}").json()
    assert told["status"] == "pending"
    assert {"path", "text"}.isdisjoint(told)
    everybody = group.people.admin.call("GET", "/api/admin/approvals").json()["items"]
    [notice] = [each for each in everybody if each["id"] == asked[0]]
    assert {"path", "text", "arguments"}.isdisjoint(notice)
    assert notice["requester_user_id"] == plain.user_id
    for act, status in (("approve", "done"), ("reject", "rejected")):
        waits = asked.pop()
        decided = plain.call("POST", f"/api/approvals/{waits}/{act}")
        assert decided.json() == {"status": status}
        again = plain.call("POST", f"/api/approvals/{waits}/{act}")
        require_problem(again, 409, "approval_over")
        for other in (group.people.member, group.people.admin):
            require_problem(other.call("POST", f"/api/approvals/{waits}/{act}"), 404, "not_found")
        require_problem(
            agent.call("POST", f"/api/approvals/{waits}/{act}"), 403, "human_session_required"
        )


def _mark(item: dict[str, Any]) -> Any:  # noqa: ANN401 - JSON
    return next((item[name] for name in ("id", "name") if name in item), item)


def _walked(client: Client, path: str, params: dict[str, str], limit: int) -> list[Any]:
    """What is on the pages of a list, from the first to the last."""
    found: list[Any] = []
    asked = {**params, "limit": str(limit)}
    while True:
        answer = client.call("GET", path, params=asked)
        assert answer.status_code == 200, (path, answer.text)
        page = answer.json()
        assert len(page["items"]) <= limit
        found += [_mark(item) for item in page["items"]]
        if page["next_cursor"] is None:
            return found
        asked["cursor"] = page["next_cursor"]


def _fill(group: Group) -> None:
    """Have there be several of each thing that a list shows."""
    for route, build in CASES * 2:
        request = build(group)
        if route.startswith("POST ") and not route.endswith(("/reset", "/release")):
            request.send(None).raise_for_status()


@pytest.mark.long
def test_every_list_comes_page_by_page(group: Group) -> None:
    """One at a time gives what all at once does; and no call has items without a cursor."""
    _fill(group)
    path = note(group.plain)
    group.plain.put(path, "other").raise_for_status()
    found: dict[str, list[Any]] = {}
    for template in sorted(call.split()[1] for call in LISTS):
        client = group.people.admin if template.startswith("/api/admin/") else group.plain
        if template == "/api/me/keys":
            client = group.people.member
        params = {"path": path} if template == "/api/file/versions" else {}
        above, _, rest = template.partition("/{")
        below = rest.partition("}")[2]
        paths = [f"{above}/{each}{below}" for each in found[above]] if rest else [template]
        longest: list[Any] = []
        for each in paths:
            whole = _walked(client, each, params, 200)
            assert _walked(client, each, params, 1) == whole, each
            longest = max(longest, whole, key=len)
        found[template] = longest
    # Below one thing there is little, though something.
    assert {name for name in found if len(found[name]) < (1 if "{" in name else 2)} == set()


def test_a_call_that_lists_has_pages(group: Group) -> None:
    """Whatever answers with items is one of the lists that the test above walks."""
    for route in sorted(RULES.keys() - ENDLESS - LISTS - WHOLE - {"GET /api/events"}):
        method, template = route.split()
        if method == "GET":
            path = template.format_map(defaultdict(lambda: "none", home="own"))
            answer = group.people.admin.call("GET", path)
            is_json = answer.headers["content-type"] == "application/json"
            assert not is_json or "items" not in answer.json(), route
