"""What becomes of operations that a crash cut: each has one way to finish or undo it.

An operation is a module of its own, with its steps and its `Operation`; the janitor has
them all in one table.
"""

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from app.bridge.stores import Stores
from app.db.context import Actor, system_actor
from app.db.registry.rows import AccountRow
from app.ids import UserId
from app.runtime import steps
from app.runtime.steps import Outcome, Run
from app.settings import Settings

JANITOR: Final[Actor] = system_actor("janitor")


@dataclass(frozen=True, slots=True)
class Desk:
    """What one half-done operation is settled with."""

    settings: Settings
    stores: Stores
    run: Run
    """The janitor's own: whoever ran it before can write nothing any more."""
    subject: UserId
    """Whom it is about."""
    account: AccountRow | None
    """Their row; None when there is none, not yet or not any more."""

    @property
    def path(self) -> Path:
        """Of the member's store."""
        return self.settings.user_file(self.subject)

    @property
    def folder(self) -> Path:
        """Of the files beside it."""
        return self.settings.files_folder(self.subject)


def _ask_nothing(_subject: UserId, _account: AccountRow | None) -> Mapping[str, str]:
    return {}


@dataclass(frozen=True, slots=True)
class Operation:
    """One kind of operation that spans files."""

    action: str
    shape: tuple[str, ...]
    """The names of its steps, in order."""
    state: str | None
    """The state of the store while it is half-done; None when it makes the member. In any
    other it has done nothing that stays, or all of it."""
    settle: Callable[[Desk], Awaitable[Outcome]]
    """Brings it to one of its two ends, and records which in the write that decides it."""
    asked: Callable[[UserId, AccountRow | None], Mapping[str, str]] = _ask_nothing
    """What each step was asked, as far as it can be told now."""

    def is_half_done(self, account: AccountRow | None) -> bool:
        """Whether there is something to finish or undo."""
        return (None if account is None else account.store_state) == self.state


async def close(desk: Desk, outcome: Outcome) -> None:
    """Record that there was nothing to do."""
    await desk.stores.registry.write(lambda tx: steps.finish(tx, desk.run, outcome), JANITOR)
