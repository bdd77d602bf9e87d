"""API tokens: for programs and agents, narrower than their maker, and not for ever."""

from dataclasses import dataclass
from typing import Final

from app.bridge.accounts.signin import slot_under
from app.bridge.callers import Call, Caller
from app.bridge.stores import ROTATING
from app.bridge.strongroom import Strongroom
from app.clock import Millis
from app.crypto import tokens
from app.crypto.tokens import Token
from app.db.registry.rows import SessionRow
from app.db.registry.store import RegistryTransactor
from app.errors.callers import InvalidCredentialsError, NotPermittedError
from app.errors.inputs import InvalidInputError
from app.errors.stores import StoreBusyError, StoreLockedError
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
"""Those that reach into the caller's own store, and so need a slot; an agent's `shared:write`
does too, for what it asks to write waits there."""
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

    @property
    def needs_store(self) -> bool:
        """Whether it must be able to open its member's store."""
        waits = self.is_agent and "shared:write" in self.scopes
        return waits or not STORE_SCOPES.isdisjoint(self.scopes)


async def mint(
    room: Strongroom, caller: Caller, new: NewToken, call: Call
) -> tuple[Token, SessionRow]:
    """Make a token; its secret is shown once.

    Returns:
        The token, and its row.

    Raises:
        InvalidInputError: An unknown scope, none, or an end that is past or too far.
        NotPermittedError: `admin` by one who administers nothing.
        StoreLockedError: The caller cannot open their store, and the token is to.
        InvalidCredentialsError: The caller's session or key was ended meanwhile.
        StoreBusyError: The caller's key is being changed: this token would end with it.
    """
    caller.require_human()
    now = room.clock()
    ends_at = _end_of(room, new, now)
    token = tokens.mint("token", new_uuid7(now))
    needs_store = caller.account.encrypted and new.needs_store
    slot = None
    if needs_store:
        dek = caller.take_key()
        dek_id = caller.account.dek_id
        if dek is None or dek_id is None:
            raise StoreLockedError
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
        # A session that was ended meanwhile must not live on in a token, and a change of
        # key would leave one that opens nothing.
        sessions.require_live(tx, caller.user_id, caller.session_id)
        account = accounts.get(tx, caller.user_id)
        if not accounts.may_sign_in(account) or account.dek_id != caller.account.dek_id:
            raise InvalidCredentialsError
        if account.store_state == ROTATING:
            raise StoreBusyError
        if "admin" in new.scopes and not roles.administers(tx, account.role_id):
            raise NotPermittedError
        sessions.add(tx, session)
        return sessions.require_live(tx, caller.user_id, session.id)

    return token, await room.stores.registry.write(write, caller.actor(call))


def _end_of(room: Strongroom, new: NewToken, now: Millis) -> Millis:
    """When the token ends, if it can be made at all."""
    ends_at = new.expires_at or Millis(now + room.settings.token_days * _DAY_MS)
    if not now < ends_at <= now + room.settings.token_days_max * _DAY_MS:
        raise InvalidInputError(field="expires_at")
    if not new.scopes or not set(new.scopes) <= set(SCOPES):
        raise InvalidInputError(field="scopes")
    return ends_at
