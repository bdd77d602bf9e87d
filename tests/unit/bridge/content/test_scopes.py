"""What a token that writes and may not read learns of the texts that stand: nothing."""

from dataclasses import replace
from typing import Final

import pytest

from app.bridge.callers import Caller
from app.bridge.content import files
from app.bridge.tools.table import TOOLS
from app.errors.callers import NotPermittedError
from app.owner.edits import Edit, InsertLines, ReplaceLines, ReplaceText
from app.owner.notes import Condition, Written
from app.owner.paths import clean
from tests.support.rig import Rig
from tests.support.rooms import CALL
from tests.support.team import ANY, NEW, Team, run_team

_TEXT: Final = "the code is 8273\n"
_WRITES: Final = frozenset({"memory:write", "shared:write"})
_EDITORS: Final = {"edit_file", "insert_at_line", "replace_lines", "str_replace", "insert"}
_GUESSES: Final[tuple[Edit, ...]] = (
    ReplaceText("8273", "8273"),
    ReplaceText("9999", "9999"),
    InsertLines(99, ""),
    ReplaceLines(1, 99, ""),
)


def _token(member: Caller, scopes: frozenset[str]) -> Caller:
    return replace(member, kind="token", scopes=scopes)


@pytest.mark.parametrize("root", ["user-memory", "shared-memory", "shared/team"])
def test_an_edit_is_for_who_may_read(rig: Rig, root: str) -> None:
    """Whether the text is there or not, whether there is a file or not, the answer is one."""

    async def work(team: Team) -> None:
        room, ref = team.room, clean(f"{root}/note.md")
        await team.put(ref.display, _TEXT)
        writer = _token(team.ben, _WRITES)
        for at in (ref, clean(f"{root}/none.md")):
            for guess in _GUESSES:
                with pytest.raises(NotPermittedError):
                    await files.edit(room, writer, CALL, at, [guess], ANY, adds_bytes=0)
        both = _token(team.ben, _WRITES | {"memory:read"})
        made = await files.edit(room, both, CALL, ref, _GUESSES[:1], ANY, adds_bytes=0)
        assert isinstance(made, Written)
        assert (await files.get(room, team.ben, CALL, ref)).content == _TEXT

    run_team(rig, work)


def test_a_digest_on_the_disk_is_for_who_may_read(rig: Rig) -> None:
    """What only writes there replaces and removes, without a condition, and learns none."""

    async def work(team: Team) -> None:
        room, ref = team.room, clean("shared/team/note.md")
        made = await team.put(ref.display, _TEXT)
        writer = _token(team.ben, _WRITES)
        match = Condition(match=frozenset({made.note.version}))
        for write in (
            lambda: files.put(room, writer, CALL, ref, _TEXT, match),
            lambda: files.put(room, writer, CALL, ref, _TEXT, NEW),
            lambda: files.delete(room, writer, CALL, ref, match),
            lambda: files.append(room, writer, CALL, ref, "", ANY),
            lambda: files.move(room, writer, CALL, ref, clean("shared/team/b.md"), ANY),
        ):
            with pytest.raises(NotPermittedError):
                await write()
        assert await team.read(ref.display) == _TEXT
        await files.put(room, writer, CALL, ref, "other", ANY)
        assert await files.delete(room, writer, CALL, ref, ANY) == 1

    run_team(rig, work)


def test_a_tool_that_looks_into_a_text_needs_both_scopes(rig: Rig) -> None:
    """It is neither offered to nor done for a token without either."""

    async def work(team: Team) -> None:
        assert {name for name, tool in TOOLS.items() if tool.looks} == _EDITORS
        for tool in TOOLS.values():
            for scope in _WRITES:
                is_blind = not tool.looks and not tool.reads_only
                assert tool.is_for(_token(team.ben, frozenset({scope}))) == is_blind
                assert tool.is_for(_token(team.ben, frozenset({scope, "memory:read"})))
            assert tool.is_for(_token(team.ben, frozenset({"memory:read"}))) == tool.reads_only

    run_team(rig, work)
