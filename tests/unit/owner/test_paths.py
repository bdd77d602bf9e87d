"""Paths: one canonical form, one root, and no way out of it."""

import unicodedata

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from app.errors.callers import NotFoundError
from app.errors.inputs import InvalidPathError
from app.errors.root import StrongroomError
from app.owner.paths import (
    MAX_DEPTH,
    MAX_NAME_BYTES,
    MAX_PATH_BYTES,
    SHARED_MEMORY,
    USER_MEMORY,
    PathRef,
    clean,
    is_under,
    parents,
)
from tests.support.matrix import chosen

_PIECES = st.sampled_from(
    [
        *(
            "/",
            "//",
            "\\",
            ".",
            "..",
            "~",
            "...",
            "a",
            "b.md",
            ".c",
            " ",
            "é",
            "e\u0301",
            "日本",
            "\u212b",
        ),
        *(
            "user-memory",
            "shared-memory",
            "user-memoryish",
            "\u0958" * 30,
            "\x00",
            "\x85",
            "\ud800",
        ),
    ]
)
_SPELLINGS = st.one_of(
    st.lists(_PIECES, max_size=12).map("".join),
    st.lists(_PIECES, max_size=12).map("/".join),
    st.lists(_PIECES, max_size=40).map(lambda parts: "/".join(["user-memory", *parts])),
    st.text(max_size=40).map(lambda text: f"shared-memory/{text}"),
)


@pytest.mark.parametrize(
    ("text", "root", "key"),
    [
        pytest.param("user-memory/a.md", USER_MEMORY, "a.md", id="plain"),
        pytest.param("shared-memory/a/b c.md", SHARED_MEMORY, "a/b c.md", id="shared"),
        pytest.param("user-memory", USER_MEMORY, "", id="root"),
        pytest.param("user-memory/", USER_MEMORY, "", id="root with slash"),
        pytest.param("/user-memory/a", USER_MEMORY, "a", id="leading slash"),
        pytest.param("~/user-memory/a", USER_MEMORY, "a", id="leading tilde"),
        pytest.param("//./~//user-memory/a", USER_MEMORY, "a", id="all that leads"),
        pytest.param("user-memory/~/a", USER_MEMORY, "~/a", id="tilde inside is a name"),
        pytest.param("user-memory//a///b/", USER_MEMORY, "a/b", id="empty components"),
        pytest.param("./user-memory/./a/.", USER_MEMORY, "a", id="dot components"),
        pytest.param("user-memory\\a\\b", USER_MEMORY, "a/b", id="backslashes"),
        pytest.param("user-memory/x/../a", USER_MEMORY, "a", id="up"),
        pytest.param("user-memory/../../a", USER_MEMORY, "a", id="up is clamped"),
        pytest.param("user-memory\\..\\..\\a", USER_MEMORY, "a", id="up by backslash"),
        pytest.param("user-memory/a/..", USER_MEMORY, "", id="trailing up"),
        pytest.param(
            "user-memory/../shared-memory/a", USER_MEMORY, "shared-memory/a", id="up to a root"
        ),
        pytest.param("user-memory/.hidden", USER_MEMORY, ".hidden", id="hidden name"),
        pytest.param("user-memory/...", USER_MEMORY, "...", id="three dots are a name"),
        pytest.param("user-memory/a/..b", USER_MEMORY, "a/..b", id="two dots begin a name"),
        pytest.param("user-memory/%2e%2e/a", USER_MEMORY, "%2e%2e/a", id="percent stays"),
        pytest.param("user-memory/e\u0301", USER_MEMORY, "\xe9", id="composed"),
        pytest.param("user-memory/日本.md", USER_MEMORY, "日本.md", id="beyond ascii"),
        pytest.param("user-memory/a\u202eb\u2028c", USER_MEMORY, "a\u202eb\u2028c", id="format"),
    ],
)
def test_every_spelling_has_one_canonical_form(text: str, root: str, key: str) -> None:
    """Separators, dots, composition and what leads a path never make a second note."""
    assert clean(text) == PathRef(root, key)


@pytest.mark.parametrize(
    "text",
    [
        *(
            "",
            "/",
            ".",
            "..",
            "~",
            "~/",
            "../user-memory/a",
            "./../user-memory",
            "~/../user-memory/a",
        ),
        *(
            "user-memoryish/x",
            "user-memory.md",
            "User-Memory/x",
            " user-memory/x",
            "~user-memory/x",
        ),
        *("sharedx/x", "Projects/x", "etc/passwd", "/etc/passwd", "~/~/user-memory/a"),
        "x/../user-memory/a",
    ],
)
def test_only_the_first_component_names_a_root(text: str) -> None:
    """A first component that is no root, `..` among them, leads nowhere."""
    with pytest.raises(NotFoundError):
        clean(text)


@pytest.mark.parametrize(
    "text",
    [
        pytest.param("user-memory/a\x00b", id="nul"),
        pytest.param("user-memory/a\nb", id="newline"),
        pytest.param("user-memory/a\n", id="final newline"),
        pytest.param("user-memory/a\x7f", id="delete"),
        pytest.param("user-memory/a\x85", id="c1 control"),
        pytest.param("user-memory/\ud800", id="high surrogate"),
        pytest.param("user-memory/\udfff", id="low surrogate"),
        pytest.param("user-memory/\x00/../a", id="resolved away"),
        pytest.param("nowhere/\x00", id="under no root"),
        pytest.param("user-memory/" + "n" * (MAX_NAME_BYTES + 1), id="long name"),
        pytest.param("user-memory/" + "é" * 128, id="long name in bytes"),
        pytest.param("user-memory" + "/d" * (MAX_DEPTH + 1), id="deep"),
        pytest.param("user-memory" + ("/" + "n" * 250) * 17, id="long path"),
        pytest.param("user-memory" + ("/" + "é" * 120) * 17, id="long path in bytes"),
        pytest.param("/" * MAX_PATH_BYTES + "user-memory/a", id="long spelling"),
    ],
)
def test_a_path_that_can_name_no_note_is_refused(text: str) -> None:
    """Control characters, lone surrogates and what exceeds a limit are no names."""
    with pytest.raises(InvalidPathError):
        clean(text)


@pytest.mark.parametrize(
    "text",
    [
        pytest.param("user-memory/" + "n" * MAX_NAME_BYTES, id="name"),
        pytest.param("user-memory/" + "é" * 127 + "n", id="name in bytes"),
        pytest.param("user-memory" + "/d" * MAX_DEPTH, id="depth"),
        pytest.param("user-memory" + ("/" + "n" * 254) * 16 + "/four", id="total"),
    ],
)
def test_a_path_at_a_limit_is_taken(text: str) -> None:
    """The limits themselves still fit."""
    assert clean(text).display == text


@given(_SPELLINGS)
def test_cleaning_is_idempotent_and_its_result_canonical(text: str) -> None:
    """What cleaning gives cleans to itself, within every rule; all else is a typed error."""
    try:
        ref = clean(text)
    except (InvalidPathError, NotFoundError):
        return
    assert clean(ref.display) == ref
    assert ref.root in {USER_MEMORY, SHARED_MEMORY}
    names = ref.key.split("/") if ref.key else []
    assert not {"", ".", ".."} & set(names)
    assert len(names) <= MAX_DEPTH
    assert all(len(name.encode()) <= MAX_NAME_BYTES for name in names)
    assert len(ref.display.encode()) <= MAX_PATH_BYTES
    assert unicodedata.normalize("NFC", ref.key) == ref.key
    assert not any(unicodedata.category(character) in {"Cc", "Cs"} for character in ref.key)


@given(st.text("ab./\\~ -", max_size=30))
def test_the_short_way_and_the_long_way_agree(tail: str) -> None:
    """A path that needs no cleaning has the same form with a component to drop added."""
    straight = clean(f"user-memory/{tail}")
    assert clean(f"./user-memory//{tail}") == straight


def test_errors_do_not_carry_the_path() -> None:
    """What a caller wrote is private: no error repeats it."""
    for text in ("private-name/x", "user-memory/private-name\x00"):
        with pytest.raises(StrongroomError) as caught:
            clean(text)
        assert "private-name" not in f"{caught.value!s}{caught.value!r}"


@pytest.mark.parametrize(
    ("key", "folders"),
    [
        pytest.param("", [], id="root"),
        pytest.param("a", [], id="top"),
        pytest.param("a/b/c.md", ["a", "a/b"], id="deep"),
    ],
)
def test_parents_are_the_proper_folders_outermost_first(key: str, folders: list[str]) -> None:
    """A key's folders are its proper prefixes by component; the root is none of them."""
    assert parents(key) == folders
    assert all(is_under(key, folder) for folder in folders)


@pytest.mark.parametrize(
    ("key", "folder", "inside"),
    [
        pytest.param("a/b", "a", True, id="child"),
        pytest.param("a/b/c", "a", True, id="grandchild"),
        pytest.param("a", "a", False, id="itself"),
        pytest.param("ab/c", "a", False, id="a name that begins alike"),
        pytest.param("a", "a/b", False, id="its own folder"),
        pytest.param("a", "", True, id="all lies in the root"),
        pytest.param("", "", False, id="the root in itself"),
    ],
)
def test_inside_goes_by_whole_names(key: str, folder: str, *, inside: bool) -> None:
    """A folder holds what continues it after a slash, never itself."""
    assert is_under(key, folder) is inside


@pytest.mark.parametrize(
    ("text", "root", "key"),
    [
        ("shared", "shared", ""),
        ("shared/Team/a.md", "shared/team", "a.md"),
        ("/shared//Te\u0301am/./a/../b.md", "shared/téam", "b.md"),
        ("shared/team/../../../other/x", "shared/other", "x"),
        ("shared/..", "shared", ""),
        ("shared/\uff34eam/A.md", "shared/team", "A.md"),
        ("projects/Ana/plan/x/y.md", "projects/ana/plan", "x/y.md"),
        ("projects/ana", "projects/ana", ""),
        ("projects/ana/plan/../../../user-memory/x", "projects/user-memory/x", ""),
        ("shared/user-memory/x", "shared/user-memory", "x"),
    ],
)
def test_a_folder_on_the_disk_is_named_by_what_follows_its_kind(
    text: str, root: str, key: str
) -> None:
    """The kind by the first component alone; no spelling leads from it to another kind."""
    ref = clean(text)
    assert ref == PathRef(root, key)
    assert clean(ref.display) == ref
    assert ref.is_on_disk


@pytest.mark.parametrize(
    "text", ["shared/\uff0e\uff0e/x", "shared/a\uff0fb/x", "projects/\uff0e/x", "shared/\ufe68/x"]
)
def test_what_folded_is_no_name_names_no_folder(text: str) -> None:
    """Whatever it looks like before."""
    with pytest.raises(NotFoundError):
        clean(text)


def test_the_programs_own_names_are_no_texts() -> None:
    """In a folder on the disk; in a store they are as any other."""
    for text in ("shared/team/.strongroom-1", "projects/a/b/c/.strongroom-gone-1/d"):
        with pytest.raises(InvalidPathError):
            clean(text)
    assert clean("user-memory/.strongroom-1").key == ".strongroom-1"


def test_what_is_above_folders_on_the_disk_holds_no_text() -> None:
    """Until the path says which folder."""
    above = {text: clean(text).is_above_roots for text in ("shared", "projects", "projects/ana")}
    assert all(above.values())
    for text in ("shared/team", "projects/ana/plan", "user-memory", "shared-memory/x"):
        assert not clean(text).is_above_roots


@settings(max_examples=chosen([500], [20_000])[0])
@given(
    st.sampled_from(["shared", "projects", "user-memory", "shared-memory"]),
    st.lists(
        st.one_of(
            _PIECES,
            st.text(max_size=12),
            st.text(
                st.sampled_from("aA.\u212a\uff0e\uff0f\u2024\u00df\u0130\u0345\u03b1\u1fb3\\~"),
                max_size=6,
            ),
        ),
        max_size=8,
    ),
)
def test_no_path_of_any_kind_leads_out_of_it(kind: str, parts: list[str]) -> None:
    """One canonical form, which is its own; or the one error or the other."""
    try:
        ref = clean("/".join([kind, *parts]))
    except (NotFoundError, InvalidPathError):
        return
    assert ref.kind == kind
    assert clean(ref.display) == ref
    names = [*ref.root.split("/"), *ref.key.split("/")]
    assert not {".", ".."} & set(names)
    assert ref.root.count("/") <= {"shared": 1, "projects": 2}.get(kind, 0)
    assert "\\" not in ref.display
