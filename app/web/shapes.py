"""Forms shared by requests and answers."""

import base64
import binascii
from typing import Annotated, Any, Final

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field
from pydantic_core import PydanticCustomError

from app.clock import Millis, parse_rfc3339, rfc3339
from app.errors import InvalidInputError
from app.registry.accounts import Account

LIMIT_MAX: Final = 200
LIMIT_DEFAULT: Final = 50
PASSWORD_CHARS_MAX: Final = 4_096
"""Longer than any password may be; a longer one is refused unread."""
TEXT_MAX: Final = 1_000
_DIGITS_MAX: Final = 18


class Body(BaseModel):
    """A JSON body: exact types, no unknown field."""

    model_config = ConfigDict(extra="forbid", strict=True, hide_input_in_errors=True)


class Query(BaseModel):
    """A query: its values are texts, so numbers are read from them."""

    model_config = ConfigDict(extra="forbid", hide_input_in_errors=True)


def _no_control(text: str) -> str:
    if any(ord(char) < 32 or ord(char) == 127 for char in text):  # noqa: PLR2004 - ASCII controls
        raise PydanticCustomError("control_character", "No control characters here.")
    return text


def _no_nul(text: str) -> str:
    if "\0" in text:
        raise PydanticCustomError("control_character", "No NUL here.")
    return text


def _read_time(value: Any) -> Any:  # noqa: ANN401 - whatever was sent
    if value is None:
        return None
    if not isinstance(value, str):
        raise PydanticCustomError("time_type", "A time is needed.")
    try:
        return parse_rfc3339(value)
    except ValueError as error:
        raise PydanticCustomError("time_format", "A time is needed.") from error


Line = Annotated[str, Field(max_length=TEXT_MAX), AfterValidator(_no_control)]
"""One line of text."""
Name = Annotated[str, Field(min_length=1, max_length=200), AfterValidator(_no_control)]
"""A short name that is there."""
Text = Annotated[str, AfterValidator(_no_nul)]
"""Text of any length the body allows."""
Password = Annotated[str, Field(max_length=PASSWORD_CHARS_MAX)]
"""A password as typed; the rule for new ones is the bridge's."""
Username = Annotated[str, Field(max_length=PASSWORD_CHARS_MAX)]
"""A name as typed; the rule for new ones is the registry's."""
Time = Annotated[int, BeforeValidator(_read_time)]
"""RFC 3339 outside, Unix milliseconds inside."""
Limit = Annotated[int, Field(ge=1, le=LIMIT_MAX)]
Path = Annotated[str, Field(max_length=16_384)]
"""A path as typed; what it names is the owner services' to say."""
Identifier = Annotated[str, Field(min_length=1, max_length=64), AfterValidator(_no_control)]


def time_or_none(at: int | None) -> str | None:
    """A time as every answer writes it."""
    return None if at is None else rfc3339(Millis(at))


def encode_cursor(*parts: str | int) -> str:
    """An opaque cursor."""
    text = "\n".join(str(part) for part in parts)
    return base64.urlsafe_b64encode(text.encode()).decode().rstrip("=")


def decode_cursor(text: str | None, parts: int) -> list[str] | None:
    """Its parts; None for none.

    Raises:
        InvalidInputError: It is no cursor of this list.
    """
    if text is None:
        return None
    try:
        decoded = base64.urlsafe_b64decode(text + "=" * (-len(text) % 4)).decode()
    except (binascii.Error, ValueError):
        decoded = ""
    found = decoded.split("\n")
    if len(found) != parts or not all(found):
        raise InvalidInputError
    return found


def decode_number(text: str | None) -> int | None:
    """The number in a cursor of one part; None for none.

    Raises:
        InvalidInputError: It is no cursor of this list.
    """
    parts = decode_cursor(text, 1)
    if parts is None:
        return None
    if not parts[0].isascii() or not parts[0].isdigit() or len(parts[0]) > _DIGITS_MAX:
        raise InvalidInputError
    return int(parts[0])


def decode_pair(text: str | None) -> tuple[int, str] | None:
    """The number and the text in a cursor of two parts; None for none.

    Raises:
        InvalidInputError: It is no cursor of this list.
    """
    parts = decode_cursor(text, 2)
    if parts is None:
        return None
    if not parts[0].isascii() or not parts[0].isdigit() or len(parts[0]) > _DIGITS_MAX:
        raise InvalidInputError
    return int(parts[0]), parts[1]


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
