"""The one object that holds key material."""

import hmac
import secrets
from collections.abc import Callable
from types import TracebackType
from typing import Final, NoReturn, Self

from typing_extensions import override

KEY_BYTES: Final = 32


class Key:
    """32 secret bytes in one buffer, which can be zeroed.

    It never shows them by accident: `repr` is redacted, and it can be neither copied nor
    pickled. As a context manager it zeroes itself at the end of the block.

    Zeroing reaches this buffer only. What the interpreter or a library copied from it
    before is beyond a Python program; so copies are few and short-lived.

    Args:
        data: Exactly 32 bytes; copied, so the caller may wipe its own.

    Raises:
        ValueError: Not 32 bytes. The value is not in the message.
    """

    __slots__ = ("_data", "_is_zeroed")

    def __init__(self, data: bytes | bytearray) -> None:
        if len(data) != KEY_BYTES:
            message = f"a key is {KEY_BYTES} bytes"
            raise ValueError(message)
        self._data = bytearray(data)
        self._is_zeroed = False

    @classmethod
    def generate(cls) -> Self:
        """Make a key from the operating system's randomness."""
        return cls(secrets.token_bytes(KEY_BYTES))

    @classmethod
    def filled_by(cls, fill: Callable[[bytearray], object]) -> Self:
        """Make a key whose bytes a mechanism writes in place, so that no copy is left behind.

        Args:
            fill: Writes all 32 bytes of the buffer it is given and does not keep it.
                What it raises goes through.

        Returns:
            The key.
        """
        key = cls(bytes(KEY_BYTES))
        fill(key._data)
        return key

    @property
    def is_zeroed(self) -> bool:
        """Whether the bytes are gone; such a key is of no use any more."""
        return self._is_zeroed

    def view(self) -> memoryview:
        """Lend the bytes, without a copy.

        Returns:
            32 bytes, read-only; they turn to zeros at `zero()`.

        Raises:
            ValueError: The key was zeroed.
        """
        self._refuse_zeroed()
        return memoryview(self._data).toreadonly()

    def sqlcipher_raw(self) -> str:
        """Write the key as SQLCipher takes a raw key: `x'` + 64 hex digits + `'`.

        SQLCipher takes any other number of digits for a passphrase, without a word; the
        length is sure here because a Key has no other.
        Source: https://www.zetetic.net/sqlcipher/sqlcipher-api/#key

        Returns:
            67 characters of ASCII, as secret as the key.

        Raises:
            ValueError: The key was zeroed.
        """
        return f"x'{self.view().hex()}'"

    def same_as(self, other: "Key") -> bool:
        """Whether both hold the same bytes, compared in constant time.

        Returns:
            True when they do.

        Raises:
            ValueError: One of them was zeroed.
        """
        return hmac.compare_digest(self.view(), other.view())

    def zero(self) -> None:
        """Overwrite the bytes; doing it again does no harm."""
        self._is_zeroed = True
        self._data[:] = bytes(KEY_BYTES)

    def _refuse_zeroed(self) -> None:
        # Without this an all-zero key would encrypt, and everybody knows that key.
        if self._is_zeroed:
            message = "this key was zeroed"
            raise ValueError(message)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.zero()

    @override
    def __repr__(self) -> str:
        return "Key(zeroed)" if self._is_zeroed else "Key(redacted)"

    @override
    def __reduce__(self) -> NoReturn:
        message = "a key is neither copied nor pickled"
        raise TypeError(message)
