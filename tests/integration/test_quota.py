"""A member's quota over their jobs and schedules; what was answered once is answered still."""

import contextlib
from collections.abc import Callable, Iterator
from typing import Any, Final

import pytest

from tests.support.people import people_on
from tests.support.problems import require_problem
from tests.support.repeats import Group, Request, number, patch_user

REPLAYED: Final = "idempotency-replayed"
Act = Callable[[Group], Request]


@pytest.fixture(scope="module")
def group(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Group]:
    """A group on a running service."""
    with people_on(tmp_path_factory.mktemp("quota")) as found:
        yield Group(found)


@contextlib.contextmanager
def full(group: Group) -> Iterator[None]:
    """The plain member has no room left."""
    admin, user_id = group.people.admin, group.plain.user_id
    patch_user(admin, user_id, quota_bytes=1).send(None).raise_for_status()
    try:
        yield
    finally:
        patch_user(admin, user_id, quota_bytes=None).send(None).raise_for_status()


def ask(group: Group, method: str, path: str, body: Any = None) -> Request:  # noqa: ANN401 - JSON
    """A request of the plain member's."""
    return Request(group.plain, method, path, {} if body is None else {"json": body})


def job(group: Group) -> Request:
    """A job to be enqueued."""
    return ask(group, "POST", "/api/jobs", {"kind": f"kind-{number()}", "payload": None})


def held(group: Group, act: str, **more: object) -> Request:
    """Something to be done to a job that is claimed."""
    made = job(group).send(None).json()
    claim = ask(group, "POST", "/api/jobs/claim", {"kinds": [made["kind"]]}).send(None).json()
    body = {"generation": claim["job"]["generation"], **more}
    return ask(group, "POST", f"/api/jobs/{made['id']}/{act}", body)


def schedule(group: Group) -> Request:
    """A schedule to be made."""
    body = {"title": "T", "interval_s": 86_400, "prompt": "Write it."}
    return ask(group, "POST", "/api/schedules", body)


def made(group: Group, method: str, body: Any = None, act: str = "") -> Request:  # noqa: ANN401 - JSON
    """Something to be done to a schedule that is there."""
    found = schedule(group).send(None)
    return ask(group, method, f"/api/schedules/{found.json()['id']}{act}", body)


ADDING: Final[dict[str, Act]] = {
    "a job": job,
    "a result": lambda group: held(group, "complete", result={"n": 1}),
    "an error": lambda group: held(group, "fail", error="no luck"),
    "a schedule": schedule,
    "a longer prompt": lambda group: made(group, "PATCH", {"prompt": "Write all of it."}),
    "a run by hand": lambda group: made(group, "POST", act="/run"),
}
ADDING_NOTHING: Final[dict[str, Act]] = {
    "no result": lambda group: held(group, "complete"),
    "a heartbeat": lambda group: held(group, "heartbeat"),
    "a cancelled job": lambda group: held(group, "cancel"),
    "a shorter prompt": lambda group: made(group, "PATCH", {"prompt": "Write."}),
    "a schedule turned off": lambda group: made(group, "PATCH", {"enabled": False}),
    "a schedule less": lambda group: made(group, "DELETE"),
}


@pytest.mark.parametrize("name", ADDING)
def test_what_adds_to_a_full_store_is_refused(name: str, group: Group) -> None:
    """And changes nothing; once done it is answered again, be the store full by then."""
    request, key = ADDING[name](group), f"key-{number()}"
    with full(group):
        before = group.counts()
        refused = require_problem(request.send(key), 507, "quota_exceeded")
        assert (refused["limit"], refused["limit_max"], refused["left"]) == ("bytes", 1, 0)
        assert group.counts() == before
    first = request.send(key)
    assert first.is_success, first.text
    with full(group):
        again = request.send(key)
    assert (again.content, again.headers.get(REPLAYED)) == (first.content, "true")


@pytest.mark.parametrize("name", ADDING_NOTHING)
def test_what_adds_nothing_to_a_full_store_is_done(name: str, group: Group) -> None:
    """A full store is no cage."""
    request = ADDING_NOTHING[name](group)
    with full(group):
        answer = request.send(None)
    assert answer.is_success, answer.text


@pytest.mark.parametrize("base", ["/api/schedules", "/api/admin/schedules"])
@pytest.mark.parametrize("state", ["full", "with room"])
def test_what_was_done_to_a_schedule_that_is_gone_is_not_answered(
    base: str, state: str, group: Group
) -> None:
    """A change and a run by hand are 404 by then; its removal is answered again."""
    admin = group.people.admin
    who = group.plain if base == "/api/schedules" else admin
    body = {"title": "T", "interval_s": 86_400}
    found = Request(who, "POST", base, {"json": body}).send(None).json()
    path = f"{base}/{found['id']}"
    requests = [
        Request(who, "PATCH", path, {"json": {"prompt": "Write it."}}),
        Request(who, "POST", f"{path}/run"),
    ]
    keys = [f"key-{number()}" for _ in requests]
    for request, key in zip(requests, keys, strict=True):
        assert request.send(key).is_success
    removal, other = Request(who, "DELETE", path), f"key-{number()}"
    assert removal.send(other).status_code == 204
    with full(group) if state == "full" else contextlib.nullcontext():
        for request, key in zip(requests, keys, strict=True):
            require_problem(request.send(key), 404, "not_found")
        again = removal.send(other)
    assert (again.status_code, again.headers.get(REPLAYED)) == (204, "true")
