"""Webhooks: `/api/webhooks`."""

import json
from typing import Annotated, Any, Final

from fastapi import APIRouter, Response
from fastapi import Query as FromQuery
from pydantic import Field

from app.bridge.notifications import webhooks as bridge
from app.bridge.notifications.webhook_targets import URL_CHARS_MAX
from app.bridge.notifications.webhooks import Home
from app.runtime.delivery_list import LAST_ID, Delivery
from app.runtime.subscriptions import TYPE_CHARS_MAX, TYPES_MAX, NewWebhook, Webhook
from app.web import cursors
from app.web.answers import OBJECT, as_json, no_content
from app.web.preconditions import etag, match_of, require_match
from app.web.routes import AskDep, StrictRoute
from app.web.shapes import Body, Line, PageQuery, Query, time_or_none

router = APIRouter(route_class=StrictRoute)

_MAKING: Final = """Have events sent to a url, signed by the secret that is shown this once.

`event_types` are names, as `memory_doc.updated`, or patterns: `memory_doc.*`, `*`. What is sent is
`{type, timestamp, data}` by the Standard Webhooks convention, at least once each and with the same
`webhook-id` at every try. From one's own store it tells ids alone, unless `include_content` has it
carry the event's fields as well. Where the change came with a `traceparent`, so does each try, of
the same trace. Each try has 10 seconds; redirects are not followed.
"""

Url = Annotated[Line, Field(min_length=1, max_length=URL_CHARS_MAX)]
Type = Annotated[Line, Field(min_length=1, max_length=TYPE_CHARS_MAX)]
Types = Annotated[list[Type], Field(min_length=1, max_length=TYPES_MAX)]


class WebhookBody(Body):
    """A webhook to be made."""

    url: Url
    event_types: Types
    include_content: bool = False
    description: Line | None = None
    home: Home = "own"


class WebhookPatch(Body):
    """What may be changed; a field left out stays."""

    url: Url = ""
    event_types: Types = Field(default=[])
    include_content: bool = False
    enabled: bool = True
    description: Line | None = None


class HomeQuery(Query):
    """Where a webhook is."""

    home: Home = "own"


class HomePageQuery(PageQuery):
    """A page of what is in a home."""

    home: Home = "own"


InHome = Annotated[HomeQuery, FromQuery()]
InHomePage = Annotated[HomePageQuery, FromQuery()]


def _item(row: Webhook) -> dict[str, Any]:
    return {
        "id": row.id,
        "url": row.url,
        "event_types": json.loads(row.event_types),
        "include_content": bool(row.include_content),
        "enabled": bool(row.enabled),
        "disabled_reason": row.disabled_reason,
        "description": row.description,
        "created_at": time_or_none(row.created_at),
        "updated_at": time_or_none(row.updated_at),
        "version": row.version,
    }


def delivery_item(row: Delivery) -> dict[str, Any]:
    """A delivery as every answer gives it: never what it tells."""
    return {
        "id": row.id,
        "event_id": row.event_id,
        "type": row.type,
        "status": row.status,
        "attempts": row.attempts,
        "next_attempt_at": None if row.finished_at else time_or_none(row.next_attempt_at),
        "last_failure": row.last_failure,
        "last_status": row.last_status,
        "held_since": time_or_none(row.held_since),
        "created_at": time_or_none(row.created_at),
        "finished_at": time_or_none(row.finished_at),
        "version": row.version,
    }


_render = as_json(_item, version_of=lambda row: row.version)


@router.get("/api/webhooks")
async def list_webhooks(query: InHomePage, ask: AskDep) -> dict[str, Any]:
    """The caller's webhooks of one home, in the order of their making; never their secrets."""
    [after] = cursors.ids_of(query.cursor, 1)
    rows = await bridge.list_page(
        ask.room, ask.caller, ask.call, query.home, after, query.limit + 1
    )
    return cursors.page_of(rows, query.limit, _item, lambda row: cursors.encode(row.id))


@router.post("/api/webhooks", status_code=201, description=_MAKING)
async def add_webhook(body: WebhookBody, ask: AskDep, response: Response) -> dict[str, Any]:
    """Have events sent to a url, signed by the secret that is shown this once."""
    new = NewWebhook(body.url, body.event_types, body.include_content, body.description)
    row, secret = await bridge.add(ask.room, ask.caller, ask.call, body.home, new)
    response.headers["ETag"] = etag(row.version)
    return {**_item(row), "home": body.home, "secret": secret}


@router.get("/api/webhooks/{webhook_id}")
async def get_webhook(
    webhook_id: str, query: InHome, ask: AskDep, response: Response
) -> dict[str, Any]:
    """One of the caller's webhooks."""
    row = await bridge.get(ask.room, ask.caller, ask.call, query.home, webhook_id)
    require_match(ask.request, row.version)
    response.headers["ETag"] = etag(row.version)
    return _item(row)


@router.patch("/api/webhooks/{webhook_id}", response_model=OBJECT)
async def patch_webhook(
    webhook_id: str, body: WebhookPatch, query: InHome, ask: AskDep
) -> Response:
    """Change a webhook. While it is off nothing new is owed to it, and what is owed waits."""
    changes = body.model_dump(exclude_unset=True)
    match = match_of(ask.request)
    return await ask.once(
        lambda call: bridge.change(
            ask.room, ask.caller, call, query.home, webhook_id, changes, match
        ),
        _render,
    )


@router.post("/api/webhooks/{webhook_id}/secret")
async def renew_secret(
    webhook_id: str, query: InHome, ask: AskDep, response: Response
) -> dict[str, Any]:
    """Give a webhook a new secret, shown this once; for a day the old one signs as well."""
    match = match_of(ask.request)
    row, secret = await bridge.renew_secret(
        ask.room, ask.caller, ask.call, query.home, webhook_id, match
    )
    response.headers["ETag"] = etag(row.version)
    return {**_item(row), "secret": secret}


@router.delete("/api/webhooks/{webhook_id}", status_code=204)
async def delete_webhook(webhook_id: str, query: InHome, ask: AskDep) -> Response:
    """Take a webhook away, with all that it is owed."""
    match = match_of(ask.request)
    return await ask.once(
        lambda call: bridge.remove(ask.room, ask.caller, call, query.home, webhook_id, match),
        no_content,
    )


@router.get("/api/webhooks/{webhook_id}/deliveries")
async def list_deliveries(webhook_id: str, query: InHomePage, ask: AskDep) -> dict[str, Any]:
    """What a webhook is owed and was told of late, newest first: how it went, never what it was."""
    [before] = cursors.ids_of(query.cursor, 1)
    rows = await bridge.list_deliveries(
        ask.room,
        ask.caller,
        ask.call,
        query.home,
        webhook_id,
        before or LAST_ID,
        query.limit + 1,
    )
    return cursors.page_of(rows, query.limit, delivery_item, lambda row: cursors.encode(row.id))


@router.post("/api/webhooks/{webhook_id}/deliveries/{delivery_id}/retry", response_model=OBJECT)
async def retry_delivery(webhook_id: str, delivery_id: str, query: InHome, ask: AskDep) -> Response:
    """Have one delivery tried again now, as if it had not been: one that failed, or is dead."""
    match = match_of(ask.request)
    return await ask.once(
        lambda call: bridge.retry(
            ask.room, ask.caller, call, query.home, webhook_id, delivery_id, match
        ),
        as_json(delivery_item, version_of=lambda row: row.version),
    )
