"""Any history of deliveries and their breaker, against a small model of what is promised.

One webhook, a few entities, two runners whose claims may be lost, a clock that moves, an
endpoint that is well or not, and an operator. Held at every step: nothing owed is lost or told
out of its order, nobody runs what another's lease still holds, a breaker lets one probe through
and no more, and only tries are counted.
"""

import tempfile
from contextlib import ExitStack
from pathlib import Path
from typing import Final

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule
from typing_extensions import override

from app.errors.conflicts import ConflictError
from app.runtime import breakers, deliveries, delivery_list
from app.runtime.deliveries import Claimed, Result
from tests.support.matrix import chosen
from tests.support.owed import (
    CONNECTION,
    FAILED,
    PAUSES_MS,
    POLICY,
    RETRIES_MS,
    TAKEN,
    UNFIT,
    add_webhook,
    change,
    settle,
    take,
)
from tests.support.stores import OwnerFile, owner_file

EXAMPLES: Final = chosen([6], [300])[0]
STEPS: Final = chosen([25], [60])[0]
OPEN: Final = ("pending", "running", "retry", "held")
RESULTS: Final = {"taken": TAKEN, "failed": FAILED, "unfit": UNFIT}


class DeliveryModel(RuleBasedStateMachine):
    """The store beside the model."""

    def __init__(self) -> None:
        super().__init__()
        self.stack = ExitStack()
        folder = self.stack.enter_context(tempfile.TemporaryDirectory())
        self.store: OwnerFile = self.stack.enter_context(owner_file(Path(folder)))
        add_webhook(self.store)
        self.claims: list[Claimed] = []
        self.tries: dict[str, int] = {}
        """Those that count, of each delivery since it was last begun."""
        self.failures = 0
        """Of the connection, in a row."""
        self.opened_at: int | None = None
        self.revived = False

    @override
    def teardown(self) -> None:
        """Nothing that was owed is lost: in the end a well endpoint is told all that is open."""
        for _ in range(200):
            for claimed in self.claims:
                settle(self.store, claimed)
            if not self._rows(OPEN):
                break
            self.store.clock.advance(max(RETRIES_MS))
            self.claims = take(self.store)
        left = self._rows(OPEN)
        self.stack.close()
        assert left == []

    def _rows(self, statuses: tuple[str, ...]) -> list[tuple[str, str, int]]:
        rows = self.store.rows("SELECT id, entity, event_seq, status FROM sys_deliveries")
        return [(row[0], row[1], row[2]) for row in rows if row[3] in statuses]

    @rule(name=st.sampled_from("abc"))
    def owe(self, name: str) -> None:
        """An event of one of three entities."""
        change(self.store, f"{name}.md")

    @rule(ms=st.sampled_from((1, 5_000, POLICY.lease_ms, *PAUSES_MS, RETRIES_MS[-1] * 2)))
    def wait(self, ms: int) -> None:
        """Time passes."""
        self.store.clock.advance(ms)

    @rule(most=st.integers(1, 4))
    def claim(self, most: int) -> None:
        """A runner takes what it may."""
        now = self.store.clock()
        held_by = {
            row[0]
            for row in self.store.rows("SELECT id, lease_until FROM sys_deliveries")
            if row[1] is not None and row[1] > now
        }
        before = breakers.find(self.store.reader, CONNECTION)
        taken = take(self.store, most)
        assert not held_by & {each.id for each in taken}
        if breakers.is_open(before):
            assert before is not None
            assert len(taken) <= breakers.may_probe(before, now)
            assert all(each.is_probe for each in taken)
        for each in taken:
            self.tries[each.id] = self.tries.get(each.id, 0) + 1
            assert each.attempts == self.tries[each.id]
        self.claims += taken

    @precondition(lambda self: self.claims)
    @rule(data=st.data(), how=st.sampled_from(sorted(RESULTS)))
    def end(self, data: st.DataObject, how: str) -> None:
        """A runner says how its try went; it may have lost its claim meanwhile."""
        claimed = self.claims.pop(data.draw(st.integers(0, len(self.claims) - 1)))
        result: Result = RESULTS[how]
        settled = settle(self.store, claimed, result)
        [(status, generation)] = self.store.rows(
            f"SELECT status, generation FROM sys_deliveries WHERE id = '{claimed.id}'"  # noqa: S608 - an id
        )
        if settled == "lost":
            assert generation != claimed.generation or status != "running"
            return
        assert status == settled
        is_last = claimed.attempts > len(RETRIES_MS)
        if result.failure is None:
            assert settled == "succeeded"
        else:
            assert (settled == "dead") == is_last
        self.failures = self.failures + 1 if result.is_connections else 0
        found = breakers.find(self.store.reader, CONNECTION)
        assert (found.failures if found else 0) == self.failures
        assert breakers.is_open(found) == (self.failures >= POLICY.breaker.failures)

    @precondition(lambda self: self.claims)
    @rule()
    def break_off(self) -> None:
        """A lock or a stop gives everything back."""
        with self.store.write() as tx:
            for each in self.claims:
                if deliveries.release(tx, [each]):
                    self.tries[each.id] -= 1
        self.claims = []

    @rule(data=st.data(), act=st.sampled_from(("retry", "cancel", "release_held")))
    def operate(self, data: st.DataObject, act: str) -> None:
        """An operator does one thing to one delivery."""
        rows = self._rows((*OPEN, "dead", "cancelled", "succeeded"))
        if not rows:
            return
        rows.sort(key=lambda row: row[2])  # ids of one moment have no order
        delivery_id = rows[data.draw(st.integers(0, len(rows) - 1))][0]
        try:
            with self.store.write() as tx:
                getattr(delivery_list, act)(tx, delivery_id)
        except ConflictError:
            return
        if act == "retry":
            self.tries[delivery_id] = 0
            self.revived = True

    @invariant()
    def one_of_an_entity_may_go(self) -> None:
        """The first of its line, unless one that was revived stands before one under way."""
        rows = self.store.rows(
            "SELECT entity, event_seq, is_waiting, status FROM sys_deliveries "
            "WHERE finished_at IS NULL ORDER BY entity, event_seq"
        )
        free: dict[str, list[int]] = {}
        every: dict[str, list[int]] = {}
        for entity, seq, is_waiting, _ in rows:
            every.setdefault(entity, []).append(seq)
            if not is_waiting:
                free.setdefault(entity, []).append(seq)
        assert free.keys() == every.keys()
        for entity, seqs in free.items():
            assert len(seqs) == 1
            assert self.revived or seqs[0] == every[entity][0]

    @invariant()
    def statuses_and_columns_agree(self) -> None:
        """What is held says by whom, what runs has a lease, what has ended has neither."""
        for status, held, connection, lease, finished in self.store.rows(
            "SELECT status, held_since, connection, lease_until, finished_at FROM sys_deliveries"
        ):
            assert (status == "held") == (held is not None) == (connection is not None)
            assert (status == "running") == (lease is not None)
            assert (status in OPEN) == (finished is None)


DeliveryModel.TestCase.settings = settings(
    max_examples=EXAMPLES, stateful_step_count=STEPS, deadline=None
)
TestDeliveries = DeliveryModel.TestCase
