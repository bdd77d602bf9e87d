"""The log of events: read by place in pages, pruned from its oldest end, never rewritten.

A place is a `seq`. Writes of one store are serialized, so whoever has seen a place has seen
everything up to it. The store's epoch tells its places from those of a copy restored or
imported in its stead; it is the owner bucket's, so it comes with the call.
"""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple

from app.clock import Millis
from app.db.runtime import statements as sql
from app.db.runtime.record_rows import EventRow
from app.db.runtime.store import RuntimeReader, RuntimeTransactor
from app.errors.conflicts import (
    EventCursorAheadError,
    EventCursorExpiredError,
    EventLogRestartedError,
)
from app.errors.inputs import InvalidInputError

Event = EventRow
"""One event."""

EXAMINED_MAX: Final = 5_000
"""Events that one page looks at; the rest is the next one's, though nothing was shown."""
_BATCH: Final = 1_000
_CURSOR: Final = re.compile(r"([0-9a-f]{1,64})\.(0|[1-9][0-9]{0,18})")
_TYPE: Final = re.compile(r"[a-z][a-z0-9_]*\.([a-z][a-z0-9_]*|\*)")


class Cursor(NamedTuple):
    """A place in one log, as clients keep it: `epoch.seq`."""

    epoch: str
    seq: int

    @property
    def text(self) -> str:
        """As it is written."""
        return f"{self.epoch}.{self.seq}"


@dataclass(frozen=True, slots=True)
class Page:
    """A part of the log."""

    items: list[EventRow]
    """What of it is shown."""
    next: Cursor
    """Where to go on: after everything that was looked at, shown or not."""
    is_end: bool
    """Whether nothing stood behind it."""


@dataclass(frozen=True, slots=True)
class Types:
    """Which types of events are wanted; all by default."""

    names: frozenset[str] = frozenset()
    """Whole names, as `memory_doc.updated`."""
    entities: frozenset[str] = frozenset()
    """Entities of which every type is wanted, as `memory_doc.*` says."""

    def admit(self, event: EventRow) -> bool:
        """Whether an event is one of them."""
        if not self.names and not self.entities:
            return True
        return event.type in self.names or event.entity_type in self.entities


def parse_cursor(text: str) -> Cursor:
    """Read a cursor.

    Returns:
        The place it names.

    Raises:
        InvalidInputError: It is none.
    """
    found = _CURSOR.fullmatch(text)
    if found is None:
        raise InvalidInputError(field="after")
    return Cursor(found[1], int(found[2]))


def parse_types(texts: Sequence[str]) -> Types:
    """Read names of types, each `entity.what` or `entity.*`.

    Returns:
        What they say.

    Raises:
        InvalidInputError: One of them is no such name.
    """
    if not all(_TYPE.fullmatch(text) for text in texts):
        raise InvalidInputError(field="types")
    wide = {text for text in texts if text.endswith(".*")}
    return Types(
        names=frozenset(texts) - wide, entities=frozenset(text.removesuffix(".*") for text in wide)
    )


def require_place(reader: RuntimeReader, epoch: str, after: Cursor | None) -> int:
    """Refuse a place from which the log cannot be followed without a gap.

    Args:
        reader: The store.
        epoch: Its present one.
        after: The place; None for the beginning of what is kept.

    Returns:
        The `seq` after which to read.

    Raises:
        EventLogRestartedError: It is a place of another epoch.
        EventCursorExpiredError: What came next was pruned; it carries the first seq kept.
        EventCursorAheadError: The log has not come so far.
    """
    bounds = reader.one(sql.FIND_EVENT_BOUNDS)
    last, first = bounds or (0, 0)
    first = first or last + 1
    if after is None:
        return first - 1
    if after.epoch != epoch:
        raise EventLogRestartedError
    if after.seq > last:
        raise EventCursorAheadError
    if after.seq + 1 < first:
        raise EventCursorExpiredError(first)
    return after.seq


def last_seq(reader: RuntimeReader) -> int:
    """The last place of the log; 0 while it is empty."""
    bounds = reader.one(sql.FIND_EVENT_BOUNDS)
    return bounds.last_seq if bounds else 0


def read_page(
    reader: RuntimeReader,
    epoch: str,
    after: Cursor | None,
    limit: int,
    admit: Callable[[EventRow], bool],
) -> Page:
    """Read on from a place, in one snapshot.

    Args:
        reader: The store.
        epoch: Its present one.
        after: The place; None for the beginning of what is kept.
        limit: Most events to show, at least 1.
        admit: Whether an event is shown; what is not leaves no trace but the way it takes.

    Returns:
        The page. It may show less than there is, even nothing, before the end: `next` goes on.

    Raises:
        EventLogRestartedError: See `require_place`.
        EventCursorExpiredError: Likewise.
        EventCursorAheadError: Likewise.
    """
    place = require_place(reader, epoch, after)
    items: list[EventRow] = []
    examined = 0
    while examined < EXAMINED_MAX:
        wanted = min(_BATCH, EXAMINED_MAX - examined, max(limit - len(items), 1))
        rows = reader.all(sql.LIST_EVENTS_AFTER, after=place, limit=wanted)
        for row in rows:
            place = row.seq
            if admit(row):
                items.append(row)
        examined += len(rows)
        is_end = len(rows) < wanted
        if is_end or len(items) >= limit:
            return Page(items, Cursor(epoch, place), is_end)
    return Page(items, Cursor(epoch, place), is_end=False)


def prune(tx: RuntimeTransactor, before_ms: Millis, limit: int) -> int:
    """Remove the oldest events, as far as they are older than a time; the position stays.

    Args:
        tx: The store.
        before_ms: What is younger stays, and all that came after it.
        limit: Most to remove now.

    Returns:
        How many went; fewer than the limit when no more may go.
    """
    return len(tx.run(sql.PRUNE_EVENTS, before=before_ms, limit=limit))
