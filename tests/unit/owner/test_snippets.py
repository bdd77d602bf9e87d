"""Snippets: a short cut round the first place, in bounded time."""

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.owner.search_query import terms
from app.owner.snippets import MAX_SEARCHED, Snippet, snippet

MIB = 2**20


@pytest.mark.parametrize(
    ("content", "q", "expected"),
    [
        pytest.param("a plain note", "plain", Snippet("a plain note", 1), id="whole note"),
        pytest.param("a\n\tb\r\n  word", "word", Snippet("a b word", 3), id="white space"),
        pytest.param("in CAFÉ", "cafe", Snippet("in CAFÉ", 1), id="case and accents"),
        pytest.param("x\ne\u0301te\u0301", "ÉTÉ", Snippet("x e\u0301te\u0301", 2), id="decomposed"),
        pytest.param("ß\nß\nStraße", "strasse", Snippet("ß ß Straße", 3), id="longer when folded"),
        pytest.param("ﬁﬁ\nﬁn", "fin", Snippet("ﬁﬁ ﬁn", 2), id="ligatures"),
        pytest.param("その\n日本語", "本", Snippet("その 日本語", 2), id="inside a run"),
        pytest.param("한\n국어", "국어", Snippet("한 국어", 2), id="hangul"),
        pytest.param("concat\ncat", "cat", Snippet("concat cat", 2), id="where a word begins"),
        pytest.param("a_b\nb", "b", Snippet("a_b b", 1), id="an underscore parts words"),
        pytest.param("multi\nagents", "agent", Snippet("multi agents", 2), id="prefix"),
        pytest.param("two\none", "one two", Snippet("two one", 1), id="the first of any term"),
        pytest.param("a\nb", "zebra", Snippet("a b", 1), id="not there: the beginning"),
        pytest.param("a\nb", "", Snippet("a b", 1), id="no terms: the beginning"),
        pytest.param("", "zebra", Snippet("", 1), id="empty note"),
        pytest.param("a.b (c*", "(c*", Snippet("a.b (c*", 1), id="no patterns"),
    ],
)
def test_the_first_place_is_shown_with_its_line(content: str, q: str, expected: Snippet) -> None:
    """The place is found folded, its line counted from 1, the beginning shown otherwise."""
    assert snippet(content, terms(q)) == expected


def test_a_long_note_is_cut_at_words_on_both_sides() -> None:
    """Ellipses stand where text was cut away, and no word is cut where spaces are."""
    content = "before " * 100 + "zebra " + "after " * 100
    cut = snippet(content, ["zebra"], width=40)
    assert cut == Snippet("…before zebra after after after after…", 1)


def test_text_without_spaces_is_cut_anywhere() -> None:
    """A run longer than the width is cut at the width."""
    cut = snippet("語" * 500 + "猫" + "語" * 500, ["猫"], width=30)
    assert cut == Snippet("…" + "語" * 10 + "猫" + "語" * 19 + "…", 1)


def test_the_start_of_a_note_has_no_ellipsis_before() -> None:
    """A cut that reaches the beginning shows only what is missing after it."""
    assert snippet("word " * 20, [], width=12) == Snippet("word word…", 1)


def test_a_place_far_down_is_found() -> None:
    """Terms are searched in the first 262,144 characters, and not beyond them."""
    content = "é\n" * (MAX_SEARCHED // 2 - 3) + "zebra\n" + "é\n" * 5000 + "wolf"
    assert snippet(content, ["zebra"]).line == MAX_SEARCHED // 2 - 2
    assert snippet(content, ["wolf"]).line == 1


@given(
    st.text(st.one_of(st.sampled_from("ab \n\u0301ßﬁ日本é"), st.characters()), max_size=200),
    st.text(st.sampled_from("abß日本é"), max_size=6),
    st.integers(1, 60),
)
def test_a_snippet_is_a_part_of_its_note(content: str, q: str, width: int) -> None:
    """Never longer than the width and two ellipses, and made of the note's own text."""
    cut = snippet(content, terms(q), width=width)
    assert len(cut.text) <= width + 2
    assert "\n" not in cut.text
    assert cut.text.removeprefix("…").removesuffix("…") in " ".join(content.split()) or (
        "…" in content
    )
    assert 1 <= cut.line <= content.count("\n") + 1


@given(st.text(st.one_of(st.sampled_from("a  \n\u00a0\u2003\u3000\x1f"), st.characters())))
def test_all_white_space_is_one_space(content: str) -> None:
    """Of whatever kind, and none at an end; what is short is shown whole."""
    assert snippet(content, [], width=len(content) + 1).text == " ".join(content.split())


@given(st.text(st.sampled_from("xé \n\u0301ß日"), max_size=300))
def test_a_place_is_traced_back_exactly(before: str) -> None:
    """However folding stretches or shrinks what comes before, line and word are right."""
    cut = snippet(f"{before}\nzebra", ["zebra"])
    assert cut.text.endswith("zebra")
    assert cut.line == before.count("\n") + 2


@pytest.mark.parametrize(
    ("content", "words"),
    [
        pytest.param("word " * (4 * MIB // 5), ["word"], id="one word repeated"),
        pytest.param("word " * (4 * MIB // 5), [f"w{n}" for n in range(64)], id="64 terms absent"),
        pytest.param("ba" * (2 * MIB), ["a"], id="never at a word's start"),
        pytest.param(f"x{'a' * 255_000} {'a' * 2_000}", ["a" * 2_000], id="long, in a word"),
        pytest.param(f"x{'a' * 2_000} " * 120, ["a" * 2_000], id="long, in each word"),
        pytest.param("日本語は難しい。" * (MIB // 6), ["猫"], id="cjk"),
        pytest.param(" " * (4 * MIB), ["a"], id="spaces"),
    ],
)
def test_the_largest_note_is_cut_soon(content: str, words: list[str]) -> None:
    """The time does not grow with the note: 4 MiB take milliseconds, not minutes."""
    started = time.process_time()
    snippet(content, words)
    assert time.process_time() - started < 2
