"""What others did to a member's account stands in the member's own store."""

import json

import pytest

from app.bridge import access
from app.bridge.accounts import acts
from app.bridge.callers import Caller
from app.bridge.strongroom import Strongroom
from app.clock import Millis
from app.db.context import Actor
from app.db.owner.store import OwnerStore, OwnerTransactor
from app.db.pool import StoreClosedError
from app.db.registry.store import RegistryTransactor
from app.db.runtime.store import RuntimeStore
from app.errors.stores import DiskFullError
from app.ids import UserId
from app.owner import acts as own
from app.owner.acts import Act
from app.registry import accounts
from app.runtime import audit
from tests.support.rig import Rig, add, enter
from tests.support.rooms import CALL

BOSS = Actor("human", "boss", "PATCH /api/admin/users/{user_id}")


async def _change(room: Strongroom, user_id: UserId, **fields: str) -> None:
    await room.stores.registry.write(
        lambda tx: accounts.set_profile(tx, user_id, fields, may_grant_admin=False), BOSS
    )


async def _own(room: Strongroom, caller: Caller) -> list[Act]:
    """The copy as it stands, without taking a new one."""
    store = await access.open_own(room, caller, CALL)
    return await store.read(lambda reader: own.list_acts(reader, None, 100))


def _fields(found: list[Act]) -> list[set[str]]:
    return [set(json.loads(act.fields or "{}")) for act in found]


def test_an_act_is_copied_at_the_next_unlock(rig: Rig) -> None:
    """Whatever becomes of the registry's record later."""

    async def work(room: Strongroom) -> None:
        ana = (await add(room)).account
        await room.stores.lock(ana.id)
        await _change(room, ana.id, notes="a note", sex="f")
        caller = await enter(room)
        [act] = await _own(room, caller)
        assert (act.actor_sub, act.entity, act.kind, act.action) == (
            "boss",
            "user",
            "update",
            BOSS.action,
        )
        assert act.occurred_at == rig.clock.now_ms
        assert _fields([act]) == [{"notes", "sex"}]
        rig.clock.advance(1)
        before = Millis(rig.clock.now_ms)
        await room.stores.registry.write(lambda tx: audit.expire_fields(tx, before, 1000), BOSS)

        def remove_most(tx: RegistryTransactor) -> int:
            head = audit.head(tx)
            assert head is not None
            return audit.remove_through(tx, head.seq - 1)

        assert await room.stores.registry.write(remove_most, BOSS)
        await room.stores.lock(ana.id)
        assert await _own(room, await access.authenticate(room, caller.token)) == [act]

    rig.run(work)


def test_an_act_is_copied_when_the_member_asks(rig: Rig) -> None:
    """Though the store was unlocked all the time; once, however often."""

    async def work(room: Strongroom) -> None:
        ana = (await add(room)).account
        caller = await enter(room)
        seen: list[Act] = []
        for sex in ("f", "m"):
            await _change(room, ana.id, sex=sex)
            for _ in range(2):
                seen = await acts.read_own(
                    room, caller, CALL, lambda reader: own.list_acts(reader, None, 100)
                )
        assert _fields(seen) == [{"sex"}, {"sex"}]
        first, second = seen
        assert first.id > second.id
        store = await access.open_own(room, caller, CALL)
        assert await acts.copy(room.stores.registry, ana.id, store) == 0

    rig.run(work)


def test_many_acts_are_copied_in_batches(rig: Rig, monkeypatch: pytest.MonkeyPatch) -> None:
    """In order, each once, also by two processes at the same time."""
    monkeypatch.setattr(acts, "_BATCH", 2)

    async def work(room: Strongroom) -> None:
        ana = (await add(room)).account
        caller = await enter(room)
        for turn in range(5):
            await _change(room, ana.id, sex=str(turn))
        store = await access.open_own(room, caller, CALL)
        assert await acts.copy(room.stores.registry, ana.id, store) == 5
        values = [json.loads(act.fields or "")["sex"][1] for act in await _own(room, caller)]
        assert values == ["4", "3", "2", "1", "0"]

    rig.run(work)


def test_another_registry_is_looked_at_from_its_beginning(rig: Rig) -> None:
    """A restored one gives places out again; what is copied already is not copied twice."""

    async def work(room: Strongroom) -> None:
        ana = (await add(room)).account
        caller = await enter(room)
        await _change(room, ana.id, sex="f")
        store = await access.open_own(room, caller, CALL)
        await acts.copy(room.stores.registry, ana.id, store)

        def copy_of_what_was_lost(tx: OwnerTransactor) -> None:
            own.add_act(
                tx,
                source="ff" * 32,
                seq=1_000_000,
                occurred_at=1,
                entity="user",
                record_id=ana.id,
                kind="update",
                actor_sub="boss",
                action="lost",
                fields=None,
            )

        await store.write(copy_of_what_was_lost, BOSS)
        await _change(room, ana.id, sex="m")
        await acts.copy(room.stores.registry, ana.id, store)
        seen = await _own(room, caller)
        assert [act.action for act in seen] == [BOSS.action, "lost", BOSS.action]

    rig.run(work)


def test_the_members_own_doing_is_not_copied(rig: Rig) -> None:
    """Nor the program's."""

    async def work(room: Strongroom) -> None:
        await add(room)
        caller = await enter(room)
        await room.stores.registry.write(
            lambda tx: accounts.set_profile(
                tx, caller.user_id, {"locale": "fr"}, may_grant_admin=False
            ),
            caller.actor(CALL),
        )
        seen = await acts.read_own(
            room, caller, CALL, lambda reader: own.list_acts(reader, None, 100)
        )
        assert seen == []

    rig.run(work)


@pytest.mark.parametrize("error", [DiskFullError, StoreClosedError])
def test_a_store_that_cannot_be_written_is_still_read(
    rig: Rig, monkeypatch: pytest.MonkeyPatch, error: type[Exception]
) -> None:
    """And one that was closed meanwhile is opened again."""
    write = RuntimeStore.write
    failures = [error]

    async def work(room: Strongroom) -> None:
        ana = (await add(room)).account
        caller = await enter(room)
        await _change(room, ana.id, sex="f")

        async def failing(store: OwnerStore, *args: object, **more: object) -> object:
            if failures:
                raise failures.pop()
            return await write(store, *args, **more)  # type: ignore[arg-type] # as it came

        monkeypatch.setattr(RuntimeStore, "write", failing)
        seen = await acts.read_own(
            room, caller, CALL, lambda reader: own.list_acts(reader, None, 100)
        )
        assert len(seen) == (0 if error is DiskFullError else 1)
        assert failures == []

    rig.run(work)
