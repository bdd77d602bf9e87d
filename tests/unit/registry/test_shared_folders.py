"""Shared folders: one name in any spelling, and who is in each."""

import pytest

from app.db.registry.store import RegistryTransactor
from app.errors.callers import NotFoundError, NotPermittedError
from app.errors.conflicts import NameTakenError, VersionConflictError
from app.errors.inputs import InvalidNameError
from app.registry import disk_roots, shared_folders
from app.registry.disk_roots import DiskRoot
from tests.support.registry import add_member


def test_a_folder_is_made_changed_and_removed(tx: RegistryTransactor) -> None:
    """Each change gives it another version; what changes nothing gives none."""
    made = shared_folders.add(tx, "Team Notes", "of all")
    assert (made.folder_key, made.version) == ("team notes", 1)
    assert shared_folders.get(tx, made.id) == made
    assert shared_folders.change(tx, made.id, None, "of all", None) == made
    changed = shared_folders.change(tx, made.id, "TEAM notes", None, frozenset({1}))
    assert (changed.folder_name, changed.folder_key, changed.version) == (
        "TEAM notes",
        "team notes",
        2,
    )
    with pytest.raises(VersionConflictError):
        shared_folders.change(tx, made.id, "other", None, frozenset({1}))
    with pytest.raises(VersionConflictError):
        shared_folders.remove(tx, made.id, frozenset({1}))
    shared_folders.remove(tx, made.id, frozenset({2}))
    for missing in (made.id, "none"):
        with pytest.raises(NotFoundError):
            shared_folders.get(tx, missing)
    assert disk_roots.list_removed(tx) == [DiskRoot(made.id, "shared")]
    disk_roots.forget_removed(tx, made.id)
    assert disk_roots.list_removed(tx) == []


@pytest.mark.parametrize(
    "name",
    [
        "",
        " a",
        "a ",
        "a/b",
        "a\\b",
        "a\uff0fb",
        ".",
        "..",
        "\uff0e\uff0e",
        ".hidden",
        "~",
        "a\nb",
        "a\u200bb",
        "a\u202eb",
        "\ud800",
        "x" * 65,
        "\u2024\u2024",
        "\ufdfa" * 60,
    ],
)
def test_a_name_that_could_mislead_is_refused(tx: RegistryTransactor, name: str) -> None:
    """Or that no path could say."""
    with pytest.raises(InvalidNameError):
        shared_folders.add(tx, name, "")
    made = shared_folders.add(tx, "fine", "")
    with pytest.raises(InvalidNameError):
        shared_folders.change(tx, made.id, name, None, None)


@pytest.mark.parametrize(
    ("one", "other"),
    [("Team", "tEAM"), ("\u00e9", "e\u0301"), ("\uff34eam", "team"), ("Stra\u00dfe", "STRASSE")],
)
def test_two_spellings_are_one_name(tx: RegistryTransactor, one: str, other: str) -> None:
    """So that a path never names two folders."""
    first = shared_folders.add(tx, one, "")
    with pytest.raises(NameTakenError):
        shared_folders.add(tx, other, "")
    second = shared_folders.add(tx, "second", "")
    with pytest.raises(NameTakenError):
        shared_folders.change(tx, second.id, other, None, None)
    assert shared_folders.list_page(tx, "", 9) == sorted([first, second], key=lambda f: f.id)


def test_members_are_in_a_folder_or_not(tx: RegistryTransactor) -> None:
    """Twice is once; whoever is in none finds none."""
    ana, ben = (add_member(tx, name) for name in ("ana", "ben"))
    folder = shared_folders.add(tx, "team", "ours")
    for can_write in (False, True, True):
        shared_folders.set_member(tx, folder.id, ana.id, can_write=can_write)
    shared_folders.set_member(tx, folder.id, ben.id, can_write=False)
    rows = shared_folders.list_members(tx, folder.id, "", 9)
    # Ids of one moment have no order.
    assert {row.username: row.can_write for row in rows} == {"ana": 1, "ben": 0}
    assert shared_folders.list_members(tx, folder.id, rows[0].user_id, 9) == rows[1:]
    [joined] = shared_folders.list_of(tx, ben.id)
    assert (joined.folder_key, joined.description, joined.can_write) == ("team", "ours", 0)
    assert disk_roots.require_writable(tx, "shared/team", ana.id).id == folder.id
    with pytest.raises(NotPermittedError):
        disk_roots.require_writable(tx, "shared/team", ben.id)
    shared_folders.remove_member(tx, folder.id, ben.id)
    with pytest.raises(NotFoundError):
        shared_folders.remove_member(tx, folder.id, ben.id)
    with pytest.raises(NotFoundError):
        disk_roots.get(tx, "shared/team", ben.id)
    for pair in ((folder.id, "nobody"), ("none", ana.id)):
        with pytest.raises(NotFoundError):
            shared_folders.set_member(tx, *pair, can_write=True)
    with pytest.raises(NotFoundError):
        shared_folders.list_members(tx, "none", "", 9)
