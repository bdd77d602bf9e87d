"""A member's own notes given out and taken in: by whom, how much, and all or nothing."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from app.bridge.accounts import revocation
from app.bridge.callers import Caller
from app.bridge.content import archives, files
from app.bridge.content.archives import Export
from app.bridge.strongroom import Strongroom
from app.db.pool import StoreClosedError
from app.errors.archives import ArchiveError
from app.errors.callers import InvalidCredentialsError
from app.errors.inputs import PayloadTooLargeError
from app.errors.stores import DiskFullError, QuotaExceededError, StoreBusyError
from app.owner.copies import TakenIn
from app.owner.notes import Condition
from app.owner.paths import clean
from tests.support.archives import zipped
from tests.support.rig import ACTOR, Rig, add, enter
from tests.support.rooms import CALL
from tests.unit.bridge.content.test_quotas import shrunk

LARGE = "line of a text\n" * 200_000


async def body_of(raw: bytes, size: int = 50_000) -> AsyncIterator[bytes]:
    """A body as it comes."""
    for at in range(0, len(raw), size):
        yield raw[at : at + size]


async def sent(room: Strongroom, caller: Caller, raw: bytes) -> TakenIn:
    """Take an archive in."""
    async with archives.arriving(room, caller, body_of(raw)) as spool:
        return await archives.take_in(room, caller, CALL, spool)


async def given(room: Strongroom, caller: Caller) -> bytes:
    """The archive of a member."""
    parts = [piece async for piece in archives.pieces(room, caller, CALL)]
    assert isinstance(parts[0], Export)
    raw = b"".join(part for part in parts if isinstance(part, bytes))
    assert len(raw) == parts[0].size_bytes
    return raw


async def put(room: Strongroom, caller: Caller, path: str, text: str) -> None:
    """Write one note."""
    await files.put(room, caller, CALL, clean(path), text, Condition())


def test_one_members_archive_is_anothers_notes(rig: Rig) -> None:
    """Their own alone, as they were at the export; nothing of it is left on the disk."""

    async def work(room: Strongroom) -> None:
        for name in ("ana", "ben"):
            await add(room, name)
        ana, ben = await enter(room, "ana"), await enter(room, "ben")
        before = rig.files()
        for path in ("user-memory/a/n.md", "user-memory/large.md", "shared-memory/all.md"):
            await put(room, ana, path, LARGE if "large" in path else "text")
        raw = await given(room, ana)
        assert await sent(room, ben, raw) == TakenIn(written=2, unchanged=2, created=2)
        assert (await files.get(room, ben, CALL, clean("user-memory/large.md"))).content == LARGE
        note = await files.get(room, ben, CALL, clean("user-memory/a/n.md"))
        assert (note.content, note.author, note.version) == ("text", ben.user_id, 1)
        assert rig.files() == before
        assert room.copying == set()

    rig.run(work)


def test_a_session_that_ends_gets_no_more(rig: Rig) -> None:
    """The rest of the archive stays where it is."""

    async def work(room: Strongroom) -> None:
        await add(room)
        ana, other = await enter(room), await enter(room)
        content = archives.pieces(room, ana, CALL)
        await anext(content)
        await revocation.sign_out(room, ana, CALL)
        with pytest.raises(InvalidCredentialsError):
            await anext(content)
        assert await given(room, other)

    rig.run(work)


def test_a_store_that_is_taken_gives_no_more(rig: Rig) -> None:
    """Locked everywhere, as by a change of its key; what comes after is asked for anew."""

    async def work(room: Strongroom) -> None:
        made = await add(room)
        ana = await enter(room)
        content = archives.pieces(room, ana, CALL)
        await anext(content)
        await revocation.lock_everywhere(room, ana.user_id, made.account.lock_number, ACTOR)
        with pytest.raises(StoreClosedError):
            await anext(content)
        assert room.copying == set()

    rig.run(work)


def test_an_export_that_fails_leaves_nothing(rig: Rig, monkeypatch: pytest.MonkeyPatch) -> None:
    """And says why; the next one is not held up."""

    async def work(room: Strongroom) -> None:
        await add(room)
        ana = await enter(room)
        with monkeypatch.context() as patch:

            def fail(*_: object) -> int:
                raise DiskFullError

            patch.setattr(archives, "write_archive", fail)
            with pytest.raises(DiskFullError):
                await given(room, ana)
        assert await given(room, ana)

    rig.run(work)


def test_a_member_has_one_archive_at_a_time(rig: Rig) -> None:
    """Out or in; whoever goes away makes room."""

    async def work(room: Strongroom) -> None:
        await add(room)
        ana = await enter(room)
        content = archives.pieces(room, ana, CALL)
        await anext(content)
        with pytest.raises(StoreBusyError):
            await given(room, ana)
        with pytest.raises(StoreBusyError):
            await sent(room, ana, zipped())
        await content.aclose()
        assert await sent(room, ana, zipped()) == TakenIn(0, 0, 0)

    rig.run(work)


def test_what_is_too_large_is_not_read_to_its_end(make_rig: Any) -> None:  # noqa: ANN401 - a fixture's function
    """By its bytes as they come, and by what is in it."""
    rig: Rig = make_rig(archive_bytes_max=100_000, archive_text_bytes_max=10)

    async def work(room: Strongroom) -> None:
        await add(room)
        ana = await enter(room)
        taken = 0

        async def endless() -> AsyncIterator[bytes]:
            nonlocal taken
            while True:
                taken += 30_000
                yield bytes(30_000)

        with pytest.raises(PayloadTooLargeError):
            async with archives.arriving(room, ana, endless()):
                pass
        assert taken == 120_000
        with pytest.raises(ArchiveError) as refused:
            await sent(room, ana, zipped(("a", b"123456"), ("b", b"12345")))
        assert refused.value.code == "archive_too_large"

    rig.run(work)


def test_nothing_is_written_of_what_does_not_fit(rig: Rig) -> None:
    """Neither by bytes nor by the number of notes."""

    async def work(room: Strongroom) -> None:
        await add(room)
        ana = await enter(room)
        raw = zipped(("a", b"1"), ("index.md", b"2"), ("b", b"3"))
        for limits in ({"member_bytes_max": 1}, {"notes_max": 3}):
            with pytest.raises(QuotaExceededError):
                await sent(shrunk(room, **limits), ana, raw)
        listed = await files.list_folder(room, ana, CALL, clean("user-memory"), 9)
        assert [(entry.path, entry.version) for entry in listed] == [("index.md", 1), ("log.md", 1)]
        assert await sent(shrunk(room, notes_max=4), ana, raw) == TakenIn(3, 0, 2)

    rig.run(work)


def test_an_archive_on_the_box_is_bounded_too(make_rig: Any, tmp_path: Path) -> None:  # noqa: ANN401 - as above
    """As one that is sent."""
    rig: Rig = make_rig(archive_bytes_max=200)
    fits, large = tmp_path / "fits.zip", tmp_path / "large.zip"
    fits.write_bytes(zipped(("a.md", b"text")))
    large.write_bytes(bytes(201))

    async def work(room: Strongroom) -> None:
        await add(room)
        ana = await enter(room)
        async with archives.found_at(room, ana, fits) as spool:
            assert await archives.take_in(room, ana, CALL, spool) == TakenIn(1, 0, 1)
        with pytest.raises(PayloadTooLargeError):
            async with archives.found_at(room, ana, large):
                pass

    rig.run(work)


def test_an_export_is_one_moment(rig: Rig) -> None:
    """Whatever is written while it is given out is not in it, and is not held up."""

    async def work(room: Strongroom) -> None:
        await add(room)
        ana = await enter(room)
        content = archives.pieces(room, ana, CALL)
        export = await anext(content)
        assert isinstance(export, Export)
        assert export.notes == 2
        async with asyncio.timeout(20):
            await put(room, ana, "user-memory/late.md", "late")
        raw = b"".join([piece async for piece in content if isinstance(piece, bytes)])
        assert b"late.md" not in raw
        assert b"late.md" in await given(room, ana)

    rig.run(work)
