"""Beginnings of notes, in little room."""

from hypothesis import given
from hypothesis import strategies as st

from app.owner.excerpts import Excerpt, beginning, read_beginnings
from app.owner.notes import Condition, put_note
from tests.support.stores import OwnerFile

TEXTS = st.text(st.sampled_from("ab\né日🎉"), max_size=60)


@given(text=TEXTS, bytes_max=st.integers(0, 90))
def test_a_beginning_is_whole_lines_or_else_whole_characters(text: str, bytes_max: int) -> None:
    """It is a prefix that fits; a longer one of its kind would not."""
    cut = beginning(text, bytes_max)
    assert text.startswith(cut)
    assert len(cut.encode()) <= bytes_max or cut == text == ""
    if cut != text:
        rest = text[len(cut) :]
        more = rest[: rest.find("\n") + 1] if "\n" in cut else rest[0]
        assert not more or len((cut + more).encode()) > bytes_max


def test_a_cut_is_told() -> None:
    """By the size of the whole, not by what came."""
    excerpt = Excerpt("a\nbc", 1, 4, 0)
    assert not excerpt.is_cut
    assert excerpt.within(3) == Excerpt("a\n", 1, 4, 0)
    assert excerpt.within(3).is_cut


def test_the_first_have_the_room_first(store: OwnerFile) -> None:
    """What comes later is cut, or has none; what is not there takes none."""
    with store.write() as tx:
        for key in ("a", "b", "c"):
            put_note(tx, key, f"{key}{key}\n{key}", "x", Condition())
        found = read_beginnings(tx, ["c", "none", "a", "b"], 8)
    assert [e and (e.content, e.is_cut) for e in found] == [
        ("cc\nc", False),
        None,
        ("aa\na", False),
        ("", True),
    ]
