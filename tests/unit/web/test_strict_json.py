"""JSON bodies read strictly: what is refused, and that nothing of it comes back."""

import asyncio
import json

import pytest
from fastapi.exceptions import RequestValidationError
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel
from starlette.types import Message

from app.web.errors import Problem, field_errors
from app.web.strict_json import JSON, JsonRequest, parse, read_json, require_nothing
from app.web.strict_json import require_media_type as require

_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text() | st.floats(allow_nan=False, width=16),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
).filter(lambda value: "Infinity" not in json.dumps(value))


def request(body: bytes = b"", **headers: str) -> JsonRequest:
    """A request with this body; underscores in the names of headers stand for dashes."""
    named = [(name.replace("_", "-").encode(), text.encode()) for name, text in headers.items()]

    async def receive() -> Message:
        return {"type": "http.request", "body": body}

    return JsonRequest({"type": "http", "headers": named, "method": "POST"}, receive)


@given(_VALUES)
def test_whatever_json_says_is_read(value: object) -> None:
    """What a JSON writer wrote is read as it was, escaped or not."""
    assert parse(json.dumps(value).encode()) == value
    assert parse(json.dumps(value, ensure_ascii=False).encode()) == value


REFUSED = {
    "nothing": b"",
    "cut off": b'{"a": "canary',
    "two values": b"{} {}",
    "no UTF-8": b'{"a": "canary\xff"}',
    "UTF-16": '{"a": "canary"}'.encode("utf-16"),
    "a byte order mark": b'\xef\xbb\xbf{"a": 1}',
    "NaN": b'{"a": NaN}',
    "infinity": b"[-Infinity]",
    "a name twice": b'{"canary": 1, "canary": 1}',
    "a name twice, deep": b'[{"a": {"b": 1, "\\u0062": 2}}]',
    "half a pair": b'{"a": "\\ud800"}',
    "the other half": b'["\\uDFFF canary"]',
    "half a pair as a name": b'{"\\udcff": 1}',
    "nesting": b"[" * 100_000,
    "nested objects": b'{"a":' * 50_000,
    "a number without end": b"9" * 5_000,
    "a raw control character": b'["\x01"]',
}


@pytest.mark.parametrize("raw", REFUSED.values(), ids=REFUSED.keys())
def test_what_is_no_json_is_refused_without_being_quoted(raw: bytes) -> None:
    """Each is one and the same error, which has no cause that would quote the body."""
    with pytest.raises(RequestValidationError) as refusal:
        parse(raw)
    assert field_errors(refusal.value.errors()) == [
        {"location": ["body"], "kind": "json_invalid", "message": "The body is not valid JSON."}
    ]
    assert refusal.value.__cause__ is None
    assert "canary" not in str(refusal.value)


def test_an_escaped_pair_is_one_character() -> None:
    """Both halves together are what they stand for."""
    assert parse(b'"\\ud83d\\ude00"') == "\N{GRINNING FACE}"


@pytest.mark.parametrize(
    "kind",
    [
        "application/json",
        "Application/JSON",
        "application/json; charset=UTF-8",
        'application/json ; charset="utf-8"',
    ],
)
def test_json_may_name_its_charset(kind: str) -> None:
    """UTF-8 under each of its spellings is taken."""
    require(request(content_type=kind), JSON)


@pytest.mark.parametrize(
    "headers",
    [
        {},
        {"content_type": "text/plain"},
        {"content_type": "application/json; charset=latin-1"},
        {"content_type": "application/problem+json"},
        {"content_type": "application/json", "content_encoding": "gzip"},
    ],
    ids=["none", "text", "latin-1", "another JSON", "compressed"],
)
def test_another_kind_of_body_is_refused(headers: dict[str, str]) -> None:
    """It is 415, whatever is in it."""
    with pytest.raises(Problem) as refusal:
        require(request(b"", **headers), JSON)
    assert refusal.value.status == 415


@pytest.mark.parametrize("body", [b"", b"{}", b" { } "], ids=["none", "empty", "spaces"])
def test_a_call_without_fields_takes_an_empty_object(body: bytes) -> None:
    """Clients that always send JSON are let be."""
    asyncio.run(require_nothing(request(body, content_type="application/json")))


@pytest.mark.parametrize("body", [b'{"canary": 1}', b"[]", b"null"])
def test_a_call_without_fields_takes_no_field(body: bytes) -> None:
    """What would be passed over is refused, and not named."""
    with pytest.raises(RequestValidationError) as refusal:
        asyncio.run(require_nothing(request(body, content_type="application/json")))
    assert field_errors(refusal.value.errors())[0]["location"] == ["body"]


class Shape(BaseModel):
    """What is read by hand."""

    path: str


def test_a_body_is_read_into_a_model_by_hand() -> None:
    """The fields are as the framework would give them."""
    sent = request(b'{"path": "x"}', content_type="application/json")
    assert asyncio.run(read_json(sent, Shape)).path == "x"


def test_a_body_of_another_form_is_told_by_its_place() -> None:
    """The error says where, and has no cause that would quote the body."""
    sent = request(b'{"path": 17}', content_type="application/json")
    with pytest.raises(RequestValidationError) as refusal:
        asyncio.run(read_json(sent, Shape))
    assert field_errors(refusal.value.errors())[0]["location"] == ["body", "path"]
    assert refusal.value.__cause__ is None
    assert refusal.value.__context__ is None
