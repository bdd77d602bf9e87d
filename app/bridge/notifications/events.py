"""The feed of events: the caller's own store's, and of the group's what the caller may see.

Of one's own a person sees all, a token what it could ask for (`may_be_told`). `may_see` alone
decides who is told of an event in the group's store, in pages, streams and webhooks alike:
whoever the event's entity would be shown to when asked for by itself.
"""

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any, Final, Protocol

from app.bridge.access import with_own
from app.bridge.callers import Call, Caller, covers
from app.bridge.content.reports import Home
from app.bridge.strongroom import Strongroom
from app.clock import Millis
from app.db.owner.store import OwnerReader, OwnerTransactor
from app.db.registry.store import RegistryReader
from app.ids import RoleId, UserId
from app.owner import identity, reports
from app.owner.reports import ReportRights
from app.registry import roles, supervision
from app.registry.roles import Capability
from app.registry.sessions import ALL_SCOPES
from app.runtime import events
from app.runtime.events import Cursor, Event, Page, Types

SCOPE: Final = "events:read"
"""What a token needs to be told of events at all."""
_BATCH: Final = 2_000

OVERSEEN: Final[dict[str, Capability | None]] = {
    "user": "users.read",
    "role": "users.read",
    "role_capability": "users.read",
    "tool_permission_group": "users.read",
    "invitation": "users.read",
    "supervision": "supervision.manage",
    "session": "audit.read",
    "key_slot": "audit.read",
    "config": "config.manage",
    "approval_rule": "config.manage",
    "user_config": "config.manage",
    "secret": "config.manage",
    "flag": "operate",
    "shared_folder": "grants.manage",
    "shared_folder_member": "grants.manage",
    "project": "audit.read",
    "project_member": "audit.read",
    "disk_file": "audit.read",
    "subscription": None,
    "schedule": "operate",
    "scheduled_job": "operate",
}
"""What administrators are told of, and by which capability; None: by the role `admin` alone."""

OWN: Final[dict[str, str | None]] = {
    "memory_doc": "memory:read",
    "report": "reports:read",
    "secret": "secrets",
    "user_config": None,
    "subscription": None,
    "schedule": "jobs:work",
}
"""Of their member's own store, what tokens are told of, and by which scope beside the feed's;
None: by none, as no token can ask for it. A blob is told of as what it hangs on."""


class Told(Protocol):
    """An event as far as it says who may see it; of the log or of the outbox."""

    @property
    def entity_type(self) -> str:
        """As `memory_doc`."""

    @property
    def audience(self) -> str:
        """`members`, `admins` or `supervisors`."""

    @property
    def payload(self) -> str:
        """JSON."""


@dataclass(frozen=True, slots=True)
class Viewer:
    """What decides which of the group's events somebody is told of, as of now."""

    user_id: UserId
    is_admin: bool
    capabilities: frozenset[str]
    """Of the role, where it is not the administrator's, which has them all."""
    subjects: frozenset[UserId]
    """Whom they supervise."""
    scopes: frozenset[str] = frozenset({ALL_SCOPES})
    """Of their credential."""

    def has_scope(self, scope: str) -> bool:
        """Whether the credential was made for this."""
        return covers(self.scopes, scope)


@dataclass(frozen=True, slots=True)
class _Facts:
    """A report's, as its events carry them."""

    subject_user_id: UserId | None
    producer_user_id: UserId
    audience: str


def may_see(event: Told, viewer: Viewer) -> bool:
    """Whether somebody is told of an event in the group's store.

    Notes by whoever may read them; reports, and what hangs on them, by the one rule for reports,
    also when the report is gone, for the event says whom it was about; approvals by the member
    who decides; what else is the registry's by the capability that its own call needs. Whatever
    has no rule here nobody is told of.

    Args:
        event: Of the group's store.
        viewer: Who asks.

    Returns:
        The same at every place where events are handed out.
    """
    sees = _OF_CONTENT.get(event.entity_type)
    if sees is not None:
        return sees(event, viewer)
    if event.entity_type not in OVERSEEN or not viewer.has_scope("admin"):
        return False
    return viewer.is_admin or OVERSEEN[event.entity_type] in viewer.capabilities


def _sees_note(event: Told, viewer: Viewer) -> bool:
    return event.audience == "members" and viewer.has_scope("memory:read")


def _sees_report(event: Told, viewer: Viewer) -> bool:
    return viewer.has_scope("reports:read") and _may_read_report(json.loads(event.payload), viewer)


def _sees_blob(event: Told, viewer: Viewer) -> bool:
    if event.audience == "members":
        return viewer.has_scope("memory:read")
    report = json.loads(event.payload).get("report")
    return viewer.has_scope("reports:read") and _may_read_report(report or {}, viewer)


def _sees_approval(event: Told, viewer: Viewer) -> bool:
    # Its member alone, and no token: none can list them.
    is_own = json.loads(event.payload).get("requester_user_id") == viewer.user_id
    return is_own and viewer.has_scope(ALL_SCOPES)


_OF_CONTENT: Final[Mapping[str, Callable[[Told, Viewer], bool]]] = {
    "memory_doc": _sees_note,
    "report": _sees_report,
    "blob": _sees_blob,
    "approval": _sees_approval,
}
"""Entities whose events follow the rule of their own GET, and that rule."""


def may_be_told(event: Told, scopes: frozenset[str]) -> bool:
    """Whether a credential is told of an event in its member's own store.

    Args:
        event: Of their own store.
        scopes: Of the credential; a person's session has them all.

    Returns:
        Whether it could ask for the event's entity by itself; False for what has no rule.
    """
    if ALL_SCOPES in scopes:
        return True
    entity = event.entity_type
    if entity == "blob":
        entity = "memory_doc" if event.audience == "members" else "report"
    scope = OWN.get(entity)
    return scope is not None and covers(scopes, scope)


def _may_read_report(told: dict[str, Any], viewer: Viewer) -> bool:
    if "producer_user_id" not in told:
        return False
    facts = _Facts(told["subject_user_id"], told["producer_user_id"], told["audience"])
    rights = ReportRights(viewer.user_id, is_admin=viewer.is_admin, subjects=viewer.subjects)
    return reports.may_read_report(facts, rights)


def viewer_of(
    reader: RegistryReader,
    user_id: UserId,
    role_id: RoleId,
    scopes: frozenset[str] = frozenset({ALL_SCOPES}),
) -> Viewer:
    """What somebody may be told of, as of now.

    Args:
        reader: The registry.
        user_id: The member.
        role_id: Their present role.
        scopes: Of their credential; all when there is none, as for a webhook.

    Returns:
        To be asked for anew for every page or delivery.
    """
    return Viewer(
        user_id=user_id,
        is_admin=role_id == roles.ADMIN,
        capabilities=roles.capabilities_of(reader, role_id),
        subjects=supervision.subjects_of(reader, user_id),
        scopes=scopes,
    )


async def viewer(room: Strongroom, caller: Caller) -> Viewer:
    """What a caller may be told of, as of now."""
    return await room.stores.registry.read(
        lambda reader: viewer_of(reader, caller.user_id, caller.role_id, caller.scopes)
    )


def read_log(
    reader: OwnerReader, after: Cursor | None, limit: int, admit: Callable[[Event], bool]
) -> Page:
    """A page of one store's log; see `app.runtime.events.read_page`."""
    epoch = identity.get_identity(reader).epoch
    return events.read_page(reader, epoch, after, limit, admit)


async def admission(
    room: Strongroom, caller: Caller, home: Home, types: Types
) -> Callable[[Event], bool]:
    """Which events of a home a caller is shown: of those wanted, what their credential may see.

    Returns:
        The judge, as of now.
    """
    if home == "own":
        scopes = caller.scopes
        return lambda event: types.admit(event) and may_be_told(event, scopes)
    asking = await viewer(room, caller)
    return lambda event: types.admit(event) and may_see(event, asking)


async def read_page(  # noqa: PLR0913, PLR0917 - the parts of one page
    room: Strongroom,
    caller: Caller,
    call: Call,
    home: Home,
    after: Cursor | None,
    types: Types,
    limit: int,
) -> Page:
    """A page of one home's events, oldest first.

    Returns:
        What the caller may see, and where to go on.

    Raises:
        EventCursorError: The log cannot be followed from this place; which, says its type.
    """
    admit = await admission(room, caller, home, types)
    read = partial(read_log, after=after, limit=limit, admit=admit)
    if home == "group":
        return await room.stores.group.read(read)
    return await with_own(room, caller, call, lambda store: store.read(read))


async def prune_own(room: Strongroom, caller: Caller, call: Call, before: Millis) -> int:
    """Remove the oldest of the caller's own events; what is younger stays, and so do places.

    Returns:
        How many went.
    """
    actor = caller.actor(call)

    def prune(tx: OwnerTransactor) -> int:
        count = 0
        while gone := events.prune(tx, before, _BATCH):
            count += gone
        return count

    return await with_own(
        room, caller, call, lambda store: store.write(prune, actor, once=call.once)
    )
