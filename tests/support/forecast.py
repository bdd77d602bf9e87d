"""What may become of a job, a delivery and a tick: the small model that the whole is held against.

Each function tells every state that something may have once nothing moves any more. Without a
death there is one, but where a lease is over and its holder lives: then either is first. With a
death in between, whatever stands on the way may be the last that reached the disk.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final, Literal, NamedTuple

LEASE_MS: Final = 300_000
ATTEMPTS_MAX: Final = 3
BACKOFF_MAX_MS: Final = 8_000
TELL_LEASE_MS: Final = 600_000
PAUSES_MS: Final = (5_000, 30_000, 120_000)
"""Between tries of a delivery; after the last of them it is dead."""
HANDOVER_MS: Final = 2_000
LATE_MS: Final = 60_000

How = Literal["well", "broken", "permanent", "wait"]
Mode = Literal["ok", "fail", "hang"]
CatchUp = Literal["skip", "once", "all"]
Key = tuple[str, int, int, int]
"""What of a state counts."""


class State(NamedTuple):
    """A job's or a delivery's."""

    status: str
    attempts: int
    claims: int
    """Of a job its generation; 0 of a delivery, which changes hands when it is held as well."""
    at: int
    """Not before; Unix milliseconds."""
    lease_until: int = 0
    """Unix milliseconds; 0 while nobody has it."""
    is_fresh: bool = False
    """Whether it was claimed at this very time, by whoever works."""

    @property
    def key(self) -> Key:
        """As far as it counts."""
        time = self.lease_until if self.status == "running" else self.at
        return self.status, self.attempts, self.claims, 0 if self.is_over else time

    @property
    def is_over(self) -> bool:
        """Whether nothing more becomes of it."""
        return self.status in {"done", "dead", "cancelled", "succeeded"}

    def given_back(self, after_a_try: str) -> "State":
        """As a lock or a stop leaves it: this try does not count."""
        attempts = self.attempts - 1
        status = after_a_try if attempts else "pending"
        return self._replace(status=status, attempts=attempts, lease_until=0)


def _walk(start: State, step: Callable[[State], Iterator[State]], *, is_cut: bool) -> set[Key]:
    seen: set[State] = set()
    ends: set[State] = set()
    todo = [start]
    while todo:
        state = todo.pop()
        if state in seen:
            continue
        seen.add(state)
        following = list(step(state))
        todo += following
        if not following:
            ends.add(state)
    return {state.key for state in (seen if is_cut else ends)}


@dataclass(frozen=True, slots=True)
class Scene:
    """What holds while everything comes to rest."""

    now: int
    is_worked: bool
    """Whether some process has the store."""
    is_held: bool
    """Whether the process that claimed it last still lives, and has the store."""
    is_cut: bool
    """Whether a process died meanwhile."""


@dataclass(frozen=True, slots=True)
class JobPath:
    """Where a job may go."""

    how: How
    scene: Scene
    gate_is_open: bool

    def ends(self, start: State) -> set[Key]:
        """What may become of it."""
        return _walk(start, self._step, is_cut=self.scene.is_cut)

    def _step(self, state: State) -> Iterator[State]:
        if not self.scene.is_worked:
            return
        if state.status == "pending" and state.at <= self.scene.now:
            until = self.scene.now + LEASE_MS
            yield State(
                "running", state.attempts + 1, state.claims + 1, state.at, until, is_fresh=True
            )
        elif state.status == "running" and state.is_fresh:
            if self.how != "wait" or self.gate_is_open:
                yield self._done_with(state)
        elif state.status == "running":
            yield from self._running(state)

    def _running(self, state: State) -> Iterator[State]:
        """Claimed before: kept by whoever has it, or ended with its lease."""
        if state.lease_until <= self.scene.now:
            status = "dead" if state.attempts >= ATTEMPTS_MAX else "pending"
            yield State(status, state.attempts, state.claims, state.at)
        if self.scene.is_held and self.gate_is_open:
            yield self._done_with(state)
        elif self.scene.is_held:
            yield state._replace(lease_until=self.scene.now + LEASE_MS, is_fresh=True)

    def _done_with(self, state: State) -> State:
        attempts = state.attempts
        if self.how in {"well", "wait"}:
            return State("done", attempts, state.claims, state.at)
        is_dead = self.how == "permanent" or attempts >= ATTEMPTS_MAX
        pause = min(2**attempts * 1000, BACKOFF_MAX_MS)
        return State(
            "dead" if is_dead else "pending", attempts, state.claims, self.scene.now + pause
        )


@dataclass(frozen=True, slots=True)
class DeliveryPath:
    """Where a delivery may go."""

    mode: Mode
    scene: Scene
    is_first: bool
    """Whether everything before it in its line is over."""
    may_be_held: bool
    """Whether a breaker is in play: what it holds, and when, is its own to say, so whatever
    stands on the way may be the end."""

    def ends(self, start: State) -> set[Key]:
        """What may become of it."""
        return _walk(start, self._step, is_cut=self.scene.is_cut or self.may_be_held)

    def _step(self, state: State) -> Iterator[State]:
        if not self.scene.is_worked or not self.is_first:
            return
        if state.status == "running":
            yield from self._running(state)
        elif state.status in {"pending", "retry"}:
            yield from self._waiting(state)
        elif state.status == "held":
            yield state._replace(status="retry" if state.attempts else "pending")
            yield self._claimed(state._replace(at=min(state.at, self.scene.now)))

    def _running(self, state: State) -> Iterator[State]:
        if not state.is_fresh and state.lease_until <= self.scene.now:
            yield self._claimed(state)
            if self.may_be_held:
                yield state._replace(status="held")
        if (state.is_fresh or self.scene.is_held) and self.mode != "hang":
            yield self._told(state)

    def _waiting(self, state: State) -> Iterator[State]:
        if state.at <= self.scene.now:
            yield self._claimed(state)
        if self.may_be_held:
            yield state._replace(status="held")

    def _claimed(self, state: State) -> State:
        until = self.scene.now + TELL_LEASE_MS
        return State("running", state.attempts + 1, 0, state.at, until, is_fresh=True)

    def _told(self, state: State) -> State:
        if self.mode == "ok":
            return State("succeeded", state.attempts, 0, state.at)
        if state.attempts > len(PAUSES_MS):
            return State("dead", state.attempts, 0, state.at)
        return State("retry", state.attempts, 0, self.scene.now + PAUSES_MS[state.attempts - 1])


class Watcher(NamedTuple):
    """A process that looks for ticks in one store."""

    since: int
    """From when on it looks."""
    began_at: int | None
    """What was missed from then on was missed for a lock; None for a store without one."""


class Tick(NamedTuple):
    """What became of one."""

    due_at: int
    reason: str | None
    """None for a run."""


def ticks(
    times: Sequence[int], catch_up: CatchUp, watcher: Watcher, now: int, *, is_busy: bool
) -> list[Tick]:
    """What becomes of due times, none of them settled before."""
    late_before = max(min(watcher.since, now - HANDOVER_MS), now - LATE_MS)
    late = [at for at in times if at < late_before]
    fresh = [at for at in times if at >= late_before]
    if catch_up == "all" and late:
        return [Tick(at, None) for at in times]
    if catch_up == "once" and late and not fresh:
        fresh = [late.pop()]
    found = [Tick(at, _missed(at, watcher)) for at in late]
    for at in fresh:
        found.append(Tick(at, "overlap" if is_busy else None))
        is_busy = True
    return found


def _missed(at: int, watcher: Watcher) -> str:
    is_locked = watcher.began_at is not None and at >= watcher.began_at
    return "locked" if is_locked else "down"
