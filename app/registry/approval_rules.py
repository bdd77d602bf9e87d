"""Which writes of agents are done at once, which a person decides, and which are refused.

Rules are asked in the order of their priority, the lowest number first; the first that fits
decides, and where none fits a person does. A rule that names a glob means it as shells do,
`*` across slashes too; a path is the canonical one, with its root.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Final, Literal

from app.db.registry import statements as sql
from app.db.registry.approval_rows import ApprovalRuleRow
from app.db.registry.store import RegistryReader, RegistryTransactor
from app.errors.callers import NotFoundError
from app.errors.inputs import InvalidInputError
from app.registry import roles
from app.runtime.versions import Match, require_version

Action = Literal["require", "allow", "deny"]
Source = Literal["files", "tools", "mcp"]
Rule = ApprovalRuleRow
"""One of them."""

RULES_MAX: Final = 200
"""Rules that there can be: each write of an agent asks them."""
PRIORITY_MAX: Final = 999_999
"""The last rule of all, that asks for a person whatever it is, stands at one more."""

FS_READ: Final = frozenset({"read_file", "list_files", "search_file", "memory_search"})
"""What `@fs_read` names; none of it asks for anything."""
FS_WRITE: Final = frozenset(
    {"write_file", "append_file", "edit_file", "move_file", "delete_file", "restore_file"}
)
"""What `@fs_write` names; each way to write a text is one of these, whatever tool asked."""
GROUPS: Final = {"@fs_read": FS_READ, "@fs_write": FS_WRITE, "@fs_any": FS_READ | FS_WRITE}
_STRICT: Final[tuple[Action, ...]] = ("deny", "require", "allow")


@dataclass(frozen=True, slots=True)
class NewRule:
    """What a rule is to say; None is any."""

    tool_pattern: str
    action: Action
    priority: int
    agent_id: str | None = None
    source: Source | None = None
    path_pattern: str | None = None
    note: str = ""
    group_id: str | None = None


@dataclass(frozen=True, slots=True)
class Asking:
    """Who wants to write, and how."""

    agent_id: str | None
    source: Source
    tool: str
    """One of `FS_WRITE`."""
    groups: frozenset[str] | None
    """Permission groups of the member's role; None for an administrator, who has every one."""


def groups_of(reader: RegistryReader, role_id: str) -> frozenset[str] | None:
    """The permission groups of a role; None for the administrator's, which has every one."""
    role = reader.one(sql.FIND_ROLE, role_id=role_id)
    if role_id == roles.ADMIN or role is None:
        return None if role_id == roles.ADMIN else frozenset()
    return roles.effective_groups(role)


def decide(rules: Sequence[Rule], asking: Asking, paths: Iterable[str]) -> Action:
    """What the rules say of a write.

    Args:
        rules: As `list_all` has them.
        asking: Who wants to write, and how.
        paths: Every canonical path that it changes, each with its root.

    Returns:
        The strictest of what they say of each path.
    """
    fitting = [rule for rule in rules if _is_about(rule, asking)]
    said = {_of_path(fitting, path) for path in paths}
    return next((action for action in _STRICT if action in said), "require")


def _of_path(rules: Sequence[Rule], path: str) -> str:
    for rule in rules:
        if rule.path_pattern is None or fnmatchcase(path, rule.path_pattern):
            return rule.action
    return "require"


def _is_about(rule: Rule, asking: Asking) -> bool:
    return (
        rule.agent_id in {None, asking.agent_id}
        and rule.source in {None, asking.source}
        and (rule.group_id is None or asking.groups is None or rule.group_id in asking.groups)
        and _names(rule.tool_pattern, asking.tool)
    )


def _names(pattern: str, tool: str) -> bool:
    group = GROUPS.get(pattern)
    return fnmatchcase(tool, pattern) if group is None else tool in group


def list_all(reader: RegistryReader) -> list[Rule]:
    """Every rule, in the order in which they are asked."""
    return reader.all(sql.LIST_APPROVAL_RULES)


def get(reader: RegistryReader, rule_id: str) -> Rule:
    """One of them.

    Returns:
        It.

    Raises:
        NotFoundError: There is none.
    """
    found = reader.one(sql.FIND_APPROVAL_RULE, id=rule_id)
    if found is None:
        raise NotFoundError
    return found


def add(tx: RegistryTransactor, new: NewRule) -> Rule:
    """Make a rule.

    Returns:
        It.

    Raises:
        InvalidInputError: It names tools or a group that do not exist, or there are as many
            rules as can be.
    """
    count = tx.one(sql.COUNT_APPROVAL_RULES)
    if count is not None and count.value >= RULES_MAX:
        raise InvalidInputError
    _require_sound(tx, new)
    rule_id = tx.new_id()
    tx.run(sql.ADD_APPROVAL_RULE, id=rule_id, now=tx.now_ms, **_columns(new))
    return get(tx, rule_id)


def change(tx: RegistryTransactor, rule_id: str, new: NewRule, match: Match) -> Rule:
    """Have a rule say something else; the same again changes nothing.

    Returns:
        It.

    Raises:
        NotFoundError: There is none.
        VersionConflictError: It stands at another version than was asked for.
        InvalidInputError: It names tools or a group that do not exist.
    """
    present = get(tx, rule_id)
    require_version(present.version, match)
    columns = _columns(new)
    if all(getattr(present, name) == value for name, value in columns.items()):
        return present
    _require_sound(tx, new)
    tx.run(
        sql.SET_APPROVAL_RULE,
        id=rule_id,
        read_version=present.version,
        now=tx.now_ms,
        **columns,
    )
    return get(tx, rule_id)


def remove(tx: RegistryTransactor, rule_id: str, match: Match) -> None:
    """Take a rule away.

    Raises:
        NotFoundError: There is none.
        VersionConflictError: It stands at another version than was asked for.
    """
    present = get(tx, rule_id)
    require_version(present.version, match)
    tx.run(sql.REMOVE_APPROVAL_RULE, id=rule_id, read_version=present.version)


def _columns(new: NewRule) -> dict[str, str | int | None]:
    return {
        "agent_id": new.agent_id,
        "source": new.source,
        "tool_pattern": new.tool_pattern,
        "path_pattern": new.path_pattern,
        "action": new.action,
        "note": new.note,
        "priority": new.priority,
        "group_id": new.group_id,
    }


def _require_sound(tx: RegistryTransactor, new: NewRule) -> None:
    # A name of tools that does not exist would be a rule that never fits.
    if new.tool_pattern.startswith("@") and new.tool_pattern not in GROUPS:
        raise InvalidInputError(field="tool_pattern")
    if new.group_id is not None and tx.one(sql.FIND_PERMISSION_GROUP, id=new.group_id) is None:
        raise InvalidInputError(field="group_id")
