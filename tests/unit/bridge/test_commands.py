"""The operator's commands."""

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest
from pydantic import JsonValue

from app.bridge import commands
from app.bridge.accounts import setup, signin
from app.bridge.arguments import ArgumentError
from app.bridge.strongroom import Strongroom
from app.errors.callers import InvalidCredentialsError, NotFoundError
from app.errors.conflicts import AlreadySetUpError, LastAdministratorError, UsernameTakenError
from app.errors.inputs import InvalidInputError, WeakPasswordError
from app.errors.stores import StoreLockedError
from app.ids import UserId
from app.runtime import audit
from app.runtime.audit import ChangeFilter
from tests.support.rooms import CALL, PASSWORD, add, open_room, prepared

_ID = "01890000-0000-7000-8000-000000000001"


def _run(root: Path, work: Callable[[Strongroom], Awaitable[None]]) -> None:
    async def run() -> None:
        async with open_room(settings) as room:
            await work(room)

    settings = prepared(root)
    asyncio.run(run())


async def _users(room: Strongroom) -> list[Any]:
    answer = await commands.perform(room, "user.list", {})
    users = answer["users"]
    assert isinstance(users, list)
    return users


def test_the_first_member_ends_set_up(tmp_path: Path) -> None:
    """An administrator made by the operator has a temporary password, and set-up is over."""

    async def work(room: Strongroom) -> None:
        token = room.settings.setup_token_file
        text = token.read_text().strip()
        answer = await commands.perform(
            room,
            "user.add",
            {"username": "ana", "password": PASSWORD, "role_id": "admin", "display_name": "Ana"},
        )
        assert answer["recovery_code"] is None
        (user,) = await _users(room)
        assert user == answer["user"]
        shown = (user["username"], user["role_id"], user["display_name"], user["encrypted"])
        assert shown == ("ana", "admin", "Ana", True)
        assert user["password_is_temporary"]
        assert not token.exists()
        with pytest.raises(AlreadySetUpError):
            await setup.require_token(room, text, CALL)
        await signin.sign_in(room, "ana", PASSWORD, CALL)

    _run(tmp_path, work)


@pytest.mark.parametrize("encrypted", [True, False], ids=["encrypted", "plain"])
def test_a_password_of_their_own_comes_with_a_recovery_code(
    tmp_path: Path,
    encrypted: bool,  # noqa: FBT001 - a parameter
) -> None:
    """A lasting password gives a code where there is a key, and none for a plain file."""

    async def work(room: Strongroom) -> None:
        new: dict[str, JsonValue] = {"username": "ana", "password": PASSWORD}
        new |= {"is_temporary": False, "encrypted": encrypted}
        answer = await commands.perform(room, "user.add", new)
        assert (answer["recovery_code"] is not None) is encrypted

    _run(tmp_path, work)


_GOOD = {"username": "cyd", "password": PASSWORD}


@pytest.mark.parametrize(
    ("name", "arguments", "kind", "says"),
    [
        pytest.param("fly", {}, ArgumentError, "no such command", id="no such command"),
        pytest.param("user.add", {}, ArgumentError, "password: Field required", id="missing"),
        pytest.param("user.add", _GOOD | {"x-ray": 1}, ArgumentError, "unknown", id="unknown name"),
        pytest.param(
            "user.add", _GOOD | {"encrypted": "no"}, ArgumentError, "encrypted", id="wrong type"
        ),
        pytest.param(
            "user.add", _GOOD | {"role_id": "boss"}, ArgumentError, "such role", id="no such role"
        ),
        pytest.param(
            "user.add", _GOOD | {"display_name": "a\x1b[2J"}, ArgumentError, "control", id="escape"
        ),
        pytest.param(
            "user.add", _GOOD | {"display_name": "\ud800"}, ArgumentError, "", id="surrogate"
        ),
        pytest.param(
            "user.add", _GOOD | {"password": "short"}, WeakPasswordError, "12", id="weak password"
        ),
        pytest.param(
            "user.add",
            _GOOD | {"password": "\udcff" * 20},
            ArgumentError,
            "password: Input should be a valid string",
            id="password of no text",
        ),
        pytest.param(
            "user.add", _GOOD | {"username": "ANA"}, UsernameTakenError, "taken", id="taken name"
        ),
        pytest.param("user.list", {"all": True}, ArgumentError, "unknown", id="list"),
        pytest.param("lock", {"user": "nobody"}, NotFoundError, "", id="nobody's name"),
        pytest.param("lock", {"user": _ID}, NotFoundError, "", id="nobody's id"),
        pytest.param("lock", {"user": ["ana"]}, ArgumentError, "user", id="no text"),
        pytest.param("user.erase", {}, ArgumentError, "user", id="erase whom"),
        pytest.param(
            "user.erase", {"user": "ana"}, LastAdministratorError, "", id="erase the last"
        ),
        pytest.param(
            "user.deactivate", {"user": "ana"}, LastAdministratorError, "", id="close the last"
        ),
    ],
)
def test_what_cannot_be_done_changes_nothing(
    tmp_path: Path, name: str, arguments: dict[str, Any], kind: type[Exception], says: str
) -> None:
    """A refusal says what stands in the way, repeats nothing of what was sent, and is all."""

    async def work(room: Strongroom) -> None:
        await add(room, "ana", "admin")
        before = await _users(room)
        with pytest.raises(kind) as caught:
            await commands.perform(room, name, arguments)
        assert says in str(caught.value)
        assert "x-ray" not in str(caught.value)
        assert PASSWORD not in str(caught.value)
        assert await _users(room) == before
        assert len(list(room.settings.database.glob("*-*.db"))) == 1

    _run(tmp_path, work)


def test_argument_errors_are_invalid_input() -> None:
    """A program that knows `invalid_input` knows them."""
    assert issubclass(ArgumentError, InvalidInputError)
    assert ArgumentError("x").code == "invalid_input"


def test_a_listing_holds_nothing_that_opens_a_store(tmp_path: Path) -> None:
    """Exactly these facts are shown of a member."""

    async def work(room: Strongroom) -> None:
        await add(room, "ana", "admin")
        (user,) = await _users(room)
        assert sorted(user) == [
            "active",
            "created_at",
            "display_name",
            "encrypted",
            "id",
            "last_unlocked_at",
            "password_is_temporary",
            "role_id",
            "store_bytes",
            "store_state",
            "username",
        ]
        assert user["last_unlocked_at"] is None
        await signin.sign_in(room, "ana", PASSWORD, CALL)
        (user,) = await _users(room)
        assert user["last_unlocked_at"].endswith("Z")
        assert user["store_bytes"] > 0

    _run(tmp_path, work)


def test_a_running_service_looks_as_somebody_outside_does(tmp_path: Path) -> None:
    """The same answers, and beside them what is under a key that it has."""

    async def work(room: Strongroom) -> None:
        await add(room, "ana")
        await add(room, "ben", encrypted=False)
        for name in ("user.list", "flags.list", "operations.list", "jobs.list", "breakers.list"):
            seen = await commands.perform(room, name, {})
            assert commands.look(room.settings, name, {}) == seen
        of_ben, of_ana = {"user": "ben"}, {"user": "ana"}
        seen = await commands.perform(room, "deliveries.list", of_ben)
        assert commands.look(room.settings, "deliveries.list", of_ben) == seen
        with pytest.raises(StoreLockedError):
            await commands.perform(room, "jobs.list", of_ana)
        await signin.sign_in(room, "ana", PASSWORD, CALL)
        assert await commands.perform(room, "jobs.list", of_ana) == {"jobs": []}
        with pytest.raises(StoreLockedError):
            commands.look(room.settings, "jobs.list", of_ana)

    _run(tmp_path, work)


def test_deactivation_is_now(tmp_path: Path) -> None:
    """The store is let go, no credential holds any more, the file stays; twice is once."""

    async def work(room: Strongroom) -> None:
        await add(room, "ana", "admin")
        user_id = await add(room, "ben")
        await signin.sign_in(room, "ben", PASSWORD, CALL)
        assert user_id in room.stores.unlocked()
        first = await commands.perform(room, "user.deactivate", {"user": "BEN"})
        again = await commands.perform(room, "user.deactivate", {"user": user_id})
        assert first == again
        user = first["user"]
        assert isinstance(user, dict)
        assert (user["active"], user["store_state"]) == (False, "open")
        assert room.stores.unlocked() == {}
        with pytest.raises(InvalidCredentialsError):
            await signin.sign_in(room, "ben", PASSWORD, CALL)
        assert room.settings.user_file(UserId(user_id)).exists()

    _run(tmp_path, work)


def test_erasure_leaves_a_receipt_and_a_free_name(tmp_path: Path) -> None:
    """File and row are gone, and the name may be used again."""

    async def work(room: Strongroom) -> None:
        user_id = await add(room, "ben")
        answer = await commands.perform(room, "user.erase", {"user": "ben"})
        receipt = answer["receipt"]
        assert isinstance(receipt, dict)
        assert receipt["user_id"] == user_id
        assert receipt["file_bytes"] != 0
        assert not room.settings.user_file(UserId(user_id)).exists()
        assert await _users(room) == []
        assert await add(room, "ben") != user_id

    _run(tmp_path, work)


def test_lock_closes_a_store_until_the_next_credential(tmp_path: Path) -> None:
    """A locked store is unlocked nowhere, and a sign-in opens it again."""

    async def work(room: Strongroom) -> None:
        user_id = await add(room, "ben")
        await signin.sign_in(room, "ben", PASSWORD, CALL)
        await commands.perform(room, "lock", {"user": "ben"})
        assert room.stores.unlocked() == {}
        await signin.sign_in(room, "ben", PASSWORD, CALL)
        assert list(room.stores.unlocked()) == [user_id]

    _run(tmp_path, work)


def test_a_name_that_looks_like_an_id_names_nobody(tmp_path: Path) -> None:
    """Who takes another's id for a name is not meant when that id is said."""

    async def work(room: Strongroom) -> None:
        user_id = await add(room, _ID)
        with pytest.raises(NotFoundError):
            await commands.perform(room, "user.erase", {"user": _ID})
        await commands.perform(room, "user.erase", {"user": user_id})

    _run(tmp_path, work)


def test_what_the_operator_did_is_on_record(tmp_path: Path) -> None:
    """The audit names the command line, and the command."""

    async def work(room: Strongroom) -> None:
        user_id = await add(room, "ben")
        rows = await room.stores.registry.read(
            lambda reader: audit.list_changes(reader, ChangeFilter("user", user_id), None, 1)
        )
        seen = (rows[0].actor_kind, rows[0].actor_sub, rows[0].action)
        assert seen == ("system", "cli", "user.add")

    _run(tmp_path, work)
