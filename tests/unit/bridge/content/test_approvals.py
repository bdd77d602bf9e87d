"""Writes of agents where others read: they wait, their member decides, they are done once."""

import asyncio
from collections.abc import Callable
from dataclasses import replace

import pytest

from app.bridge import access
from app.bridge.accounts.erasure import erase
from app.bridge.callers import Caller
from app.bridge.content import approvals, files
from app.bridge.content.asking import Waiting
from app.bridge.strongroom import Strongroom
from app.db.runtime import statements as runtime_sql
from app.errors.callers import NotFoundError, TooManyApprovalsError
from app.errors.conflicts import (
    AlreadyExistsError,
    ApprovalOverError,
    NoMatchError,
    PathConflictError,
    RunnerLostError,
    VersionConflictError,
)
from app.errors.inputs import PayloadTooLargeError, RecursiveRequiredError
from app.errors.root import StrongroomError
from app.owner import pending_writes
from app.owner.edits import Edit, InsertLines, ReplaceLines, ReplaceText
from app.owner.notes import Condition
from app.owner.paths import SHARED_MEMORY, PathRef
from app.registry import approvals as notices
from app.runtime import audit, steps
from app.runtime.audit import ChangeFilter
from app.runtime.idempotency import Replayed
from tests.support.asking import (
    PLAN,
    TEXT,
    Pair,
    agent_of,
    ask,
    kept,
    notice_of,
    once_of,
    pair,
    shared_text,
    status_of,
    write_as_person,
)
from tests.support.rig import ACTOR, Rig, add, enter
from tests.support.rooms import CALL

_ANY = Condition()
_OTHER = PathRef(SHARED_MEMORY, "a-secret-other.md")
_FOLDER = PathRef(SHARED_MEMORY, "a-secret-folder")
_DAY_MS = 86_400_000


def _in_folder(name: str) -> PathRef:
    return PathRef(SHARED_MEMORY, f"{_FOLDER.key}/{name}")


def test_what_an_agent_asks_is_done_when_its_member_says_so(rig: Rig) -> None:
    """Nothing before; then the text, by the agent's name, and nothing waits any more."""

    async def work(room: Strongroom) -> None:
        who = await pair(room)
        waits = await ask(room, who.agent)
        assert await shared_text(room) is None
        found = await notice_of(room, who.member, waits)
        assert (found.status, found.tool, found.target_root) == (
            "pending",
            "write_file",
            SHARED_MEMORY,
        )
        assert (found.size_bytes, found.agent_id) == (len(TEXT), "scribe")
        assert await approvals.approve(room, who.member, CALL, waits) == "done"
        assert await shared_text(room) == TEXT
        note = await files.get(room, who.member, CALL, PLAN)
        assert note.author == f"{who.member.user_id}/scribe"
        assert await status_of(room, who.member, waits) == "done"
        assert await kept(room, who.member) == []

    rig.run(work)


_Writes = dict[str, tuple[str, str | None]]


async def _one_of_each(room: Strongroom, agent: Caller) -> _Writes:
    """Each way to write, asked for; by id, where it is seen and what stands there afterwards."""
    edits: list[Edit] = [
        ReplaceText("two", "zwei"),
        InsertLines(1, "zero"),
        ReplaceLines(3, 3, "drei"),
    ]
    asked = {
        "put.md": (files.put, ("new",), "new"),
        "appended.md": (files.append, ("four",), "one\ntwo\nthree\nfour"),
        "restored.md": (files.restore, (1,), "one\ntwo\nthree"),
    }
    found: _Writes = {}
    for name, (write, given, after) in asked.items():
        waits = await write(room, agent, CALL, _in_folder(name), *given, _ANY)  # type: ignore[operator]  # each with its own
        assert isinstance(waits, Waiting)
        found[waits.approval_id] = (name, after)
    waits = await files.edit(room, agent, CALL, _in_folder("edited.md"), edits, _ANY, adds_bytes=20)
    assert isinstance(waits, Waiting)
    found[waits.approval_id] = ("edited.md", "zero\none\nzwei\ndrei")
    removal = await files.delete(room, agent, CALL, _in_folder("deleted.md"), _ANY)
    assert isinstance(removal, Waiting)
    found[removal.approval_id] = ("deleted.md", None)
    purge = await files.delete(room, agent, CALL, _in_folder("purged.md"), _ANY, purge=True)
    assert isinstance(purge, Waiting)
    found[purge.approval_id] = ("purged.md", None)
    move = await files.move(room, agent, CALL, _in_folder("from.md"), _in_folder("to.md"), _ANY)
    assert isinstance(move, Waiting)
    found[move.approval_id] = ("to.md", "one\ntwo\nthree")
    return found


def test_every_way_to_write_waits_and_is_then_done_as_it_was_asked(rig: Rig) -> None:
    """With the same outcome as for a person, in whatever order the member decides."""

    async def work(room: Strongroom) -> None:
        who = await pair(room)
        for name in ("appended", "restored", "edited", "deleted", "purged", "from"):
            await write_as_person(room, who.member, "one\ntwo\nthree", _in_folder(f"{name}.md"))
        await files.delete(room, who.member, CALL, _in_folder("restored.md"), _ANY)
        asked = await _one_of_each(room, who.agent)
        assert len(await kept(room, who.member)) == len(asked)
        page, has_more = await approvals.list_own(room, who.member, CALL, "pending", None, 50)
        assert {each.approval.id for each in page} == asked.keys()
        assert not has_more
        for approval_id, (name, after) in reversed(asked.items()):
            assert await approvals.approve(room, who.member, CALL, approval_id) == "done"
            assert await shared_text(room, _in_folder(name)) == after, name
        assert await shared_text(room, _in_folder("from.md")) is None

    rig.run(work)


def test_a_folder_is_moved_and_removed_as_it_was_seen(rig: Rig) -> None:
    """One note more in it, or another version of one, and nothing happens."""

    async def work(room: Strongroom) -> None:
        who = await pair(room)
        for name in ("one.md", "two.md"):
            await write_as_person(room, who.member, name, _in_folder(name))
        target = PathRef(SHARED_MEMORY, "moved")
        for change in ("two.md", "three.md"):
            waits = await files.move(room, who.agent, CALL, _FOLDER, target, _ANY, recursive=True)
            assert isinstance(waits, Waiting)
            await write_as_person(room, who.member, "changed", _in_folder(change))
            done = await approvals.approve(room, who.member, CALL, waits.approval_id)
            assert done == "conflict"
        assert await shared_text(room, _in_folder("one.md")) == "one.md"
        removal = await files.delete(room, who.agent, CALL, _FOLDER, _ANY, recursive=True)
        assert isinstance(removal, Waiting)
        assert await approvals.approve(room, who.member, CALL, removal.approval_id) == "done"
        assert await shared_text(room, _in_folder("one.md")) is None

    rig.run(work)


def test_what_changed_since_is_a_conflict_and_stays(rig: Rig) -> None:
    """Made, changed, or taken away: nothing is written over what the agent did not see."""

    async def work(room: Strongroom) -> None:
        who = await pair(room)
        first = await ask(room, who.agent)
        await write_as_person(room, who.member, "by a person")
        assert await approvals.approve(room, who.member, CALL, first) == "conflict"
        assert await shared_text(room) == "by a person"
        rig.clock.advance(1)
        second = await ask(room, who.agent)
        await files.delete(room, who.member, CALL, PLAN, _ANY)
        assert await approvals.approve(room, who.member, CALL, second) == "conflict"
        assert await shared_text(room) is None
        assert await status_of(room, who.member, second) == "conflict"
        assert await kept(room, who.member) == []
        page, _ = await approvals.list_own(room, who.member, CALL, None, None, 50)
        assert [each.approval.id for each in page] == [second, first]
        assert [each.asked for each in page] == [None, None]

    rig.run(work)


def test_what_cannot_be_written_is_refused_at_once(rig: Rig) -> None:
    """As for a person, and nobody is asked."""

    async def refused(room: Strongroom, who: Pair) -> None:
        agent, folder = who.agent, _in_folder("one.md")
        await write_as_person(room, who.member, "one", folder)
        too_long = "x" * (room.settings.note_bytes_max + 1)
        attempts = [
            (VersionConflictError, files.put(room, agent, CALL, folder, "x", _match(99))),
            (AlreadyExistsError, files.put(room, agent, CALL, folder, "x", _NEW)),
            (PathConflictError, files.put(room, agent, CALL, _FOLDER, "x", _ANY)),
            (PayloadTooLargeError, files.put(room, agent, CALL, PLAN, too_long, _ANY)),
            (NotFoundError, files.restore(room, agent, CALL, folder, 77, _ANY)),
            (NotFoundError, files.delete(room, agent, CALL, PLAN, _ANY)),
            (RecursiveRequiredError, files.delete(room, agent, CALL, _FOLDER, _ANY)),
            (AlreadyExistsError, files.move(room, agent, CALL, folder, folder, _ANY)),
            (
                NoMatchError,
                files.edit(room, agent, CALL, folder, [ReplaceText("x", "y")], _ANY, adds_bytes=1),
            ),
        ]
        for error, attempt in attempts:
            with pytest.raises(error):
                await attempt
        assert await kept(room, who.member) == []
        assert await shared_text(room, folder) == "one"

    async def work(room: Strongroom) -> None:
        await refused(room, await pair(room))

    rig.run(work)


_NEW = Condition(must_not_exist=True)


def _match(version: int) -> Condition:
    return Condition(frozenset({version}))


def test_a_rejected_text_is_gone_from_everywhere(rig: Rig) -> None:
    """A plain store's bytes say so, the log's too; before it is in that store and nowhere else."""

    async def work(room: Strongroom) -> None:
        await add(room, encrypted=False)
        who = Pair(member := await enter(room), await agent_of(room, member))
        own = room.settings.user_file(member.user_id).name
        secrets = (TEXT.encode(), b"a-secret-")
        for decide in ("reject", "expire"):
            waits = await ask(room, who.agent)
            assert {name for name in rig.files_with(*secrets) if not name.startswith(own)} == set()
            assert rig.files_with(*secrets)
            if decide == "reject":
                assert await approvals.reject(room, member, CALL, waits) == "rejected"
                assert await status_of(room, member, waits) == "rejected"
            else:
                rig.clock.advance(8 * _DAY_MS)
                who = Pair(member := await enter(room), who.agent)
                await approvals.list_own(room, member, CALL, None, None, 50)
                assert await status_of(room, member, waits) == "expired"
            assert rig.files_with(*secrets) == set()
            assert await kept(room, member) == []
            with pytest.raises(ApprovalOverError):
                await approvals.approve(room, member, CALL, waits)
            with pytest.raises(ApprovalOverError):
                await approvals.reject(room, member, CALL, waits)
        assert await shared_text(room) is None

    rig.run(work)


def test_of_several_decisions_one_counts(rig: Rig) -> None:
    """Twice the same or both ways at once: done once or not at all, and the others are told."""

    async def work(room: Strongroom) -> None:
        who = await pair(room)
        decide = (approvals.approve, approvals.approve, approvals.reject, approvals.approve)
        for number in range(6):
            ref = PathRef(SHARED_MEMORY, f"{number}.md")
            waits = await ask(room, who.agent, TEXT, ref)
            chosen = decide[number % 2 :]
            found = await asyncio.gather(
                *(each(room, who.member, CALL, waits) for each in chosen), return_exceptions=True
            )
            [told] = [each for each in found if isinstance(each, str)]
            others = [each for each in found if not isinstance(each, str)]
            assert all(isinstance(each, ApprovalOverError) for each in others)
            assert await status_of(room, who.member, waits) == told
            assert (await shared_text(room, ref) is not None) == (told == "done")
            assert await kept(room, who.member) == []

    rig.run(work)


def test_another_member_neither_sees_nor_decides(rig: Rig) -> None:
    """Not by id, not in a list; the administrator's list has no path and no text."""

    async def work(room: Strongroom) -> None:
        who = await pair(room)
        await add(room, "ben", "admin")
        ben = await enter(room, "ben")
        waits = await ask(room, who.agent)
        for decide in (approvals.approve, approvals.reject, approvals.get):
            with pytest.raises(NotFoundError):
                await decide(room, ben, CALL, waits)
        assert await approvals.list_own(room, ben, CALL, None, None, 50) == ([], False)
        [notice] = await room.stores.registry.read(
            lambda reader: notices.list_all(reader, "pending", None, 10)
        )
        assert "secret" not in str(tuple(notice))
        assert TEXT not in str(tuple(notice))

    rig.run(work)


def test_an_agent_sees_how_its_own_requests_stand(rig: Rig) -> None:
    """Not what was asked, and nothing of another agent's."""

    async def work(room: Strongroom) -> None:
        who = await pair(room)
        other = await agent_of(room, who.member, "other")
        waits = await ask(room, who.agent)
        seen = await approvals.get(room, who.agent, CALL, waits)
        assert (seen.approval.status, seen.asked) == ("pending", None)
        with pytest.raises(NotFoundError):
            await approvals.get(room, other, CALL, waits)
        mine = await approvals.get(room, who.member, CALL, waits)
        assert mine.asked is not None
        assert (mine.asked.path, mine.asked.content) == (PLAN.display, TEXT)
        assert TEXT not in repr(mine.asked)

    rig.run(work)


def test_a_page_ends_where_its_texts_are_large(rig: Rig) -> None:
    """With more to come; nothing is left out and nothing told twice."""

    async def work(room: Strongroom) -> None:
        who = await pair(room)
        asked = []
        for name in "abc":
            rig.clock.advance(1)
            ref = PathRef(SHARED_MEMORY, name)
            asked.append(await ask(room, who.agent, "x" * 2_500_000, ref))
        seen: list[str] = []
        before: str | None = None
        while True:
            page, has_more = await approvals.list_own(room, who.member, CALL, None, before, 50)
            assert len(page) == 1
            before = page[-1].approval.id
            seen.append(before)
            if not has_more:
                break
        assert seen == asked[::-1]

    rig.run(work)


def test_no_more_wait_than_may(make_rig: Callable[..., Rig]) -> None:
    """What an agent asks over and over fills no store; decided, there is room again."""
    rig = make_rig(approvals_waiting_max=2)

    async def work(room: Strongroom) -> None:
        who = await pair(room)
        first, _ = [await ask(room, who.agent, str(n), PLAN) for n in range(2)]
        with pytest.raises(TooManyApprovalsError):
            await ask(room, who.agent)
        await approvals.reject(room, who.member, CALL, first)
        await ask(room, who.agent)

    rig.run(work)


def test_the_same_request_waits_once_and_is_decided_once(rig: Rig) -> None:
    """By its key, whichever store has it, also when a rule changed in between."""

    async def work(room: Strongroom) -> None:
        who = await pair(room)
        asking = replace(CALL, once=once_of(who.agent, room))
        waits = await files.put(room, who.agent, asking, PLAN, TEXT, _ANY)
        assert isinstance(waits, Waiting)
        with pytest.raises(Replayed) as replayed:
            await files.put(room, who.agent, asking, PLAN, TEXT, _ANY)
        assert waits.approval_id.encode() in replayed.value.answer.body
        assert len(await kept(room, who.member)) == 1
        deciding = replace(CALL, once=once_of(who.member, room))
        assert await approvals.approve(room, who.member, deciding, waits.approval_id) == "done"
        with pytest.raises(Replayed) as replayed:
            await approvals.approve(room, who.member, deciding, waits.approval_id)
        assert replayed.value.answer.body == b"done"
        refusing = replace(CALL, once=once_of(who.member, room, "other"))
        other = await ask(room, who.agent, "x", _OTHER)
        assert await approvals.reject(room, who.member, refusing, other) == "rejected"
        with pytest.raises(Replayed):
            await approvals.reject(room, who.member, refusing, other)

    rig.run(work)


def test_a_decision_that_was_taken_over_writes_nothing(rig: Rig) -> None:
    """Whoever lost the operation cannot do it any more, not even in the group's store."""
    rooms: list[Strongroom] = []

    def take_over(point: str) -> None:
        if point != "approve.begun":
            return
        with rooms[0].stores.registry.handles.borrow_writer() as connection:
            tx = rooms[0].stores.registry.transactor(connection)
            [record] = steps.list_open(tx)
            tx.run(runtime_sql.TAKE_RECORD_OVER, key=record.key)

    async def work(room: Strongroom) -> None:
        rooms.append(room)
        who = await pair(room)
        waits = await ask(room, who.agent)
        with pytest.raises(RunnerLostError):
            await approvals.approve(room, who.member, CALL, waits)
        assert await shared_text(room) is None
        assert await status_of(room, who.member, waits) == "approved"

    rig.run(work, take_over)


def test_what_waits_goes_with_its_member(rig: Rig) -> None:
    """Erased, nothing is left: no text, no notice, no name in the record of changes."""

    async def work(room: Strongroom) -> None:
        who = await pair(room)
        await ask(room, who.agent)
        await erase(room, who.member.user_id, CALL, ACTOR)
        registry = room.stores.registry
        assert not await registry.read(lambda reader: notices.list_all(reader, None, None, 10))
        of_approvals = await registry.read(
            lambda reader: audit.list_changes(reader, ChangeFilter(entity="approval"), None, 10)
        )
        assert {row.kind for row in of_approvals} == {"insert", "delete"}
        assert {row.fields for row in of_approvals} == {None}

    rig.run(work)


def test_a_store_that_cannot_be_opened_keeps_nothing(rig: Rig) -> None:
    """An agent's token that may write what others read can open the store where it waits."""

    async def work(room: Strongroom) -> None:
        who = await pair(room)
        lean = await agent_of(room, who.member, "lean", "shared:write")
        assert lean.wrapped_dek is not None
        await ask(room, lean)
        assert await access.with_own(
            room, lean, CALL, lambda store: store.read(pending_writes.list_facts)
        )
        blind = replace(lean, wrapped_dek=None)
        with pytest.raises(StrongroomError):
            await ask(room, blind, "x", _OTHER)

    rig.run(work)


def test_an_agent_without_a_name_writes_by_its_members(rig: Rig) -> None:
    """What it asked is the member's own by then."""

    async def work(room: Strongroom) -> None:
        who = await pair(room)
        nameless = await agent_of(room, who.member, None)
        waits = await ask(room, nameless)
        assert (await approvals.get(room, nameless, CALL, waits)).approval.agent_id is None
        assert await approvals.approve(room, who.member, CALL, waits) == "done"
        note = await files.get(room, who.member, CALL, PLAN)
        assert note.author == who.member.user_id

    rig.run(work)
