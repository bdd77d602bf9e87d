"""Schedules and flags over HTTP and from the command line, against a running server."""

import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from app.worker import duties
from tests.support.clients import Client, add_member, code_of, first_admin
from tests.support.matrix import chosen
from tests.support.service import LiveService

pytestmark = pytest.mark.timeout(120)
WAIT_S = 20


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LiveService]:
    """One server with one worker."""
    with LiveService(tmp_path_factory.mktemp("root"), measured=True) as live:
        yield live


@pytest.fixture(scope="module")
def admin(service: LiveService) -> Client:
    """Its first administrator."""
    return first_admin(service)


@pytest.fixture(scope="module")
def ben(admin: Client) -> Client:
    """A member."""
    return add_member(admin, "ben")


def make(client: Client, base: str = "/api/schedules", **more: object) -> dict[str, Any]:
    """Make a schedule."""
    body = {"title": "Report", "interval_s": 3_600, **more}
    made = client.call("POST", base, json=body)
    assert made.status_code == 201, made.text
    found: dict[str, Any] = made.json()
    return found


def runs(client: Client, schedule_id: str, base: str = "/api/schedules") -> list[dict[str, Any]]:
    """What became of its ticks, newest first."""
    answer = client.call("GET", f"{base}/{schedule_id}/runs")
    assert answer.status_code == 200, answer.text
    items: list[dict[str, Any]] = answer.json()["items"]
    return items


def until(work: Any) -> Any:  # noqa: ANN401 - whatever it gives
    """Ask until there is an answer that counts."""
    deadline = time.monotonic() + WAIT_S
    while not (found := work()):
        assert time.monotonic() < deadline
        time.sleep(0.1)
    return found


def test_a_schedule_is_made_read_changed_and_taken_away(ben: Client) -> None:
    """With its version; what says nothing new makes none."""
    made = make(ben, title="Morning", interval_s=None, cron="0 9 * * 1-5", timezone="Europe/Berlin")
    path = f"/api/schedules/{made['id']}"
    found = ben.call("GET", path)
    assert (found.json(), found.headers["etag"]) == (made, '"1"')
    assert made["next_due_at"] is not None
    same = ben.call("PATCH", path, json={"title": "Morning", "cron": "0 9 * * 1-5"})
    assert (same.status_code, same.json()) == (200, made)
    ben.headers["if-match"] = '"1"'
    changed = ben.call("PATCH", path, json={"interval_s": 60, "prompt": "Write it."})
    stale = ben.call("PATCH", path, json={"title": "Late"})
    del ben.headers["if-match"]
    assert changed.json()["version"] == 2
    assert (changed.json()["cron"], changed.json()["interval_s"]) == (None, 60)
    assert (stale.status_code, code_of(stale)) == (412, "version_conflict")
    assert made["id"] in {item["id"] for item in ben.call("GET", "/api/schedules").json()["items"]}
    assert ben.call("DELETE", path).status_code == 204
    for method, tail, body in (
        ("GET", "", None),
        ("GET", "/runs", None),
        ("PATCH", "", {"title": "x"}),
        ("DELETE", "", None),
        ("POST", "/run", None),
    ):
        answer = ben.call(method, path + tail, **({} if body is None else {"json": body}))
        assert code_of(answer) == "not_found"


@pytest.mark.parametrize(
    ("body", "code"),
    [
        ({"cron": "* * * *"}, "invalid_schedule"),
        ({"cron": "0 0 30 2 *"}, "invalid_schedule"),
        ({"cron": "* * * * *", "interval_s": 60}, "invalid_schedule"),
        ({}, "invalid_schedule"),
        ({"interval_s": 60, "timezone": "Mars/Base"}, "invalid_schedule"),
        ({"interval_s": 0}, "invalid_request"),
        ({"interval_s": "60"}, "invalid_request"),
        ({"interval_s": 60, "kind": "strongroom.x"}, "invalid_input"),
        ({"interval_s": 60, "nosuch": 1}, "invalid_request"),
        ({"interval_s": 60, "catch_up": "never"}, "invalid_request"),
        ({"interval_s": 60, "prompt": "p\u0000"}, "invalid_request"),
        ({"interval_s": 60, "run_context": {"k": "x" * 70_000}}, "payload_too_large"),
    ],
)
def test_what_is_no_schedule_is_refused(ben: Client, body: dict[str, Any], code: str) -> None:
    """And changes nothing."""
    before = ben.call("GET", "/api/schedules").json()
    refused = ben.call("POST", "/api/schedules", json={"title": "x", **body})
    assert (refused.status_code, code_of(refused)) == (413 if "large" in code else 422, code)
    assert ben.call("GET", "/api/schedules").json() == before


def test_a_due_tick_is_claimed_done_and_told(ben: Client) -> None:
    """By a program outside; how it ended stands with the run."""
    made = make(ben, interval_s=1, kind="write", prompt="Write it.", session_id="s1")
    path = f"/api/schedules/{made['id']}"
    claim = until(
        lambda: ben.call("POST", "/api/jobs/claim", json={"kinds": ["write"], "wait_s": 5}).json()[
            "job"
        ]
    )
    assert claim["payload"]["prompt"] == "Write it."
    assert claim["payload"]["schedule_id"] == made["id"]
    running = ben.call("GET", path).json()
    assert running["running_since"] is not None
    assert running["running_session_id"] == "s1"
    until(lambda: any(run["reason"] == "overlap" for run in runs(ben, made["id"])))
    busy = ben.call("POST", f"{path}/run")
    assert (busy.status_code, code_of(busy)) == (409, "already_running")
    done = {"generation": claim["generation"], "result": {"final_response": "Written."}}
    assert ben.call("POST", f"/api/jobs/{claim['id']}/complete", json=done).status_code == 200
    assert ben.call("PATCH", path, json={"enabled": False}).status_code == 200
    [told] = [run for run in runs(ben, made["id"]) if run["job_id"] == claim["id"]]
    assert (told["outcome"], told["job_status"]) == ("run", "done")
    assert (told["run"]["status"], told["run"]["final_response"]) == ("completed", "Written.")
    after = ben.call("GET", path).json()
    assert (after["running_since"], after["running_session_id"]) == (None, None)
    assert after["last_run_at"] is not None
    until(lambda: runs(ben, made["id"])[0]["reason"] == "disabled")
    seen = [(run["due_at"], run["by_hand"]) for run in runs(ben, made["id"])]
    assert len(seen) == len(set(seen))
    assert ben.call("DELETE", path).status_code == 204


def test_runs_are_paged(ben: Client) -> None:
    """Newest first, each once."""
    made = make(ben, interval_s=1, enabled=False)
    path = f"/api/schedules/{made['id']}/runs"
    until(lambda: len(runs(ben, made["id"])) >= 3)
    first = ben.call("GET", path, params={"limit": 1}).json()
    second = ben.call("GET", path, params={"limit": 1, "cursor": first["next_cursor"]}).json()
    assert second["items"][0]["due_at"] < first["items"][0]["due_at"]
    assert code_of(ben.call("GET", path, params={"cursor": "x"})) == "invalid_input"
    assert ben.call("DELETE", path.removesuffix("/runs")).status_code == 204


def test_a_run_by_hand_makes_a_job_at_once(ben: Client) -> None:
    """With a key it makes one job, however often it is asked."""
    made = make(ben, kind="by_hand", enabled=False)
    headers = ben.headers | {"Idempotency-Key": "run-1"}
    path = f"/api/schedules/{made['id']}/run"
    answers = [ben.service.client.post(path, headers=headers) for _ in range(2)]
    assert [answer.status_code for answer in answers] == [202, 202]
    assert answers[0].json() == answers[1].json()
    [told] = runs(ben, made["id"])
    assert (told["by_hand"], told["job_id"]) == (True, answers[0].json()["job_id"])


def test_the_groups_schedules_are_the_operators(admin: Client, ben: Client) -> None:
    """Each act on them is on record; members see none of them."""
    base = "/api/admin/schedules"
    made = make(admin, base, kind="group_work")
    assert code_of(ben.call("GET", base)) == "not_permitted"
    assert code_of(ben.call("GET", f"/api/schedules/{made['id']}")) == "not_found"
    path = f"{base}/{made['id']}"
    assert admin.call("GET", path).json() == made
    off = admin.call("PATCH", path, json={"enabled": False}).json()
    assert off["enabled"] is False
    ran = admin.call("POST", f"{path}/run").json()
    claim = {"kinds": ["group_work"], "home": "group"}
    assert admin.call("POST", "/api/jobs/claim", json=claim).json()["job"]["id"] == ran["job_id"]
    assert runs(admin, made["id"], base)[0]["job_id"] == ran["job_id"]
    listed = [item["id"] for item in admin.call("GET", base).json()["items"]]
    assert listed == [duties.VERIFY_ID, made["id"]]
    assert admin.call("DELETE", path).status_code == 204


def test_a_flag_holds_at_once(admin: Client, ben: Client) -> None:
    """Set, told, and back to the default; its changes are on record."""
    base = "/api/admin/flags"
    assert code_of(ben.call("GET", base)) == "not_permitted"
    names = [item["name"] for item in admin.call("GET", base).json()["items"]]
    assert names == ["invitations", "jobs_outside", "webhooks"]
    for name, value, code in (
        ("nosuch", True, "not_found"),
        ("invitations", 1, "invalid_input"),
        ("invitations", "off", "invalid_input"),
        ("invitations", None, "invalid_request"),
    ):
        assert code_of(admin.call("PUT", f"{base}/{name}", json={"value": value})) == code
    invited = admin.call("POST", "/api/admin/invitations", json={"role_id": "member"}).json()
    set_off = admin.call("PUT", f"{base}/invitations", json={"value": False})
    assert (set_off.json()["value"], set_off.json()["is_default"]) == (False, False)
    refused = admin.call("POST", "/api/admin/invitations", json={"role_id": "member"})
    assert (refused.status_code, code_of(refused)) == (409, "turned_off")
    body = {"token": invited["token"], "username": "cyd", "password": "a fine long password"}
    late = admin.service.client.post("/api/invitations/accept", json=body)
    assert code_of(late) == "turned_off"
    assert admin.call("DELETE", f"{base}/invitations").json()["is_default"] is True
    assert admin.service.client.post("/api/invitations/accept", json=body).status_code == 201
    changes = admin.call("GET", f"{base}/invitations/changes").json()["items"]
    assert {(row["before"], row["after"]) for row in changes} == {(None, False), (False, None)}
    assert {row["changed_by"] for row in changes} == {admin.user_id}
    assert code_of(admin.call("GET", f"{base}/nosuch/changes")) == "not_found"


def test_programs_outside_are_given_no_job_while_that_is_off(admin: Client, ben: Client) -> None:
    """What waits, waits on."""
    made = ben.call("POST", "/api/jobs", json={"kind": "held", "payload": {}}).json()
    flag = "/api/admin/flags/jobs_outside"
    assert admin.call("PUT", flag, json={"value": False}).status_code == 200
    claim = {"kinds": ["held"], "wait_s": 0.3}
    assert ben.call("POST", "/api/jobs/claim", json=claim).json()["job"] is None
    assert admin.call("DELETE", flag).status_code == 200
    assert ben.call("POST", "/api/jobs/claim", json=claim).json()["job"]["id"] == made["id"]


def root_of(folder: Path) -> Path:
    """A folder that is there, with room beside it for the point to die at."""
    root = folder / "root"
    root.mkdir()
    return root


@pytest.mark.parametrize(
    "point", chosen(["schedule.written"], ["schedule.due", "schedule.written", "schedule.settled"])
)
@pytest.mark.long
def test_a_tick_is_settled_once_whenever_the_worker_dies(tmp_path: Path, point: str) -> None:
    """Before it, amid its transaction and after; the job is there exactly once."""
    base = "/api/admin/schedules"
    with LiveService(root_of(tmp_path)) as service:
        admin = first_admin(service)
        service.kill_once(point, everybody=True)
        made = make(admin, base, interval_s=1, kind="tick", single_run=True)
        assert service.process is not None
        service.process.wait(WAIT_S)
        service.start()
        admin.sign_in()
        path = f"{base}/{made['id']}"
        until(lambda: admin.call("GET", path).json()["next_due_at"] is None)
        ran = [run for run in runs(admin, made["id"], base) if run["outcome"] == "run"]
        found = admin.call("GET", "/api/admin/jobs", params={"kind": "tick"}).json()["items"]
        assert [job["id"] for job in found] == [run["job_id"] for run in ran]
        assert len(ran) == 1
