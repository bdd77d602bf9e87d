"""The running service, as the bridge's operations and the web take it."""

import asyncio
import functools
from collections.abc import Callable, Coroutine
from dataclasses import dataclass, field
from typing import Any, Concatenate, ParamSpec, TypeVar

from app.bridge.callers import Call
from app.bridge.gate import DerivationGate
from app.bridge.instance_key import InstanceKey
from app.bridge.operations import Operations
from app.bridge.seen import SeenNotes
from app.bridge.stores import StoreAccount, Stores
from app.bridge.streams import Streams
from app.clock import Clock
from app.crypto.kdf import KdfParams
from app.db.context import Actor
from app.db.registry.rows import AccountRow
from app.ids import UserId
from app.settings import Settings

P = ParamSpec("P")
T = TypeVar("T")

Reach = Callable[[str], None]
"""Told each named point that an operation reaches; tests kill the process there."""


def reach_nothing(_point: str) -> None:
    """What a served operation does at its named points: go on."""


@dataclass(frozen=True, slots=True)
class Strongroom:
    """One process's whole service."""

    settings: Settings
    clock: Clock
    stores: Stores
    gate: DerivationGate
    instance_key: InstanceKey
    kdf_params: KdfParams
    """The cost of passwords set from now on."""
    seen: SeenNotes
    operations: Operations
    reach: Reach = reach_nothing
    streams: Streams = field(default_factory=Streams)
    copying: set[UserId] = field(default_factory=set)
    """Members of whose notes an archive is made or taken in here."""
    ending: asyncio.Event = field(default_factory=asyncio.Event)
    """Set when the process was asked to end: whatever waits for news is to stop waiting."""


def uncut(
    operation: Callable[Concatenate[Strongroom, P], Coroutine[Any, Any, T]],
) -> Callable[Concatenate[Strongroom, P], Coroutine[Any, Any, T]]:
    """Let an operation run to its end though its caller is cancelled; see `Operations`.

    Returns:
        The operation, to be called as before.
    """

    @functools.wraps(operation)
    async def run(room: Strongroom, /, *args: P.args, **kwargs: P.kwargs) -> T:
        return await room.operations.run(operation(room, *args, **kwargs))

    return run


def account_of(row: AccountRow) -> StoreAccount:
    """What opening a member's store needs of their row."""
    return StoreAccount(
        user_id=row.id,
        encrypted=bool(row.encrypted),
        dek_id=row.dek_id,
        file_salt=row.file_salt,
        lock_number=row.lock_number,
        state=row.store_state,
        generation=row.store_generation,
    )


def anonymous(call: Call) -> Actor:
    """Whoever calls before signing in."""
    return Actor(
        kind="human",
        sub="anonymous",
        action=call.action,
        request_id=call.request_id,
        trace_id=call.trace_id,
    )


def member_actor(row: AccountRow, call: Call) -> Actor:
    """A member known by password or code rather than by session."""
    return Actor(
        kind="human",
        sub=row.id,
        action=call.action,
        request_id=call.request_id,
        trace_id=call.trace_id,
    )
