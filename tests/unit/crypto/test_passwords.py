import unicodedata
from importlib import resources

import pytest
from hypothesis import assume, example, given
from hypothesis import strategies as st

from app.crypto import passwords
from app.errors.inputs import WeakPasswordError

LISTED = resources.files("app.crypto").joinpath("common_passwords.txt").read_text("utf-8")


@pytest.mark.parametrize(
    "password",
    [
        "correct horse battery staple",
        "long enough password",
        "an even better passphrase",
        "ada has a fine password",
        "twelve chars",
        "\u5bc6\u7801\u662f\u4e00\u4e2a\u5f88\u957f\u7684\u53e5\u5b50\u554a\uff01",
        "\U0001f600\U0001f601\U0001f602\U0001f603\U0001f604\U0001f605" * 2 + "!",
        "a nul \x00 inside",
        "  blanks around  ",
        "ada lovelace and more",
        "e\u0301t\u00e9 \u00e0 la mer, " * 64,
    ],
)
def test_a_long_uncommon_text_is_a_password(password: str) -> None:
    """Any characters will do: blanks, other scripts, signs."""
    passwords.check(password, "ada lovelace")


@pytest.mark.parametrize(
    "password",
    [
        "",
        "eleven char",
        "e\u0301" * 11,
        "x y" * 342,
        "long enough password" * 52,
        "xyz \u0301" * 1_000_000,
        "long enough \ud800 password",
    ],
    ids=["empty", "11", "11 composed", "1026", "1040", "endless", "surrogate"],
)
def test_the_length_is_12_to_1024_characters(password: str) -> None:
    """Counted after NFC; text that cannot be encoded is none."""
    with pytest.raises(WeakPasswordError):
        passwords.check(password, "ada")


def test_both_ends_of_the_length_are_legal() -> None:
    """12 and 1,024 characters pass, one less and one more do not."""
    word = "".join(map(chr, range(0x4E00, 0x4E00 + 1025)))
    passwords.check(word[:12], "ada")
    passwords.check(word[:1024], "ada")
    for length in (11, 1025):
        with pytest.raises(WeakPasswordError):
            passwords.check(word[:length], "ada")


@pytest.mark.parametrize(
    "password",
    [
        "password1234",
        "PassWord1234",
        "\uff50\uff41\uff53\uff53\uff57\uff4f\uff52\uff441234",
        "qwertyuiop123",
        "1qaz2wsx3edc",
        "123456789012",
        "correcthorsebatterystaple",
        "passwordpassword",
        "September2024!",
        "Welcome2025!",
        "abcdefghijklm",
        "iloveyouforever",
    ],
)
def test_a_common_password_is_refused(password: str) -> None:
    """In any case and any width."""
    with pytest.raises(WeakPasswordError):
        passwords.check(password, "ada")


@pytest.mark.parametrize(
    "password",
    ["aaaaaaaaaaaa", "abababababab", "abcabcabcabca", "Abc123aBC123", "\u00e9" * 12, "12 " * 9],
)
def test_a_repeated_pattern_is_refused(password: str) -> None:
    """Up to six characters over and over, the last time perhaps cut short."""
    with pytest.raises(WeakPasswordError):
        passwords.check(password, "ada")


@given(st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=6))
@example("00000\u00df")
def test_no_short_pattern_makes_a_password(pattern: str) -> None:
    """However often it is repeated, in the same case or not."""
    assume(unicodedata.normalize("NFC", pattern * 20) == pattern * 20)
    with pytest.raises(WeakPasswordError):
        passwords.check(pattern * 20, "ada")


@pytest.mark.parametrize(
    "password",
    ["ada lovelace 1815", "ADA Lovelace 1815", "\uff41da lovelace 1815", "ada lovelace\u00a01815"],
)
def test_the_username_is_no_password(password: str) -> None:
    """In none of the spellings that sign in as the same member."""
    with pytest.raises(WeakPasswordError):
        passwords.check(password, "Ada Lovelace 1815")


def test_a_half_width_password_is_not_taken_for_a_pattern() -> None:
    """Twelve characters that a compatibility form would make six are still twelve."""
    passwords.check(
        "\uff76\uff9e\uff77\uff9e\uff78\uff9e\uff79\uff9e\uff7a\uff9e\uff7b\uff9e", "ada"
    )


@given(st.text(st.characters(codec=None), max_size=40), st.text(max_size=20))
def test_a_refusal_shows_nothing(password: str, username: str) -> None:
    """Any text is taken or refused, and the refusal is the one fixed sentence."""
    refusal: WeakPasswordError | None = None
    try:
        passwords.check(password, username)
    except WeakPasswordError as error:
        refusal = error
    assert refusal is None or (str(refusal), refusal.args) == (WeakPasswordError.__doc__, ())


def test_the_list_is_in_the_form_it_is_compared_in() -> None:
    """Sorted, unique, folded, and nothing in it that the other rules refuse anyway."""
    lines = LISTED.splitlines()
    assert len(lines) >= 1000
    assert lines == sorted(set(lines))
    for line in lines:
        assert line == unicodedata.normalize("NFKC", line).casefold()
        assert len(line) >= passwords.PASSWORD_LENGTH_MIN
        assert not passwords._is_pattern(line)
