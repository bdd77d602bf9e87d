"""How text is prepared for the index, for queries and for highlighting.

The index (FTS5, tokenizer `unicode61 remove_diacritics 2`) splits text at spaces and
punctuation. Chinese and Japanese are written without spaces and Korean glues its particles
on, so a word inside a run would never be found. Each character of such a run is therefore
indexed together with the one after it.
"""

import re
import unicodedata
from itertools import filterfalse
from operator import add
from typing import Final

CJK: Final = (
    "["
    "\u1100-\u11ff\ua960-\ua97f"  # Hangul jamo
    "\u3005-\u3007"  # iteration mark, closing mark, zero
    "\u3041-\u309f\u30a1-\u30fa\u30fc-\u30ff\u31f0-\u31ff"  # kana
    "\u3105-\u312f\u31a0-\u31bf"  # bopomofo
    "\u3131-\u318f"  # Hangul compatibility jamo
    "\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff"  # Han
    "\uac00-\ud7ff"  # Hangul syllables, jamo extended-B
    "\uff66-\uffdc"  # halfwidth katakana and Hangul
    "\U0001aff0-\U0001b16f"  # kana extended
    "\U00020000-\U0003ffff"  # Han extensions
    "]"
)
"""One character of a script written without spaces, as a regular expression."""

_SYMBOL = r"[^\w\x00-\xbf\u2000-\u205f\u3000-\u303f]"

WORD: Final = re.compile(rf"(?:[^\W_]|{_SYMBOL})+")
"""A run of characters that may be searchable.

Wider than the tokenizer's words, never narrower: it counts emoji, for example, some of which
the tokenizer takes for letters.
"""

TOKEN: Final = re.compile(rf"[^\W_]+|{_SYMBOL}")
"""A piece of a `WORD`, never longer than the tokenizer's: counting these overcounts tokens."""

_CJK_RUN = re.compile(f"{CJK}+")


def fts_text(text: str) -> str:
    """Prepare text for the full-text index.

    A run of CJK becomes the overlapping pairs of its characters, then its last character,
    with spaces round all: `x日本語` gives `x 日本 本語 語 `. Words of two and more characters
    are then found as phrases of pairs, and single ones as prefixes, for every character
    begins exactly one token. All else stays as it is.

    Never change what this gives, nor the ranges of `CJK`: every index ever written holds its
    results, the index's check compares against it, and a row is deleted from the index by
    passing its old text through here again. It depends on no Unicode tables of the
    interpreter for the same reason. A different preparation is a new function and a
    migration that rebuilds.

    Args:
        text: A note's content or path, any length; linear in time.

    Returns:
        The text for the index; the same object when it is ASCII.
    """
    return text if text.isascii() else _CJK_RUN.sub(_spaced_pairs, text)


def fold(text: str) -> str:
    """Take case, accents and compatibility forms off, to compare text for display.

    Folding two texts and joining them is the same as joining and folding: a place in folded
    text can be traced back. This has nothing to do with the index and may change freely.

    Args:
        text: Any text.

    Returns:
        NFKD without combining marks, case-folded; its length may differ.
    """
    if text.isascii():
        return text.lower()
    decomposed = unicodedata.normalize("NFKD", text)
    return "".join(filterfalse(unicodedata.combining, decomposed)).casefold()


def split_cjk(text: str) -> str:
    """Put spaces round each run of CJK, so that it stands apart from other words."""
    return _CJK_RUN.sub(r" \g<0> ", text)


def _spaced_pairs(match: re.Match[str]) -> str:
    run = match[0]
    return f" {' '.join([*map(add, run, run[1:]), run[-1]])} "
