"""Quotas on every way into a store: the caller's own and the group's."""

import asyncio
import uuid
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import replace
from typing import Any, Final

import pytest

from app.bridge import access
from app.bridge.callers import Caller
from app.bridge.content import files, reports, uploads
from app.bridge.strongroom import Strongroom
from app.bridge.work import jobs, schedules
from app.bridge.work.jobs import NewJob
from app.bridge.work.schedules import NewSchedule
from app.errors.stores import QuotaExceededError
from app.owner.blobs import BlobCondition, NewBlob
from app.owner.edits import InsertLines, ReplaceText
from app.owner.notes import Condition
from app.owner.paths import PathRef, clean
from app.owner.reports import NewReport
from app.owner.scheduled_jobs import Task
from app.runtime.timing import Timing
from tests.support.rig import Rig, add, enter
from tests.support.rooms import CALL

ANY: Final = Condition()
Act = Callable[[Strongroom, Caller, str], Awaitable[object]]


def at(root: str, name: str) -> PathRef:
    """A path in one of the two stores."""
    return clean(f"{root}/{name}")


async def upload(room: Strongroom, caller: Caller, root: str, size: int = 1) -> object:
    """Store a blob."""
    home = "own" if root == "user-memory" else "group"

    async def body() -> AsyncIterator[bytes]:
        yield b"x" * size

    new = NewBlob(str(uuid.uuid4()), "text/plain")
    async with uploads.arriving(room, caller, CALL, home, new, body(), None) as arrival:  # type: ignore[arg-type] # one of both
        return await uploads.keep(room, caller, CALL, home, new, arrival, BlobCondition())  # type: ignore[arg-type] # likewise


ADDING: Final[dict[str, Act]] = {
    "put": lambda room, who, root: files.put(room, who, CALL, at(root, "new"), "x", ANY),
    "append": lambda room, who, root: files.append(room, who, CALL, at(root, "n"), "x", ANY),
    "edit": lambda room, who, root: files.edit(
        room, who, CALL, at(root, "n"), [InsertLines(1, "x")], ANY, adds_bytes=1
    ),
    "edit that takes away": lambda room, who, root: files.edit(
        room, who, CALL, at(root, "n"), [ReplaceText("two", "")], ANY, adds_bytes=0
    ),
    "put of nothing": lambda room, who, root: files.put(room, who, CALL, at(root, "n"), "", ANY),
    "restore": lambda room, who, root: files.restore(room, who, CALL, at(root, "n"), 1, ANY),
    "move": lambda room, who, root: files.move(
        room, who, CALL, at(root, "n"), at(root, "new"), ANY
    ),
    "blob": upload,
}
MAKING: Final[dict[str, Act]] = {
    "put": lambda room, who, root: files.put(room, who, CALL, at(root, "new"), "", ANY),
    "append": lambda room, who, root: files.append(room, who, CALL, at(root, "new"), "", ANY),
    "restore": lambda room, who, root: files.restore(room, who, CALL, at(root, "gone"), 1, ANY),
}


async def prepared(room: Strongroom, root: str) -> Caller:
    """Whoever has a note of two versions in a store, and one that is deleted."""
    await add(room)
    caller = await enter(room)
    for text in ("one\n", "two\n"):
        await files.put(room, caller, CALL, at(root, "n"), text, ANY)
    await files.put(room, caller, CALL, at(root, "gone"), "gone", ANY)
    await files.delete(room, caller, CALL, at(root, "gone"), ANY)
    return caller


def shrunk(room: Strongroom, **limits: int) -> Strongroom:
    """The same service under other limits."""
    return replace(room, settings=room.settings.model_copy(update=limits))


@pytest.mark.parametrize("root", ["user-memory", "shared-memory"])
def test_every_way_into_a_full_store_is_refused(rig: Rig, root: str) -> None:
    """With the limit and what is left; and what takes away is done."""

    async def work(room: Strongroom) -> None:
        caller = await prepared(room, root)
        full = shrunk(room, member_bytes_max=1, group_bytes_max=1)
        for name, act in ADDING.items():
            with pytest.raises(QuotaExceededError) as refused:
                await act(full, caller, root)
            error = refused.value
            assert (error.limit, error.limit_max, error.left) == ("bytes", 1, 0), name
        assert await files.delete(full, caller, CALL, at(root, "n"), ANY, purge=True) == 1

    rig.run(work)


@pytest.mark.parametrize("root", ["user-memory", "shared-memory"])
def test_every_way_to_make_a_note_is_counted(rig: Rig, root: str) -> None:
    """What replaces one, or moves one, makes none."""

    async def work(room: Strongroom) -> None:
        caller = await prepared(room, root)
        standing = len(await files.list_folder(room, caller, CALL, at(root, ""), 1))
        full = shrunk(room, notes_max=standing)
        for name, act in MAKING.items():
            with pytest.raises(QuotaExceededError) as refused:
                await act(full, caller, root)
            error = refused.value
            assert (error.limit, error.limit_max, error.left) == ("notes", standing, 0), name
        for name in ("append", "edit", "move"):
            await ADDING[name](full, caller, root)

    rig.run(work)


def test_a_members_own_quota_stands_before_the_settings(rig: Rig) -> None:
    """A larger one lets more in, a smaller one less."""

    async def work(room: Strongroom) -> None:
        caller = await prepared(room, "user-memory")
        put = ADDING["put"]
        small = shrunk(room, member_bytes_max=1)
        await put(small, replace(caller, quota_bytes=1 << 30), "user-memory")
        with pytest.raises(QuotaExceededError):
            await put(room, replace(caller, quota_bytes=1), "user-memory")

    rig.run(work)


def test_those_who_come_at_once_do_not_pass_it_together(rig: Rig) -> None:
    """In two processes, with notes and files: whoever was let in fits, and the others are told."""

    async def work(room: Strongroom) -> None:
        caller = await prepared(room, "user-memory")
        used = await access.used_bytes(room, caller.user_id)
        limit = used + 400_000
        async with rig.open() as second:
            rooms = [shrunk(each, member_bytes_max=limit) for each in (room, second)]
            text = "word " * 10_000

            def put(number: int) -> Awaitable[Any]:
                ref = at("user-memory", f"at-once/{number}")
                return files.put(rooms[number % 2], caller, CALL, ref, text, ANY)

            calls = [put(number) for number in range(12)]
            calls += [upload(rooms[n % 2], caller, "user-memory", 50_000) for n in range(8)]
            done = await asyncio.gather(*calls, return_exceptions=True)
        refused = [each for each in done if isinstance(each, BaseException)]
        assert {type(each) for each in refused} == {QuotaExceededError}
        assert 0 < len(refused) < len(done)
        quota = access.own_quota(rooms[0], caller)
        store = await access.open_own(room, caller, CALL)
        # The words of the last write alone may have come in with its commit.
        assert await store.read(quota.used) <= limit + len(text)

    rig.run(work)


REPORT: Final = NewReport("weekly", "title", "words " * 8_000, "test")
WORK: Final[tuple[tuple[str, Callable[[Strongroom, Caller, Any], Awaitable[object]]], ...]] = (
    ("job", lambda room, who, home: jobs.add(room, who, CALL, home, NewJob("kind", {"n": 1}))),
    (
        "schedule",
        lambda room, who, home: schedules.add(
            room, who, CALL, home, NewSchedule(Task("T"), Timing(None, 86_400))
        ),
    ),
    (
        "report",
        lambda room, who, home: reports.add(
            room, who, CALL, replace(REPORT, audience="owner" if home == "own" else "admins")
        ),
    ),
)


@pytest.mark.parametrize("home", ["own", "group"])
def test_reports_and_work_are_held_against_the_home_they_go_to(rig: Rig, home: str) -> None:
    """Nothing goes into a full one, and reports that come at once do not pass it together."""

    async def work(room: Strongroom) -> None:
        await add(room, "boss", "admin")
        caller = await enter(room, "boss")
        full = shrunk(room, member_bytes_max=1, group_bytes_max=1)
        for name, act in WORK:
            with pytest.raises(QuotaExceededError) as refused:
                await act(full, caller, home)
            assert (refused.value.limit_max, refused.value.left) == (1, 0), name
            await act(room, caller, home)
        store = room.stores.group
        if home == "own":
            store = await access.open_own(room, caller, CALL)
        used = await store.read(access.quota_of(room, caller, is_group=home == "group").used)
        limit = used + 4 * REPORT.size_bytes
        small = shrunk(room, member_bytes_max=limit, group_bytes_max=limit)
        one = dict(WORK)["report"]
        done = await asyncio.gather(
            *(one(small, caller, home) for _ in range(8)), return_exceptions=True
        )
        refused_ones = [each for each in done if isinstance(each, BaseException)]
        assert {type(each) for each in refused_ones} == {QuotaExceededError}
        assert 4 <= len(refused_ones) < 8
        quota = access.quota_of(small, caller, is_group=home == "group")
        assert await store.read(quota.used) <= limit

    rig.run(work)
