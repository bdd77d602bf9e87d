"""What tools say of themselves, and of what is not done yet."""

import pytest

from app.bridge.callers import Call
from app.bridge.content.asking import Waiting, source_of
from app.bridge.tools.table import TOOLS
from app.bridge.tools.toolbox import ANSWER_SCHEMA, Answer, Deed


async def _never(_call: Call) -> Answer | Waiting:
    raise NotImplementedError


def test_what_waits_is_told_with_the_approval_and_its_end() -> None:
    """So that an agent neither believes it done nor sends it again."""
    deed: Deed[Answer] = Deed(_never, lambda answer: answer)
    told = deed.answer(Waiting("an-approval", 1_800_000_000_000))
    assert told.facts() == {"output": told.output, "approval": {"id": "an-approval"}}
    assert "an-approval" in told.output
    assert "2027-01-15T08:00:00.000Z" in told.output
    assert deed.answer(Answer("done")).facts() == {"output": "done"}


def test_an_answer_has_what_applies() -> None:
    """Each fact of it is in the schema."""
    whole = Answer("x", 2, 1, "id").facts()
    assert set(whole) == set(ANSWER_SCHEMA["properties"])
    assert set(Answer("x").facts()) == set(ANSWER_SCHEMA["required"])


@pytest.mark.parametrize("name", TOOLS)
def test_a_schema_says_all_by_itself(name: str) -> None:
    """It refers to nothing outside of it, and takes no more than it names."""
    schema = TOOLS[name].input_schema
    assert "$ref" not in str(schema)
    assert schema["additionalProperties"] is False
    assert schema is TOOLS[name].input_schema


def test_rules_of_approval_know_the_surface() -> None:
    """By the action that each of them records."""
    assert source_of(Call("POST /api/tools/write_file", "")) == "tools"
    assert source_of(Call("POST /mcp/write_file", "")) == "mcp"
