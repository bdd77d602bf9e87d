"""What every refusal must be."""

import socket
from typing import Any, Final

import httpx

from app.web.errors import CODES
from tests.support.clients import code_of
from tests.support.service import LiveService

CANARY: Final = "canary-7f3a91"
"""Sent where it will be refused; it must never come back."""


def require_problem(answer: httpx.Response, status: int, code: str) -> dict[str, Any]:
    """The body of a problem with this status and code, in which nothing sent comes back."""
    assert (answer.status_code, code_of(answer)) == (status, code), answer.text
    assert answer.headers["content-type"] == "application/problem+json"
    found: dict[str, Any] = answer.json()
    assert found["status"] == status
    assert found["code"] in CODES
    assert found["request_id"] == answer.headers["x-request-id"]
    assert CANARY not in answer.text
    assert all(set(item) == {"location", "kind", "message"} for item in found.get("errors", []))
    return found


def raw_call(service: LiveService, head: bytes, body: bytes = b"") -> bytes:
    """Send bytes; what comes back until the server closes."""
    url = service.client.base_url
    with socket.create_connection((url.host, url.port or 0), timeout=20) as wire:
        wire.sendall(head + b"Connection: close\r\n\r\n" + body)
        found = b""
        while part := wire.recv(65_536):
            found += part
    return found
