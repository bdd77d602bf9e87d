"""`strongroom jobs`, with no server running."""

import asyncio

from app.db.owner.store import OwnerReader, OwnerTransactor
from app.runtime import jobs, operator_actions
from tests.support.rooms import add, open_room
from tests.support.workshop import ACTOR
from tests.unit.cli.conftest import Terminal


def _enqueue(terminal: Terminal, *kinds: str) -> list[str]:
    """Enqueue in the group's store."""

    def work(tx: OwnerTransactor) -> list[str]:
        return [jobs.enqueue(tx, kind, {"secret": "x"}, is_outside=True)[0] for kind in kinds]

    async def main() -> list[str]:
        async with open_room(terminal.settings) as room:
            return await room.stores.group.write(work, ACTOR)

    return asyncio.run(main())


def test_jobs_are_shown_and_settled_and_each_act_is_recorded(terminal: Terminal) -> None:
    """As text and as JSON, and never with what they carry."""
    terminal.run("init")
    first, second = _enqueue(terminal, "one[bold]", "two")
    listed = terminal.answer("jobs", "list")["jobs"]
    assert {job["id"] for job in listed} == {first, second}
    shown = terminal.run("jobs", "list")
    assert first in shown.stdout
    assert "one[bold]" in shown.stdout
    one = terminal.run("jobs", "show", first)
    assert "status: pending" in one.stdout
    assert "secret" not in shown.stdout + one.stdout
    assert terminal.run("jobs", "cancel", first).stdout == f"Cancelled: {first}.\n"
    assert terminal.run("jobs", "retry", first).stdout == f"Due again: {first}.\n"
    assert terminal.answer("jobs", "cancel", first)["job"]["status"] == "cancelled"
    assert [j["id"] for j in terminal.answer("jobs", "list", "--status", "cancelled")["jobs"]] == [
        first
    ]
    assert terminal.run("jobs", "purge", first).stdout == f"Removed: {first}.\n"
    assert terminal.run("jobs", "show", first).exit_code == 3
    assert terminal.run("jobs", "list", "--status", "odd").exit_code == 2

    def read(reader: OwnerReader) -> list[tuple[str, str]]:
        rows = operator_actions.list_of(reader, first, 9)
        return [(row.action, row.operator) for row in rows[::-1]]

    async def acts() -> list[tuple[str, str]]:
        async with open_room(terminal.settings) as room:
            return await room.stores.group.read(read)

    names = [name for name, _ in asyncio.run(acts())]
    assert sorted(names) == ["job.cancel", "job.cancel", "job.purge", "job.retry"]


def test_a_members_jobs_are_seen_as_far_as_their_store_opens(terminal: Terminal) -> None:
    """A plain one without anybody; an encrypted one only for its member."""
    terminal.run("init")

    async def main() -> None:
        async with open_room(terminal.settings) as room:
            await add(room, "ana", encrypted=False)
            await add(room, "ben")

    asyncio.run(main())
    assert terminal.answer("jobs", "list", "--user", "ana")["jobs"] == []
    refused = terminal.run("jobs", "list", "--user", "ben", "--json")
    assert refused.exit_code == 3
    assert "store_locked" in refused.stdout
