"""One request that may be sent again and again, and what it must add nothing to."""

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
TEXT: Final = "one\ntwo\n"


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


def amend(service: LiveService, member: Client | None, sql: str) -> None:
    """Write what only time or trouble would bring about into one file."""
    with opened(service, member, reader=False) as connection:
        connection.all(sql)


def put(client: Client, path: str, text: str = TEXT) -> Request:
    """A note to be written."""
    return Request(client, "PUT", "/api/file", {"params": {"path": path}, "content": text.encode()})


def append(client: Client, path: str) -> Request:
    """A line to be added, as raw text."""
    more = {"params": {"path": path}, "content": b"line"}
    return Request(client, "POST", "/api/file/append", more)


def note(client: Client, root: str = "user-memory") -> str:
    """A note that is there; its path."""
    path = f"{root}/note-{number()}.md"
    client.put(path, TEXT).raise_for_status()
    return path


def post(group: Group, path: str, body: dict[str, Any]) -> Request:
    """A call of the plain member's with a body."""
    return Request(group.plain, "POST", path, {"json": body})


def report_body(audience: str) -> dict[str, Any]:
    """A report to be written."""
    return {
        "kind": "weekly",
        "title": "A week",
        "body": "As told.",
        "produced_by": "test",
        "audience": audience,
    }


def group_report(client: Client) -> Request:
    """A report to the administrators."""
    return Request(client, "POST", "/api/reports", {"json": report_body("admins")})


def patch_user(admin: Client, user_id: str, **changes: object) -> Request:
    """A member to be changed."""
    return Request(admin, "PATCH", f"/api/admin/users/{user_id}", {"json": changes})


def erase(admin: Client, user_id: str) -> Request:
    """A member to be erased, by one whose password was just checked."""
    confirmed = admin.call("POST", "/api/session/confirm", json={"password": PASSWORD})
    assert confirmed.status_code == 204, confirmed.text
    return Request(admin, "DELETE", f"/api/admin/users/{user_id}")


Build = Callable[[Group], Request]
Cases = tuple[tuple[str, Build], ...]
"""A route, and what makes a request of it ready; a route may have several."""
