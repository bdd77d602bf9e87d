"""Requests for jobs, webhooks, schedules and flags, ready to be repeated."""

from typing import Final

from app.clock import system_clock
from app.ids import new_uuid7
from tests.support.clients import Client
from tests.support.repeats import Cases, Group, Request, amend, note, number, post
from tests.support.service import PASSWORD


def _prune(group: Group) -> Request:
    more = {"params": {"before": "2001-01-01T00:00:00.000Z"}}
    return Request(group.plain, "DELETE", "/api/events", more)


def _job(group: Group) -> Request:
    return post(group, "/api/jobs", {"kind": f"kind-{number()}", "payload": {"n": 1}})


def _claimed(group: Group, act: str, **more: object) -> Request:
    made = _job(group).send(None).json()
    if act != "cancel":
        body = {"kinds": [made["kind"]]}
        claim = post(group, "/api/jobs/claim", body).send(None).json()["job"]
        more["generation"] = claim["generation"]
    return post(group, f"/api/jobs/{made['id']}/{act}", more)


def _heartbeat(group: Group) -> Request:
    return _claimed(group, "heartbeat")


def _complete(group: Group) -> Request:
    return _claimed(group, "complete", result={"n": 2})


def _fail(group: Group) -> Request:
    return _claimed(group, "fail", error="no luck")


def _cancel_job(group: Group) -> Request:
    return _claimed(group, "cancel")


def _job_of_the_group(group: Group, act: str = "") -> Request:
    admin = group.people.admin
    body = {"kind": "mail", "payload": {}, "home": "group"}
    made = Request(admin, "POST", "/api/jobs", {"json": body}).send(None).json()
    return Request(admin, "POST", f"/api/admin/jobs/{made['id']}/{act}")


def _cancel_job_of_the_group(group: Group) -> Request:
    return _job_of_the_group(group, "cancel")


def _retry_job_of_the_group(group: Group) -> Request:
    return _job_of_the_group(group, "retry")


def _purge_job_of_the_group(group: Group) -> Request:
    cancelled = _cancel_job_of_the_group(group)
    cancelled.send(None).raise_for_status()
    return Request(cancelled.client, "DELETE", cancelled.path.removesuffix("/cancel"))


def _confirmed(client: Client) -> Client:
    client.call("POST", "/api/session/confirm", json={"password": PASSWORD}).raise_for_status()
    return client


def _webhook(client: Client, home: str = "own") -> str:
    body = {"url": "https://example.com/", "event_types": ["memory_doc.*"], "home": home}
    made = _confirmed(client).call("POST", "/api/webhooks", json=body)
    assert made.status_code == 201, made.text
    return f"/api/webhooks/{made.json()['id']}"


def _patch_webhook(group: Group) -> Request:
    more = {"json": {"description": "changed"}}
    return Request(group.plain, "PATCH", _webhook(group.plain), more)


def _remove_webhook(group: Group) -> Request:
    return Request(group.plain, "DELETE", _webhook(group.plain))


def _owed(client: Client, home: str) -> str:
    """A delivery that nobody makes."""
    webhook = _webhook(client, home)
    note(client, "user-memory" if home == "own" else "shared-memory")
    found = client.call("GET", f"{webhook}/deliveries", params={"home": home})
    delivery = found.json()["items"][0]["id"]
    return f"{webhook}/deliveries/{delivery}"


def _retry_delivery(group: Group) -> Request:
    path = _owed(group.plain, "own")
    amend(group.service, group.plain, "UPDATE sys_deliveries SET status = 'retry'")
    return Request(group.plain, "POST", f"{path}/retry")


def _delivery_of_the_group(group: Group, act: str, status: str) -> Request:
    delivery = _owed(group.people.admin, "group").rpartition("/")[2]
    columns = f"status = '{status}', connection = 'https://example.com:443', held_since = 1"
    amend(group.service, None, f"UPDATE sys_deliveries SET {columns} WHERE id = '{delivery}'")  # noqa: S608 - a test's own
    return Request(group.people.admin, "POST", f"/api/admin/deliveries/{delivery}/{act}")


def _retry_delivery_of_the_group(group: Group) -> Request:
    return _delivery_of_the_group(group, "retry", "retry")


def _cancel_delivery_of_the_group(group: Group) -> Request:
    return _delivery_of_the_group(group, "cancel", "pending")


def _release_delivery_of_the_group(group: Group) -> Request:
    return _delivery_of_the_group(group, "release", "held")


def _reset_breaker(group: Group) -> Request:
    connection = f"https://example-{number()}.com:443"
    values = f"('{connection}', 'open', 5, 1, 1)"
    columns = "(connection, state, failures, opened_at, next_probe_at)"
    amend(
        group.service,
        None,
        f"INSERT INTO sys_circuit_breakers {columns} VALUES {values}",  # noqa: S608 - a test's own
    )
    body = {"connection": connection}
    return Request(group.people.admin, "POST", "/api/admin/breakers/reset", {"json": body})


def _schedule(group: Group) -> Request:
    return post(group, "/api/schedules", {"title": f"S {number()}", "interval_s": 86_400})


def _schedule_of_the_group(group: Group) -> Request:
    return Request(group.people.admin, "POST", "/api/admin/schedules", _schedule(group).more)


def _made(request: Request, method: str, **more: object) -> Request:
    made = request.send(None)
    assert made.status_code == 201, made.text
    return Request(request.client, method, f"{request.path}/{made.json()['id']}", dict(more))


def _patch_schedule(group: Group) -> Request:
    return _made(_schedule(group), "PATCH", json={"title": "changed"})


def _remove_schedule(group: Group) -> Request:
    return _made(_schedule(group), "DELETE")


def _run_schedule(group: Group) -> Request:
    made = _made(_schedule(group), "POST")
    return Request(made.client, "POST", f"{made.path}/run")


def _patch_schedule_of_the_group(group: Group) -> Request:
    return _made(_schedule_of_the_group(group), "PATCH", json={"title": "changed"})


def _remove_schedule_of_the_group(group: Group) -> Request:
    return _made(_schedule_of_the_group(group), "DELETE")


def _run_schedule_of_the_group(group: Group) -> Request:
    made = _made(_schedule_of_the_group(group), "POST")
    return Request(made.client, "POST", f"{made.path}/run")


def _set_flag(group: Group) -> Request:
    more = {"json": {"value": bool(number() % 2)}}
    return Request(group.people.admin, "PUT", "/api/admin/flags/invitations", more)


def _unset_flag(group: Group) -> Request:
    return Request(group.people.admin, "DELETE", "/api/admin/flags/invitations")


def _release_operation(group: Group) -> Request:
    key = new_uuid7(system_clock())
    columns = "(key, action, subject, build, shape, started_at, diverged)"
    values = f"('{key}', 'rotate', '{key}', '0', 'older', {system_clock()}, 1)"
    amend(group.service, None, f"INSERT INTO sys_step_records {columns} VALUES {values}")  # noqa: S608 - a test's own
    return Request(group.people.admin, "POST", f"/api/admin/operations/{key}/release")


def _add_rule(group: Group) -> Request:
    body = {"tool_pattern": "*", "action": "require", "priority": 999_999}
    return Request(group.people.admin, "POST", "/api/admin/approval-rules", {"json": body})


def _rule(group: Group) -> str:
    return f"/api/admin/approval-rules/{_add_rule(group).send(None).json()['id']}"


def _change_rule(group: Group) -> Request:
    return Request(group.people.admin, "PATCH", _rule(group), {"json": {"note": "other"}})


def _remove_rule(group: Group) -> Request:
    return Request(group.people.admin, "DELETE", _rule(group))


CASES: Final[Cases] = (
    ("DELETE /api/events", _prune),
    ("POST /api/jobs", _job),
    ("POST /api/jobs/{job_id}/heartbeat", _heartbeat),
    ("POST /api/jobs/{job_id}/complete", _complete),
    ("POST /api/jobs/{job_id}/fail", _fail),
    ("POST /api/jobs/{job_id}/cancel", _cancel_job),
    ("POST /api/admin/jobs/{job_id}/retry", _retry_job_of_the_group),
    ("POST /api/admin/jobs/{job_id}/cancel", _cancel_job_of_the_group),
    ("DELETE /api/admin/jobs/{job_id}", _purge_job_of_the_group),
    ("PATCH /api/webhooks/{webhook_id}", _patch_webhook),
    ("DELETE /api/webhooks/{webhook_id}", _remove_webhook),
    ("POST /api/webhooks/{webhook_id}/deliveries/{delivery_id}/retry", _retry_delivery),
    ("POST /api/admin/deliveries/{delivery_id}/retry", _retry_delivery_of_the_group),
    ("POST /api/admin/deliveries/{delivery_id}/cancel", _cancel_delivery_of_the_group),
    ("POST /api/admin/deliveries/{delivery_id}/release", _release_delivery_of_the_group),
    ("POST /api/admin/breakers/reset", _reset_breaker),
    ("POST /api/schedules", _schedule),
    ("PATCH /api/schedules/{schedule_id}", _patch_schedule),
    ("DELETE /api/schedules/{schedule_id}", _remove_schedule),
    ("POST /api/schedules/{schedule_id}/run", _run_schedule),
    ("POST /api/admin/schedules", _schedule_of_the_group),
    ("PATCH /api/admin/schedules/{schedule_id}", _patch_schedule_of_the_group),
    ("DELETE /api/admin/schedules/{schedule_id}", _remove_schedule_of_the_group),
    ("POST /api/admin/schedules/{schedule_id}/run", _run_schedule_of_the_group),
    ("POST /api/admin/approval-rules", _add_rule),
    ("PATCH /api/admin/approval-rules/{rule_id}", _change_rule),
    ("DELETE /api/admin/approval-rules/{rule_id}", _remove_rule),
    ("PUT /api/admin/flags/{name}", _set_flag),
    ("DELETE /api/admin/flags/{name}", _unset_flag),
    ("POST /api/admin/operations/{key}/release", _release_operation),
)
