"""The Model Context Protocol at `/mcp`: the tools by streamable HTTP, each request by itself.

No session is kept, so any worker answers any request. Who calls is judged as at every call;
the protocol's own kit only reads the message and writes the answer.
"""

import ipaddress
from collections.abc import Awaitable, Callable
from typing import Annotated, Any, Final, Literal
from urllib.parse import urlsplit

from fastapi import APIRouter, Response
from pydantic import BaseModel, ConfigDict, Field

from app.bridge.strongroom import Strongroom
from app.settings import Settings
from app.web.callers import require_same_site
from app.web.descriptions import raw_body
from app.web.errors import Problem
from app.web.owner.files import escaped_note_bytes
from app.web.routes import Ask, AskDep, StrictRoute
from app.web.strict_json import read_json

router = APIRouter(route_class=StrictRoute)

PATH: Final = "/mcp"
_WORD_CHARS_MAX: Final = 200


Word = Annotated[str, Field(max_length=_WORD_CHARS_MAX)]


class Message(BaseModel):
    """One JSON-RPC 2.0 request or notification."""

    model_config = ConfigDict(extra="forbid", strict=True, hide_input_in_errors=True)

    jsonrpc: Literal["2.0"]
    method: Word
    id: Word | int = 0
    """Absent in a notification."""
    params: dict[Word, Any] | None = None


def body_limits(settings: Settings) -> dict[str, int]:
    """Most bytes of a body by exact path: a tool may carry a whole note."""
    return {PATH: escaped_note_bytes(settings)}


@router.post(
    PATH,
    response_class=Response,
    openapi_extra=raw_body(fields=Message),
    responses={202: {"description": "A notification was taken; nothing comes of it."}},
)
async def speak(ask: AskDep) -> Response:
    """One message of the Model Context Protocol: streamable HTTP without a session.

    The same tools as `GET /api/tools` lists. Refusals of a tool are results of it; refusals of
    the credential, the `Origin` or the message are answered as everywhere.
    """  # noqa: DOC201 - the words are OpenAPI's
    _require_origin(ask)
    _require_host(ask.request.headers.get("host", ""), ask.room)
    await read_json(ask.request, Message)
    answer = await ask.room.stores.on_thread(_load)
    return await answer(ask)


def _load() -> Callable[[Ask], Awaitable[Response]]:
    from app.web import mcp_server  # noqa: PLC0415 - half a second that no start should wait

    return mcp_server.answer


def _require_origin(ask: Ask) -> None:
    """Refuse a page of another origin, whatever credential it has got hold of.

    Raises:
        CrossSiteRequestError: It is one.
    """
    if "origin" in ask.request.headers:
        require_same_site(ask.request, ask.room)


def _require_host(host: str, room: Strongroom) -> None:
    """Refuse a name that somebody may have made to point here; the outermost layer knows ours.

    Raises:
        Problem: 421: there is no `public_url`, and it is neither an address nor this box.
    """
    if room.settings.public_url is not None:
        return
    try:
        name = urlsplit(f"//{host}").hostname or ""
    except ValueError:
        name = ""
    if name in {"localhost", room.settings.host}:
        return
    try:
        ipaddress.ip_address(name)
    except ValueError:
        raise Problem(421) from None
