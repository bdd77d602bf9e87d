"""Who is calling: read anew at each request, from one row."""

import json
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any, Final, TypeVar

from app.bridge.stores import StoreAccount
from app.clock import Millis
from app.crypto import envelope, tokens
from app.crypto.envelope import Binding, UnwrapError
from app.crypto.keys import Key
from app.crypto.tokens import Token
from app.db.context import Actor
from app.db.registry.rows import CredentialRow, QuickCredentialRow
from app.errors.callers import (
    HumanSessionRequiredError,
    InvalidCredentialsError,
    ReauthenticationRequiredError,
)
from app.errors.stores import StoreLockedError
from app.ids import RoleId, SessionId, UserId
from app.registry.sessions import ALL_SCOPES
from app.runtime.idempotency import Once

CredentialT = TypeVar("CredentialT", CredentialRow, QuickCredentialRow)
_HOUR_MS: Final = 3_600_000
TOKEN_KINDS: Final = {"browser": "session", "token": "token"}
"""The kind a session's token text names."""


@dataclass(frozen=True, slots=True)
class Call:
    """One request as the program's record names it; nothing of what was sent."""

    action: str
    """The route's template, `PUT /api/file`, or a command's name."""
    network: str
    """The /24 or /64 it came from."""
    request_id: str | None = None
    trace_id: str | None = None
    once: Once | None = None
    """Goes to the write that decides the request, if it may come twice; None when it may not."""

    def judged(self, judge: Callable[[Any], object] | None) -> "Call":
        """The same, with what must hold still before a kept answer is given again.

        Args:
            judge: Refuses by raising, told the reader; None when nothing must.

        Returns:
            It; the same one when there is nothing to hold.
        """
        if self.once is None or judge is None:
            return self
        return replace(self, once=self.once.judged(judge))


@dataclass(frozen=True, slots=True, repr=False)
class Caller:
    """Whoever sent a credential that holds, and what it lets them do."""

    user_id: UserId
    session_id: SessionId
    kind: str
    """`browser`, a person's session, or `token`."""
    agent_id: str | None
    is_agent: bool
    is_cookie: bool
    scopes: frozenset[str]
    role_id: RoleId
    password_checked_at: int | None
    ends_at: int
    last_seen_at: int
    quota_bytes: int | None
    account: StoreAccount
    token: Token
    slot_id: str | None
    slot_kind: str | None
    wrapped_dek: bytes | None

    @property
    def is_human(self) -> bool:
        """Whether a person made this session with their password."""
        return self.kind == "browser"

    @property
    def author(self) -> str:
        """As notes name it: the user's id, and the agent's behind it."""
        return f"{self.user_id}/{self.agent_id}" if self.agent_id else self.user_id

    def has_scope(self, scope: str) -> bool:
        """Whether the credential was made for this."""
        return covers(self.scopes, scope)

    def require_human(self) -> None:
        """Refuse a token.

        Raises:
            HumanSessionRequiredError: It is one.
        """
        if not self.is_human:
            raise HumanSessionRequiredError

    def require_recent_password(self, now_ms: Millis, seconds: int) -> None:
        """Refuse a session whose password was checked too long ago.

        Raises:
            HumanSessionRequiredError: It is a token.
            ReauthenticationRequiredError: Too long ago.
        """
        self.require_human()
        checked = self.password_checked_at
        if checked is None or checked + seconds * 1000 < now_ms:
            raise ReauthenticationRequiredError

    def require_key_way(self) -> None:
        """Refuse a credential that cannot open its encrypted store by itself.

        Raises:
            StoreLockedError: It was made without a slot; whether the store happens to be
                open makes no difference.
        """
        if self.account.encrypted and self.wrapped_dek is None:
            raise StoreLockedError

    def take_key(self) -> Key | None:
        """Take the data key out of this credential's slot.

        Returns:
            The key, the caller's to zero; None for a plain file.

        Raises:
            StoreLockedError: The credential was made without a slot.
            InvalidCredentialsError: The slot does not open under this secret.
        """
        if not self.account.encrypted:
            return None
        if self.wrapped_dek is None or self.slot_id is None or self.slot_kind is None:
            raise StoreLockedError
        binding = Binding(self.user_id, self.slot_kind, self.slot_id)
        with tokens.slot_kek(self.token) as kek:
            try:
                return envelope.unwrap(kek, self.wrapped_dek, binding)
            except UnwrapError as error:
                raise InvalidCredentialsError from error

    def actor(self, call: Call) -> Actor:
        """The caller as events and audit name them."""
        return Actor(
            kind="human" if self.is_human else "service",
            sub=self.author,
            acting_for=None if self.is_human else self.user_id,
            action=call.action,
            request_id=call.request_id,
            trace_id=call.trace_id,
        )


def require_live(
    row: CredentialT | None, token: Token, now_ms: Millis, cookie_idle_hours: int
) -> CredentialT:
    """Refuse a credential that does not hold, and say nothing more.

    Returns:
        Its row.

    Raises:
        InvalidCredentialsError: Unknown, another's secret, revoked, ended, idle too long,
            its slot destroyed, or its member inactive or being erased.
    """
    if row is None or not tokens.verifier_matches(token.secret, row.verifier):
        raise InvalidCredentialsError
    if (
        TOKEN_KINDS[row.kind] != token.kind
        or row.revoked_at is not None
        or row.ends_at <= now_ms
        or not row.active
        or row.store_state == "erasing"
        or (row.needs_store and row.encrypted and row.wrapped_dek is None)
        or (row.is_cookie and row.last_seen_at + cookie_idle_hours * _HOUR_MS < now_ms)
    ):
        raise InvalidCredentialsError
    return row


@lru_cache
def scopes_of(text: str) -> frozenset[str]:
    """What a credential was made for, from its row's JSON list; few lists are ever made."""
    return frozenset(json.loads(text))


def covers(scopes: frozenset[str], scope: str) -> bool:
    """Whether a credential of these scopes was made for this one."""
    return scope in scopes or ALL_SCOPES in scopes


def judge(
    row: CredentialRow | None, token: Token, now_ms: Millis, cookie_idle_hours: int
) -> Caller:
    """Judge a credential by its row and secret.

    Returns:
        The caller they make.

    Raises:
        InvalidCredentialsError: As `require_live` says.
    """
    row = require_live(row, token, now_ms, cookie_idle_hours)
    return Caller(
        user_id=row.user_id,
        session_id=row.id,
        kind=row.kind,
        agent_id=row.agent_id,
        is_agent=bool(row.is_agent),
        is_cookie=bool(row.is_cookie),
        scopes=scopes_of(row.scopes),
        role_id=row.role_id,
        password_checked_at=row.password_checked_at,
        ends_at=row.ends_at,
        last_seen_at=row.last_seen_at,
        quota_bytes=row.quota_bytes,
        account=StoreAccount(
            user_id=row.user_id,
            encrypted=bool(row.encrypted),
            dek_id=row.dek_id,
            file_salt=row.file_salt,
            lock_number=row.lock_number,
            state=row.store_state,
            generation=row.store_generation,
        ),
        token=token,
        slot_id=row.slot_id,
        slot_kind=row.slot_kind,
        wrapped_dek=row.wrapped_dek,
    )
