"""The one kind of route: it judges caller, query and body, in this order, before its function.

The caller is judged again when the body has come to its end, which may be long after.
"""

from collections.abc import Awaitable, Callable, Coroutine
from dataclasses import dataclass, replace
from typing import Annotated, Any, Final, TypeVar, get_origin
from urllib.parse import unquote_to_bytes

from fastapi import Depends, Request, Response
from fastapi.exceptions import RequestValidationError
from fastapi.routing import APIRoute
from pydantic import BaseModel
from starlette.types import Message
from typing_extensions import override

from app.bridge.callers import Call, Caller
from app.bridge.idempotency import require_one_use
from app.bridge.network import client_address, network_of
from app.bridge.strongroom import Strongroom
from app.errors.inputs import IdempotencyNotSupportedError
from app.runtime.idempotency import Replayed
from app.web import callers, descriptions, idempotency
from app.web.envelope import TRACE_ID
from app.web.errors import REQUEST_ID
from app.web.preconditions import require_unconditional
from app.web.rules import RULES, Rule
from app.web.strict_json import JsonRequest, require_json, require_nothing

T = TypeVar("T")
_CALLER: Final = "strongroom.caller"
"""Key of the judged caller in the ASGI scope; absent on a public route."""


class StrictRoute(APIRoute):
    """A route with its rule. There is none without one: making it fails."""

    @override
    def __init__(self, path: str, endpoint: Callable[..., Any], **options: Any) -> None:
        (method,) = options["methods"]
        self.rule = RULES[f"{method} {path}"]
        described = descriptions.of_rule(self.rule, method, options.get("openapi_extra"))
        options["openapi_extra"] = described
        options["responses"] = {**descriptions.PROBLEMS, **(options.get("responses") or {})}
        self._reads_its_body = "requestBody" in described
        super().__init__(path, endpoint, **options)
        self._query_names = query_names(self)
        self._list_names = list_names(self)

    @override
    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        answer = super().get_route_handler()

        async def judge_and_answer(request: Request) -> Response:
            async def receive() -> Message:
                message = await request.receive()
                if message["type"] == "http.request" and not message.get("more_body", False):
                    # It may have been held back until the caller had lost every right.
                    await self._judge_caller(request)
                return message

            kind = idempotency.KeyedRequest if idempotency.has_key(request.scope) else JsonRequest
            strict = kind(request.scope, receive)
            await self._judge(strict)
            return await answer(strict)

        return judge_and_answer

    async def _judge_caller(self, request: Request) -> None:
        if not self.rule.is_public:
            room = room_of(request)
            caller = await callers.authenticate(request, room)
            await callers.require(caller, self.rule, room)
            request.scope[_CALLER] = caller

    async def _judge(self, request: JsonRequest) -> None:
        if self.rule.repeats == "refused" and idempotency.has_key(request.scope):
            raise IdempotencyNotSupportedError
        await self._judge_caller(request)
        if not self.rule.is_public:
            callers.note_seen(room_of(request), request.scope[_CALLER])
        if request.method in callers.UNSAFE and not self.rule.takes_conditions:
            require_unconditional(request)
        require_known_query(request, self._query_names, self._list_names)
        if self.body_field is not None:
            await require_json(request)
        elif not self._reads_its_body and request.method in callers.UNSAFE:
            await require_nothing(request)
        if self.rule.secret_field is not None and idempotency.has_key(request.scope):
            await idempotency.require_no_secret(request, self.rule.secret_field)


def query_names(route: APIRoute) -> frozenset[str]:
    """The names of a route's own query parameters, those of a query model included."""
    names: set[str] = set()
    for field in route.dependant.query_params:
        kind = field.field_info.annotation
        if isinstance(kind, type) and issubclass(kind, BaseModel):
            names |= {info.alias or name for name, info in kind.model_fields.items()}
        else:
            names.add(field.alias)
    return frozenset(names)


def list_names(route: APIRoute) -> frozenset[str]:
    """Those of them that take several values, each by a parameter of its own."""
    names: set[str] = set()
    for field in route.dependant.query_params:
        kind = field.field_info.annotation
        if isinstance(kind, type) and issubclass(kind, BaseModel):
            fields = kind.model_fields.items()
            names |= {n for n, info in fields if get_origin(info.annotation) is list}
    return frozenset(names)


def require_known_query(
    request: Request, known: frozenset[str], lists: frozenset[str] = frozenset()
) -> None:
    """Refuse a query that is no UTF-8, a parameter the route has not, or one that is there twice.

    Args:
        request: As it came.
        known: The parameters of its route.
        lists: Those of them that may be there several times.

    Raises:
        RequestValidationError: Nothing of it is repeated in the answer.
    """
    raw: bytes = request.scope["query_string"]
    if not raw:
        return
    try:
        # The framework would put U+FFFD in the place of what it cannot read.
        raw.decode("ascii")
        unquote_to_bytes(raw).decode("utf-8")
    except UnicodeDecodeError:
        raise RequestValidationError([{"type": "not_utf_8", "loc": ("query",)}]) from None
    names = [name for name, _ in request.query_params.multi_items()]
    single = [name for name in names if name not in lists]
    if len(single) != len(set(single)) or not known.issuperset(names):
        raise RequestValidationError([{"type": "extra_forbidden", "loc": ("query", "")}])


def room_of(request: Request) -> Strongroom:
    """The running service."""
    room: Strongroom = request.app.state.room
    return room


def call_of(request: Request) -> Call:
    """The request as the program's record names it."""
    peer = request.client.host if request.client else None
    forwarded = ", ".join(request.headers.getlist("x-forwarded-for")) or None
    address = client_address(peer, forwarded, room_of(request).settings.trusted_proxies)
    return Call(
        action=f"{request.method} {request.scope['route'].path}",
        network=network_of(address),
        request_id=request.scope.get(REQUEST_ID),
        trace_id=request.scope.get(TRACE_ID),
    )


@dataclass(frozen=True, slots=True)
class Visit:
    """One request of whoever it may be."""

    request: Request
    room: Strongroom
    call: Call


@dataclass(frozen=True, slots=True)
class Ask(Visit):
    """One request of a caller whom the route's rule let through."""

    caller: Caller

    async def once(
        self, operation: Callable[[Call], Awaitable[T]], render: Callable[[T], Response]
    ) -> Response:
        """Do what the request asks, and answer it; by its `Idempotency-Key` no more than once.

        Args:
            operation: Acts, given the request's call, and returns what the answer tells: the
                same as its deciding write returns, which is given the call's `once`.
            render: Makes the answer of that, and of nothing else.

        Returns:
            The answer.
        """
        rule: Rule = self.request.scope["route"].rule
        once = await idempotency.once_of(self.request, rule, self.room, self.caller, render)
        if once is None:
            return render(await operation(self.call))
        await require_one_use(self.room, self.caller, once)
        try:
            result = await operation(replace(self.call, once=once))
        except Replayed as replayed:
            return idempotency.replay(replayed.answer)
        once.reach("once.answered")
        return render(result)


async def _visit(request: Request) -> Visit:
    return Visit(request, room_of(request), call_of(request))


async def _ask(request: Request) -> Ask:
    return Ask(request, room_of(request), call_of(request), request.scope[_CALLER])


VisitDep = Annotated[Visit, Depends(_visit)]
AskDep = Annotated[Ask, Depends(_ask)]
