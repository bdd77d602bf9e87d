"""A secret under a key, bound to its place: AES-256-GCM with associated data.

    blob = version 0x01 | nonce, 96 random bits | ciphertext and 128-bit tag

The associated data names the use, the version and the row. A blob moved to another row,
or from a wrap to a sealed column, does not open; neither does one of a version not known
here. Nonces are random: NIST SP 800-38D, 8.3, allows 2**32 blobs under one key that way,
and a key here makes a few thousand in its life.
"""

import secrets
from dataclasses import dataclass
from typing import Final

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

from app.crypto.keys import KEY_BYTES, Key

_VERSION: Final = b"\x01"
_NONCE_BYTES: Final = 12
_TAG_BYTES: Final = 16
_HEAD_BYTES: Final = len(_VERSION) + _NONCE_BYTES

_WRAP_LABEL: Final = "strongroom wrap"
_SEAL_LABEL: Final = "strongroom seal"


class UnwrapError(ValueError):
    """The key, the blob and the place it stands in do not belong together.

    A wrong password looks like this, and so do a damaged and a moved blob: the tag cannot
    tell them apart, and the error carries nothing.
    """

    def __init__(self) -> None:
        super().__init__("this key does not open this blob in this place")


@dataclass(frozen=True, slots=True)
class Binding:
    """The row a wrapped key belongs to."""

    user_id: str
    """Whose store the key opens."""
    kind: str
    """What opens the wrap: `password`, or a key slot's kind."""
    slot_id: str
    """The row's own id; for the password's wrap, the user's."""


def wrap(kek: Key, dek: Key, binding: Binding) -> bytes:
    """Encrypt a store's key under a key-encryption key.

    Returns:
        61 bytes, different at every call.

    Raises:
        ValueError: One of the keys was zeroed.
    """
    return _wrap(kek, dek, binding, _new_nonce())


def unwrap(kek: Key, blob: bytes, binding: Binding) -> Key:
    """Open what `wrap` made; for the password's wrap this is the password check.

    Returns:
        The store's key.

    Raises:
        UnwrapError: Another key, another row, a damaged blob or an unknown version.
        ValueError: The key-encryption key was zeroed.
    """
    nonce, ciphertext = _split(blob)
    if len(ciphertext) != KEY_BYTES + _TAG_BYTES:
        raise UnwrapError
    cipher = AESGCM(kek.view())
    place = _place_of_wrap(binding)
    try:
        return Key.filled_by(
            lambda buffer: cipher.decrypt_into(nonce, ciphertext, place, buffer),
        )
    except InvalidTag:
        raise UnwrapError from None


def seal(key: Key, plaintext: bytes, *, table: str, column: str, row_id: str) -> bytes:
    """Encrypt one column's secret, for a row of the group's own store.

    Args:
        key: The instance key.
        plaintext: Any length, also none.
        table: The table's name, as in the schema.
        column: The column's name.
        row_id: The row's id.

    Returns:
        29 bytes more than the plaintext, different at every call.

    Raises:
        ValueError: The key was zeroed.
    """
    return _encrypt(key, plaintext, _place_of_seal(table, column, row_id), _new_nonce())


def open_sealed(key: Key, blob: bytes, *, table: str, column: str, row_id: str) -> bytes:
    """Open what `seal` made.

    Returns:
        The plaintext.

    Raises:
        UnwrapError: Another key, another place, a damaged blob or an unknown version.
        ValueError: The key was zeroed.
    """
    nonce, ciphertext = _split(blob)
    cipher = AESGCM(key.view())
    try:
        return cipher.decrypt(nonce, ciphertext, _place_of_seal(table, column, row_id))
    except InvalidTag:
        raise UnwrapError from None


def _wrap(kek: Key, dek: Key, binding: Binding, nonce: bytes) -> bytes:
    return _encrypt(kek, dek.view(), _place_of_wrap(binding), nonce)


def _encrypt(key: Key, plaintext: bytes | memoryview, place: bytes, nonce: bytes) -> bytes:
    return _VERSION + nonce + AESGCM(key.view()).encrypt(nonce, plaintext, place)


def _split(blob: bytes) -> tuple[bytes, bytes]:
    if not blob.startswith(_VERSION) or len(blob) < _HEAD_BYTES + _TAG_BYTES:
        raise UnwrapError
    return blob[len(_VERSION) : _HEAD_BYTES], blob[_HEAD_BYTES:]


def _place_of_wrap(binding: Binding) -> bytes:
    return _place(_WRAP_LABEL, binding.user_id, binding.kind, binding.slot_id)


def _place_of_seal(table: str, column: str, row_id: str) -> bytes:
    return _place(_SEAL_LABEL, table, column, row_id)


def _place(label: str, *names: str) -> bytes:
    # Each part behind its length: no two lists of names give the same bytes, whatever
    # stands in the names.
    parts = [label.encode(), _VERSION, *(name.encode() for name in names)]
    return b"".join(len(part).to_bytes(4, "big") + part for part in parts)


def _new_nonce() -> bytes:
    return secrets.token_bytes(_NONCE_BYTES)
