"""What others did to a member's account, from the registry's audit."""

import json
from dataclasses import dataclass

from app.db.registry.store import RegistryReader
from app.db.runtime import statements as sql
from app.ids import UserId

_LAST = (1 << 63) - 1


@dataclass(frozen=True, slots=True)
class Act:
    """One thing that an administrator, or the operator, did."""

    seq: int
    """Its place; grows."""
    at: int
    """Unix milliseconds UTC."""
    actor: str
    """A user's id, with an agent's after a slash; `cli` for the operator."""
    action: str
    """The route's template, or the command's name."""
    kind: str
    """`insert`, `update` or `delete`."""
    entity: str
    """`user`, the account itself, or `supervision`: who may read what is reported on it."""
    fields: tuple[str, ...]
    """Names of what was set or changed."""


def list_acts(reader: RegistryReader, user_id: UserId, before: int | None, limit: int) -> list[Act]:
    """What others did to a member, newest first.

    Args:
        reader: The registry.
        user_id: The member.
        before: The `seq` that ended the page before; None for the newest.
        limit: Most to give.

    Returns:
        They; fewer than the limit at the end.
    """
    rows = reader.all(
        sql.LIST_AUDIT_BY_OTHERS,
        entity="user",
        record_id=user_id,
        edge="supervision",
        # The ids of edges are two users' ids with a colon between.
        edges_after=f"{user_id}:",
        edges_before=f"{user_id};",
        before=_LAST if before is None else before,
        limit=limit,
    )
    return [
        Act(
            seq=row.seq,
            at=row.occurred_at,
            actor=row.actor_sub,
            action=row.action,
            kind=row.kind,
            entity=row.entity,
            fields=tuple(json.loads(row.fields or "{}")),
        )
        for row in rows
    ]
