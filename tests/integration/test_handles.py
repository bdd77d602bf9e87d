"""Many stores, few descriptors: every member is served, and nothing is kept open for ever."""

import asyncio
import contextlib
from collections import Counter
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Final

import httpx
import pytest

from app.settings import Settings
from tests.support import rooms
from tests.support.matrix import chosen
from tests.support.outside import eventually
from tests.support.rooms import PASSWORD
from tests.support.service import LiveService

DESCRIPTORS: Final = 256
CLIENTS: Final = 64
NOTE: Final = "user-memory/n.md"


async def _add_members(settings: Settings, count: int) -> None:
    async with rooms.open_room(settings) as room:
        for number in range(count):
            await rooms.add(room, f"m{number}", encrypted=bool(number % 4))


def _made(folder: Path, count: int) -> Path:
    asyncio.run(_add_members(rooms.prepared(folder), count))
    return folder


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A root with many members."""
    (count,) = chosen([120], [1_000])
    return _made(tmp_path_factory.mktemp("handles"), count)


def _names(service: LiveService) -> list[str]:
    return [f"m{number}" for number in range(len(list(service.database.glob("*-*.db"))))]


@asynccontextmanager
async def _client(service: LiveService) -> AsyncIterator[httpx.AsyncClient]:
    limits = httpx.Limits(max_connections=CLIENTS)
    async with httpx.AsyncClient(
        base_url=service.client.base_url, limits=limits, timeout=60, trust_env=False
    ) as client:
        yield client


async def _sign_in(client: httpx.AsyncClient, name: str) -> dict[str, str]:
    made = await client.post("/api/session", json={"username": name, "password": PASSWORD})
    assert made.status_code == 201, made.text
    return {"Authorization": f"Bearer {made.json()['token']}"}


async def _write(client: httpx.AsyncClient, headers: dict[str, str], name: str) -> httpx.Response:
    more = {"content-type": "text/markdown"}
    return await client.put(
        "/api/file", params={"path": NOTE}, content=name.encode(), headers=headers | more
    )


async def _read(client: httpx.AsyncClient, headers: dict[str, str]) -> httpx.Response:
    return await client.get("/api/file", params={"path": NOTE}, headers=headers)


def _open_files(service: LiveService) -> int:
    """How many descriptors the worker has."""
    pid = service.workers()[0]
    return len(list(Path(f"/proc/{pid}/fd").iterdir()))


@pytest.fixture(scope="module")
def service(root: Path) -> Iterator[LiveService]:
    """One worker with few descriptors."""
    with LiveService(root, descriptors=DESCRIPTORS) as service:
        yield service


@pytest.mark.long
def test_every_member_is_served_under_a_limit_of_descriptors(service: LiveService) -> None:
    """Each of many members reads and writes at once with others, without one error."""
    # Passwords are checked two at a time, with a short queue: that limit is another's test.
    turns = asyncio.Semaphore(2)

    async def serve(client: httpx.AsyncClient, name: str) -> None:
        async with turns:
            headers = await _sign_in(client, name)
        written = await _write(client, headers, name)
        assert written.status_code == 201, written.text
        found = await _read(client, headers)
        assert (found.status_code, found.text) == (200, name)

    async def serve_all() -> None:
        async with _client(service) as client:
            await asyncio.gather(*(serve(client, name) for name in _names(service)))

    asyncio.run(serve_all())
    assert _open_files(service) < DESCRIPTORS


@pytest.mark.long
def test_descriptors_stay_flat_however_often_stores_come_and_go(service: LiveService) -> None:
    """A second and third round over all members hold no more open than the first."""
    names = _names(service)[:60]

    async def serve_rounds() -> list[int]:
        async with _client(service) as client:
            sessions = [await _sign_in(client, name) for name in names]
            for headers, name in zip(sessions, names, strict=True):
                await _write(client, headers, name)
            open_files = []
            for _ in range(4):
                found = await asyncio.gather(*(_read(client, headers) for headers in sessions))
                assert {answer.status_code for answer in found} == {200}
                open_files.append(_open_files(service))
            return open_files

    _, first, *later = asyncio.run(serve_rounds())
    assert max(later) <= first + 10, (first, later)


@pytest.mark.long
def test_no_descriptor_of_a_file_that_is_gone_stays_open(service: LiveService) -> None:
    """What was evicted or replaced is closed; none of the worker's files is a deleted one."""
    pid = service.workers()[0]

    def deleted() -> list[str]:
        links = []
        for path in Path(f"/proc/{pid}/fd").iterdir():
            with contextlib.suppress(FileNotFoundError):  # closed meanwhile
                links.append(str(path.readlink()))
        return [x for x in links if str(service.database) in x and x.endswith("(deleted)")]

    assert eventually(lambda: not deleted())


@pytest.mark.long
def test_a_lack_of_descriptors_never_reads_as_a_missing_store(tmp_path: Path) -> None:
    """With a budget beyond what the system gives, the answer is 503 and passes by itself."""
    root = _made(tmp_path, 24)
    with LiveService(root, descriptors=72, handle_budget=10_000) as service:

        async def burst() -> Counter[str]:
            codes: Counter[str] = Counter()
            async with _client(service) as client:
                for name in _names(service):
                    headers = await _sign_in(client, name)
                    answer = await _write(client, headers, name)
                    codes["" if answer.status_code == 201 else answer.json()["code"]] += 1
            return codes

        codes = asyncio.run(burst())
        assert codes[""] > 0
        assert set(codes) <= {"", "out_of_handles"}, codes
