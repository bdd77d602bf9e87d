"""The feed of events: `/api/events`."""

import contextlib
import json
from collections.abc import AsyncGenerator
from typing import Annotated, Any, Final

from fastapi import APIRouter, Header, Request, Response
from fastapi import Query as FromQuery
from fastapi.sse import EventSourceResponse, format_sse_event
from pydantic import Field
from starlette.responses import JSONResponse
from starlette.types import Receive, Scope, Send
from typing_extensions import override

from app.bridge.content.reports import Home
from app.bridge.notifications import events as bridge
from app.bridge.notifications.tails import Tail, subscribe
from app.clock import Millis
from app.errors.inputs import InvalidInputError
from app.errors.root import StrongroomError
from app.runtime import events
from app.runtime.events import Cursor, Event, Types
from app.web.answers import OBJECT, as_json
from app.web.routes import AskDep, StrictRoute
from app.web.shapes import LIMIT_DEFAULT, Query, Time, Whole, page, time_or_none

router = APIRouter(route_class=StrictRoute)

_TYPES_MAX: Final = 2_000
_CURSOR_MAX: Final = 100


class FeedQuery(Query):
    """Which events."""

    home: Home = "own"
    after: Annotated[str | None, Field(max_length=_CURSOR_MAX)] = None
    types: Annotated[str | None, Field(max_length=_TYPES_MAX)] = None


class PagedFeedQuery(FeedQuery):
    """Which, and how many."""

    limit: Annotated[int, Field(ge=1), Whole] = LIMIT_DEFAULT


class PruneQuery(Query):
    """Which are to go."""

    before: Time


def _types_of(text: str | None) -> Types:
    return events.parse_types(text.split(",") if text is not None else [])


def _place_of(text: str | None) -> Cursor | None:
    return None if text is None else events.parse_cursor(text)


def _come_back_to(request: Request) -> str | None:
    """The place that a client comes back to.

    Returns:
        What `Last-Event-ID` says; None when it was not sent.

    Raises:
        InvalidInputError: It was sent twice.
    """
    sent = request.headers.getlist("last-event-id")
    if len(sent) > 1:
        raise InvalidInputError
    return sent[0] if sent else None


def _item(epoch: str, event: Event) -> dict[str, Any]:
    return {
        "seq": event.seq,
        "cursor": Cursor(epoch, event.seq).text,
        "id": event.id,
        "occurred_at": time_or_none(event.occurred_at),
        "entity_type": event.entity_type,
        "entity_id": event.entity_id,
        "type": event.type,
        "actor": {
            "kind": event.actor_kind,
            "sub": event.actor_sub,
            "acting_for": event.acting_for,
        },
        "payload": json.loads(event.payload),
    }


@router.get("/api/events", response_model=OBJECT)
async def list_events(query: Annotated[PagedFeedQuery, FromQuery()], ask: AskDep) -> Response:
    """Events of one's own store, or those of the group's that one may see, oldest first.

    `after` is the cursor of an event or a page, `types` names as `memory_doc.updated` or
    `report.*`, by comma.

    Returns:
        A page. There is always a `next_cursor`: whoever goes on from it misses nothing. A page
        may be short, even empty, before the end, which is where `next_cursor` stays as it was.

    Raises:
        InvalidInputError: More than a page can have.
    """
    if query.limit > ask.room.settings.event_page_max:
        raise InvalidInputError(field="limit")
    found = await bridge.read_page(
        ask.room,
        ask.caller,
        ask.call,
        query.home,
        _place_of(query.after),
        _types_of(query.types),
        query.limit,
    )
    items = [_item(found.next.epoch, event) for event in found.items]
    # As it is: the framework would look at every value of a thousand events by itself.
    return JSONResponse(page(items, found.next.text))


@router.delete("/api/events", response_model=OBJECT)
async def prune_events(query: Annotated[PruneQuery, FromQuery()], ask: AskDep) -> Response:
    """Remove the events of one's own store from before a time; cursors stay what they are."""
    before = Millis(query.before)
    return await ask.once(
        lambda call: bridge.prune_own(ask.room, ask.caller, call, before),
        as_json(lambda removed: {"removed": removed}),
    )


class EventStream(EventSourceResponse):
    """A tail as Server-Sent Events, until one of both ends goes away."""

    def __init__(self, tail: Tail) -> None:
        self._tail = tail
        self._parts = _parts_of(tail)
        # Else a proxy keeps back what is to be told at once.
        super().__init__(self._parts, headers={"X-Accel-Buffering": "no"})

    @override
    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        with contextlib.closing(self._tail):
            async with contextlib.aclosing(self._parts):
                await super().__call__(scope, receive, send)


async def _parts_of(tail: Tail) -> AsyncGenerator[bytes]:
    try:
        # At once, so that the client knows that it is heard, and from where to come back.
        yield _mark(tail)
        async for found in tail.pages():
            if found is None:
                yield _mark(tail)
            else:
                yield b"".join(_message(found.next.epoch, event) for event in found.items)
    except StrongroomError as error:
        # Whoever comes back is told more by the answer to that.
        yield format_sse_event(event="end", data_str=json.dumps({"code": error.code}))


def _mark(tail: Tail) -> bytes:
    """A comment, and the place: one without data is remembered, and no event to a client."""
    return format_sse_event(comment="waiting", id=tail.place.text)


def _message(epoch: str, event: Event) -> bytes:
    item = _item(epoch, event)
    text = json.dumps(item, ensure_ascii=False, separators=(",", ":"))
    return format_sse_event(data_str=text, id=item["cursor"])


@router.get(
    "/api/events/stream",
    response_model=None,
    responses={200: {"description": "Events.", "content": {"text/event-stream": {}}}},
)
async def stream_events(
    query: Annotated[FeedQuery, FromQuery()],
    ask: AskDep,
    _last_event_id: Annotated[
        str | None, Header(alias="Last-Event-ID", max_length=_CURSOR_MAX)
    ] = None,
) -> EventStream:
    """The same, as they come: each a Server-Sent Event whose id is its cursor.

    Begins after `Last-Event-ID`, else after `after`, else at the beginning.

    Returns:
        The stream. A comment comes when nothing else does. An event named `end` says by its
        `code` why the stream ends, when the caller may not go on.
    """
    # Read as it was sent: the framework shows one of two.
    last_event_id = _come_back_to(ask.request)
    after = query.after if last_event_id is None else last_event_id
    tail = await subscribe(
        ask.room, ask.caller, ask.call, query.home, _place_of(after), _types_of(query.types)
    )
    return EventStream(tail)
