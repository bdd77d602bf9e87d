"""One attempt at a job: the handler runs outside of any transaction, under a claim that is kept.

Its effect and the mark that it is done commit together. Whatever happens in between, the
claim ends, and what was written by the present claim alone counts.
"""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

from pydantic import ValidationError

from app import telemetry
from app.db.context import Actor
from app.db.owner.store import OwnerTransactor
from app.errors.callers import NotFoundError
from app.errors.conflicts import LeaseLostError
from app.errors.root import StrongroomError
from app.errors.stores import StoreError
from app.runtime import jobs
from app.runtime.jobs import Claim, Terms
from app.worker.handlers import Handler, Handlers, JobContext, Outcome, PermanentJobError

Ending = Literal["done", "failed", "dead", "lost", "released"]
"""Of an attempt: `failed` runs again, `lost` is another's now, `released` was given back."""
_PARTS = 3


@dataclass(frozen=True, slots=True)
class Rules:
    """How attempts are made in this process."""

    handlers: Handlers
    terms: Terms
    renew_s: float
    """Between two renewals of a claim."""
    random: Callable[[], float]
    """From 0 to 1, for the pause after a failure."""


class Attempt:
    """One claim of one job, in this process."""

    def __init__(self, rules: Rules, context: JobContext, claim: Claim) -> None:
        self._rules = rules
        self._context = context
        self._claim = claim

    async def run(self) -> Ending:
        """Do the job, and say how that ended; a cancellation gives the claim back.

        Returns:
            How it ended.
        """
        try:
            return await self._run()
        except asyncio.CancelledError:
            return await self.give_back()
        except (LeaseLostError, NotFoundError):
            return "lost"
        except StoreError as error:
            # The mark could not be written: the lease ends by itself.
            telemetry.job_stuck(type(error).__name__)
            return "lost"

    async def give_back(self) -> Ending:
        """Release the claim; the attempt is not charged.

        Returns:
            `released`, or `lost` when there was nothing to give back any more.
        """
        try:
            await self._write(lambda tx: jobs.release(tx, *self._held))
        except StrongroomError:
            return "lost"
        return "released"

    @property
    def _held(self) -> tuple[str, int]:
        return self._claim.id, self._claim.generation

    async def _write(self, work: Callable[[OwnerTransactor], Any]) -> Any:  # noqa: ANN401 - as work
        return await self._context.store.write(work, self._context.actor)

    async def _run(self) -> Ending:
        handler = self._rules.handlers.find(self._claim.kind)
        if handler is None:
            return await self._fail("unknown_kind", is_permanent=True)
        try:
            payload = handler.model.model_validate_json(self._claim.payload)
        except ValidationError:
            return await self._fail("payload_unfit", is_permanent=True)
        try:
            outcome = await self._kept(handler, payload)
            self._context.room.reach("job.ran")
            await self._write(lambda tx: self._mark(tx, outcome))
        except LeaseLostError:
            raise
        except Exception as error:  # noqa: BLE001 - the boundary of a handler
            is_permanent = isinstance(error, PermanentJobError)
            return await self._fail(_code_of(error), is_permanent=is_permanent)
        self._context.room.reach("job.marked")
        return "done"

    def _mark(self, tx: OwnerTransactor, outcome: Outcome) -> None:
        jobs.finish(tx, *self._held, outcome.result)
        if outcome.effect is not None:
            outcome.effect(tx)

    async def _fail(self, code: str, *, is_permanent: bool = False) -> Ending:
        rules = self._rules
        status = await self._write(
            lambda tx: jobs.fail(
                tx, *self._held, code, rules.terms, rules.random, is_permanent=is_permanent
            )
        )
        return "dead" if status == "dead" else "failed"

    async def _kept(self, handler: Handler[Any], payload: object) -> Outcome:
        """Run the handler and keep the claim meanwhile.

        Returns:
            What it has to say.

        Raises:
            LeaseLostError: The claim is another's; the handler was stopped.
            TimeoutError: The attempt took too long; so was it then.
        """

        async def run() -> Outcome:
            async with asyncio.timeout(self._claim.timeout_s):
                outcome: Outcome = await handler.run(self._context, payload)
            return outcome

        running = asyncio.create_task(run())
        try:
            while not (await asyncio.wait({running}, timeout=self._rules.renew_s))[0]:
                await self._renew()
            return running.result()
        finally:
            if running.cancel():
                await asyncio.wait({running})

    async def _renew(self) -> None:
        try:
            await self._write(lambda tx: jobs.renew(tx, *self._held, self._rules.terms))
        except StoreError as error:
            # Busy or full just now: there are two more tries before the lease is over.
            telemetry.job_stuck(type(error).__name__)


def _code_of(error: Exception) -> str:
    """Why an attempt failed, in a word; never the error's own, which may quote anything."""
    if isinstance(error, TimeoutError):
        return "timed_out"
    if isinstance(error, StrongroomError | PermanentJobError):
        return error.code
    telemetry.unexpected("job", error)
    return type(error).__name__


def rules_of(
    handlers: Handlers, terms: Terms, idle_lock_s: float, random: Callable[[], float]
) -> Rules:
    """The rules of a process.

    Args:
        handlers: Of every kind it knows.
        terms: Of claims.
        idle_lock_s: After so long without use a store is locked; a renewal is a use.
        random: From 0 to 1.

    Returns:
        Them.
    """
    renew_s = min(terms.lease_ms / 1000, idle_lock_s) / _PARTS
    return Rules(handlers, terms, renew_s, random)


def actor_of(claim: Claim, user_id: str | None) -> Actor:
    """The program, doing a job."""
    return Actor(
        kind="system",
        sub="strongroom",
        action=f"job {claim.kind}",
        acting_for=user_id,
        depth=claim.depth,
    )
