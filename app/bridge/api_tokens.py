"""API tokens: for programs and agents, narrower than their maker, and not for ever."""

from dataclasses import dataclass
from typing import Final

from app.bridge.callers import Call, Caller
from app.bridge.signin import slot_under
from app.bridge.strongroom import Strongroom
from app.clock import Millis
from app.crypto import tokens
from app.crypto.tokens import Token
from app.db.registry import statements as sql
from app.db.registry.rows import SessionRow
from app.db.registry.store import RegistryTransactor
from app.errors import InvalidCredentialsError, InvalidInputError, NotFoundError, NotPermittedError
from app.ids import SessionId, SlotId, new_uuid7
from app.registry import accounts, roles, sessions
from app.registry.sessions import NewSession

SCOPES: Final = (
    "memory:read",
    "memory:write",
    "shared:write",
    "reports:read",
    "reports:write",
    "events:read",
    "jobs:work",
    "chat",
    "secrets",
    "account",
    "admin",
)
STORE_SCOPES: Final = frozenset(SCOPES) - {"shared:write", "account", "admin"}
"""Those that reach into the caller's own store, and so need a slot."""
_DAY_MS: Final = 86_400_000


@dataclass(frozen=True, slots=True)
class NewToken:
    """What an API token is to be."""

    label: str
    scopes: tuple[str, ...]
    agent_id: str | None
    is_agent: bool
    expires_at: Millis | None
    """None for the default life."""


async def mint(
    room: Strongroom, caller: Caller, new: NewToken, call: Call
) -> tuple[Token, SessionRow]:
    """Make a token; its secret is shown once.

    Raises:
        InvalidInputError: An unknown scope, none, or an end that is past or too far.
        NotPermittedError: `admin` by one who administers nothing.
    """
    now = room.clock()
    ends_at = new.expires_at or Millis(now + room.settings.token_days * _DAY_MS)
    if not now < ends_at <= now + room.settings.token_days_max * _DAY_MS:
        raise InvalidInputError
    if not new.scopes or not set(new.scopes) <= set(SCOPES):
        raise InvalidInputError
    if "admin" in new.scopes and not await _administers(room, caller):
        raise NotPermittedError
    token = tokens.mint("token", new_uuid7(now))
    needs_store = caller.account.encrypted and bool(STORE_SCOPES & set(new.scopes))
    slot = None
    if needs_store:
        caller.require_key_way()
        dek = caller.take_key()
        dek_id = caller.account.dek_id
        if dek is None or dek_id is None:
            raise InvalidCredentialsError
        with dek:
            slot = slot_under(
                token,
                dek,
                caller.user_id,
                dek_id,
                SlotId(new_uuid7(now)),
                label=new.label,
                expires_at=ends_at,
            )
    session = NewSession(
        id=SessionId(token.id),
        user_id=caller.user_id,
        kind="token",
        verifier=tokens.verifier(token.secret),
        ends_at=ends_at,
        scopes=tuple(dict.fromkeys(new.scopes)),
        slot=slot,
        needs_store=needs_store,
        agent_id=new.agent_id,
        is_agent=new.is_agent,
        label=new.label,
    )

    def write(tx: RegistryTransactor) -> SessionRow:
        # A change of key meanwhile would leave a token that opens nothing.
        if accounts.get(tx, caller.user_id).dek_id != caller.account.dek_id:
            raise InvalidCredentialsError
        sessions.add(tx, session)
        row = tx.one(sql.FIND_SESSION, user_id=caller.user_id, session_id=session.id)
        if row is None:
            raise NotFoundError
        return row

    return token, await room.stores.registry.write(write, caller.actor(call))


async def _administers(room: Strongroom, caller: Caller) -> bool:
    if caller.role_id == roles.ADMIN:
        return True
    held = await room.stores.registry.read(
        lambda reader: reader.all(sql.LIST_CAPABILITIES, role_id=caller.role_id)
    )
    return bool(held)


