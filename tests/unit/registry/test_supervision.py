"""Supervision, and what others did to a member."""

import json

import pytest

from app.db.context import Actor
from app.db.registry.store import RegistryTransactor
from app.errors.callers import NotFoundError
from app.registry import accounts, supervision
from app.registry.acts import is_recorded, list_after
from tests.support.registry import add_member


def test_an_edge_is_there_or_not(tx: RegistryTransactor) -> None:
    """Twice is once; what is not there cannot be taken away, nor begin at nobody."""
    ana, ben, cyd = (add_member(tx, name).id for name in ("ana", "ben", "cyd"))
    for _ in range(2):
        supervision.add(tx, ana, ben)
    supervision.add(tx, cyd, ben)
    assert supervision.subjects_of(tx, ben) == {ana, cyd}
    first, second = supervision.list_page(tx, "", "", 5)
    place = (first.subject_user_id, first.supervisor_user_id)
    assert supervision.list_page(tx, *place, 5) == [second]
    supervision.remove(tx, ana, ben)
    assert supervision.subjects_of(tx, ben) == {cyd}
    with pytest.raises(NotFoundError):
        supervision.remove(tx, ana, ben)
    for pair in ((ana, "nobody"), ("nobody", ana)):
        with pytest.raises(NotFoundError):
            supervision.add(tx, *pair)


def test_a_member_sees_what_others_did_to_them(tx: RegistryTransactor) -> None:
    """Administrators and the operator, not themselves, not the program; newest first."""
    connection = tx._connection
    connection.actor = Actor("human", "anonymous", "POST /api/setup")
    ana, ben = add_member(tx, "ana"), add_member(tx, "ben", "admin")
    connection.actor = Actor("human", ana.id, "PATCH /api/me")
    accounts.set_profile(tx, ana.id, {"locale": "en"}, may_grant_admin=False)
    connection.actor = Actor("service", f"{ana.id}/agent", "PATCH /api/me", acting_for=ana.id)
    accounts.set_profile(tx, ana.id, {"locale": "fr"}, may_grant_admin=False)
    connection.actor = Actor("human", ben.id, "PATCH /api/admin/users/{user_id}")
    accounts.set_profile(tx, ana.id, {"notes": "x", "sex": "f"}, may_grant_admin=True)
    accounts.set_profile(tx, ben.id, {"notes": "x"}, may_grant_admin=True)
    supervision.add(tx, ana.id, ben.id)
    supervision.add(tx, ben.id, ana.id)
    connection.actor = Actor("system", "cli", "user.deactivate")
    accounts.set_profile(tx, ana.id, {"active": False}, may_grant_admin=True)
    connection.actor = Actor("system", "strongroom", "janitor")
    accounts.set_profile(tx, ana.id, {"active": True}, may_grant_admin=True)

    acts = list_after(tx, ana.id, 0, 5)
    told = [
        (act.actor_sub, act.entity, act.kind, set(json.loads(act.fields or "{}"))) for act in acts
    ]
    assert told == [
        (ben.id, "user", "update", {"notes", "sex"}),
        (ben.id, "supervision", "insert", {"subject_user_id", "supervisor_user_id"}),
        ("cli", "user", "update", {"active"}),
    ]
    assert list_after(tx, ana.id, acts[0].seq, 1) == acts[1:2]
    assert list_after(tx, ana.id, acts[-1].seq, 5) == []
    assert is_recorded(tx, acts[0].seq, acts[0].source)
    assert not is_recorded(tx, acts[1].seq, acts[0].source)
    assert not is_recorded(tx, 10_000, acts[0].source)
