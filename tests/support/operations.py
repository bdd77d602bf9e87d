"""The operations that span files, as a client asks for them, and what must hold when one is cut."""

from dataclasses import dataclass, field
from typing import Final

import httpx
from typing_extensions import override

from tests.support.archives import zipped
from tests.support.clients import Client, add_member, new_user, own_password
from tests.support.outside import members, opens
from tests.support.service import PASSWORD, LiveService

NEW: Final = "another fine password"
NOTE: Final = "user-memory/kept.md"
TEXT: Final = "acknowledged"
KEPT_BLOB: Final = "01890000-0000-4000-8000-00000000000a"
NEW_BLOB: Final = "01890000-0000-4000-8000-00000000000b"


@dataclass
class Operation:
    """One operation on one member, killed in the middle; the methods of each kind differ."""

    admin: Client
    name: str
    encrypted: bool = True
    member: Client = field(init=False)
    code: str = ""

    @property
    def service(self) -> LiveService:
        """Where."""
        return self.admin.service

    def prepare(self) -> None:
        """Make the member, with a note and a password and code of their own."""
        self.member = add_member(self.admin, self.name, encrypted=self.encrypted)
        if self.encrypted:
            self.code = own_password(self.member)
        self.member.put(NOTE, TEXT).raise_for_status()
        self.put_blob(KEPT_BLOB, TEXT).raise_for_status()

    def put_blob(self, blob_id: str, text: str) -> httpx.Response:
        """Store a file of the member's."""
        return self.member.call("PUT", f"/api/blobs/{blob_id}", content=text.encode())

    def act(self) -> httpx.Response:
        """Do it."""
        raise NotImplementedError

    def check(self, *, done: bool) -> None:
        """Look whether it is done, or never was."""
        raise NotImplementedError

    def check_password(self, right: str, wrong: str) -> None:
        """Exactly one password opens the file, and the note is there."""
        row = members(self.service.settings)[self.name]
        assert opens(self.service.settings, row, right)
        assert not opens(self.service.settings, row, wrong)
        assert not self.member.may_sign_in(wrong)
        assert self.member.sign_in(right).read(NOTE) == TEXT
        kept = self.member.call("GET", f"/api/blobs/{KEPT_BLOB}")
        assert kept.text == TEXT or kept.status_code == 404

    def recovers(self) -> bool:
        """Whether the recovery code known before still opens the store."""
        body = {"username": self.name, "recovery_code": self.code, "new_password": NEW + "!"}
        return self.service.client.post("/api/recovery", json=body).status_code == 200


class SignUp(Operation):
    """An administrator makes a member."""

    @override
    def prepare(self) -> None:
        """Nothing of the member is there before."""

    @override
    def act(self) -> httpx.Response:
        """Ask for the member."""
        return new_user(self.admin, self.name, encrypted=self.encrypted)

    @override
    def check(self, *, done: bool) -> None:
        """The member is whole, or their name is free."""
        again = self.act()
        assert again.status_code == (409 if done else 201), again.text
        self.member = Client(self.service, self.name, PASSWORD, self.service.sign_in(self.name))
        self.member.put(NOTE, TEXT).raise_for_status()
        self.check_password(PASSWORD, NEW)


class Invitation(SignUp):
    """An invited member makes their own account."""

    @override
    def prepare(self) -> None:
        """An invitation."""
        made = self.admin.call("POST", "/api/admin/invitations", json={"role_id": "member"})
        self.code = made.json()["token"]

    @override
    def act(self) -> httpx.Response:
        """Take it."""
        body = {"token": self.code, "username": self.name, "password": PASSWORD}
        return self.service.client.post("/api/invitations/accept", json=body)

    @override
    def check(self, *, done: bool) -> None:
        """The invitation is good as long as nobody came of it."""
        again = self.act()
        assert again.status_code == (401 if done else 201), again.text
        self.member = Client(self.service, self.name, PASSWORD, self.service.sign_in(self.name))
        self.member.put(NOTE, TEXT).raise_for_status()
        self.check_password(PASSWORD, NEW)


class PasswordChange(Operation):
    """A member changes their password."""

    @override
    def act(self) -> httpx.Response:
        """Change it."""
        body = {"current_password": PASSWORD, "new_password": NEW}
        return self.member.call("PUT", "/api/me/password", json=body)

    @override
    def check(self, *, done: bool) -> None:
        """One of the two passwords opens the store; the session that asked goes on."""
        assert self.member.read(NOTE) == TEXT
        self.check_password(*((NEW, PASSWORD) if done else (PASSWORD, NEW)))
        assert self.recovers() == self.encrypted


class FirstChange(PasswordChange):
    """The first change of a temporary password, which changes the key."""

    @override
    def prepare(self) -> None:
        """A member whose password an administrator chose."""
        self.member = add_member(self.admin, self.name)
        self.member.put(NOTE, TEXT).raise_for_status()

    @override
    def check(self, *, done: bool) -> None:
        """The password stays temporary until the key is the member's own."""
        assert self.member.read(NOTE) == TEXT
        self.check_password(*((NEW, PASSWORD) if done else (PASSWORD, NEW)))
        row = members(self.service.settings)[self.name]
        assert bool(row.password_is_temporary) is not done


class Rotation(Operation):
    """A member gives their store a new key."""

    @override
    def act(self) -> httpx.Response:
        """Change the key."""
        return self.member.call("POST", "/api/me/rotate", json={"password": PASSWORD})

    @override
    def check(self, *, done: bool) -> None:
        """Password and session open the store as before; the code only under the old key."""
        assert self.member.read(NOTE) == TEXT
        self.check_password(PASSWORD, NEW)
        assert self.recovers() is not done


class Recovery(Operation):
    """A member comes back with their recovery code."""

    @override
    def act(self) -> httpx.Response:
        """Use the code."""
        body = {"username": self.name, "recovery_code": self.code, "new_password": NEW}
        return self.service.client.post("/api/recovery", json=body)

    @override
    def check(self, *, done: bool) -> None:
        """The old password and sessions hold, or the new password alone."""
        assert self.member.get(NOTE).status_code == (401 if done else 200)
        self.check_password(*((NEW, PASSWORD) if done else (PASSWORD, NEW)))
        assert self.recovers() is not done


class Erasure(Operation):
    """An administrator erases a member."""

    @override
    def act(self) -> httpx.Response:
        """Erase."""
        return self.admin.call("DELETE", f"/api/admin/users/{self.member.user_id}")

    @override
    def check(self, *, done: bool) -> None:
        """All of the member is there, or nothing and the name is free."""
        if not done:
            self.check_password(PASSWORD, NEW)
            assert self.act().status_code == 200
        assert self.member.get(NOTE).status_code == 401
        assert not list(self.service.database.rglob(f"{self.member.user_id}*"))
        again = add_member(self.admin, self.name)
        assert again.user_id != self.member.user_id
        assert again.get(NOTE).status_code == 404


class Upload(Operation):
    """A member stores a file."""

    @override
    def act(self) -> httpx.Response:
        """Store it."""
        return self.put_blob(NEW_BLOB, "new")

    @override
    def check(self, *, done: bool) -> None:
        """It is there whole, or not there and can be stored again; the other is as it was."""
        found = self.member.sign_in().call("GET", f"/api/blobs/{NEW_BLOB}")
        assert (found.status_code, found.text if done else "") == (
            200 if done else 404,
            "new" * done,
        )
        assert self.act().status_code == (200 if done else 201)
        self.check_password(PASSWORD, NEW)


class Import(Operation):
    """A member takes an archive of notes in, one of which replaces theirs."""

    @override
    def act(self) -> httpx.Response:
        """Send it."""
        archive = zipped(("kept.md", b"replaced"), *((f"{n}.md", b"x") for n in range(20)))
        headers = {**self.member.headers, "Content-Type": "application/zip"}
        path = "/api/memory/import"
        return self.service.client.post(path, content=archive, headers=headers)

    @override
    def check(self, *, done: bool) -> None:
        """All of it is written, or nothing; and it can be sent again."""
        member = self.member.sign_in()
        assert member.read(NOTE) == ("replaced" if done else TEXT)
        there = [member.get(f"user-memory/{n}.md").status_code for n in range(20)]
        assert set(there) == {200 if done else 404}
        assert self.act().json() == {"written": 0 if done else 21, "unchanged": 21 if done else 0}
        body = {"path": NOTE, "version": 1}
        assert member.call("POST", "/api/file/restore", json=body).is_success
        self.check_password(PASSWORD, NEW)
