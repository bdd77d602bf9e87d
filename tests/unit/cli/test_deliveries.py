"""`strongroom deliveries` and `strongroom breakers`."""

import asyncio
from collections.abc import Callable
from typing import TypeVar

import pytest

from app.bridge import start
from app.db.context import system_actor
from app.db.owner.store import OwnerTransactor
from app.owner import notes
from app.owner.notes import Condition
from app.runtime import deliveries, operator_actions, subscriptions
from app.runtime.subscriptions import NewWebhook
from tests.support.owed import CONNECTION, FAILED, POLICY, URL
from tests.support.stores import ANA
from tests.unit.cli.conftest import Terminal

T = TypeVar("T")
ACTOR = system_actor("test")


def write(terminal: Terminal, work: Callable[[OwnerTransactor], T]) -> T:
    """Write in the group's store, which nobody serves."""

    async def run() -> T:
        async with start.running(terminal.settings) as room:
            return await room.stores.group.write(work, ACTOR)

    return asyncio.run(run())


def owe(tx: OwnerTransactor) -> None:
    """A webhook that is owed one event."""
    new = NewWebhook(URL, ["memory_doc.*"], include_content=False, description="canary")
    subscriptions.add_webhook(tx, new, "w", b"canary", ANA, 9)
    notes.put_note(tx, "canary.md", "canary", "test", Condition())


def fail(tx: OwnerTransactor) -> None:
    """As many failures as open a breaker."""
    for number in range(5):
        notes.put_note(tx, f"{number}.md", "canary", "test", Condition())
    for claimed in deliveries.claim(tx, deliveries.look(tx, 5), "w", POLICY):
        deliveries.settle(tx, claimed, FAILED, POLICY, 1.0)


@pytest.fixture
def owing(terminal: Terminal) -> Terminal:
    """A terminal on a root whose group owes one delivery."""
    terminal.answer("user", "add", "ana", "--plain", "--password-stdin", typed="a fine password\n")
    write(terminal, owe)
    return terminal


def test_a_delivery_is_seen_cancelled_and_tried_again(owing: Terminal) -> None:
    """Without what it tells and where; each act is on record with the state before it."""
    [found] = owing.answer("deliveries", "list")["deliveries"]
    assert (found["status"], found["type"]) == ("pending", "memory_doc.created")
    text = (
        owing.run("deliveries", "list").output + owing.run("deliveries", "show", found["id"]).output
    )
    assert found["id"] in text
    assert "canary" not in text
    assert URL not in text
    assert owing.answer("deliveries", "show", found["id"])["delivery"] == found
    assert "Cancelled" in owing.run("deliveries", "cancel", found["id"]).output
    assert owing.answer("deliveries", "list", "--status", "pending")["deliveries"] == []
    again = owing.answer("deliveries", "retry", found["id"])["delivery"]
    assert again["status"] == "pending"
    acts = write(owing, lambda tx: operator_actions.list_of(tx, found["id"], 9))
    assert [(act.action, act.operator) for act in acts] == [
        ("delivery.retry", "box"),
        ("delivery.cancel", "box"),
    ]
    assert '"status": "pending"' in acts[1].item_state
    shown = owing.answer("deliveries", "show", found["id"])["acts"]
    assert [act["action"] for act in shown] == ["delivery.retry", "delivery.cancel"]
    assert "delivery.cancel by box" in owing.run("deliveries", "show", found["id"]).output


def test_what_cannot_be_done_is_told(owing: Terminal) -> None:
    """By exit code, and nothing is recorded."""
    [found] = owing.answer("deliveries", "list")["deliveries"]
    assert owing.run("deliveries", "release", found["id"]).exit_code == 3
    assert owing.run("deliveries", "retry", "nobody").exit_code == 3
    assert owing.run("deliveries", "list", "--status", "odd").exit_code == 2
    assert owing.run("deliveries", "list", "--user", "nobody").exit_code == 3
    assert owing.run("breakers", "reset", CONNECTION).exit_code == 3
    assert write(owing, lambda tx: operator_actions.list_of(tx, found["id"], 9)) == []


def test_a_members_deliveries_are_seen_where_their_store_is_open(owing: Terminal) -> None:
    """A plain one is opened for it."""
    assert owing.answer("deliveries", "list", "--user", "ana") == {"deliveries": []}


def test_a_breaker_is_seen_and_closed_by_hand(owing: Terminal) -> None:
    """What it held goes on."""
    write(owing, fail)
    [breaker] = owing.answer("breakers", "list")["breakers"]
    assert (breaker["connection"], breaker["state"]) == (CONNECTION, "open")
    assert CONNECTION in owing.run("breakers", "list").output
    [held] = owing.answer("deliveries", "list", "--status", "held")["deliveries"]
    assert held["connection"] == CONNECTION
    assert "Released" in owing.run("deliveries", "release", held["id"]).output
    answer = owing.answer("breakers", "reset", CONNECTION)
    assert answer["breaker"]["state"] == "open"
    assert owing.answer("breakers", "list") == {"breakers": []}
