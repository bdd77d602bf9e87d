"""Tells subscribers of events, in every store that this process can work in.

A store is glanced at each second, and at once where its bell rang; what is due is claimed
row by row and sent at the same time. Stores take turns, and in each its subscribers do; how
much one may have under way is in `slots.py`. Between claim and mark nothing is held but the
row's lease. What is broken off from our side, by a lock or a stop, is given back and does
not count as a try.
"""

import asyncio
import contextlib
import secrets
import socket
import time
from collections import deque
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from app import telemetry
from app.bridge import flags
from app.bridge.notifications import deliveries as words
from app.bridge.notifications import subscribers as internal
from app.bridge.notifications.subscribers import SUBSCRIBERS, Subscribers
from app.bridge.strongroom import Strongroom
from app.db.bell import heard
from app.db.driver_errors import StoreClosedError
from app.db.runtime import statements as sql
from app.db.runtime.store import Later, RuntimeTransactor
from app.errors.root import StrongroomError
from app.ids import UserId
from app.runtime import breakers, deliveries
from app.runtime.deliveries import Claimed, Due
from app.runtime.subscriptions import INTERNAL
from app.worker.slots import Share, Slot, Slots
from app.worker.telling import ACTOR, Store, Teller

if TYPE_CHECKING:
    from app.worker.http_sender import Sender

_RANDOM: Final = secrets.SystemRandom().uniform
_GLANCES: Final = 200
"""Looks in a row before the loop may do something else."""
_STOP_S: Final = 4.0
"""Seconds that a stop leaves to marks under way."""


@dataclass(slots=True, eq=False)
class _Desk:
    """One store, and what is being told from it."""

    store: Store
    is_group: bool
    sending: dict[asyncio.Task[None], Claimed] = field(default_factory=dict)
    marking: set[asyncio.Task[None]] = field(default_factory=set)
    """Those of them that are past their try: they are waited for, not cut."""
    claiming: asyncio.Task[None] | None = None
    looked_at: float = 0.0
    """Monotonic seconds of the last look."""
    is_leaving: bool = False
    is_in_line: bool = False
    turn: int = 0
    """When something was last told from here, as a count of tries."""
    turns: dict[str, int] = field(default_factory=dict)
    """The same of each subscriber."""
    share: Share = field(default_factory=Share)
    bell: contextlib.ExitStack = field(default_factory=contextlib.ExitStack)


class Deliveries:
    """Everything that is told from one process; hears of stores as they come and go."""

    def __init__(
        self,
        room: Strongroom,
        subscribers: Subscribers = SUBSCRIBERS,
        *,
        sender: "Sender | None" = None,
        random: Callable[[float, float], float] = _RANDOM,
    ) -> None:
        """Begin with the stores that are open here.

        Args:
            room: The service.
            subscribers: Parts of the program that are told.
            sender: Reaches the webhooks; None makes one of the settings.
            random: A number between two, for the jitter.
        """
        self._room = room
        settings = room.settings
        self._subscribers = subscribers
        self._teller = Teller(room, subscribers, sender, random)
        self._policy = words.policy_of(settings)
        self._alert_ms = int(settings.breaker_alert_s * 1000)
        self._owner = f"{socket.gethostname()}/{secrets.token_hex(4)}"
        self._wake = asyncio.Event()
        self._rung: set[_Desk] = set()
        self._line: deque[_Desk] = deque()
        """Stores in which something is due, for whose turn it is next."""
        self._starved: dict[_Desk, None] = {}
        """Those that wait for a slot of a slow one, the longest first."""
        self._slots = Slots(settings)
        self._is_closing = False
        self._is_declared = False
        self._polled_at = -settings.delivery_poll_s
        self._count = 0
        self._group = self._add(room.stores.group, is_group=True)
        self._members = {
            user_id: self._add(unlocked.store, is_group=False)
            for user_id, unlocked in room.stores.unlocked().items()
        }

    def _add(self, store: Store, *, is_group: bool) -> _Desk:
        desk = _Desk(store, is_group)

        def ring() -> None:
            self._rung.add(desk)
            self._wake.set()

        desk.bell.enter_context(store.bell.calling(ring))
        ring()
        return desk

    # -- stores come and go --------------------------------------------------------------------

    async def joined(self, user_id: UserId, store: Store) -> None:
        """Begin with a store that was unlocked just now."""
        if not self._is_closing:
            self._members[user_id] = self._add(store, is_group=False)

    async def leaving(self, user_id: UserId, store: Store) -> None:  # noqa: ARG002 - as Company
        """Break off what is under way in a store that is about to be closed, and give it back."""
        desk = self._members.pop(user_id, None)
        if desk is not None:
            await self._empty([desk])

    async def close(self) -> None:
        """Break off and give back everything, and claim no more."""
        self._is_closing = True
        self._wake.set()
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(_STOP_S):
                await self._empty([self._group, *self._members.values()])
        await self._teller.close()

    async def _empty(self, desks: Iterable[_Desk]) -> None:
        await asyncio.gather(*(self._leave(desk) for desk in desks))

    async def _leave(self, desk: _Desk) -> None:
        desk.is_leaving = True
        desk.bell.close()
        self._rung.discard(desk)
        if desk.claiming is not None:
            # A claim under way may be on the disk; what it took is given back below.
            await asyncio.wait([desk.claiming])
        self._starved.pop(desk, None)
        cut = {task: each for task, each in desk.sending.items() if task not in desk.marking}
        for task in cut:
            task.cancel()
        if desk.sending:
            await asyncio.wait(list(desk.sending))
        if cut:
            await self._give_back(desk, list(cut.values()))

    async def _give_back(self, desk: _Desk, claims: list[Claimed]) -> None:
        try:
            await desk.store.write(lambda tx: deliveries.release(tx, claims), ACTOR)
        except (StrongroomError, StoreClosedError) as error:
            # Their leases end by themselves.
            telemetry.unexpected("deliveries", error)

    # -- rounds --------------------------------------------------------------------------------

    async def run(self) -> None:
        """Look and tell until `close`; no error ends it."""
        while not self._is_closing:
            try:
                await self._declare()
                await self._round()
            except Exception as error:  # noqa: BLE001 - the boundary of a loop
                telemetry.unexpected("deliveries", error)
            await heard(self._wake, self._room.settings.delivery_poll_s)

    async def _declare(self) -> None:
        if not self._is_declared:
            await internal.declare(self._room, self._subscribers)
            self._is_declared = True

    async def _round(self) -> None:
        """Put each store where something is due in line, whoever waited longest first."""
        settings = self._room.settings
        rung, self._rung = self._rung, set()
        desks, stale = rung, list[_Desk]()
        if time.monotonic() - self._polled_at >= settings.delivery_poll_s:
            self._polled_at = time.monotonic()
            desks = {self._group, *self._members.values()}
        for count, desk in enumerate(sorted(desks, key=lambda one: one.turn), 1):
            if desk.claiming is not None:
                # Its look may be from before the ring: it is looked at again when it is done.
                self._rung.add(desk)
            elif self._wants_claim(desk, stale):
                self._line_up(desk)
            if count % _GLANCES == 0:
                await asyncio.sleep(0)
        # Whoever waits longest for a look comes first, for there may be too many for one round.
        stale.sort(key=lambda desk: (desk not in rung, desk.looked_at))
        for desk in stale[: len(rung.intersection(stale)) + settings.stale_looks_max]:
            self._line_up(desk)
        self._fill()

    def _line_up(self, desk: _Desk) -> None:
        desk.is_in_line = True
        self._line.append(desk)

    def _fill(self) -> None:
        """Begin claims in the stores in line, as far as there are slots."""
        while self._line and not self._slots.is_full and not self._is_closing:
            desk = self._line.popleft()
            desk.is_in_line = False
            if not desk.is_leaving:
                reserved = self._slots.reserve(desk.share, len(self._line))
                desk.claiming = asyncio.create_task(self._claim(desk, reserved))

    def _wants_claim(self, desk: _Desk, stale: list[_Desk]) -> bool:
        """Whether something is due; who is only to be opened and looked at is put into `stale`."""
        if desk.is_leaving or desk.is_in_line or not self._slots.may_begin(desk.share):
            return False
        try:
            found = desk.store.glance(sql.FIND_NEXT_DELIVERY, alert_ms=self._alert_ms)
        except StrongroomError:
            return False
        if isinstance(found, Later):
            if time.monotonic() - desk.looked_at >= self._room.settings.delivery_look_s:
                stale.append(desk)
            return False
        due_at = None if found is None else found.value
        return due_at is not None and due_at <= self._room.clock()

    # -- claims --------------------------------------------------------------------------------

    async def _claim(self, desk: _Desk, reserved: int) -> None:
        """Claim what there is room for, and begin to tell it."""
        claims: list[Claimed] = []
        slots: dict[str, Slot] = {}
        try:
            desk.looked_at = time.monotonic()
            most, full = self._room.settings.deliveries_per_subscriber, self._slots.full(desk.share)
            due = await desk.store.watch(lambda reader: deliveries.look(reader, most, full))
            if not await flags.is_on(self._room, "webhooks"):
                due = [each for each in due if each.connection.startswith(INTERNAL)]
            slots = self._fitting(desk, due, reserved)
            wanted = [each for each in due if each.is_blocked or each.id in slots]
            if wanted:
                claims = await desk.store.write(lambda tx: self._take(tx, wanted, slots), ACTOR)
                self._rung.add(desk)
                self._room.reach("delivery.claimed")
            else:
                await self._alert(desk)
        except (StrongroomError, StoreClosedError):
            # Locked or busy meanwhile; the next look is soon, and a lease ends by itself.
            pass
        except Exception as error:  # noqa: BLE001 - the boundary of a task
            telemetry.unexpected("deliveries", error)
        finally:
            desk.claiming = None
            taken = sum(not slot.is_slow for slot in slots.values())
            self._slots.give_back(desk.share, reserved - taken)
            for claimed in claims:
                self._begin(desk, claimed, slots.pop(claimed.id))
            for slot in slots.values():
                self._slots.free(slot)
            self._wake.set()

    def _take(
        self, tx: RuntimeTransactor, wanted: list[Due], slots: dict[str, Slot]
    ) -> list[Claimed]:
        """Claim; what was to be held, had its breaker not closed since, has no slot and waits."""
        claims = deliveries.claim(tx, wanted, self._owner, self._policy)
        deliveries.release(tx, [each for each in claims if each.id not in slots])
        return [each for each in claims if each.id in slots]

    def _fitting(self, desk: _Desk, due: list[Due], reserved: int) -> dict[str, Slot]:
        """A slot for each delivery that there is room for; what must be held needs none."""
        fitting: dict[str, Slot] = {}
        waiting = (each for each in due if not each.is_blocked)
        for each in sorted(waiting, key=lambda one: desk.turns.get(one.subscription_id, 0)):
            slot = self._slots.take(desk.share, each.subscription_id, reserved)
            if slot is not None:
                fitting[each.id] = slot
                reserved -= not slot.is_slow
            elif each.subscription_id in desk.share.slow_ones and self._slots.is_slow_full:
                self._starved[desk] = None
        return fitting

    async def _alert(self, desk: _Desk) -> None:
        before = self._room.clock() - self._alert_ms

        def is_long(breaker: breakers.Breaker) -> bool:
            opened_at = breaker.opened_at
            return opened_at is not None and opened_at <= before and breaker.alerted_at is None

        if any(map(is_long, await desk.store.watch(breakers.list_all))):
            count = await desk.store.write(lambda tx: breakers.alert(tx, before), ACTOR)
            telemetry.breakers_stay_open(count)

    # -- tries ---------------------------------------------------------------------------------

    def _begin(self, desk: _Desk, claimed: Claimed, slot: Slot) -> None:
        task = asyncio.create_task(self._tell(desk, claimed, slot))
        desk.sending[task] = claimed
        self._count += 1
        desk.turn = desk.turns[claimed.target.id] = self._count
        task.add_done_callback(lambda done: self._end(desk, done, slot))

    def _end(self, desk: _Desk, task: asyncio.Task[None], slot: Slot) -> None:
        del desk.sending[task]
        desk.marking.discard(task)
        self._slots.free(slot)
        if not task.cancelled() and (error := task.exception()) is not None:
            telemetry.unexpected("delivery", error)
        if not desk.is_leaving:
            self._rung.add(desk)
        if slot.is_slow and self._starved:
            longest = next(iter(self._starved))
            del self._starved[longest]
            self._rung.add(longest)
        self._wake.set()

    async def _tell(self, desk: _Desk, claimed: Claimed, slot: Slot) -> None:
        """One try, and its mark."""
        long = asyncio.get_running_loop().call_later(
            self._room.settings.delivery_slow_s, self._takes_long, desk, slot
        )
        try:
            result = await self._teller.tell(claimed, is_group=desk.is_group)
        finally:
            long.cancel()
        self._slots.tried(slot, is_well=result is None or result.failure is None)
        self._room.reach("delivery.sent")
        task = asyncio.current_task()
        if task is not None:
            desk.marking.add(task)
        with contextlib.suppress(StoreClosedError):
            await self._teller.mark(desk.store, claimed, result)
        self._room.reach("delivery.marked")

    def _takes_long(self, desk: _Desk, slot: Slot) -> None:
        self._slots.takes_long(slot)
        self._rung.add(desk)
        self._wake.set()
