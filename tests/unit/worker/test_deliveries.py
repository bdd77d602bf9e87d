"""What is owed is sent: at once, in order, bounded, given back, and to nobody who may not know."""

import asyncio
import base64
import contextlib
import dataclasses
import re
from collections.abc import Callable, Collection, Iterator
from typing import Any

import pytest

from app import metrics, telemetry
from app.bridge.accounts import members, signin
from app.bridge.callers import Caller
from app.bridge.notifications import deliveries as words
from app.bridge.notifications import webhooks
from app.bridge.notifications.subscribers import Subscriber, Told
from app.bridge.strongroom import Strongroom
from app.clock import system_clock
from app.db.context import Actor, system_actor
from app.db.owner.store import OwnerStore, OwnerTransactor
from app.db.runtime import statements as sql
from app.db.runtime.store import RuntimeReader
from app.db.triggers import DEPTH_MAX
from app.errors.stores import StoreDamagedError
from app.owner import notes as owner_notes
from app.owner import reports
from app.owner.notes import Condition
from app.owner.reports import NewReport
from app.registry import flags as registry_flags
from app.runtime import deliveries, subscriptions
from app.runtime.deliveries import Due
from app.worker.http_sender import Sender
from tests.support.endpoint import Endpoint, endpoint
from tests.support.matrix import chosen
from tests.support.post_office import (
    CHOSEN,
    add_webhook,
    all_of,
    declared,
    delivering,
    settled,
    until,
)
from tests.support.rig import Rig, add, closing, enter, member, reopen, stop_at, write_note
from tests.support.rooms import CALL, PASSWORD

pytestmark = pytest.mark.timeout(60)

ACTOR = system_actor("test")


@pytest.fixture
def far() -> Iterator[Endpoint]:
    """An endpoint."""
    with endpoint() as found:
        yield found


@pytest.fixture
def office(make_rig: Callable[..., Rig]) -> Rig:
    """A root whose deliveries are looked for often."""
    return make_rig(**CHOSEN)


async def own_store(room: Strongroom, caller: Caller) -> OwnerStore:
    """The caller's, which is open."""
    row = await member(room, caller.user_id)
    store = room.stores.find(caller.user_id, row.store_generation)
    assert store is not None
    return store


async def signed_in(
    room: Strongroom, username: str = "ana", role_id: str = "member", *, encrypted: bool = True
) -> Caller:
    """A new member, whose store is open."""
    await add(room, username, role_id, encrypted=encrypted)
    caller = await enter(room, username)
    await write_note(room, caller, "before")
    return caller


async def write(store: OwnerStore, path: str, text: str = "x", actor: Actor = ACTOR) -> None:
    """Write a note there."""
    await store.write(lambda tx: owner_notes.put_note(tx, path, text, "test", Condition()), actor)


def test_a_subscriber_is_told_at_once(make_rig: Callable[..., Rig], far: Endpoint) -> None:
    """Woken by the bell, for the next look is an hour away; and what is sent is verified."""
    rig = make_rig(**CHOSEN | {"delivery_poll_s": 3600.0})
    rig.clock.now_ms = system_clock()

    async def main(room: Strongroom) -> None:
        ana = await signed_in(room)
        _, secret = await add_webhook(room, ana, far)
        async with delivering(room):
            for count in (1, 2):
                await write_note(room, ana, f"text {count}")
                await until(lambda count=count: len(far.received) == count)  # type: ignore[misc] # one for each
            store = await own_store(room, ana)
            first, second = await settled(store, "succeeded")
        assert set(far.ids()) == {first.id, second.id}
        told = far.received[0].verified(secret)
        assert told["type"] == "memory_doc.updated"
        assert told["timestamp"].endswith("Z")
        assert set(told["data"]) == {"event_id", "entity_type", "entity_id"}
        assert told["data"]["event_id"] in {first.event_id, second.event_id}
        assert "kept" not in far.received[0].body.decode()

    rig.run(main)


def test_what_is_told_is_the_members_choice(office: Rig, far: Endpoint) -> None:
    """Ids alone from their own store, unless they ticked more; of the group's, the fields too."""

    async def main(room: Strongroom) -> None:
        ana = await signed_in(room)
        await add_webhook(room, ana, far, include_content=True)
        await add_webhook(room, ana, far, "group")
        async with delivering(room):
            await write_note(room, ana)
            await until(lambda: len(far.received) == 1)
            await write(room.stores.group, "plan.md")
            await until(lambda: len(far.received) == 2)
        own, groups = (each.event["data"] for each in far.received)
        assert own["payload"]["path"] == "kept.md"
        assert groups["payload"]["path"] == "plan.md"

    office.run(main)


def test_a_trace_goes_on_with_what_is_told(office: Rig, far: Endpoint) -> None:
    """Each try is a span of its own of the trace that the change came with; else there is none."""
    trace_id = "ab" * 16
    traced = dataclasses.replace(ACTOR, trace_id=trace_id)

    async def main(room: Strongroom) -> None:
        ana = await signed_in(room)
        await add_webhook(room, ana, far, "group")
        async with delivering(room):
            for count, actor in enumerate((traced, traced, ACTOR), 1):
                await write(room.stores.group, "plan.md", str(count), actor)
                await until(lambda count=count: len(far.received) == count)  # type: ignore[misc] # one for each
        *sent, untraced = (each.headers.get("traceparent") for each in far.received)
        assert untraced is None
        spans = [re.fullmatch(f"00-{trace_id}-([0-9a-f]{{16}})-01", each or "") for each in sent]
        assert len({each[1] for each in spans if each}) == 2

    office.run(main)


@pytest.mark.parametrize("place", ["own", "plain", "group"])
def test_the_old_secret_signs_beside_the_new_one_for_a_day(
    make_rig: Callable[..., Rig], far: Endpoint, place: str
) -> None:
    """Where the file is not under a key, neither is in it but under a seal."""
    rig = make_rig(**CHOSEN)
    rig.clock.now_ms = system_clock()
    home: webhooks.Home = "group" if place == "group" else "own"

    async def main(room: Strongroom) -> None:
        ana = await signed_in(room, encrypted=place != "plain")
        webhook_id, old = await add_webhook(room, ana, far, home)
        _, new = await webhooks.renew_secret(room, ana, CALL, home, webhook_id, None)
        store = room.stores.group if place == "group" else await own_store(room, ana)
        async with delivering(room):
            await write(store, "plan.md")
            await until(lambda: len(far.received) == 1)
            for secret in (old, new):
                assert far.received[0].verified(secret)
            await settled(store, "succeeded")
            rig.clock.advance(86_400_001)
            await write(store, "plan.md", "y")
            await until(lambda: len(far.received) == 2)
        assert far.received[0].headers["webhook-signature"].count("v1,") == 2
        assert far.received[1].headers["webhook-signature"].count("v1,") == 1
        files = [path for path in room.settings.database.rglob("*") if path.is_file()]
        on_disk = b"".join(path.read_bytes() for path in files)
        for secret in (old, new):
            assert base64.b64decode(secret.removeprefix("whsec_")) not in on_disk

    rig.run(main)


def test_a_seal_that_was_moved_signs_nothing(
    office: Rig, far: Endpoint, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is a fault of ours, and a failed try."""
    told: list[BaseException] = []
    monkeypatch.setattr(telemetry, "unexpected", lambda _where, error: told.append(error))

    async def main(room: Strongroom) -> None:
        ana = await signed_in(room)
        webhook_id, _ = await add_webhook(room, ana, far, "group")
        moved = words.kept_secret(room, "another", b"s" * 32, is_under_key=False)
        group = room.stores.group
        await group.write(
            lambda tx: subscriptions.set_secret(tx, webhook_id, ana.user_id, moved, 0, None), ACTOR
        )
        async with delivering(room):
            await write(group, "plan.md")
            [row] = await settled(group, "retry")
        assert row.last_failure == "internal"
        assert not far.received

    office.run(main)
    assert [type(error) for error in told] == [StoreDamagedError]


def test_nobody_is_told_what_they_may_not_see(office: Rig, far: Endpoint) -> None:
    """Judged when it is sent: as their role, and their place as a report's subject, are then."""

    async def main(room: Strongroom) -> None:
        admin = await signed_in(room, "ada", "admin")
        ana = await signed_in(room, "ana")
        ben = await signed_in(room, "ben")
        for caller in (admin, ana, ben):
            await add_webhook(room, caller, far, "group", ["*"])
        await members.deactivate(room, ben.user_id, ACTOR)
        new = NewReport(
            kind="k",
            title="t",
            body="b",
            produced_by="p",
            audience="admins",
            subject_user_id=ana.user_id,
        )
        group = room.stores.group
        await group.write(lambda tx: reports.add_report(tx, new, admin.user_id), ACTOR)
        await write(group, "plan.md")
        by_maker: dict[str, set[str]] = {admin.user_id: set(), ana.user_id: set()}
        async with delivering(room):
            for row in await settled(group, "succeeded", "cancelled"):
                target = await group.one(sql.FIND_TARGET, id=row.subscription_id)
                assert target is not None
                if row.status == "succeeded":
                    by_maker.setdefault(target.made_by, set()).add(row.type)
                else:
                    assert row.last_failure == "not_permitted"
        assert {"report.created", "memory_doc.created", "user.updated"} <= by_maker[admin.user_id]
        assert by_maker[ana.user_id] == {"memory_doc.created"}
        assert ben.user_id not in by_maker

    office.run(main)


def test_a_failed_try_is_made_again_with_the_same_id_and_body(office: Rig, far: Endpoint) -> None:
    """At its time, with a signature of its own."""
    answers = [500, 404, 204]
    far.answer = lambda _received: answers[len(far.received) - 1]

    async def main(room: Strongroom) -> None:
        ana = await signed_in(room)
        await add_webhook(room, ana, far)
        async with delivering(room):
            store = await own_store(room, ana)
            await write_note(room, ana)
            [row] = await settled(store, "retry")
            assert (row.last_failure, row.last_status, row.attempts) == ("status_5xx", 500, 1)
            assert row.next_attempt_at == office.clock() + 5_000
            office.clock.advance(5_000)
            await until(lambda: len(far.received) == 2)
            [row] = await settled(store, "retry")
            office.clock.advance(30_000)
            [row] = await settled(store, "succeeded")
        assert far.ids() == [row.id] * 3
        assert len({each.body for each in far.received}) == 1
        assert len({each.headers["webhook-signature"] for each in far.received}) == 3

    office.run(main)


def test_an_endpoint_that_is_gone_switches_its_webhook_off(office: Rig, far: Endpoint) -> None:
    """And the log says that a delivery is dead."""
    far.answer = lambda _received: 410

    async def main(room: Strongroom) -> None:
        ana = await signed_in(room)
        webhook_id, _ = await add_webhook(room, ana, far)
        async with delivering(room):
            store = await own_store(room, ana)
            await write_note(room, ana)
            await settled(store, "dead")
        row = await webhooks.get(room, ana, CALL, "own", webhook_id)
        assert (row.enabled, row.disabled_reason) == (0, "gone")

    office.run(main)


@pytest.mark.parametrize("is_far", [False, True])
def test_a_slow_subscriber_holds_up_nobody_else(
    make_rig: Callable[..., Rig],
    far: Endpoint,
    is_far: bool,  # noqa: FBT001 - a parameter
) -> None:
    """At another host or at its own: it has as many tries at once as one may, the others go by."""
    few = {"deliveries_at_once": 4, "deliveries_per_subscriber": 2, "delivery_slow_s": 60}
    rig = make_rig(**CHOSEN | few)

    async def main(room: Strongroom) -> None:
        ana = await signed_in(room)
        store = await own_store(room, ana)
        with contextlib.ExitStack() as stack:
            other = stack.enter_context(endpoint()) if is_far else far
            other.answer = far.answer = lambda got: "hang" if got.path == "/slow" else 204
            await add_webhook(room, ana, other, path="/slow")
            await add_webhook(room, ana, far)
            async with delivering(room):
                for number in range(6):
                    await write(store, f"{number}.md")
                await until(lambda: paths(far).count("/hook") == 6)
                assert paths(other).count("/slow") <= 2
            other.ending.set()
        assert len({each.id for each in far.received if each.path == "/hook"}) == 6

    rig.run(main)


@pytest.mark.parametrize(
    ("at_once", "each", "slow_ones", "tries"),
    [(2, 4, 1, 1), (4, 4, 1, 2), (8, 3, 3, 7)],
)
def test_the_last_places_are_for_who_has_none(  # noqa: PLR0913, PLR0917 - parameters
    make_rig: Callable[..., Rig],
    far: Endpoint,
    at_once: int,
    each: int,
    slow_ones: int,
    tries: int,
) -> None:
    """However the operator chose, one slow subscriber, or a few, leave room for a quick one."""
    few = {"deliveries_at_once": at_once, "deliveries_per_subscriber": each}
    rig = make_rig(**CHOSEN | few | {"delivery_slow_s": 60})
    far.answer = lambda got: "hang" if got.path == "/slow" else 204

    async def main(room: Strongroom) -> None:
        ana = await signed_in(room)
        store = await own_store(room, ana)
        for _ in range(slow_ones):
            await add_webhook(room, ana, far, path="/slow")
        for number in range(4):
            await write(store, f"{number}.md")
        async with delivering(room):
            await until(lambda: paths(far).count("/slow") >= tries)
            await add_webhook(room, ana, far)
            await write(store, "quick.md")
            await until(lambda: "/hook" in paths(far))
            assert await _nothing_moves(far)
        far.ending.set()
        assert paths(far).count("/slow") == tries

    rig.run(main)


def test_who_waited_longest_is_told_first(make_rig: Callable[..., Rig], far: Endpoint) -> None:
    """With one place only, two subscribers with much to be told take turns."""
    rig = make_rig(**CHOSEN | {"deliveries_at_once": 1})

    async def main(room: Strongroom) -> None:
        ana = await signed_in(room)
        store = await own_store(room, ana)
        for path in ("/a", "/b"):
            await add_webhook(room, ana, far, path=path)
        for number in range(3):
            await write(store, f"{number}.md")
        async with delivering(room):
            await settled(store, "succeeded")
        turns = paths(far)
        assert [set(turns[at : at + 2]) for at in (0, 2, 4)] == [{"/a", "/b"}] * 3

    rig.run(main)


def test_slow_endpoints_of_many_members_hold_up_no_other_store(
    make_rig: Callable[..., Rig], far: Endpoint
) -> None:
    """More of them hang than there are slots: another member and the group are told at once."""
    count, at_once = chosen((4, 3), (20, 16))
    few = {"deliveries_at_once": at_once, "deliveries_slow_at_once": count}
    rig = make_rig(**CHOSEN | few | {"delivery_slow_s": 0.05, "delivery_timeout_s": 3600})
    far.answer = lambda got: "hang" if got.path.startswith("/slow") else 204

    async def main(room: Strongroom) -> None:
        slow = [await signed_in(room, f"slow{number}") for number in range(count)]
        for number, each in enumerate(slow):
            await add_webhook(room, each, far, path=f"/slow{number}")
        ana = await signed_in(room)
        await add_webhook(room, ana, far)
        await add_webhook(room, ana, far, "group", path="/group")
        async with delivering(room):
            for number in range(3):
                for each in slow:
                    await write(await own_store(room, each), f"{number}.md")
            await until(lambda: len({each for each in paths(far) if "slow" in each}) == count)
            for number in range(6):
                await write(await own_store(room, ana), f"{number}.md")
                await write(room.stores.group, f"{number}.md")
                await until(lambda number=number: paths(far).count("/hook") > number)  # type: ignore[misc] # one for each
                await until(lambda number=number: paths(far).count("/group") > number)  # type: ignore[misc] # one for each
            assert not far.ending.is_set()
        far.ending.set()

    rig.run(main)


def test_a_slow_store_that_waits_is_next_when_another_slow_try_ends(
    make_rig: Callable[..., Rig], far: Endpoint
) -> None:
    """With room for one slow try only, stores take turns at it; the next look is far off."""
    few = {"deliveries_slow_at_once": 1, "delivery_slow_s": 0.02, "delivery_poll_s": 3600.0}
    rig = make_rig(**CHOSEN | few | {"deliveries_per_subscriber": 1, "breaker_failures": 1000})
    far.answer = lambda _received: "linger"

    async def main(room: Strongroom) -> None:
        members = [await signed_in(room, name) for name in ("ana", "ben")]
        for caller in members:
            await add_webhook(room, caller, far, path=f"/{caller.user_id}")
        async with delivering(room):
            for number in range(3):
                for caller in members:
                    await write(await own_store(room, caller), f"{number}.md")
            for caller in members:
                await settled(await own_store(room, caller), "retry")
        assert {paths(far).count(f"/{caller.user_id}") for caller in members} == {3}

    rig.run(main)


def test_what_was_to_be_held_waits_for_a_slot_if_its_breaker_closed_since(
    office: Rig, far: Endpoint, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is sent at the next look, as its first try."""
    looks: list[bool] = []

    def look(reader: RuntimeReader, most: int, busy: Collection[str] = ()) -> list[Due]:
        found = real(reader, most, busy)
        looks.append(bool(found) and not any(looks))
        return [each._replace(is_blocked=looks[-1]) for each in found]

    async def main(room: Strongroom) -> None:
        ana = await signed_in(room)
        await add_webhook(room, ana, far)
        await write_note(room, ana)
        async with delivering(room):
            [row] = await settled(await own_store(room, ana), "succeeded")
        assert (row.attempts, far.ids()) == (1, [row.id])
        assert any(looks)

    real = deliveries.look
    monkeypatch.setattr(deliveries, "look", look)
    office.run(main)


@pytest.mark.parametrize("answer", [204, 500])
def test_who_answers_soon_again_is_among_the_quick_again(
    make_rig: Callable[..., Rig], far: Endpoint, answer: int
) -> None:
    """Then it needs none of the room for slow ones, which another has taken."""
    few = {"deliveries_slow_at_once": 1, "delivery_slow_s": 0.05, "delivery_timeout_s": 3600}
    rig = make_rig(**CHOSEN | few | {"breaker_failures": 1000})

    async def main(room: Strongroom) -> None:
        ana, ben = await signed_in(room, "ana"), await signed_in(room, "ben")
        own = await own_store(room, ana)
        await add_webhook(room, ana, far)
        await add_webhook(room, ben, far, path="/slow")
        async with delivering(room) as made:
            for number, each in enumerate(["linger", answer]):
                far.answer = lambda _received, each=each: each  # type: ignore[misc] # one for each
                await write(own, f"{number}.md")
                await settled(own, "succeeded", "retry")
            far.answer = lambda got: "hang" if got.path == "/slow" else 204
            await write(await own_store(room, ben), "slow.md")
            await until(lambda: made._slots.is_slow_full)
            await write(own, "last.md")
            await until(lambda: paths(far).count("/hook") == 3)
        far.ending.set()

    rig.run(main)


def paths(far: Endpoint) -> list[str]:
    """Of what came, in the order of its coming."""
    return [each.path for each in far.received]


def test_no_webhook_is_sent_while_the_flag_is_off(office: Rig, far: Endpoint) -> None:
    """What it is owed waits and spends no try; parts of the program are told; on goes on."""

    async def main(room: Strongroom) -> None:
        ana = await signed_in(room)
        store = await own_store(room, ana)
        part = Part(store, types=("memory_doc.*",))
        await add_webhook(room, ana, far)
        await add_webhook(room, ana, far, "group")
        async with delivering(room, [part.subscriber]):
            await declared(room.stores.group)
            await _turn(room, is_on=False)
            await write_note(room, ana)
            await write(room.stores.group, "plan.md")
            await until(lambda: len(part.told) == 1)
            assert await _nothing_moves(far)
            assert not far.received
            owed = await all_of(store) + await all_of(room.stores.group)
            waiting = [row for row in owed if row.kind == "webhook"]
            assert {(row.status, row.attempts) for row in waiting} == {("pending", 0)}
            await _turn(room, is_on=True)
            await settled(store, "succeeded")
            await settled(room.stores.group, "succeeded")
            await _turn(room, is_on=False)
            await write_note(room, ana, "more")
            assert await _nothing_moves(far)
        assert set(far.ids()) >= {row.id for row in waiting}

    office.run(main)


async def _turn(room: Strongroom, *, is_on: bool) -> None:
    """Turn the flag."""
    await room.stores.registry.write(
        lambda tx: registry_flags.set_value(tx, "webhooks", value=is_on, operator="box"), ACTOR
    )


def test_a_lock_breaks_off_and_gives_back(office: Rig, far: Endpoint) -> None:
    """The try does not count; at the next unlock it goes on with the same id."""
    far.answer = lambda _received: "hang" if len(far.received) == 1 else 204

    async def main(room: Strongroom) -> None:
        ana = await signed_in(room)
        await add_webhook(room, ana, far)
        async with delivering(room):
            await write_note(room, ana)
            await until(lambda: len(far.received) == 1)
            await room.stores.lock(ana.user_id)
            assert await _nothing_moves(far)
            await signin.sign_in(room, "ana", PASSWORD, CALL)
            store = await own_store(room, ana)
            [row] = await settled(store, "succeeded")
            assert row.attempts == 1
        assert far.ids() == [row.id] * 2

    office.run(main)


async def _nothing_moves(far: Endpoint) -> bool:
    """Whether a few looks of the loop send nothing."""
    before = len(far.received)
    for _ in range(10):
        await asyncio.sleep(0.01)
    return len(far.received) == before


def test_a_stop_breaks_off_and_gives_back(office: Rig, far: Endpoint) -> None:
    """Nothing is charged, and what was marked stays marked."""

    async def main(room: Strongroom) -> None:
        ana = await signed_in(room)
        store = await own_store(room, ana)
        await add_webhook(room, ana, far)
        async with delivering(room) as made:
            await write(store, "a.md")
            await settled(store, "succeeded")
            far.answer = lambda _received: "hang"
            await write(store, "b.md")
            await until(lambda: len(far.received) == 2)
            await made.close()
            await made.joined(ana.user_id, store)
            found = sorted((row.status, row.attempts) for row in await all_of(store))
        assert found == [("pending", 0), ("succeeded", 1)]

    office.run(main)


def test_what_a_locked_member_is_owed_waits(office: Rig, far: Endpoint) -> None:
    """Told to nobody, and sent at the unlock."""

    async def main(room: Strongroom) -> None:
        ana = await signed_in(room)
        await add_webhook(room, ana, far)
        await write_note(room, ana)
        await room.stores.lock(ana.user_id)
        async with delivering(room):
            assert await _nothing_moves(far)
            await signin.sign_in(room, "ana", PASSWORD, CALL)
            await until(lambda: len(far.received) == 1)

    office.run(main)


def test_every_store_with_closed_handles_has_its_turn(
    make_rig: Callable[..., Rig], far: Endpoint
) -> None:
    """Though a round looks at one of them alone, and those are due for a look that owe nothing."""
    rig = make_rig(**CHOSEN | {"delivery_look_s": 0.001, "stale_looks_max": 1})

    async def main(room: Strongroom) -> None:
        callers = [await signed_in(room, f"m{number}", encrypted=False) for number in range(4)]
        for caller in callers:
            await add_webhook(room, caller, far)
        stores = [await own_store(room, caller) for caller in callers]
        async with rig.open() as other, delivering(room):
            there = [await reopen(other, caller.user_id) for caller in callers]
            async with closing(room, stores), asyncio.timeout(30):
                # Whoever was last told has its turn last: once more, and all others come before.
                for number, store in enumerate([*there, there[-1]], 1):
                    await write(store, f"{number}.md")
                    await until(lambda number=number: len(far.received) == number)  # type: ignore[misc] # one for each

    rig.run(main)


def test_to_look_keeps_no_store_from_idle_locking(office: Rig, far: Endpoint) -> None:
    """One that has something due tomorrow is left in peace; so is one whose handles are closed."""
    far.answer = lambda _received: 404

    async def main(room: Strongroom) -> None:
        ana = await signed_in(room)
        store = await own_store(room, ana)
        await add_webhook(room, ana, far)
        async with delivering(room):
            await write_note(room, ana)
            await settled(store, "retry")
            before = store.handles.last_wanted
            assert await _nothing_moves(far)
            assert store.handles.last_wanted == before
            await room.stores.on_thread(lambda: room.stores.pool.sweep(0))
            assert await _nothing_moves(far)
            office.clock.advance(5_000)
            await until(lambda: len(far.received) == 2)

    office.run(main)


@pytest.mark.parametrize("point", ["delivery.claimed", "delivery.sent", "delivery.marked"])
def test_what_goes_wrong_at_any_point_loses_nothing(
    make_rig: Callable[..., Rig], far: Endpoint, monkeypatch: pytest.MonkeyPatch, point: str
) -> None:
    """When its lease is over it is sent again, with the same id."""
    rig, told = make_rig(**CHOSEN), []
    monkeypatch.setattr(telemetry, "unexpected", lambda where, _error: told.append(where))

    async def main(room: Strongroom) -> None:
        ana = await signed_in(room)
        store = await own_store(room, ana)
        await add_webhook(room, ana, far)
        async with delivering(room):
            await write_note(room, ana)
            await until(lambda: bool(told))
            if point != "delivery.marked":
                rig.clock.advance(60_000)
            [row] = await settled(store, "succeeded")
        assert set(far.ids()) == {row.id}
        assert row.attempts <= 2

    rig.run(main, stop_at(point))


def test_a_fault_of_ours_is_a_failed_try(
    office: Rig, far: Endpoint, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is on record, and the delivery is tried again."""
    told: list[str] = []
    monkeypatch.setattr(telemetry, "unexpected", lambda where, _error: told.append(where))

    async def fail(_sender: Sender, _message: object) -> None:
        raise ZeroDivisionError

    async def main(room: Strongroom) -> None:
        ana = await signed_in(room)
        await add_webhook(room, ana, far)
        async with delivering(room):
            with monkeypatch.context() as patch:
                patch.setattr(Sender, "send", fail)
                await write_note(room, ana)
                [row] = await settled(await own_store(room, ana), "retry")
            assert row.last_failure == "internal"
            office.clock.advance(5_000)
            await until(lambda: len(far.received) == 1)
        assert told == ["delivery"]

    office.run(main)


def test_a_loop_that_cannot_look_goes_on(
    office: Rig, far: Endpoint, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What is wrong is told, and the next round is tried."""
    told: list[str] = []
    monkeypatch.setattr(telemetry, "unexpected", lambda where, _error: told.append(where))

    async def main(room: Strongroom) -> None:
        ana = await signed_in(room)
        await add_webhook(room, ana, far)
        async with delivering(room):
            with monkeypatch.context() as patch:
                patch.setattr(deliveries, "look", lambda *_: 1 // 0)
                await write_note(room, ana)
                await until(lambda: "deliveries" in told)
            await until(lambda: len(far.received) == 1)

    office.run(main)


def test_a_connection_in_trouble_is_told_once(
    office: Rig, far: Endpoint, monkeypatch: pytest.MonkeyPatch
) -> None:
    """When its breaker opens, and when it has been open for an hour."""
    told: list[str] = []
    monkeypatch.setattr(telemetry, "breaker_opened", lambda: told.append("opened"))
    monkeypatch.setattr(telemetry, "breakers_stay_open", lambda n: told.append(f"{n} open"))
    counted: list[tuple[str, ...]] = []
    monkeypatch.setattr(metrics, "delivery_tried", lambda *labels: counted.append(labels))
    monkeypatch.setattr(metrics, "breaker_turned", lambda state: counted.append((state,)))
    far.answer = lambda _received: 503

    async def main(room: Strongroom) -> None:
        ana = await signed_in(room)
        store = await own_store(room, ana)
        await add_webhook(room, ana, far)
        async with delivering(room):
            for number in range(5):
                await write(store, f"{number}.md")
            await until(lambda: told == ["opened"])
            # The clock moves only while nothing is on its way, or that would lose its claim.
            await settled(store, "retry", "held")
            office.clock.advance(3_600_000)
            await until(lambda: len(told) == 2 and len(far.received) == 6)
            await settled(store, "retry", "held")
            far.answer = lambda _received: 204
            office.clock.advance(1_800_000)
            await settled(store, "succeeded")
        assert told == ["opened", "1 open"]
        turns = [labels for labels in counted if len(labels) == 1]
        assert turns == [("open",), ("closed",)]
        assert counted.count(("webhook", "succeeded")) == 5
        assert set(counted) - set(turns) == {
            ("webhook", "retry"),
            ("webhook", "held"),
            ("webhook", "succeeded"),
        }

    office.run(main)


def test_two_processes_send_each_once(office: Rig, far: Endpoint) -> None:
    """While their leases hold."""

    async def main(room: Strongroom) -> None:
        ana = await signed_in(room)
        await add_webhook(room, ana, far, "group")
        async with contextlib.AsyncExitStack() as stack:
            other = await stack.enter_async_context(office.open())
            for each in (room, other):
                await stack.enter_async_context(delivering(each))
            for number in range(20):
                store = (room, other)[number % 2].stores.group
                await write(store, f"{number}.md")
            await settled(room.stores.group, "succeeded")
        assert len(far.received) == len(set(far.ids())) == 20

    office.run(main)


# -- parts of the program ------------------------------------------------------------------------


class Part:
    """A part of the program that counts what it is told, in a member's store."""

    def __init__(
        self, store: OwnerStore, name: str = "part", types: tuple[str, ...] = ("*",)
    ) -> None:
        self.subscriber = Subscriber(name, types, self.handle)
        self.told: list[Told] = []
        self.effects: list[str] = []
        self.trouble: list[BaseException] = []
        self._store = store

    async def handle(self, _room: Strongroom, told: Told) -> None:
        """Write one note an event, and then perhaps go wrong."""
        self.told.append(told)

        def act(tx: OwnerTransactor) -> None:
            if deliveries.handled(tx, told.delivery_id, self.subscriber.name):
                return
            self.effects.append(told.delivery_id)
            path = f"told/{told.delivery_id}.md"
            owner_notes.put_note(tx, path, "x", "part", Condition())

        await self._store.write(act, told.actor)
        if self.trouble:
            raise self.trouble.pop()


def test_a_part_of_the_program_acts_once_for_each_event(
    office: Rig, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Though it is told again: what it wrote in another store says so."""
    monkeypatch.setattr(telemetry, "unexpected", lambda *_: None)

    async def main(room: Strongroom) -> None:
        ana = await signed_in(room)
        part = Part(await own_store(room, ana), types=("memory_doc.*",))
        part.trouble = [ZeroDivisionError()]
        group = room.stores.group
        async with delivering(room, [part.subscriber]):
            await declared(group)
            await write(group, "plan.md")
            [row] = await settled(group, "retry")
            assert row.last_failure == "internal"
            office.clock.advance(5_000)
            [row] = await settled(group, "succeeded")
        assert [told.delivery_id for told in part.told] == [row.id] * 2
        assert part.effects == [row.id]
        assert part.told[0].event.entity_type == "memory_doc"
        assert part.told[0].actor.depth == 1
        assert part.told[0].actor.sub == "part"

    office.run(main)


def test_a_chain_of_causes_ends_and_says_so_once(
    office: Rig, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A part that is told of its own writes stops at the cap."""
    ended: list[str] = []
    monkeypatch.setattr(telemetry, "delivery_chain_ended", ended.append)

    async def main(room: Strongroom) -> None:
        part = Part(room.stores.group, types=("memory_doc.*",))
        group = room.stores.group
        async with delivering(room, [part.subscriber]):
            await declared(group)
            for number in (1, 2):
                await write(group, f"plan{number}.md")
                await until(
                    lambda number=number: len(part.told) == number * (DEPTH_MAX + 1)  # type: ignore[misc] # one for each
                )
                await settled(group, "succeeded")
        depths = [told.actor.depth for told in part.told]
        assert depths == list(range(1, DEPTH_MAX + 2)) * 2
        assert ended == ["part"]

    office.run(main)


@pytest.mark.parametrize("kind", ["slow", "unknown"])
def test_a_part_that_cannot_be_told_is_told_again(make_rig: Callable[..., Rig], kind: str) -> None:
    """One that takes too long, and one that this program does not have."""
    rig = make_rig(**CHOSEN | {"delivery_lease_s": 0.1})

    async def wait(_room: Strongroom, _told: Told) -> None:
        await asyncio.sleep(60)

    async def main(room: Strongroom) -> None:
        group = room.stores.group
        slow = Subscriber("part", ("memory_doc.*",), wait)
        async with delivering(room, [slow]) as made:
            await declared(group)
            if kind == "unknown":
                made._teller._subscribers.clear()
            await write(group, "plan.md")
            [row] = await settled(group, "retry")
        failures: dict[str, Any] = {"slow": "timeout", "unknown": "unknown_subscriber"}
        assert row.last_failure == failures[kind]

    rig.run(main)
