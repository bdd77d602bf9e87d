"""A file's bytes under a key of its own: AES-256-GCM in segments, each bound to its place.

    file    = segment 0 | segment 1 | ... | last segment
    segment = ciphertext of 64 KiB (the last one's of the rest) | 128-bit tag

This is the STREAM construction (Hoang, Reyhanitabar, Rogaway, Vizar 2015; age does alike):
a nonce is the segment's number, 88 bits, and a byte that says whether it is the last. So a
file cut short, added to, or with segments in another order does not open. A key is made for
one file and never used for another, so no nonce ever comes twice under it; the associated
data names the use, the form and the file. An empty file is one empty segment.
"""

from typing import Final

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

from app.crypto.keys import Key

SEGMENT_BYTES: Final = 64 * 1024
"""Bytes of content in each segment but the last."""
TAG_BYTES: Final = 16
SEALED_BYTES: Final = SEGMENT_BYTES + TAG_BYTES
"""Bytes of each segment but the last, as it stands in the file."""

_LABEL: Final = b"strongroom file\x00\x01\x00"
_NUMBER_BYTES: Final = 11


class SegmentError(ValueError):
    """The key, the segment and its place do not belong together; the error carries nothing."""

    def __init__(self) -> None:
        super().__init__("this key does not open this segment in this place")


def count(size_bytes: int) -> int:
    """How many segments hold so many bytes of content; at least one."""
    return max(1, -(-size_bytes // SEGMENT_BYTES))


def sealed_size(size_bytes: int) -> int:
    """How many bytes a file of so much content has."""
    return size_bytes + count(size_bytes) * TAG_BYTES


class Segments:
    """Seals and opens the segments of one file."""

    __slots__ = ("_cipher", "_place")

    def __init__(self, key: Key, name: str) -> None:
        """Take the file's key.

        Args:
            key: Made for this file alone; the cipher keeps a copy of its own.
            name: The file's name.
        """
        self._cipher = AESGCM(key.view())
        self._place = _LABEL + name.encode()

    def seal(self, number: int, plaintext: bytes | memoryview, *, is_last: bool) -> bytes:
        """Encrypt one segment; each number once in a file's life.

        Returns:
            16 bytes more than the plaintext.
        """
        return self._cipher.encrypt(_nonce(number, is_last=is_last), plaintext, self._place)

    def open(self, number: int, segment: bytes | memoryview, *, is_last: bool) -> bytes:
        """Decrypt one segment.

        Returns:
            Its content.

        Raises:
            SegmentError: It is damaged, another file's, from another place, or last where it
                must not be, or the reverse.
        """
        try:
            return self._cipher.decrypt(_nonce(number, is_last=is_last), segment, self._place)
        except (InvalidTag, ValueError):
            raise SegmentError from None


def _nonce(number: int, *, is_last: bool) -> bytes:
    return number.to_bytes(_NUMBER_BYTES, "big") + bytes([is_last])
