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
        return self.client.service.client.request(
            self.method, self.path, headers=sent, **self.more
        )


@dataclass
class Group:
    """A group of members on a running service."""

    people: People
    plain: Client = field(init=False)
    """A member whose store is a plain file."""

    def __post_init__(self) -> None:
        self.plain = add_member(self.people.admin, "pia", encrypted=False)

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
def opened(service: LiveService, member: Client | None = None) -> Iterator[Connection]:
    """The group's file, or a member's, read by whoever has its key."""
    settings = service.settings
    path, kind, key = settings.system_file, layout.SYSTEM_KIND, None
    if member is not None:
        row = members(settings)[member.username]
        path, kind = settings.user_file(row.id), layout.MEMBER_KIND
        key = key_of(row, member.password) if row.encrypted else None
    with contextlib.closing(
        files.open_maintenance(path, key, kind, system_clock, reader=True)
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
