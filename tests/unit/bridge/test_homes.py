"""Notes and reports in the store that path and audience name, and slots that do not open."""

from dataclasses import replace

import pytest

from app.bridge import access
from app.bridge.accounts.api_tokens import NewToken, mint
from app.bridge.callers import Caller
from app.bridge.content import notes, reports
from app.bridge.strongroom import Strongroom
from app.db.owner.rows import ReportRow
from app.db.registry.store import RegistryTransactor
from app.errors.callers import InvalidCredentialsError, NotFoundError, NotPermittedError
from app.errors.inputs import DifferentRootsError, InvalidInputError
from app.errors.stores import QuotaExceededError, StoreSwappedError
from app.ids import UserId
from app.owner import identity
from app.owner import notes as owner_notes
from app.owner import reports as owner_reports
from app.owner.notes import Condition
from app.owner.paths import SHARED_MEMORY, USER_MEMORY, PathRef
from app.owner.reports import NewReport
from app.registry import supervision
from tests.support.rig import ACTOR, Rig, add, enter, write_note
from tests.support.rooms import CALL

_SHARED = PathRef(SHARED_MEMORY, "wifi.md")
_OWN = PathRef(USER_MEMORY, "diary.md")
_REPORT = NewReport("weekly", "title", "body", "test")


async def _agent(room: Strongroom, caller: Caller, *scopes: str) -> Caller:
    new = NewToken("", scopes, "agent", is_agent=True, expires_at=None)
    token, _ = await mint(room, caller, new, CALL)
    return await access.authenticate(room, token)


async def _put(room: Strongroom, caller: Caller, ref: PathRef, text: str, adds: int = 0) -> None:
    await notes.write(
        room,
        caller,
        CALL,
        ref,
        lambda tx: owner_notes.put_note(tx, ref.key, text, caller.author, Condition()),
        adds_bytes=adds,
    )


async def _get(room: Strongroom, caller: Caller, ref: PathRef) -> str:
    return await notes.read(
        room, caller, CALL, ref, lambda reader: owner_notes.get_note(reader, ref.key).content
    )


def test_a_path_says_whose_note_it_is(rig: Rig) -> None:
    """What is shared is everybody's to read and find; what is one's own, nobody else's."""

    async def work(room: Strongroom) -> None:
        for name in ("ana", "ben"):
            await add(room, name)
        ana, ben = await enter(room, "ana"), await enter(room, "ben")
        await _put(room, ana, _SHARED, "apple for all")
        await _put(room, ana, _OWN, "apple of ana")
        assert await _get(room, ben, _SHARED) == "apple for all"
        with pytest.raises(NotFoundError):
            await _get(room, ben, _OWN)
        for caller, scope, wanted in [
            (ana, "all", {_SHARED.display, _OWN.display}),
            (ana, "own", {_OWN.display}),
            (ana, "shared", {_SHARED.display}),
            (ben, "all", {_SHARED.display}),
            (ben, "own", set()),
        ]:
            hits = await notes.search(room, caller, CALL, "apple", scope, 10)  # type: ignore[arg-type]  # one of the three
            assert {hit.path for hit in hits} == wanted
        notes.require_one_root(_OWN, _OWN)
        with pytest.raises(DifferentRootsError):
            notes.require_one_root(_OWN, _SHARED)

    rig.run(work)


def test_an_agent_writes_where_its_token_says(rig: Rig) -> None:
    """No further than its scopes reach; what others read its member decides, elsewhere."""

    async def work(room: Strongroom) -> None:
        await add(room)
        caller = await enter(room)
        agent = await _agent(room, caller, "memory:write", "shared:write")
        await _put(room, agent, _OWN, "mine")
        reading = await _agent(room, caller, "memory:read")
        assert await _get(room, reading, _OWN) == "mine"
        for who, ref in ((reading, _SHARED), (reading, _OWN)):
            with pytest.raises(NotPermittedError):
                await _put(room, who, ref, "no")

    rig.run(work)


def test_a_quota_bounds_what_a_write_may_add(rig: Rig) -> None:
    """It is judged before anything is written, and by the file's size."""

    async def work(room: Strongroom) -> None:
        await add(room)
        caller = replace(await enter(room), quota_bytes=1 << 30)
        await _put(room, caller, _OWN, "fits", 4)
        with pytest.raises(QuotaExceededError):
            await _put(room, replace(caller, quota_bytes=100), _OWN, "no", 2)
        assert await _get(room, caller, _OWN) == "fits"

    rig.run(work)


async def _read_report(room: Strongroom, caller: Caller, home: str, report_id: str) -> ReportRow:
    place: reports.Home = "group" if home == "group" else "own"
    may = await reports.visible(room, caller, place)
    return await reports.read(
        room, caller, CALL, place, lambda reader: reports.get(reader, report_id, may)
    )


def test_an_audience_says_where_a_report_lands(rig: Rig) -> None:
    """One's own store, or the group's; there it is read by whom it is for, never its subject."""

    async def work(room: Strongroom) -> None:
        for name, role in [("boss", "admin"), ("ana", "member"), ("ben", "member")]:
            await add(room, name, role)
        boss, ana, ben = [await enter(room, name) for name in ("boss", "ana", "ben")]

        def connect(tx: RegistryTransactor) -> None:
            supervision.add(tx, ben.user_id, ana.user_id)

        await room.stores.registry.write(connect, ACTOR)
        home, own = await reports.add(room, ana, CALL, _REPORT)
        assert home == "own"
        assert (await _read_report(room, ana, "own", own.id)).title == "title"
        about = replace(_REPORT, audience="supervisors", subject_user_id=ben.user_id)
        home, row = await reports.add(room, boss, CALL, about)
        assert home == "group"
        await _read_report(room, ana, "group", row.id)
        for other in (ben, await enter(room, "ben")):
            with pytest.raises(NotFoundError):
                await _read_report(room, other, "group", row.id)
        assert (await reports.rights_of(room, boss)).is_admin
        await reports.write(
            room, ana, CALL, "own", lambda tx: owner_reports.remove_report(tx, own.id)
        )
        await reports.write(
            room, boss, CALL, "group", lambda tx: owner_reports.remove_report(tx, row.id)
        )
        with pytest.raises(NotFoundError):
            await _read_report(room, ana, "group", row.id)

    rig.run(work)


def test_only_a_publisher_writes_for_the_group(rig: Rig) -> None:
    """With the capability, about somebody, and not as an agent."""

    async def work(room: Strongroom) -> None:
        await add(room, "boss", "admin")
        await add(room)
        boss, ana = await enter(room, "boss"), await enter(room)
        group = replace(_REPORT, audience="admins")
        agent = await _agent(room, boss, "reports:write")
        for caller in (ana, agent):
            with pytest.raises(NotPermittedError):
                await reports.add(room, caller, CALL, group)
        for wrong in (
            replace(_REPORT, audience="supervisors"),
            replace(group, subject_user_id=UserId("nobody")),
        ):
            with pytest.raises(InvalidInputError):
                await reports.add(room, boss, CALL, wrong)
        await reports.add(room, boss, CALL, group)
        reports.require_may_change(boss, "group")
        reports.require_may_change(agent, "own")
        with pytest.raises(NotPermittedError):
            reports.require_may_change(agent, "group")

    rig.run(work)


def test_a_slot_opens_under_its_own_secret_alone(rig: Rig) -> None:
    """One that was moved from another row is a credential that does not hold."""

    async def work(room: Strongroom) -> None:
        await add(room)
        one, two = await enter(room), await enter(room)
        moved = replace(one, slot_id=two.slot_id, wrapped_dek=two.wrapped_dek)
        with pytest.raises(InvalidCredentialsError):
            moved.take_key()
        assert one.token.text() not in repr(one)

    rig.run(work)


def test_a_key_under_another_name_is_another_stores(rig: Rig) -> None:
    """A file that names another key than the registry was put there from elsewhere."""

    async def work(room: Strongroom) -> None:
        await add(room)
        caller = await enter(room)
        await write_note(room, caller)
        store = room.stores.find(caller.user_id, caller.account.generation)
        assert store is not None
        with pytest.raises(StoreSwappedError):
            await store.read(lambda r: identity.require_identity(r, caller.user_id, frozenset()))

    rig.run(work)
