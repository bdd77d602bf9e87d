"""Queries: any text is one, and finds the notes it should, by the real index."""

import re
import sys
import time
from collections.abc import Callable, Iterator

import pytest
import sqlcipher3  # noqa: TID251 - the truth is asked of the real tokenizer
from hypothesis import given
from hypothesis import strategies as st

from app.db.owner.search_text import TOKEN, WORD, fts_text
from app.owner import search_query
from app.owner.search_query import MAX_CHARACTERS, MAX_TERMS, MAX_TOKENS, build_match, terms

NOTE = (
    'The multi-agent run, it\'s C++ at 50% for @me: a.b (NEAR) "quoted" 日本語 café '
    "x_y l'été naïve AND OR NOT"
)


class Index:
    """The full-text index as stores have it, in memory."""

    def __init__(self) -> None:
        self._connection = sqlcipher3.connect(":memory:", isolation_level=None)
        self._connection.execute(
            "CREATE VIRTUAL TABLE notes USING fts5("
            "path, content, tokenize = 'unicode61 remove_diacritics 2')"
        )
        self._connection.execute("CREATE VIRTUAL TABLE words USING fts5vocab(notes, row)")

    def hold(self, *contents: str) -> None:
        """Hold just these notes, with empty paths."""
        self.hold_prepared(*map(fts_text, contents))

    def hold_prepared(self, *contents: str) -> None:
        """Hold just these texts, given to the tokenizer as they are."""
        self._connection.execute("DELETE FROM notes")
        self._connection.executemany(
            "INSERT INTO notes (path, content) VALUES ('', ?)",
            [(content,) for content in contents],
        )

    def find(self, q: str) -> list[int]:
        """The numbers, from 0, of the notes found, in order."""
        match = build_match(q)
        if match is None:
            return []
        rows = self._connection.execute(
            "SELECT rowid - 1 FROM notes WHERE notes MATCH ? ORDER BY rowid", (match,)
        )
        return [int(row[0]) for row in rows]

    def count_words(self) -> int:
        """How many tokens, repeated ones too, the tokenizer made of the notes held."""
        return int(self._connection.execute("SELECT total(cnt) FROM words").fetchone()[0])

    def close(self) -> None:
        """Let the index go."""
        self._connection.close()


@pytest.fixture(scope="module")
def index() -> Iterator[Index]:
    """One index for the module: each test says what it holds."""
    opened = Index()
    yield opened
    opened.close()


@pytest.fixture
def finds(index: Index) -> Callable[[str, str], bool]:
    """Whether a query finds a note that stands alone in the index."""

    def ask(q: str, content: str) -> bool:
        index.hold(content)
        return index.find(q) == [0]

    return ask


@pytest.mark.parametrize(
    "q",
    [
        *("multi-agent", "it's", "C++", "a.b", "50%", "@me", "NEAR", "NEAR(", "(NEAR)"),
        *("AND OR NOT", "and", "run multi", "cafe", "CAFÉ", "cafe\u0301", "nai\u0308ve", "x_y"),
        *("日本語", "日本", "本語", "日", "本", "語", "日本語。", "「日本」", "日本語 café"),
        *('"日本"', '"語"', '"本語 cafe"', '"multi agent run"', '"quoted"', '""quoted""'),
        *("mul", "caf", "multi-age", "multi agent:", "'run'", "run;--", "run \\", "l'été"),
        *("run*", "^run", "-run", "+run", "{run}", "run:", "run ++ *", "++ run", "— run"),
        *('"run', 'run"', '"quoted', '"" run', "run 😀", "a\u2028b", "the\tMULTI\nagent"),
        *("run\x00", "\x00run", "50\x00at", "\ud800run", "run \udfff"),
    ],
)
def test_a_query_finds_the_note_that_holds_its_words(
    q: str, finds: Callable[[str, str], bool]
) -> None:
    """Punctuation, operators, quotes, accents and scripts never hide a note."""
    assert finds(q, NOTE)


@pytest.mark.parametrize(
    "q",
    [
        pytest.param("agent-multi", id="a term is a phrase"),
        pytest.param('"run multi"', id="quotes keep the order"),
        pytest.param("run absent", id="all words are needed"),
        pytest.param("mult agent", id="only the last word is a prefix"),
        pytest.param('"mult"', id="a phrase is no prefix"),
        pytest.param("ru", id="two characters are no prefix"),
        pytest.param("multi-ag", id="nor at the end of a term"),
        pytest.param("path:run OR run NOT absent", id="operators are words"),
        pytest.param("content : run", id="columns are words"),
        pytest.param("本日", id="pairs keep the order"),
        pytest.param("日語", id="pairs are neighbours"),
        pytest.param('"日 本"', id="spaced characters are no word"),
        pytest.param("x" * 5000, id="a very long word"),
    ],
)
def test_a_query_leaves_out_other_notes(q: str, finds: Callable[[str, str], bool]) -> None:
    """Terms are AND-ed phrases and nothing in them is an operator."""
    assert build_match(q) is not None
    assert not finds(q, NOTE)


@pytest.mark.parametrize(
    "q",
    [
        "",
        " ",
        '"',
        '""',
        '"""',
        "(",
        "*",
        "^",
        "-",
        "++ -- ''",
        "\x00",
        "\ud800",
        "…",
        "—。、",
        "%_%",
    ],
)
def test_nothing_searchable_is_no_query(q: str) -> None:
    """Of punctuation alone no expression is made, and no words to highlight."""
    assert build_match(q) is None
    assert terms(q) == []


@given(st.text(st.characters(exclude_categories=()), max_size=60))
def test_any_text_is_a_valid_query(index: Index, q: str) -> None:
    """No text whatever, surrogates and NUL among them, makes the index raise."""
    index.find(q)


@given(
    st.one_of(
        st.text(max_size=40),
        st.text(st.sampled_from("abé\u0301'\".-+_ \n、 日本語か\u3099한ｶ🦀ह\u093f"), max_size=40),
    ),
    st.data(),
)
def test_a_note_is_found_by_any_of_its_words(index: Index, note: str, data: st.DataObject) -> None:
    """Words copied from a note, in any order, find it unless they are punctuation."""
    words = data.draw(st.permutations(note.replace('"', " ").split()))
    q = " ".join(words[: data.draw(st.integers(0, len(words)))])
    index.hold(q)
    is_searchable = index.count_words() > 0
    index.hold(note)
    assert (index.find(q) == [0]) is is_searchable


@given(st.text(st.sampled_from("日本語猫犬"), min_size=1, max_size=12), st.data())
def test_any_part_of_a_run_finds_it_and_nothing_else_does(
    index: Index, run: str, data: st.DataObject
) -> None:
    """In CJK a note is found by exactly the texts that stand in it."""
    start = data.draw(st.integers(0, len(run) - 1))
    part = run[start : data.draw(st.integers(start + 1, len(run)))]
    other = data.draw(st.text(st.sampled_from("日本語猫犬"), min_size=1, max_size=3))
    index.hold(f"x{run}y")
    for q in (part, f'"{part}"', f"{part}。", other):
        assert (index.find(q) == [0]) is (q.strip('"。') in run)


def test_what_is_dropped_as_punctuation_is_no_word_of_the_tokenizer(index: Index) -> None:
    """Over all of Unicode, no character that the index knows is thrown out of a query."""
    characters = " ".join(map(chr, range(sys.maxunicode + 1)))
    index.hold(WORD.sub("", re.sub("[\ud800-\udfff]", "", characters)))
    assert index.count_words() == 0


def test_a_run_counted_as_one_token_is_one_word_of_the_tokenizer(index: Index) -> None:
    """Over all of Unicode, no letter of a query parts words in the index without being counted."""
    characters = search_query._SPACES.sub("", "".join(map(chr, range(sys.maxunicode + 1))))
    letters = [character for character in characters if character.isalnum()]
    index.hold(" ".join(letters))
    assert index.count_words() == len(letters)


@given(st.text(st.sampled_from("aé-_.'日本か\u3099🦀♥ह\u093f"), min_size=1, max_size=80))
def test_tokens_are_never_undercounted(index: Index, text: str) -> None:
    """The bound on a query's work holds: the tokenizer makes no more than is counted."""
    index.hold(text)
    assert index.count_words() <= len(TOKEN.findall(fts_text(text)))


def test_thirty_two_different_terms_are_used() -> None:
    """Repeated terms count once; what comes after the 32nd different one is not asked for."""
    words = [f"w{number}" for number in range(40)]
    match = build_match("w0 " * 50 + " ".join(words))
    assert match == " ".join(f'"{word}"' for word in words[:MAX_TERMS]) + " *"


@pytest.mark.parametrize(
    "q",
    [
        pytest.param("a." * 3000, id="one term"),
        pytest.param('"' + "a " * 2000 + '"', id="one phrase"),
        pytest.param("語" * 3000, id="one run"),
        pytest.param("a\u19b0" * 2000, id="letters that part words"),
        pytest.param(" ".join("a." * number for number in range(1, 60)), id="many terms"),
    ],
)
def test_a_query_has_a_bounded_number_of_tokens(index: Index, q: str) -> None:
    """The work of one uninterruptible step is bounded whatever is asked."""
    match = build_match(q)
    assert match is not None
    index.hold_prepared(match)
    assert 0 < index.count_words() <= MAX_TOKENS


def test_a_long_text_is_cut_and_still_finds(finds: Callable[[str, str], bool]) -> None:
    """A whole page pasted as a query finds the note it came from."""
    page = " ".join(f"word{number}" for number in range(2000))
    assert len(page) > MAX_CHARACTERS
    assert finds(page, page)
    assert finds("語" * 100, "語" * 100)


def test_the_worst_query_of_the_worst_note_ends_soon(index: Index) -> None:
    """64 times the word that 2 MiB repeat take a second at most; 2,000 times would take many."""
    index.hold("a " * 2**20)
    started = time.process_time()
    assert index.find("a." * 2000) == [0]
    assert time.process_time() - started < 10


@pytest.mark.parametrize(
    ("q", "words"),
    [
        pytest.param("Multi-Agent it's", ["multi", "agent", "it", "s"], id="terms"),
        pytest.param('"Two Words" two', ["two", "words"], id="phrase, and no repeats"),
        pytest.param("CAFÉ", ["cafe"], id="folded"),
        pytest.param("abc日本語", ["abc", "日本語"], id="a run is one word"),
        pytest.param("I🦀", ["i🦀"], id="emoji"),
        pytest.param(" ".join(f"{n}.a{n}.b{n}" for n in range(40)), None, id="bounded"),
    ],
)
def test_the_words_to_highlight_are_folded(q: str, words: list[str] | None) -> None:
    """Highlighting gets plain words, each once, bounded like the query."""
    assert terms(q) == words if words is not None else len(terms(q)) == MAX_TOKENS
