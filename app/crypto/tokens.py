"""Bearer tokens: `sr_<kind>_<id>_<secret>`, and all that is derived from their secret.

The secret is 256 random bits. The registry keeps only its SHA-256, which cannot be
guessed backwards; the slot key and the CSRF token come from it under labels of their own,
so none of the three tells another.
"""

import hashlib
import hmac
import re
import secrets
from base64 import urlsafe_b64encode
from binascii import a2b_base64
from dataclasses import dataclass
from typing import Final

from typing_extensions import override

from app.crypto.kdf import hkdf
from app.crypto.keys import Key
from app.ids import is_uuid

KINDS: Final = ("session", "token", "invite", "setup")

_SECRET_BYTES: Final = 32
_SLOT_LABEL: Final = b"strongroom v1 slot "
_CSRF_LABEL: Final = b"strongroom v1 csrf"

# The secret's own alphabet has `_`: every part before it has a fixed form, so the match
# splits from the left. 43 characters carry two bits more than 32 bytes; the last character
# is one of the sixteen in which they are zero, so that a secret has one spelling.
_TOKEN = re.compile(
    rf"sr_({'|'.join(KINDS)})"
    r"_([0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12})"
    r"_([A-Za-z0-9_-]{42}[AEIMQUYcgkosw048])"
)


@dataclass(frozen=True, slots=True, repr=False)
class Token:
    """A token taken apart. Its `repr` is redacted; only `text()` spells it out."""

    kind: str
    """One of `KINDS`."""
    id: str
    """The row it names, a canonical UUID."""
    secret: bytes
    """32 bytes. Compare by `verifier_matches`, never by `==`."""

    def text(self) -> str:
        """Spell the token out, to be shown once to the one it is for."""
        return f"sr_{self.kind}_{self.id}_{_base64url(self.secret)}"

    @override
    def __repr__(self) -> str:
        return f"Token(kind={self.kind!r}, id={self.id!r}, secret=redacted)"


def mint(kind: str, id: str) -> Token:  # noqa: A002 - the same word as the token's field
    """Make a token with a new random secret.

    Args:
        kind: One of `KINDS`.
        id: The row it will name, a canonical UUID.

    Returns:
        The token.

    Raises:
        ValueError: The kind or the id is none.
    """
    if kind not in KINDS or not is_uuid(id):
        message = "a token needs a known kind and a canonical UUID"
        raise ValueError(message)
    return Token(kind, id, secrets.token_bytes(_SECRET_BYTES))


def parse(text: str | bytes) -> Token | None:
    """Take a token apart.

    Args:
        text: As sent; bytes as a header brings them.

    Returns:
        The token, or None for anything that `Token.text` would not have written.
    """
    if isinstance(text, bytes):
        text = text.decode("latin-1")  # cannot fail; what is not ASCII does not match
    found = _TOKEN.fullmatch(text)
    if found is None:
        return None
    kind, row_id, secret = found.groups()
    # Twice as fast as urlsafe_b64decode; the match has let nothing else through.
    return Token(kind, row_id, a2b_base64(secret.replace("-", "+").replace("_", "/") + "="))


def verifier(secret: bytes) -> bytes:
    """Hash a secret for the registry: SHA-256.

    No slow hash and no salt are needed: nobody guesses 256 random bits.

    Returns:
        32 bytes, which opens nothing.
    """
    return hashlib.sha256(secret).digest()


def verifier_matches(secret: bytes, stored: bytes) -> bool:
    """Whether the secret is the one of this verifier, in constant time."""
    return hmac.compare_digest(verifier(secret), stored)


def slot_kek(token: Token) -> Key:
    """Derive the key that wraps the store's key in this token's slot (HKDF-SHA256)."""
    return hkdf(token.secret, _SLOT_LABEL + token.kind.encode() + token.id.encode())


def csrf_token(secret: bytes) -> str:
    """Derive the CSRF token of a session: an HMAC-SHA256, 43 URL-safe characters."""
    return _base64url(hmac.digest(secret, _CSRF_LABEL, "sha256"))


def csrf_matches(secret: bytes, text: str) -> bool:
    """Whether the text is the session's CSRF token, in constant time; any text may come."""
    return hmac.compare_digest(csrf_token(secret).encode(), text.encode(errors="replace"))


def _base64url(data: bytes) -> str:
    return urlsafe_b64encode(data).rstrip(b"=").decode()
