"""Administration: `/api/admin`."""

import dataclasses
from typing import Annotated, Any

from fastapi import APIRouter
from fastapi import Query as FromQuery
from pydantic import Field

from app.bridge import erasure, members
from app.bridge.signup import NewMember
from app.clock import rfc3339
from app.ids import RoleId
from app.registry import accounts, invitations, roles
from app.registry import supervision as edges
from app.registry.roles import Role
from app.web.deps import CallDep, CallerDep, RoomDep, StrictRoute
from app.web.shapes import (
    LIMIT_DEFAULT,
    Body,
    Identifier,
    Limit,
    Line,
    Password,
    Query,
    Text,
    Username,
    decode_cursor,
    encode_cursor,
    page,
    time_or_none,
    user_profile,
)

router = APIRouter(route_class=StrictRoute, prefix="/api/admin")


class UserBody(Body):
    """A member made by an administrator, with a temporary password."""

    username: Username
    password: Password
    role_id: Identifier
    encrypted: bool = True
    display_name: Annotated[Line, Field(max_length=200)] | None = None


class UserPatch(Body):
    """What an administrator may change; a field left out stays."""

    active: bool = True
    role_id: Identifier = ""
    display_name: Annotated[Line, Field(max_length=200)] | None = None
    locale: Annotated[Line, Field(max_length=35)] | None = None
    birthdate: Annotated[str, Field(max_length=10)] | None = None
    sex: Annotated[Line, Field(max_length=50)] | None = None
    notes: Annotated[Text, Field(max_length=10_000)] | None = None
    quota_bytes: Annotated[int, Field(ge=0, lt=1 << 62)] | None = None
    password: Password = ""


class InvitationBody(Body):
    """An invitation to be made."""

    role_id: Identifier


class PageQuery(Query):
    """A page of a list."""

    cursor: str | None = None
    limit: Limit = LIMIT_DEFAULT


@router.get("/users")
async def list_users(
    query: Annotated[PageQuery, FromQuery()], caller: CallerDep, room: RoomDep
) -> dict[str, Any]:
    """Members, in the order of their making."""
    cursor = decode_cursor(query.cursor, 1)
    after = cursor[0] if cursor else ""
    rows = await room.stores.registry.read(
        lambda reader: accounts.list_page(reader, after, query.limit + 1)
    )
    shown = rows[: query.limit]
    following = encode_cursor(shown[-1].id) if len(rows) > query.limit else None
    return page([user_profile(row) for row in shown], following)


@router.post("/users", status_code=201)
async def add_user(
    body: UserBody, caller: CallerDep, room: RoomDep, call: CallDep
) -> dict[str, Any]:
    """Make a member with a temporary password; they change it, and their key with it."""
    new = NewMember(
        body.username,
        body.password,
        RoleId(body.role_id),
        body.display_name,
        encrypted=body.encrypted,
        is_temporary=True,
    )
    made = await members.add_member(room, caller, new, call)
    return {"user": user_profile(made.account)}


@router.get("/users/{user_id}")
async def get_user(user_id: str, caller: CallerDep, room: RoomDep) -> dict[str, Any]:
    """One member."""
    row = await room.stores.registry.read(lambda reader: accounts.get(reader, user_id))
    return {"user": user_profile(row)}


@router.patch("/users/{user_id}")
async def patch_user(
    user_id: str, body: UserPatch, caller: CallerDep, room: RoomDep, call: CallDep
) -> dict[str, Any]:
    """Change a member; deactivation takes effect before this answers."""
    changes = body.model_dump(exclude_unset=True)
    row = await members.patch_member(room, caller, user_id, changes, call)
    return {"user": user_profile(row)}


@router.delete("/users/{user_id}")
async def erase_user(
    user_id: str, caller: CallerDep, room: RoomDep, call: CallDep
) -> dict[str, Any]:
    """Erase a member: their file, and all that the registry knows of them."""
    await members.require_may_erase(room, caller, user_id)
    receipt = await erasure.erase(room, user_id, call, caller.actor(call))
    return {"receipt": {**dataclasses.asdict(receipt), "erased_at": rfc3339(receipt.erased_at)}}


@router.get("/invitations")
async def list_invitations(caller: CallerDep, room: RoomDep) -> dict[str, Any]:
    """Invitations that are still good; never their tokens."""
    rows = await room.stores.registry.read(invitations.list_good)
    items = [
        {
            "id": row.id,
            "role_id": row.role_id,
            "invited_by": row.invited_by,
            "expires_at": time_or_none(row.expires_at),
            "created_at": time_or_none(row.created_at),
        }
        for row in rows
    ]
    return page(items, None)


@router.post("/invitations", status_code=201)
async def add_invitation(
    body: InvitationBody, caller: CallerDep, room: RoomDep, call: CallDep
) -> dict[str, Any]:
    """Make an invitation; its token is shown once."""
    token, row = await members.invite(room, caller, body.role_id, call)
    return {"id": row.id, "token": token.text(), "expires_at": time_or_none(row.expires_at)}


@router.delete("/invitations/{invitation_id}", status_code=204)
async def remove_invitation(
    invitation_id: str, caller: CallerDep, room: RoomDep, call: CallDep
) -> None:
    """Take an unused invitation back."""
    await room.stores.registry.write(
        lambda tx: invitations.take_back(tx, invitation_id), caller.actor(call)
    )


def _role(row: Role, capabilities: list[str]) -> dict[str, Any]:
    return {
        "id": row.id,
        "label": row.label,
        "permission_group": row.permission_group,
        "attrs": dataclasses.asdict(roles.parse_attrs(row.attrs)),
        "effective_groups": sorted(roles.effective_groups(row)),
        "capabilities": capabilities,
        "is_administrator": row.id == roles.ADMIN,
    }


@router.get("/roles")
async def list_roles(caller: CallerDep, room: RoomDep) -> dict[str, Any]:
    """Every role, with what it may do."""
    found = await room.stores.registry.read(roles.list_all)
    return page([_role(row, capabilities) for row, capabilities in found], None)


@router.get("/supervision")
async def list_supervision(
    query: Annotated[PageQuery, FromQuery()], caller: CallerDep, room: RoomDep
) -> dict[str, Any]:
    """Who may read what is reported on whom."""
    subject, supervisor = decode_cursor(query.cursor, 2) or ("", "")
    rows = await room.stores.registry.read(
        lambda reader: edges.list_page(reader, subject, supervisor, query.limit + 1)
    )
    shown = rows[: query.limit]
    following = None
    if len(rows) > query.limit:
        following = encode_cursor(shown[-1].subject_user_id, shown[-1].supervisor_user_id)
    items = [
        {
            "subject_user_id": row.subject_user_id,
            "supervisor_user_id": row.supervisor_user_id,
            "created_at": time_or_none(row.created_at),
        }
        for row in shown
    ]
    return page(items, following)


@router.put("/supervision/{subject}/{supervisor}", status_code=204)
async def connect(
    subject: str, supervisor: str, caller: CallerDep, room: RoomDep, call: CallDep
) -> None:
    """Let the supervisor read what is reported on the subject."""
    await room.stores.registry.write(
        lambda tx: edges.add(tx, subject, supervisor), caller.actor(call)
    )


@router.delete("/supervision/{subject}/{supervisor}", status_code=204)
async def disconnect(
    subject: str, supervisor: str, caller: CallerDep, room: RoomDep, call: CallDep
) -> None:
    """Take that away, from the next request on."""
    await room.stores.registry.write(
        lambda tx: edges.remove(tx, subject, supervisor), caller.actor(call)
    )


