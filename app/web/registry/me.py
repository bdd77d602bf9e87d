"""The caller's own account: `/api/me`, `/api/tokens`."""

import json
from collections import Counter
from typing import Annotated, Any, Final

from fastapi import APIRouter, Response
from fastapi import Query as FromQuery
from pydantic import Field

from app.bridge.accounts import acts, api_tokens, credentials, members, revocation
from app.bridge.accounts.api_tokens import NewToken
from app.clock import Millis
from app.owner.access import Opening, list_access
from app.owner.acts import Act, list_acts
from app.registry import accounts, sessions
from app.web import cursors
from app.web.answers import OBJECT, as_json, no_content
from app.web.preconditions import etag, match_of, require_match
from app.web.registry.session import list_of_kind, session_item
from app.web.routes import AskDep, StrictRoute
from app.web.shapes import (
    Body,
    DisplayName,
    Identifier,
    Line,
    NewPassword,
    PageQuery,
    Password,
    Time,
    page,
    time_or_none,
    user_profile,
    user_summary,
)

router = APIRouter(route_class=StrictRoute)


class ProfileBody(Body):
    """What a member sets of themselves; a field left out stays."""

    display_name: DisplayName | None = None
    locale: Annotated[Line, Field(max_length=35)] | None = None


class PasswordBody(Body):
    """The present password and the one to be."""

    current_password: Password
    new_password: NewPassword
    keep_sessions: bool = False
    end_tokens: bool = False
    rotate_key: bool = False


class ConfirmedBody(Body):
    """The caller's own password."""

    password: Password


class TokenBody(Body):
    """An API token to be made."""

    label: Annotated[Line, Field(max_length=200)] = ""
    scopes: Annotated[list[Identifier], Field(max_length=32)] = Field(default=["memory:read"])
    agent_id: Identifier | None = None
    is_agent: bool = True
    expires_at: Time | None = None


@router.get("/api/me")
async def get_me(ask: AskDep, response: Response) -> dict[str, Any]:
    """The caller's own account."""
    user_id = ask.caller.user_id
    row = await ask.room.stores.registry.read(lambda reader: accounts.get(reader, user_id))
    require_match(ask.request, row.version)
    response.headers["ETag"] = etag(row.version)
    profile = user_profile(row)
    profile.pop("notes")  # an administrator's, about the member
    return {"user": profile}


@router.patch("/api/me", response_model=OBJECT)
async def patch_me(body: ProfileBody, ask: AskDep) -> Response:
    """Change one's own name as shown, or language."""
    changes, match = body.model_dump(exclude_unset=True), match_of(ask.request)
    return await ask.once(
        lambda call: ask.room.stores.registry.write(
            lambda tx: accounts.set_profile(
                tx, ask.caller.user_id, changes, may_grant_admin=True, match=match
            ),
            ask.caller.actor(call),
            once=call.once,
        ),
        as_json(lambda row: {"user": user_summary(row)}, version_of=lambda row: row.version),
    )


@router.put("/api/me/password")
async def set_password(body: PasswordBody, ask: AskDep) -> dict[str, Any]:
    """Change the password; the first change of a temporary one changes the key too.

    `If-Match` is about the caller's account, as `GET /api/me` shows it.
    """  # noqa: DOC201 - the words are OpenAPI's
    code = await credentials.change_password(
        ask.room,
        ask.caller,
        body.current_password,
        body.new_password,
        ask.call,
        keep_sessions=body.keep_sessions,
        end_tokens=body.end_tokens,
        rotate_key=body.rotate_key,
        match=match_of(ask.request),
    )
    return {"recovery_code": code}


@router.post("/api/me/recovery-code")
async def renew_recovery_code(body: ConfirmedBody, ask: AskDep) -> dict[str, Any]:
    """A new recovery code; the one before it is void."""
    code = await credentials.renew_recovery_code(ask.room, ask.caller, body.password, ask.call)
    return {"recovery_code": code}


@router.post("/api/me/rotate")
async def rotate(body: ConfirmedBody, ask: AskDep) -> dict[str, Any]:
    """A new key for one's own store; every other way in ends, and is named."""
    done = await credentials.rotate(ask.room, ask.caller, body.password, ask.call)
    return {
        "recovery_code": done.recovery_code,
        "dropped": Counter(way.kind for way in done.ended),
        "ended": [way._asdict() for way in done.ended],
    }


@router.post("/api/me/lock", status_code=204)
async def lock(ask: AskDep) -> Response:
    """Close one's own store in every process; the next valid credential opens it."""
    return await ask.once(
        lambda call: members.lock_member(
            ask.room, ask.caller.user_id, ask.caller.actor(call), call.once
        ),
        no_content,
    )


@router.get("/api/me/access")
async def list_openings(query: Annotated[PageQuery, FromQuery()], ask: AskDep) -> dict[str, Any]:
    """Who opened one's own store, and what others did to one's account; each newest first."""
    opened_before, done_before = cursors.numbers_of(query.cursor, 2)
    openings, done = await acts.read_own(
        ask.room,
        ask.caller,
        ask.call,
        lambda reader: (
            list_access(reader, opened_before, query.limit + 1),
            list_acts(reader, done_before, query.limit + 1),
        ),
    )
    more_openings, more_done = len(openings) > query.limit, len(done) > query.limit
    openings, done = openings[: query.limit], done[: query.limit]
    following = None
    if more_openings or more_done:
        # Before 0 there is nothing: a list that has ended stays so.
        following = cursors.encode(
            openings[-1].id if more_openings else 0, done[-1].id if more_done else 0
        )
    answer = page([_opening(row) for row in openings], following)
    return {**answer, "administrators": [_act(act) for act in done]}


def _opening(row: Opening) -> dict[str, Any]:
    return {
        "at": time_or_none(row.at),
        "way": row.way,
        "session_id": row.session_id,
        "agent_id": row.agent_id,
        "network": row.network,
    }


def _act(act: Act) -> dict[str, Any]:
    return {
        "at": time_or_none(act.occurred_at),
        "actor": act.actor_sub,
        "action": act.action,
        "entity": act.entity,
        "id": act.record_id,
        "kind": act.kind,
        "fields": list(json.loads(act.fields or "{}")),
    }


_PASSWORD_KEY: Final[dict[str, Any]] = {
    "id": "password",
    "kind": "password",
    "label": "",
    "created_at": None,
    "expires_at": None,
    "current": False,
}


@router.get("/api/me/keys")
async def list_keys(query: Annotated[PageQuery, FromQuery()], ask: AskDep) -> dict[str, Any]:
    """Every way in to one's own store; the password's cannot be destroyed, only changed."""
    rows = await ask.room.stores.registry.read(
        lambda reader: sessions.list_slots(reader, ask.caller.user_id)
    )
    keys = [_PASSWORD_KEY] if ask.caller.account.encrypted else []
    keys += [
        {
            "id": row.id,
            "kind": row.kind,
            "label": row.label,
            "created_at": time_or_none(row.created_at),
            "expires_at": time_or_none(row.expires_at),
            "current": row.id == ask.caller.slot_id,
        }
        for row in rows
    ]
    return cursors.page_of_all(
        keys,
        query,
        dict,
        lambda key: key["kind"] == "password",
        lambda key: key["id"],
        is_falling=True,
    )


@router.delete("/api/me/keys/{slot_id}", status_code=204)
async def remove_key(slot_id: str, ask: AskDep) -> Response:
    """Destroy one way in, and end the session or token that had it."""
    return await ask.once(
        lambda call: revocation.remove_slot(ask.room, ask.caller, slot_id, call), no_content
    )


@router.get("/api/tokens")
async def list_tokens(query: Annotated[PageQuery, FromQuery()], ask: AskDep) -> dict[str, Any]:
    """The caller's API tokens; never their secrets."""
    return await list_of_kind(ask, query, "token")


@router.post("/api/tokens", status_code=201)
async def add_token(body: TokenBody, ask: AskDep) -> dict[str, Any]:
    """Make an API token; it is shown once."""
    new = NewToken(
        label=body.label,
        scopes=tuple(body.scopes),
        agent_id=body.agent_id,
        is_agent=body.is_agent,
        expires_at=None if body.expires_at is None else Millis(body.expires_at),
    )
    token, row = await api_tokens.mint(ask.room, ask.caller, new, ask.call)
    return {"token": token.text(), **session_item(row, ask.caller.session_id)}


@router.delete("/api/tokens/{token_id}", status_code=204)
async def end_token(token_id: str, ask: AskDep) -> Response:
    """End an API token. If it may have leaked, change the key as well: `POST /api/me/rotate`."""
    return await ask.once(
        lambda call: revocation.revoke(ask.room, ask.caller, "token", token_id, call), no_content
    )
