"""Answers made of what an operation returned and of nothing else, so that they can be kept."""

from collections.abc import Callable, Mapping
from typing import Any, Final, TypeVar

from fastapi.responses import JSONResponse, Response

from app.web.preconditions import etag

T = TypeVar("T")

OBJECT: Final = dict[str, Any]
"""The form of a JSON answer, for a route's `response_model`."""


def no_content(_result: object) -> Response:
    """204."""
    return Response(status_code=204)


def as_json(
    body_of: Callable[[T], Mapping[str, Any]],
    status: int = 200,
    version_of: Callable[[T], int] | None = None,
) -> Callable[[T], Response]:
    """An answer in JSON.

    Args:
        body_of: Makes its body.
        status: Of HTTP.
        version_of: The version that its ETag is; None for a thing without.

    Returns:
        What makes the answer.
    """

    def render(result: T) -> Response:
        headers = {} if version_of is None else {"ETag": etag(version_of(result))}
        return JSONResponse(dict(body_of(result)), status_code=status, headers=headers)

    return render
