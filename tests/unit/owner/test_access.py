"""The log of who opened a store."""

from app.ids import SessionId
from app.owner.access import list_access, record_access
from tests.support.stores import OwnerFile


def test_openings_are_listed_newest_first_in_pages(store: OwnerFile) -> None:
    """Each opening is there once, with its time, and pages neither repeat nor skip."""
    for number in range(5):
        store.clock.advance(1000)
        with store.write() as tx:
            record_access(tx, "session", SessionId(f"s{number}"), None, "192.0.2.0/24")
    first = list_access(store.reader, None, 3)
    rest = list_access(store.reader, first[-1].id, 3)
    assert [row.session_id for row in first + rest] == ["s4", "s3", "s2", "s1", "s0"]
    assert first[0].at == store.clock()


def test_an_opening_says_how_and_by_whom(store: OwnerFile) -> None:
    """A recovery has no session; a token's agent is named."""
    with store.write() as tx:
        record_access(tx, "recovery", None, None, "2001:db8::/64")
        record_access(tx, "token", SessionId("t"), "helper", "192.0.2.0/24")
    token, recovery = list_access(store.reader, None, 10)
    assert (token.way, token.session_id, token.agent_id) == ("token", "t", "helper")
    assert (recovery.way, recovery.session_id, recovery.network) == (
        "recovery",
        None,
        "2001:db8::/64",
    )
