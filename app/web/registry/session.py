"""Signing in and out: `/api/session`, `/api/sessions`, and coming back by recovery code."""

import json
from typing import Annotated, Any, Literal

from fastapi import APIRouter, Response
from fastapi import Query as FromQuery
from pydantic import Field, model_validator

from app.bridge.accounts import credentials, revocation, signin
from app.bridge.accounts.signin import Device, SignedIn
from app.bridge.strongroom import Strongroom
from app.crypto import tokens
from app.errors.inputs import InvalidInputError
from app.registry import accounts, sessions
from app.registry.sessions import Session
from app.web import cursors
from app.web.answers import no_content
from app.web.callers import cookie_name, is_behind_tls, require_same_site
from app.web.routes import Ask, AskDep, StrictRoute, VisitDep
from app.web.shapes import (
    Body,
    Line,
    NewPassword,
    PageQuery,
    Password,
    Query,
    Username,
    refused,
    time_or_none,
    user_summary,
)

router = APIRouter(route_class=StrictRoute)

_USER_AGENT_MAX = 200


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
            kind = "one_of_two"
            raise refused(kind)
        return self


class ConfirmBody(Body):
    """The caller's own password."""

    password: Password


class RecoveryBody(Body):
    """A name, its recovery code, and the password to be."""

    username: Username
    recovery_code: Password
    new_password: NewPassword


class OthersQuery(Query):
    """Every session but this one."""

    others: bool


@router.post("/api/session", status_code=201)
async def sign_in(body: SignInBody, response: Response, visit: VisitDep) -> dict[str, Any]:
    """Sign in; with `cookie` the token also comes as one, and a CSRF token with it."""
    if body.cookie:
        require_same_site(visit.request, visit.room)
    agent = visit.request.headers.get("user-agent")
    device = Device(
        is_cookie=body.cookie,
        label=body.label,
        user_agent=agent[:_USER_AGENT_MAX] if agent else None,
    )
    made = await signin.sign_in(visit.room, body.username, body.password, visit.call, device)
    answer = {
        "token": made.token.text(),
        "session": _new_session(made),
        "user": user_summary(made.account),
    }
    if body.cookie:
        _set_cookie(response, visit.room, made)
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
        secure=is_behind_tls(room),
        httponly=True,
        samesite="lax",
    )


@router.get("/api/session")
async def who_am_i(ask: AskDep) -> dict[str, Any]:
    """Who the credential says the caller is, and whether it can open their store."""
    caller = ask.caller
    account = await ask.room.stores.registry.read(
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
async def sign_out(ask: AskDep) -> Response:
    """End this session, and lock the store when it was the last way in."""
    response = await ask.once(
        lambda call: revocation.sign_out(ask.room, ask.caller, call), no_content
    )
    if ask.caller.is_cookie:
        # A browser takes a __Host- cookie away only by one with the same attributes.
        response.delete_cookie(
            cookie_name(ask.room),
            path="/",
            secure=is_behind_tls(ask.room),
            httponly=True,
            samesite="lax",
        )
    return response


@router.post("/api/session/unlock", status_code=204)
async def unlock(body: UnlockBody, ask: AskDep) -> None:
    """Give a session that could not open the store a slot of its own."""
    await signin.unlock(
        ask.room, ask.caller, ask.call, password=body.password, code=body.recovery_code
    )


@router.post("/api/session/confirm", status_code=204)
async def confirm(body: ConfirmBody, ask: AskDep) -> None:
    """Give the password again, for what needs a recent check."""
    await signin.confirm(ask.room, ask.caller, body.password, ask.call)


@router.post("/api/recovery")
async def recover(body: RecoveryBody, visit: VisitDep) -> dict[str, Any]:
    """Come back with the recovery code; every other credential ends, the key is changed."""
    code = await credentials.recover(
        visit.room, body.username, body.recovery_code, body.new_password, visit.call
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
    ask: Ask, query: PageQuery, kind: Literal["browser", "token"]
) -> dict[str, Any]:
    """The caller's live sessions or tokens, newest first."""
    caller = ask.caller
    rows = await ask.room.stores.registry.read(
        lambda reader: sessions.list_of_kind(reader, caller.user_id, kind)
    )
    return cursors.page_of_all(
        rows,
        query,
        lambda row: session_item(row, caller.session_id),
        lambda row: row.id,
        is_falling=True,
    )


@router.get("/api/sessions")
async def list_sessions(query: Annotated[PageQuery, FromQuery()], ask: AskDep) -> dict[str, Any]:
    """Where the caller is signed in."""
    return await list_of_kind(ask, query, "browser")


@router.delete("/api/sessions", status_code=204)
async def end_others(query: Annotated[OthersQuery, FromQuery()], ask: AskDep) -> Response:
    """End every session but this one."""
    if not query.others:
        raise InvalidInputError(field="others")
    return await ask.once(
        lambda call: revocation.revoke_others(ask.room, ask.caller, call), no_content
    )


@router.delete("/api/sessions/{session_id}", status_code=204)
async def end_session(session_id: str, ask: AskDep) -> Response:
    """End one session."""
    return await ask.once(
        lambda call: revocation.revoke(ask.room, ask.caller, "browser", session_id, call),
        no_content,
    )
