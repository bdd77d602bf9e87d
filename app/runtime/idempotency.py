"""Requests that may come twice and act once: the answer is kept in the effect's transaction."""

import hashlib
import hmac
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any, Final, Literal, NamedTuple, TypeVar

from app.clock import Millis
from app.db.runtime import statements as sql
from app.db.runtime.rows import IdempotencyRow
from app.db.runtime.store import RuntimeReader, RuntimeTransactor
from app.errors.conflicts import IdempotencyAnswerNotKeptError, IdempotencyInProgressError
from app.errors.inputs import IdempotencyKeyReusedError

ResultT = TypeVar("ResultT")
Outcome = Literal["done", "undone"]
_BODY_KEY: Final = "request_body"
_SUCCESS: Final = range(200, 300)


class Answer(NamedTuple):
    """What a request is answered."""

    status: int
    """Of HTTP."""
    headers: Mapping[str, str]
    """Those that are part of the answer, by lower-case name."""
    body: bytes


class Replayed(Exception):  # noqa: N818 - it is an answer, not a fault
    """This very request was done before: nothing is done now, and this was the answer."""

    def __init__(self, answer: Answer) -> None:
        super().__init__()
        self.answer = answer


@dataclass(frozen=True, slots=True, repr=False)
class Once:
    """One request that may come twice: handed to the one write that decides it."""

    caller: str
    """The user, and the agent after `/`."""
    key: str
    """As the caller chose it."""
    route: str
    """Method and template."""
    digest: bytes
    """SHA-256 of all that the request asks."""
    render: Callable[[Any], Answer]
    """Makes the answer of what the write returns, and of nothing else."""
    keep_ms: int
    """For how long the answer is kept."""
    body_bytes_max: int
    """Bytes of an answer's body that are kept; of a larger one only that it was given."""
    reach: Callable[[str], None]
    """Told each named point."""
    judge: Callable[[Any], object] | None = None
    """Told the reader before a kept answer is given again; refuses by raising."""
    operation: str | None = None
    """The operation that this run began with `begin`; None while it did not."""

    def judged(self, judge: Callable[[Any], object]) -> "Once":
        """The same, with what a caller must still be allowed, and must still find."""
        return replace(self, judge=judge)

    def of(self, operation: str) -> "Once":
        """The same, as the part of an operation of several steps: `begin`, then the last write."""
        return replace(self, operation=operation)

    def __call__(self, tx: RuntimeTransactor, work: Callable[[], ResultT]) -> ResultT:
        """Do the work, and keep its answer with it.

        Args:
            tx: The transaction of the work.
            work: What the request asks.

        Returns:
            What the work returned.

        Raises:
            Replayed: It was done before.
            IdempotencyKeyReusedError: The key was used for another request.
            IdempotencyInProgressError: It is being done.
            IdempotencyAnswerNotKeptError: It was done, and what was answered is not kept.
        """
        self._require_new(tx, may_be_open=self.operation is not None)
        result = work()
        answer = self.render(result)
        if answer.status in _SUCCESS:
            self._keep(tx, "done", answer)
        elif self.operation is not None:
            settle(tx, self.operation, "undone")
        self.reach("once.acted")
        return result

    def begin(
        self, tx: RuntimeTransactor, promise: object = None, *, is_again: bool = False
    ) -> None:
        """Have the request known before an operation of several steps acts.

        Args:
            tx: The transaction that begins the operation.
            promise: What the last write will return, where that is known by now: then what
                finishes the operation after a crash gives the answer too.
            is_again: Whether this run began it once already.

        Raises:
            Replayed: It was done before.
            IdempotencyKeyReusedError: The key was used for another request.
            IdempotencyInProgressError: It is being done.
            IdempotencyAnswerNotKeptError: It was done, and what was answered is not kept.
        """
        self._require_new(tx, may_be_open=is_again)
        self._keep(tx, "in_progress", None if promise is None else self.render(promise))

    def require_new(self, reader: RuntimeReader) -> None:
        """Find out before the write whether the request was done, where what follows cannot be.

        Raises:
            Replayed: It was.
            IdempotencyKeyReusedError: The key was used for another request.
            IdempotencyInProgressError: It is being done.
            IdempotencyAnswerNotKeptError: It was done, and what was answered is not kept.
        """
        self._require_new(reader, may_be_open=False)

    def require_same(self, reader: RuntimeReader) -> None:
        """Refuse a key that this store knows for another request.

        Raises:
            IdempotencyKeyReusedError: It does.
        """
        self._find(reader)

    def _require_new(self, reader: RuntimeReader, *, may_be_open: bool) -> None:
        row = self._find(reader)
        if row is None:
            return
        if row.state == "done":
            if self.judge is not None:
                self.judge(reader)
            raise Replayed(_answer_of(row))
        if not may_be_open or row.operation != self.operation:
            raise IdempotencyInProgressError

    def _find(self, reader: RuntimeReader) -> IdempotencyRow | None:
        row = reader.one(
            sql.FIND_IDEMPOTENCY_KEY, caller=self.caller, key=self.key, now=reader.now_ms
        )
        if row is not None and not (
            row.route == self.route and hmac.compare_digest(row.body_mac, self._mac(reader))
        ):
            raise IdempotencyKeyReusedError
        return row

    def _mac(self, reader: RuntimeReader) -> bytes:
        key = reader.one(sql.FIND_STORE_KEY, name=_BODY_KEY)
        if key is None:
            message = "every store has its keys"
            raise RuntimeError(message)
        return hmac.digest(key.value, self.digest, hashlib.sha256)

    def _keep(
        self, tx: RuntimeTransactor, state: Literal["in_progress", "done"], answer: Answer | None
    ) -> None:
        is_small = answer is not None and len(answer.body) <= self.body_bytes_max
        tx.run(
            sql.KEEP_IDEMPOTENCY_KEY,
            caller=self.caller,
            key=self.key,
            route=self.route,
            body_mac=self._mac(tx),
            state=state,
            operation=self.operation,
            status=None if answer is None else answer.status,
            headers=None if answer is None else json.dumps(dict(answer.headers)),
            body=answer.body if answer is not None and is_small else None,
            now=tx.now_ms,
            expires_at=tx.now_ms + self.keep_ms,
        )


def _answer_of(row: IdempotencyRow) -> Answer:
    if row.status is None or row.body is None:
        raise IdempotencyAnswerNotKeptError
    return Answer(row.status, json.loads(row.headers or "{}"), row.body)


def settle(tx: RuntimeTransactor, operation: str, outcome: Outcome) -> None:
    """Free the keys that an operation of several steps still has in progress.

    Args:
        tx: The transaction that ends it, in its own run or after a crash.
        operation: As `Once.of` was told.
        outcome: Done, what it promised to answer is its answer; else it may be asked again.
    """
    if outcome == "done":
        tx.run(sql.SETTLE_IDEMPOTENCY_KEYS, operation=operation)
    tx.run(sql.REMOVE_OPEN_IDEMPOTENCY_KEYS, operation=operation)


def prune(tx: RuntimeTransactor, now_ms: Millis, limit: int) -> int:
    """Remove what expired, oldest first; how many there were."""
    return len(tx.run(sql.PRUNE_IDEMPOTENCY_KEYS, now=now_ms, limit=limit))


def forget_user(tx: RuntimeTransactor, user_id: str) -> None:
    """A member is erased: their keys go, and of others' answers those that name them."""
    tx.run(sql.FORGET_IDEMPOTENCY_KEYS_OF, user_id=user_id)
    tx.run(sql.FORGET_ANSWERS_ABOUT, user_id=user_id)
