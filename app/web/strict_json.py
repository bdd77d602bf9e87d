"""A JSON body read by hand, where one call takes both raw text and JSON."""

import json
from typing import Any, TypeVar

from fastapi import Request
from fastapi.exceptions import RequestValidationError
from pydantic import BaseModel, ValidationError

from app.web.errors import Problem

ModelT = TypeVar("ModelT", bound=BaseModel)


async def read_json(request: Request, model: type[ModelT]) -> ModelT:
    """The body as a model.

    Raises:
        Problem: 415, another kind of body.
        RequestValidationError: It is no JSON, or not of this form.
    """
    kind = request.headers.get("content-type", "").split(";")[0].strip().lower()
    if kind != "application/json":
        raise Problem(415)
    try:
        body = json.loads(await request.body())
    except (ValueError, RecursionError) as error:
        raise RequestValidationError([{"type": "json_invalid", "loc": ("body",)}]) from error
    try:
        return model.model_validate(body)
    except ValidationError as error:
        found = error.errors(include_input=False, include_context=False, include_url=False)
        raise RequestValidationError(
            [{**item, "loc": ("body", *item["loc"])} for item in found]
        ) from error


def body_of(*kinds: str) -> dict[str, Any]:
    """The OpenAPI description of a body that the framework does not read itself."""
    content = {
        kind: {"schema": {"type": "object" if kind.endswith("json") else "string"}}
        for kind in kinds
    }
    return {"requestBody": {"required": True, "content": content}}
