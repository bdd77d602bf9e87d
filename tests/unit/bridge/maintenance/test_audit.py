"""The record of changes of a whole service: what of it goes, and that it holds all the same."""

from app.bridge.accounts import erasure
from app.bridge.maintenance import audit as bridge
from app.bridge.strongroom import Strongroom
from app.clock import Millis
from app.db.registry.store import RegistryTransactor
from app.registry import accounts
from app.runtime import audit
from app.runtime.audit import ChangeFilter
from tests.support.rig import ACTOR, Rig, add, enter
from tests.support.rooms import CALL


def test_what_is_erased_leaves_the_chain_whole(rig: Rig) -> None:
    """Fields and salt of a member's rows go together; a head from before is still found."""

    async def work(room: Strongroom) -> None:
        await add(room, "ana", "admin")
        ben = (await add(room, "ben")).account
        await enter(room, "ben")
        kept = bridge.head(rig.settings)
        assert kept is not None
        await erasure.erase(room, ben.id, CALL, ACTOR)
        found = bridge.verify(rig.settings, kept.row_hash)
        assert found.fault is None
        assert found.erased > 0
        everything = await bridge.list_changes(room, ChangeFilter(), None, 1000)
        assert not [row for row in everything if "ben" in (row.fields or "")]
        of_ben = await bridge.list_changes(room, ChangeFilter("user", ben.id), None, 1000)
        assert [row.kind for row in of_ben] == ["delete", "insert"]
        assert {row.fields for row in of_ben} == {None}

    rig.run(work)


def test_an_operators_act_names_the_operator(rig: Rig) -> None:
    """Listed from a time on; the head told from outside is the one inside."""

    async def work(room: Strongroom) -> None:
        ana = (await add(room)).account
        rig.clock.advance(1000)

        def write(tx: RegistryTransactor) -> None:
            accounts.set_profile(tx, ana.id, {"sex": "f"}, may_grant_admin=False)

        await room.stores.registry.write(write, ACTOR)
        which = ChangeFilter(record_id=ana.id, since=Millis(rig.clock.now_ms))
        [row] = await bridge.list_changes(room, which, None, 10)
        assert (row.record_id, row.actor_sub, row.fields) == (
            ana.id,
            ACTOR.sub,
            '{"sex":[null,"f"]}',
        )
        head = await room.stores.registry.read(audit.head)
        assert head == bridge.head(rig.settings)

    rig.run(work)
