"""Rows of approvals and their rules, as the registry's statements give them."""

from typing import NamedTuple

from app.ids import UserId


class ApprovalRuleRow(NamedTuple):
    """Which writes of agents a person decides; None is any, in the columns that may be NULL."""

    id: str
    agent_id: str | None
    source: str | None
    tool_pattern: str
    path_pattern: str | None
    action: str
    note: str
    priority: int
    group_id: str | None
    created_at: int
    updated_at: int
    version: int


class ApprovalRow(NamedTuple):
    """The notice of a write that waits, or was decided; neither path nor text."""

    id: str
    requester_user_id: UserId
    agent_id: str | None
    tool: str
    target_root: str
    size_bytes: int
    status: str
    decided_by: UserId | None
    decided_at: int | None
    expires_at: int
    created_at: int
    version: int


class ApprovalStateRow(NamedTuple):
    """How one stands."""

    id: str
    status: str
