"""Errors as RFC 9457 problems: the one table from code to status, and nothing of what was sent."""

import json
from collections.abc import Mapping, Sequence
from typing import Any, Final

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect
from starlette.responses import Response
from starlette.types import Receive, Scope, Send
from typing_extensions import override

from app import telemetry
from app.errors.archives import ArchiveError
from app.errors.callers import TooManyAttemptsError
from app.errors.conflicts import (
    AlreadyExistsError,
    EventCursorExpiredError,
    ManyMatchesError,
    VersionConflictError,
)
from app.errors.inputs import InvalidInputError, RangeNotSatisfiableError
from app.errors.root import StrongroomError
from app.errors.stores import QuotaExceededError
from app.web.rules import methods_of

STATUS: Final[Mapping[str, int]] = {
    "authentication_required": 401,
    "invalid_credentials": 401,
    "ambiguous_credentials": 401,
    "not_permitted": 403,
    "denied_by_rule": 403,
    "human_session_required": 403,
    "reauthentication_required": 403,
    "cross_site_request": 403,
    "not_found": 404,
    "not_a_note": 404,
    "invalid_input": 422,
    "invalid_path": 422,
    "weak_password": 422,
    "password_unchanged": 422,
    "invalid_username": 422,
    "invalid_name": 422,
    "invalid_schedule": 422,
    "already_running": 409,
    "turned_off": 409,
    "different_roots": 422,
    "overlapping_edits": 422,
    "recursive_required": 422,
    "idempotency_not_supported": 422,
    "invalid_webhook_url": 422,
    "webhook_target_refused": 422,
    "invalid_idempotency_key": 422,
    "idempotency_key_reused": 422,
    "idempotency_in_progress": 409,
    "idempotency_answer_not_kept": 409,
    "payload_too_large": 413,
    "archive_unreadable": 422,
    "archive_damaged": 422,
    "archive_overlap": 422,
    "archive_encrypted": 422,
    "archive_method": 422,
    "archive_kind": 422,
    "archive_name": 422,
    "archive_duplicate": 422,
    "archive_bomb": 422,
    "archive_too_large": 413,
    "archive_not_text": 422,
    "archive_manifest": 422,
    "conflict": 409,
    "constraint_failed": 409,
    "version_conflict": 412,
    "already_exists": 412,
    "path_conflict": 409,
    "no_match": 409,
    "many_matches": 409,
    "username_taken": 409,
    "name_taken": 409,
    "not_versioned": 409,
    "not_text": 409,
    "already_set_up": 409,
    "last_administrator": 409,
    "key_not_held": 409,
    "store_not_encrypted": 409,
    "lease_lost": 409,
    "job_over": 409,
    "event_log_restarted": 410,
    "event_cursor_expired": 410,
    "event_cursor": 409,
    "event_cursor_ahead": 409,
    "approval_over": 409,
    "too_many_approvals": 429,
    "too_many_streams": 429,
    "too_many_attempts": 429,
    "store_error": 500,
    "store_locked": 423,
    "store_busy": 503,
    "store_migrating": 503,
    "out_of_handles": 503,
    "overloaded": 503,
    "disk_full": 507,
    "quota_exceeded": 507,
    "store_damaged": 500,
    "store_missing": 500,
    "store_swapped": 500,
    "store_too_new": 409,
    "store_migration_failed": 409,
    "store_read_only": 503,
    "file_damaged": 500,
    "blob_differs": 409,
    "range_not_satisfiable": 416,
    "runner_lost": 409,
    "internal_error": 500,
}
"""Status of each code that a request can meet."""

_FRAMEWORK: Final[Mapping[int, tuple[str, str]]] = {
    400: ("malformed_request", "The request cannot be read."),
    404: ("not_found", "There is nothing here for this caller."),
    405: ("method_not_allowed", "This call does not take this method."),
    406: ("not_acceptable", "No form that the caller accepts is on offer."),
    413: ("payload_too_large", "The body is larger than this call takes."),
    415: ("unsupported_media_type", "This call takes another kind of body."),
    421: ("misdirected_request", "This host is not served here."),
}
CODES: Final = frozenset(STATUS) | {code for code, _ in _FRAMEWORK.values()} | {"invalid_request"}
"""Every code that an answer can carry."""

MEDIA_TYPE: Final = "application/problem+json"
REQUEST_ID: Final = "strongroom.request_id"
"""Key of the request's id in its ASGI scope."""


CODE: Final = "strongroom.code"
"""Key of the answer's code in its ASGI scope; absent unless it is a problem."""


class _ProblemResponse(Response):
    """A problem, which leaves its code for whoever counts answers."""

    def __init__(self, code: str, body: str, status: int, headers: Mapping[str, str]) -> None:
        super().__init__(body, status, headers, MEDIA_TYPE)
        self._code = code

    @override
    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        scope[CODE] = self._code
        await super().__call__(scope, receive, send)


class Problem(Exception):  # noqa: N818 - it is the answer, not a fault of the program
    """An answer decided in the web layer itself."""

    def __init__(self, status: int) -> None:
        super().__init__()
        self.status = status


def problem(
    status: int,
    code: str,
    detail: str,
    request_id: str,
    *,
    headers: Mapping[str, str] | None = None,
    **more: Any,  # noqa: ANN401 - extension members
) -> Response:
    """One problem as a response.

    Args:
        status: Of HTTP.
        code: Stable, for programs.
        detail: For a person; a fixed sentence.
        request_id: Correlates with the log.
        headers: More of them.
        more: Extension members, as `current_version`.

    Returns:
        The response.
    """
    body = {
        "type": "about:blank",
        "title": code.replace("_", " ").capitalize(),
        "status": status,
        "detail": detail,
        "code": code,
        "request_id": request_id,
        **more,
    }
    return _ProblemResponse(code, json.dumps(body), status, dict(headers or {}))


def response_to(
    error: StrongroomError, request_id: str, fields: Sequence[dict[str, Any]] = ()
) -> Response:
    """The problem that an error of the program is to a client; `fields` says where it lies."""
    status = STATUS.get(error.code, 500)
    headers = _headers_of(error)
    more: dict[str, Any] = {"errors": fields} if fields else {}
    if isinstance(error, VersionConflictError | AlreadyExistsError):
        more["current_version"] = error.current_version
        if error.current_version is not None:
            headers["ETag"] = f'"{error.current_version}"'
    if isinstance(error, ManyMatchesError):
        more["lines"] = error.lines
    if isinstance(error, EventCursorExpiredError):
        more["first_seq"] = error.first_seq
    if isinstance(error, ArchiveError):
        more["entry"] = error.entry
    if isinstance(error, QuotaExceededError):
        more |= {"limit": error.limit, "limit_max": error.limit_max, "left": error.left}
    if status == 401:  # noqa: PLR2004 - RFC 9110, 11.6.1
        headers["WWW-Authenticate"] = "Bearer"
    return problem(status, error.code, error.sentence, request_id, headers=headers, **more)


def _headers_of(error: StrongroomError) -> dict[str, str]:
    headers: dict[str, str] = {}
    retry_after_s = getattr(error, "retry_after_s", None)
    if retry_after_s is not None:
        headers["Retry-After"] = str(retry_after_s)
    if isinstance(error, TooManyAttemptsError):
        # draft-ietf-httpapi-ratelimit-headers: nothing is left of the quota for so long.
        headers["RateLimit"] = f'"attempts";r=0;t={error.retry_after_s}'
    if isinstance(error, RangeNotSatisfiableError):
        headers["Content-Range"] = f"bytes */{error.size_bytes}"
    return headers


def framework_problem(
    status: int, request_id: str, headers: Mapping[str, str] | None = None
) -> Response:
    """The problem for an answer that no operation gave: routing, methods, media types."""
    code, detail = _FRAMEWORK.get(status, _FRAMEWORK[400])
    return problem(status, code, detail, request_id, headers=headers)


def unexpected_problem(request_id: str) -> Response:
    """The problem for an error that nobody foresaw; what it was is on record, not here."""
    return problem(500, "internal_error", "Something went wrong here; it is on record.", request_id)


def field_errors(errors: Sequence[Any]) -> list[dict[str, Any]]:
    """Where and what kind, never what was sent: names the client made up are left out."""
    return [
        {
            "location": _known_part(item["loc"], item["type"]),
            "kind": item["type"],
            "message": _MESSAGES.get(item["type"], "This cannot be taken here."),
        }
        for item in errors
    ]


def _fields_of(request: Request, error: StrongroomError) -> list[dict[str, Any]]:
    """The field that an operation could not take, in the form of `field_errors`."""
    if not isinstance(error, InvalidInputError) or error.field is None:
        return []
    is_json = request.headers.get("content-type", "").startswith("application/json")
    location = ["body" if is_json else "query", error.field]
    return [{"location": location, "kind": error.code, "message": error.sentence}]


_MESSAGES: Final[Mapping[str, str]] = {
    "missing": "This is required.",
    "extra_forbidden": "There is no such field here, or it is there twice.",
    "json_invalid": "The body is not valid JSON.",
    "not_utf_8": "This is not UTF-8.",
    "string_type": "A text is needed.",
    "bool_type": "true or false is needed.",
    "int_type": "A whole number is needed.",
    "list_type": "A list is needed.",
    "string_too_short": "This is too short.",
    "string_too_long": "This is too long.",
    "literal_error": "This is none of the values possible.",
}


_MAPS: Final = frozenset({"metadata", "params", "values"})
"""Fields whose names inside are the client's."""


def _known_part(location: Sequence[int | str], kind: str) -> list[int | str]:
    """The location without names that came from the client: an unknown field's, a map's keys."""
    parts = list(location)
    if kind == "extra_forbidden":
        parts = parts[:-1]
    for index, part in enumerate(parts):
        if part in _MAPS:
            return parts[: index + 1]
    return parts


def request_id_of(request: Request) -> str:
    """The id every answer to this request carries."""
    return str(request.scope.get(REQUEST_ID, ""))


def _route_of(request: Request) -> str:
    route = request.scope.get("route")
    return f"{request.method} {getattr(route, 'path', 'unrouted')}"


async def _on_strongroom(request: Request, error: StrongroomError) -> Response:
    answer = response_to(error, request_id_of(request), _fields_of(request, error))
    if answer.status_code >= 500:  # noqa: PLR2004 - the server's own faults
        telemetry.request_failed(_route_of(request), error.code, request_id_of(request))
    return answer


async def _on_validation(request: Request, error: RequestValidationError) -> Response:
    found = error.errors()
    if any(item["loc"][0] == "path" for item in found):
        # What a path cannot name is not there.
        return framework_problem(404, request_id_of(request))
    return problem(
        422,
        "invalid_request",
        "Fields of the request cannot be taken; see errors.",
        request_id_of(request),
        errors=field_errors(found),
    )


async def _on_http(request: Request, error: HTTPException) -> Response:
    headers = None
    if error.status_code == 405:  # noqa: PLR2004 - RFC 9110, 15.5.6
        headers = {"Allow": ", ".join(methods_of(request.scope["route"].path))}
    return framework_problem(error.status_code, request_id_of(request), headers)


async def _on_problem(request: Request, error: Problem) -> Response:
    return framework_problem(error.status, request_id_of(request))


async def _on_gone(request: Request, _error: ClientDisconnect) -> Response:
    return framework_problem(400, request_id_of(request))


async def _on_unexpected(request: Request, _error: Exception) -> Response:
    return unexpected_problem(request_id_of(request))


_HANDLERS: Final[Mapping[type[Exception], Any]] = {
    StrongroomError: _on_strongroom,
    RequestValidationError: _on_validation,
    HTTPException: _on_http,
    Problem: _on_problem,
    ClientDisconnect: _on_gone,
    Exception: _on_unexpected,
}


def install(app: FastAPI) -> None:
    """Answer every error as a problem."""
    for kind, handler in _HANDLERS.items():
        app.add_exception_handler(kind, handler)
