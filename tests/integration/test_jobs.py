"""Jobs of programs outside, over HTTP: enqueued, claimed, kept, settled, seen by operators."""

import json
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import httpx
import pytest

from app.project import PROJECT_FOLDER
from tests.support.clients import Client, code_of
from tests.support.people import People, people_on

_NOBODY: Final = "01890000-0000-7000-8000-00000000ffff"


@pytest.fixture(scope="module")
def people(tmp_path_factory: pytest.TempPathFactory) -> Iterator[People]:
    """A group on a running service whose leases are short."""
    with people_on(tmp_path_factory.mktemp("root"), measured=True, job_lease_s=2) as found:
        yield found


@pytest.fixture(scope="module")
def me(people: People) -> Client:
    """A member."""
    return people.member


def post(client: Client, path: str, **body: Any) -> httpx.Response:  # noqa: ANN401 - as JSON
    """Send one call."""
    return client.call("POST", path, json=body)


def add(client: Client, kind: str, **more: Any) -> dict[str, Any]:  # noqa: ANN401 - as JSON
    """Enqueue one job."""
    made = post(client, "/api/jobs", kind=kind, payload={"to": "ben"}, **more)
    assert made.status_code == 201, made.text
    found: dict[str, Any] = made.json()
    return found


def claim(client: Client, *kinds: str, **more: Any) -> dict[str, Any] | None:  # noqa: ANN401 - as JSON
    """Claim one; None when there is none."""
    answer = post(client, "/api/jobs/claim", kinds=list(kinds), **more)
    assert answer.status_code == 200, answer.text
    found: dict[str, Any] | None = answer.json()["job"]
    return found


def held(client: Client, kind: str, **more: Any) -> dict[str, Any]:  # noqa: ANN401 - as JSON
    """A job that is enqueued and claimed."""
    add(client, kind, **more)
    job = claim(client, kind)
    assert job is not None
    return job


def test_a_job_is_enqueued_claimed_and_completed(me: Client) -> None:
    """The result stands with it; completing again is refused, for the claim is over."""
    made = add(me, "round", priority=3, timeout_s=60)
    assert (made["status"], made["payload"], made["priority"]) == ("pending", {"to": "ben"}, 3)
    job = claim(me, "other", "round")
    assert job is not None
    assert (job["id"], job["payload"], job["generation"]) == (made["id"], {"to": "ben"}, 1)
    path = f"/api/jobs/{job['id']}"
    done = post(me, f"{path}/complete", generation=1, result={"sent": [1, None]})
    assert (done.status_code, done.json()["status"]) == (200, "done")
    shown = me.call("GET", path).json()
    assert (shown["result"], shown["attempts"]) == ({"sent": [1, None]}, 1)
    assert code_of(post(me, f"{path}/complete", generation=1)) == "lease_lost"
    assert claim(me, "round") is None


def test_a_live_dedupe_key_gives_the_job_that_is_there(me: Client) -> None:
    """200 instead of 201, and no second job."""
    made = add(me, "dedupe", dedupe_key="k")
    again = post(me, "/api/jobs", kind="dedupe", payload=1, dedupe_key="k")
    assert (again.status_code, again.json()["id"]) == (200, made["id"])
    listed = me.call("GET", "/api/jobs", params={"kind": "dedupe"}).json()["items"]
    assert [item["id"] for item in listed] == [made["id"]]
    assert "payload" not in listed[0]


@pytest.mark.parametrize(
    "wrong",
    [
        {"kind": ""},
        {"kind": "strongroom.housekeeping"},
        {"dedupe_key": ""},
        {"max_attempts": 0},
        {"timeout_s": 0},
        {"priority": 101},
        {"run_at": "tomorrow"},
        {"home": "other"},
        {"is_outside": False},
    ],
    ids=str,
)
def test_what_cannot_be_a_job_is_refused(me: Client, wrong: dict[str, Any]) -> None:
    """And nothing is enqueued; the program's own kinds are not for programs outside."""
    before = me.call("GET", "/api/jobs").json()
    answer = post(me, "/api/jobs", **{"kind": "bad", "payload": {}, **wrong})
    assert answer.status_code == 422, answer.text
    assert me.call("GET", "/api/jobs").json() == before


def test_what_a_job_carries_is_bounded(me: Client) -> None:
    """64 KiB, its result too; at the bound it is taken."""
    fits, over = "x" * (64 * 1024 - 2), "x" * (64 * 1024 - 1)
    assert code_of(post(me, "/api/jobs", kind="big", payload=over)) == "payload_too_large"
    assert post(me, "/api/jobs", kind="big", payload=fits).status_code == 201
    job = claim(me, "big")
    assert job is not None
    path = f"/api/jobs/{job['id']}/complete"
    assert code_of(post(me, path, generation=1, result=over)) == "payload_too_large"
    assert post(me, path, generation=1, result=fits).status_code == 200


def test_a_heartbeat_keeps_a_claim_and_a_failure_ends_it(me: Client) -> None:
    """Another try comes later; a permanent failure is the end."""
    job = held(me, "beat")
    path = f"/api/jobs/{job['id']}"
    kept = post(me, f"{path}/heartbeat", generation=1)
    assert kept.json()["lease_until"] >= job["lease_until"]
    assert code_of(post(me, f"{path}/heartbeat", generation=2)) == "lease_lost"
    failed = post(me, f"{path}/fail", generation=1, error="no such address")
    assert (failed.json()["status"], failed.json()["last_error"]) == ("pending", "no such address")
    gone = held(me, "beat-end")
    dead = post(me, f"/api/jobs/{gone['id']}/fail", generation=1, error="x", permanent=True)
    assert dead.json()["status"] == "dead"


def test_a_job_can_be_cancelled_by_its_owner(me: Client) -> None:
    """With the present generation or with none; its runner then has nothing to finish."""
    job = held(me, "stop")
    path = f"/api/jobs/{job['id']}"
    assert code_of(post(me, f"{path}/cancel", generation=7)) == "lease_lost"
    assert post(me, f"{path}/cancel").json()["status"] == "cancelled"
    assert code_of(post(me, f"{path}/cancel")) == "job_over"
    assert code_of(post(me, f"{path}/complete", generation=1)) == "lease_lost"


def test_a_silent_worker_loses_its_job_to_the_next(me: Client) -> None:
    """After its lease: who waits for a job of the kind is given it."""
    job = held(me, "silent")
    again = claim(me, "silent", wait_s=20)
    assert again is not None
    assert (again["id"], again["generation"], again["attempts"]) == (job["id"], 2, 2)
    assert code_of(post(me, f"/api/jobs/{job['id']}/complete", generation=1)) == "lease_lost"


def test_who_waits_is_told_at_once(me: Client) -> None:
    """By the bell; nobody else is given the job."""
    found: list[dict[str, Any] | None] = []
    waiter = threading.Thread(target=lambda: found.append(claim(me, "bell", wait_s=20)))
    waiter.start()
    made = add(me, "bell")
    waiter.join(30)
    assert found[0] is not None
    assert found[0]["id"] == made["id"]


def test_a_client_that_went_away_claims_nothing(me: Client) -> None:
    """The job is there for the next one."""
    address = str(me.service.client.base_url)
    body = {"kinds": ["left"], "wait_s": 20}
    with pytest.raises(httpx.ReadTimeout):
        httpx.post(
            f"{address}/api/jobs/claim", json=body, headers=me.headers, timeout=0.3, trust_env=False
        )
    made = add(me, "left")
    job = claim(me, "left", wait_s=10)
    assert job is not None
    assert (job["id"], job["attempts"]) == (made["id"], 1)


def test_a_wait_is_bounded_and_a_claim_takes_no_key(me: Client) -> None:
    """A lease that is given twice would be two runners."""
    assert post(me, "/api/jobs/claim", kinds=["x"], wait_s=31).status_code == 422
    assert post(me, "/api/jobs/claim", kinds=[]).status_code == 422
    headers = me.headers | {"idempotency-key": "k"}
    answer = me.service.client.post("/api/jobs/claim", json={"kinds": ["x"]}, headers=headers)
    assert code_of(answer) == "idempotency_not_supported"


def test_an_enqueueing_that_is_asked_again_is_done_once(me: Client) -> None:
    """With the same key; the same holds for completing."""

    def twice(path: str, body: dict[str, Any]) -> list[httpx.Response]:
        headers = me.headers | {"idempotency-key": f"key{path}"}
        return [me.service.client.post(path, json=body, headers=headers) for _ in range(2)]

    first, again = twice("/api/jobs", {"kind": "once", "payload": 1})
    assert (first.status_code, first.json()) == (again.status_code, again.json())
    assert again.headers["idempotency-replayed"] == "true"
    job = claim(me, "once")
    assert job is not None
    assert claim(me, "once") is None
    done, replayed = twice(f"/api/jobs/{job['id']}/complete", {"generation": 1})
    assert (done.status_code, replayed.status_code) == (200, 200)
    assert done.json() == replayed.json()


def test_each_store_has_its_own_jobs(people: People, me: Client) -> None:
    """Another's are not found; the group's are for administrators."""
    made = add(me, "mine")
    for path in (made["id"], _NOBODY, "no-id"):
        assert code_of(people.admin.call("GET", f"/api/jobs/{path}")) == "not_found"
        assert code_of(post(people.admin, f"/api/jobs/{path}/cancel")) == "not_found"
    for call in (
        me.call("GET", "/api/jobs", params={"home": "group"}),
        post(me, "/api/jobs", kind="x", payload=1, home="group"),
        post(me, "/api/jobs/claim", kinds=["x"], home="group"),
    ):
        assert code_of(call) == "not_permitted"
    shared = add(people.admin, "ours", home="group")
    job = claim(people.admin, "ours", home="group")
    assert job is not None
    assert job["id"] == shared["id"]
    done = post(people.admin, f"/api/jobs/{job['id']}/complete", generation=1, home="group")
    assert done.json()["status"] == "done"


def test_a_list_goes_on_where_it_stopped(me: Client) -> None:
    """Newest first, page by page."""
    made = [add(me, "page")["id"] for _ in range(5)]
    found: list[str] = []
    cursor = None
    while True:
        params = {"kind": "page", "limit": 2} | ({"cursor": cursor} if cursor else {})
        answer = me.call("GET", "/api/jobs", params=params).json()
        found += [item["id"] for item in answer["items"]]
        cursor = answer["next_cursor"]
        if cursor is None:
            break
    assert sorted(found) == sorted(made)
    assert found == sorted(found, reverse=True)


def test_operators_see_and_settle_the_groups_jobs(people: People) -> None:
    """Never what they carry."""
    admin = people.admin
    made = add(admin, "acts", home="group")
    path = f"/api/admin/jobs/{made['id']}"
    listed = admin.call("GET", "/api/admin/jobs", params={"kind": "acts"}).json()["items"]
    shown = admin.call("GET", path).json()
    assert shown == listed[0]
    assert "payload" not in shown
    assert admin.call("POST", f"{path}/cancel").json()["status"] == "cancelled"
    assert code_of(admin.call("POST", f"{path}/cancel")) == "job_over"
    assert admin.call("POST", f"{path}/retry").json()["status"] == "pending"
    assert code_of(admin.call("DELETE", path)) == "conflict"
    assert admin.call("POST", f"{path}/cancel").status_code == 200
    assert admin.call("DELETE", path).status_code == 204
    assert code_of(admin.call("GET", path)) == "not_found"


def strongroom(root: Path, *words: str) -> tuple[int, dict[str, Any]]:
    """Type a command; its exit code and its answer."""
    done = subprocess.run(  # noqa: S603 - the project's own program
        [sys.executable, "-m", "app", "jobs", *words, "--root", str(root), "--json"],
        check=False,
        capture_output=True,
        text=True,
        cwd=PROJECT_FOLDER,
        timeout=60,
    )
    return done.returncode, json.loads(done.stdout)


def test_the_command_line_acts_beside_a_server(people: People) -> None:
    """On the group's jobs, and on those of a member whose store is open; each act is recorded."""
    root = people.admin.service.settings.root
    made = add(people.admin, "box", home="group")
    code, answer = strongroom(root, "cancel", made["id"])
    assert (code, answer["job"]["status"], answer["job"]["kind"]) == (0, "cancelled", "box")
    own = add(people.member, "private-kind")
    code, answer = strongroom(root, "show", own["id"], "--user", people.member.username)
    assert (code, answer["job"]["status"], answer["job"]["kind"]) == (0, "pending", None)
    code, answer = strongroom(root, "retry", _NOBODY)
    assert (code, answer["error"]["code"]) == (3, "not_found")
