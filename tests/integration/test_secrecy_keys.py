"""Keys that were taken back: a destroyed way in leaves no bytes, and what old copies can do."""

import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Final

import pytest

from app.bridge.reading import reading
from app.db.registry import statements as sql
from app.db.registry.rows import AccountRow
from app.settings import Settings
from tests.support.clients import Client, add_member, first_admin, new_user, own_password
from tests.support.matrix import chosen
from tests.support.outside import members, opens, regular_files
from tests.support.service import PASSWORD, LiveService

NEW: Final = "another fine password"
NOTE: Final = "user-memory/n.md"


@pytest.fixture(scope="module", params=chosen([2], [1, 2]), ids=lambda count: f"{count}w")
def admin(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Client]:
    """The first administrator of a running service."""
    with LiveService(tmp_path_factory.mktemp("keys"), workers=request.param) as service:
        yield first_admin(service)


def _wraps(settings: Settings, username: str) -> set[bytes]:
    """Every wrap and verifier of a member that the registry holds."""
    row = members(settings).get(username)
    if row is None:
        return set()
    with reading(settings) as reader:
        slots = {slot.wrapped_dek for slot in reader.all(sql.LIST_SLOTS, user_id=row.id)}
    return slots | {row.database_password or row.password_hash or b""}


def _found(folder: Path, needles: set[bytes]) -> list[str]:
    """Files under a folder that hold one of these bytes."""
    contents = {path.name: path.read_bytes() for path in regular_files(folder)}
    return [name for name, content in contents.items() if any(n in content for n in needles)]


def _sign_out(_: Client, member: Client) -> None:
    assert member.call("DELETE", "/api/session").status_code == 204


def _end_session(_: Client, member: Client) -> None:
    ended = member.call("GET", "/api/session").json()["session"]["id"]
    member.sign_in()
    assert member.call("DELETE", f"/api/sessions/{ended}").status_code == 204


def _end_others(_: Client, member: Client) -> None:
    member.sign_in()
    answer = member.call("DELETE", "/api/sessions", params={"others": True})
    assert answer.status_code == 204


def _end_token(_: Client, member: Client) -> None:
    made = member.call("POST", "/api/tokens", json={"scopes": ["memory:read"]}).json()
    assert _wraps(member.service.settings, member.username)
    assert member.call("DELETE", f"/api/tokens/{made['id']}").status_code == 204


def _remove_key(_: Client, member: Client) -> None:
    keys = member.call("GET", "/api/me/keys").json()["items"]
    ended = next(key["id"] for key in keys if key["current"])
    member.sign_in()
    assert member.call("DELETE", f"/api/me/keys/{ended}").status_code == 204


def _change_password(_: Client, member: Client) -> None:
    body = {"current_password": PASSWORD, "new_password": NEW}
    assert member.call("PUT", "/api/me/password", json=body).status_code == 200


def _renew_code(_: Client, member: Client) -> None:
    answer = member.call("POST", "/api/me/recovery-code", json={"password": PASSWORD})
    assert answer.status_code == 200


def _rotate(_: Client, member: Client) -> None:
    answer = member.call("POST", "/api/me/rotate", json={"password": PASSWORD})
    assert answer.status_code == 200


def _recover(_: Client, member: Client) -> None:
    answer = member.call("POST", "/api/me/recovery-code", json={"password": PASSWORD})
    body = {"username": member.username, "recovery_code": answer.json()["recovery_code"]}
    body["new_password"] = NEW
    assert member.service.client.post("/api/recovery", json=body).status_code == 200


def _deactivate(admin: Client, member: Client) -> None:
    path = f"/api/admin/users/{member.user_id}"
    assert admin.call("PATCH", path, json={"active": False}).status_code == 200


def _erase(admin: Client, member: Client) -> None:
    assert admin.call("DELETE", f"/api/admin/users/{member.user_id}").status_code == 200


def _reset_plain(admin: Client, member: Client) -> None:
    path = f"/api/admin/users/{member.user_id}"
    assert admin.call("PATCH", path, json={"password": NEW}).status_code == 200


SEALED: Final = (
    _sign_out,
    _end_session,
    _end_others,
    _end_token,
    _remove_key,
    _change_password,
    _renew_code,
    _rotate,
    _recover,
    _deactivate,
    _erase,
)
PLAIN: Final = (_change_password, _reset_plain, _erase)
Ending = Callable[[Client, Client], None]


def _require_gone(admin: Client, member: Client, end: Ending) -> None:
    settings = admin.service.settings
    before = _wraps(settings, member.username)
    assert _found(settings.database, before), "the search finds what is there"
    end(admin, member)
    destroyed = before - _wraps(settings, member.username)
    if end is not _end_token:
        assert destroyed
    assert _found(settings.database, destroyed) == []


@pytest.mark.parametrize("end", SEALED, ids=lambda end: end.__name__.strip("_"))
def test_a_destroyed_wrap_is_found_nowhere_when_it_is_answered(admin: Client, end: Ending) -> None:
    """Neither in the registry's table nor in its free pages or log."""
    member = add_member(admin, f"sealed{end.__name__}")
    own_password(member)
    _require_gone(admin, member, end)


@pytest.mark.parametrize("end", PLAIN, ids=lambda end: end.__name__.strip("_"))
def test_a_replaced_verifier_is_found_nowhere_when_it_is_answered(
    admin: Client, end: Ending
) -> None:
    """A cleartext member's old password cannot be guessed at from the registry's remains."""
    _require_gone(admin, add_member(admin, f"plain{end.__name__}", encrypted=False), end)


def test_a_token_s_wrap_goes_with_the_token(admin: Client) -> None:
    """The slot that a token had is destroyed with it."""
    member = add_member(admin, "tokens")
    settings = admin.service.settings
    before = _wraps(settings, "tokens")
    made = member.call("POST", "/api/tokens", json={"scopes": ["memory:read"]}).json()
    (wrap,) = _wraps(settings, "tokens") - before
    assert _found(settings.database, {wrap})
    assert member.call("DELETE", f"/api/tokens/{made['id']}").status_code == 204
    assert _found(settings.database, {wrap}) == []


@pytest.mark.long
def test_many_wraps_made_and_destroyed_leave_none_behind(admin: Client) -> None:
    """However the registry's pages were split and merged meanwhile, no copy of a wrap stays."""
    member = add_member(admin, "many")
    settings = admin.service.settings
    (count,) = chosen([40], [400])
    seen: set[bytes] = set()
    for _ in range(3):
        sessions = [member.service.sign_in("many") for _ in range(count)]
        seen |= _wraps(settings, "many")
        for headers in sessions[::2]:
            ended = member.service.client.delete("/api/session", headers=headers)
            assert ended.status_code == 204
        answer = member.call("DELETE", "/api/sessions", params={"others": True})
        assert answer.status_code == 204
    destroyed = seen - _wraps(settings, "many")
    assert len(destroyed) >= 3 * count
    assert _found(settings.database, destroyed) == []


def _keep_copy(member: Client, folder: Path) -> tuple[Settings, AccountRow]:
    """What somebody who copied registry and file keeps: a root of their own, and the row."""
    assert member.call("POST", "/api/me/lock").status_code == 204
    settings = member.service.settings
    row = members(settings)[member.username]
    copy = settings.model_copy(update={"root": folder})
    copy.database.mkdir()
    shutil.copyfile(settings.user_file(row.id), copy.user_file(row.id))
    return copy, row


def test_who_created_an_account_does_not_keep_its_key(admin: Client, tmp_path: Path) -> None:
    """After the first change, the given password and an old registry do not open the new file."""
    assert new_user(admin, "taken").status_code == 201
    member = Client(admin.service, "taken", PASSWORD, admin.service.sign_in("taken"))
    member.put(NOTE, "before").raise_for_status()
    copy, old_row = _keep_copy(member, tmp_path)
    settings = admin.service.settings
    assert opens(settings, old_row, PASSWORD)
    member.put(NOTE, "after").raise_for_status()
    _change_password(admin, member)
    assert not opens(settings, old_row, PASSWORD)
    assert not opens(settings, members(settings)["taken"], PASSWORD)
    assert opens(settings, members(settings)["taken"], NEW)
    # What SECURITY.md says of old copies: the old file under the old secret is still open.
    assert opens(copy, old_row, PASSWORD)
    assert not opens(copy, old_row, NEW)


def test_an_old_registry_with_an_old_secret_opens_the_file_until_its_key_is_changed(
    admin: Client, tmp_path: Path
) -> None:
    """A change of password alone does not take back what a copy of the registry gave away."""
    member = add_member(admin, "copied")
    own_password(member)
    _, old_row = _keep_copy(member, tmp_path)
    settings = admin.service.settings
    _change_password(admin, member)
    assert opens(settings, old_row, PASSWORD)
    answer = member.call("POST", "/api/me/rotate", json={"password": NEW})
    assert answer.status_code == 200, answer.text
    assert not opens(settings, old_row, PASSWORD)
    assert opens(settings, members(settings)["copied"], NEW)
