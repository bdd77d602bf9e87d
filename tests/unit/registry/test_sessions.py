"""Sessions and tokens: ended with their slots."""

import pytest

from app.db.registry import statements as sql
from app.db.registry.store import RegistryTransactor
from app.errors.callers import InvalidCredentialsError, NotFoundError
from app.ids import SlotId
from app.registry import sessions
from app.registry.sessions import NewSlot
from tests.support.registry import DEK, add_member, add_session
from tests.support.stores import MovedClock


def test_a_session_is_listed_until_it_ends(tx: RegistryTransactor, clock: MovedClock) -> None:
    """By kind, newest first, while it lives."""
    ana = add_member(tx, "ana")
    one = add_session(tx, ana.id)
    clock.advance(1)
    two, token = add_session(tx, ana.id), add_session(tx, ana.id, "token")
    listed = [row.id for row in sessions.list_of_kind(tx, ana.id, "browser")]
    assert listed == [two.id, one.id]
    assert [row.id for row in sessions.list_of_kind(tx, ana.id, "token")] == [token.id]
    clock.advance(1000)
    assert sessions.list_of_kind(tx, ana.id, "browser") == []


def test_ending_a_session_destroys_its_slot(tx: RegistryTransactor) -> None:
    """The wrap itself goes, once; another member's session is as good as absent."""
    ana, ben = add_member(tx, "ana"), add_member(tx, "ben")
    session = add_session(tx, ana.id)
    with pytest.raises(NotFoundError):
        sessions.revoke(tx, ben.id, "browser", session.id)
    assert sessions.count_ways_in(tx, ana.id) == 1
    sessions.revoke(tx, ana.id, "browser", session.id)
    assert sessions.list_slots(tx, ana.id) == []
    assert sessions.count_ways_in(tx, ana.id) == 0
    with pytest.raises(NotFoundError):
        sessions.revoke(tx, ana.id, "browser", session.id)
    with pytest.raises(InvalidCredentialsError):
        sessions.require_live(tx, ana.id, session.id)


def test_a_session_without_a_slot_ends_too(tx: RegistryTransactor) -> None:
    """There is nothing to destroy, and it is no way in."""
    ana = add_member(tx, "ana")
    session = add_session(tx, ana.id, has_slot=False)
    assert sessions.count_ways_in(tx, ana.id) == 0
    assert sessions.require_live(tx, ana.id, session.id).id == session.id
    sessions.revoke(tx, ana.id, "browser", session.id)


def test_all_but_one_end(tx: RegistryTransactor) -> None:
    """Of one kind, of one member, with their slots."""
    ana, ben = add_member(tx, "ana"), add_member(tx, "ben")
    kept, _ = add_session(tx, ana.id), add_session(tx, ana.id)
    token, other = add_session(tx, ana.id, "token"), add_session(tx, ben.id)
    assert sessions.revoke_others(tx, ana.id, "browser", kept.id) == 1
    assert [row.id for row in sessions.list_of_kind(tx, ana.id, "browser")] == [kept.id]
    for session in (kept, token):
        sessions.require_live(tx, ana.id, session.id)
    sessions.revoke_all(tx, ana.id)
    assert sessions.list_slots(tx, ana.id) == []
    sessions.require_live(tx, ben.id, other.id)


def test_destroying_a_slot_ends_its_session(tx: RegistryTransactor) -> None:
    """A credential without its slot does not hold; another member's slot is absent."""
    ana, ben = add_member(tx, "ana"), add_member(tx, "ben")
    session = add_session(tx, ana.id)
    assert session.slot is not None
    with pytest.raises(NotFoundError):
        sessions.revoke_slot(tx, ben.id, session.slot.id)
    sessions.revoke_slot(tx, ana.id, session.slot.id)
    with pytest.raises(InvalidCredentialsError):
        sessions.require_live(tx, ana.id, session.id)


def test_a_member_has_one_recovery_slot(tx: RegistryTransactor) -> None:
    """A new one destroys the one before."""
    ana = add_member(tx, "ana")
    for name in ("one", "two"):
        slot = NewSlot(SlotId(name), ana.id, "recovery", DEK, b"wrap")
        sessions.set_recovery_slot(tx, slot)
    assert [row.id for row in sessions.list_slots(tx, ana.id)] == ["two"]


def test_slots_go_with_their_sessions(tx: RegistryTransactor, clock: MovedClock) -> None:
    """A session that has ended by itself leaves its slot to be destroyed; a recovery slot stays."""
    ana = add_member(tx, "ana")
    add_session(tx, ana.id)
    sessions.set_recovery_slot(tx, NewSlot(SlotId("paper"), ana.id, "recovery", DEK, b"wrap"))
    assert tx.run(sql.REMOVE_LOST_SLOTS, now=tx.now_ms) == []
    clock.advance(1000)
    assert len(tx.run(sql.REMOVE_LOST_SLOTS, now=tx.now_ms)) == 1
    assert [row.id for row in sessions.list_slots(tx, ana.id)] == ["paper"]
