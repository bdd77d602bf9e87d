"""The operator's commands: one table, for the control socket and the command line alike."""

from collections.abc import Mapping
from typing import Annotated, Final

from pydantic import Field, JsonValue

from app.bridge import archive_commands
from app.bridge.accounts import erasure, members
from app.bridge.accounts.signup import NewMember, sign_up
from app.bridge.arguments import (
    PASSWORD_CHARS_MAX,
    Answer,
    ArgumentError,
    Arguments,
    Command,
    Line,
    Nothing,
    OneUser,
    command,
    find_user,
)
from app.bridge.callers import Call
from app.bridge.looks import Look, RegistryLook
from app.bridge.maintenance import audit, fleet, half_done
from app.bridge.notifications import delivery_commands
from app.bridge.strongroom import Strongroom
from app.bridge.work import job_commands, schedule_commands
from app.clock import Millis, rfc3339
from app.db.context import Actor
from app.db.registry import statements as sql
from app.db.registry.rows import AccountRow
from app.db.registry.store import RegistryReader
from app.errors.inputs import InvalidInputError
from app.ids import RoleId
from app.registry import accounts
from app.settings import Settings

_NETWORK: Final = "local"
"""The operator's place among the networks of the throttle and the derivations."""


class _NewUser(Arguments):
    """Who is to become a member, with a password that the operator chose."""

    username: Line
    password: Annotated[str, Field(max_length=PASSWORD_CHARS_MAX, repr=False)]
    role_id: Line = "member"
    encrypted: bool = True
    display_name: Line | None = None
    is_temporary: bool = True


def describe(row: AccountRow) -> Answer:
    """A member as the operator sees them; times in RFC 3339, null where there is none yet."""
    opened = row.last_unlocked_at
    return {
        "id": row.id,
        "username": row.username,
        "display_name": row.display_name,
        "role_id": row.role_id,
        "encrypted": bool(row.encrypted),
        "password_is_temporary": bool(row.password_is_temporary),
        "active": bool(row.active),
        "store_state": row.store_state,
        "store_bytes": row.store_bytes,
        "last_unlocked_at": None if opened is None else rfc3339(Millis(opened)),
        "created_at": rfc3339(Millis(row.created_at)),
    }


def _list_users(reader: RegistryReader, _: Nothing) -> Answer:
    """Every member, in the order of their making."""
    return {"users": [describe(row) for row in reader.all(sql.LIST_ALL_ACCOUNTS)]}


def _who(action: str) -> tuple[Call, Actor]:
    return Call(action, _NETWORK), Actor(kind="system", sub="cli", action=action)


async def _add_user(room: Strongroom, new: _NewUser) -> Answer:
    """Make a member; their first change of a temporary password makes the recovery code."""
    registry = room.stores.registry
    try:
        await registry.read(lambda reader: accounts.require_role(reader, new.role_id))
    except InvalidInputError as error:
        reason = "role_id: There is no such role."
        raise ArgumentError(reason) from error
    member = NewMember(
        username=new.username,
        password=new.password,
        role_id=RoleId(new.role_id),
        display_name=new.display_name,
        encrypted=new.encrypted,
        is_temporary=new.is_temporary,
    )
    made = await sign_up(room, member, *_who("user.add"), lambda _tx: None)
    # There is somebody now, so set-up is over, and its token opens nothing any more.
    token = room.settings.setup_token_file
    await room.stores.on_thread(lambda: token.unlink(missing_ok=True))
    return {"user": describe(made.account), "recovery_code": made.recovery_code}


async def _deactivate_user(room: Strongroom, one: OneUser) -> Answer:
    """Close a member's account: sessions, tokens and their slots end, the store is let go."""
    account = await find_user(room, one.user)
    if not account.active:
        return {"user": describe(account)}
    _, actor = _who("user.deactivate")
    await members.deactivate(room, account.id, actor)
    return {"user": describe(await find_user(room, account.id))}


async def _erase_user(room: Strongroom, one: OneUser) -> Answer:
    account = await find_user(room, one.user)
    receipt = await erasure.erase(room, account.id, *_who("user.erase"))
    return {
        "receipt": {
            "id": receipt.id,
            "user_id": receipt.user_id,
            "erased_at": rfc3339(receipt.erased_at),
            "file_bytes": receipt.file_bytes,
        }
    }


async def _lock(room: Strongroom, one: OneUser) -> Answer:
    account = await find_user(room, one.user)
    _, actor = _who("lock")
    await members.lock_member(room, account.id, actor)
    return {"user": describe(await find_user(room, account.id))}


COMMANDS: Final[Mapping[str, Command]] = {
    "user.add": command(_NewUser, _add_user),
    "user.list": RegistryLook(Nothing, _list_users),
    "user.deactivate": command(OneUser, _deactivate_user),
    "user.erase": command(OneUser, _erase_user),
    "lock": command(OneUser, _lock),
    **archive_commands.COMMANDS,
    **audit.COMMANDS,
    **fleet.COMMANDS,
    **half_done.COMMANDS,
    **job_commands.COMMANDS,
    **delivery_commands.COMMANDS,
    **schedule_commands.COMMANDS,
}
"""Every command by its name."""
LOOKS: Final[Mapping[str, Look]] = {
    name: each for name, each in COMMANDS.items() if isinstance(each, Look)
}
"""Those that only read."""


async def perform(room: Strongroom, name: str, arguments: Mapping[str, JsonValue]) -> Answer:
    """Do what a command says.

    Args:
        room: The running service.
        name: One of COMMANDS.
        arguments: Its arguments by name.

    Returns:
        What JSON can hold.

    Raises:
        ArgumentError: No such command, or it cannot take these.
        StrongroomError: What stands in the way; then nothing was changed.
    """
    found = COMMANDS.get(name)
    if found is None:
        reason = "There is no such command."
        raise ArgumentError(reason)
    return await found(room, arguments)


def look(settings: Settings, name: str, arguments: Mapping[str, JsonValue]) -> Answer:
    """Do a command that only reads, from outside: no server is needed, and nothing is prepared.

    Args:
        settings: Of the root.
        name: One of LOOKS.
        arguments: Its arguments by name.

    Returns:
        What JSON can hold.

    Raises:
        ArgumentError: It cannot take these.
        UnreadableRootError: There is no root, or not this program's to read.
        StoreLockedError: What is asked for is under a key.
        StrongroomError: What else stands in the way.
    """
    return LOOKS[name].from_outside(settings, arguments)
