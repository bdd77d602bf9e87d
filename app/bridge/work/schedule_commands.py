"""The operator's commands on the group's schedules, and on flags."""

from collections.abc import Mapping
from typing import Final

from pydantic import JsonValue

from app.bridge.arguments import Answer, ArgumentError, Arguments, Command, Line, Nothing, command
from app.bridge.looks import RegistryLook, StoreLook
from app.bridge.strongroom import Strongroom
from app.bridge.work import job_acts
from app.bridge.work import schedules as bridge
from app.bridge.work.schedules import Planned
from app.clock import rfc3339
from app.db.context import Actor
from app.db.owner.store import OwnerReader
from app.db.registry.store import RegistryReader
from app.errors.callers import NotFoundError
from app.errors.inputs import InvalidInputError
from app.registry import flags
from app.registry.flags import State, Value
from app.runtime import operator_actions

_LISTED: Final = 1_000
_RUNS: Final = 10
"""Runs and skips shown with one schedule."""


class _OneSchedule(Arguments):
    """One of the group's schedules."""

    schedule: Line


class _OneFlag(Arguments):
    """One flag."""

    flag: Line


class _FlagValue(_OneFlag):
    """One flag, and what it is to be."""

    value: bool | int | Line


def describe(planned: Planned) -> Answer:
    """A schedule as the operator sees it; times in RFC 3339, null where there is none."""
    row = planned.schedule
    return {
        "id": row.id,
        "title": row.name,
        "cron": row.cron,
        "interval_s": row.interval_s,
        "timezone": row.timezone,
        "catch_up": row.catch_up,
        "kind": row.kind,
        "enabled": bool(row.enabled),
        "next_due_at": _time(row.next_due_at),
        "last_due_at": _time(row.last_due_at),
    }


def _time(at: int | None) -> str | None:
    return None if at is None else rfc3339(at)


def _actor(action: str) -> Actor:
    return Actor(kind="system", sub="cli", action=action)


def _list(reader: OwnerReader, _: Nothing) -> Answer:
    return {"schedules": [describe(row) for row in bridge.list_page(reader, "", _LISTED)]}


def _show(reader: OwnerReader, one: _OneSchedule) -> Answer:
    found = bridge.get(reader, one.schedule)
    runs: list[JsonValue] = [
        {
            "due_at": _time(item.run.due_at),
            "ticks": item.run.ticks,
            "outcome": item.run.outcome,
            "reason": item.run.reason,
            "job_id": item.run.job_id,
            "job_status": item.run.job_status,
        }
        for item in bridge.list_past(reader, one.schedule, None, _RUNS)
    ]
    acts = job_acts.list_acts(reader, one.schedule)
    return {"schedule": describe(found), "runs": runs, "acts": acts}


async def _run(room: Strongroom, one: _OneSchedule) -> Answer:
    job_id = await room.stores.group.write(
        lambda tx: bridge.run_by_operator(tx, one.schedule), _actor("schedules.run")
    )
    return {"job_id": job_id}


def _switch(name: str, *, is_on: bool) -> Command:
    async def run(room: Strongroom, one: _OneSchedule) -> Answer:
        found = await room.stores.group.write(
            lambda tx: bridge.enable(tx, room, one.schedule, is_on=is_on), _actor(name)
        )
        return {"schedule": describe(found)}

    return command(_OneSchedule, run)


def describe_flag(state: State) -> Answer:
    """A flag as the operator sees it."""
    return {
        "name": state.flag.name,
        "value": state.value,
        "default": state.flag.default,
        "is_default": state.is_default,
        "about": state.flag.about,
        "changed_at": _time(state.changed_at),
    }


def _list_flags(reader: RegistryReader, _: Nothing) -> Answer:
    return {"flags": [describe_flag(state) for state in flags.list_all(reader)]}


async def _set_flag(room: Strongroom, new: _FlagValue) -> Answer:
    return {"flag": describe_flag(await _change_flag(room, new.flag, new.value))}


async def _unset_flag(room: Strongroom, one: _OneFlag) -> Answer:
    return {"flag": describe_flag(await _change_flag(room, one.flag, None))}


async def _change_flag(room: Strongroom, name: str, value: Value | None) -> State:
    try:
        if value is None:
            return await room.stores.registry.write(
                lambda tx: flags.unset(tx, name, operator_actions.BOX), _actor("flags.unset")
            )
        return await room.stores.registry.write(
            lambda tx: flags.set_value(tx, name, value, operator_actions.BOX), _actor("flags.set")
        )
    except NotFoundError as error:
        reason = f"flag: There is {', '.join(sorted(flags.FLAGS))}, and no other."
        raise ArgumentError(reason) from error
    except InvalidInputError as error:
        kind = type(flags.FLAGS[name].default).__name__
        reason = f"value: This flag is a {kind}."
        raise ArgumentError(reason) from error


COMMANDS: Final[Mapping[str, Command]] = {
    "schedules.list": StoreLook(Nothing, _list),
    "schedules.show": StoreLook(_OneSchedule, _show),
    "schedules.run": command(_OneSchedule, _run),
    "schedules.enable": _switch("schedules.enable", is_on=True),
    "schedules.disable": _switch("schedules.disable", is_on=False),
    "flags.list": RegistryLook(Nothing, _list_flags),
    "flags.set": command(_FlagValue, _set_flag),
    "flags.unset": command(_OneFlag, _unset_flag),
}
"""By name, for the one table of commands."""
