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
