"""The Model Context Protocol by its official kit: loaded at the first message, not at the start."""

import json
from dataclasses import replace
from typing import Any, Final

from fastapi import Response
from mcp.server.lowlevel import Server
from mcp.server.streamable_http_manager import StreamableHTTPSessionManager
from mcp.shared.exceptions import MCPError
from mcp_types import (
    INVALID_PARAMS,
    METHOD_NOT_FOUND,
    CallToolRequestParams,
    CallToolResult,
    ListToolsResult,
    PaginatedRequestParams,
    TextContent,
)
from mcp_types import Tool as ListedTool
from pydantic import ValidationError
from starlette.types import Message, Scope

from app import telemetry
from app.bridge.tools.table import TOOLS, offered
from app.bridge.tools.toolbox import ANSWER_SCHEMA, Asking, Tool
from app.errors.root import StrongroomError
from app.owner.notes import Condition
from app.web.errors import STATUS, Problem, field_errors, request_id_of
from app.web.owner.files import escaped_note_bytes
from app.web.routes import Ask

_INSTRUCTIONS: Final = (
    "Notes that last: user-memory/ is your member's own, shared-memory/ the group's. Look into "
    "user-memory/index.md first. What a write replaces is kept as a version. Under /memories the "
    "memory commands reach user-memory/."
)
_FAULT: Final = 500
_JSON: Final = "application/json"
_IN_PROTOCOL: Final = frozenset({200, 202, 400, 404})
"""Statuses whose answers are messages of the protocol; every other is a problem as elsewhere."""


async def answer(ask: Ask) -> Response:
    """Answer one message.

    Args:
        ask: Its request, whose body is read and one JSON-RPC message.

    Returns:
        The answer, whole.

    Raises:
        Problem: The message cannot be answered at all.
    """
    tools = _Tools(ask)
    server = Server[Any](
        "strongroom",
        title="Strongroom",
        instructions=_INSTRUCTIONS,
        on_list_tools=tools.listing,
        on_call_tool=tools.call,
        get_tool_input_schema=lambda _name: None,
    )
    # Spans would carry what is called for to wherever a library sends them.
    server.middleware.clear()
    manager = StreamableHTTPSessionManager(
        server,
        json_response=True,
        stateless=True,
        max_request_body_size=escaped_note_bytes(ask.room.settings),
    )
    exchange = _Exchange(ask, await ask.request.body())
    async with manager.run():
        await manager.handle_request(exchange.scope, exchange.receive, exchange.send)
    return exchange.response()


class _Exchange:
    """One message to the kit, and what it answers."""

    def __init__(self, ask: Ask, body: bytes) -> None:
        self.scope: Scope = dict(ask.request.scope)
        self._ask = ask
        self._body: bytes | None = body
        self._status = 0
        self._headers: dict[str, str] = {}
        self._sent = bytearray()

    async def receive(self) -> Message:
        """Give the message's body, then whatever comes of the connection.

        Returns:
            One piece, as ASGI has it.
        """
        if self._body is None:
            return await self._ask.request.receive()
        body, self._body = self._body, None
        return {"type": "http.request", "body": body, "more_body": False}

    async def send(self, message: Message) -> None:
        """Keep a piece of the answer."""
        if message["type"] == "http.response.start":
            self._status = message["status"]
            raw = message.get("headers", ())
            self._headers = {name.decode("latin-1"): text.decode("latin-1") for name, text in raw}
        else:
            self._sent += message.get("body", b"")

    def response(self) -> Response:
        """The answer.

        Returns:
            It, as it was kept.

        Raises:
            Problem: It is a refusal that is no message of the protocol.
        """
        kind = self._headers.get("content-type")
        if self._status not in _IN_PROTOCOL or (self._sent and kind != _JSON):
            raise Problem(self._status)
        return Response(_without_echo(bytes(self._sent)), status_code=self._status, media_type=kind)


def _without_echo(raw: bytes) -> bytes:
    """An answer without the name of an unknown method, which the kit repeats as it was sent."""
    if str(METHOD_NOT_FOUND).encode() not in raw:
        return raw
    message = json.loads(raw)
    error = message.get("error", {})
    if error.get("code") != METHOD_NOT_FOUND:
        return raw
    error.pop("data", None)
    return json.dumps(message).encode()


class _Tools:
    """The tools, for one request of one caller."""

    def __init__(self, ask: Ask) -> None:
        self._ask = ask

    async def listing(
        self, _context: object, _page: PaginatedRequestParams | None
    ) -> ListToolsResult:
        """List what the caller's credential was made for.

        Returns:
            It, on one page.
        """
        return ListToolsResult(
            tools=[_listed(tool) for tool in offered(self._ask.caller)], cache_scope="private"
        )

    async def call(self, _context: object, params: CallToolRequestParams) -> CallToolResult:
        """Use a tool.

        Returns:
            What it answers, or why it was refused.

        Raises:
            MCPError: There is no such tool for this caller.
        """
        tool = TOOLS.get(params.name)
        if tool is None or not tool.is_for(self._ask.caller):
            raise MCPError(INVALID_PARAMS, "There is no such tool: see tools/list.")
        try:
            return await self._used(tool, params.arguments or {})
        except ValidationError as error:
            found = error.errors(include_input=False, include_context=False, include_url=False)
            errors = field_errors(found)
        except StrongroomError as error:
            if STATUS.get(error.code, _FAULT) >= _FAULT:
                telemetry.request_failed(f"POST /mcp/{tool.name}", error.code, self._request_id)
            return _refused(error.code, error.sentence)
        except Exception as error:  # noqa: BLE001 - the kit would say to the caller what it was
            telemetry.unexpected(f"POST /mcp/{tool.name}", error)
            return _refused("internal_error", "Something went wrong here; it is on record.")
        detail = "Arguments of the tool cannot be taken; see errors."
        return _refused("invalid_request", detail, errors=errors)

    async def _used(self, tool: Tool, arguments: dict[str, Any]) -> CallToolResult:
        given = tool.arguments.model_validate(arguments)
        ask = self._ask
        call = replace(ask.call, action=f"{ask.call.action}/{tool.name}")
        deed = await tool.deed(Asking(ask.room, ask.caller, call, Condition()), given)
        told = deed.answer(await deed.act(call))
        return CallToolResult(
            content=[TextContent(type="text", text=told.output)], structured_content=told.facts()
        )

    @property
    def _request_id(self) -> str:
        return request_id_of(self._ask.request)


def _refused(code: str, detail: str, **more: object) -> CallToolResult:
    facts = {"code": code, "detail": detail, **more}
    shown = f"{detail} {json.dumps(more)}" if more else detail
    return CallToolResult(
        content=[TextContent(type="text", text=shown)], structured_content=facts, is_error=True
    )


def _listed(tool: Tool) -> ListedTool:
    return ListedTool.model_validate(
        {
            "name": tool.name,
            "title": tool.title,
            "description": tool.description,
            "inputSchema": tool.input_schema,
            "outputSchema": ANSWER_SCHEMA,
            "annotations": tool.annotations,
        }
    )
