"""Projects: each its owner's, who lets others in and alone takes it away."""

import pytest

from app.db.registry import statements as sql
from app.db.registry.store import RegistryTransactor
from app.errors.callers import NotFoundError, NotPermittedError
from app.errors.conflicts import ConflictError, NameTakenError, VersionConflictError
from app.errors.inputs import InvalidNameError, InvalidUsernameError
from app.ids import UserId
from app.registry import disk_roots, projects
from app.registry.disk_roots import DiskRoot
from app.registry.projects import Project
from tests.support.registry import add_member


@pytest.fixture
def ana(tx: RegistryTransactor) -> UserId:
    """A member."""
    return add_member(tx, "Ana").id


@pytest.fixture
def ben(tx: RegistryTransactor) -> UserId:
    """Another."""
    return add_member(tx, "ben").id


@pytest.fixture
def plan(tx: RegistryTransactor, ana: UserId) -> Project:
    """A project of the first one's."""
    return projects.add(tx, ana, "plan", "The plan", "of it", '{"a": 1}')


def test_its_owner_is_in_it_and_writes(tx: RegistryTransactor, ana: UserId, plan: Project) -> None:
    """From the beginning, and always."""
    assert (plan.owner_key, plan.slug, plan.can_write, plan.version) == ("ana", "plan", 1, 1)
    [row] = projects.list_members(tx, plan.id, ana, "", 9)
    assert (row.user_id, row.can_write) == (ana, 1)
    with pytest.raises(ConflictError):
        projects.remove_member(tx, plan.id, ana, ana)
    with pytest.raises(ConflictError):
        projects.set_member(tx, plan.id, ana, ana, can_write=False)
    projects.set_member(tx, plan.id, ana, ana, can_write=True)
    assert projects.list_of(tx, ana) == [plan]


@pytest.mark.parametrize("slug", ["", "-a", "a-", "A", "a_b", "a/b", "..", "\u00e9", "a" * 65])
def test_a_slug_is_letters_digits_and_dashes(
    tx: RegistryTransactor, ana: UserId, slug: str
) -> None:
    """So that it reads the same everywhere."""
    with pytest.raises(InvalidNameError):
        projects.add(tx, ana, slug, "x", "", "{}")


@pytest.mark.parametrize("name", [".", "..", "a\\b", "\ufdfa" * 60])
def test_an_owner_whom_no_path_names_makes_none(tx: RegistryTransactor, name: str) -> None:
    """A name from before that was refused stays, and what no path leads to is not made."""
    owner = add_member(tx, name).id
    with pytest.raises(InvalidUsernameError):
        projects.add(tx, owner, "plan", "x", "", "{}")
    assert projects.list_of(tx, owner) == []


def test_a_member_has_a_slug_once(
    tx: RegistryTransactor, ana: UserId, ben: UserId, plan: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another may have the same; and nobody has more than a bound of them."""
    with pytest.raises(NameTakenError):
        projects.add(tx, ana, plan.slug, "x", "", "{}")
    other = projects.add(tx, ben, plan.slug, "x", "", "{}")
    assert projects.list_of(tx, ben) == [other]
    monkeypatch.setattr(projects, "PROJECTS_MAX", 1)
    with pytest.raises(ConflictError):
        projects.add(tx, ana, "second", "x", "", "{}")


def test_its_owner_alone_changes_it(
    tx: RegistryTransactor, ana: UserId, ben: UserId, plan: Project
) -> None:
    """For whoever is not in it there is none."""
    same = {"name": plan.name, "run_context": {"a": 1}}
    assert projects.change(tx, plan.id, ana, same, None) == plan
    changed = projects.change(tx, plan.id, ana, {"description": "more"}, frozenset({1}))
    assert (changed.description, changed.version) == ("more", 2)
    with pytest.raises(VersionConflictError):
        projects.change(tx, plan.id, ana, {"name": "x"}, frozenset({1}))
    with pytest.raises(NotFoundError):
        projects.change(tx, plan.id, ben, {"name": "x"}, None)
    projects.set_member(tx, plan.id, ana, ben, can_write=True)
    with pytest.raises(NotPermittedError):
        projects.change(tx, plan.id, ben, {"name": "x"}, None)
    with pytest.raises(NotPermittedError):
        projects.remove(tx, plan.id, ben, None)


def test_members_come_and_go(
    tx: RegistryTransactor, ana: UserId, ben: UserId, plan: Project
) -> None:
    """By the owner's word; whoever is in it may leave."""
    cyd = add_member(tx, "cyd").id
    for can_write in (True, False):
        projects.set_member(tx, plan.id, ana, ben, can_write=can_write)
    assert [row.can_write for row in projects.list_of(tx, ben)] == [0]
    place = "projects/ana/plan"
    assert not disk_roots.get(tx, place, ben).can_write
    with pytest.raises(NotPermittedError):
        projects.set_member(tx, plan.id, ben, cyd, can_write=True)
    with pytest.raises(NotPermittedError):
        projects.remove_member(tx, plan.id, ben, ana)
    with pytest.raises(NotFoundError):
        projects.remove_member(tx, plan.id, ana, cyd)
    with pytest.raises(NotFoundError):
        projects.set_member(tx, plan.id, ana, "nobody", can_write=True)
    projects.remove_member(tx, plan.id, ben, ben)
    for call in (projects.list_members,):
        with pytest.raises(NotFoundError):
            call(tx, plan.id, ben, "", 9)
    with pytest.raises(NotFoundError):
        disk_roots.get(tx, place, ben)


def test_a_path_names_it_by_owner_and_slug(
    tx: RegistryTransactor, ana: UserId, plan: Project
) -> None:
    """Nothing less, and nothing more."""
    root = disk_roots.get(tx, "projects/ana/plan", ana)
    assert root == (plan.id, "projects", "projects/ana/plan", ana, True)
    assert disk_roots.list_places(tx, ana, "projects") == ["projects/ana/plan"]
    assert disk_roots.list_places(tx, ana, "shared") == []
    for place in ("projects", "projects/ana", "projects/ana/no", "shared/plan", "user-memory"):
        with pytest.raises(NotFoundError):
            disk_roots.get(tx, place, ana)


def test_whatever_removes_it_leaves_word_of_its_folder(
    tx: RegistryTransactor, ana: UserId, plan: Project
) -> None:
    """Its owner's erasure too; what was written there is on record no more."""
    disk_roots.record(tx, plan.id, "a.md", "put", ana, size_bytes=3, content_version=7)
    assert disk_roots.list_written(tx) == disk_roots.list_all(tx) == [DiskRoot(plan.id, "projects")]
    assert disk_roots.quota_of(tx, ana) == (None, 3)
    tx.run(sql.BEGIN_STORE_STATE, user_id=ana, store_state="erasing")
    tx.run(sql.REMOVE_ACCOUNT, user_id=ana)
    assert disk_roots.list_all(tx) == disk_roots.list_written(tx) == []
    assert disk_roots.find_last_write(tx, plan.id, "a.md") is None
    assert disk_roots.list_removed(tx) == [DiskRoot(plan.id, "projects")]


def test_a_write_is_on_record_until_it_is_done(
    tx: RegistryTransactor, ana: UserId, plan: Project
) -> None:
    """By its digest; each write is another, whatever the clock says."""
    for version in (7, 8):
        disk_roots.record(tx, plan.id, "a.md", "put", ana, size_bytes=3, content_version=version)
    before = disk_roots.find_last_write(tx, plan.id, "a.md")
    assert before is not None
    assert (before.content_version, before.author, before.created_at) == (8, ana, tx.now_ms)
    assert before.updated_at == tx.now_ms + 1
    assert disk_roots.list_pending(tx, plan.id) == []
    assert disk_roots.list_pending_roots(tx) == []
    disk_roots.record(
        tx, plan.id, "a.md", "put", ana, size_bytes=3, content_version=9, pending='{"do": 1}'
    )
    [pending] = disk_roots.list_pending(tx, plan.id)
    assert pending.pending == '{"do": 1}'
    assert disk_roots.list_pending_roots(tx) == [DiskRoot(plan.id, "projects")]
    disk_roots.settle(tx, pending, is_done=True)
    assert disk_roots.list_pending(tx, plan.id) == []
    disk_roots.settle(tx, pending, is_done=False)
    lost = disk_roots.find_last_write(tx, plan.id, "a.md")
    assert lost is not None
    assert lost.content_version is None
