"""Stores whose file is damaged, missing, another's or from the future, under a running service."""

import contextlib
import secrets
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Final

import pytest

from app.bridge import layout
from app.clock import system_clock
from app.db import files
from app.db.files import SIDECARS
from tests.support.clients import Client, add_member, code_of, first_admin
from tests.support.outside import eventually, faults, key_of, members
from tests.support.service import PASSWORD, LiveService

NOTE: Final = "user-memory/kept.md"
TEXT: Final = "a line of some length, which is kept\n" * 8_000
"""Long enough to fill most of the file."""


class Holder:
    """A member, and the file they trust."""

    def __init__(self, admin: Client, name: str, *, encrypted: bool) -> None:
        self.client = add_member(admin, name, encrypted=encrypted)
        self.client.put(NOTE, TEXT).raise_for_status()
        self.settings = admin.service.settings
        row = members(self.settings)[name]
        self.file = self.settings.user_file(row.id)
        self.salt = row.file_salt

    def close(self) -> None:
        """Have every process close the store."""
        assert self.client.call("POST", "/api/me/lock").status_code == 204

    def let_go(self) -> bytes:
        """Have every process close the store; the file as it then is, with nothing beside it."""
        self.close()
        assert eventually(lambda: not self.sidecars())
        return self.file.read_bytes()

    def sidecars(self) -> list[Path]:
        """What of SQLite's lies beside the file."""
        beside = (self.file.with_name(self.file.name + suffix) for suffix in SIDECARS)
        return [path for path in beside if path.exists()]

    @contextlib.contextmanager
    def instead(self, content: bytes) -> Iterator[None]:
        """Have other bytes in the file's place, and at the end the file put back.

        As an operator would: the store closed, the whole set replaced, the server running.
        """
        sound = self.let_go()
        self._put(content)
        try:
            yield
        finally:
            self.close()
            self._put(sound)

    def _put(self, content: bytes) -> None:
        for path in self.sidecars():
            path.unlink()
        new = self.file.with_suffix(".restored")
        new.write_bytes(content)
        new.replace(self.file)

    def code(self) -> str:
        """The code that reading the note is answered with; empty when the note is there."""
        answer = self.client.get(NOTE)
        assert code_of(answer) or answer.text == TEXT
        return code_of(answer)


@pytest.fixture(scope="module")
def admin(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Client]:
    """The first administrator of a running service, who has a note as well."""
    with LiveService(tmp_path_factory.mktemp("damage")) as service:
        ana = first_admin(service)
        ana.put(NOTE, TEXT).raise_for_status()
        yield ana
        assert service.stop() == 0
        assert faults(service.settings, serving=False) == []


@pytest.fixture(scope="module")
def sealed(admin: Client) -> Holder:
    """A member with an encrypted file."""
    return Holder(admin, "eva", encrypted=True)


@pytest.fixture(scope="module")
def plain(admin: Client) -> Holder:
    """A member with a plain file."""
    return Holder(admin, "pia", encrypted=False)


@pytest.fixture(scope="module", params=["encrypted", "plain"])
def holder(request: pytest.FixtureRequest, sealed: Holder, plain: Holder) -> Holder:
    """Each of them in turn."""
    return sealed if request.param == "encrypted" else plain


def _first_page(content: bytes) -> bytes:
    return secrets.token_bytes(4096) + content[4096:]


def _body(content: bytes) -> bytes:
    half = len(content) // 2 // 4096 * 4096
    return content[:half] + secrets.token_bytes(len(content) - half)


DAMAGES: Final[dict[str, Callable[[bytes], bytes]]] = {
    "first page": _first_page,
    "second half": _body,
    "cut in half": lambda content: content[: len(content) // 2 // 4096 * 4096],
    "cut within a page": lambda content: content[:5_000],
    "zeroed": lambda content: bytes(len(content)),
    "empty": lambda _: b"",
    "a text": lambda _: b"this is no database\n" * 1_000,
}


@pytest.mark.parametrize("damage", DAMAGES.values(), ids=DAMAGES.keys())
def test_a_damaged_file_is_told_and_put_back_without_a_restart(
    admin: Client, holder: Holder, damage: Callable[[bytes], bytes]
) -> None:
    """The member is told, others are served, and the file put back serves at once."""
    with holder.instead(damage(holder.let_go())):
        assert [holder.code() for _ in range(3)] == ["store_damaged"] * 3
        assert admin.read(NOTE) == TEXT
        # A session is no matter of the file.
        assert holder.client.sign_in().call("GET", "/api/session").status_code == 200
    assert not holder.code()


def test_a_missing_file_is_told_and_never_made(admin: Client, holder: Holder) -> None:
    """Neither reading, writing nor signing in conjures a database."""
    with holder.instead(b""):
        holder.file.unlink()
        before = {path.name for path in admin.service.database.iterdir()}
        assert holder.code() == "store_missing"
        assert code_of(holder.client.put(NOTE, TEXT)) == "store_missing"
        assert holder.client.sign_in().call("GET", "/api/session").status_code == 200
        assert code_of(holder.client.append(NOTE, TEXT)) == "store_missing"
        assert {path.name for path in admin.service.database.iterdir()} == before
        assert admin.read(NOTE) == TEXT
    assert not holder.code()


def test_a_file_that_cannot_be_opened_stays_as_it_is(holder: Holder) -> None:
    """What does not open is left alone, to the byte: it may be all there is."""
    broken = _first_page(holder.let_go())
    with holder.instead(broken):
        assert holder.code() == "store_damaged"
        assert code_of(holder.client.put(NOTE, "new")) == "store_damaged"
        holder.close()
        assert holder.file.read_bytes() == broken
    assert not holder.code()


@pytest.fixture(scope="module", params=["encrypted", "plain"])
def other(request: pytest.FixtureRequest, admin: Client) -> Holder:
    """One more member, of each kind."""
    return Holder(admin, f"other-{request.param}", encrypted=request.param == "encrypted")


def test_swapped_files_are_told_as_such(admin: Client, holder: Holder, other: Holder) -> None:
    """Another member's sound file is never served, nor called damaged."""
    mine, theirs = holder.let_go(), other.let_go()
    with holder.instead(theirs), other.instead(mine):
        assert (holder.code(), other.code()) == ("store_swapped", "store_swapped")
        rotated = holder.client.call("POST", "/api/me/rotate", json={"password": PASSWORD})
        assert code_of(rotated) in {"store_swapped", "store_not_encrypted"}
        assert admin.read(NOTE) == TEXT
    assert (holder.code(), other.code()) == ("", "")


def test_a_folder_in_a_store_s_place_is_erased_with_its_member(admin: Client) -> None:
    """An erasure ends, whatever stands there."""
    holder = Holder(admin, "fay", encrypted=True)
    holder.let_go()
    holder.file.unlink()
    holder.file.mkdir()
    assert holder.code() == "store_damaged"
    erased = admin.call("DELETE", f"/api/admin/users/{holder.client.user_id}")
    assert erased.status_code == 200, erased.text
    assert not holder.file.exists()


def test_the_group_s_file_in_a_member_s_place_is_told_as_swapped(holder: Holder) -> None:
    """A file of another kind is never taken for a member's."""
    with holder.instead(holder.settings.system_file.read_bytes()):
        assert holder.code() == "store_swapped"
    assert not holder.code()


def test_a_file_of_a_newer_program_is_refused_in_words(holder: Holder) -> None:
    """A store this program does not know is neither read nor written."""
    row = members(holder.settings)[holder.client.username]
    key = key_of(row, PASSWORD) if row.encrypted else None
    with holder.instead(holder.let_go()):
        with contextlib.closing(
            files.open_maintenance(holder.file, key, layout.MEMBER_KIND, system_clock)
        ) as connection:
            connection.all(
                "INSERT INTO sys_migrations (bucket, number, name, checksum, applied_at) "
                "VALUES ('owner', 9999, 'from_the_future', 'x', 0)"
            )
        newer = holder.file.read_bytes()
        answer = holder.client.get(NOTE)
        assert (answer.status_code, code_of(answer)) == (409, "store_too_new")
        assert code_of(holder.client.put(NOTE, "new")) == "store_too_new"
        assert holder.file.read_bytes() == newer
    assert not holder.code()


def test_a_log_of_another_key_does_not_pass_for_the_store_s(admin: Client) -> None:
    """A log left from before a change of key is told as damage, and its removal mends it."""
    lea = Holder(admin, "lea", encrypted=True)
    log = lea.file.with_name(lea.file.name + "-wal")
    old = log.read_bytes()
    assert old
    rotated = lea.client.call("POST", "/api/me/rotate", json={"password": PASSWORD})
    assert rotated.status_code == 200
    with lea.instead(lea.let_go()):
        log.write_bytes(old)
        assert lea.code() in {"store_damaged", ""}
    assert not lea.code()
