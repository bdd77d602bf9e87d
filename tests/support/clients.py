"""Members as clients of a running service, over HTTP."""

from dataclasses import dataclass
from typing import Any, Final, Self

import httpx

from tests.support.service import PASSWORD, LiveService

ADMIN: Final = "ana"
ENDLESS: Final = frozenset({"GET /api/events/stream"})
"""Calls whose answers do not end by themselves."""


@dataclass(slots=True)
class Client:
    """One member, signed in."""

    service: LiveService
    username: str
    password: str
    headers: dict[str, str]
    user_id: str = ""

    def call(self, method: str, path: str, **more: Any) -> httpx.Response:  # noqa: ANN401 - as httpx
        """Send one request."""
        return self.service.client.request(method, path, headers=self.headers, **more)

    def put(self, path: str, text: str) -> httpx.Response:
        """Write a note."""
        kind = {"content-type": "text/markdown"}
        return self.service.client.put(
            "/api/file", params={"path": path}, content=text.encode(), headers=self.headers | kind
        )

    def append(self, path: str, text: str) -> httpx.Response:
        """Add a line to a note."""
        kind = {"content-type": "text/markdown"}
        return self.service.client.post(
            "/api/file/append",
            params={"path": path},
            content=text.encode(),
            headers=self.headers | kind,
        )

    def get(self, path: str) -> httpx.Response:
        """Read a note."""
        return self.call("GET", "/api/file", params={"path": path})

    def read(self, path: str) -> str:
        """The text of a note that is there."""
        found = self.get(path)
        assert found.status_code == 200, found.text
        return found.text

    def sign_in(self, password: str | None = None) -> Self:
        """Begin a new session, which takes the place of the one before."""
        self.password = self.password if password is None else password
        self.headers = self.service.sign_in(self.username, self.password)
        return self

    def may_sign_in(self, password: str) -> bool:
        """Whether a password is taken; a session begins if it is."""
        body = {"username": self.username, "password": password}
        answer = self.service.client.post("/api/session", json=body)
        assert answer.status_code in {201, 401}, answer.text
        return answer.status_code == 201


def code_of(answer: httpx.Response) -> str:
    """The error code of an answer; empty when it is none."""
    if answer.status_code < 400:
        return ""
    return str(answer.json()["code"])


def first_admin(service: LiveService) -> Client:
    """Set the service up."""
    made = service.set_up(ADMIN)
    return Client(service, ADMIN, PASSWORD, service.sign_in(ADMIN), made["user"]["id"])


def new_user(admin: Client, username: str, *, encrypted: bool = True) -> httpx.Response:
    """Ask for a member with the PASSWORD."""
    body = {
        "username": username,
        "password": PASSWORD,
        "role_id": "member",
        "encrypted": encrypted,
    }
    return admin.call("POST", "/api/admin/users", json=body)


def add_member(admin: Client, username: str, *, encrypted: bool = True) -> Client:
    """Make a member, and sign them in."""
    made = new_user(admin, username, encrypted=encrypted)
    assert made.status_code == 201, made.text
    headers = admin.service.sign_in(username)
    user_id = made.json()["user"]["id"]
    return Client(admin.service, username, PASSWORD, headers, user_id)


def own_password(member: Client) -> str:
    """Make a temporary password the member's own, by way of another; the recovery code.

    The second change leaves the key and the code of the first as they are.
    """
    codes = []
    for old, new in ((member.password, PASSWORD + "!"), (PASSWORD + "!", member.password)):
        body = {"current_password": old, "new_password": new}
        changed = member.call("PUT", "/api/me/password", json=body)
        assert changed.status_code == 200, changed.text
        codes.append(changed.json()["recovery_code"])
    code: str = codes[0]
    return code
