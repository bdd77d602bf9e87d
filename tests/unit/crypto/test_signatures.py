"""Signatures of webhooks, held against the convention's own verifier."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from standardwebhooks.webhooks import Webhook, WebhookVerificationError

from app.clock import system_clock
from app.crypto import signatures


def _headers(value: str, now_s: int) -> dict[str, str]:
    return {
        "webhook-id": "msg-1",
        "webhook-timestamp": str(now_s),
        "webhook-signature": value,
    }


@given(body=st.dictionaries(st.text(max_size=9), st.integers()).map(lambda d: repr(d).encode()))
def test_the_verifier_takes_what_is_signed_and_nothing_else(body: bytes) -> None:
    """By each of two secrets, while one replaces the other; by no third, nor another body."""
    payload = b'{"body": %d}' % len(body)
    old, new, other = (signatures.new_secret() for _ in range(3))
    now_s = system_clock() // 1000
    headers = _headers(signatures.sign([new, old], "msg-1", now_s, payload), now_s)
    for secret in (old, new):
        Webhook(signatures.secret_text(secret)).verify(payload, headers)
    with pytest.raises(WebhookVerificationError):
        Webhook(signatures.secret_text(other)).verify(payload, headers)
    with pytest.raises(WebhookVerificationError):
        Webhook(signatures.secret_text(new)).verify(payload + b" ", headers)


def test_a_secret_is_long_and_random() -> None:
    """32 bytes, told apart by its prefix."""
    texts = {signatures.secret_text(signatures.new_secret()) for _ in range(50)}
    assert len(texts) == 50
    assert all(text.startswith("whsec_") and len(text) == 6 + 44 for text in texts)
