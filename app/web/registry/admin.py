"""Administration: `/api/admin`."""

import dataclasses
from typing import Annotated, Any

from fastapi import APIRouter, Response
from fastapi import Query as FromQuery
from pydantic import Field

from app.bridge.accounts import members
from app.bridge.accounts.erasure import Receipt
from app.bridge.accounts.signup import NewMember
from app.clock import rfc3339
from app.ids import RoleId
from app.registry import accounts, invitations, roles
from app.registry import supervision as edges
from app.registry.roles import Role
from app.web import cursors
from app.web.answers import OBJECT, as_json, no_content
from app.web.preconditions import etag, match_of, require_match
from app.web.routes import AskDep, StrictRoute
from app.web.shapes import (
    Body,
    DisplayName,
    Identifier,
    Line,
    NewPassword,
    NewUsername,
    PageQuery,
    Text,
    time_or_none,
    user_profile,
)

router = APIRouter(route_class=StrictRoute, prefix="/api/admin")


class UserBody(Body):
    """A member made by an administrator, with a temporary password."""

    username: NewUsername
    password: NewPassword
    role_id: Identifier
    encrypted: bool = True
    display_name: DisplayName | None = None


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
    password: NewPassword = ""


class InvitationBody(Body):
    """An invitation to be made."""

    role_id: Identifier


@router.get("/users")
async def list_users(query: Annotated[PageQuery, FromQuery()], ask: AskDep) -> dict[str, Any]:
    """Members, in the order of their making."""
    [after] = cursors.ids_of(query.cursor, 1)
    rows = await ask.room.stores.registry.read(
        lambda reader: accounts.list_page(reader, after, query.limit + 1)
    )
    return cursors.page_of(rows, query.limit, user_profile, lambda row: cursors.encode(row.id))


@router.post("/users", status_code=201)
async def add_user(body: UserBody, ask: AskDep, response: Response) -> dict[str, Any]:
    """Make a member with a temporary password; they change it, and their key with it."""
    new = NewMember(
        body.username,
        body.password,
        RoleId(body.role_id),
        body.display_name,
        encrypted=body.encrypted,
        is_temporary=True,
    )
    made = await members.add_member(ask.room, ask.caller, new, ask.call)
    response.headers["ETag"] = etag(made.account.version)
    return {"user": user_profile(made.account)}


@router.get("/users/{user_id}")
async def get_user(user_id: str, ask: AskDep, response: Response) -> dict[str, Any]:
    """One member."""
    row = await ask.room.stores.registry.read(lambda reader: accounts.get(reader, user_id))
    require_match(ask.request, row.version)
    response.headers["ETag"] = etag(row.version)
    return {"user": user_profile(row)}


@router.patch("/users/{user_id}", response_model=OBJECT)
async def patch_user(user_id: str, body: UserPatch, ask: AskDep) -> Response:
    """Change a member; deactivation takes effect before this answers.

    With a password the call takes no `Idempotency-Key`.
    """  # noqa: DOC201 - the words are OpenAPI's
    changes, match = body.model_dump(exclude_unset=True), match_of(ask.request)
    return await ask.once(
        lambda call: members.patch_member(
            ask.room, ask.caller, user_id, changes, call, match=match
        ),
        as_json(lambda row: {"user": user_profile(row)}, version_of=lambda row: row.version),
    )


@router.delete("/users/{user_id}", response_model=OBJECT)
async def erase_user(user_id: str, ask: AskDep) -> Response:
    """Erase a member: their file, and all that the registry knows of them."""
    match = match_of(ask.request)
    return await ask.once(
        lambda call: members.erase_member(ask.room, ask.caller, user_id, call, match),
        as_json(_receipt),
    )


def _receipt(receipt: Receipt) -> dict[str, Any]:
    return {"receipt": {**dataclasses.asdict(receipt), "erased_at": rfc3339(receipt.erased_at)}}


@router.get("/invitations")
async def list_invitations(query: Annotated[PageQuery, FromQuery()], ask: AskDep) -> dict[str, Any]:
    """Invitations that are still good; never their tokens."""
    rows = await ask.room.stores.registry.read(invitations.list_good)
    return cursors.page_of_all(
        rows,
        query,
        lambda row: {
            "id": row.id,
            "role_id": row.role_id,
            "invited_by": row.invited_by,
            "expires_at": time_or_none(row.expires_at),
            "created_at": time_or_none(row.created_at),
        },
        lambda row: row.id,
        is_falling=True,
    )


@router.post("/invitations", status_code=201)
async def add_invitation(body: InvitationBody, ask: AskDep) -> dict[str, Any]:
    """Make an invitation; its token is shown once."""
    token, row = await members.invite(ask.room, ask.caller, body.role_id, ask.call)
    return {"id": row.id, "token": token.text(), "expires_at": time_or_none(row.expires_at)}


@router.delete("/invitations/{invitation_id}", status_code=204)
async def remove_invitation(invitation_id: str, ask: AskDep) -> Response:
    """Take an unused invitation back."""
    return await ask.once(
        lambda call: ask.room.stores.registry.write(
            lambda tx: invitations.take_back(tx, invitation_id),
            ask.caller.actor(call),
            once=call.once,
        ),
        no_content,
    )


def _role(row: Role, capabilities: list[str]) -> dict[str, Any]:
    return {
        "id": row.id,
        "label": row.label,
        "permission_group": row.permission_group,
        "attrs": dataclasses.asdict(roles.parse_attrs(row.attrs)),
        "effective_groups": sorted(roles.effective_groups(row)),
        "capabilities": list(roles.CAPABILITIES) if row.id == roles.ADMIN else capabilities,
        "is_administrator": row.id == roles.ADMIN,
    }


@router.get("/roles")
async def list_roles(query: Annotated[PageQuery, FromQuery()], ask: AskDep) -> dict[str, Any]:
    """Every role, with what it may do."""
    found = await ask.room.stores.registry.read(roles.list_all)
    return cursors.page_of_all(found, query, lambda each: _role(*each), lambda each: each[0].id)


@router.get("/supervision")
async def list_supervision(query: Annotated[PageQuery, FromQuery()], ask: AskDep) -> dict[str, Any]:
    """Who may read what is reported on whom."""
    subject, supervisor = cursors.ids_of(query.cursor, 2)
    rows = await ask.room.stores.registry.read(
        lambda reader: edges.list_page(reader, subject, supervisor, query.limit + 1)
    )
    return cursors.page_of(
        rows,
        query.limit,
        lambda row: {
            "subject_user_id": row.subject_user_id,
            "supervisor_user_id": row.supervisor_user_id,
            "created_at": time_or_none(row.created_at),
        },
        lambda row: cursors.encode(row.subject_user_id, row.supervisor_user_id),
    )


@router.put("/supervision/{subject}/{supervisor}", status_code=204)
async def connect(subject: str, supervisor: str, ask: AskDep) -> Response:
    """Let the supervisor read what is reported on the subject."""
    return await ask.once(
        lambda call: ask.room.stores.registry.write(
            lambda tx: edges.add(tx, subject, supervisor),
            ask.caller.actor(call),
            once=call.judged(lambda reader: edges.require_both(reader, subject, supervisor)).once,
        ),
        no_content,
    )


@router.delete("/supervision/{subject}/{supervisor}", status_code=204)
async def disconnect(subject: str, supervisor: str, ask: AskDep) -> Response:
    """Take that away, from the next request on."""
    return await ask.once(
        lambda call: ask.room.stores.registry.write(
            lambda tx: edges.remove(tx, subject, supervisor),
            ask.caller.actor(call),
            once=call.once,
        ),
        no_content,
    )
