"""The first administrator: made by whoever reads `database/setup.token`."""

import contextlib
import hmac
from pathlib import Path
from typing import Final

from app.bridge import secret_files
from app.bridge.accounts.signup import NewMember, SignedUp, sign_up
from app.bridge.callers import Call
from app.bridge.strongroom import Strongroom, anonymous
from app.crypto import tokens
from app.db.registry import statements as sql
from app.db.registry.store import RegistryReader, RegistryTransactor
from app.errors.callers import InvalidCredentialsError, TooManyAttemptsError
from app.errors.conflicts import AlreadySetUpError
from app.ids import new_uuid7

TRIES_MAX: Final = 10
_TRIES: Final = "setup_tries"
_RETRY_AFTER_S: Final = 3_600


def write_token(path: Path, now_ms: int) -> None:
    """Put a new token into its file, 0600; the one before it is void."""
    text = tokens.mint("setup", new_uuid7(now_ms)).text()
    secret_files.write_new(path, text).replace(path)


def _read_token(path: Path) -> str:
    try:
        return path.read_text("ascii").strip()
    except (OSError, ValueError):
        return ""


def _count(reader: RegistryReader) -> int:
    row = reader.one(sql.COUNT_ACCOUNTS)
    return row.value if row else 0


def _require_nobody(reader: RegistryReader) -> None:
    if _count(reader):
        raise AlreadySetUpError


async def require_token(room: Strongroom, presented: str, call: Call) -> None:
    """Judge a setup token, before anything else of the request.

    Raises:
        AlreadySetUpError: There is an administrator already.
        InvalidCredentialsError: It is not the token.
        TooManyAttemptsError: Ten were wrong; a restart makes a new token.
    """
    registry = room.stores.registry
    await registry.read(_require_tries_left)
    path = room.settings.setup_token_file
    wanted = await room.stores.on_thread(lambda: _read_token(path))
    given = presented.encode("utf-8", "surrogatepass")
    if wanted and hmac.compare_digest(given, wanted.encode()):
        return

    await registry.write(_count_try, anonymous(call))
    raise InvalidCredentialsError


def _require_tries_left(reader: RegistryReader) -> int:
    """How many wrong tries there were, if another is allowed."""
    _require_nobody(reader)
    row = reader.one(sql.FIND_CONFIG, key=_TRIES)
    tries = int(row.value) if row else 0
    if tries >= TRIES_MAX:
        raise TooManyAttemptsError(_RETRY_AFTER_S)
    return tries


def _count_try(tx: RegistryTransactor) -> None:
    tries = _require_tries_left(tx) + 1
    tx.run(sql.SET_CONFIG, key=_TRIES, value=str(tries), now=tx.now_ms)


async def set_up(room: Strongroom, new: NewMember, call: Call) -> SignedUp:
    """Make the first administrator; `require_token` has judged the caller.

    Returns:
        The administrator, and their recovery code.

    Raises:
        AlreadySetUpError: Somebody else was first.
    """
    path = room.settings.setup_token_file
    # Judged in the transaction that makes the row: of two callers with the right token one
    # finds nobody, the other somebody. From then on the token opens nothing; its file goes
    # now, or else with the janitor, and must not cost the answer with the recovery code.
    made = await sign_up(room, new, call, anonymous(call), _require_nobody)
    with contextlib.suppress(OSError):
        await room.stores.on_thread(lambda: path.unlink(missing_ok=True))
    room.reach("set_up.token_removed")
    return made


def reset_tries(tx: RegistryTransactor) -> None:
    """Ten more tries, with a new token."""
    tx.run(sql.SET_CONFIG, key=_TRIES, value="0", now=tx.now_ms)
