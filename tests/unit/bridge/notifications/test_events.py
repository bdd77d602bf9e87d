"""Who is told of which event, in the group's store and in one's own."""

import json
from dataclasses import dataclass, replace
from typing import Final

import pytest

from app.bridge import layout
from app.bridge.accounts.api_tokens import SCOPES
from app.bridge.notifications import events
from app.bridge.notifications.events import OVERSEEN, OWN, Viewer, may_be_told, may_see
from app.bridge.strongroom import Strongroom
from app.clock import Millis
from app.db.owner.store import OwnerTransactor
from app.errors.conflicts import EventLogRestartedError
from app.errors.stores import StoreLockedError
from app.ids import RoleId, UserId
from app.owner import blobs, notes, reports
from app.owner.blobs import BlobCondition, Content, NewBlob, Placing
from app.owner.notes import Condition
from app.owner.reports import NewReport
from app.registry import supervision
from app.registry.roles import CAPABILITIES
from app.registry.sessions import ALL_SCOPES
from app.runtime.events import Cursor, Types
from app.runtime.files import NewFile
from tests.support.rig import ACTOR, BORN, Rig, add, enter, write_note
from tests.support.rooms import CALL
from tests.support.stores import ANA, BEN, CYD

ALL: Final = Types()


@dataclass(frozen=True, slots=True)
class Told:
    """An event as the log and the outbox carry it."""

    entity_type: str
    audience: str
    payload: str = "{}"


MEMBER: Final = Viewer(ANA, is_admin=False, capabilities=frozenset(), subjects=frozenset())
ADMIN: Final = replace(MEMBER, is_admin=True)
OVERSEER: Final = replace(MEMBER, capabilities=frozenset(CAPABILITIES))
SUPERVISOR: Final = replace(MEMBER, subjects=frozenset({BEN}))
VIEWERS: Final = {
    "member": MEMBER,
    "admin": ADMIN,
    "overseer": OVERSEER,
    "supervisor": SUPERVISOR,
    "admin who supervises": replace(ADMIN, subjects=frozenset({BEN})),
}


def report(audience: str, subject: str | None, producer: str) -> Told:
    """A report's event."""
    facts = {"audience": audience, "subject_user_id": subject, "producer_user_id": producer}
    return Told("report", audience if audience == "supervisors" else "admins", json.dumps(facts))


def attached(audience: str, subject: str | None, producer: str) -> Told:
    """The event of something that hangs on a report."""
    facts = json.loads(report(audience, subject, producer).payload)
    return Told("blob", "supervisors", json.dumps({"report_id": "r", "report": facts}))


EVERYBODY: Final = set(VIEWERS)
ADMINS: Final = {"admin", "admin who supervises"}
SUPERVISORS: Final = {"supervisor", "admin who supervises"}


@pytest.mark.parametrize(
    ("event", "seen_by"),
    [
        pytest.param(Told("memory_doc", "members"), EVERYBODY, id="a shared note"),
        pytest.param(Told("memory_doc", "admins"), set(), id="a note of no audience there is"),
        pytest.param(Told("blob", "members"), EVERYBODY, id="a shared attachment"),
        pytest.param(Told("blob", "supervisors"), set(), id="what hangs on an unknown report"),
        pytest.param(attached("admins", BEN, CYD), ADMINS, id="on one for administrators"),
        pytest.param(attached("admins", ANA, CYD), set(), id="on one about the viewer"),
        pytest.param(attached("admins", BEN, ANA), EVERYBODY, id="on the viewer's own"),
        pytest.param(attached("supervisors", BEN, CYD), SUPERVISORS, id="on one for supervisors"),
        pytest.param(report("admins", BEN, CYD), ADMINS, id="a report for administrators"),
        pytest.param(report("admins", None, CYD), ADMINS, id="one about nobody"),
        pytest.param(report("admins", ANA, CYD), set(), id="on the viewer"),
        pytest.param(report("admins", ANA, ANA), set(), id="on the viewer, by the viewer"),
        pytest.param(report("admins", BEN, ANA), EVERYBODY, id="by the viewer"),
        pytest.param(report("supervisors", BEN, CYD), SUPERVISORS, id="for supervisors"),
        pytest.param(report("supervisors", CYD, BEN), set(), id="on whom nobody supervises"),
        pytest.param(report("owner", BEN, CYD), set(), id="for an owner alone"),
        pytest.param(Told("report", "admins", "{}"), set(), id="of which nothing is known"),
        pytest.param(Told("subscription", "admins"), ADMINS, id="a webhook"),
        pytest.param(Told("nothing_known", "members"), set(), id="what has no rule"),
    ],
)
def test_who_is_told_of_an_event(event: Told, seen_by: set[str]) -> None:
    """The same as whoever its entity would be shown to."""
    assert {name for name, viewer in VIEWERS.items() if may_see(event, viewer)} == seen_by


@pytest.mark.parametrize("entity", sorted(OVERSEEN))
@pytest.mark.parametrize("audience", ["members", "admins", "supervisors"])
def test_what_administrators_see_members_never_do(entity: str, audience: str) -> None:
    """Whatever the event's audience says; one capability shows it, and no other."""
    event = Told(entity, audience)
    assert may_see(event, ADMIN)
    assert not may_see(event, MEMBER)
    assert not may_see(event, SUPERVISOR)
    showing = {
        name
        for name in CAPABILITIES
        if may_see(event, replace(MEMBER, capabilities=frozenset({name})))
    }
    assert showing == ({OVERSEEN[entity]} - {None})


@pytest.mark.parametrize(
    ("event", "scope"),
    [
        (Told("memory_doc", "members"), "memory:read"),
        (Told("blob", "members"), "memory:read"),
        (report("admins", BEN, CYD), "reports:read"),
        (attached("admins", BEN, CYD), "reports:read"),
        (Told("user", "admins"), "admin"),
    ],
)
def test_a_token_is_told_of_what_it_could_ask_for(event: Told, scope: str) -> None:
    """An event's scope is that of its entity's own call, beside the feed's."""
    assert may_see(event, replace(ADMIN, scopes=frozenset({events.SCOPE, scope})))
    others = {"memory:read", "reports:read", "admin", events.SCOPE} - {scope}
    assert not may_see(event, replace(ADMIN, scopes=frozenset(others)))


@pytest.mark.parametrize(
    ("event", "scope"),
    [
        (Told("memory_doc", "members"), "memory:read"),
        (Told("blob", "members"), "memory:read"),
        (Told("blob", "supervisors"), "reports:read"),
        (Told("report", "admins"), "reports:read"),
        (Told("report", "supervisors"), "reports:read"),
        (Told("secret", "members"), "secrets"),
        (Told("schedule", "admins"), "jobs:work"),
        (Told("subscription", "admins"), None),
        (Told("user_config", "members"), None),
        (Told("nothing_known", "members"), None),
    ],
)
def test_a_token_is_told_of_its_members_own_what_it_could_ask_for(
    event: Told, scope: str | None
) -> None:
    """The scope of the entity's own call, beside the feed's; a person's session sees all."""
    assert may_be_told(event, frozenset({ALL_SCOPES}))
    showing = {name for name in SCOPES if may_be_told(event, frozenset({events.SCOPE, name}))}
    assert showing == ({scope} - {None})


def test_every_tracked_entity_has_its_rule() -> None:
    """One that is added is told to nobody until somebody says to whom."""
    own = {item.entity for bucket in layout.MEMBER_KIND.buckets for item in bucket.tracked}
    assert own == OWN.keys() | {"blob"}
    tracked = {item.entity for bucket in layout.SYSTEM_KIND.buckets for item in bucket.tracked}
    assert tracked - OVERSEEN.keys() <= {"memory_doc", "blob", "report", "approval"}


async def _kinds(room: Strongroom, name: str, home: str) -> set[str]:
    caller = await enter(room, name)
    found = await events.read_page(room, caller, CALL, home, None, ALL, 1000)  # type: ignore[arg-type] # one of two
    assert found.is_end
    return {event.entity_type for event in found.items}


def test_each_sees_their_own_part_of_the_groups_log(rig: Rig) -> None:
    """Members what is shared, administrators what they administer, a supervisor their reports."""

    async def work(room: Strongroom) -> None:
        await add(room, "ana", "admin")
        ben = (await add(room, "ben")).account
        await add(room, "cyd")
        dee = (await add(room, "dee")).account
        group = room.stores.group
        await group.write(lambda tx: notes.put_note(tx, "n.md", "text", ben.id, Condition()), ACTOR)
        new = NewReport("k", "t", "b", "p", audience="supervisors", subject_user_id=ben.id)
        made = await group.write(lambda tx: reports.add_report(tx, new, dee.id), ACTOR)
        assert await _kinds(room, "cyd", "group") == {"memory_doc"}
        assert await _kinds(room, "ben", "group") == {"memory_doc"}
        assert await _kinds(room, "dee", "group") == {"memory_doc", "report"}
        seen = await _kinds(room, "ana", "group")
        assert {"user", "session", "memory_doc"} <= seen
        assert "report" not in seen
        # Also when the report is gone.
        await group.write(lambda tx: reports.remove_report(tx, made.id), ACTOR)
        assert await _kinds(room, "dee", "group") == {"memory_doc", "report"}
        assert await _kinds(room, "cyd", "own") == {"memory_doc"}

    rig.run(work)


def test_who_may_see_a_report_is_told_of_what_hangs_on_it(rig: Rig) -> None:
    """That it came, was named, went, and went with its report; nobody else, in page or webhook."""

    def attach(tx: OwnerTransactor, number: int, report_id: str) -> str:
        blob_id = f"01890000-0000-4000-8000-00000000000{number}"
        digest = bytes([number]) * 32
        content = Content(digest, 1, NewFile(f"file {number}", bytes(32), digest, 1))
        new = NewBlob(blob_id, "text/plain", report_id=report_id)
        blobs.put(tx, new, content, ANA, blobs.may_all, BlobCondition())
        return blob_id

    def work_on(tx: OwnerTransactor, subject: UserId, producer: UserId) -> None:
        new = NewReport("k", "t", "b", "p", audience="supervisors", subject_user_id=subject)
        made = reports.add_report(tx, new, producer)
        first = attach(tx, 1, made.id)
        attach(tx, 2, made.id)
        name, always = Placing(name="a.txt"), BlobCondition()
        blobs.place(tx, first, name, blobs.may_all, lambda _: None, always)
        blobs.remove(tx, first, blobs.may_all, lambda _: None, always)
        reports.remove_report(tx, made.id)

    async def work(room: Strongroom) -> None:
        accounts = {name: (await add(room, name)).account for name in ("ben", "cyd", "dee", "eve")}
        ben, dee, eve = (accounts[name].id for name in ("ben", "dee", "eve"))
        await room.stores.registry.write(lambda tx: supervision.add(tx, ben, eve), ACTOR)
        await room.stores.group.write(lambda tx: work_on(tx, ben, dee), ACTOR)
        for name, is_told in (("ben", False), ("cyd", False), ("dee", True), ("eve", True)):
            caller = await enter(room, name)
            found = await events.read_page(room, caller, CALL, "group", None, ALL, 1000)
            told = [event.type for event in found.items if event.entity_type == "blob"]
            wanted = ["created", "created", "updated", "deleted", "deleted"]
            assert told == [f"blob.{kind}" for kind in wanted if is_told], name

    rig.run(work)


def test_rights_are_those_of_the_moment(rig: Rig) -> None:
    """A role that changed, an edge that is new: the next page knows."""

    async def work(room: Strongroom) -> None:
        made = await add(room, "ana", "admin")
        caller = await enter(room)
        asking = await events.viewer(room, caller)
        assert asking.is_admin
        asking = await events.viewer(room, replace(caller, role_id=RoleId("guest")))
        assert (asking.is_admin, asking.capabilities) == (False, frozenset())
        assert asking.user_id == UserId(made.account.id)

    rig.run(work)


def test_ones_own_log_is_read_and_pruned(rig: Rig) -> None:
    """Whole, by whoever can open the store; pruning keeps its places."""

    async def work(room: Strongroom) -> None:
        await add(room)
        caller = await enter(room)
        born = await events.read_page(room, caller, CALL, "own", None, ALL, 10)
        assert [event.seq for event in born.items] == [1, BORN]
        for turn in range(3):
            await write_note(room, caller, f"text {turn}")
            rig.clock.advance(1000)
        first = await events.read_page(room, caller, CALL, "own", born.next, ALL, 2)
        assert [event.type for event in first.items] == ["memory_doc.created", "memory_doc.updated"]
        assert not first.is_end
        before = Millis(rig.clock.now_ms - 1000)
        assert await events.prune_own(room, caller, CALL, before) == BORN + 2
        rest = await events.read_page(room, caller, CALL, "own", None, ALL, 10)
        assert [event.seq for event in rest.items] == [BORN + 3]
        assert rest == await events.read_page(room, caller, CALL, "own", first.next, ALL, 10)
        with pytest.raises(EventLogRestartedError):
            await events.read_page(room, caller, CALL, "own", Cursor("00", 3), ALL, 10)

    rig.run(work)


def test_a_token_reads_of_ones_own_log_what_it_may(rig: Rig) -> None:
    """And gets past the rest of it."""

    async def work(room: Strongroom) -> None:
        await add(room)
        caller = await enter(room)
        await write_note(room, caller)
        for scopes, count in (({events.SCOPE}, 0), ({events.SCOPE, "memory:read"}, BORN + 1)):
            weaker = replace(caller, kind="token", scopes=frozenset(scopes))
            found = await events.read_page(room, weaker, CALL, "own", None, ALL, 10)
            assert (len(found.items), found.next.seq) == (count, BORN + 1)

    rig.run(work)


def test_much_is_pruned_in_batches(rig: Rig, monkeypatch: pytest.MonkeyPatch) -> None:
    """All of it, in one write."""
    monkeypatch.setattr(events, "_BATCH", 2)

    async def work(room: Strongroom) -> None:
        await add(room)
        caller = await enter(room)
        for turn in range(5):
            await write_note(room, caller, f"text {turn}")
        rig.clock.advance(1)
        assert await events.prune_own(room, caller, CALL, Millis(rig.clock.now_ms)) == BORN + 5

    rig.run(work)


def test_a_credential_that_opens_nothing_reads_no_log(rig: Rig) -> None:
    """As of any of the store's content."""

    async def work(room: Strongroom) -> None:
        await add(room)
        caller = replace(await enter(room), wrapped_dek=None)
        with pytest.raises(StoreLockedError):
            await events.read_page(room, caller, CALL, "own", None, ALL, 10)

    rig.run(work)
