"""Reports over HTTP: whose home they land in, and who may read them."""

import dataclasses
from collections.abc import Iterator
from typing import Any

import httpx
import pytest

from tests.support.clients import Client, code_of
from tests.support.people import People, people_on

BODY = {"kind": "weekly", "title": "A title", "body": "A body", "produced_by": "a program"}


@dataclasses.dataclass(slots=True)
class Cast:
    """Who is who in the group's reports."""

    people: People
    subject: Client
    supervisor: Client
    stranger: Client


@pytest.fixture(scope="module")
def cast(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cast]:
    """`cyd` supervises `ben`; `dee` has nothing to do with either."""
    with people_on(tmp_path_factory.mktemp("root")) as people:
        edge = f"/api/admin/supervision/{people.member.user_id}/{people.other.user_id}"
        assert people.admin.call("PUT", edge).status_code == 204
        yield Cast(people, people.member, people.other, people.add("dee", "member"))


def add(client: Client, **more: Any) -> httpx.Response:  # noqa: ANN401 - as JSON
    """Write a report."""
    return client.call("POST", "/api/reports", json={**BODY, **more})


def sees(client: Client, home: str, report_id: str) -> bool:
    """Whether a caller finds a report, which every call must agree on."""
    listed = client.call("GET", "/api/reports", params={"home": home, "limit": 200}).json()
    is_listed = report_id in [item["id"] for item in listed["items"]]
    got = client.call("GET", f"/api/reports/{home}/{report_id}")
    assert got.status_code == (200 if is_listed else 404)
    if not is_listed:
        read = client.call("POST", f"/api/reports/{home}/{report_id}/read")
        gone = client.call("DELETE", f"/api/reports/{home}/{report_id}")
        assert code_of(got) == code_of(read) == code_of(gone) == "not_found"
    return is_listed


def test_a_report_for_oneself_stays_at_home(cast: Cast) -> None:
    """Nobody else finds it, in either home."""
    made = add(cast.subject)
    assert (made.status_code, made.json()["home"]) == (201, "own")
    report_id = made.json()["id"]
    assert sees(cast.subject, "own", report_id)
    for client in (cast.people.admin, cast.supervisor, cast.stranger):
        assert not sees(client, "own", report_id)
        assert not sees(client, "group", report_id)


def test_a_report_for_administrators_is_theirs(cast: Cast) -> None:
    """And its producer's."""
    made = add(cast.people.admin, audience="admins")
    assert made.json()["home"] == "group"
    report_id = made.json()["id"]
    assert sees(cast.people.admin, "group", report_id)
    for client in (cast.subject, cast.supervisor, cast.stranger):
        assert not sees(client, "group", report_id)


def test_a_report_for_supervisors_is_theirs_now(cast: Cast) -> None:
    """Whoever holds the edge at the time of reading; never the subject."""
    about = cast.subject.user_id
    made = add(cast.people.admin, audience="supervisors", subject_user_id=about).json()
    assert sees(cast.supervisor, "group", made["id"])
    assert sees(cast.people.admin, "group", made["id"])  # its producer
    for client in (cast.subject, cast.stranger):
        assert not sees(client, "group", made["id"])
    edge = f"/api/admin/supervision/{about}/{cast.stranger.user_id}"
    assert cast.people.admin.call("PUT", edge).status_code == 204
    assert sees(cast.stranger, "group", made["id"])
    assert cast.people.admin.call("DELETE", edge).status_code == 204
    assert not sees(cast.stranger, "group", made["id"])


def test_a_subject_finds_nothing_whatever_their_role(cast: Cast) -> None:
    """An administrator neither, though they wrote it themselves."""
    admin = cast.people.admin
    for audience in ("admins", "supervisors"):
        made = add(admin, audience=audience, subject_user_id=admin.user_id)
        assert made.status_code == 201
        assert not sees(admin, "group", made.json()["id"])


def test_publishing_takes_the_capability(cast: Cast) -> None:
    """403 for a member; a report for supervisors names its subject."""
    about = {"audience": "supervisors", "subject_user_id": cast.subject.user_id}
    assert code_of(add(cast.stranger, **about)) == "not_permitted"
    assert code_of(add(cast.stranger, audience="admins")) == "not_permitted"
    for subject in ({}, {"subject_user_id": "nobody"}):
        refused = add(cast.people.admin, audience="supervisors", **subject)
        assert (refused.status_code, code_of(refused)) == (422, "invalid_input")


def test_the_first_reader_is_on_record(cast: Cast) -> None:
    """And stays the first."""
    about = cast.subject.user_id
    made = add(cast.people.admin, audience="supervisors", subject_user_id=about).json()
    assert made["read_at"] is None
    path = f"/api/reports/group/{made['id']}/read"
    first = cast.supervisor.call("POST", path)
    assert first.json()["read_by"] == cast.supervisor.user_id
    assert cast.people.admin.call("POST", path).json() == first.json()
    unread = cast.supervisor.call("GET", "/api/reports", params={"home": "group", "unread": True})
    assert made["id"] not in [item["id"] for item in unread.json()["items"]]


def test_an_agent_neither_marks_nor_removes_what_others_read(cast: Cast) -> None:
    """The mark is shared, so it is a write that others read; its own member's it may."""
    people = cast.people
    for home, owner, status in (("group", people.admin, 403), ("own", people.member, 200)):
        audience = "admins" if home == "group" else "owner"
        made = add(owner, audience=audience).json()
        path = f"/api/reports/{home}/{made['id']}"
        agent = people.token(owner, "reports:read", "reports:write")
        assert agent.call("GET", path).status_code == 200
        assert agent.call("POST", f"{path}/read").status_code == status
        assert (agent.call("DELETE", path).status_code == 204) is (status == 200)


def test_a_report_goes_by_whoever_may_read_it(cast: Cast) -> None:
    """Once."""
    about = cast.subject.user_id
    made = add(cast.people.admin, audience="supervisors", subject_user_id=about).json()
    path = f"/api/reports/group/{made['id']}"
    assert cast.supervisor.call("DELETE", path).status_code == 204
    assert cast.supervisor.call("DELETE", path).status_code == 404


def test_a_report_is_given_back_whole(cast: Cast) -> None:
    """One by one with its body, in a list without."""
    more = {
        "summary": "short",
        "severity": "alert",
        "period_start": "2026-01-01T00:00:00Z",
        "period_end": "2026-01-02T00:00:00.5+01:00",
        "run_id": "run-1",
        "metadata": {"count": 3, "share": 0.5},
    }
    made = add(cast.stranger, **more).json()
    assert "body" not in made
    assert made["period_end"] == "2026-01-01T23:00:00.500Z"
    assert made["metadata"] == {"count": 3, "share": 0.5}
    got = cast.stranger.call("GET", f"/api/reports/own/{made['id']}").json()
    assert got == {**made, "body": "A body"}


@pytest.mark.parametrize(
    "odd",
    [
        {"severity": "fatal"},
        {"audience": "everybody"},
        {"title": ""},
        {"title": "two\nlines"},
        {"kind": "x" * 201},
        {"body": "a\0b"},
        {"summary": "a\0b"},
        {"period_start": "yesterday"},
        {"period_start": 0},
        {"metadata": {"canary": "ben"}},
        {"metadata": {"is": True}},
        {"metadata": {"list": [1]}},
        {"metadata": {"big": 2**60}},
        {"metadata": {"": 1}},
        {"metadata": {str(n): n for n in range(101)}},
        {"metadata": []},
        {"home": "group"},
    ],
    ids=lambda odd: str(odd)[:40],
)
def test_a_field_that_cannot_be_taken_is_refused(odd: dict[str, Any], cast: Cast) -> None:
    """Counters alone are metadata; what is refused is not named beyond the field."""
    answer = add(cast.stranger, **odd)
    assert (answer.status_code, code_of(answer)) == (422, "invalid_request")
    assert "canary" not in answer.text
    raw = '{"kind": "k", "title": "t", "body": "b", "produced_by": "p", "metadata": {"n": 1e999}}'
    headers = cast.stranger.headers | {"content-type": "application/json"}
    infinite = cast.people.service.client.post("/api/reports", content=raw, headers=headers)
    assert code_of(infinite) == "invalid_request"


def test_a_list_is_chosen_from_and_leafed_through(cast: Cast) -> None:
    """By kind, by time, by subject; newest first, each once."""
    me = cast.people.add("eve", "member")
    ids = [add(me, kind=f"kind {n % 2}").json()["id"] for n in range(5)]
    seen, cursor = [], None
    while True:
        params = {"limit": "2"} | ({"cursor": cursor} if cursor else {})
        page = me.call("GET", "/api/reports", params=params).json()
        assert all("body" not in item for item in page["items"])
        seen += [item["id"] for item in page["items"]]
        cursor = page["next_cursor"]
        if cursor is None:
            break
    assert seen == sorted(ids, reverse=True)

    def count(**query: str) -> int:
        return len(me.call("GET", "/api/reports", params=query).json()["items"])

    assert count(kind="kind 1") == 2
    assert count(kind="none") == 0
    assert count(since="2000-01-01T00:00:00Z") == 5
    assert count(since="2999-01-01T00:00:00Z") == 0
    assert count(subject=me.user_id) == 0
    assert count(unread="true") == 5


@pytest.mark.parametrize("place", ["elsewhere/x", "own/x", "group/x", "own/%00"])
def test_what_a_path_cannot_name_is_not_there(place: str, cast: Cast) -> None:
    """404, in any home or none."""
    answer = cast.stranger.call("GET", f"/api/reports/{place}")
    assert (answer.status_code, code_of(answer)) == (404, "not_found")
