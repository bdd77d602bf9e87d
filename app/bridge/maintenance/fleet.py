"""The versions of all stores, and the plain ones brought to the present at the operator's word."""

import dataclasses
from typing import Annotated, Final

from pydantic import Field

from app.bridge import layout, migration
from app.bridge.arguments import Answer, Arguments, Nothing, command
from app.bridge.strongroom import Strongroom, account_of
from app.db import files
from app.db.context import Actor
from app.db.registry import statements as sql
from app.db.registry.store import RegistryTransactor
from app.errors.root import StrongroomError
from app.registry import fleet
from app.registry.fleet import Fleet, Store

BATCH: Final = 20
"""Stores of one command: between two of them the operator is shown how far it is."""
_ACTOR: Final = Actor(kind="system", sub="cli", action="migrate")


def group_version() -> str:
    """The version of system.db, which every start brings to it."""
    return layout.SYSTEM_KIND.version


def present() -> str:
    """The version that every member's store is to have, as `8.4`: one number a bucket."""
    return layout.MEMBER_KIND.version


async def count(room: Strongroom) -> Fleet:
    """How many stores are at which version."""
    return await room.stores.registry.read(lambda reader: fleet.count(reader, present()))


async def list_page(room: Strongroom, after: str, limit: int) -> list[Store]:
    """Stores, as the registry knows them, after the one of a member's id."""
    return await room.stores.registry.read(lambda reader: fleet.list_page(reader, after, limit))


def is_open(room: Strongroom, store: Store) -> bool:
    """Whether any process has a member's store open now, which an encrypted one is by its key."""
    return room.stores.locks.is_open(store.lock_number)


async def group_bytes(room: Strongroom) -> int:
    """Size of system.db, which is the group's own store."""
    path = room.settings.system_file
    return await room.stores.on_thread(lambda: files.size(path))


class _Batch(Arguments):
    """Which stores are next."""

    after: Annotated[str, Field(max_length=36)] = ""


async def _tell(room: Strongroom, _: Nothing) -> Answer:
    """Before a round: how many stores there are; and those that failed may be tried again."""
    forgotten = await room.stores.registry.write(fleet.forget_failures, _ACTOR)
    found = await count(room)
    return {
        **dataclasses.asdict(found),
        "present": present(),
        "forgotten": len(forgotten),
    }


async def _migrate(room: Strongroom, batch: _Batch) -> Answer:
    """Bring the next few plain stores to the present version; the others wait for their key."""
    rows = await list_page(room, batch.after, BATCH)
    migrated, failed = 0, dict[str, str]()
    for row in rows:
        if row.encrypted:
            continue
        try:
            migrated += await _bring_up(room, row)
        except StrongroomError as error:
            failed[row.id] = error.code
    following = rows[-1].id if len(rows) == BATCH else None
    return {
        "done": len(rows),
        "migrated": migrated,
        "failed": [{"user_id": user_id, "code": code} for user_id, code in failed.items()],
        "next": following,
    }


async def _bring_up(room: Strongroom, row: Store) -> bool:
    registry = room.stores.registry
    account = await registry.one(sql.FIND_ACCOUNT, user_id=row.id)
    if account is None:
        return False
    is_migrated = await migration.bring_up(room, account_of(account), None)
    if not is_migrated and row.schema_version != present():
        # Made at this version, or opened by a server that ended before it said so.
        path = room.settings.user_file(row.id)
        size = await room.stores.on_thread(lambda: files.size(path))

        def note(tx: RegistryTransactor) -> None:
            tx.run(
                sql.SET_STORE_VERSION, user_id=row.id, schema_version=present(), store_bytes=size
            )

        await registry.write(note, _ACTOR)
    return is_migrated


COMMANDS: Final = {
    "migrate.begin": command(Nothing, _tell),
    "migrate.next": command(_Batch, _migrate),
}
"""The operator's, by name."""
