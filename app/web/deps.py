"""What a route's function is given: the service, the call, the caller judged by its rule."""

import hmac
from typing import Annotated, Any, Final
from urllib.parse import urlsplit

from fastapi import Depends, Request
from fastapi.exceptions import RequestValidationError
from fastapi.routing import APIRoute
from pydantic import BaseModel
from typing_extensions import override

from app.bridge import access
from app.bridge.callers import Call, Caller
from app.bridge.network import client_address, network_of
from app.bridge.strongroom import Strongroom
from app.crypto import tokens
from app.crypto.tokens import Token
from app.errors import (
    AmbiguousCredentialsError,
    AuthenticationRequiredError,
    CrossSiteRequestError,
    HumanSessionRequiredError,
    InvalidCredentialsError,
    NotPermittedError,
)
from app.web.envelope import TRACE_ID
from app.web.errors import REQUEST_ID
from app.web.rules import RULES, Rule

COOKIE: Final = "strongroom_session"
HOST_COOKIE: Final = "__Host-strongroom_session"
"""The cookie's name behind TLS: browsers then bind it to this host and path."""
CALLER_KINDS: Final = frozenset({"session", "token"})
_SAFE: Final = frozenset({"GET", "HEAD", "OPTIONS"})
BEARER: Final = "bearer "


def room_of(request: Request) -> Strongroom:
    """The running service."""
    room: Strongroom = request.app.state.room
    return room


def call_of(request: Request) -> Call:
    """The request as the program's record names it."""
    route = request.scope.get("route")
    room = room_of(request)
    peer = request.client.host if request.client else None
    forwarded = ", ".join(request.headers.getlist("x-forwarded-for")) or None
    address = client_address(peer, forwarded, room.settings.trusted_proxies)
    return Call(
        action=f"{request.method} {getattr(route, 'path', 'unrouted')}",
        network=network_of(address),
        request_id=request.scope.get(REQUEST_ID),
        trace_id=request.scope.get(TRACE_ID),
    )


def rule_of(request: Request) -> Rule:
    """The rule of the route that answers."""
    route = request.scope["route"]
    return RULES[f"{request.method} {route.path}"]


def cookie_name(room: Strongroom) -> str:
    """The session cookie's name here."""
    public = room.settings.public_url or ""
    return HOST_COOKIE if public.startswith("https:") else COOKIE


def _bearer(request: Request) -> str | None:
    values = request.headers.getlist("authorization")
    if not values:
        return None
    if len(values) > 1 or values[0][: len(BEARER)].lower() != BEARER:
        raise InvalidCredentialsError
    return values[0][len(BEARER) :].strip()


def _read_token(text: str) -> Token:
    token = tokens.parse(text)
    if token is None or token.kind not in CALLER_KINDS:
        raise InvalidCredentialsError
    return token


async def authenticate(request: Request, room: Strongroom) -> Caller:
    """Whoever the credential says; read anew, never remembered.

    Raises:
        AuthenticationRequiredError: None was sent.
        InvalidCredentialsError: It does not hold.
        AmbiguousCredentialsError: Token and cookie name different callers.
        CrossSiteRequestError: A cookie on an unsafe method without its proofs.
    """
    bearer = _bearer(request)
    cookie = request.cookies.get(cookie_name(room))
    if bearer is None and cookie is None:
        raise AuthenticationRequiredError
    if bearer is not None:
        caller = await access.authenticate(room, _read_token(bearer))
        if cookie is not None:
            other = await access.authenticate(room, _read_token(cookie))
            if other.user_id != caller.user_id or other.agent_id != caller.agent_id:
                raise AmbiguousCredentialsError
        return caller
    caller = await access.authenticate(room, _read_token(cookie or ""))
    if request.method not in _SAFE:
        require_same_site(request, room)
        given = request.headers.get("x-csrf-token", "")
        if not tokens.csrf_matches(caller.token.secret, given):
            raise CrossSiteRequestError
    return caller


def require_same_site(request: Request, room: Strongroom) -> None:
    """Refuse a call that a page of another origin may have made.

    Raises:
        CrossSiteRequestError: Its Origin is absent or another.
    """
    origin = request.headers.get("origin")
    public = room.settings.public_url
    if public is not None:
        wanted = urlsplit(public)
        expected = f"{wanted.scheme}://{wanted.netloc}"
    else:
        expected = f"http://{request.headers.get('host', '')}"
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
    if rule.is_human and not caller.is_human:
        raise HumanSessionRequiredError
    if rule.scope is None and not caller.is_human:
        raise NotPermittedError
    if rule.scope and not caller.has_scope(rule.scope):
        raise NotPermittedError
    if rule.capability is not None:
        await access.require_capability(room, caller, rule.capability)
    if rule.is_recent:
        caller.require_recent_password(room.clock(), room.settings.reauthentication_s)
    if rule.needs_store:
        caller.require_key_way()


def require_known_query(request: Request) -> None:
    """Refuse a query parameter this route does not have, or one that is there twice.

    Raises:
        RequestValidationError: There is one; its name is not repeated in the answer.
    """
    route = request.scope["route"]
    known: frozenset[str] = getattr(route, "known_query", frozenset())
    names = [name for name, _ in request.query_params.multi_items()]
    if len(names) != len(set(names)) or not known.issuperset(names):
        raise RequestValidationError([{"type": "extra_forbidden", "loc": ("query", "")}])


def query_names(route: APIRoute) -> frozenset[str]:
    """The names of a route's own query parameters, those of a query model included."""
    names: set[str] = set()
    for field in route.dependant.query_params:
        kind = field.field_info.annotation
        if isinstance(kind, type) and issubclass(kind, BaseModel):
            names |= {info.alias or name for name, info in kind.model_fields.items()}
        else:
            names.add(field.alias)
    return frozenset(names)


class StrictRoute(APIRoute):
    """A route that knows the names of its own query parameters."""

    @override
    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        self.known_query = query_names(self)


async def anyone(request: Request) -> None:
    """Before signing in: the query is judged, the caller is not."""
    require_known_query(request)


async def caller_of(request: Request) -> Caller:
    """The caller, judged by the route's rule."""
    room = room_of(request)
    caller = await authenticate(request, room)
    await require(caller, rule_of(request), room)
    require_known_query(request)
    note_seen(room, caller)
    return caller



def note_seen(room: Strongroom, caller: Caller) -> None:
    """Have a session's last use written, seldom and off the request's path."""
    if room.clock() - caller.last_seen_at >= room.settings.last_seen_every_s * 1000:
        room.seen.note(caller.session_id)


RoomDep = Annotated[Strongroom, Depends(room_of)]
CallDep = Annotated[Call, Depends(call_of)]
CallerDep = Annotated[Caller, Depends(caller_of)]
