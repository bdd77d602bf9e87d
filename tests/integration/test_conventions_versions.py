"""`If-Match` and ETags of every call that changes something which shows a version."""

from collections.abc import Iterator
from typing import Final

import pytest

from tests.support import repeats_of_content as content
from tests.support import repeats_of_people as people
from tests.support import repeats_of_work as work
from tests.support.people import people_on
from tests.support.problems import require_problem
from tests.support.repeats import Build, Group, Request

CASES: Final = (*content.CASES, *people.CASES, *work.CASES)
NEW: Final = frozenset(
    {
        "POST /api/reports",
        "POST /api/jobs",
        "POST /api/schedules",
        "POST /api/admin/schedules",
        "POST /api/admin/approval-rules",
    }
)
"""Make a thing, of which no version stands before."""
UNVERSIONED: Final = frozenset(
    {
        "POST /api/reports/{home}/{report_id}/read",
        "DELETE /api/reports/{home}/{report_id}",
        "DELETE /api/sessions",
        "DELETE /api/sessions/{session_id}",
        "DELETE /api/tokens/{token_id}",
        "POST /api/me/lock",
        "DELETE /api/me/keys/{slot_id}",
        "DELETE /api/admin/invitations/{invitation_id}",
        "PUT /api/admin/supervision/{subject}/{supervisor}",
        "DELETE /api/admin/supervision/{subject}/{supervisor}",
        "DELETE /api/events",
        "POST /api/memory/import",
        "POST /api/approvals/{approval_id}/approve",
        "POST /api/approvals/{approval_id}/reject",
        "POST /api/admin/breakers/reset",
        "POST /api/admin/operations/{key}/release",
    }
)
"""Change what shows no version."""
VERSIONED: Final = [case for case in CASES if case[0] not in UNVERSIONED]


def _name(value: object) -> str | None:
    return getattr(value, "__name__", None)


@pytest.fixture(scope="module")
def group(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Group]:
    """A group on a running service."""
    with people_on(tmp_path_factory.mktemp("versions")) as found:
        yield Group(found)


@pytest.mark.parametrize(("route", "build"), VERSIONED, ids=_name)
def test_a_stale_version_changes_nothing(route: str, build: Build, group: Group) -> None:
    """412; and an answer that shows a version has it as its ETag."""
    request = build(group)
    if route not in NEW:
        before = group.counts()
        stale = request.send(None, **{"If-Match": '"999999999"'})
        require_problem(stale, 412, "version_conflict")
        assert group.counts() == before
    answer = request.send(None)
    assert answer.is_success, answer.text
    shown = answer.json() if answer.content.startswith(b"{") else {}
    if "version" in shown:
        assert answer.headers["etag"] == f'"{shown["version"]}"'


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
    for number in range(3):
        answer = agent.put(f"shared-memory/waits-{number}.md", "the text")
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
