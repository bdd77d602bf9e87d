"""What a worker does beside answering."""

import asyncio
import contextlib
from collections.abc import Callable
from pathlib import Path

import pytest

from app import telemetry
from app.bridge.accounts import members, signin
from app.bridge.generations import Generations
from app.bridge.maintenance.janitor import Janitor
from app.bridge.stores import UnlockedStore
from app.bridge.strongroom import Strongroom
from app.db.context import system_actor
from app.db.locks import ROLE_LEADER
from app.db.registry import statements as sql
from app.db.registry.store import RegistryTransactor
from app.db.runtime.store import RuntimeStore
from app.ids import UserId
from app.registry import accounts
from app.settings import Settings
from app.worker import loops
from app.worker.loops import run_loops
from tests.support.rooms import CALL, PASSWORD, add, open_room, prepared

pytestmark = pytest.mark.timeout(60)

_ACTOR = system_actor("test")


async def _until(is_so: Callable[[], bool]) -> None:
    """Let the other tasks run until something is so; the test's time-out ends a vain wait."""
    while not is_so():  # noqa: ASYNC110 - what is waited for knows nothing of the test
        await asyncio.sleep(0.002)


async def _unlocked(room: Strongroom, username: str) -> UserId:
    """A new member whose store is unlocked in this process."""
    user_id = UserId(await add(room, username))
    await signin.sign_in(room, username, PASSWORD, CALL)
    return user_id


async def _set(room: Strongroom, user_id: UserId, change: str) -> None:
    """Change what the registry says of a member, behind the store's back."""

    def write(tx: RegistryTransactor) -> None:
        if change == "inactive":
            accounts.set_profile(tx, user_id, {"active": False}, may_grant_admin=True)
            return
        tx.run(sql.BEGIN_STORE_STATE, user_id=user_id, store_state="erasing")
        if change == "generation":
            tx.run(sql.END_STORE_STATE, user_id=user_id, store_state="erasing")
        if change == "gone":
            tx.run(sql.REMOVE_ACCOUNT, user_id=user_id)

    await room.stores.registry.write(write, _ACTOR)


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    """A prepared root whose generations are watched closely."""
    return prepared(tmp_path, generation_poll_ms=5)


@pytest.fixture
def caught(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The loops in which something unexpected happened; they go on soon."""
    where: list[str] = []
    monkeypatch.setattr(telemetry, "unexpected", lambda name, _error: where.append(name))
    monkeypatch.setattr(loops, "_AFTER_ERROR_S", 0.01)
    return where


@pytest.mark.parametrize("change", ["generation", "state", "inactive", "gone"])
def test_every_change_of_a_store_is_found(settings: Settings, change: str) -> None:
    """A member whose row is gone, closed, moving or of another generation is named, nobody else."""

    async def run() -> None:
        async with open_room(settings) as room:
            ana, _ = await _unlocked(room, "ana"), await _unlocked(room, "ben")
            generations = Generations(room.stores)
            assert await generations.find_changed() == []
            assert await generations.find_changed() == []
            await _set(room, ana, change)
            for _ in range(3):
                assert await generations.find_changed() == [ana]
            await room.stores.lock(ana)
            assert await generations.find_changed() == []

    asyncio.run(run())


def test_where_nothing_can_have_changed_costs_no_question(
    settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With no unlocked store, or no commit since, the registry is not asked every 100 ms."""

    async def run() -> None:
        async with open_room(settings) as room:
            generations = Generations(room.stores)
            with monkeypatch.context() as patch:
                patch.setattr(RuntimeStore, "read", None)
                assert await generations.find_changed() == []
            ana = await _unlocked(room, "ana")
            assert await generations.find_changed() == []
            with monkeypatch.context() as patch:
                patch.setattr(RuntimeStore, "read", None)
                assert await generations.find_changed() == []
                await room.stores.registry.write(
                    lambda tx: accounts.set_profile(
                        tx, ana, {"display_name": "Ana"}, may_grant_admin=True
                    ),
                    _ACTOR,
                )
                with pytest.raises(TypeError):
                    await generations.find_changed()
                with pytest.raises(TypeError):
                    await generations.find_changed()
            assert await generations.find_changed() == []

    asyncio.run(run())


def test_a_store_unlocked_after_the_look_is_looked_at(settings: Settings) -> None:
    """It may have been taken while it was being unlocked, before the last commit that was seen."""

    async def run() -> None:
        async with open_room(settings) as here, open_room(settings) as there:
            generations = Generations(there.stores)
            await _unlocked(there, "ana")
            ben = await _unlocked(here, "ben")
            account = here.stores.unlocked()[ben].account
            store = here.stores.unlocked()[ben].store
            await _set(here, ben, "generation")
            assert await generations.find_changed() == []
            there.stores._members[ben] = UnlockedStore(account, None, store)
            assert await generations.find_changed() == [ben]
            del there.stores._members[ben]

    asyncio.run(run())


def test_a_store_taken_in_one_process_is_let_go_in_the_others(settings: Settings) -> None:
    """The lock is held exclusively before the answer, so every other process has let go."""

    async def run() -> None:
        async with (
            open_room(settings) as here,
            open_room(settings) as there,
            run_loops(here),
            run_loops(there),
        ):
            ana = await _unlocked(there, "ana")
            assert ana in there.stores.unlocked()
            await members.lock_member(here, ana, _ACTOR)
            assert there.stores.unlocked() == {}

    asyncio.run(run())


def test_a_slow_closing_delays_no_other(
    settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    """While one store takes its time, others are let go; the end waits for the slow one."""

    async def run() -> None:
        async with open_room(settings) as room:
            ana, ben = await _unlocked(room, "ana"), await _unlocked(room, "ben")
            let_go, closed = asyncio.Event(), room.stores.lock
            asked: list[UserId] = []

            async def lock(user_id: UserId) -> None:
                asked.append(user_id)
                if user_id == ana:
                    await let_go.wait()
                await closed(user_id)

            monkeypatch.setattr(room.stores, "lock", lock)
            async with run_loops(room):
                await _set(room, ana, "generation")
                await _until(lambda: asked == [ana])
                await _set(room, ben, "generation")
                await _until(lambda: ben not in room.stores.unlocked())
                assert ana in room.stores.unlocked()
                asyncio.get_running_loop().call_later(0.02, let_go.set)
            assert room.stores.unlocked() == {}
            assert asked == [ana, ben]

    asyncio.run(run())


def test_what_is_idle_is_locked_here_alone(tmp_path: Path) -> None:
    """Only the store that nobody used for so long is let go, and no generation moves."""
    settings = prepared(tmp_path, idle_lock_s=3_600)

    async def run() -> None:
        async with open_room(settings) as room:
            ana, ben = await _unlocked(room, "ana"), await _unlocked(room, "ben")
            unlocked = room.stores.unlocked()
            unlocked[ana].store.handles.last_wanted -= 3_601
            async with run_loops(room):
                await _until(lambda: list(room.stores.unlocked()) == [ben])
            row = await room.stores.registry.one(sql.FIND_ACCOUNT, user_id=ana)
            assert row is not None
            assert row.store_generation == unlocked[ana].account.generation

    asyncio.run(run())


def test_an_error_ends_no_loop(
    settings: Settings, monkeypatch: pytest.MonkeyPatch, caught: list[str]
) -> None:
    """What a round meets goes to the log, and the next round is done."""

    async def run() -> None:
        async with open_room(settings) as room:
            rounds = 0

            async def fail(_: object) -> list[UserId]:
                nonlocal rounds
                rounds += 1
                raise OSError

            monkeypatch.setattr(Generations, "find_changed", fail)
            async with run_loops(room):
                await _until(lambda: rounds >= 3)

    asyncio.run(run())
    assert set(caught) == {"watch"}


def test_a_closing_that_fails_is_tried_again(
    settings: Settings, monkeypatch: pytest.MonkeyPatch, caught: list[str]
) -> None:
    """A store that could not be let go stays on the list."""

    async def run() -> None:
        async with open_room(settings) as room:
            ana = await _unlocked(room, "ana")
            closed = room.stores.lock

            async def fail(_: UserId) -> None:
                monkeypatch.setattr(room.stores, "lock", closed)
                raise OSError

            monkeypatch.setattr(room.stores, "lock", fail)
            async with run_loops(room):
                await _set(room, ana, "generation")
                await _until(lambda: room.stores.unlocked() == {})

    asyncio.run(run())
    assert caught == ["closing"]


def test_one_leads_and_another_takes_over(
    settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One process at a time repairs and serves the control socket; the next one begins at once."""
    monkeypatch.setattr(loops, "LEADER_POLL_S", 0.01)
    rounds: list[object] = []

    async def compare(janitor: Janitor) -> None:
        rounds.append(janitor._stores)

    monkeypatch.setattr(Janitor, "compare", compare)

    async def run() -> None:
        async with open_room(settings) as first, open_room(settings) as second:
            leading = contextlib.AsyncExitStack()
            await leading.enter_async_context(run_loops(first))
            await _until(settings.control_socket.exists)
            async with run_loops(second):
                assert not second.stores.locks.try_role(ROLE_LEADER)
                assert rounds == [first.stores]
                await leading.aclose()
                await _until(lambda: rounds == [first.stores, second.stores])
                await _until(settings.control_socket.exists)
            assert not settings.control_socket.exists()

    asyncio.run(run())


@pytest.mark.parametrize("part", ["settle", "compare"])
def test_a_stop_waits_for_a_repair(
    settings: Settings, monkeypatch: pytest.MonkeyPatch, part: str
) -> None:
    """A round of the janitor is never cut in the middle."""
    states: list[str] = []

    async def run() -> None:
        begun = asyncio.Event()

        async def repair(_: Janitor) -> None:
            begun.set()
            await asyncio.sleep(0.02)
            states.append("whole")

        monkeypatch.setattr(Janitor, part, repair)
        async with open_room(settings) as room, run_loops(room):
            await begun.wait()

    asyncio.run(run())
    assert states == ["whole"]


def test_without_a_control_socket_the_leader_still_repairs(
    settings: Settings, monkeypatch: pytest.MonkeyPatch, caught: list[str]
) -> None:
    """A socket that cannot be made is told and tried again; the janitor works meanwhile."""
    settings.control_socket.mkdir()

    async def run() -> None:
        begun = asyncio.Event()

        async def settle(_: Janitor) -> None:
            begun.set()

        monkeypatch.setattr(Janitor, "settle", settle)
        async with open_room(settings) as room, run_loops(room):
            await begun.wait()
            await _until(lambda: "control" in caught)
            settings.control_socket.rmdir()
            await _until(settings.control_socket.exists)

    monkeypatch.setattr(loops, "LEADER_POLL_S", 0.01)
    asyncio.run(run())
    assert set(caught) == {"control"}
