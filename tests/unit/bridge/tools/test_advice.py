"""Places that tools are given, whatever is written for them."""

import contextlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.bridge.tools.advice import memory_of, place_of, require_below
from app.errors.callers import NotFoundError
from app.errors.inputs import InvalidPathError
from app.owner.paths import USER_MEMORY, clean

PARTS = st.sampled_from(["memories", "..", ".", "", "~", "a", "\\", "\0", "user-memory", "e\u0301"])
PATHS = st.one_of(
    st.text(max_size=30),
    st.lists(PARTS, max_size=6).map("/".join),
    st.lists(PARTS, max_size=6).map(lambda parts: "/memories/" + "\\".join(parts)),
)


@given(PATHS)
def test_a_memory_is_the_callers_own_or_nothing(path: str) -> None:
    """No spelling leads elsewhere; what is shown leads back."""
    with contextlib.suppress(NotFoundError, InvalidPathError):
        place = memory_of(path)
        assert place.ref.root == USER_MEMORY
        assert clean(place.ref.display) == place.ref
        assert place.shown.startswith("/memories")
        assert memory_of(place.shown) == place


@given(PATHS)
def test_a_place_is_where_the_path_rules_say(path: str) -> None:
    """There is one reading of a path."""
    try:
        ref = clean(path)
    except (NotFoundError, InvalidPathError) as error:
        with pytest.raises(type(error)):
            place_of(path)
    else:
        assert place_of(path).ref == ref
        assert place_of(path).shown == ref.display


def test_advice_is_no_part_of_what_an_error_prints_as() -> None:
    """It names paths of the caller's, and errors are printed where others read."""
    error = NotFoundError().advised("user-memory/private.md is not there")
    assert "private" not in f"{error} {error!r}"
    assert error.sentence == "user-memory/private.md is not there"
    assert NotFoundError().sentence == str(NotFoundError())


def test_a_root_is_refused_where_a_file_is_needed() -> None:
    """In the words given."""
    with pytest.raises(InvalidPathError) as caught:
        require_below(memory_of("/memories/"), "not this")
    assert caught.value.sentence == "not this"
    require_below(memory_of("/memories/a"), "not this")
