"""Several worker processes on one root: one truth for all, and an orderly end."""

import asyncio
import concurrent.futures
import contextlib
import json
import os
import signal
import socket
import time
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Final

import httpx
import pytest

from tests.support.clients import Client, add_member, code_of, first_admin
from tests.support.feeds import Subscriber
from tests.support.matrix import chosen
from tests.support.outside import eventually, faults, members
from tests.support.service import PASSWORD, LiveService

NOTE: Final = "user-memory/n.md"
LOG: Final = "user-memory/log.md"
CONNECTIONS: Final = 12


@pytest.fixture(scope="module")
def admin(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Client]:
    """The first administrator of a service with two workers."""
    with LiveService(tmp_path_factory.mktemp("workers"), workers=2) as service:
        ana = first_admin(service)
        # A worker that starts late would answer nothing, and prove nothing.
        assert eventually(lambda: len(_answering(service)) == 2)
        yield ana
        assert faults(service.settings, serving=True) == []


def _links(pid: int) -> set[Path]:
    """The files a process has open."""
    found = set()
    for link in Path(f"/proc/{pid}/fd").iterdir():
        with contextlib.suppress(FileNotFoundError):
            found.add(link.readlink())
    return found


def _runs(pid: int) -> bool:
    """Whether a process has not ended; one that nobody asked for its end yet has no command."""
    with contextlib.suppress(FileNotFoundError, ProcessLookupError):
        return bool(Path(f"/proc/{pid}/cmdline").read_bytes())
    return False


def _answering(service: LiveService) -> set[int]:
    """Workers that have system.db open, as whoever answers has."""
    found = set()
    for pid in service.workers():
        with contextlib.suppress(OSError):
            if service.settings.system_file in _links(pid):
                found.add(pid)
    return found


def _many(send: Callable[[int], httpx.Response], count: int) -> list[httpx.Response]:
    """Send requests on many connections at once, so that both workers get some."""
    with concurrent.futures.ThreadPoolExecutor(CONNECTIONS) as pool:
        return list(pool.map(send, range(count)))


def _fresh(member: Client) -> httpx.Response:
    """Read the note on a connection of its own, taken by whichever worker is free."""
    with httpx.Client(
        base_url=member.service.client.base_url, timeout=60, trust_env=False
    ) as client:
        return client.get("/api/file", params={"path": NOTE}, headers=member.headers)


def _read_by_all(member: Client) -> Counter[int]:
    found = _many(lambda _: _fresh(member), CONNECTIONS)
    return Counter(answer.status_code for answer in found)


def _open_in(service: LiveService, user_id: str) -> set[int]:
    """Workers that have a member's file open."""
    file = service.database / f"{user_id}.db"
    return {pid for pid in service.workers() if file in _links(pid)}


def _member(admin: Client, name: str) -> Client:
    """A member whose store both workers have open."""
    member = add_member(admin, name)
    member.put(NOTE, "text").raise_for_status()
    both = set(admin.service.workers())

    def open_in_both() -> bool:
        assert set(_read_by_all(member)) == {200}
        return _open_in(admin.service, member.user_id) == both

    assert eventually(open_in_both)
    return member


def _sign_out(_: Client, member: Client) -> int:
    assert member.call("DELETE", "/api/session").status_code == 204
    return 401


def _deactivate(admin: Client, member: Client) -> int:
    path = f"/api/admin/users/{member.user_id}"
    answer = admin.call("PATCH", path, json={"active": False})
    assert answer.status_code == 200, answer.text
    return 401


def _erase(admin: Client, member: Client) -> int:
    admin.call("POST", "/api/session/confirm", json={"password": PASSWORD}).raise_for_status()
    answer = admin.call("DELETE", f"/api/admin/users/{member.user_id}")
    assert answer.status_code == 200, answer.text
    return 401


def _recover(admin: Client, member: Client) -> int:
    body = {"password": PASSWORD}
    code = member.call("POST", "/api/me/recovery-code", json=body).json()["recovery_code"]
    body = {"username": member.username, "recovery_code": code, "new_password": PASSWORD + "!"}
    answer = admin.service.client.post("/api/recovery", json=body)
    assert answer.status_code == 200, answer.text
    return 401


def _rotate(_: Client, member: Client) -> int:
    answer = member.call("POST", "/api/me/rotate", json={"password": PASSWORD})
    assert answer.status_code == 200, answer.text
    return 200


def _lock(_: Client, member: Client) -> int:
    assert member.call("POST", "/api/me/lock").status_code == 204
    return 200


ENDINGS: Final = (_sign_out, _deactivate, _erase, _recover, _rotate, _lock)


@pytest.mark.parametrize(
    "end", chosen(ENDINGS[::2], ENDINGS), ids=lambda end: end.__name__.strip("_")
)
def test_what_ends_a_store_s_use_holds_in_every_worker_at_once(
    admin: Client, end: Callable[[Client, Client], int]
) -> None:
    """When it is answered no worker has the store open, and every worker answers alike."""
    member = _member(admin, end.__name__)
    wanted = end(admin, member)
    assert _open_in(admin.service, member.user_id) == set()
    assert set(_read_by_all(member)) == {wanted}


@pytest.mark.long
def test_a_stream_goes_on_in_whichever_worker_a_locked_store_is_used_again(admin: Client) -> None:
    """Locked, it stays closed in both; each use of it in either is told, and none twice."""
    member = _member(admin, "listener")

    async def work() -> None:
        follower = Subscriber(member.service, member.headers, hang_up_after=10_000)
        following = asyncio.create_task(follower.follow())
        assert await asyncio.to_thread(eventually, lambda: follower.seqs)
        for turn in range(6):
            assert member.call("POST", "/api/me/lock").status_code == 204
            await asyncio.sleep(2 * member.service.settings.event_look_ms / 1000)
            assert _open_in(admin.service, member.user_id) == set()
            answer = await asyncio.to_thread(_append_anew, member, f"{turn}")
            assert answer.is_success, answer.text
            # The notes it was made with, the one that was there, and each of these.
            wanted = list(range(1, turn + 5))
            assert await asyncio.to_thread(
                eventually, lambda w=wanted: len(follower.seqs) >= len(w)
            )
            assert follower.seqs == wanted
        assert follower.calls == 1
        following.cancel()

    asyncio.run(work())


def _append_anew(member: Client, text: str) -> httpx.Response:
    """Write on a connection of its own, taken by whichever worker is free."""
    with httpx.Client(
        base_url=member.service.client.base_url, timeout=60, trust_env=False
    ) as client:
        path = f"user-memory/{text}.md"
        headers = {**member.headers, "content-type": "text/markdown"}
        return client.put("/api/file", params={"path": path}, content=b"x", headers=headers)


BUSY: Final = ENDINGS[1:]


@pytest.mark.long
@pytest.mark.parametrize("end", BUSY, ids=lambda end: end.__name__.strip("_"))
def test_what_ends_a_store_s_use_does_so_amid_writes(
    admin: Client, end: Callable[[Client, Client], int]
) -> None:
    """Writers in both workers meet it with their writes kept, or refused in words; no fault."""
    member = _member(admin, f"{end.__name__}-busy")
    ended = False
    acknowledged: list[str] = []
    codes: Counter[str] = Counter()

    def write(thread: int) -> None:
        for number in range(10_000):
            if ended:
                return
            line = f"{thread}.{number}"
            answer = member.append(LOG, line)
            codes[code_of(answer)] += 1
            if answer.status_code < 300:
                acknowledged.append(line)

    with concurrent.futures.ThreadPoolExecutor(8) as pool:
        writing = [pool.submit(write, thread) for thread in range(8)]
        assert eventually(lambda: len(acknowledged) >= 30)
        try:
            wanted = end(admin, member)
        finally:
            ended = True
        for each in writing:
            each.result()
    assert set(codes) <= {"", "store_busy", "invalid_credentials"}, codes
    if wanted == 200:
        lines = member.read(LOG).splitlines()
        assert set(acknowledged) <= set(lines)
        assert len(lines) == len(set(lines))


@pytest.mark.long
def test_writers_of_two_workers_share_one_store_fairly(admin: Client) -> None:
    """While one connection writes without pause, none of the others waits for long."""
    member = _member(admin, "fair")
    slowest: list[float] = []

    def write(connection: int) -> int:
        took = 0.0
        with httpx.Client(
            base_url=admin.service.client.base_url, timeout=60, trust_env=False
        ) as client:
            for number in range(20):
                began = time.monotonic()
                answer = client.put(
                    "/api/file",
                    params={"path": f"user-memory/{connection}/{number}.md"},
                    content=b"text",
                    headers=member.headers | {"content-type": "text/markdown"},
                )
                assert answer.status_code == 201, answer.text
                took = max(took, time.monotonic() - began)
        slowest.append(took)
        return 20

    with concurrent.futures.ThreadPoolExecutor(8) as pool:
        assert sum(pool.map(write, range(8))) == 160
    assert max(slowest) < 5, slowest


def test_a_worker_that_dies_is_replaced_and_its_work_is_kept(admin: Client) -> None:
    """Killed under load, one worker costs the requests it had and nothing else."""
    member = _member(admin, "survivor")
    before = admin.service.workers()
    with concurrent.futures.ThreadPoolExecutor(8) as pool:

        def write(number: int) -> str:
            with contextlib.suppress(httpx.TransportError):
                if member.append(LOG, f"line {number}").status_code < 300:
                    return f"line {number}"
            return ""

        writing = [pool.submit(write, number) for number in range(120)]
        os.kill(before[0], signal.SIGKILL)
        answered = {each.result() for each in writing} - {""}
    assert eventually(lambda: len(_answering(admin.service)) == 2)
    assert set(admin.service.workers()) != set(before)
    assert answered
    assert answered <= set(member.read(LOG).splitlines())
    assert set(_read_by_all(member)) == {200}


@pytest.fixture(scope="module")
def alone(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Client]:
    """The first administrator of a service that tests stop and start."""
    with LiveService(tmp_path_factory.mktemp("alone"), workers=2) as service:
        yield first_admin(service)


def test_a_stop_finishes_the_writes_in_flight(alone: Client) -> None:
    """SIGTERM under load ends in time; what was answered is there, and nothing is left over."""
    service, acknowledged = alone.service, []

    def write(thread: int) -> None:
        with httpx.Client(base_url=service.client.base_url, timeout=60, trust_env=False) as client:
            for number in range(10_000):
                try:
                    answer = client.put(
                        "/api/file",
                        params={"path": f"user-memory/{thread}/{number}.md"},
                        content=b"text",
                        headers=alone.headers | {"content-type": "text/markdown"},
                    )
                except httpx.TransportError:
                    return
                assert answer.status_code in {201, 503}, answer.text
                if answer.status_code == 201:
                    acknowledged.append(f"user-memory/{thread}/{number}.md")

    with concurrent.futures.ThreadPoolExecutor(8) as pool:
        writing = [pool.submit(write, thread) for thread in range(8)]
        assert eventually(lambda: len(acknowledged) > 60)
        began = time.monotonic()
        assert service.stop() == 0
        assert time.monotonic() - began < service.settings.stop_s
        for each in writing:
            each.result()
    assert faults(service.settings, serving=False) == []
    service.start()
    assert all(alone.read(path) == "text" for path in acknowledged[-50:])


@pytest.mark.long
def test_a_request_that_a_stop_cuts_off_is_answered_by_a_problem(alone: Client) -> None:
    """Its body did not come in time: 503 with a code, as whenever the service has no room."""
    service = alone.service
    address = service.client.base_url
    with socket.create_connection((address.host, address.port or 80), timeout=30) as client:
        client.sendall(
            (
                "PUT /api/file?path=user-memory/slow.md HTTP/1.1\r\n"
                f"host: {address.host}:{address.port}\r\n"
                f"authorization: {alone.headers['Authorization']}\r\n"
                "content-type: text/markdown\r\ncontent-length: 10\r\n\r\nx"
            ).encode()
        )
        assert service.stop() == 0
        answer = b"".join(iter(lambda: client.recv(4096), b"")).decode()
    head, _, body = answer.partition("\r\n\r\n")
    assert head.startswith("HTTP/1.1 503")
    assert json.loads(body)["code"] == "overloaded"
    service.start()


@pytest.mark.long
def test_a_second_server_refuses_and_workers_end_with_their_parent(alone: Client) -> None:
    """One root, one server: a second one says why; orphans end before the next one serves."""
    service = alone.service
    second = LiveService(service.settings.root)
    process = second.spawn()
    assert process.wait(60) == 3
    second.kill()
    assert "Another process serves this root" in "".join(second.log)
    workers = service.workers()
    assert service.process is not None
    service.process.kill()
    assert eventually(lambda: not any(_runs(pid) for pid in workers))
    service.kill()
    service.start()
    assert alone.call("GET", "/api/session").status_code == 200
    assert faults(service.settings, serving=True) == []


@pytest.mark.parametrize("wait_s", chosen([0.5], [0.5, 10.0]))
@pytest.mark.long
def test_a_worker_that_stands_still_makes_exclusive_operations_busy_and_changes_nothing(
    tmp_path: Path, wait_s: float
) -> None:
    """Who cannot let a store go is waited for, and then nothing has happened."""
    with LiveService(tmp_path, workers=2, exclusive_wait_s=wait_s) as service:
        admin = first_admin(service)
        assert eventually(lambda: len(_answering(service)) == 2)
        member = _member(admin, "held")
        body = {"password": PASSWORD}
        admin.call("POST", "/api/session/confirm", json=body).raise_for_status()
        before = members(service.settings)["held"]
        still, _ = service.workers()
        os.kill(still, signal.SIGSTOP)
        try:
            with _other_worker(service) as client:
                path = f"/api/admin/users/{member.user_id}"
                for method, sent in (("PATCH", {"active": False}), ("DELETE", None)):
                    answer = client.request(method, path, json=sent, headers=admin.headers)
                    assert code_of(answer) == "store_busy", answer.text
                answer = client.post("/api/me/rotate", json=body, headers=member.headers)
                assert code_of(answer) == "store_busy", answer.text
        finally:
            os.kill(still, signal.SIGCONT)
        after = members(service.settings)["held"]
        assert (after.active, after.dek_id, after.store_state) == (1, before.dek_id, "open")
        assert member.read(NOTE) == "text"
        assert _rotate(admin, member) == 200
        assert faults(service.settings, serving=True) == []


@contextlib.contextmanager
def _other_worker(service: LiveService) -> Iterator[httpx.Client]:
    """A connection to the worker that runs: one whose first request is answered."""
    for _ in range(50):
        client = httpx.Client(base_url=service.client.base_url, timeout=60, trust_env=False)
        with contextlib.suppress(httpx.TimeoutException):
            client.get("/healthz", timeout=1).raise_for_status()
            yield client
            client.close()
            return
        client.close()
    raise AssertionError(service.log)
