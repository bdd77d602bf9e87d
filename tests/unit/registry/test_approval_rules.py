"""Rules of approvals: in order, the first that fits, the strictest of several paths."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.db.registry.store import RegistryTransactor
from app.errors.callers import NotFoundError
from app.errors.conflicts import VersionConflictError
from app.errors.inputs import InvalidInputError
from app.registry import approval_rules
from app.registry.approval_rules import FS_WRITE, RULES_MAX, Action, Asking, NewRule, Rule

_ASKING = Asking("scribe", "files", "write_file", frozenset({"default"}))


def _rule(action: Action = "allow", **said: str) -> Rule:
    return Rule(
        id="x",
        agent_id=said.get("agent_id"),
        source=said.get("source"),
        tool_pattern=said.get("tool_pattern", "*"),
        path_pattern=said.get("path_pattern"),
        action=action,
        note="",
        priority=0,
        group_id=said.get("group_id"),
        created_at=0,
        updated_at=0,
        version=1,
    )


def test_the_seeds_let_agents_write_their_members_memory_alone(tx: RegistryTransactor) -> None:
    """A person decides what others read, and whatever no rule names."""
    rules = approval_rules.list_all(tx)
    assert [(rule.tool_pattern, rule.path_pattern, rule.action) for rule in rules] == [
        ("@fs_any", "user-memory/*", "allow"),
        ("@fs_read", "shared-memory/*", "allow"),
        ("@fs_write", "shared-memory/*", "require"),
        ("*", None, "require"),
    ]
    for tool in FS_WRITE:
        asking = replace(_ASKING, tool=tool)
        for path, wanted in (
            ("user-memory/a/b.md", "allow"),
            ("shared-memory/a/b.md", "require"),
            ("shared/team/a.md", "require"),
            ("projects/ana/x/a.md", "require"),
            ("user-memoryish/x", "require"),
        ):
            assert approval_rules.decide(rules, asking, [path]) == wanted, path
            assert approval_rules.decide([], asking, [path]) == "require"


@pytest.mark.parametrize(
    ("said", "fits"),
    [
        ({}, True),
        ({"agent_id": "scribe"}, True),
        ({"agent_id": "other"}, False),
        ({"source": "files"}, True),
        ({"source": "mcp"}, False),
        ({"group_id": "default"}, True),
        ({"group_id": "others"}, False),
        ({"tool_pattern": "write_file"}, True),
        ({"tool_pattern": "*_file"}, True),
        ({"tool_pattern": "@fs_write"}, True),
        ({"tool_pattern": "@fs_any"}, True),
        ({"tool_pattern": "@fs_read"}, False),
        ({"tool_pattern": "delete_file"}, False),
        ({"path_pattern": "shared-memory/*"}, True),
        ({"path_pattern": "shared-memory/*.md"}, True),
        ({"path_pattern": "shared-memory/x"}, False),
        ({"path_pattern": "SHARED-MEMORY/*"}, False),
    ],
)
def test_a_rule_fits_when_all_it_says_fits(said: dict[str, str], fits: bool) -> None:  # noqa: FBT001 - a column
    """Whatever it leaves out is any."""
    rules = [_rule("allow", **said), _rule("deny")]
    wanted = "allow" if fits else "deny"
    assert approval_rules.decide(rules, _ASKING, ["shared-memory/deep/note.md"]) == wanted


def test_an_administrator_has_every_group(tx: RegistryTransactor) -> None:
    """Others those of their role, and nobody's role none."""
    assert approval_rules.groups_of(tx, "admin") is None
    assert approval_rules.groups_of(tx, "member") == frozenset({"default"})
    assert approval_rules.groups_of(tx, "nobody") == frozenset()
    rules = [_rule("allow", group_id="others")]
    asking = replace(_ASKING, groups=None)
    assert approval_rules.decide(rules, asking, ["shared-memory/x"]) == "allow"


@given(st.lists(st.sampled_from(["allow", "require", "deny"]), min_size=1, max_size=5))
def test_of_several_paths_the_strictest_decides(actions: list[Action]) -> None:
    """In whatever order they come."""
    rules = [_rule(action, path_pattern=f"p{n}") for n, action in enumerate(actions)]
    paths = [f"p{n}" for n in range(len(actions))]
    strictest = min(actions, key=["deny", "require", "allow"].index)
    assert approval_rules.decide(rules, _ASKING, paths) == strictest
    assert approval_rules.decide(rules, _ASKING, reversed(paths)) == strictest


@given(st.text(max_size=30), st.text(max_size=30))
def test_no_pattern_breaks_a_decision(pattern: str, path: str) -> None:
    """Whatever an administrator writes, there is an answer."""
    rules = [_rule("allow", path_pattern=pattern, tool_pattern=pattern)]
    assert approval_rules.decide(rules, _ASKING, [path]) in {"allow", "require"}


def test_rules_are_made_changed_and_removed(tx: RegistryTransactor) -> None:
    """By version; the same again is no change; what names nothing is refused."""
    new = NewRule("@fs_write", "deny", 5, path_pattern="shared-memory/secret/*", note="why")
    made = approval_rules.add(tx, new)
    assert approval_rules.list_all(tx)[0] == made
    assert approval_rules.change(tx, made.id, new, frozenset({1})).version == 1
    changed = approval_rules.change(tx, made.id, replace(new, priority=6), None)
    assert (changed.priority, changed.version) == (6, 2)
    for wrong in (replace(new, tool_pattern="@fs_wrote"), replace(new, group_id="nobody")):
        with pytest.raises(InvalidInputError):
            approval_rules.add(tx, wrong)
        with pytest.raises(InvalidInputError):
            approval_rules.change(tx, made.id, wrong, None)
    for match in (frozenset({1}), frozenset[int]()):
        with pytest.raises(VersionConflictError):
            approval_rules.change(tx, made.id, new, match)
        with pytest.raises(VersionConflictError):
            approval_rules.remove(tx, made.id, match)
    approval_rules.remove(tx, made.id, frozenset({2}))
    with pytest.raises(NotFoundError):
        approval_rules.remove(tx, made.id, None)
    for _ in range(RULES_MAX - len(approval_rules.list_all(tx))):
        approval_rules.add(tx, new)
    with pytest.raises(InvalidInputError):
        approval_rules.add(tx, new)
