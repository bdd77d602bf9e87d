"""The recovery code: 130 random bits to be written on paper, and the key they give.

    XXXXX-XXXXX-XXXXX-XXXXX-XXXXX-XC

26 characters of Crockford's base32 (no I, L, O, U) and C, his check character: the number
modulo 37, which finds every single wrong character and every swap of two neighbours.
Source: https://www.crockford.com/base32.html
"""

import secrets
from typing import Final

from app.crypto.kdf import hkdf
from app.crypto.keys import Key

_DIGITS: Final = "0123456789ABCDEFGHJKMNPQRSTVWXYZ"
_CHECKS: Final = _DIGITS + "*~$=U"
_LENGTH: Final = 26
_BITS_PER_DIGIT: Final = 5
_ENTROPY_BITS: Final = _LENGTH * _BITS_PER_DIGIT
_ENTROPY_BYTES: Final = (_ENTROPY_BITS + 7) // 8
_GROUP: Final = 5
_TYPED_LENGTH_MAX: Final = 128  # every character apart, and room to spare
_KEK_LABEL: Final = b"strongroom v1 recovery"

_VALUES: Final = {digit: value for value, digit in enumerate(_DIGITS)}
# Written out rather than by str.upper, which turns some letters outside ASCII into ASCII.
_AS_TYPED: Final = str.maketrans(
    "abcdefghijklmnopqrstuvwxyzILO",
    "ABCDEFGH1JK1MN0PQRSTUVWXYZ110",
    # Blanks and dashes, also those a word processor puts in their place.
    " \t\r\n\u00a0\u2007\u202f-\u2010\u2011\u2012\u2013\u2014\u2212",
)


def generate() -> str:
    """Make a code; shown once and never stored.

    Returns:
        32 characters of ASCII: five groups of five, the last character and the check.
    """
    return _spell(secrets.randbits(_ENTROPY_BITS))


def parse(text: str) -> bytes | None:
    """Read a code as people type it: any case, blanks and dashes, I or L for 1, O for 0.

    Returns:
        The 130 bits as 17 bytes, big-endian; None when it is no code or has a slip in it.
    """
    if len(text) > _TYPED_LENGTH_MAX:
        return None
    code = text.translate(_AS_TYPED)
    if len(code) != _LENGTH + 1:
        return None
    number = 0
    for digit in code[:-1]:
        value = _VALUES.get(digit)
        if value is None:
            return None
        number = number << _BITS_PER_DIGIT | value
    if code[-1] != _CHECKS[number % len(_CHECKS)]:
        return None
    return number.to_bytes(_ENTROPY_BYTES, "big")


def kek(entropy: bytes) -> Key:
    """Derive the key that wraps the store's key in the recovery slot (HKDF-SHA256).

    Args:
        entropy: What `parse` answered.

    Returns:
        The key-encryption key.

    Raises:
        ValueError: Not 17 bytes. The value is not in the message.
    """
    if len(entropy) != _ENTROPY_BYTES:
        message = f"a recovery code is {_ENTROPY_BYTES} bytes"
        raise ValueError(message)
    return hkdf(entropy, _KEK_LABEL)


def _spell(number: int) -> str:
    digits = [
        _DIGITS[number >> place & len(_DIGITS) - 1]
        for place in reversed(range(0, _ENTROPY_BITS, _BITS_PER_DIGIT))
    ]
    code = "".join(digits) + _CHECKS[number % len(_CHECKS)]
    return "-".join(code[at : at + _GROUP] for at in range(0, len(code), _GROUP))
