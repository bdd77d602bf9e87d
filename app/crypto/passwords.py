"""The one rule for a password that is being set; at sign-in there is none.

Length and a list, no rules of composition (NIST SP 800-63B, 3.1.1.2).
"""

import unicodedata
from functools import cache
from importlib import resources
from typing import Final

from app.crypto.kdf import PASSWORD_LENGTH_MAX, normalize
from app.errors.inputs import WeakPasswordError

PASSWORD_LENGTH_MIN: Final = 12
"""Characters, after NFC."""

_PATTERN_LENGTH_MAX: Final = 6


def check(password: str, username: str) -> None:
    """Refuse a password that is too short, too long, or among the first to be guessed.

    Args:
        password: As typed; any character may stand in it, blanks too.
        username: The member's, already found valid. It may be no password in any spelling.

    Raises:
        WeakPasswordError: Fewer than 12 or more than 1,024 characters after NFC, a lone
            surrogate, a shipped common password in any case or width, up to six
            characters over and over, or the username.
    """
    try:
        normal = normalize(password).decode()
    except ValueError:
        raise WeakPasswordError from None
    if not PASSWORD_LENGTH_MIN <= len(normal) <= PASSWORD_LENGTH_MAX:
        raise WeakPasswordError
    folded = _fold(normal)
    if folded == _fold(username) or folded in _common_passwords():
        raise WeakPasswordError
    # Case alone makes no difference, but folding it can lengthen a pattern: look at both.
    if _is_pattern(normal) or _is_pattern(normal.casefold()):
        raise WeakPasswordError


def _fold(text: str) -> str:
    return unicodedata.normalize("NFKC", text).casefold()


def _is_pattern(text: str) -> bool:
    # A text of period n equals itself moved by n; the last repetition may be cut short.
    return any(text[period:] == text[:-period] for period in range(1, _PATTERN_LENGTH_MAX + 1))


@cache
def _common_passwords() -> frozenset[str]:
    # Folded, one a line, none shorter than the rule and none that is a mere pattern.
    listed = resources.files("app.crypto").joinpath("common_passwords.txt")
    return frozenset(listed.read_text("utf-8").splitlines())
