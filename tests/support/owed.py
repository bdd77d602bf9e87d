"""A store with subscribers, for tests of what they are owed; everything by hand, no loops."""

from collections.abc import Sequence
from typing import Final

from app.ids import new_uuid7
from app.owner import notes
from app.owner.notes import Condition
from app.runtime import deliveries, subscriptions
from app.runtime.breakers import Rule
from app.runtime.deliveries import Claimed, Policy, Result, Settled
from app.runtime.subscriptions import NewWebhook
from tests.support.stores import ANA, OwnerFile

RETRIES_MS: Final = (5_000, 30_000, 120_000, 600_000, 3_600_000, 21_600_000, 86_400_000)
PAUSES_MS: Final = (30_000, 120_000, 600_000, 1_800_000)
POLICY: Final = Policy(RETRIES_MS, 60_000, Rule(5, PAUSES_MS))
TAKEN: Final = Result(None, 204)
FAILED: Final = Result("status_5xx", 500, is_connections=True)
UNFIT: Final = Result("status_4xx", 404)
GONE: Final = Result("gone", 410)
URL: Final = "https://far.example/hook"
CONNECTION: Final = "https://far.example:443"
ALERT_MS: Final = 3_600_000


def add_webhook(
    store: OwnerFile, types: Sequence[str] = ("memory_doc.*",), url: str = URL, made_by: str = ANA
) -> str:
    """Make one; its id."""
    webhook_id = new_uuid7(store.clock())
    new = NewWebhook(url, types, include_content=False, description=None)
    with store.write() as tx:
        subscriptions.add_webhook(tx, new, webhook_id, b"secret", made_by, 50)
    return webhook_id


def change(store: OwnerFile, path: str = "a.md") -> None:
    """Write a note, which is an event."""
    with store.write() as tx:
        row = notes.find_note(tx, path)
        text = "x" if row is None else row.content + "x"
        notes.put_note(tx, path, text, ANA, Condition())


def take(store: OwnerFile, most: int = 100) -> list[Claimed]:
    """Claim what is due."""
    due = deliveries.look(store.reader, most)
    with store.write() as tx:
        return deliveries.claim(tx, due, "w", POLICY)


def settle(store: OwnerFile, claimed: Claimed, result: Result = TAKEN) -> Settled:
    """Say how a try went, with no jitter; what became of it."""
    with store.write() as tx:
        return deliveries.settle(tx, claimed, result, POLICY, 1.0)[0]


def next_at(store: OwnerFile) -> int | None:
    """When there is something to do."""
    return deliveries.next_due_at(store.reader, ALERT_MS)


def statuses(store: OwnerFile) -> list[str]:
    """Of every delivery, in the order of their events."""
    rows = store.rows("SELECT status FROM sys_deliveries ORDER BY event_seq, subscription_id")
    return [row[0] for row in rows]


def one(store: OwnerFile, column: str) -> object:
    """A column of the only delivery."""
    [[value]] = store.rows(f"SELECT {column} FROM sys_deliveries")  # noqa: S608 - names of the tests
    return value
