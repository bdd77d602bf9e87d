"""The form of a note that a caller would rather have."""

import pytest
from fastapi import Request

from app.web.accept import chosen_form
from app.web.errors import Problem


def request(*accept: str) -> Request:
    """A request with these Accept headers."""
    headers = [(b"accept", text.encode("latin-1")) for text in accept]
    return Request({"type": "http", "headers": headers})


@pytest.mark.parametrize(
    ("accept", "form"),
    [
        ((), "text"),
        (("",), "text"),
        (("*/*",), "text"),
        (("text/*",), "text"),
        (("text/markdown",), "text"),
        (("TEXT/Plain; charset=utf-8",), "text"),
        (("application/json",), "json"),
        (("application/*",), "json"),
        (("application/json", "text/markdown"), "json"),
        (("text/markdown, application/json",), "text"),
        (("application/json, text/plain, */*",), "json"),
        (("application/json;q=0.5, text/markdown",), "text"),
        (("text/*;q=0.1, application/json;q=0.2",), "json"),
        (("text/markdown;q=0, */*",), "json"),
        (("application/json;q=0, */*;q=0.1",), "text"),
        (("text/html, application/xhtml+xml, */*;q=0.8",), "text"),
        (("*/*, application/json;q=0.9",), "text"),
        (("text/html, application/json;q=nonsense",), "json"),
    ],
)
def test_the_form_follows_quality_then_order(accept: tuple[str, ...], form: str) -> None:
    """The most specific range of each form counts."""
    assert chosen_form(request(*accept)) == form


@pytest.mark.parametrize(
    "accept", ["text/html", "application/xml", "*/*;q=0", "garbage", "text/markdown;q=0.000"]
)
def test_a_caller_who_takes_neither_is_told(accept: str) -> None:
    """It is 406."""
    with pytest.raises(Problem) as refusal:
        chosen_form(request(accept))
    assert refusal.value.status == 406
