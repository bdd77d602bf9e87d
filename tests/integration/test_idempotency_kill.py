"""A request that comes again after a crash, or while its twin is under way, over two workers."""

import concurrent.futures
import signal
from collections.abc import Iterator
from typing import Final

import httpx
import pytest

from tests.support.clients import Client, add_member, code_of
from tests.support.matrix import chosen
from tests.support.outside import eventually, faults
from tests.support.people import People, people_on
from tests.support.points import ON_DISK, REPEATED
from tests.support.repeats import Request, append, counted, erase, number, patch_user

REPLAYED: Final = "idempotency-replayed"
TWINS: Final = 10
NOT_YET: Final = frozenset({"idempotency_in_progress", "store_busy"})


@pytest.fixture(scope="module")
def people(tmp_path_factory: pytest.TempPathFactory) -> Iterator[People]:
    """A group on a service with two workers."""
    with people_on(tmp_path_factory.mktemp("kill"), workers=2) as people:
        yield people


@pytest.mark.parametrize("root", ["user-memory", "shared-memory"])
def test_of_twins_in_flight_one_acts(root: str, people: People) -> None:
    """Ten at once over two workers: one line is added, and all are told the same."""
    path, key = f"{root}/twins.md", f"key-{number()}"
    first = append(people.member, path)
    first.send(None).raise_for_status()

    def ask(_: int) -> httpx.Response:
        with httpx.Client(
            base_url=people.service.client.base_url, timeout=60, trust_env=False
        ) as client:
            headers = people.member.headers | {"Idempotency-Key": key}
            return client.post("/api/file/append", headers=headers, **first.more)

    with concurrent.futures.ThreadPoolExecutor(TWINS) as pool:
        answers = list(pool.map(ask, range(TWINS)))
    assert {answer.status_code for answer in answers} == {200}
    assert len({answer.content for answer in answers}) == 1
    assert sum(REPLAYED not in answer.headers for answer in answers) == 1
    assert people.member.read(path).count("line") == 2


def _killed(people: People, request: Request, key: str, point: str) -> None:
    """Have the worker that is asked end itself at a point."""
    people.service.kill_once(point, everybody=False)
    with pytest.raises(httpx.TransportError):
        request.send(key)
    assert people.service.wait_for("worker_ended")["code"] == -signal.SIGKILL


def _again(request: Request, key: str) -> httpx.Response:
    """Ask again, until what the crash left is settled."""
    return eventually(lambda: request.send(key), lambda answer: code_of(answer) not in NOT_YET)


@pytest.mark.parametrize("root", chosen(["user-memory"], ["user-memory", "shared-memory"]))
@pytest.mark.parametrize("point", ["once.acted", "once.answered"])
def test_a_write_cut_by_a_crash_is_done_once(point: str, root: str, people: People) -> None:
    """Before the commit nothing was done; after it the answer is there though nobody got it."""
    path, key = f"{root}/{point}.md", f"key-{number()}"
    request = append(people.member, path)
    _killed(people, request, key, point)
    answer = _again(request, key)
    assert answer.status_code == 201, answer.text
    assert (REPLAYED in answer.headers) == (point == "once.answered")
    assert people.member.read(path).count("line") == 1
    before = counted(people.service), counted(people.service, people.member)
    assert request.send(key).content == answer.content
    after = counted(people.service), counted(people.service, people.member)
    before[1].pop("access_log")  # the other worker may open the store first now
    after[1].pop("access_log")
    assert after == before


@pytest.mark.long
@pytest.mark.parametrize("point", ["once.acted", *sorted(ON_DISK - {"root.row_removed"})])
def test_a_write_on_the_disk_cut_by_a_crash_is_done_once(point: str, people: People) -> None:
    """Decided, it stands there once whoever comes next; before, nothing of it does."""
    slug, key = f"p{number()}", f"key-{number()}"
    made = people.member.call("POST", "/api/projects", json={"slug": slug, "name": "Plan"})
    path = f"{made.json()['path']}/log.md"
    request = append(people.member, path)
    _killed(people, request, key, point)
    answer = _again(request, key)
    assert answer.status_code == 201, answer.text
    assert (REPLAYED in answer.headers) == (point in ON_DISK)
    assert people.member.read(path) == "line"
    append(people.member, path).send(None).raise_for_status()
    assert people.member.read(path) == "line\nline"
    assert faults(people.service.settings, serving=True) == []


ERASURE: Final = {
    "erase.taken": False,
    "once.acted": True,
    "erase.begun": True,
    "erase.file_removed": True,
    "erase.row_removed": True,
    "erase.done": True,
    "once.answered": True,
}
"""Each point, and whether the member is erased, and the answer kept, when killed there."""
CLOSING: Final = {
    "close.taken": False,
    "once.acted": False,
    "close.written": True,
    "once.answered": True,
}


def _leaver(people: People) -> Client:
    return add_member(people.admin, f"leaver-{number()}")


SHORT: Final = [("erasure", "erase.file_removed")]
LONG: Final = [
    *(("erasure", point) for point in ERASURE),
    *(("deactivation", point) for point in CLOSING),
]


@pytest.mark.parametrize(("kind", "point"), chosen(SHORT, LONG))
def test_an_operation_cut_by_a_crash_is_done_once(kind: str, point: str, people: People) -> None:
    """Undone, it is done by the request that comes again; finished, that gets its answer."""
    leaver, key = _leaver(people), f"key-{number()}"
    if kind == "erasure":
        request, kept = erase(people.admin, leaver.user_id), ERASURE[point]
    else:
        request = patch_user(people.admin, leaver.user_id, active=False)
        kept = CLOSING[point]
    _killed(people, request, key, point)
    answer = _again(request, key)
    assert answer.status_code == 200, answer.text
    assert (REPLAYED in answer.headers) == kept
    assert request.send(key).content == answer.content
    if kind == "deactivation":
        present = people.admin.call("GET", f"/api/admin/users/{leaver.user_id}").json()
        assert present == answer.json()
        assert (present["user"]["active"], present["user"]["store_state"]) == (False, "open")
    assert faults(people.service.settings, serving=True) == []


def test_every_point_of_a_request_is_in_the_matrix() -> None:
    """As `test_kill` says of the others."""
    assert set(ERASURE) | set(CLOSING) > REPEATED
