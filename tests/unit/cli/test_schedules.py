"""`strongroom schedules` and `strongroom flags`, with no server running."""

import asyncio

from app.bridge import start
from app.bridge.work.schedules import NewSchedule, Planned
from app.db.owner.store import OwnerReader, OwnerTransactor
from app.owner import scheduled_jobs
from app.owner.scheduled_jobs import Task
from app.runtime import schedules
from app.runtime.timing import Timing
from tests.support.workshop import ACTOR
from tests.unit.cli.conftest import Terminal

_NOBODY = "01890000-0000-7000-8000-00000000ffff"


def _make(terminal: Terminal, *timings: Timing) -> list[str]:
    """Schedules of the group; their ids."""

    def add(tx: OwnerTransactor) -> list[str]:
        made = []
        for number, timing in enumerate(timings):
            new = NewSchedule(Task(f"Number {number}"), timing)
            row = schedules.add(tx, tx.new_id(), new.definition)
            made.append(Planned(row, scheduled_jobs.add(tx, row.id, new.task)).schedule.id)
        return made

    async def main() -> list[str]:
        async with start.running(terminal.settings) as room:
            return await room.stores.group.write(add, ACTOR)

    assert terminal.run("init").exit_code == 0
    return asyncio.run(main())


def _acts(terminal: Terminal) -> list[tuple[str, str, str]]:
    """What operators did, as it is on record."""

    def read(reader: OwnerReader) -> list[tuple[str, str, str]]:
        rows = reader._connection.all("SELECT action, item, operator FROM sys_operator_actions")
        return [(str(action), str(item), str(operator)) for action, item, operator in rows]

    async def main() -> list[tuple[str, str, str]]:
        async with start.running(terminal.settings) as room:
            return await room.stores.group.read(read)

    return asyncio.run(main())


def test_schedules_are_listed_shown_run_and_switched(terminal: Terminal) -> None:
    """Each act is on record; switching to what it is is none."""
    first, second = _make(terminal, Timing("0 9 * * *", None, "Europe/Berlin"), Timing(None, 60))
    listed = terminal.answer("schedules", "list")["schedules"]
    assert {each["id"] for each in listed} == {first, second}
    table = terminal.run("schedules", "list").stdout
    assert "every 60 s" in table
    assert "0 9 * * * (Europe/Berlin)" in table
    ran = terminal.answer("schedules", "run", first)["job_id"]
    shown = terminal.run("schedules", "show", first)
    assert f"run, job {ran}, pending" in shown.stdout
    assert terminal.answer("schedules", "show", first)["runs"][0]["job_id"] == ran
    for verb, is_on in (("disable", False), ("disable", False), ("enable", True)):
        assert terminal.answer("schedules", verb, second)["schedule"]["enabled"] is is_on
    assert "is disabled." in terminal.run("schedules", "disable", second).stdout
    assert "is enabled." in terminal.run("schedules", "enable", second).stdout
    busy = terminal.run("schedules", "run", first)
    assert busy.exit_code == 3
    assert "Runs as job" in terminal.run("schedules", "run", second).stdout
    assert sorted(_acts(terminal)) == sorted(
        [
            ("schedule.run", first, "box"),
            ("schedule.run", second, "box"),
            ("schedule.disable", second, "box"),
            ("schedule.enable", second, "box"),
            ("schedule.disable", second, "box"),
            ("schedule.enable", second, "box"),
        ]
    )


def test_a_schedule_that_is_none_is_told(terminal: Terminal) -> None:
    """As a refusal, and nothing else."""
    _make(terminal)
    for verb in ("show", "run", "enable", "disable"):
        assert terminal.answer("schedules", verb, _NOBODY, code=3)["error"]["code"] == "not_found"


def test_flags_are_listed_set_and_unset(terminal: Terminal) -> None:
    """By name, and to a value of their type."""
    assert terminal.run("init").exit_code == 0
    assert "webhooks = true (default)" in terminal.run("flags", "list").stdout
    assert terminal.answer("flags", "set", "webhooks", "false")["flag"]["value"] is False
    assert "webhooks = false: " in terminal.run("flags", "list").stdout
    listed = {flag["name"]: flag for flag in terminal.answer("flags", "list")["flags"]}
    assert listed["webhooks"]["is_default"] is False
    assert "webhooks = true (default)" in terminal.run("flags", "unset", "webhooks").stdout
    for words in (("set", "nosuch", "true"), ("unset", "nosuch")):
        refused = terminal.run("flags", *words)
        assert refused.exit_code == 2
        assert "There is invitations, jobs_outside, webhooks" in refused.stderr
    for value in ("1", "off", "[true]"):
        refused = terminal.run("flags", "set", "webhooks", value)
        assert refused.exit_code == 2
        assert "This flag is a bool." in refused.stderr
