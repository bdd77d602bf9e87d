"""Forms shared by requests and answers."""

import re
from typing import Annotated, Any, Final

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    WithJsonSchema,
)
from pydantic_core import PydanticCustomError

from app.clock import Millis, parse_rfc3339, rfc3339
from app.crypto.kdf import PASSWORD_LENGTH_MAX
from app.crypto.passwords import PASSWORD_LENGTH_MIN
from app.ids import NAME_MAX
from app.registry.accounts import Account

LIMIT_MAX: Final = 200
LIMIT_DEFAULT: Final = 50
PASSWORD_CHARS_MAX: Final = 4_096
"""Longer than any password may be typed; a longer one is as wrong as none."""
TEXT_MAX: Final = 1_000
_RFC_3339: Final = re.compile(
    r"[0-9]{4}-[0-9]{2}-[0-9]{2}[Tt ][0-9]{2}:[0-9]{2}:[0-9]{2}(\.[0-9]{1,9})?"
    r"([Zz]|[+-][0-9]{2}:[0-9]{2})"
)
_DIGITS: Final = re.compile("[0-9]{1,19}")
_FORBIDDEN_IN_LINE: Final = re.compile("[\0-\x1f\x7f]")


class Body(BaseModel):
    """A JSON body: exact types, no unknown field."""

    model_config = ConfigDict(extra="forbid", strict=True, hide_input_in_errors=True)


class Query(BaseModel):
    """A query: its values are texts, so numbers are read from them."""

    model_config = ConfigDict(extra="forbid", hide_input_in_errors=True)


def refused(kind: str) -> PydanticCustomError:
    """A rule of this program that a field breaks; the answer says the kind alone."""
    return PydanticCustomError(kind, "This cannot be taken here.")


def _no_control(text: str) -> str:
    if _FORBIDDEN_IN_LINE.search(text):
        kind = "control_character"
        raise refused(kind)
    return text


def _no_nul(text: str) -> str:
    if "\0" in text:
        kind = "control_character"
        raise refused(kind)
    return text


def _read_time(value: Any) -> Any:  # noqa: ANN401 - whatever was sent
    if value is None:
        return None
    kind = "time_format"
    if not isinstance(value, str) or not _RFC_3339.fullmatch(value):
        raise refused(kind)
    try:
        return parse_rfc3339(value.upper())
    except ValueError:
        raise refused(kind) from None


def _read_whole(value: Any) -> Any:  # noqa: ANN401 - whatever was sent
    if isinstance(value, str) and not _DIGITS.fullmatch(value):
        kind = "int_parsing"
        raise refused(kind)
    return value


def _none_if_longer(text: str) -> str:
    return text if len(text) <= PASSWORD_CHARS_MAX else ""


Line = Annotated[str, Field(max_length=TEXT_MAX), AfterValidator(_no_control)]
"""One line of text."""
Name = Annotated[str, Field(min_length=1, max_length=200), AfterValidator(_no_control)]
"""A short name that is there."""
DisplayName = Annotated[Line, Field(max_length=200)]
"""A member's name as others see it."""
Text = Annotated[str, AfterValidator(_no_nul)]
"""Text of any length the body allows."""
Password = Annotated[str, AfterValidator(_none_if_longer)]
"""A password as typed; one that nobody can have is empty. The rule for new ones is the bridge's."""
Username = Annotated[str, AfterValidator(_none_if_longer)]
"""A name as typed; one that nobody can have is empty. The rule for new ones is the registry's."""
NewPassword = Annotated[
    Password,
    WithJsonSchema(
        {"type": "string", "minLength": PASSWORD_LENGTH_MIN, "maxLength": PASSWORD_LENGTH_MAX}
    ),
]
"""A password to be; one that breaks the rule is told so by the rule's own code."""
NewUsername = Annotated[
    Username, WithJsonSchema({"type": "string", "minLength": 1, "maxLength": NAME_MAX})
]
"""A name to be; so is one that breaks the rule for names."""
FolderName = Annotated[
    Name, WithJsonSchema({"type": "string", "minLength": 1, "maxLength": NAME_MAX})
]
"""The same of a name that stands in paths."""
Time = Annotated[
    int,
    BeforeValidator(_read_time),
    WithJsonSchema({"type": "string", "format": "date-time"}),
]
"""RFC 3339 outside, Unix milliseconds inside."""
Whole = BeforeValidator(_read_whole)
"""A number in a query: digits alone, where the framework would also read ` 1_0`."""
Limit = Annotated[int, Field(ge=1, le=LIMIT_MAX), Whole]
Path = Annotated[str, Field(max_length=16_384)]
"""A path as typed; what it names is the owner services' to say."""
Identifier = Annotated[str, Field(min_length=1, max_length=64), AfterValidator(_no_control)]


def time_or_none(at: int | None) -> str | None:
    """A time as every answer writes it."""
    return None if at is None else rfc3339(Millis(at))


class PageQuery(Query):
    """A page of a list."""

    cursor: str | None = None
    limit: Limit = LIMIT_DEFAULT


def page(items: list[Any], next_cursor: str | None) -> dict[str, Any]:
    """A list as every answer gives it."""
    return {"items": items, "next_cursor": next_cursor}


def user_summary(row: Account) -> dict[str, Any]:
    """A member as their own session shows them."""
    return {
        "id": row.id,
        "username": row.username,
        "display_name": row.display_name,
        "role_id": row.role_id,
        "encrypted": bool(row.encrypted),
        "password_is_temporary": bool(row.password_is_temporary),
        "locale": row.locale,
    }


def user_profile(row: Account) -> dict[str, Any]:
    """A member as administrators see them: never a wrap, a salt or a verifier."""
    return {
        **user_summary(row),
        "active": bool(row.active),
        "birthdate": row.birthdate,
        "sex": row.sex,
        "notes": row.notes,
        "quota_bytes": row.quota_bytes,
        "store_state": row.store_state,
        "store_bytes": row.store_bytes,
        "last_unlocked_at": time_or_none(row.last_unlocked_at),
        "created_at": time_or_none(row.created_at),
        "updated_at": time_or_none(row.updated_at),
        "version": row.version,
    }
