"""Flags: switches of the whole instance, each declared here; an absent row is the default.

They are read from the database, so a change holds at once, in every process.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, Literal, NamedTuple, TypeGuard

from app.db.registry import statements as sql
from app.db.registry.rows import FlagChangeRow, FlagRow, FlagValueRow
from app.db.registry.store import RegistryReader, RegistryTransactor
from app.errors.callers import NotFoundError
from app.errors.inputs import InvalidInputError

Name = Literal["invitations", "jobs_outside", "webhooks"]
Value = bool | int | str
"""What a flag can be; each has one of these types, that of its default."""
FlagChange = FlagChangeRow
_LAST: Final = "~"
"""Comes after every id."""
TEXT_MAX: Final = 1_000
"""Characters of a flag that is a text."""


@dataclass(frozen=True, slots=True)
class Flag:
    """One declared switch."""

    name: Name
    default: Value
    about: str
    """What it does, for people."""


FLAGS: Final[Mapping[str, Flag]] = {
    flag.name: flag
    for flag in (
        Flag(
            "invitations",
            default=True,
            about="Whether people are invited, and may accept an invitation.",
        ),
        Flag(
            "jobs_outside",
            default=True,
            about="Whether programs outside are given jobs; what waits, waits on.",
        ),
        Flag(
            "webhooks",
            default=True,
            about="Whether webhooks are sent to; what is owed is kept and sent later.",
        ),
    )
}
"""Every flag there is."""


class State(NamedTuple):
    """A flag as it stands."""

    flag: Flag
    value: Value
    changed_at: int | None
    """Unix milliseconds; None while it is the default."""
    version: int
    """Of each change another; none comes back when a flag is its default again."""

    @property
    def is_default(self) -> bool:
        """Whether nobody set it."""
        return self.changed_at is None


def require_declared(name: str) -> Flag:
    """Refuse a name that no flag has.

    Returns:
        The flag.

    Raises:
        NotFoundError: There is none.
    """
    flag = FLAGS.get(name)
    if flag is None:
        raise NotFoundError
    return flag


def get(reader: RegistryReader, name: str) -> State:
    """A flag as it stands.

    Returns:
        It, with the declared default where nobody set it.

    Raises:
        NotFoundError: There is no such flag.
    """
    flag = require_declared(name)
    row = reader.one(sql.FIND_FLAG, name=name)
    return _state(reader, flag, row)


def list_all(reader: RegistryReader) -> list[State]:
    """Every declared flag as it stands, by name; rows of flags that are no more are left out."""
    rows = {row.name: row for row in reader.all(sql.LIST_FLAGS)}
    return [_state(reader, flag, rows.get(name)) for name, flag in sorted(FLAGS.items())]


def value_of(flag: Flag, text: str | None) -> Value:
    """What a flag is.

    Args:
        flag: Which.
        text: Its row's JSON; None without a row.

    Returns:
        Its value; the default without one, and for one of a type that it had once.
    """
    value = None if text is None else json.loads(text)
    return value if _fits(value, flag) else flag.default


def _state(reader: RegistryReader, flag: Flag, row: FlagValueRow | FlagRow | None) -> State:
    count = reader.one(sql.COUNT_FLAG_CHANGES, name=flag.name)
    version = 1 if count is None else 1 + count.value
    if row is None or not _fits(json.loads(row.value), flag):
        return State(flag, flag.default, None, version)
    return State(flag, value_of(flag, row.value), row.updated_at, version)


def set_value(tx: RegistryTransactor, name: str, value: Value, operator: str) -> State:
    """Set a flag; to what it is already changes nothing.

    Args:
        tx: The registry.
        name: Which.
        value: Of the type that its default has.
        operator: Id of the user, or `box`.

    Returns:
        It.

    Raises:
        NotFoundError: There is no such flag.
        InvalidInputError: The value is of another type, or too long.
    """
    flag = require_declared(name)
    if not _fits(value, flag) or (isinstance(value, str) and len(value) > TEXT_MAX):
        raise InvalidInputError(field="value")
    before = tx.one(sql.FIND_FLAG, name=name)
    after = json.dumps(value)
    if tx.run(sql.SET_FLAG, name=name, value=after, now=tx.now_ms):
        _record(tx, name, None if before is None else before.value, after, operator)
    return get(tx, name)


def unset(tx: RegistryTransactor, name: str, operator: str) -> State:
    """Have a flag be its default again; one that is changes nothing.

    Returns:
        It.

    Raises:
        NotFoundError: There is no such flag.
    """
    require_declared(name)
    before = tx.one(sql.FIND_FLAG, name=name)
    if before is not None and tx.run(sql.REMOVE_FLAG, name=name):
        _record(tx, name, before.value, None, operator)
    return get(tx, name)


def list_changes(
    reader: RegistryReader, name: str, before: str | None, limit: int
) -> list[FlagChange]:
    """Changes of a flag, newest first.

    Args:
        reader: The registry.
        name: Which.
        before: Id of the change that ended the page before; None for the newest.
        limit: How many at most.

    Returns:
        The rows.

    Raises:
        NotFoundError: There is no such flag.
    """
    require_declared(name)
    return reader.all(sql.LIST_FLAG_CHANGES, name=name, before_id=before or _LAST, limit=limit)


def _fits(value: object, flag: Flag) -> TypeGuard[Value]:
    # By the exact type: True is an int as well.
    return type(value) is type(flag.default)


def _record(
    tx: RegistryTransactor, name: str, before: str | None, after: str | None, operator: str
) -> None:
    tx.run(
        sql.ADD_FLAG_CHANGE,
        id=tx.new_id(),
        name=name,
        before=before,
        after=after,
        changed_by=operator,
        now=tx.now_ms,
    )
