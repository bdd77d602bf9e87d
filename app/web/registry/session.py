"""Signing in and out: `/api/session`, `/api/sessions`, set-up, invitations accepted, recovery."""

import json
from typing import Annotated, Any, Literal

from fastapi import APIRouter, Depends, Request, Response
from fastapi import Query as FromQuery
from pydantic import Field, model_validator
from pydantic_core import PydanticCustomError

from app.bridge import credentials, members, setup, signin
from app.bridge.callers import Caller
from app.bridge.signin import SignedIn
from app.bridge.signup import NewMember, SignedUp
from app.bridge.strongroom import Strongroom, anonymous
from app.crypto import tokens
from app.errors import NotFoundError
from app.ids import RoleId
from app.registry import accounts, sessions
from app.registry.invitations import Invitation
from app.registry.sessions import Session
from app.web.deps import (
    CallDep,
    CallerDep,
    RoomDep,
    StrictRoute,
    anyone,
    call_of,
    cookie_name,
    require_same_site,
    room_of,
)
from app.web.shapes import (
    Body,
    Line,
    Password,
    Query,
    Username,
    page,
    time_or_none,
    user_summary,
)

router = APIRouter(route_class=StrictRoute)
public = APIRouter(route_class=StrictRoute, dependencies=[Depends(anyone)])

_USER_AGENT_MAX = 200


class SetupBody(Body):
    """The first administrator."""

    setup_token: str
    username: Username
    password: Password
    display_name: Line | None = None
    encrypted: bool = True


class AcceptBody(Body):
    """An invited member."""

    token: str
    username: Username
    password: Password
    display_name: Line | None = None
    encrypted: bool = True


class SignInBody(Body):
    """A name and its password."""

    username: Username
    password: Password
    cookie: bool = False
    label: Annotated[Line, Field(max_length=200)] = ""


class UnlockBody(Body):
    """Exactly one of the two."""

    password: Password | None = None
    recovery_code: Password | None = None

    @model_validator(mode="after")
    def _one_of_two(self) -> "UnlockBody":
        if (self.password is None) == (self.recovery_code is None):
            raise PydanticCustomError("one_of_two", "Give a password or a recovery code.")
        return self


class ConfirmBody(Body):
    """The caller's own password."""

    password: Password


class RecoveryBody(Body):
    """A name, its recovery code, and the password to be."""

    username: Username
    recovery_code: Password
    new_password: Password


class OthersQuery(Query):
    """Every session but this one."""

    others: bool


async def _presented(request: Request, field: str) -> str:
    """A token in the body, read before the other fields are judged; empty when there is none."""
    try:
        body = await request.json()
    except (ValueError, RecursionError):
        return ""
    value = body.get(field) if isinstance(body, dict) else None
    return value if isinstance(value, str) else ""


async def _judge_setup(request: Request) -> None:
    presented = await _presented(request, "setup_token")
    await setup.require_token(room_of(request), presented, call_of(request))


async def _judge_invitation(request: Request) -> Invitation:
    presented = await _presented(request, "token")
    return await members.require_invitation(room_of(request), tokens.parse(presented))


def _signed_up(made: SignedUp) -> dict[str, Any]:
    return {"user": user_summary(made.account), "recovery_code": made.recovery_code}


@public.post("/api/setup", status_code=201, dependencies=[Depends(_judge_setup)])
async def set_up(body: SetupBody, room: RoomDep, call: CallDep) -> dict[str, Any]:
    """Make the first administrator, with the token from `database/setup.token`."""
    new = NewMember(
        body.username, body.password, accounts.ADMIN, body.display_name, encrypted=body.encrypted
    )
    return _signed_up(await setup.set_up(room, new, call))


@public.post("/api/invitations/accept", status_code=201)
async def accept(
    body: AcceptBody,
    invitation: Annotated[Invitation, Depends(_judge_invitation)],
    room: RoomDep,
    call: CallDep,
) -> dict[str, Any]:
    """Become a member with a password of one's own choosing."""
    role_id = RoleId(invitation.role_id)
    new = NewMember(
        body.username, body.password, role_id, body.display_name, encrypted=body.encrypted
    )
    return _signed_up(await members.accept(room, invitation, new, call, anonymous(call)))


@public.post("/api/session", status_code=201)
async def sign_in(
    body: SignInBody, request: Request, response: Response, room: RoomDep, call: CallDep
) -> dict[str, Any]:
    """Sign in; with `cookie` the token also comes as one, and a CSRF token with it."""
    if body.cookie:
        require_same_site(request, room)
    agent = request.headers.get("user-agent")
    made = await signin.sign_in(
        room,
        body.username,
        body.password,
        call,
        is_cookie=body.cookie,
        label=body.label,
        user_agent=agent[:_USER_AGENT_MAX] if agent else None,
    )
    answer = {
        "token": made.token.text(),
        "session": _new_session(made),
        "user": user_summary(made.account),
    }
    if body.cookie:
        _set_cookie(response, room, made)
        answer["csrf_token"] = tokens.csrf_token(made.token.secret)
    return answer


def _new_session(made: SignedIn) -> dict[str, Any]:
    return {
        "id": made.session_id,
        "kind": "browser",
        "unlocked": made.is_unlocked,
        "scopes": [sessions.ALL_SCOPES],
        "agent_id": None,
        "expires_at": time_or_none(made.ends_at),
    }


def _set_cookie(response: Response, room: Strongroom, made: SignedIn) -> None:
    response.set_cookie(
        cookie_name(room),
        made.token.text(),
        max_age=room.settings.session_days * 86_400,
        path="/",
        secure=(room.settings.public_url or "").startswith("https:"),
        httponly=True,
        samesite="lax",
    )


@router.get("/api/session")
async def who_am_i(caller: CallerDep, room: RoomDep) -> dict[str, Any]:
    """Who the credential says the caller is, and whether it can open their store."""
    account = await room.stores.registry.read(
        lambda reader: accounts.get(reader, caller.user_id)
    )
    answer: dict[str, Any] = {
        "session": {
            "id": caller.session_id,
            "kind": caller.kind,
            "unlocked": not caller.account.encrypted or caller.wrapped_dek is not None,
            "scopes": sorted(caller.scopes),
            "agent_id": caller.agent_id,
            "expires_at": time_or_none(caller.ends_at),
        },
        "user": user_summary(account),
    }
    if caller.is_cookie:
        answer["csrf_token"] = tokens.csrf_token(caller.token.secret)
    return answer


@router.delete("/api/session", status_code=204)
async def sign_out(caller: CallerDep, room: RoomDep, call: CallDep, response: Response) -> None:
    """End this session, and lock the store when it was the last way in."""
    await signin.sign_out(room, caller, call)
    if caller.is_cookie:
        response.delete_cookie(cookie_name(room), path="/")


@router.post("/api/session/unlock", status_code=204)
async def unlock(body: UnlockBody, caller: CallerDep, room: RoomDep, call: CallDep) -> None:
    """Give a session that could not open the store a slot of its own."""
    await signin.unlock(room, caller, call, password=body.password, code=body.recovery_code)


@router.post("/api/session/confirm", status_code=204)
async def confirm(body: ConfirmBody, caller: CallerDep, room: RoomDep, call: CallDep) -> None:
    """Give the password again, for what needs a recent check."""
    await signin.confirm(room, caller, body.password, call)


@public.post("/api/recovery")
async def recover(body: RecoveryBody, room: RoomDep, call: CallDep) -> dict[str, Any]:
    """Come back with the recovery code; every other credential ends, the key is changed."""
    code = await credentials.recover(
        room, body.username, body.recovery_code, body.new_password, call
    )
    return {"recovery_code": code}


def session_item(row: Session, current: str) -> dict[str, Any]:
    """One session or token as its member sees it."""
    return {
        "id": row.id,
        "label": row.label,
        "user_agent": row.user_agent,
        "agent_id": row.agent_id,
        "is_agent": bool(row.is_agent),
        "scopes": json.loads(row.scopes),
        "started_at": time_or_none(row.started_at),
        "expires_at": time_or_none(row.ends_at),
        "last_seen_at": time_or_none(row.last_seen_at),
        "current": row.id == current,
    }


async def list_of_kind(
    room: Strongroom, caller: Caller, kind: Literal["browser", "token"]
) -> dict[str, Any]:
    """The caller's live sessions or tokens."""
    rows = await room.stores.registry.read(
        lambda reader: sessions.list_of_kind(reader, caller.user_id, kind)
    )
    return page([session_item(row, caller.session_id) for row in rows], None)


@router.get("/api/sessions")
async def list_sessions(caller: CallerDep, room: RoomDep) -> dict[str, Any]:
    """Where the caller is signed in."""
    return await list_of_kind(room, caller, "browser")


@router.delete("/api/sessions", status_code=204)
async def end_others(
    query: Annotated[OthersQuery, FromQuery()], caller: CallerDep, room: RoomDep, call: CallDep
) -> None:
    """End every session but this one."""
    if not query.others:
        raise NotFoundError
    await room.stores.registry.write(
        lambda tx: sessions.revoke_others(tx, caller.user_id, "browser", caller.session_id),
        caller.actor(call),
    )


@router.delete("/api/sessions/{session_id}", status_code=204)
async def end_session(session_id: str, caller: CallerDep, room: RoomDep, call: CallDep) -> None:
    """End one session."""
    await signin.revoke(room, caller, session_id, call)


