"""Operations that are not over, for whoever runs the box: which there are, and a decision.

What was begun otherwise than this program knows is left alone until somebody has looked at
it and says that this program's way to finish or undo it will do.
"""

from collections.abc import Mapping
from typing import Final

from pydantic import JsonValue

from app.bridge.arguments import Answer, Arguments, Command, Line, Nothing, command
from app.bridge.callers import Call, Caller
from app.bridge.looks import RegistryLook
from app.bridge.maintenance.janitor import OPERATIONS
from app.bridge.strongroom import Strongroom
from app.clock import Millis, rfc3339
from app.db.context import Actor
from app.db.registry.store import RegistryReader, RegistryTransactor
from app.db.runtime.store import Once
from app.errors.callers import NotFoundError
from app.errors.conflicts import ConflictError
from app.runtime import operator_actions, steps
from app.runtime.steps import Record


def describe(record: Record) -> dict[str, JsonValue]:
    """One operation as the operator sees it; times in RFC 3339, null where there is none yet."""
    told = record.alerted_at
    return {
        "key": record.key,
        "action": record.action,
        "subject": record.subject,
        "steps": list(record.shape.split(",")),
        "started_at": rfc3339(Millis(record.started_at)),
        "generation": record.generation,
        "diverged": bool(record.diverged),
        "alerted_at": None if told is None else rfc3339(Millis(told)),
    }


async def list_all(room: Strongroom) -> list[Record]:
    """Every operation that is not over, the oldest first."""
    return await room.stores.registry.read(steps.list_open)


async def release(
    room: Strongroom, key: str, actor: Actor, operator: str, once: Once | None = None
) -> Record:
    """Let a marked operation be finished or undone by this program; that is recorded.

    Returns:
        It, as it is now.

    Raises:
        NotFoundError: Nothing of this key is marked.
        ConflictError: This program has no such operation.
    """

    def write(tx: RegistryTransactor) -> Record:
        found = steps.find_open(tx, key)
        if found is None:
            raise NotFoundError
        operation = OPERATIONS.get(found.action)
        if operation is None:
            raise ConflictError
        was = steps.release(tx, key, operation.shape)
        state: dict[str, str | int | None] = {
            "action": was.action,
            "generation": was.generation,
            "shape": was.shape,
        }
        operator_actions.record(tx, "operation.release", key, state, operator)
        return was._replace(diverged=0, alerted_at=None, shape=",".join(operation.shape))

    return await room.stores.registry.write(write, actor, once=once)


async def release_by(room: Strongroom, caller: Caller, call: Call, key: str) -> Record:
    """The same, by an administrator."""
    return await release(room, key, caller.actor(call), caller.user_id, call.once)


class _OneOperation(Arguments):
    """One operation."""

    operation: Line


def _list(reader: RegistryReader, _: Nothing) -> Answer:
    return {"operations": [describe(record) for record in steps.list_open(reader)]}


async def _release(room: Strongroom, one: _OneOperation) -> Answer:
    actor = Actor(kind="system", sub="cli", action="operations.release")
    record = await release(room, one.operation, actor, operator_actions.BOX)
    return {"operation": describe(record)}


COMMANDS: Final[Mapping[str, Command]] = {
    "operations.list": RegistryLook(Nothing, _list),
    "operations.release": command(_OneOperation, _release),
}
"""The operator's commands on them."""
