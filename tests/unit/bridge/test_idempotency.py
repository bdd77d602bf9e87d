"""One use of a key over the group's file and the caller's own store, and for how long."""

from dataclasses import replace

import pytest

from app.bridge.callers import Call, Caller
from app.bridge.content import notes
from app.bridge.idempotency import require_one_use
from app.bridge.strongroom import Strongroom, reach_nothing
from app.errors.inputs import IdempotencyKeyReusedError
from app.owner import notes as owner_notes
from app.owner.notes import Condition
from app.owner.paths import SHARED_MEMORY, USER_MEMORY, PathRef
from app.runtime.idempotency import Answer, Once, Replayed
from tests.support.rig import Rig, add, enter
from tests.support.rooms import CALL

_DAY_MS = 86_400_000


def _once(caller: Caller, digest: bytes = b"asked") -> Once:
    return Once(
        caller=caller.author,
        key="key",
        route="POST /api/file/append",
        digest=digest,
        render=lambda _: Answer(200, {}, b""),
        keep_ms=_DAY_MS,
        body_bytes_max=100,
        reach=reach_nothing,
    )


async def _append(room: Strongroom, caller: Caller, call: Call, root: str = USER_MEMORY) -> None:
    ref = PathRef(root, "log.md")
    await notes.write(
        room,
        caller,
        call,
        ref,
        lambda tx: owner_notes.append_note(
            tx, ref.key, "line", caller.author, Condition(), 1_000_000
        ),
    )


async def _lines(room: Strongroom, caller: Caller) -> int:
    ref = PathRef(USER_MEMORY, "log.md")
    return await notes.read(
        room,
        caller,
        CALL,
        ref,
        lambda reader: owner_notes.get_note(reader, ref.key).content.count("line"),
    )


@pytest.mark.parametrize("encrypted", [True, False], ids=["encrypted", "plain"])
def test_what_is_asked_again_within_a_day_is_done_once(rig: Rig, encrypted: bool) -> None:  # noqa: FBT001 - a column
    """By the clock of the service; in the member's own store."""

    async def work(room: Strongroom) -> None:
        await add(room, encrypted=encrypted)
        caller = await enter(room)
        call = replace(CALL, once=_once(caller))
        await _append(room, caller, call)
        rig.clock.advance(_DAY_MS - 1)
        with pytest.raises(Replayed):
            await _append(room, caller, call)
        assert await _lines(room, caller) == 1
        rig.clock.advance(1)
        await _append(room, caller, call)
        assert await _lines(room, caller) == 2

    rig.run(work)


@pytest.mark.parametrize("root", [USER_MEMORY, SHARED_MEMORY])
def test_a_key_used_in_one_store_is_known_in_the_other(rig: Rig, root: str) -> None:
    """The same request passes, another is refused."""

    async def work(room: Strongroom) -> None:
        await add(room)
        caller = await enter(room)
        await _append(room, caller, replace(CALL, once=_once(caller)), root)
        await require_one_use(room, caller, _once(caller))
        with pytest.raises(IdempotencyKeyReusedError):
            await require_one_use(room, caller, _once(caller, b"another"))
        await require_one_use(room, caller, replace(_once(caller, b"another"), key="new"))

    rig.run(work)


def test_a_locked_store_is_not_opened_to_look_for_a_key(rig: Rig) -> None:
    """Nor is one waited for that is being closed."""

    async def work(room: Strongroom) -> None:
        await add(room)
        caller = await enter(room)
        await _append(room, caller, replace(CALL, once=_once(caller)))
        own = room.stores.find(caller.user_id, caller.account.generation)
        assert own is not None
        await room.stores.on_thread(own.handles.close)
        await require_one_use(room, caller, _once(caller, b"another"))
        await room.stores.lock(caller.user_id)
        await require_one_use(room, caller, _once(caller, b"another"))
        assert room.stores.unlocked() == {}

    rig.run(work)
