"""Text for the index: CJK in overlapping pairs, all else as it is."""

import re
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.db.owner.search_text import CJK, fold, fts_text, split_cjk

MIB = 2**20


@pytest.mark.parametrize(
    ("text", "prepared"),
    [
        pytest.param("", "", id="empty"),
        pytest.param("Plain text, it's C++.", "Plain text, it's C++.", id="ascii"),
        pytest.param("café Ελλάδα тест", "café Ελλάδα тест", id="other alphabets"),
        pytest.param("हिन्दी ไทย 🦀", "हिन्दी ไทย 🦀", id="other scripts"),
        pytest.param("日", " 日 ", id="one"),
        pytest.param("日本", " 日本 本 ", id="two"),
        pytest.param("日本語", " 日本 本語 語 ", id="three"),
        pytest.param("x日本y", "x 日本 本 y", id="between letters"),
        pytest.param("日本、東京。", " 日本 本 、 東京 京 。", id="punctuation parts runs"),
        pytest.param("ひらカナ漢", " ひら らカ カナ ナ漢 漢 ", id="kana and han are one run"),
        pytest.param("ｶﾀｶ", " ｶﾀ ﾀｶ ｶ ", id="halfwidth"),
        pytest.param("한국어", " 한국 국어 어 ", id="hangul"),
        pytest.param("ㄅㄆ", " ㄅㄆ ㄆ ", id="bopomofo"),
        pytest.param("人々", " 人々 々 ", id="iteration mark"),
        pytest.param("\U00020000\U00030000", " \U00020000\U00030000 \U00030000 ", id="planes"),
    ],
)
def test_the_prepared_form_is_fixed_for_ever(text: str, prepared: str) -> None:
    """Indexes hold these very texts: a change here breaks every store ever written."""
    assert fts_text(text) == prepared


@pytest.mark.parametrize(
    "block",
    [
        *(
            "ᄀᇿ",
            "ꥠꥼ",
            "々〇",
            "ぁゟ",
            "ァヺ",
            "ーヿ",
            "ㇰㇿ",
            "ㄅㄯ",
            "ㆠㆿ",
            "ㄱㆎ",
            "㐀䶿",
            "一鿿",
            "豈龎",
        ),
        *("가힣", "ힰퟻ", "ｦﾟ", "\U0001b000\U0001b16f", "\U00020000\U0002a6df", "\U00030000\U000323af"),
    ],
)
def test_each_block_is_cjk_from_its_first_character_to_its_last(block: str) -> None:
    """The scripts named as CJK are covered whole."""
    assert all(re.fullmatch(CJK, character) for character in block)


def test_ascii_is_passed_through_untouched() -> None:
    """Most notes cost nothing: the very object comes back."""
    text = "word " * MIB
    assert fts_text(text) is text


def test_the_largest_note_is_prepared_soon() -> None:
    """4 MiB of one run take time in proportion to its length."""
    started = time.process_time()
    assert len(fts_text("語" * MIB)) == 3 * MIB
    assert time.process_time() - started < 5


@given(st.text(st.sampled_from("ab é、 日本語한ｶ"), max_size=30))
def test_nothing_is_lost_and_nothing_invented(text: str) -> None:
    """Outside runs every character stays, in order; a run is spelled by its tokens' heads."""
    heads = re.sub(rf"({CJK}){CJK}? ", r"\1", fts_text(text))
    assert heads.replace(" ", "") == text.replace(" ", "")


@pytest.mark.parametrize(
    ("text", "folded"),
    [
        pytest.param("ABC xyz", "abc xyz", id="ascii"),
        pytest.param("CAFÉ e\u0301", "cafe e", id="accents"),
        pytest.param("Straße", "strasse", id="sharp s"),
        pytest.param("\uff21\uff22", "ab", id="fullwidth"),
        pytest.param("\u0386\u03a3", "\u03b1\u03c3", id="greek"),
    ],
)
def test_folding_takes_case_and_accents_off(text: str, folded: str) -> None:
    """Texts that a reader takes for the same word fold to the same."""
    assert fold(text) == folded


@given(st.text(max_size=20), st.text(max_size=20))
def test_folding_the_parts_folds_the_whole(left: str, right: str) -> None:
    """Folding goes character by character, so a folded place can be traced back."""
    assert fold(left) + fold(right) == fold(left + right)


def test_runs_of_cjk_are_set_apart() -> None:
    """For highlighting a run is one word, apart from letters beside it."""
    assert split_cjk("a日本b c").split() == ["a", "日本", "b", "c"]
