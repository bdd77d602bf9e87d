"""ETags and the conditions made with them."""

import pytest
from fastapi import Request
from hypothesis import given
from hypothesis import strategies as st

from app.errors.inputs import InvalidInputError
from app.owner.notes import Condition
from app.web.preconditions import condition_of, etag, is_known, match_of


def request(**headers: str | list[str]) -> Request:
    """A request with these headers; underscores in their names stand for dashes."""
    pairs = [
        (name.replace("_", "-").encode(), text.encode("latin-1"))
        for name, texts in headers.items()
        for text in ([texts] if isinstance(texts, str) else texts)
    ]
    return Request({"type": "http", "headers": pairs})


@pytest.mark.parametrize(
    ("match", "versions"),
    [
        ('"3"', {3}),
        (' "3" ', {3}),
        ('"3", "14"', {3, 14}),
        (',"3",, "14" ,', {3, 14}),
        (['"3"', '"4"'], {3, 4}),
        ('W/"3"', set()),
        ('W/"3", "4"', {4}),
        ('"abc"', set()),
        ('"a,b", "5"', {5}),
        ('"03"', set()),
        ('"0"', set()),
        ('"-1"', set()),
        ('""', set()),
        ('"1234567890123456789"', set()),
        ('"\xe9"', set()),
    ],
)
def test_if_match_names_versions(match: str | list[str], versions: set[int]) -> None:
    """A weak tag, or one that was never given, matches nothing: If-Match compares strongly."""
    assert condition_of(request(if_match=match)) == Condition(match=frozenset(versions))
    assert match_of(request(if_match=match)) == frozenset(versions)


def test_a_star_asks_for_any_version() -> None:
    """`If-Match: *` wants a note, `If-None-Match: *` wants none."""
    assert condition_of(request(if_match="*")) == Condition(must_exist=True)
    assert condition_of(request(if_none_match=" * ")) == Condition(must_not_exist=True)
    assert match_of(request(if_match="*")) is None


def test_no_header_asks_for_nothing() -> None:
    """A write without a condition goes through."""
    assert condition_of(request()) == Condition()
    assert match_of(request()) is None


GARBAGE = ["", "3", '"3', '3"', '"3" "4"', "*, *", '"3", *', "W/3", 'w/"3"', '"a b"', ", ,"]


@pytest.mark.parametrize("match", GARBAGE)
def test_a_condition_that_cannot_be_read_is_refused(match: str) -> None:
    """It is not passed over: the write would go through unguarded."""
    with pytest.raises(InvalidInputError):
        condition_of(request(if_match=match))


@pytest.mark.parametrize("none", ['"3"', "", "garbage"])
def test_a_write_takes_if_none_match_only_with_a_star(none: str) -> None:
    """Anything else is refused."""
    with pytest.raises(InvalidInputError):
        condition_of(request(if_none_match=none))


def test_both_conditions_at_once_are_refused() -> None:
    """They cannot both be meant."""
    with pytest.raises(InvalidInputError):
        condition_of(request(if_match="*", if_none_match="*"))


def test_what_is_always_there_takes_no_if_none_match() -> None:
    """It could never hold."""
    with pytest.raises(InvalidInputError):
        match_of(request(if_none_match="*"))


@pytest.mark.parametrize(
    ("none", "known"),
    [
        ('"3"', True),
        ('W/"3"', True),
        ('"1", "3"', True),
        (['"1"', '"3"'], True),
        ("*", True),
        ('"33"', False),
        ('"1", "2"', False),
        ("3", False),
        ('"3', False),
        ("", False),
    ],
)
def test_a_reader_may_know_the_version(none: str | list[str], *, known: bool) -> None:
    """If-None-Match compares weakly; what cannot be read says nothing."""
    assert is_known(request(if_none_match=none), 3) is known


def test_a_reader_without_the_header_knows_nothing() -> None:
    """The answer is the whole."""
    assert not is_known(request(), 3)


@given(st.integers(1, 10**18 - 1))
def test_every_etag_is_a_condition(version: int) -> None:
    """What an answer gives, a write takes."""
    assert match_of(request(if_match=etag(version))) == frozenset({version})


@given(st.text(st.characters(max_codepoint=255, exclude_characters="\r\n"), max_size=40))
def test_any_header_is_read_or_refused(text: str) -> None:
    """Nothing else can come of it."""
    try:
        condition_of(request(if_match=text))
    except InvalidInputError:
        assert text.strip(" \t") != "*"
