"""What a person types becomes a full-text query: any text is a valid one.

User text stands in the MATCH expression only between double quotes, where FTS5 gives no
character but the quote itself a meaning. There the index's own tokenizer splits it, so
`multi-agent` is the phrase `multi agent` exactly as it is in the notes, and a quoted text
without a token is left out of the AND.
"""

import re
from itertools import islice
from typing import Final, NamedTuple

from app.db.owner.search_text import CJK, TOKEN, WORD, fold, fts_text, split_cjk

MAX_CHARACTERS: Final = 4096
"""Characters of a query that are looked at."""

MAX_TERMS: Final = 32
"""Different terms of a query that are used."""

MAX_TOKENS: Final = 32
"""Tokens that are used, over all terms.

A phrase costs its tokens times their places in a note, in one step that nothing interrupts:
on 4 MiB of one word, ranked, 32 tokens take 3 s on a slow core, 64 take 7.
"""

MIN_PREFIX_CHARACTERS: Final = 3

_TERM = re.compile(r'"(?P<phrase>[^"]*)"|(?P<word>[^\s"]+)')

# Read as spaces: NUL, which ends an expression; lone surrogates, which no UTF-8 holds; and the
# letters that were marks in the tokenizer's Unicode (6.1) and part words there, uncounted.
_SPACES = re.compile("[\x00\ud800-\udfff\u19b0-\u19c0\u19c8\u19c9\u1cf2\u1cf3]")
_CJK_CHARACTER = re.compile(CJK)

# A run that ends a term: its last pair, one space (between runs there are more), its last
# character. The pairs say it all; that character would demand that the note's run ends there.
_RUN_END = re.compile(rf"({CJK}) \1 \W*$")


class _Term(NamedTuple):
    text: str
    quoted: bool


def build_match(q: str) -> str | None:
    """Build the FTS5 MATCH expression that finds notes with all the terms of a query.

    Terms are split by white space; text between two double quotes is one phrase, a single
    stray quote is punctuation. The last term, unless quoted, also matches longer words when
    its last word has at least 3 characters. A CJK character alone matches inside any run.

    Args:
        q: What was typed, any text whatever; the first 4,096 characters, 32 different terms
            and 32 tokens count.

    Returns:
        The expression, for an index of texts made by `fts_text`; None when nothing
        searchable is there.
    """
    split = _split(q)
    budget = MAX_TOKENS
    phrases: list[str] = []
    for number, term in enumerate(split, start=1):
        is_last = number == len(split) and not term.quoted
        phrase, tokens = _phrase(term.text, budget, is_last=is_last)
        phrases.append(phrase)
        budget -= tokens
        if budget == 0:
            break
    return " ".join(phrases) or None


def terms(q: str) -> list[str]:
    """The words of a query, for highlighting.

    Args:
        q: What was typed, as for `build_match`.

    Returns:
        Different words folded by `fold`, at most 32, in the order typed; a run of CJK is one.
    """
    words = (word for term in _split(q) for word in WORD.findall(fold(split_cjk(term.text))))
    return list(islice(dict.fromkeys(words), MAX_TOKENS))


def _split(q: str) -> list[_Term]:
    """The different terms that hold anything searchable, in order, at most 32."""
    readable = _SPACES.sub(" ", q[:MAX_CHARACTERS])
    found = (
        _Term(match["phrase"] or match["word"], quoted=match["word"] is None)
        for match in _TERM.finditer(readable)
        if WORD.search(match[0])
    )
    return list(islice(dict.fromkeys(found), MAX_TERMS))


def _phrase(text: str, budget: int, *, is_last: bool) -> tuple[str, int]:
    """Quote a term of at most `budget` tokens; answer how many it has."""
    spaced = _RUN_END.sub(r"\1", fts_text(text))
    tokens = list(islice(TOKEN.finditer(spaced), budget))
    begins_token = _CJK_CHARACTER.fullmatch(tokens[-1][0]) is not None
    is_long = len(WORD.findall(spaced)[-1]) >= MIN_PREFIX_CHARACTERS
    star = " *" if begins_token or (is_last and is_long) else ""
    return f'"{spaced[: tokens[-1].end()]}"{star}', len(tokens)
