"""What OpenAPI says of every route beside its own fields: credentials, problems, raw bodies."""

from collections.abc import Mapping
from typing import Any, Final

from fastapi import FastAPI

from app.settings import Settings
from app.web import idempotency
from app.web.callers import UNSAFE
from app.web.errors import CODES, MEDIA_TYPE
from app.web.rules import Rule

_PROBLEM: Final[Mapping[str, Any]] = {
    "type": "object",
    "description": "RFC 9457; nothing that was sent comes back in it.",
    "required": ["type", "title", "status", "detail", "code", "request_id"],
    "properties": {
        "type": {"type": "string"},
        "title": {"type": "string"},
        "status": {"type": "integer"},
        "detail": {"type": "string"},
        "code": {"type": "string", "enum": sorted(CODES)},
        "request_id": {"type": "string"},
        "errors": {
            "type": "array",
            "items": {
                "type": "object",
                "required": ["location", "kind", "message"],
                "properties": {
                    "location": {"type": "array", "items": {"type": ["string", "integer"]}},
                    "kind": {"type": "string"},
                    "message": {"type": "string"},
                },
            },
        },
        "current_version": {"type": ["integer", "string", "null"]},
        "lines": {"type": "array", "items": {"type": "integer"}},
        "first_seq": {"type": "integer"},
        "entry": {"type": ["integer", "null"]},
        "limit": {"type": "string", "enum": ["bytes", "notes"]},
        "limit_max": {"type": "integer"},
        "left": {"type": "integer"},
    },
}


def _answer(description: str) -> dict[str, Any]:
    schema = {"$ref": "#/components/schemas/Problem"}
    return {"description": description, "content": {MEDIA_TYPE: {"schema": schema}}}


PROBLEMS: Final[Mapping[int | str, dict[str, Any]]] = {
    "4XX": _answer("The call is refused, and changed nothing."),
    "5XX": _answer("The service cannot do it, or not now."),
}
_CREDENTIALS: Final[list[dict[str, list[str]]]] = [{"bearer": []}, {"cookie": []}]
_SCHEMES: Final[Mapping[str, Any]] = {
    "bearer": {"type": "http", "scheme": "bearer", "description": "A session's or API token."},
    "cookie": {
        "type": "apiKey",
        "in": "cookie",
        "name": "strongroom_session",
        "description": "`__Host-strongroom_session` behind TLS. Unsafe methods need a matching "
        "Origin, and X-CSRF-Token as `GET /api/session` gives it.",
    },
}


def of_rule(rule: Rule, method: str, extra: Mapping[str, Any] | None) -> dict[str, Any]:
    """A route's part of the description, from its rule and what it says of itself."""
    described = {"security": [] if rule.is_public else _CREDENTIALS, **(extra or {})}
    if method in UNSAFE and rule.repeats == "kept":
        described["parameters"] = [*described.get("parameters", ()), idempotency.DESCRIPTION]
    return described


def raw_body(*kinds: str, fields: type[Any] | None = None) -> dict[str, Any]:
    """A body that the route reads itself: text, or the fields of a model as JSON.

    Args:
        kinds: Media types of the text.
        fields: The model, where JSON is taken as well.

    Returns:
        For a route's `openapi_extra`.
    """
    content: dict[str, Any] = {kind: {"schema": {"type": "string"}} for kind in kinds}
    if fields is not None:
        content["application/json"] = {"schema": fields.model_json_schema()}
    return {"requestBody": {"required": True, "content": content}}


def describe(app: FastAPI, settings: Settings) -> dict[str, Any]:
    """The whole description, with the limits that are set on this box."""
    description = app.openapi()
    components = description.setdefault("components", {})
    components.setdefault("schemas", {})["Problem"] = _PROBLEM
    components["securitySchemes"] = _SCHEMES
    _tell_limits(description, settings)
    return description


def _tell_limits(description: Mapping[str, Any], settings: Settings) -> None:
    """Say what no form can, for it is a setting: see `Figures` and `Settings`."""
    wait = description["components"]["schemas"]["ClaimBody"]["properties"]["wait_s"]
    wait["maximum"] = min(wait["maximum"], settings.job_wait_s)
    for parameter in description["paths"]["/api/events"]["get"]["parameters"]:
        if parameter["name"] == "limit":
            parameter["schema"]["maximum"] = settings.event_page_max
