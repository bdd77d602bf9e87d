"""The operator's commands: one table, for the control socket and the command line alike."""

from collections.abc import Awaitable, Callable, Mapping
from typing import Annotated, Final, TypeVar

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, JsonValue, ValidationError
from typing_extensions import override

from app.bridge import erasure, members
from app.bridge.callers import Call
from app.bridge.signup import NewMember, sign_up
from app.bridge.strongroom import Strongroom
from app.clock import Millis, rfc3339
from app.db.context import Actor
from app.db.registry import statements as sql
from app.db.registry.rows import AccountRow
from app.db.registry.store import RegistryReader
from app.errors import InvalidInputError, NotFoundError
from app.ids import RoleId, is_uuid
from app.registry import accounts

Answer = dict[str, JsonValue]
Command = Callable[[Strongroom, Mapping[str, JsonValue]], Awaitable[Answer]]
"""Does one thing, with the arguments it was given by name."""
ArgumentsT = TypeVar("ArgumentsT", bound="_Arguments")

_NETWORK: Final = "local"
"""The operator's place among the networks of the throttle and the derivations."""
_LINE_MAX: Final = 200
_PASSWORD_CHARS_MAX: Final = 4_096
"""Longer than any password may be; a longer one is refused unread."""


class ArgumentError(InvalidInputError):
    """The command cannot take its arguments."""

    def __init__(self, reason: str) -> None:
        super().__init__()
        self.reason = reason
        """Which, and why, for the operator; nothing of what was given."""

    @override
    def __str__(self) -> str:
        return f"{type(self).__doc__} {self.reason}"


def _printable(text: str) -> str:
    if not text.isprintable():
        message = "no control characters"
        raise ValueError(message)
    return text


_Line = Annotated[str, Field(max_length=_LINE_MAX), AfterValidator(_printable)]


class _Arguments(BaseModel):
    """Exact types, no unknown name."""

    model_config = ConfigDict(extra="forbid", frozen=True, hide_input_in_errors=True, strict=True)


class _Nothing(_Arguments):
    """No arguments."""


class _NewUser(_Arguments):
    """Who is to become a member, with a password that the operator chose."""

    username: _Line
    password: Annotated[str, Field(max_length=_PASSWORD_CHARS_MAX, repr=False)]
    role_id: _Line = "member"
    encrypted: bool = True
    display_name: _Line | None = None
    is_temporary: bool = True


class _OneUser(_Arguments):
    """One member, by name or id."""

    user: _Line


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


def describe_all(reader: RegistryReader) -> Answer:
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


async def _list_users(room: Strongroom, _: _Nothing) -> Answer:
    return await room.stores.registry.read(describe_all)


async def _deactivate_user(room: Strongroom, one: _OneUser) -> Answer:
    """Close a member's account: sessions, tokens and their slots end, the store is let go."""
    account = await _find(room, one.user)
    if not account.active:
        return {"user": describe(account)}
    _, actor = _who("user.deactivate")
    await members.deactivate(room, account.id, actor)
    return {"user": describe(await _find(room, account.id))}


async def _erase_user(room: Strongroom, one: _OneUser) -> Answer:
    account = await _find(room, one.user)
    receipt = await erasure.erase(room, account.id, *_who("user.erase"))
    return {
        "receipt": {
            "id": receipt.id,
            "user_id": receipt.user_id,
            "erased_at": rfc3339(receipt.erased_at),
            "file_bytes": receipt.file_bytes,
        }
    }


async def _lock(room: Strongroom, one: _OneUser) -> Answer:
    account = await _find(room, one.user)
    _, actor = _who("lock")
    await members.lock_member(room, account.id, actor)
    return {"user": describe(await _find(room, account.id))}


async def _find(room: Strongroom, user: str) -> AccountRow:
    def find(reader: RegistryReader) -> AccountRow:
        # What looks like an id is none of the names: a member may not pass for another.
        if is_uuid(user):
            return accounts.get(reader, user)
        account = accounts.find_by_name(reader, user)
        if account is None:
            raise NotFoundError
        return account

    return await room.stores.registry.read(find)


def _command(
    model: type[ArgumentsT], work: Callable[[Strongroom, ArgumentsT], Awaitable[Answer]]
) -> Command:
    async def run(room: Strongroom, arguments: Mapping[str, JsonValue]) -> Answer:
        return await work(room, _read(model, arguments))

    return run


def _read(model: type[ArgumentsT], arguments: Mapping[str, JsonValue]) -> ArgumentsT:
    try:
        return model.model_validate(arguments)
    except ValidationError as error:
        faults = sorted(
            f"{fault['loc'][0]}: {fault['msg']}."
            if fault["loc"][0] in model.model_fields
            else "One of them is unknown."
            for fault in error.errors()
        )
        raise ArgumentError(" ".join(faults)) from None


COMMANDS: Final[Mapping[str, Command]] = {
    "user.add": _command(_NewUser, _add_user),
    "user.list": _command(_Nothing, _list_users),
    "user.deactivate": _command(_OneUser, _deactivate_user),
    "user.erase": _command(_OneUser, _erase_user),
    "lock": _command(_OneUser, _lock),
}
"""Every command by its name."""


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
    command = COMMANDS.get(name)
    if command is None:
        reason = "There is no such command."
        raise ArgumentError(reason)
    return await command(room, arguments)
