"""One request for every call that takes an `Idempotency-Key`, ready to be sent again and again."""

import contextlib
import itertools
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any, Final

import httpx

from app.bridge import layout
from app.clock import system_clock
from app.db import files
from app.db.sqlite import Connection
from app.ids import new_uuid7
from tests.support.clients import Client, add_member
from tests.support.outside import key_of, members
from tests.support.people import People
from tests.support.service import PASSWORD, LiveService

COUNTED: Final = (
    "sys_events",
    "sys_audit",
    "sys_jobs",
    "sys_outbox",
    "sys_deliveries",
    "sys_idempotency_keys",
    "memory_doc_versions",
    "access_log",
)
"""Tables that a request which is only answered again adds nothing to."""
_NUMBERS: Final = itertools.count(1)
_TEXT: Final = "one\ntwo\n"


def number() -> int:
    """One that no other has."""
    return next(_NUMBERS)


@dataclass(frozen=True)
class Request:
    """One request of one member."""

    client: Client
    method: str
    path: str
    more: dict[str, Any] = field(default_factory=dict)
    """What else httpx is told; without headers."""

    def send(self, key: str | None, **headers: str) -> httpx.Response:
        """Send it, with a key or without."""
        sent = self.client.headers | headers | ({} if key is None else {"Idempotency-Key": key})
        return self.client.service.client.request(self.method, self.path, headers=sent, **self.more)


@dataclass
class Group:
    """A group of members on a running service."""

    people: People
    plain: Client = field(init=False)
    """A member whose store is a plain file."""

    def __post_init__(self) -> None:
        self.plain = add_member(self.people.admin, "pia", encrypted=False)
        # What is owed stays owed, so that nothing moves by itself.
        off = self.people.admin.call("PUT", "/api/admin/flags/webhooks", json={"value": False})
        assert off.status_code == 200, off.text

    @property
    def service(self) -> LiveService:
        """Where."""
        return self.people.service

    def leaver(self) -> Client:
        """A member who is there for one request alone."""
        return add_member(self.people.admin, f"leaver-{number()}", encrypted=False)

    def counts(self) -> dict[str, int]:
        """How many rows the counted tables of the group's file and the plain member's have."""
        found = {f"group {table}": count for table, count in counted(self.service).items()}
        own = counted(self.service, self.plain)
        return found | {f"own {table}": count for table, count in own.items()}


@contextlib.contextmanager
def opened(
    service: LiveService, member: Client | None = None, *, reader: bool = True
) -> Iterator[Connection]:
    """The group's file, or a member's, opened by whoever has its key."""
    settings = service.settings
    path, kind, key = settings.system_file, layout.SYSTEM_KIND, None
    if member is not None:
        row = members(settings)[member.username]
        path, kind = settings.user_file(row.id), layout.MEMBER_KIND
        key = key_of(row, member.password) if row.encrypted else None
    with contextlib.closing(
        files.open_maintenance(path, key, kind, system_clock, reader=reader)
    ) as connection:
        yield connection


def counted(service: LiveService, member: Client | None = None) -> dict[str, int]:
    """How many rows the counted tables of one file have."""
    with opened(service, member) as connection:
        return {
            table: int(str(connection.all(f"SELECT count(*) FROM {table}")[0][0]))  # noqa: S608 - the names above
            for table in COUNTED
        }


def _note(client: Client, root: str = "user-memory") -> str:
    path = f"{root}/note-{number()}.md"
    client.put(path, _TEXT).raise_for_status()
    return path


def _put(group: Group) -> Request:
    return put(group.plain, f"user-memory/put-{number()}.md")


def put(client: Client, path: str, text: str = _TEXT) -> Request:
    """A note to be written."""
    return Request(client, "PUT", "/api/file", {"params": {"path": path}, "content": text.encode()})


def _put_shared(group: Group) -> Request:
    return put(group.plain, f"shared-memory/put-{number()}.md")


def _patch(group: Group) -> Request:
    edits = {"edits": [{"old": "one", "new": "three"}]}
    more = {"params": {"path": _note(group.plain)}, "json": edits}
    return Request(group.plain, "PATCH", "/api/file", more)


def _delete(group: Group) -> Request:
    more = {"params": {"path": _note(group.plain), "purge": "true"}}
    return Request(group.plain, "DELETE", "/api/file", more)


def _post(group: Group, path: str, body: dict[str, Any]) -> Request:
    return Request(group.plain, "POST", path, {"json": body})


def _write(group: Group) -> Request:
    body = {"path": f"user-memory/written-{number()}.md", "content": _TEXT}
    return _post(group, "/api/file/write", body)


def _append(group: Group) -> Request:
    return _post(group, "/api/file/append", {"path": _note(group.plain), "content": "more"})


def append(client: Client, path: str) -> Request:
    """A line to be added, as raw text."""
    more = {"params": {"path": path}, "content": b"line"}
    return Request(client, "POST", "/api/file/append", more)


def _append_raw(group: Group) -> Request:
    return append(group.plain, _note(group.plain))


def _edit(group: Group) -> Request:
    edits = [{"insert_at_line": 1, "text": "zero"}]
    return _post(group, "/api/file/edit", {"path": _note(group.plain), "edits": edits})


def _delete_by_body(group: Group) -> Request:
    return _post(group, "/api/file/delete", {"path": _note(group.plain)})


def _move(group: Group) -> Request:
    body = {"from": _note(group.plain), "to": f"user-memory/moved-{number()}.md"}
    return _post(group, "/api/file/move", body)


def _restore(group: Group) -> Request:
    path = _note(group.plain)
    made = group.plain.get(path).headers["etag"].strip('"')
    group.plain.put(path, "changed").raise_for_status()
    return _post(group, "/api/file/restore", {"path": path, "version": int(made)})


def _report_body(audience: str) -> dict[str, Any]:
    return {
        "kind": "weekly",
        "title": "A week",
        "body": "As told.",
        "produced_by": "test",
        "audience": audience,
    }


def _report(group: Group) -> Request:
    return _post(group, "/api/reports", _report_body("owner"))


def group_report(client: Client) -> Request:
    """A report to the administrators."""
    return Request(client, "POST", "/api/reports", {"json": _report_body("admins")})


def _report_to_admins(group: Group) -> Request:
    return group_report(group.people.admin)


def _mark(group: Group) -> Request:
    made = _report(group).send(None).json()
    return Request(group.plain, "POST", f"/api/reports/own/{made['id']}/read")


def _remove_report(group: Group) -> Request:
    made = _report_to_admins(group).send(None).json()
    return Request(group.people.admin, "DELETE", f"/api/reports/group/{made['id']}")


def _end_others(group: Group) -> Request:
    group.service.sign_in("pia")
    return Request(group.plain, "DELETE", "/api/sessions", {"params": {"others": "true"}})


def _end_session(group: Group) -> Request:
    body = {"username": "pia", "password": PASSWORD}
    made = group.service.client.post("/api/session", json=body).json()
    return Request(group.plain, "DELETE", f"/api/sessions/{made['session']['id']}")


def _token(client: Client, **more: object) -> str:
    made = client.call("POST", "/api/tokens", json={"label": "test", **more})
    assert made.status_code == 201, made.text
    return str(made.json()["id"])


def _end_token(group: Group) -> Request:
    return Request(group.plain, "DELETE", f"/api/tokens/{_token(group.plain)}")


def _remove_key(group: Group) -> Request:
    member = group.people.member
    before = {key["id"] for key in member.call("GET", "/api/me/keys").json()["items"]}
    _token(member)
    [added] = [
        key["id"]
        for key in member.call("GET", "/api/me/keys").json()["items"]
        if key["id"] not in before
    ]
    return Request(member, "DELETE", f"/api/me/keys/{added}")


def _profile(group: Group) -> Request:
    return Request(group.plain, "PATCH", "/api/me", {"json": {"display_name": f"P {number()}"}})


def _lock(group: Group) -> Request:
    return Request(group.plain, "POST", "/api/me/lock")


def patch_user(admin: Client, user_id: str, **changes: object) -> Request:
    """A member to be changed."""
    return Request(admin, "PATCH", f"/api/admin/users/{user_id}", {"json": changes})


def _patch_user(group: Group) -> Request:
    return patch_user(group.people.admin, group.plain.user_id, notes=f"N {number()}")


def _deactivate(group: Group) -> Request:
    return patch_user(group.people.admin, group.leaver().user_id, active=False)


def erase(admin: Client, user_id: str) -> Request:
    """A member to be erased, by one whose password was just checked."""
    confirmed = admin.call("POST", "/api/session/confirm", json={"password": PASSWORD})
    assert confirmed.status_code == 204, confirmed.text
    return Request(admin, "DELETE", f"/api/admin/users/{user_id}")


def _erase(group: Group) -> Request:
    return erase(group.people.admin, group.leaver().user_id)


def _take_back(group: Group) -> Request:
    admin = group.people.admin
    made = admin.call("POST", "/api/admin/invitations", json={"role_id": "member"}).json()
    return Request(admin, "DELETE", f"/api/admin/invitations/{made['id']}")


def _edge(group: Group) -> str:
    return f"/api/admin/supervision/{group.leaver().user_id}/{group.plain.user_id}"


def _connect(group: Group) -> Request:
    return Request(group.people.admin, "PUT", _edge(group))


def _disconnect(group: Group) -> Request:
    request = _connect(group)
    request.send(None).raise_for_status()
    return Request(request.client, "DELETE", request.path)


def _blob(group: Group) -> Request:
    path = f"/api/blobs/{new_uuid7(system_clock())}"
    return Request(group.plain, "PUT", path, {"content": b"bytes" * 9})


def _remove_blob(group: Group) -> Request:
    made = _blob(group)
    made.send(None).raise_for_status()
    return Request(group.plain, "DELETE", made.path)


def _prune(group: Group) -> Request:
    more = {"params": {"before": "2001-01-01T00:00:00.000Z"}}
    return Request(group.plain, "DELETE", "/api/events", more)


def _job(group: Group) -> Request:
    return _post(group, "/api/jobs", {"kind": f"kind-{number()}", "payload": {"n": 1}})


def _claimed(group: Group, act: str, **more: object) -> Request:
    made = _job(group).send(None).json()
    if act != "cancel":
        body = {"kinds": [made["kind"]]}
        claim = _post(group, "/api/jobs/claim", body).send(None).json()["job"]
        more["generation"] = claim["generation"]
    return _post(group, f"/api/jobs/{made['id']}/{act}", more)


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
    _note(client, "user-memory" if home == "own" else "shared-memory")
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
    return _post(group, "/api/schedules", {"title": f"S {number()}", "interval_s": 86_400})


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


def amend(service: LiveService, member: Client | None, sql: str) -> None:
    """Write what only time or trouble would bring about into one file."""
    with opened(service, member, reader=False) as connection:
        connection.all(sql)


Build = Callable[[Group], Request]
CASES: Final[tuple[tuple[str, Build], ...]] = (
    ("DELETE /api/sessions", _end_others),
    ("DELETE /api/sessions/{session_id}", _end_session),
    ("DELETE /api/tokens/{token_id}", _end_token),
    ("PATCH /api/me", _profile),
    ("POST /api/me/lock", _lock),
    ("DELETE /api/me/keys/{slot_id}", _remove_key),
    ("PUT /api/file", _put),
    ("PUT /api/file", _put_shared),
    ("PATCH /api/file", _patch),
    ("DELETE /api/file", _delete),
    ("POST /api/file/write", _write),
    ("POST /api/file/append", _append),
    ("POST /api/file/append", _append_raw),
    ("POST /api/file/edit", _edit),
    ("POST /api/file/delete", _delete_by_body),
    ("POST /api/file/move", _move),
    ("POST /api/file/restore", _restore),
    ("POST /api/reports", _report),
    ("POST /api/reports", _report_to_admins),
    ("POST /api/reports/{home}/{report_id}/read", _mark),
    ("DELETE /api/reports/{home}/{report_id}", _remove_report),
    ("PUT /api/blobs/{blob_id}", _blob),
    ("DELETE /api/blobs/{blob_id}", _remove_blob),
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
    ("PUT /api/admin/flags/{name}", _set_flag),
    ("DELETE /api/admin/flags/{name}", _unset_flag),
    ("POST /api/admin/operations/{key}/release", _release_operation),
    ("PATCH /api/admin/users/{user_id}", _patch_user),
    ("PATCH /api/admin/users/{user_id}", _deactivate),
    ("DELETE /api/admin/users/{user_id}", _erase),
    ("DELETE /api/admin/invitations/{invitation_id}", _take_back),
    ("PUT /api/admin/supervision/{subject}/{supervisor}", _connect),
    ("DELETE /api/admin/supervision/{subject}/{supervisor}", _disconnect),
)
"""A route, and what makes a request of it ready; a route may have several."""
ENDS_ITSELF: Final = frozenset({"DELETE /api/session"})
"""After it the credential opens nothing, so that no answer is ever given again."""
