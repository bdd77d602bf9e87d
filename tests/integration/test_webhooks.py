"""Webhooks over HTTP: made, changed, told, listed, taken away; and what no process may lose."""

import contextlib
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Final

import httpx
import pytest

from tests.support.clients import Client, code_of, first_admin
from tests.support.endpoint import Endpoint, endpoint
from tests.support.matrix import chosen
from tests.support.people import People, people_on
from tests.support.problems import require_problem
from tests.support.service import LiveService

CHOSEN: Final[dict[str, Any]] = {"webhook_networks": "127.0.0.0/8", "delivery_poll_s": 0.1}
_BOUND_S: Final = 30.0
NOBODY: Final = "01890000-0000-7000-8000-000000000000"

pytestmark = pytest.mark.timeout(120)


@pytest.fixture(scope="module")
def people(tmp_path_factory: pytest.TempPathFactory) -> Iterator[People]:
    """A group on a running service."""
    with people_on(tmp_path_factory.mktemp("webhooks"), measured=True, **CHOSEN) as found:
        yield found


@pytest.fixture
def far() -> Iterator[Endpoint]:
    """An endpoint."""
    with endpoint() as found:
        yield found


def until(is_so: Callable[[], bool]) -> None:
    """Wait for another process, with a bound."""
    end = time.monotonic() + _BOUND_S
    while not is_so():
        assert time.monotonic() < end
        time.sleep(0.01)


def make(client: Client, far: Endpoint, **more: Any) -> dict[str, Any]:  # noqa: ANN401 - as JSON
    """Make a webhook."""
    body = {"url": far.url(), "event_types": ["memory_doc.*"], **more}
    made = client.call("POST", "/api/webhooks", json=body)
    assert made.status_code == 201, made.text
    return dict(made.json())


def listed(client: Client, webhook: dict[str, Any], home: str = "own") -> list[dict[str, Any]]:
    """Its deliveries, newest first."""
    path = f"/api/webhooks/{webhook['id']}/deliveries"
    found = client.call("GET", path, params={"home": home})
    assert found.status_code == 200, found.text
    return list(found.json()["items"])


def test_a_webhook_is_made_told_changed_and_taken_away(people: People, far: Endpoint) -> None:
    """Its secret is shown once; what was sent is listed without what it told."""
    me = people.member
    made = make(me, far, description="mine")
    path = f"/api/webhooks/{made['id']}"
    me.put("user-memory/a.md", "text").raise_for_status()
    until(lambda: len(far.received) == 1)
    assert far.received[0].verified(made["secret"])["type"] == "memory_doc.created"
    until(lambda: listed(me, made)[0]["status"] == "succeeded")
    [row] = listed(me, made)
    assert (row["id"], row["attempts"], row["last_status"]) == (far.received[0].id, 1, 204)
    assert (row["type"], row["next_attempt_at"]) == ("memory_doc.created", None)
    shown = me.call("GET", path)
    assert shown.headers["etag"] == '"1"'
    assert "secret" not in shown.json()
    assert made["id"] in [each["id"] for each in me.call("GET", "/api/webhooks").json()["items"]]
    headers = me.headers | {"If-Match": '"1"'}
    change = {"enabled": False, "event_types": ["*"], "description": None}
    client = me.service.client
    changed = client.patch(path, json=change, headers=headers)
    assert (changed.status_code, changed.headers["etag"]) == (200, '"2"')
    assert changed.json()["enabled"] is False
    require_problem(client.patch(path, json=change, headers=headers), 412, "version_conflict")
    me.put("user-memory/a.md", "more").raise_for_status()
    renewed = me.call("POST", f"{path}/secret").json()
    assert renewed["secret"] != made["secret"]
    assert me.call("DELETE", path).status_code == 204
    require_problem(me.call("GET", path), 404, "not_found")
    assert len(far.received) == 1


def test_a_failed_delivery_is_tried_again_by_its_owner(people: People, far: Endpoint) -> None:
    """Now rather than in its time."""
    far.answer = lambda _received: 404
    me = people.member
    made = make(me, far)
    me.put("user-memory/retry.md", "text").raise_for_status()
    until(lambda: [each["status"] for each in listed(me, made)] == ["retry"])
    [row] = listed(me, made)
    assert (row["last_failure"], row["last_status"]) == ("status_4xx", 404)
    far.answer = lambda _received: 200
    path = f"/api/webhooks/{made['id']}/deliveries/{row['id']}/retry"
    assert me.call("POST", path).status_code == 200
    until(lambda: listed(me, made)[0]["status"] == "succeeded")
    assert far.ids() == [row["id"]] * 2
    require_problem(me.call("POST", path), 409, "conflict")
    other = make(me, far)
    path = f"/api/webhooks/{other['id']}/deliveries/{row['id']}/retry"
    require_problem(me.call("POST", path), 404, "not_found")


def test_a_webhook_of_the_group_is_its_makers_alone(people: People, far: Endpoint) -> None:
    """Others neither see nor change it, administrators included; each home has its own."""
    me, admin = people.member, people.admin
    made = make(me, far, home="group")
    path = f"/api/webhooks/{made['id']}"
    home = {"home": "group"}
    assert me.call("GET", path, params=home).status_code == 200
    require_problem(me.call("GET", path), 404, "not_found")
    for caller in (admin, people.other):
        assert made["id"] not in caller.call("GET", "/api/webhooks", params=home).text
        for method, end, more in (
            ("GET", "", {}),
            ("PATCH", "", {"json": {"enabled": False}}),
            ("DELETE", "", {}),
            ("POST", "/secret", {}),
            ("GET", "/deliveries", {}),
            ("POST", f"/deliveries/{NOBODY}/retry", {}),
        ):
            answer = caller.call(method, path + end, params=home, **more)
            require_problem(answer, 404, "not_found")


@pytest.mark.parametrize(
    ("url", "code"),
    [
        ("https://user:canary@example.com/", "invalid_webhook_url"),
        ("ftp://example.com/canary", "invalid_webhook_url"),
        ("https://example.com/#canary", "invalid_webhook_url"),
        ("https://xn--a/canary", "invalid_webhook_url"),
        ("https://canary.XN--/", "invalid_webhook_url"),
        ("https://10.0.0.1/canary", "webhook_target_refused"),
        ("https://169.254.169.254/canary", "webhook_target_refused"),
        ("https://[::1]/canary", "webhook_target_refused"),
        ("http://8.8.8.8/canary", "webhook_target_refused"),
    ],
)
def test_a_url_that_leads_nowhere_good_is_refused(people: People, url: str, code: str) -> None:
    """At the making and at a change, without being repeated; and nothing is made."""
    me = people.other
    body: dict[str, Any] = {"url": url, "event_types": ["*"]}
    answer = me.call("POST", "/api/webhooks", json=body)
    require_problem(answer, 422, code)
    assert "canary" not in answer.text
    with endpoint() as far:
        made = make(me, far)
    answer = me.call("PATCH", f"/api/webhooks/{made['id']}", json={"url": url})
    require_problem(answer, 422, code)
    assert me.call("GET", f"/api/webhooks/{made['id']}").json()["version"] == 1
    me.call("DELETE", f"/api/webhooks/{made['id']}").raise_for_status()
    assert me.call("GET", "/api/webhooks").json()["items"] == []


def test_a_full_quota_takes_no_webhook(people: People, far: Endpoint) -> None:
    """Nor more text of one; it may be switched off, renewed, removed, and no answer is hidden."""
    me = people.add("quinn", "member")
    made = make(me, far)
    path, key = f"/api/webhooks/{made['id']}", {"Idempotency-Key": "once"}
    client = me.service.client
    change = {"url": far.url("/changed"), "description": "changed"}
    changed = client.patch(path, json=change, headers=me.headers | key)
    quota = {"quota_bytes": 1}
    people.admin.call("PATCH", f"/api/admin/users/{me.user_id}", json=quota).raise_for_status()
    body: dict[str, Any] = {"url": far.url(), "event_types": ["*"]}
    full = (507, "quota_exceeded")
    require_problem(me.call("POST", "/api/webhooks", json=body), *full)
    for more in ({"url": far.url("/x")}, {"event_types": ["*"]}, {"description": "y"}):
        require_problem(me.call("PATCH", path, json=more), *full)
    assert me.call("GET", path).json() == changed.json()
    again = client.patch(path, json=change, headers=me.headers | key)
    assert (again.status_code, again.json()) == (200, changed.json())
    assert again.headers["idempotency-replayed"] == "true"
    assert make(me, far, home="group")["home"] == "group"
    less = {"enabled": False, "description": None}
    assert me.call("PATCH", path, json=less).json()["enabled"] is False
    assert me.call("POST", f"{path}/secret").status_code == 200
    assert me.call("DELETE", path).status_code == 204
    again = client.patch(path, json=change, headers=me.headers | key)
    require_problem(again, 404, "not_found")


def test_a_webhook_is_made_by_a_person_alone(people: People, far: Endpoint) -> None:
    """Who checked their password just now; the rules say so of every change."""
    token = people.token(people.member, "memory:read", "events:read")
    body = {"url": far.url(), "event_types": ["*"]}
    answer = token.call("POST", "/api/webhooks", json=body)
    require_problem(answer, 403, "human_session_required")
    body["event_types"] = ["memory_doc.[u]pdated"]
    assert code_of(people.member.call("POST", "/api/webhooks", json=body)) == "invalid_input"


def test_operators_see_and_move_what_the_group_owes(people: People, far: Endpoint) -> None:
    """Metadata alone; each act answers the state after it."""
    far.answer = lambda _received: 503
    admin = people.admin
    make(admin, far, home="group")
    for number in range(6):
        admin.put(f"shared-memory/{number}.md", "private-words").raise_for_status()

    def of_it(path: str, **params: str) -> list[dict[str, Any]]:
        """What an operator is shown of this endpoint; others' ends may be gone by now."""
        found = admin.call("GET", path, params=params)
        assert "private-words" not in found.text
        assert "/hook" not in found.text
        return [row for row in found.json()["items"] if row["connection"] == far.connection]

    until(lambda: bool(of_it("/api/admin/deliveries", status="held")))
    held = of_it("/api/admin/deliveries", status="held")[0]
    [breaker] = of_it("/api/admin/breakers")
    assert breaker["state"] == "open"
    path = f"/api/admin/deliveries/{held['id']}"
    far.answer = lambda _received: 204
    assert admin.call("POST", f"{path}/release").json()["connection"] is None
    until(lambda: admin.call("GET", path).json()["status"] == "succeeded")
    require_problem(admin.call("POST", f"{path}/cancel"), 409, "conflict")
    require_problem(admin.call("POST", f"{path}/retry"), 409, "conflict")
    assert of_it("/api/admin/breakers") == []
    body = {"connection": far.connection}
    require_problem(admin.call("POST", "/api/admin/breakers/reset", json=body), 404, "not_found")


def test_nothing_of_a_webhook_is_in_the_log(people: People, far: Endpoint) -> None:
    """Neither where it leads nor what it is signed with."""
    made = make(people.member, far, home="group")
    people.admin.put("shared-memory/log.md", "x").raise_for_status()
    until(lambda: bool(far.received))
    log = "".join(people.service.log)
    for secret in (made["secret"], made["secret"][6:], far.url(), str(far.port)):
        assert secret not in log
    stored = b"".join(path.read_bytes() for path in people.service.database.glob("system.db*"))
    assert made["secret"].encode() not in stored


@pytest.mark.parametrize("count", [300])
@pytest.mark.long
def test_two_workers_tell_every_event_once(tmp_path: Path, far: Endpoint, count: int) -> None:
    """However many there are, while nobody dies."""
    with LiveService(tmp_path, workers=2, **CHOSEN) as service:
        admin = first_admin(service)
        make(admin, far, home="group")
        for number in range(count):
            admin.put(f"shared-memory/{number}.md", "x").raise_for_status()
        until(lambda: len(far.received) >= count)
        assert service.stop() == 0
    assert len(far.received) == len(set(far.ids())) == count


@pytest.mark.parametrize(
    "point",
    chosen(["delivery.sent"], ["delivery.claimed", "delivery.sent", "delivery.marked"]),
)
@pytest.mark.long
def test_a_delivery_survives_its_process(tmp_path: Path, far: Endpoint, point: str) -> None:
    """Killed after the claim, after the try, after the mark: none is lost, each has one id."""
    with LiveService(tmp_path, delivery_lease_s=1, **CHOSEN) as service:
        admin = first_admin(service)
        made = make(admin, far, home="group")
        service.kill_once(point, everybody=False)
        # The worker may die before it has answered.
        with contextlib.suppress(httpx.TransportError):
            admin.put("shared-memory/a.md", "x")
        service.wait_for("worker_ended")

        def is_told() -> bool:
            return [each["status"] for each in listed(admin, made, "group")] == ["succeeded"]

        until(is_told)
        [row] = listed(admin, made, "group")
        assert set(far.ids()) == {row["id"]}
        assert len(far.received) == (2 if point == "delivery.sent" else 1)
        assert row["attempts"] == (1 if point == "delivery.marked" else 2)


@pytest.mark.long
def test_a_stop_waits_for_no_endpoint(tmp_path: Path, far: Endpoint) -> None:
    """A try under way is broken off, and made again at the next start without being charged."""
    far.answer = lambda _received: "hang" if len(far.received) == 1 else 204
    with LiveService(tmp_path, **CHOSEN) as service:
        admin = first_admin(service)
        made = make(admin, far, home="group")
        admin.put("shared-memory/a.md", "x").raise_for_status()
        until(lambda: len(far.received) == 1)
        assert service.stop() == 0
        service.start()
        admin.sign_in()
        until(lambda: len(far.received) == 2)
        until(lambda: listed(admin, made, "group")[0]["status"] == "succeeded")
        assert listed(admin, made, "group")[0]["attempts"] == 1
    assert len(set(far.ids())) == 1
