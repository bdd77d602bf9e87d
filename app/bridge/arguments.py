"""The operator's commands as forms: which arguments each takes, and whom they speak of."""

from collections.abc import Awaitable, Callable, Mapping
from typing import Annotated, Final, TypeVar

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, JsonValue, ValidationError
from typing_extensions import override

from app.bridge.strongroom import Strongroom
from app.db.registry.rows import AccountRow
from app.db.registry.store import RegistryReader
from app.errors.callers import NotFoundError
from app.errors.inputs import InvalidInputError
from app.ids import is_uuid
from app.registry import accounts

Answer = dict[str, JsonValue]
Command = Callable[[Strongroom, Mapping[str, JsonValue]], Awaitable[Answer]]
"""Does one thing, with the arguments it was given by name."""
ArgumentsT = TypeVar("ArgumentsT", bound="Arguments")

_LINE_MAX: Final = 200
PASSWORD_CHARS_MAX: Final = 4_096
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


Line = Annotated[str, Field(max_length=_LINE_MAX), AfterValidator(_printable)]


class Arguments(BaseModel):
    """Exact types, no unknown name."""

    model_config = ConfigDict(extra="forbid", frozen=True, hide_input_in_errors=True, strict=True)


class Nothing(Arguments):
    """No arguments."""


class OneUser(Arguments):
    """One member, by name or id."""

    user: Line


class InHome(Arguments):
    """Where something is: `user` is a member's name or id; without it the group's is meant."""

    user: Line | None = None


async def find_user(room: Strongroom, user: str) -> AccountRow:
    """A member by name or id.

    Returns:
        Their row.

    Raises:
        NotFoundError: There is none.
    """
    return await room.stores.registry.read(lambda reader: read_user(reader, user))


def read_user(reader: RegistryReader, user: str) -> AccountRow:
    """The same, of a registry that is open.

    Returns:
        Their row.

    Raises:
        NotFoundError: There is none.
    """
    # What looks like an id is none of the names: a member may not pass for another.
    if is_uuid(user):
        return accounts.get(reader, user)
    account = accounts.find_by_name(reader, user)
    if account is None:
        raise NotFoundError
    return account


def command(
    model: type[ArgumentsT], work: Callable[[Strongroom, ArgumentsT], Awaitable[Answer]]
) -> Command:
    """A command of its form and its work.

    Args:
        model: What its arguments are.
        work: Does it.

    Returns:
        The command, which raises ArgumentError for any other arguments.
    """

    async def run(room: Strongroom, arguments: Mapping[str, JsonValue]) -> Answer:
        return await work(room, parse(model, arguments))

    return run


def parse(model: type[ArgumentsT], arguments: Mapping[str, JsonValue]) -> ArgumentsT:
    """A command's arguments in their form.

    Returns:
        They.

    Raises:
        ArgumentError: They are others.
    """
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
