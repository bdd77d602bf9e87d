"""A JSON body read strictly, so that every reader of it agrees on what it says.

The rules are I-JSON's (RFC 7493): UTF-8, each name once in an object, no lone surrogate;
and no NaN or Infinity, which are no JSON at all.
"""

import json
import re
from typing import Any, Final, NoReturn, TypeVar

from fastapi import Request
from fastapi.exceptions import RequestValidationError
from pydantic import BaseModel, ValidationError
from typing_extensions import override

from app.web.errors import Problem

ModelT = TypeVar("ModelT", bound=BaseModel)

JSON: Final = frozenset({"application/json"})
_SURROGATE: Final = re.compile(r"\\u[dD][89a-fA-F]")
_CHARSET: Final = re.compile(r';\s*charset\s*=\s*"?([^";\s]*)')
_UTF_8: Final = frozenset({"utf-8", "utf8", "us-ascii"})


def parse(raw: bytes) -> Any:  # noqa: ANN401 - whatever JSON says
    """Read JSON.

    Returns:
        What it says.

    Raises:
        RequestValidationError: It is not JSON by the rules above, or nested too deep.
    """
    try:
        text = raw.decode("utf-8")
        value = json.loads(text, object_pairs_hook=_each_once, parse_constant=_refuse)
        if _SURROGATE.search(text):
            # An escaped pair is one character by now; half of one cannot be written again.
            json.dumps(value, ensure_ascii=False).encode("utf-8")
    except (ValueError, RecursionError):
        # The cause would quote the body.
        raise RequestValidationError([{"type": "json_invalid", "loc": ("body",)}]) from None
    return value


def _each_once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        raise ValueError
    return found


def _refuse(_constant: str) -> NoReturn:
    raise ValueError


class JsonRequest(Request):
    """A request whose JSON is read by the rules above, once."""

    _value: Any = None
    _is_read = False

    @override
    async def json(self) -> Any:
        if not self._is_read:
            self._value = parse(await self.body())
            self._is_read = True
        return self._value


def require_media_type(request: Request, kinds: frozenset[str]) -> None:
    """Refuse another kind of body than the call takes, and one that is compressed.

    Raises:
        Problem: 415.
    """
    sent = request.headers.get("content-type", "").lower()
    kind, charset = sent.split(";")[0].strip(), _CHARSET.search(sent)
    if kind not in kinds or (charset and charset[1] not in _UTF_8):
        raise Problem(415)
    require_uncompressed(request)


def require_uncompressed(request: Request) -> None:
    """Refuse a body that is compressed.

    Raises:
        Problem: 415.
    """
    if request.headers.get("content-encoding", "identity").strip().lower() != "identity":
        raise Problem(415)


async def require_json(request: Request) -> None:
    """Read the JSON of a request, or refuse it.

    Raises:
        Problem: 415, another kind of body.
        RequestValidationError: It is no JSON.
    """
    require_media_type(request, JSON)
    await request.json()


async def require_nothing(request: Request) -> None:
    """Refuse a body with fields where a call has none; an empty object is no field.

    Raises:
        Problem: 415, another kind of body.
        RequestValidationError: It is no JSON, or says something.
    """
    if not await request.body():
        return
    await require_json(request)
    if await request.json() != {}:
        raise RequestValidationError([{"type": "extra_forbidden", "loc": ("body", "")}])


async def read_json(request: Request, model: type[ModelT]) -> ModelT:
    """The body as a model, where a call takes raw text as well.

    Returns:
        The model.

    Raises:
        Problem: 415, another kind of body.
        RequestValidationError: It is no JSON, or not of this form.
    """
    await require_json(request)
    try:
        return model.model_validate(await request.json())
    except ValidationError as error:
        found = error.errors(include_input=False, include_context=False, include_url=False)
    # Outside the handler, for the cause would quote the body.
    raise RequestValidationError([{**item, "loc": ("body", *item["loc"])} for item in found])
