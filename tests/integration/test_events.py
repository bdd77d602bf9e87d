"""The feed over HTTP: pages, streams, and what becomes of them when the server goes away."""

import asyncio
import contextlib
import json
import re
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import httpx
import pytest

from tests.support.clients import Client, code_of, first_admin
from tests.support.feeds import Subscriber
from tests.support.matrix import chosen
from tests.support.people import People, people_on
from tests.support.service import LiveService

_WAIT_S: Final = 60


@pytest.fixture(scope="module")
def people(tmp_path_factory: pytest.TempPathFactory) -> Iterator[People]:
    """A group on a running service, whose streams are few and soon say that they live."""
    root = tmp_path_factory.mktemp("root")
    with people_on(root, measured=True, event_heartbeat_s=0.2, event_streams_each=2) as found:
        yield found


@contextlib.contextmanager
def stream(client: Client, **params: str) -> Iterator[Iterator[str]]:
    """A stream's lines."""
    with client.service.client.stream(
        "GET", "/api/events/stream", headers=client.headers, params=params
    ) as answer:
        assert answer.status_code == 200, answer.read()
        assert answer.headers["content-type"].startswith("text/event-stream")
        assert answer.headers["cache-control"] == "private, no-cache"
        assert answer.headers["x-accel-buffering"] == "no"
        yield answer.iter_lines()


def born(client: Client) -> str:
    """The place where a new store's log has come to: it began with the notes it was made with."""
    found = client.call("GET", "/api/events").json()
    assert [item["payload"]["path"] for item in found["items"]] == ["index.md", "log.md"]
    return str(found["next_cursor"])


def events_in(lines: Iterator[str]) -> Iterator[dict[str, Any]]:
    """The events among them."""
    for line in lines:
        if line.startswith("data: {"):
            yield json.loads(line.removeprefix("data: "))


def test_a_page_is_read_on_from_its_cursor(people: People) -> None:
    """To an end where the cursor stays; by the cursor of an event just as well."""
    me = people.add("reader", "member")
    first = born(me)
    for turn in range(3):
        assert me.put(f"user-memory/{turn}.md", "x").is_success
    whole = me.call("GET", "/api/events", params={"after": first}).json()
    assert [item["seq"] for item in whole["items"]] == [3, 4, 5]
    item = whole["items"][0]
    assert item["type"] == "memory_doc.created"
    assert item["payload"] == {
        "path": "0.md",
        "version": 1,
        "size_bytes": 1,
        "author": me.user_id,
    }
    assert item["actor"] == {"kind": "human", "sub": me.user_id, "acting_for": None}
    seen, cursor = [], first
    while True:
        params = {"limit": "2", "after": cursor}
        found = me.call("GET", "/api/events", params=params).json()
        if found["next_cursor"] == cursor:
            assert found["items"] == []
            break
        seen += found["items"]
        cursor = found["next_cursor"]
    assert seen == whole["items"]
    params = {"after": item["cursor"], "types": "memory_doc.*"}
    assert me.call("GET", "/api/events", params=params).json()["items"] == whole["items"][1:]
    params["types"] = "memory_doc.deleted,report.created"
    passed = me.call("GET", "/api/events", params=params).json()
    assert passed == {"items": [], "next_cursor": whole["next_cursor"]}


@pytest.mark.parametrize(
    ("params", "status", "code"),
    [
        ({"after": "x"}, 422, "invalid_input"),
        ({"after": "00.1"}, 410, "event_log_restarted"),
        ({"types": "x"}, 422, "invalid_input"),
        ({"types": ""}, 422, "invalid_input"),
        ({"home": "other"}, 422, "invalid_request"),
        ({"after": "0" * 101}, 422, "invalid_request"),
        ({"more": "1"}, 422, "invalid_request"),
    ],
)
def test_what_cannot_be_followed_is_a_problem(
    people: People, params: dict[str, str], status: int, code: str
) -> None:
    """Of a page and of a stream alike, before any of it is sent."""
    for path in ("/api/events", "/api/events/stream"):
        answer = people.member.call("GET", path, params=params)
        assert (answer.status_code, code_of(answer)) == (status, code)


@pytest.mark.parametrize("limit", ["0", "1001", "-1", "x", "1_0"])
def test_a_page_has_a_limit(people: People, limit: str) -> None:
    """A thousand at most."""
    assert people.member.call("GET", "/api/events", params={"limit": limit}).status_code == 422


def test_a_pruned_place_is_told_with_the_first_kept(people: People) -> None:
    """As 410; a place ahead of the log as 409; places go on."""
    me = people.add("pruner", "member")
    assert me.put("user-memory/a.md", "x").is_success
    first = me.call("GET", "/api/events").json()["next_cursor"]
    assert me.put("user-memory/a.md", "y").is_success
    before = {"before": "2999-01-01T00:00:00Z"}
    assert me.call("DELETE", "/api/events", params=before).json() == {"removed": 4}
    for path in ("/api/events", "/api/events/stream"):
        answer = me.call("GET", path, params={"after": first})
        assert (answer.status_code, code_of(answer)) == (410, "event_cursor_expired")
        assert answer.json()["first_seq"] == 5
        for seq in (5, 2**63 - 1):
            ahead = f"{first.split('.')[0]}.{seq}"
            answer = me.call("GET", path, params={"after": ahead})
            assert (answer.status_code, code_of(answer)) == (409, "event_cursor_ahead")
    assert me.call("DELETE", "/api/events").status_code == 422
    assert me.put("user-memory/a.md", "z").is_success
    assert [item["seq"] for item in me.call("GET", "/api/events").json()["items"]] == [5]


def test_a_stream_tells_what_happens_and_goes_on(people: People) -> None:
    """At once; and from `Last-Event-ID`, which counts for more than `after`."""
    me = people.add("streamer", "member")
    start = born(me)
    assert me.put("user-memory/a.md", "x").is_success
    with stream(me, after=start) as lines:
        found = events_in(lines)
        first = next(found)
        assert first["payload"]["path"] == "a.md"
        assert me.put("user-memory/b.md", "x").is_success
        second = next(found)
        assert second["payload"]["path"] == "b.md"
        assert second == me.call("GET", "/api/events").json()["items"][-1]
    headers = {**me.headers, "Last-Event-ID": first["cursor"]}
    again = Client(me.service, me.username, me.password, headers, me.user_id)
    with stream(again, after=second["cursor"]) as lines:
        assert next(events_in(lines)) == second


def test_a_stream_cannot_come_back_to_two_places(people: People) -> None:
    """Two `Last-Event-ID` are refused, be they the same or not; so is one that is none."""
    me = people.member
    cursor = me.call("GET", "/api/events").json()["next_cursor"]
    for sent in ([cursor, cursor], [cursor, "x"], ["x"], [""], ["0" * 101]):
        headers = [*me.headers.items(), *(("Last-Event-ID", each) for each in sent)]
        answer = me.service.client.get("/api/events/stream", headers=headers)
        assert answer.status_code == 422, sent


def test_a_token_hears_what_it_may_ask_for(people: People) -> None:
    """With the feed's scope alone nothing of its member's notes; in pages and streams alike."""
    me = people.add("careful", "member")
    start = born(me)
    assert me.put("user-memory/private.md", "x").is_success
    for scopes, count in ((["events:read"], 0), (["events:read", "memory:read"], 1)):
        body = {"label": "t", "scopes": scopes}
        made = me.call("POST", "/api/tokens", json=body)
        assert made.status_code == 201, made.text
        headers = {"Authorization": f"Bearer {made.json()['token']}"}
        token = Client(me.service, me.username, me.password, headers, me.user_id)
        found = token.call("GET", "/api/events", params={"after": start}).json()
        assert len(found["items"]) == count
        with stream(token, after=start) as lines:
            begun = [next(lines) for _ in range(4)]
            assert begun[0] == ": waiting"
            assert ("private.md" in begun[3]) == bool(count)


def test_a_quiet_stream_says_that_it_lives(people: People) -> None:
    """By a comment, with the place to come back to."""
    me = people.add("quiet", "member")
    cursor = born(me)
    with stream(me, after=cursor) as lines:
        for _ in range(3):
            assert [next(lines) for _ in range(3)] == [": waiting", f"id: {cursor}", ""]


def test_a_session_that_ends_ends_its_stream(people: People) -> None:
    """It is told why, and coming back is refused."""
    me = people.add("leaver", "member")
    other = Client(me.service, me.username, me.password, {}, me.user_id).sign_in()
    with stream(other) as lines:
        assert next(lines) == ": waiting"
        assert other.call("DELETE", "/api/session").status_code == 204
        rest = list(lines)
    assert rest[-3:-1] == ["event: end", 'data: {"code": "invalid_credentials"}']
    assert other.call("GET", "/api/events/stream").status_code == 401


def test_streams_are_few_and_end_with_their_client(people: People) -> None:
    """One too many is refused; one that hung up is soon not counted any more."""
    me = people.add("many", "member")
    with stream(me) as one, stream(me) as two:
        assert next(one) == next(two) == ": waiting"
        answer = me.call("GET", "/api/events/stream")
        assert (answer.status_code, code_of(answer)) == (429, "too_many_streams")
    deadline = time.monotonic() + _WAIT_S
    while True:
        with me.service.client.stream("GET", "/api/events/stream", headers=me.headers) as answer:
            if answer.status_code == 200:
                break
        assert time.monotonic() < deadline


def test_the_groups_feed_shows_what_the_caller_may_see(people: People) -> None:
    """Shared notes to everybody, the registry to who administers, each token by its scopes."""
    assert people.member.put("shared-memory/seen.md", "x").is_success
    params = {"home": "group", "limit": "1000"}

    def kinds(client: Client) -> set[str]:
        items = client.call("GET", "/api/events", params=params).json()["items"]
        return {item["entity_type"] for item in items}

    assert kinds(people.other) == {"memory_doc"}
    assert {"memory_doc", "user", "session"} <= kinds(people.admin)
    assert kinds(people.token(people.admin, "events:read")) == set()
    assert kinds(people.token(people.admin, "events:read", "memory:read")) == {"memory_doc"}
    refused = people.token(people.admin, "memory:read").call("GET", "/api/events", params=params)
    assert code_of(refused) == "not_permitted"


def test_the_record_is_read_by_who_may(people: People) -> None:
    """Newest first, page by page; of content the size alone, of secrets that they changed."""
    target = people.add("recorded", "member")
    body = {"notes": "words about them", "display_name": "R"}
    path = f"/api/admin/users/{target.user_id}"
    assert people.admin.call("PATCH", path, json=body).is_success
    params = {"entity": "user", "record_id": target.user_id}
    answer = people.admin.call("GET", "/api/admin/audit", params=params)
    items = answer.json()["items"]
    assert [item["ordinal"] for item in items] == list(range(len(items), 0, -1))
    assert items[0]["fields"] == {"display_name": [None, "R"], "notes": [None, 16]}
    assert items[0]["actor"]["sub"] == people.admin.user_id
    assert items[-1]["fields"]["database_password"] == [None, "[redacted]"]
    assert "words about them" not in answer.text
    begun = people.admin.call("GET", "/api/admin/audit", params={"entity": "session"}).json()
    [before, ends] = begun["items"][0]["fields"]["ends_at"]
    assert before is None
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z", ends)
    seen, cursor = [], None
    while True:
        more = {**params, "limit": "1", **({"cursor": cursor} if cursor else {})}
        page = people.admin.call("GET", "/api/admin/audit", params=more).json()
        seen += page["items"]
        cursor = page["next_cursor"]
        if cursor is None:
            break
    assert seen == items
    by = people.admin.call("GET", "/api/admin/audit", params={"actor": "nobody"}).json()
    late = {"since": "2999-01-01T00:00:00Z"}
    assert by["items"] == people.admin.call("GET", "/api/admin/audit", params=late).json()["items"]


def test_reports_are_not_in_the_record_that_is_listed(people: People) -> None:
    """Not even to an administrator: whoever it is about would learn that it is there."""
    body = {
        "kind": "k",
        "title": "t",
        "body": "b",
        "produced_by": "p",
        "audience": "admins",
        "subject_user_id": people.admin.user_id,
    }
    boss = people.add("boss", "admin")
    assert boss.call("POST", "/api/reports", json=body).status_code == 201
    params = {"entity": "report"}
    assert boss.call("GET", "/api/admin/audit", params=params).json()["items"] == []
    seen = people.admin.call("GET", "/api/events", params={"home": "group", "types": "report.*"})
    assert seen.json()["items"] == []
    made = boss.call("GET", "/api/events", params={"home": "group", "types": "report.*"}).json()
    assert [item["type"] for item in made["items"]] == ["report.created"]


class Writers:
    """Many at once in one store; each comes back when the server was away."""

    def __init__(self, client: Client, count: int, turns: int) -> None:
        self.acknowledged: set[tuple[str, int]] = set()
        """Path and version of each write that was answered for."""
        self.half_done = asyncio.Event()
        self._client = client
        self._count = count
        self._turns = turns

    async def run(self) -> None:
        """Write everything."""
        limits = httpx.Limits(max_connections=self._count)
        async with httpx.AsyncClient(timeout=_WAIT_S, trust_env=False, limits=limits) as client:
            await asyncio.gather(*(self._write(client, n) for n in range(self._count)))

    async def _write(self, client: httpx.AsyncClient, number: int) -> None:
        headers = {**self._client.headers, "content-type": "text/markdown"}
        params = {"path": f"user-memory/{number}.md"}
        for turn in range(self._turns):
            while True:
                url = f"{str(self._client.service.client.base_url).rstrip('/')}/api/file"
                try:
                    answer = await client.put(
                        url, params=params, headers=headers, content=f"{turn}".encode()
                    )
                except httpx.HTTPError:
                    await asyncio.sleep(0.05)
                    continue
                if answer.is_success:
                    break
                assert answer.status_code == 503, answer.text
            self.acknowledged.add((f"{number}.md", answer.json()["version"]))
            if len(self.acknowledged) * 2 >= self._count * self._turns:
                self.half_done.set()


async def _follow_through_a_crash(
    service: LiveService, me: Client, turns: int
) -> tuple[Writers, list[Subscriber]]:
    writers = Writers(me, 50, turns)
    subscribers = [Subscriber(service, me.headers, hang_up) for hang_up in (3, 10, 25, 60, 10_000)]
    following = [asyncio.create_task(each.follow()) for each in subscribers]
    writing = asyncio.create_task(writers.run())
    await writers.half_done.wait()

    def crash() -> None:
        service.kill()
        service.start()

    await asyncio.to_thread(crash)
    await writing
    end = (await asyncio.to_thread(_whole_log, me))[-1]["seq"]
    async with asyncio.timeout(_WAIT_S):
        while any(not each.seqs or each.seqs[-1] < end for each in subscribers):  # noqa: ASYNC110 - what others do
            await asyncio.sleep(0.02)
    for task in following:
        task.cancel()
    ended = await asyncio.gather(*following, return_exceptions=True)
    assert all(isinstance(each, asyncio.CancelledError) for each in ended), ended
    return writers, subscribers


def _whole_log(me: Client) -> list[dict[str, Any]]:
    log: list[dict[str, Any]] = []
    while True:
        params = {"limit": "1000", **({"after": log[-1]["cursor"]} if log else {})}
        found = me.call("GET", "/api/events", params=params).json()["items"]
        if not found:
            return log
        log += found


@pytest.mark.parametrize(("workers", "turns"), chosen([(1, 2)], [(1, 20), (2, 40)]))
@pytest.mark.long
def test_whoever_follows_misses_nothing_and_sees_nothing_twice(
    tmp_path: Path, workers: int, turns: int
) -> None:
    """Fifty writers, five subscribers who hang up and come back, a crash amid them, a stop."""
    with LiveService(tmp_path, workers) as service:
        me = first_admin(service)
        writers, subscribers = asyncio.run(_follow_through_a_crash(service, me, turns))
        log = _whole_log(me)
        assert [event["seq"] for event in log] == list(range(1, len(log) + 1))
        for each in subscribers:
            assert each.seen == log
            assert each.calls > 1
        told = {(event["payload"]["path"], event["payload"]["version"]) for event in log}
        assert len(writers.acknowledged) == 50 * turns
        assert writers.acknowledged <= told
        _stop_while_somebody_follows(service, me)


def _stop_while_somebody_follows(service: LiveService, me: Client) -> None:
    """Open streams end first, whole; none of them holds up the stop."""
    ready, is_whole = threading.Event(), threading.Event()

    def listen() -> None:
        with stream(me) as lines:
            for line in lines:
                if line.startswith("data: "):
                    ready.set()
        is_whole.set()

    listener = threading.Thread(target=listen)
    listener.start()
    assert ready.wait(_WAIT_S)
    assert service.stop() == 0
    listener.join(_WAIT_S)
    assert not listener.is_alive()
    # Cut off, as uvicorn does in the end with what does not end, it would have no end.
    assert is_whole.is_set()
    assert '"event": "unexpected"' not in "".join(service.log)
