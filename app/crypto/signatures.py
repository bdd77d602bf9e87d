"""Signatures of what webhooks are sent: the Standard Webhooks convention, version 1.

    webhook-signature: v1,<base64 of HMAC-SHA-256(secret, "{id}.{unix seconds}.{body}")>

Several signatures, while a secret is being replaced, stand in one header with spaces between.
https://www.standardwebhooks.com
"""

import base64
import hashlib
import hmac
import secrets
from collections.abc import Sequence
from typing import Final

SECRET_BYTES: Final = 32
_PREFIX: Final = "whsec_"


def new_secret() -> bytes:
    """A random secret of one webhook."""
    return secrets.token_bytes(SECRET_BYTES)


def secret_text(secret: bytes) -> str:
    """A secret as its owner is shown it, once: `whsec_` and base64."""
    return _PREFIX + base64.b64encode(secret).decode("ascii")


def sign(keys: Sequence[bytes], message_id: str, timestamp_s: int, body: bytes) -> str:
    """The header's value: one signature a secret.

    Args:
        keys: The webhook's secrets, the present one first.
        message_id: As in `webhook-id`; the same at every try.
        timestamp_s: As in `webhook-timestamp`, seconds; of this try.
        body: As it is sent.

    Returns:
        ASCII text.
    """
    signed = f"{message_id}.{timestamp_s}.".encode("ascii") + body
    made = (hmac.new(key, signed, hashlib.sha256).digest() for key in keys)
    return " ".join("v1," + base64.b64encode(each).decode("ascii") for each in made)
