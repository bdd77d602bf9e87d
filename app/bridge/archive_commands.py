"""A member's notes as an archive on this box: the command line's `export` and `import`."""

import contextlib
from collections.abc import AsyncIterator, Iterator, Mapping
from pathlib import Path
from typing import Annotated, Final

from pydantic import AfterValidator, Field

from app.bridge import access
from app.bridge.accounts import revocation, signin
from app.bridge.accounts.signin import Device
from app.bridge.arguments import (
    PASSWORD_CHARS_MAX,
    Answer,
    ArgumentError,
    Command,
    OneUser,
    command,
    find_user,
)
from app.bridge.callers import Call, Caller
from app.bridge.content import archives
from app.bridge.strongroom import Strongroom

_NETWORK: Final = "local"
_PATH_CHARS_MAX: Final = 4_096


def _absolute(text: str) -> str:
    if "\0" in text or not Path(text).is_absolute():
        message = "an absolute path"
        raise ValueError(message)
    return text


class _Archive(OneUser):
    """Whose notes, what proves that they want it, and which file."""

    password: Annotated[str, Field(max_length=PASSWORD_CHARS_MAX, repr=False)]
    path: Annotated[str, Field(max_length=_PATH_CHARS_MAX), AfterValidator(_absolute)]


async def _export(room: Strongroom, asked: _Archive) -> Answer:
    """Write an archive into a new file, for the service's user alone."""
    async with (
        _as_member(room, asked, "export") as (caller, call),
        archives.exported(room, caller, call) as export,
    ):
        with _telling_path():
            await room.stores.on_thread(lambda: export.spool.save(Path(asked.path)))
        return {"notes": export.notes, "size_bytes": export.size_bytes}


async def _import(room: Strongroom, asked: _Archive) -> Answer:
    """Take an archive in, all or nothing."""
    async with _as_member(room, asked, "import") as (caller, call):
        with _telling_path():
            async with archives.found_at(room, caller, Path(asked.path)) as spool:
                done = await archives.take_in(room, caller, call, spool)
        return {"written": done.written, "unchanged": done.unchanged}


@contextlib.asynccontextmanager
async def _as_member(
    room: Strongroom, asked: _Archive, action: str
) -> AsyncIterator[tuple[Caller, Call]]:
    """Be the member for a moment, by their password; the operator's own right is none.

    Yields:
        The session and the call; it is ended with the block.
    """
    call = Call(action, _NETWORK)
    account = await find_user(room, asked.user)
    device = Device(label=f"strongroom {action}")
    made = await signin.sign_in(room, account.username, asked.password, call, device)
    caller = await access.authenticate(room, made.token)
    try:
        yield caller, call
    finally:
        await revocation.sign_out(room, caller, call)


@contextlib.contextmanager
def _telling_path() -> Iterator[None]:
    try:
        yield
    except OSError as error:
        reason = f"path: {error.strerror}."
        raise ArgumentError(reason) from error


COMMANDS: Final[Mapping[str, Command]] = {
    "memory.export": command(_Archive, _export),
    "memory.import": command(_Archive, _import),
}
"""By their names."""
