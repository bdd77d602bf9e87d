"""Becoming a member: the first administrator's set-up, and an invitation accepted."""

from typing import Annotated, Any

from fastapi import APIRouter, Depends, Request, Response

from app.bridge.accounts import members, setup
from app.bridge.accounts.signup import NewMember, SignedUp
from app.bridge.strongroom import anonymous
from app.crypto import tokens
from app.ids import RoleId
from app.registry import accounts
from app.registry.invitations import Invitation
from app.web.preconditions import etag
from app.web.routes import StrictRoute, VisitDep, call_of, room_of
from app.web.shapes import Body, DisplayName, NewPassword, NewUsername, user_summary

router = APIRouter(route_class=StrictRoute)


class SetupBody(Body):
    """The first administrator."""

    setup_token: str
    username: NewUsername
    password: NewPassword
    display_name: DisplayName | None = None
    encrypted: bool = True


class AcceptBody(Body):
    """An invited member."""

    token: str
    username: NewUsername
    password: NewPassword
    display_name: DisplayName | None = None
    encrypted: bool = True


async def _presented(request: Request, field: str) -> str:
    """A token in the body, read before the other fields are judged; empty when there is none."""
    body = await request.json()
    value = body.get(field) if isinstance(body, dict) else None
    return value if isinstance(value, str) else ""


async def _judge_setup(request: Request) -> None:
    presented = await _presented(request, "setup_token")
    await setup.require_token(room_of(request), presented, call_of(request))


async def _judge_invitation(request: Request) -> Invitation:
    presented = await _presented(request, "token")
    return await members.require_invitation(room_of(request), tokens.parse(presented))


def _signed_up(made: SignedUp, response: Response) -> dict[str, Any]:
    response.headers["ETag"] = etag(made.account.version)
    return {"user": user_summary(made.account), "recovery_code": made.recovery_code}


@router.post("/api/setup", status_code=201, dependencies=[Depends(_judge_setup)])
async def set_up(body: SetupBody, visit: VisitDep, response: Response) -> dict[str, Any]:
    """Make the first administrator, with the token from `database/setup.token`."""
    new = NewMember(
        body.username, body.password, accounts.ADMIN, body.display_name, encrypted=body.encrypted
    )
    return _signed_up(await setup.set_up(visit.room, new, visit.call), response)


@router.post("/api/invitations/accept", status_code=201)
async def accept(
    body: AcceptBody,
    invitation: Annotated[Invitation, Depends(_judge_invitation)],
    visit: VisitDep,
    response: Response,
) -> dict[str, Any]:
    """Become a member with a password of one's own choosing."""
    role_id = RoleId(invitation.role_id)
    new = NewMember(
        body.username, body.password, role_id, body.display_name, encrypted=body.encrypted
    )
    made = await members.accept(visit.room, invitation, new, visit.call, anonymous(visit.call))
    return _signed_up(made, response)
