"""Roles: what a caller may do beyond their own store, and how a role's attributes read."""

import json
from dataclasses import dataclass
from typing import Any, Final, Literal, get_args

from app.db.registry import statements as sql
from app.db.registry.rows import RoleRow
from app.db.registry.store import RegistryReader
from app.ids import RoleId

Capability = Literal[
    "users.read",
    "users.manage",
    "supervision.manage",
    "config.manage",
    "roles.manage",
    "grants.manage",
    "reports.publish",
    "agents.manage",
    "operate",
    "audit.read",
]

CAPABILITIES: Final[tuple[Capability, ...]] = get_args(Capability)
ADMIN: Final = RoleId("admin")
DEFAULT_CHAT_AGENT: Final = "assistant"


Role = RoleRow
"""One role."""


@dataclass(frozen=True, slots=True)
class RoleAttrs:
    """A role's attributes; whatever is malformed or missing reads as its default."""

    ui_mode: Literal["full", "simple"] = "full"
    permission_groups: tuple[str, ...] = ()
    chat_agent: str = DEFAULT_CHAT_AGENT
    auto_grant: bool = True


def parse_attrs(text: str) -> RoleAttrs:
    """Read `roles.attrs`; never fails, so that one bad row closes nobody out."""
    try:
        found: Any = json.loads(text)
    except ValueError:
        return RoleAttrs()
    if not isinstance(found, dict):
        return RoleAttrs()
    groups = found.get("permission_groups")
    agent = found.get("chat_agent")
    grant = found.get("auto_grant")
    return RoleAttrs(
        ui_mode="simple" if found.get("ui_mode") == "simple" else "full",
        permission_groups=tuple(g for g in groups if isinstance(g, str))
        if isinstance(groups, list)
        else (),
        chat_agent=agent if isinstance(agent, str) and agent else DEFAULT_CHAT_AGENT,
        auto_grant=grant if isinstance(grant, bool) else True,
    )


def effective_groups(role: RoleRow) -> frozenset[str]:
    """The tool permission groups a role has; an administrator may all, whatever this says."""
    return frozenset({role.permission_group, *parse_attrs(role.attrs).permission_groups})


def list_all(reader: RegistryReader) -> list[tuple[RoleRow, list[str]]]:
    """Every role with the capabilities it was given; an administrator has all and no list."""
    return [
        (role, [row.value for row in reader.all(sql.LIST_CAPABILITIES, role_id=role.id)])
        for role in reader.all(sql.LIST_ROLES)
    ]


def holds(reader: RegistryReader, role_id: str, capability: Capability) -> bool:
    """Whether a role has a capability; an administrator has every one."""
    if role_id == ADMIN:
        return True
    found = reader.one(sql.FIND_CAPABILITY, role_id=role_id, capability=capability)
    return found is not None


def capabilities_of(reader: RegistryReader, role_id: str) -> frozenset[str]:
    """What a role was given; an administrator's has every one and no list."""
    return frozenset(row.value for row in reader.all(sql.LIST_CAPABILITIES, role_id=role_id))


def administers(reader: RegistryReader, role_id: str) -> bool:
    """Whether a role has any capability at all."""
    return role_id == ADMIN or bool(reader.all(sql.LIST_CAPABILITIES, role_id=role_id))
