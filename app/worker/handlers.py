"""What the program's own jobs do: one handler a kind, registered where it is defined.

    @handler("strongroom.example", Example)
    async def example(ctx: JobContext, payload: Example) -> Outcome: ...

A handler may run more than once: its claim may be lost, or its process die after it acted.
What it writes in the job's own store it returns as an effect, which commits with the mark
that the job is done, so that happens exactly once. What it does elsewhere must bear repeating.
"""

from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass
from typing import Any, Final, Generic, TypeVar

from pydantic import BaseModel

from app.bridge.strongroom import Strongroom
from app.db.context import Actor
from app.db.owner.store import OwnerStore, OwnerTransactor
from app.ids import UserId
from app.runtime.jobs import PREFIX, Json

PayloadT = TypeVar("PayloadT", bound=BaseModel)


@dataclass(frozen=True, slots=True)
class JobContext:
    """One attempt at a job."""

    room: Strongroom
    store: OwnerStore
    """Where the job is."""
    user_id: UserId | None
    """Whose store that is; None: the group's."""
    job_id: str
    """The same at every attempt."""
    attempt: int
    """From 1."""
    actor: Actor
    """For what the handler writes by itself."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a handler has to say."""

    result: Json = None
    """Kept with the job; outcomes only, never a secret."""
    effect: Callable[[OwnerTransactor], object] | None = None
    """Runs in the transaction that marks the job done; None: nothing is written with it."""


class PermanentJobError(Exception):
    """The job cannot be done, and another attempt would be in vain."""

    def __init__(self, code: str) -> None:
        super().__init__()
        self.code = code
        """Why; for people, and never of what the payload says."""


Run = Callable[[JobContext, PayloadT], Awaitable[Outcome]]


@dataclass(frozen=True, slots=True)
class Handler(Generic[PayloadT]):
    """What does the jobs of one kind."""

    kind: str
    model: type[PayloadT]
    run: Run[PayloadT]


class Handlers:
    """Handlers by kind."""

    def __init__(self, others: Iterable["Handlers"] = ()) -> None:
        self._by_kind: dict[str, Handler[Any]] = {}
        for other in others:
            self._by_kind |= other._by_kind  # noqa: SLF001 - of this very class

    def handler(self, kind: str, model: type[PayloadT]) -> Callable[[Run[PayloadT]], Run[PayloadT]]:
        """Register what it decorates.

        Args:
            kind: Begins with the program's prefix; one handler a kind.
            model: Of its payload; what does not fit it makes a job dead at once.

        Returns:
            The decorator, which leaves the function as it is.

        Raises:
            ValueError: The kind has one already, or is none of the program's.
        """
        if kind in self._by_kind or not kind.startswith(PREFIX):
            message = f"{kind} is no kind for a handler"
            raise ValueError(message)

        def register(run: Run[PayloadT]) -> Run[PayloadT]:
            self._by_kind[kind] = Handler(kind, model, run)
            return run

        return register

    @property
    def kinds(self) -> frozenset[str]:
        """Those that have a handler."""
        return frozenset(self._by_kind)

    def find(self, kind: str) -> Handler[Any] | None:
        """The handler of a kind; None when there is none."""
        return self._by_kind.get(kind)


OWN: Final = Handlers()
"""Those of the program itself."""
handler = OWN.handler
