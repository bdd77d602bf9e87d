"""What is owed to subscribers: frozen at commit, in order, tried, held, ended."""

import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from app.db.context import Actor
from app.db.triggers import DEPTH_MAX
from app.errors.callers import NotFoundError
from app.errors.conflicts import ConflictError, VersionConflictError
from app.errors.inputs import InvalidInputError
from app.owner import notes
from app.owner.notes import Condition
from app.runtime import breakers, deliveries, delivery_list, subscriptions
from app.runtime.deliveries import Claimed, Result
from app.runtime.delivery_list import LAST_ID
from app.runtime.subscriptions import NewWebhook
from tests.support.owed import (
    ALERT_MS,
    CONNECTION,
    FAILED,
    GONE,
    PAUSES_MS,
    POLICY,
    RETRIES_MS,
    TAKEN,
    UNFIT,
    URL,
    add_webhook,
    change,
    next_at,
    one,
    settle,
    statuses,
    take,
)
from tests.support.stores import ANA, BEN, OwnerFile, owner_file

DAY_MS = 86_400_000


@pytest.fixture
def store(tmp_path: Path) -> Iterator[OwnerFile]:
    """A member's store."""
    with owner_file(tmp_path) as file:
        yield file


# -- who is owed -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("types", "is_told"),
    [
        (["*"], True),
        (["memory_doc.*"], True),
        (["memory_doc.created"], True),
        (["report.*", "memory_doc.created"], True),
        (["memory_doc.updated"], False),
        (["memory_docs.*"], False),
        (["report.*"], False),
    ],
    ids=str,
)
def test_only_who_asks_for_a_type_is_owed(
    store: OwnerFile,
    types: list[str],
    is_told: bool,  # noqa: FBT001 - a parameter
) -> None:
    """Once each, whichever of their patterns fit."""
    add_webhook(store, types)
    before = len(statuses(store))
    change(store)
    assert len(statuses(store)) - before == is_told
    owed = store.rows("SELECT count(*) FROM sys_outbox WHERE type = 'memory_doc.created'")
    assert owed == [(int(is_told),)]


def test_nobody_is_owed_where_nobody_asks(store: OwnerFile) -> None:
    """Neither before the first webhook, nor while it is off, nor after it is gone."""
    change(store)
    webhook_id = add_webhook(store)
    with store.write() as tx:
        subscriptions.set_webhook(tx, webhook_id, ANA, {"enabled": False}, None)
    change(store)
    with store.write() as tx:
        subscriptions.remove_webhook(tx, webhook_id, ANA, None)
    change(store)
    assert statuses(store) == []
    assert store.rows("SELECT * FROM sys_outbox") == []


def test_subscribers_are_frozen_at_the_commit(store: OwnerFile) -> None:
    """Who comes later is not owed what was before; who changes keeps what they are owed."""
    first = add_webhook(store)
    change(store)
    add_webhook(store)
    with store.write() as tx:
        subscriptions.set_webhook(tx, first, ANA, {"event_types": ["report.*"]}, None)
    assert [each.target.id for each in take(store)] == [first]


def test_what_is_undone_is_owed_to_nobody(store: OwnerFile) -> None:
    """The delivery commits with its cause, or goes with it."""
    add_webhook(store)

    def fail() -> None:
        with store.write() as tx:
            notes.put_note(tx, "a.md", "x", ANA, Condition())
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        fail()
    assert statuses(store) == []


def test_a_chain_of_causes_ends(store: OwnerFile) -> None:
    """What is written one step past the cap is an event, and nobody is told of it."""
    add_webhook(store, ["subscription.created"])
    for depth in (0, DEPTH_MAX, DEPTH_MAX + 1):
        actor = Actor("system", "part", "subscriber", depth=depth)
        with store.write(actor) as tx:
            new = NewWebhook(URL, ["report.*"], include_content=False, description=None)
            subscriptions.add_webhook(tx, new, f"w{depth}", b"s", ANA, 50)
    depths = store.rows("SELECT depth FROM sys_outbox ORDER BY event_seq")
    assert depths[-2:] == [(0,), (DEPTH_MAX,)]
    [(count,)] = store.rows("SELECT count(*) FROM sys_events WHERE type = 'subscription.created'")
    assert count == 4


@pytest.mark.parametrize(
    "types",
    [
        [],
        [""],
        ["memory_doc"],
        ["memory_doc."],
        [".updated"],
        ["*.updated"],
        ["memory_doc.up*"],
        ["memory_doc.[a-z]pdated"],
        ["memory?doc.updated"],
        ["Memory.updated"],
        ["memory_doc.updated\n"],
        ["**"],
        ["a." + "b" * 99],
        ["*"] * 51,
    ],
    ids=lambda types: json.dumps(types)[:24],
)
def test_a_pattern_that_names_no_event_is_refused(store: OwnerFile, types: list[str]) -> None:
    """And nothing is made."""
    with pytest.raises(InvalidInputError):
        add_webhook(store, types)
    assert store.rows("SELECT * FROM sys_subscriptions") == []


# -- webhooks ----------------------------------------------------------------------------------


def test_a_webhook_is_its_makers_alone(store: OwnerFile) -> None:
    """Another's is not there: to see, change, or take away."""
    webhook_id = add_webhook(store)
    assert subscriptions.list_webhooks(store.reader, BEN, "", 9) == []
    for act in (
        lambda tx: subscriptions.get_webhook(tx, webhook_id, BEN),
        lambda tx: subscriptions.set_webhook(tx, webhook_id, BEN, {"enabled": False}, None),
        lambda tx: subscriptions.set_secret(tx, webhook_id, BEN, b"x", 0, None),
        lambda tx: subscriptions.remove_webhook(tx, webhook_id, BEN, None),
    ):
        with pytest.raises(NotFoundError), store.write() as tx:
            act(tx)
    [row] = subscriptions.list_webhooks(store.reader, ANA, "", 9)
    assert (row.id, row.enabled, row.version) == (webhook_id, 1, 1)
    assert URL not in repr(row)


def test_a_change_moves_the_version_and_a_stale_one_is_refused(store: OwnerFile) -> None:
    """What changes nothing leaves everything as it is."""
    webhook_id = add_webhook(store)
    with store.write() as tx:
        changed = subscriptions.set_webhook(
            tx, webhook_id, ANA, {"description": "mine", "include_content": True}, frozenset({1})
        )
        assert (changed.version, changed.description, changed.include_content) == (2, "mine", 1)
        same = subscriptions.set_webhook(tx, webhook_id, ANA, {"description": "mine"}, None)
        assert same.version == 2
    for act in (
        lambda tx: subscriptions.set_webhook(tx, webhook_id, ANA, {}, frozenset({1})),
        lambda tx: subscriptions.set_secret(tx, webhook_id, ANA, b"x", 0, frozenset({1})),
        lambda tx: subscriptions.remove_webhook(tx, webhook_id, ANA, frozenset({1})),
    ):
        with pytest.raises(VersionConflictError), store.write() as tx:
            act(tx)


def test_a_member_has_no_more_than_they_may(store: OwnerFile) -> None:
    """Each counts for its maker alone."""
    new = NewWebhook(URL, ["*"], include_content=False, description=None)
    with store.write() as tx:
        subscriptions.add_webhook(tx, new, "a", b"s", ANA, 1)
        subscriptions.add_webhook(tx, new, "b", b"s", BEN, 1)
    with pytest.raises(ConflictError), store.write() as tx:
        subscriptions.add_webhook(tx, new, "c", b"s", ANA, 1)


def test_what_a_webhook_was_is_on_record_without_its_secrets(store: OwnerFile) -> None:
    """Its address may be one too: of that only the size."""
    webhook_id = add_webhook(store, url="https://far.example/canary-address")
    with store.write() as tx:
        subscriptions.set_secret(tx, webhook_id, ANA, b"canary-new", 9, None)
    text = repr(store.rows("SELECT fields, entity FROM sys_audit WHERE entity = 'subscription'"))
    assert "canary" not in text
    assert text.count("redacted") > 1


def test_an_old_secret_is_kept_for_its_time(store: OwnerFile) -> None:
    """Beside the new one, and in no representation."""
    webhook_id = add_webhook(store)
    with store.write() as tx:
        subscriptions.set_secret(tx, webhook_id, ANA, b"new", store.clock() + 5, None)
    change(store)
    [claimed] = take(store)
    target = claimed.target
    assert (target.secret, target.old_secret) == (b"new", b"secret")
    assert target.old_secret_until == store.clock() + 5
    assert "new" not in repr(claimed)
    assert URL not in repr(claimed)


def test_parts_of_the_program_are_declared_once(store: OwnerFile) -> None:
    """Again is nothing; one that is declared no more is told no more."""
    wanted = {"one": ["memory_doc.*"], "two": ["*"]}
    with store.write() as tx:
        assert subscriptions.declare(tx, wanted)
        assert not subscriptions.declare(tx, wanted)
    assert subscriptions.is_declared(store.reader, wanted)
    wanted = {"one": ["report.*"]}
    assert not subscriptions.is_declared(store.reader, wanted)
    with store.write() as tx:
        assert subscriptions.declare(tx, wanted)
        assert not subscriptions.declare(tx, wanted)
    change(store)
    told = store.rows(
        "SELECT name FROM sys_deliveries JOIN sys_outbox USING (event_seq) "
        "JOIN sys_subscriptions ON sys_subscriptions.id = subscription_id "
        "WHERE type LIKE 'memory_doc.%'"
    )
    assert told == []
    with store.write() as tx:
        assert subscriptions.declare(tx, {"one": ["report.*"], "two": ["memory_doc.*"]})
    change(store)
    assert statuses(store)[-1] == "pending"


@pytest.mark.parametrize(
    ("url", "connection"),
    [
        ("https://far.example/a", "https://far.example:443"),
        ("http://far.example/", "http://far.example:80"),
        ("https://far.example:8443/x", "https://far.example:8443"),
        ("https://[2606:4700::1]/x", "https://[2606:4700::1]:443"),
    ],
)
def test_a_connection_is_scheme_host_and_port(store: OwnerFile, url: str, connection: str) -> None:
    """Never the path, which may be a secret."""
    add_webhook(store, url=url)
    change(store)
    assert [each.connection for each in take(store)] == [connection]


# -- tries -------------------------------------------------------------------------------------


def test_a_delivery_is_claimed_once_and_taken(store: OwnerFile) -> None:
    """What it tells is the event; after that there is nothing."""
    add_webhook(store)
    change(store)
    [claimed] = take(store)
    assert take(store) == []
    assert (claimed.attempts, claimed.owed.type) == (1, "memory_doc.created")
    assert one(store, "status") == "running"
    assert settle(store, claimed) == "succeeded"
    assert (one(store, "last_status"), one(store, "finished_at")) == (204, store.clock())
    assert next_at(store) is None


def test_a_failed_one_is_tried_again_by_the_table_then_dead(store: OwnerFile) -> None:
    """Eight tries: at once, and after each pause; 4xx is no failure of the connection."""
    add_webhook(store)
    change(store)
    for number, pause in enumerate(RETRIES_MS, 1):
        [claimed] = take(store)
        assert claimed.attempts == number
        assert settle(store, claimed, UNFIT) == "retry"
        assert next_at(store) == store.clock() + pause
        store.clock.advance(pause - 1)
        assert take(store) == []
        store.clock.advance(1)
    [claimed] = take(store)
    assert settle(store, claimed, UNFIT) == "dead"
    assert one(store, "last_failure") == "status_4xx"
    assert next_at(store) is None
    assert breakers.list_all(store.reader) == []


@pytest.mark.parametrize(
    ("asked_ms", "pause_ms"), [(1_000, 5_500), (60_000, 60_000), (10**12, RETRIES_MS[-1])]
)
def test_an_endpoint_may_ask_for_a_longer_pause(
    store: OwnerFile, asked_ms: int, pause_ms: int
) -> None:
    """Not for a shorter one, nor for one without end."""
    add_webhook(store)
    change(store)
    [claimed] = take(store)
    with store.write() as tx:
        result = replace(FAILED, retry_after_ms=asked_ms)
        assert deliveries.settle(tx, claimed, result, POLICY, 1.1) == ("retry", None)
    assert one(store, "next_attempt_at") == store.clock() + pause_ms


def test_deliveries_of_one_entity_go_in_order(store: OwnerFile) -> None:
    """One at a time, others meanwhile; a dead one does not stop those behind it."""
    add_webhook(store)
    for _ in range(3):
        change(store, "a.md")
    change(store, "b.md")
    first, other = take(store)
    assert (first.owed.event_seq, other.owed.entity_id != first.owed.entity_id) == (
        other.owed.event_seq - 3,
        True,
    )
    settle(store, other)
    settle(store, first, UNFIT)
    assert take(store) == []
    store.clock.advance(RETRIES_MS[0])
    for number in range(len(RETRIES_MS)):
        [again] = take(store)
        assert again.id == first.id
        settle(store, again, UNFIT)
        store.clock.advance(RETRIES_MS[min(number + 1, 6)])
    [second] = take(store)
    settle(store, second)
    [third] = take(store)
    settle(store, third)
    assert [each.owed.type for each in (second, third)] == ["memory_doc.updated"] * 2
    assert statuses(store) == ["dead", "succeeded", "succeeded", "succeeded"]


def test_each_subscriber_has_an_order_of_its_own(store: OwnerFile) -> None:
    """One that fails holds up no other."""
    slow, quick = add_webhook(store), add_webhook(store, url="https://quick.example/")
    for _ in range(3):
        change(store)
    for _ in range(3):
        for claimed in take(store):
            settle(store, claimed, UNFIT if claimed.target.id == slow else TAKEN)
    rows = store.rows("SELECT subscription_id, status FROM sys_deliveries ORDER BY event_seq")
    assert sorted(status for hook, status in rows if hook == quick) == ["succeeded"] * 3
    assert sorted(status for hook, status in rows if hook == slow) == ["pending"] * 2 + ["retry"]


def test_a_lost_lease_is_claimed_anew_and_its_old_holder_marks_nothing(store: OwnerFile) -> None:
    """The try counted; the id is the same."""
    add_webhook(store)
    change(store)
    [lost] = take(store)
    assert next_at(store) == store.clock() + POLICY.lease_ms
    store.clock.advance(POLICY.lease_ms)
    [claimed] = take(store)
    assert (claimed.id, claimed.attempts) == (lost.id, 2)
    assert settle(store, lost) == "lost"
    with store.write() as tx:
        assert deliveries.release(tx, [lost]) == 0
    assert one(store, "status") == "running"
    assert settle(store, claimed) == "succeeded"


def test_what_is_broken_off_from_our_side_does_not_count(store: OwnerFile) -> None:
    """It is due at once, as it was before."""
    add_webhook(store)
    change(store)
    with store.write() as tx:
        due = deliveries.look(tx, 9)
        assert deliveries.release(tx, deliveries.claim(tx, due, "w", POLICY)) == 1
    assert (one(store, "status"), one(store, "attempts")) == ("pending", 0)
    [claimed] = take(store)
    settle(store, claimed, UNFIT)
    store.clock.advance(RETRIES_MS[0])
    with store.write() as tx:
        due = deliveries.look(tx, 9)
        deliveries.release(tx, deliveries.claim(tx, due, "w", POLICY))
    assert (one(store, "status"), one(store, "attempts")) == ("retry", 1)


def test_an_endpoint_that_is_gone_is_told_no_more(store: OwnerFile) -> None:
    """Its webhook is off, for this reason, until a person has it go on; what it was owed ends."""
    webhook_id = add_webhook(store)
    change(store, "a.md")
    change(store, "b.md")
    [first] = take(store, most=1)
    assert settle(store, first, GONE) == "dead"
    assert statuses(store) == ["dead", "dead"]
    change(store)
    assert take(store) == []
    row = subscriptions.get_webhook(store.reader, webhook_id, ANA)
    assert (row.enabled, row.disabled_reason) == (0, "gone")
    with store.write() as tx:
        row = subscriptions.set_webhook(tx, webhook_id, ANA, {"description": "x"}, None)
        assert row.disabled_reason == "gone"
        row = subscriptions.set_webhook(tx, webhook_id, ANA, {"enabled": True}, None)
    assert (row.enabled, row.disabled_reason) == (1, None)
    change(store)
    assert len(take(store)) == 1


def test_what_a_webhook_is_owed_waits_while_it_is_off(store: OwnerFile) -> None:
    """And goes with it when it is taken away."""
    webhook_id = add_webhook(store)
    change(store)
    with store.write() as tx:
        subscriptions.set_webhook(tx, webhook_id, ANA, {"enabled": False}, None)
        assert deliveries.claim(tx, deliveries.look(tx, 9), "w", POLICY) == []
    assert next_at(store) is None
    with store.write() as tx:
        subscriptions.set_webhook(tx, webhook_id, ANA, {"enabled": True}, None)
    [claimed] = take(store)
    with store.write() as tx:
        subscriptions.remove_webhook(tx, webhook_id, ANA, None)
    assert statuses(store) == []
    assert settle(store, claimed) == "lost"


def test_one_that_goes_off_between_look_and_claim_is_not_tried(store: OwnerFile) -> None:
    """The claim asks again."""
    webhook_id = add_webhook(store)
    change(store)
    due = deliveries.look(store.reader, 9)
    with store.write() as tx:
        subscriptions.set_webhook(tx, webhook_id, ANA, {"enabled": False}, None)
        assert deliveries.claim(tx, due, "w", POLICY) == []


def test_a_busy_subscriber_is_passed_over(store: OwnerFile) -> None:
    """Its neighbour at the same host is not; and each has as many as are asked for."""
    busy, quick = add_webhook(store), add_webhook(store)
    for name in "abc":
        change(store, f"{name}.md")
    assert len(deliveries.look(store.reader, 2)) == 4
    due = deliveries.look(store.reader, 2, {busy})
    assert [each.subscription_id for each in due] == [quick] * 2


# -- breakers ----------------------------------------------------------------------------------


def _open_breaker(store: OwnerFile, more: int = 0) -> None:
    """Five failures in a row, of as many notes; and so many notes more that are owed."""
    for number in range(5 + more):
        change(store, f"{number}.md")
    claims = take(store, most=5)
    results = [settle(store, claimed, FAILED) for claimed in claims]
    assert results == ["retry"] * 4 + ["held"]
    assert breakers.is_open(breakers.find(store.reader, CONNECTION))


def test_five_failures_in_a_row_open_a_breaker(store: OwnerFile) -> None:
    """A success between them begins the row anew."""
    add_webhook(store)
    for number in range(9):
        change(store, f"{number}.md")
    claims = take(store)
    for claimed in claims[:4]:
        settle(store, claimed, FAILED)
    settle(store, claims[4], TAKEN)
    for claimed in claims[5:]:
        settle(store, claimed, FAILED)
    found = breakers.find(store.reader, CONNECTION)
    assert found is not None
    assert (found.state, found.failures) == ("closed", 4)


def test_held_deliveries_spend_no_tries(store: OwnerFile) -> None:
    """Those that come due meanwhile are held too, untried, and all go on when it closes."""
    add_webhook(store)
    _open_breaker(store, more=3)
    assert take(store) == []
    assert statuses(store).count("held") == 4
    rows = store.rows("SELECT attempts FROM sys_deliveries WHERE status = 'held' ORDER BY 1")
    assert rows == [(0,), (0,), (0,), (1,)]
    assert next_at(store) == store.clock() + min(RETRIES_MS[0], PAUSES_MS[0])
    store.clock.advance(PAUSES_MS[0])
    [probe] = take(store)
    assert probe.is_probe
    assert probe.attempts == 1
    assert take(store) == []
    assert settle(store, probe) == "succeeded"
    assert breakers.find(store.reader, CONNECTION) is None
    assert "held" not in statuses(store)
    assert len(take(store)) == 7


def test_each_pause_has_one_probe_and_they_grow(store: OwnerFile) -> None:
    """Thirty seconds, two minutes, ten, then half an hour, again and again."""
    add_webhook(store)
    _open_breaker(store, more=20)
    assert take(store) == []
    for pause in (*PAUSES_MS, PAUSES_MS[-1], PAUSES_MS[-1]):
        store.clock.advance(pause - 1)
        assert take(store) == []
        store.clock.advance(1)
        [probe] = take(store)
        assert probe.is_probe
        assert take(store) == []
        assert settle(store, probe, FAILED) == "held"


def test_a_probe_goes_by_its_own_times_as_well(store: OwnerFile) -> None:
    """One delivery alone is tried no more often than without a breaker."""
    add_webhook(store)
    change(store)
    tried = []
    began = store.clock()
    for _ in range(len(RETRIES_MS) + 1):
        [claimed] = take(store)
        tried.append(store.clock() - began)
        settle(store, claimed, FAILED)
        at = next_at(store)
        store.clock.now_ms = at if at is not None and at > store.clock() else store.clock()
        if statuses(store) == ["held"] and not deliveries.look(store.reader, 9):
            store.clock.now_ms = int(str(one(store, "next_attempt_at")))
    assert statuses(store) == ["dead"]
    assert tried == [sum(RETRIES_MS[:n]) for n in range(len(RETRIES_MS) + 1)]


def test_a_probe_whose_process_died_is_followed_by_another(store: OwnerFile) -> None:
    """When its lease has ended."""
    add_webhook(store)
    _open_breaker(store)
    store.clock.advance(PAUSES_MS[0])
    [lost] = take(store)
    store.clock.advance(POLICY.lease_ms)
    [again] = take(store)
    assert again.is_probe
    assert settle(store, lost) == "lost"
    assert settle(store, again) == "succeeded"


def test_a_probe_that_is_broken_off_may_be_followed_at_once(store: OwnerFile) -> None:
    """And so may one that was refused before anything was sent, or not permitted."""
    add_webhook(store)
    _open_breaker(store, more=2)
    take(store)
    store.clock.advance(PAUSES_MS[0])
    [probe] = take(store)
    with store.write() as tx:
        assert deliveries.release(tx, [probe]) == 1
    [probe] = take(store)
    assert settle(store, probe, Result("refused_address")) == "held"
    [probe] = take(store)
    with store.write() as tx:
        deliveries.drop(tx, probe)
    [probe] = take(store)
    assert settle(store, probe) == "succeeded"
    assert "cancelled" in statuses(store)


def test_one_that_answers_at_all_is_well(store: OwnerFile) -> None:
    """A refusal of the message closes the breaker of the connection."""
    add_webhook(store)
    _open_breaker(store)
    store.clock.advance(PAUSES_MS[0])
    [probe] = take(store)
    assert settle(store, probe, UNFIT) == "retry"
    assert breakers.list_all(store.reader) == []


def test_a_late_failure_of_the_same_row_does_not_move_the_pause(store: OwnerFile) -> None:
    """It was under way before the breaker opened."""
    add_webhook(store)
    for number in range(6):
        change(store, f"{number}.md")
    claims = take(store)
    for claimed in claims:
        settle(store, claimed, FAILED)
    found = breakers.find(store.reader, CONNECTION)
    assert found is not None
    assert (found.failures, found.pauses) == (6, 0)
    assert found.next_probe_at == store.clock() + PAUSES_MS[0]


def test_a_breaker_that_stays_open_is_told_once(store: OwnerFile) -> None:
    """After an hour."""
    add_webhook(store)
    _open_breaker(store)
    opened = store.clock()
    for at, count in ((opened + ALERT_MS - 1, 0), (opened + ALERT_MS, 1), (opened + DAY_MS, 0)):
        store.clock.now_ms = at
        with store.write() as tx:
            assert breakers.alert(tx, at - ALERT_MS) == count


def test_a_changed_address_is_held_by_no_old_breaker(store: OwnerFile) -> None:
    """It goes by its own."""
    webhook_id = add_webhook(store)
    _open_breaker(store)
    with store.write() as tx:
        url = "https://well.example/"
        subscriptions.set_webhook(tx, webhook_id, ANA, {"url": url}, None)
    store.clock.advance(RETRIES_MS[0])
    assert {each.connection for each in take(store)} == {"https://well.example:443"}


# -- by hand -----------------------------------------------------------------------------------


def test_an_operator_has_one_tried_again_or_never(store: OwnerFile) -> None:
    """From the start; not one that is under way or was taken."""
    add_webhook(store)
    change(store)
    [claimed] = take(store)
    for act in (delivery_list.retry, delivery_list.release_held):
        with pytest.raises(ConflictError), store.write() as tx:
            act(tx, claimed.id)
    settle(store, claimed, UNFIT)
    with store.write() as tx:
        delivery_list.retry(tx, claimed.id)
    assert (one(store, "status"), one(store, "attempts")) == ("pending", 0)
    [again] = take(store)
    with store.write() as tx:
        delivery_list.cancel(tx, claimed.id)
    assert settle(store, again) == "lost"
    assert statuses(store) == ["cancelled"]
    with pytest.raises(ConflictError), store.write() as tx:
        delivery_list.cancel(tx, claimed.id)
    with store.write() as tx:
        delivery_list.retry(tx, claimed.id)
    [again] = take(store)
    assert settle(store, again) == "succeeded"
    with pytest.raises(ConflictError), store.write() as tx:
        delivery_list.retry(tx, claimed.id)
    for act in (delivery_list.retry, delivery_list.cancel, delivery_list.release_held):
        with pytest.raises(NotFoundError), store.write() as tx:
            act(tx, "nobody")


def _one_revived(store: OwnerFile) -> tuple[Claimed, Claimed]:
    """Of three deliveries of one entity the first, cancelled and revived, and the second, taken."""
    add_webhook(store)
    for _ in range(3):
        change(store)
    [first] = take(store)
    with store.write() as tx:
        delivery_list.cancel(tx, first.id)
    [second] = take(store)
    with store.write() as tx:
        delivery_list.retry(tx, first.id)
    return first, second


def test_one_that_is_revived_takes_its_old_place(store: OwnerFile) -> None:
    """Before those of its entity that came after it, but for one that is under way."""
    first, second = _one_revived(store)
    assert take(store) == []
    settle(store, second)
    [again] = take(store)
    assert again.id == first.id
    settle(store, again)
    assert len(take(store)) == 1


def test_a_waiting_one_that_is_cancelled_frees_nobody(store: OwnerFile) -> None:
    """Where another of its entity may go already, though a revived one stands before that."""
    first, second = _one_revived(store)
    with store.write() as tx:
        deliveries.release(tx, [second])
    [(third,)] = store.rows("SELECT id FROM sys_deliveries ORDER BY event_seq DESC LIMIT 1")
    with store.write() as tx:
        delivery_list.cancel(tx, third)
    [again] = take(store)
    assert again.id == second.id
    settle(store, again)
    assert [each.id for each in take(store)] == [first.id]


def test_a_held_one_is_released_as_the_probe(store: OwnerFile) -> None:
    """At once, whatever its breaker's pause."""
    add_webhook(store)
    _open_breaker(store, more=1)
    take(store)
    [(held,)] = store.rows("SELECT id FROM sys_deliveries WHERE attempts = 0")
    with store.write() as tx:
        delivery_list.release_held(tx, held)
    [probe] = take(store)
    assert (probe.id, probe.is_probe) == (held, True)
    settle(store, probe)
    assert breakers.list_all(store.reader) == []


def test_a_breaker_is_closed_by_hand(store: OwnerFile) -> None:
    """What it held goes on."""
    add_webhook(store)
    _open_breaker(store, more=1)
    take(store)
    with store.write() as tx:
        assert breakers.reset(tx, CONNECTION).state == "open"
        assert breakers.list_all(tx) == []
        with pytest.raises(NotFoundError):
            breakers.reset(tx, CONNECTION)
        breakers.hurry(tx, CONNECTION)
        breakers.end_probe(tx, CONNECTION)
    assert len(take(store)) == 1


def test_deliveries_are_listed_newest_first(store: OwnerFile) -> None:
    """By page, by subscriber, by status; never what they tell."""
    first, second = add_webhook(store), add_webhook(store)
    for _ in range(3):
        store.clock.advance(1)
        change(store)
    rows = delivery_list.list_all(store.reader, LAST_ID, 9)
    assert [row.id for row in rows] == sorted((row.id for row in rows), reverse=True)
    assert len(rows) == 6
    assert delivery_list.list_all(store.reader, rows[3].id, 9) == rows[4:]
    assert len(delivery_list.list_of(store.reader, first, LAST_ID, 9)) == 3
    assert len(delivery_list.list_of(store.reader, second, LAST_ID, 2)) == 2
    assert delivery_list.list_all(store.reader, LAST_ID, 9, "dead") == []
    assert delivery_list.get(store.reader, rows[0].id) == rows[0]


# -- what stays, and how long --------------------------------------------------------------------


def test_a_delivery_is_handled_once_in_each_store(store: OwnerFile) -> None:
    """The mark goes with the write it is for."""
    with store.write() as tx:
        assert not deliveries.handled(tx, "d", "part")
        assert deliveries.handled(tx, "d", "part")

    def fail() -> None:
        with store.write() as tx:
            assert not deliveries.handled(tx, "e", "part")
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        fail()
    with store.write() as tx:
        assert not deliveries.handled(tx, "e", "part")
        assert deliveries.handled(tx, "d", "part")


def test_what_has_ended_is_removed_in_its_time(store: OwnerFile) -> None:
    """What is owed stays, and so do the dead for longer; the rest goes in bounded steps."""
    webhook_id = add_webhook(store)
    for name in "abcde":
        change(store, f"{name}.md")
    taken, other, dead = take(store, most=3)
    settle(store, taken)
    settle(store, other)
    settle(store, dead, GONE)
    with store.write() as tx:
        deliveries.handled(tx, "d", "part")
    now = store.clock()
    with store.write() as tx:
        assert deliveries.prune(tx, now, 100, now) == 0
        assert [deliveries.prune(tx, now + 1, 1, now) for _ in range(3)] == [1, 1, 0]
    assert statuses(store) == ["dead"] * 3
    with store.write() as tx:
        assert deliveries.prune(tx, now + 1, 100) == 4
    assert store.rows("SELECT * FROM sys_handled_deliveries") == []
    with store.write() as tx:
        subscriptions.set_webhook(tx, webhook_id, ANA, {"enabled": True}, None)
    change(store, "f.md")
    with store.write() as tx:
        assert deliveries.prune(tx, now + DAY_MS, 100) == 0
        subscriptions.remove_webhook(tx, webhook_id, ANA, None)
        assert deliveries.prune(tx, now + DAY_MS, 100) == 1
    assert store.rows("SELECT * FROM sys_outbox") == []
