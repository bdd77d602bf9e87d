"""The caller's own account: `/api/me`, `/api/tokens`."""

from typing import Annotated, Any

from fastapi import APIRouter
from fastapi import Query as FromQuery
from pydantic import Field

from app.bridge import access, api_tokens, credentials, members, signin
from app.bridge.api_tokens import NewToken
from app.clock import Millis
from app.owner.access import list_access
from app.registry import accounts, sessions
from app.web.deps import CallDep, CallerDep, RoomDep, StrictRoute
from app.web.registry.session import list_of_kind, session_item
from app.web.shapes import (
    LIMIT_DEFAULT,
    Body,
    Identifier,
    Limit,
    Line,
    Password,
    Query,
    Time,
    decode_number,
    encode_cursor,
    page,
    time_or_none,
    user_profile,
    user_summary,
)

router = APIRouter(route_class=StrictRoute)


class ProfileBody(Body):
    """What a member sets of themselves; a field left out stays."""

    display_name: Annotated[Line, Field(max_length=200)] | None = None
    locale: Annotated[Line, Field(max_length=35)] | None = None


class PasswordBody(Body):
    """The present password and the one to be."""

    current_password: Password
    new_password: Password
    keep_sessions: bool = False
    end_tokens: bool = False
    rotate_key: bool = False


class ConfirmedBody(Body):
    """The caller's own password."""

    password: Password


class TokenBody(Body):
    """An API token to be made."""

    label: Annotated[Line, Field(max_length=200)] = ""
    scopes: Annotated[list[Identifier], Field(max_length=32)] = ["memory:read"]
    agent_id: Identifier | None = None
    is_agent: bool = True
    expires_at: Time | None = None


class PageQuery(Query):
    """A page of a list."""

    cursor: str | None = None
    limit: Limit = LIMIT_DEFAULT


@router.get("/api/me")
async def get_me(caller: CallerDep, room: RoomDep) -> dict[str, Any]:
    """The caller's own account."""
    row = await room.stores.registry.read(lambda reader: accounts.get(reader, caller.user_id))
    profile = user_profile(row)
    profile.pop("notes")  # an administrator's, about the member
    return {"user": profile}


@router.patch("/api/me")
async def patch_me(
    body: ProfileBody, caller: CallerDep, room: RoomDep, call: CallDep
) -> dict[str, Any]:
    """Change one's own name as shown, or language."""
    changes = body.model_dump(exclude_unset=True)

    row = await room.stores.registry.write(
        lambda tx: accounts.set_profile(tx, caller.user_id, changes, may_grant_admin=True),
        caller.actor(call),
    )
    return {"user": user_summary(row)}


@router.put("/api/me/password")
async def set_password(
    body: PasswordBody, caller: CallerDep, room: RoomDep, call: CallDep
) -> dict[str, Any]:
    """Change the password; the first change of a temporary one changes the key too."""
    code = await credentials.change_password(
        room,
        caller,
        body.current_password,
        body.new_password,
        call,
        keep_sessions=body.keep_sessions,
        end_tokens=body.end_tokens,
        rotate_key=body.rotate_key,
    )
    return {"recovery_code": code}


@router.post("/api/me/recovery-code")
async def renew_recovery_code(
    body: ConfirmedBody, caller: CallerDep, room: RoomDep, call: CallDep
) -> dict[str, Any]:
    """A new recovery code; the one before it is void."""
    code = await credentials.renew_recovery_code(room, caller, body.password, call)
    return {"recovery_code": code}


@router.post("/api/me/rotate")
async def rotate(
    body: ConfirmedBody, caller: CallerDep, room: RoomDep, call: CallDep
) -> dict[str, Any]:
    """A new key for one's own store; every other way in ends."""
    done = await credentials.rotate(room, caller, body.password, call)
    return {"recovery_code": done.recovery_code, "dropped": done.dropped}


@router.post("/api/me/lock", status_code=204)
async def lock(caller: CallerDep, room: RoomDep, call: CallDep) -> None:
    """Close one's own store in every process; the next valid credential opens it."""
    await members.lock_member(room, caller.user_id, caller.actor(call))


@router.get("/api/me/access")
async def list_openings(
    query: Annotated[PageQuery, FromQuery()], caller: CallerDep, room: RoomDep, call: CallDep
) -> dict[str, Any]:
    """Who opened one's own store, when, and from where; newest first."""
    before = decode_number(query.cursor)
    rows = await access.with_own(
        room,
        caller,
        call,
        lambda store: store.read(lambda reader: list_access(reader, before, query.limit + 1)),
    )
    shown = rows[: query.limit]
    cursor = encode_cursor(shown[-1].id) if len(rows) > query.limit else None
    items = [
        {
            "at": time_or_none(row.at),
            "way": row.way,
            "session_id": row.session_id,
            "agent_id": row.agent_id,
            "network": row.network,
        }
        for row in shown
    ]
    return page(items, cursor)


@router.get("/api/me/keys")
async def list_keys(caller: CallerDep, room: RoomDep) -> dict[str, Any]:
    """Every way in to one's own store beside the password."""
    rows = await room.stores.registry.read(
        lambda reader: sessions.list_slots(reader, caller.user_id)
    )
    items = [
        {
            "id": row.id,
            "kind": row.kind,
            "label": row.label,
            "created_at": time_or_none(row.created_at),
            "expires_at": time_or_none(row.expires_at),
            "current": row.id == caller.slot_id,
        }
        for row in rows
    ]
    return page(items, None)


@router.delete("/api/me/keys/{slot_id}", status_code=204)
async def remove_key(slot_id: str, caller: CallerDep, room: RoomDep, call: CallDep) -> None:
    """Destroy one way in, and end the session or token that had it."""
    await room.stores.registry.write(
        lambda tx: sessions.revoke_slot(tx, caller.user_id, slot_id), caller.actor(call)
    )
    await room.stores.registry.checkpoint()


@router.get("/api/tokens")
async def list_tokens(caller: CallerDep, room: RoomDep) -> dict[str, Any]:
    """The caller's API tokens; never their secrets."""
    return await list_of_kind(room, caller, "token")


@router.post("/api/tokens", status_code=201)
async def add_token(
    body: TokenBody, caller: CallerDep, room: RoomDep, call: CallDep
) -> dict[str, Any]:
    """Make an API token; it is shown once."""
    new = NewToken(
        label=body.label,
        scopes=tuple(body.scopes),
        agent_id=body.agent_id,
        is_agent=body.is_agent,
        expires_at=None if body.expires_at is None else Millis(body.expires_at),
    )
    token, row = await api_tokens.mint(room, caller, new, call)
    return {"token": token.text(), **session_item(row, caller.session_id)}


@router.delete("/api/tokens/{token_id}", status_code=204)
async def end_token(token_id: str, caller: CallerDep, room: RoomDep, call: CallDep) -> None:
    """End an API token. If it may have leaked, change the key as well: `POST /api/me/rotate`."""
    await signin.revoke(room, caller, token_id, call)
