"""Power cuts at random instants of a mixed load: what was acknowledged is there afterwards."""

import random  # noqa: TID251 - a seed makes a crash repeatable; nothing here is secret
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import partial
from typing import Final

import httpx
import pytest

from tests.support.clients import Client, add_member, code_of, first_admin, new_user, own_password
from tests.support.matrix import chosen
from tests.support.outside import faults, members, opens
from tests.support.service import PASSWORD, LiveService

LOG: Final = "user-memory/log.md"
KEPT: Final = "user-memory/kept.md"
LONGEST_S: Final = 0.6


class Cut(Exception):  # noqa: N818 - not an error: what the test is for
    """The server is gone, and the answer with it."""


@dataclass
class Work:
    """One kind of load: what was asked, what was answered, and what must hold afterwards."""

    member: Client
    asked: list[str] = field(default_factory=list)
    acknowledged: list[str] = field(default_factory=list)

    @property
    def in_doubt(self) -> set[str]:
        """What was asked and never answered."""
        return set(self.asked) - set(self.acknowledged)

    def ask(self, what: str, send: Callable[[], httpx.Response]) -> httpx.Response:
        """Send one request and take down its answer."""
        self.asked.append(what)
        try:
            answer = send()
        except httpx.TransportError as error:
            raise Cut from error
        assert answer.status_code < 300, answer.text
        self.acknowledged.append(what)
        return answer


def _write_notes(work: Work) -> None:
    for number in range(10_000):
        text = f"text {number}"
        work.ask(text, partial(work.member.put, f"user-memory/{number}.md", text))


def _check_notes(work: Work) -> None:
    for text in work.acknowledged:
        assert work.member.read(f"user-memory/{text.removeprefix('text ')}.md") == text


def _append_lines(work: Work) -> None:
    for number in range(10_000):
        line = f"line {number}"
        work.ask(line, partial(work.member.append, LOG, line))


def _check_lines(work: Work) -> None:
    lines = work.member.read(LOG).splitlines() if work.acknowledged else []
    assert lines[: len(work.acknowledged)] == work.acknowledged
    assert set(lines[len(work.acknowledged) :]) <= work.in_doubt


def _rotate(work: Work) -> None:
    for number in range(10_000):
        body = {"password": PASSWORD}
        work.ask(str(number), partial(work.member.call, "POST", "/api/me/rotate", json=body))


def _check_rotated(work: Work) -> None:
    row = members(work.member.service.settings)[work.member.username]
    assert opens(work.member.service.settings, row, PASSWORD)
    assert work.member.read(KEPT) == work.member.username
    assert work.member.sign_in().read(KEPT) == work.member.username


def _change_password(work: Work) -> None:
    for number in range(10_000):
        new = f"fine password number {number}"
        body = {"current_password": work.member.password, "new_password": new}
        work.ask(new, partial(work.member.call, "PUT", "/api/me/password", json=body))
        work.member.password = new


def _check_password(work: Work) -> None:
    settings = work.member.service.settings
    row = members(settings)[work.member.username]
    possible = {work.member.password} | work.in_doubt
    (right,) = [password for password in possible if opens(settings, row, password)]
    assert work.member.read(KEPT) == work.member.username
    assert work.member.sign_in(right).read(KEPT) == work.member.username


def _sign_up(work: Work) -> None:
    for number in range(10_000):
        name = f"{work.member.username}-new-{number}"
        work.ask(name, partial(new_user, work.member, name, encrypted=bool(number % 2)))


def _check_signed_up(work: Work) -> None:
    present = members(work.member.service.settings)
    for name in work.acknowledged:
        row = present[name]
        assert opens(work.member.service.settings, row, PASSWORD)
    for name in work.in_doubt - present.keys():
        assert new_user(work.member, name).status_code == 201
    for name in work.asked[-2:]:
        work.member.service.sign_in(name)


def _erase(work: Work) -> None:
    for number in range(10_000):
        name = f"{work.member.username}-old-{number}"
        user_id = new_user(work.member, name).json()["user"]["id"]
        work.ask(name, partial(work.member.call, "DELETE", f"/api/admin/users/{user_id}"))


def _check_erased(work: Work) -> None:
    present = members(work.member.service.settings)
    assert not present.keys() & set(work.acknowledged)
    for name in work.in_doubt:
        expected = 409 if name in present else 201
        assert new_user(work.member, name).status_code == expected
        work.member.service.sign_in(name)


LOAD: Final = [
    (_write_notes, _check_notes),
    (_append_lines, _check_lines),
    (_rotate, _check_rotated),
    (_change_password, _check_password),
    (_sign_up, _check_signed_up),
    (_erase, _check_erased),
]
"""What is done, on one thread each, and what is looked at afterwards."""


@pytest.fixture(scope="module", params=chosen([1], [1, 2]), ids=lambda count: f"{count}w")
def admin(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Client]:
    """The first administrator of a running service."""
    with LiveService(tmp_path_factory.mktemp("crash"), workers=request.param) as service:
        yield first_admin(service)


def _begin(admin: Client, name: str) -> list[Work]:
    works = []
    for number, (do, _) in enumerate(LOAD):
        client = add_member(admin, f"{name}-{number}")
        client.put(KEPT, client.username).raise_for_status()
        if do in {_sign_up, _erase}:
            client = Client(
                admin.service, client.username, PASSWORD, admin.service.sign_in(admin.username)
            )
        elif do is not _change_password:
            own_password(client)
        works.append(Work(client))
    return works


def _run(do: Callable[[Work], None], work: Work, failures: list[BaseException]) -> None:
    try:
        do(work)
    except (Cut, httpx.TransportError):
        return
    except BaseException as error:  # noqa: BLE001 - told to the test, which raises it
        failures.append(error)


@pytest.mark.parametrize("seed", chosen(range(10), range(100)))
def test_what_was_acknowledged_survives_a_power_cut(admin: Client, seed: int) -> None:
    """After a cut at any instant every store has one key, and every write that was answered."""
    chance = random.Random(seed)  # noqa: S311 - as above
    works = _begin(admin, f"s{seed}")
    failures: list[BaseException] = []
    threads = [
        threading.Thread(target=_run, args=(do, work, failures))
        for (do, _), work in zip(LOAD, works, strict=True)
    ]
    for thread in threads:
        thread.start()
    time.sleep(chance.uniform(0, LONGEST_S))
    admin.service.kill()
    for thread in threads:
        thread.join()
    assert failures == []
    admin.service.start()
    assert faults(admin.service.settings, serving=True) == []
    for (_, check), work in zip(LOAD, works, strict=True):
        check(work)
    assert faults(admin.service.settings, serving=True) == []


def test_a_start_that_is_killed_is_made_good_by_the_next(admin: Client) -> None:
    """A server killed while it brings its root to order leaves that to the next one."""
    admin.service.kill_once("rotate.exchanged", everybody=True)
    eva = add_member(admin, "eva-of-starts")
    eva.put(KEPT, "kept").raise_for_status()
    with pytest.raises(httpx.TransportError):
        eva.call("POST", "/api/me/rotate", json={"password": PASSWORD})
    admin.service.kill()
    for delay_s in chosen([0.4], [0.1 * n for n in range(15)]):
        process = admin.service.spawn()
        time.sleep(delay_s)
        admin.service.kill()
        assert process.returncode is not None
    admin.service.start()
    assert faults(admin.service.settings, serving=True) == []
    assert eva.read(KEPT) == "kept"
    assert code_of(eva.call("POST", "/api/me/rotate", json={"password": PASSWORD})) == ""
