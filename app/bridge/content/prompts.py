"""Prompts filled in: each placeholder by what is known of its caller, or by what they say."""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, date, datetime
from typing import Final

from app.bridge.callers import Caller
from app.bridge.strongroom import Strongroom
from app.clock import Millis
from app.db.registry.rows import AccountRow
from app.db.registry.store import RegistryReader
from app.errors.inputs import InvalidInputError, PayloadTooLargeError
from app.owner.paths import PROJECTS, SHARED
from app.registry import accounts, projects, shared_folders

KEY: Final = re.compile(r"[A-Za-z0-9_](?:[A-Za-z0-9_.-]{0,62}[A-Za-z0-9_])?")
"""A word such as `USER_PROFILE` or `team-name`; no dash ends it, for that ends the comment."""
PLACEHOLDER: Final = re.compile(rf"<!--[ \t]{{0,16}}({KEY.pattern})[ \t]{{0,16}}-->")
"""One word in a comment of Markdown; a comment of several words is a comment."""
_NONE: Final = "none"

Known = Callable[[RegistryReader, Caller, Millis], str]
"""What a key stands for, read for one caller at one time."""


@dataclass(slots=True)
class Rendered:
    """A prompt, and what was left standing in it."""

    text: str = ""
    unknown: list[str] = field(default_factory=list)
    """Keys that stand for nothing here, in the order of their first place."""
    withheld: list[str] = field(default_factory=list)
    """Keys whose values this credential was not made for."""


async def render(
    room: Strongroom, caller: Caller, template: str, values: Mapping[str, str]
) -> Rendered:
    """Fill in a template, once: a placeholder inside of a value stays text.

    Args:
        room: The service.
        caller: Whose prompt it is.
        template: The text with placeholders.
        values: What further keys stand for.

    Returns:
        The prompt.

    Raises:
        InvalidInputError: A key is none, or the service's own.
        PayloadTooLargeError: It would be longer than `prompt_bytes_max`.
    """
    if any(not KEY.fullmatch(key) or key in KNOWN for key in values):
        raise InvalidInputError(field="values")
    wanted = {match[1] for match in PLACEHOLDER.finditer(template)} & KNOWN.keys()
    withheld = {key for key in wanted if not caller.has_scope(KNOWN[key][0])}
    now = room.clock()

    def read(reader: RegistryReader) -> dict[str, str]:
        return {key: KNOWN[key][1](reader, caller, now) for key in wanted - withheld}

    known = await room.stores.registry.read(read) if wanted - withheld else {}
    bytes_max = room.settings.prompt_bytes_max
    # Off the loop: a template may be long, and full of placeholders.
    return await room.stores.on_thread(
        lambda: fill(template, {**values, **known}, withheld, bytes_max)
    )


def fill(template: str, values: Mapping[str, str], withheld: set[str], bytes_max: int) -> Rendered:
    """Put values in the place of their placeholders, in one pass.

    Args:
        template: The text.
        values: What each key stands for.
        withheld: Keys that are known, and not told.
        bytes_max: Most bytes of UTF-8 that the prompt may have.

    Returns:
        The prompt; a placeholder without a value stands as it was.

    Raises:
        PayloadTooLargeError: It would be longer.
    """
    rendered, parts, at, left = Rendered(), [], 0, bytes_max
    standing: dict[str, bool] = {}
    for match in PLACEHOLDER.finditer(template):
        key = match[1]
        value = values.get(key)
        if value is None:
            standing[key] = key in withheld
            continue
        for part in (template[at : match.start()], value):
            left -= len(part.encode())
            parts.append(part)
        if left < 0:
            raise PayloadTooLargeError
        at = match.end()
    if len(template[at:].encode()) > left:
        raise PayloadTooLargeError
    rendered.text = "".join([*parts, template[at:]])
    rendered.withheld = [key for key, is_known in standing.items() if is_known]
    rendered.unknown = [key for key, is_known in standing.items() if not is_known]
    return rendered


def _profile(reader: RegistryReader, caller: Caller, now: Millis) -> str:
    account = accounts.get(reader, caller.user_id)
    lines = [
        f"Name: {account.display_name or account.username}",
        f"Date of birth: {_born(account, now)}",
        f"Sex: {account.sex or 'not specified'}",
        f"Language: {account.locale or 'not specified'}",
    ]
    if account.notes:
        lines.append(f"Notes: {account.notes}")
    return "\n".join(lines)


def _born(account: AccountRow, now: Millis) -> str:
    if not account.birthdate:
        return "unknown"
    born = date.fromisoformat(account.birthdate)
    today = datetime.fromtimestamp(now / 1000, UTC).date()
    # Whoever was born on 29 February is a year older on 1 March.
    had_birthday = (today.month, today.day) >= (born.month, born.day)
    return f"{account.birthdate} (age {max(0, today.year - born.year - (not had_birthday))})"


def _shared_folders(reader: RegistryReader, caller: Caller, _now: Millis) -> str:
    rows = shared_folders.list_of(reader, caller.user_id)
    lines = [
        _line(row.folder_name, f"{SHARED}/{row.folder_key}", row.can_write, row.description)
        for row in rows
    ]
    return "\n".join(lines) or _NONE


def _projects(reader: RegistryReader, caller: Caller, _now: Millis) -> str:
    rows = projects.list_of(reader, caller.user_id)
    lines = [
        _line(row.name, f"{PROJECTS}/{row.owner_key}/{row.slug}", row.can_write, row.description)
        for row in rows
    ]
    return "\n".join(lines) or _NONE


def _line(name: str, path: str, can_write: int, description: str) -> str:
    may = "read and write" if can_write else "read only"
    return f"- {name}: {path}/ ({may})" + (f". {description}" if description else "")


KNOWN: Final[Mapping[str, tuple[str, Known]]] = {
    "USER_PROFILE": ("account", _profile),
    "SHARED_FOLDERS": ("memory:read", _shared_folders),
    "PROJECTS": ("memory:read", _projects),
}
"""Keys that the service itself knows: the scope that each asks for, and what it stands for."""
