"""The operator's commands on deliveries and breakers: of the group, or a member who is unlocked."""

from collections.abc import Mapping
from typing import Annotated, Final, Literal

from pydantic import Field

from app.bridge.arguments import (
    Answer,
    Arguments,
    Command,
    InHome,
    Line,
    Nothing,
    command,
)
from app.bridge.looks import StoreLook, store_of
from app.bridge.notifications import delivery_acts
from app.bridge.notifications.delivery_acts import Act
from app.bridge.strongroom import Strongroom
from app.bridge.work import job_acts
from app.clock import rfc3339
from app.db.context import Actor
from app.db.owner.store import OwnerReader
from app.runtime import breakers, delivery_list, operator_actions
from app.runtime.breakers import Breaker
from app.runtime.delivery_list import LAST_ID, Delivery

_LISTED: Final = 50
_LISTED_MAX: Final = 1_000
_ACTS: Final[tuple[Act, ...]] = ("retry", "cancel", "release")


class _Deliveries(InHome):
    """Which deliveries."""

    status: (
        Literal["pending", "running", "retry", "held", "succeeded", "dead", "cancelled"] | None
    ) = None
    limit: Annotated[int, Field(ge=1, le=_LISTED_MAX)] = _LISTED


class _OneDelivery(InHome):
    """One delivery, and where it is."""

    delivery: Line


class _OneBreaker(Arguments):
    """One breaker of the group's store."""

    connection: Line


def describe(row: Delivery, *, is_members: bool) -> Answer:
    """A delivery as the operator sees it: never what it tells, nor where a member's goes."""
    return {
        "id": row.id,
        "type": row.type,
        "subscription_id": row.subscription_id,
        "name": row.name,
        "status": row.status,
        "attempts": row.attempts,
        "next_attempt_at": None if row.finished_at else rfc3339(row.next_attempt_at),
        "last_failure": row.last_failure,
        "last_status": row.last_status,
        "connection": None if is_members else row.connection,
        "held_since": _time(row.held_since),
        "created_at": rfc3339(row.created_at),
        "finished_at": _time(row.finished_at),
    }


def describe_breaker(row: Breaker) -> Answer:
    """A breaker as the operator sees it."""
    return {
        "connection": row.connection,
        "state": row.state,
        "failures": row.failures,
        "opened_at": _time(row.opened_at),
        "next_probe_at": _time(row.next_probe_at),
        "alerted_at": _time(row.alerted_at),
    }


def _time(at: int | None) -> str | None:
    return None if at is None else rfc3339(at)


def _list(reader: OwnerReader, which: _Deliveries) -> Answer:
    rows = delivery_list.list_all(reader, LAST_ID, which.limit, which.status)
    return {"deliveries": [describe(row, is_members=which.user is not None) for row in rows]}


def _show(reader: OwnerReader, one: _OneDelivery) -> Answer:
    row = delivery_list.get(reader, one.delivery)
    acts = job_acts.list_acts(reader, one.delivery)
    return {"delivery": describe(row, is_members=one.user is not None), "acts": acts}


def _act(name: Act) -> Command:
    async def run(room: Strongroom, one: _OneDelivery) -> Answer:
        store = await store_of(room, one.user)
        actor = Actor(kind="system", sub="cli", action=f"deliveries.{name}")
        row = await delivery_acts.act(store, name, one.delivery, operator_actions.BOX, actor)
        return {"delivery": describe(row, is_members=one.user is not None)}

    return command(_OneDelivery, run)


def _list_breakers(reader: OwnerReader, _: Nothing) -> Answer:
    return {"breakers": [describe_breaker(row) for row in breakers.list_all(reader)]}


async def _reset(room: Strongroom, one: _OneBreaker) -> Answer:
    actor = Actor(kind="system", sub="cli", action="breakers.reset")
    row = await delivery_acts.reset(room.stores.group, one.connection, operator_actions.BOX, actor)
    return {"breaker": describe_breaker(row)}


COMMANDS: Final[Mapping[str, Command]] = {
    "deliveries.list": StoreLook(_Deliveries, _list),
    "deliveries.show": StoreLook(_OneDelivery, _show),
    **{f"deliveries.{name}": _act(name) for name in _ACTS},
    "breakers.list": StoreLook(Nothing, _list_breakers),
    "breakers.reset": command(_OneBreaker, _reset),
}
"""By name, for the one table of commands."""
