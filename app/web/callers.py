"""Who is calling: the credential of a request, and what a route's rule asks of it."""

import hmac
from typing import Final
from urllib.parse import urlsplit

from fastapi import Request

from app.bridge import access
from app.bridge.callers import Caller
from app.bridge.strongroom import Strongroom
from app.crypto import tokens
from app.crypto.tokens import Token
from app.errors.callers import (
    AmbiguousCredentialsError,
    AuthenticationRequiredError,
    CrossSiteRequestError,
    HumanSessionRequiredError,
    InvalidCredentialsError,
    NotPermittedError,
)
from app.web.rules import Rule

COOKIE: Final = "strongroom_session"
HOST_COOKIE: Final = "__Host-strongroom_session"
"""The cookie's name behind TLS: browsers then bind it to this host and path."""
CSRF_HEADER: Final = "x-csrf-token"
UNSAFE: Final = frozenset({"POST", "PUT", "PATCH", "DELETE"})
_KINDS: Final = frozenset({"session", "token"})
_BEARER: Final = "bearer "


def is_behind_tls(room: Strongroom) -> bool:
    """Whether clients reach this service by https."""
    return (room.settings.public_url or "").startswith("https:")


def cookie_name(room: Strongroom) -> str:
    """The session cookie's name here."""
    return HOST_COOKIE if is_behind_tls(room) else COOKIE


def _bearer(request: Request) -> str | None:
    values = request.headers.getlist("authorization")
    if not values:
        return None
    if len(values) > 1 or values[0][: len(_BEARER)].lower() != _BEARER:
        raise InvalidCredentialsError
    return values[0][len(_BEARER) :].strip()


def _read_token(text: str) -> Token:
    token = tokens.parse(text)
    if token is None or token.kind not in _KINDS:
        raise InvalidCredentialsError
    return token


async def authenticate(request: Request, room: Strongroom) -> Caller:
    """Whoever the credential says; read anew, never remembered.

    Returns:
        The caller. With both a token and a cookie, the token's, who then is the cookie's too.

    Raises:
        AuthenticationRequiredError: None was sent.
        InvalidCredentialsError: It does not hold.
        AmbiguousCredentialsError: Token and cookie name different callers.
        CrossSiteRequestError: A cookie on an unsafe method without its proofs.
    """
    bearer = _bearer(request)
    cookie = request.cookies.get(cookie_name(room))
    if bearer is None:
        if cookie is None:
            raise AuthenticationRequiredError
        caller = await _by_cookie(cookie, room)
        if request.method in UNSAFE:
            require_same_site(request, room)
            if not tokens.csrf_matches(caller.token.secret, request.headers.get(CSRF_HEADER, "")):
                raise CrossSiteRequestError
        return caller
    caller = await access.authenticate(room, _read_token(bearer))
    if cookie is not None:
        other = await _by_cookie(cookie, room)
        if (other.user_id, other.agent_id) != (caller.user_id, caller.agent_id):
            raise AmbiguousCredentialsError
    return caller


async def _by_cookie(text: str, room: Strongroom) -> Caller:
    caller = await access.authenticate(room, _read_token(text))
    if not caller.is_cookie:
        # A token put into a cookie would go with every call that any page provokes.
        raise InvalidCredentialsError
    return caller


def require_same_site(request: Request, room: Strongroom) -> None:
    """Refuse a call that a page of another origin may have made.

    Raises:
        CrossSiteRequestError: Its Origin is absent or another.
    """
    origin = request.headers.get("origin")
    public = room.settings.public_url
    if public is None:
        expected = f"http://{request.headers.get('host', '')}"
    else:
        parts = urlsplit(public)
        expected = f"{parts.scheme}://{parts.netloc}"
    if origin is None or not hmac.compare_digest(origin.encode(), expected.encode()):
        raise CrossSiteRequestError


async def require(caller: Caller, rule: Rule, room: Strongroom) -> None:
    """Hold a caller against a route's rule.

    Raises:
        HumanSessionRequiredError: A token where none will do.
        ReauthenticationRequiredError: The password was checked too long ago.
        NotPermittedError: Scope, role or capability are missing.
        StoreLockedError: The store is needed and this credential cannot open it.
    """
    if not caller.is_human:
        if rule.scope is None:
            raise HumanSessionRequiredError
        if rule.scope and not caller.has_scope(rule.scope):
            raise NotPermittedError
    if rule.capability is not None:
        await access.require_capability(room, caller, rule.capability)
    if rule.is_recent:
        caller.require_recent_password(room.clock(), room.settings.reauthentication_s)
    if rule.needs_store:
        caller.require_key_way()


def note_seen(room: Strongroom, caller: Caller) -> None:
    """Have a session's last use written, seldom and off the request's path."""
    if room.clock() - caller.last_seen_at >= room.settings.last_seen_every_s * 1000:
        room.seen.note(caller.session_id)
