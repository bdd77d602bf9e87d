"""Names of notes as names of files, safe on every system, and back."""

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.owner.archive_names import NAME_BYTES_MAX, SafeNames, decode, encode, likeness
from app.owner.paths import MAX_NAME_BYTES

NAMES = st.one_of(
    st.text(st.characters(exclude_categories=["Cs", "Cc"], exclude_characters="/\\"), min_size=1),
    st.from_regex(r"(?:con|NUL|com1|LPT9|aux)(?:\.[a-z]{0,2})?[ .%]{0,2}", fullmatch=True),
    st.text(st.sampled_from("aA.% ~ßé2"), min_size=1),
).filter(lambda name: name not in {".", ".."} and len(name.encode()) <= MAX_NAME_BYTES)
PATHS = st.lists(NAMES, min_size=1, max_size=4).map("/".join)
DEVICES = ("con", "prn", "aux", "nul", "com1", "lpt9", "conin$")


def require_safe(name: str) -> None:
    """What Windows, macOS and Linux take as it is."""
    assert name not in {"", ".", ".."}
    assert not set('<>:"/\\|?*') & set(name)
    assert all(character.isprintable() for character in name)
    assert name[-1] not in {" ", "."}
    assert name[0] != " "
    assert name.partition(".")[0].rstrip().lower() not in DEVICES


@given(NAMES)
def test_a_name_is_safe_and_comes_back(name: str) -> None:
    """Encoded once it is safe; decoded it is what it was."""
    require_safe(encode(name))
    assert decode(encode(name)) == name


@pytest.mark.parametrize(
    ("name", "encoded"),
    [
        ("plain name.md", "plain name.md"),
        ("日本語.md", "日本語.md"),
        ("a:b?.md", "a%3Ab%3F.md"),
        ("100%", "100%25"),
        ("con.md", "%63on.md"),
        ("console.md", "console.md"),
        (" x. ", "%20x.%20"),
        ("x.", "x%2E"),
        ("\u202ex", "%E2%80%AEx"),
    ],
)
def test_what_stands_for_what(name: str, encoded: str) -> None:
    """Only what some system would refuse or change."""
    assert (encode(name), decode(encoded)) == (encoded, name)


@pytest.mark.parametrize(
    "name", ["100%.md", "a%2Fb", "%2e%2e", "%2E%2E", "%2E", "a%00", "%41", "%3a", "%FF", "%5C", "%"]
)
def test_what_encodes_nothing_is_a_name_as_it_stands(name: str) -> None:
    """So no name leads elsewhere when it is decoded, and no two names become one."""
    assert decode(name) == name


@given(st.lists(PATHS, unique=True, max_size=12))
def test_every_path_has_a_file_of_its_own(paths: list[str]) -> None:
    """In safe folders, on every system, however alike the paths are."""
    names = SafeNames()
    files = [names.file_of(path) for path in sorted(paths)]
    assert len({likeness(file) for file in files}) == len(files)
    for file in files:
        for part in file.split("/"):
            require_safe(part)
            assert len(part.encode()) <= NAME_BYTES_MAX
    # Nor does a file stand where some system would need a folder.
    folders = {likeness(file.rpartition("/")[0]) for file in files if "/" in file}
    notes = {path for path in paths if not any(p.startswith(f"{path}/") for p in paths)}
    mine = [file for path, file in zip(sorted(paths), files, strict=True) if path in notes]
    assert not folders & {likeness(file) for file in mine}


def test_alike_names_get_numbers_and_long_ones_are_cut() -> None:
    """Before the extension, so that it stays a file of its kind."""
    names = SafeNames()
    assert [names.file_of(path) for path in ("A.md", "a.md", "ä.md", "a/x", "A/x", "a.MD")] == [
        "A.md",
        "a%~2.md",
        "ä.md",
        "a/x",
        "A%~2/x",
        "a%~3.MD",
    ]
    long = names.file_of(f"{'é' * 125}.md")
    assert long.endswith("%~1.md")
    assert len(long.encode()) <= NAME_BYTES_MAX
    assert names.file_of(f"{'é' * 125}x.md").endswith("%~2.md")
    assert names.file_of(":" * 255) == f"{'%3A' * 79}%~1"


def test_many_alike_cost_no_more_than_others() -> None:
    """Each is given the next number, without a look at all before it."""
    names, letters = SafeNames(), "abcdefghijkl"
    spellings = itertools.product(*((letter, letter.upper()) for letter in letters))
    assert len({names.file_of("".join(each)) for each in spellings}) == 2 ** len(letters)
