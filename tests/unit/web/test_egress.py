"""Every call, tool and job that can carry text out of a member's store is guarded, and named."""

from typing import Any, Final

import pytest

from app.bridge.accounts.api_tokens import SCOPES
from app.bridge.tools.table import TOOLS
from app.web.egress import CARRIES_OUT, DEFAULT_SCOPES, JOB_KINDS, STAYS, Guard
from app.web.registry.me import TokenBody
from app.web.rules import RULES, Rule
from app.worker.handlers import OWN
from tests.support.descriptions import DESCRIPTION

_SAFE: Final = frozenset({"get", "head"})


def writes_of(description: dict[str, Any]) -> set[str]:
    """Every call of a description that may change something."""
    return {
        f"{method.upper()} {path}"
        for path, methods in description["paths"].items()
        for method in methods
        if method not in _SAFE
    }


def unnamed(writes: set[str]) -> set[str]:
    """Those in neither table, and those in one that are not there."""
    return writes ^ (CARRIES_OUT.keys() | STAYS.keys())


def test_every_call_that_changes_something_is_in_one_of_the_two_tables() -> None:
    """As the service describes itself, and as its rules have it."""
    writes = {route for route in RULES if route.split()[0].lower() not in _SAFE}
    assert unnamed(writes) == set()
    assert writes_of(DESCRIPTION) <= writes
    assert CARRIES_OUT.keys() & STAYS.keys() == set()


def test_a_new_call_is_noticed() -> None:
    """It is in neither, so it cannot be added without a word."""
    grown = {"paths": {**DESCRIPTION["paths"], "/api/publish": {"post": {}}}}
    assert "POST /api/publish" in unnamed(writes_of(grown))


def _holds(guard: Guard, rule: Rule) -> bool:
    if guard == "person":
        return rule.scope is None
    if guard == "scope":
        return bool(rule.scope) and rule.scope in SCOPES and rule.scope not in DEFAULT_SCOPES
    # Whether an agent is closed out, or its member asked, depends on the path or the audience.
    return rule.scope is not None


@pytest.mark.parametrize("route", CARRIES_OUT)
def test_a_guard_is_what_the_calls_rule_says(route: str) -> None:
    """A person, or a scope that no token has by default; else the bridge judges."""
    assert _holds(CARRIES_OUT[route], RULES[route])


def test_a_token_has_no_other_scope_by_default() -> None:
    """Whoever mints one says so, or it reads its member's memory alone."""
    assert set(TokenBody(label="x").scopes) == DEFAULT_SCOPES


def test_every_tool_is_a_call_of_its_own() -> None:
    """So it stands in the tables under its name; those that write elsewhere ask."""
    for name in TOOLS:
        assert f"POST /api/tools/{name}" in CARRIES_OUT.keys() | STAYS.keys()


def test_every_kind_of_job_is_named() -> None:
    """A handler of the program could send anything anywhere."""
    assert JOB_KINDS.keys() == OWN.kinds
