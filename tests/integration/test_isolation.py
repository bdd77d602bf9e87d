"""No request of one member ever opens a file of another's, whatever it asks for.

The kernel is asked what is opened, read or written in `database/` while the calls that the
other tests know of are made, over HTTP and by the Model Context Protocol: with the other's store
locked, and with it open in the same process. And no answer holds a word of theirs.
"""

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import httpx
import pytest

from app.bridge.tools.table import TOOLS
from app.clock import system_clock
from app.ids import UserId, new_uuid7
from app.web.rules import RULES
from tests.support import repeats_of_content as content
from tests.support import repeats_of_disk as disk
from tests.support import repeats_of_people as accounts
from tests.support import repeats_of_work as work
from tests.support.clients import ENDLESS, Client
from tests.support.matrix import chosen
from tests.support.opening import Opening
from tests.support.people import people_on
from tests.support.repeats import Build, Group, report_body
from tests.support.texts import ROOTS, TEXT_CALLS, in_root

pytestmark = pytest.mark.long

CANARY: Final = "canary-of-cyd-8d1f"
"""A word that stands in whatever the other has."""
NOTE: Final = "of-cyd.md"
CASES: Final = (*content.CASES, *disk.CASES, *accounts.CASES, *work.CASES)
WRITES: Final = chosen((*content.CASES, *disk.CASES), CASES)
READS: Final = sorted(route for route in RULES if route.startswith("GET ") and route not in ENDLESS)
QUIET: Final[dict[str, float]] = {
    "janitor_s": 3600,
    "housekeeping_s": 36_000,
    "job_poll_s": 3600,
    "job_look_s": 3600,
    "delivery_poll_s": 3600,
    "delivery_look_s": 3600,
}
"""What is done beside requests waits, so that what is seen is theirs."""


@dataclass
class Held:
    """What the other has, by the names that a stranger might give it."""

    group: Group
    opening: Opening
    names: dict[str, str]
    is_open: bool = True

    @property
    def other(self) -> Client:
        """Whose it is."""
        return self.group.people.other

    def touched(self) -> set[str]:
        """Which of the other's files something was done to since the last look.

        Locked, not a byte of them is read. Open, the process itself looks for what is due
        in them, by handles that it has: so then they are not opened.
        """
        files = self.group.service.settings.files_folder(UserId(self.other.user_id))
        found = self.opening.opened() if self.is_open else self.opening.take()
        return {path.name for path in found if self._is_theirs(path, files)}

    def _is_theirs(self, path: Path, files: Path) -> bool:
        return path.name.startswith(self.other.user_id) or path.parent == files

    def lock(self) -> None:
        """Close the other's store."""
        self.other.call("POST", "/api/me/lock").raise_for_status()
        self.touched()
        self.is_open = False

    def unlock(self) -> None:
        """Open it."""
        self.is_open = True
        for _ in range(20):
            assert self.other.read(f"user-memory/{NOTE}").startswith(CANARY)
        self.touched()


@pytest.fixture(scope="module")
def held(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Held]:
    """A group, one of whom has a note, a report and a file."""
    root = tmp_path_factory.mktemp("isolation")
    with people_on(root, **QUIET) as people:  # type: ignore[arg-type] # settings by name alone
        group, other = Group(people), people.other
        other.put(f"user-memory/{NOTE}", f"{CANARY}\nx\n").raise_for_status()
        report = other.call("POST", "/api/reports", json=report_body("owner")).json()["id"]
        blob = str(new_uuid7(system_clock()))
        other.call("PUT", f"/api/blobs/{blob}", content=CANARY.encode()).raise_for_status()
        job = other.call("POST", "/api/jobs", json={"kind": "k", "payload": {}}).json()["id"]
        names = {
            "report_id": report,
            "blob_id": blob,
            "job_id": job,
            "home": "own",
            "version": "1",
            "user_id": other.user_id,
        }
        settings = group.service.settings
        files = settings.files_folder(UserId(other.user_id))
        with Opening(settings.database, files) as opening:
            yield Held(group, opening, names)


@pytest.fixture(params=["locked", "unlocked"])
def theirs(request: pytest.FixtureRequest, held: Held) -> Held:
    """The same with the other's store locked, and open in the very process that is asked."""
    (held.lock if request.param == "locked" else held.unlock)()
    return held


def require_apart(theirs: Held, answer: httpx.Response, asked: object) -> None:
    """Hold one answer, and what was done for it, against the promise."""
    assert answer.status_code < 500, (asked, answer.text)
    assert CANARY not in answer.text, asked
    assert CANARY not in str(answer.headers), asked
    assert theirs.touched() == set(), asked


def test_what_the_other_does_is_seen(held: Held) -> None:
    """The watch would not miss it: not the opening of their store, nor of a file beside it."""
    held.lock()
    assert held.other.get(f"user-memory/{NOTE}").is_success
    assert f"{held.other.user_id}.db" in held.touched()
    assert held.other.call("GET", f"/api/blobs/{held.names['blob_id']}").is_success
    assert any(not name.startswith(held.other.user_id) for name in held.touched())


def _ids(value: object) -> str | None:
    return getattr(value, "__name__", None)


def test_no_write_of_one_opens_anothers_files(theirs: Held) -> None:
    """Every call that changes something, well formed and done."""
    for route, build in WRITES:
        _send(theirs, route, build)


def _send(theirs: Held, route: str, build: Build) -> None:
    answer = build(theirs.group).send(None)
    assert answer.is_success, (route, answer.text)
    require_apart(theirs, answer, route)


def test_no_read_of_one_opens_anothers_files(theirs: Held) -> None:
    """Every call that only reads, with the other's own ids wherever one is to be named."""
    group = theirs.group
    for client in chosen([group.plain], [group.plain, group.people.member, group.people.admin]):
        for route in READS:
            path = route.split()[1]
            names = {name: theirs.names.get(name, theirs.other.user_id) for name in _places(path)}
            require_apart(theirs, client.call("GET", path.format_map(names)), route)


def test_no_stream_of_one_opens_anothers_files(theirs: Held) -> None:
    """Nor tells of the other's notes, while it tells of one's own."""
    me = theirs.group.plain
    told: list[str] = []
    with me.service.client.stream("GET", "/api/events/stream", headers=me.headers) as answer:
        me.put("user-memory/streamed.md", "x").raise_for_status()
        for line in answer.iter_lines():
            told.append(line)
            if "streamed.md" in line:
                break
    assert "streamed.md" in told[-1]
    assert NOTE not in "".join(told)
    assert theirs.touched() == set()


def _places(template: str) -> list[str]:
    return [part[1:-1] for part in template.split("/") if part.startswith("{")]


def _asked(theirs: Held, roots: Sequence[str] = ROOTS) -> Iterator[tuple[str, dict[str, Any]]]:
    """Every call on texts with the name of the other's note, in every root and out of each."""
    ways = (f"user-memory/../{theirs.other.user_id}", "user-memory/../../cyd", "projects/cyd/x")
    for call, fields in TEXT_CALLS.items():
        for root in (*roots, *ways):
            filled = {name: in_root(value, root) for name, value in fields.items()}
            yield call, json.loads(json.dumps(filled).replace("scoped.md", NOTE))


def test_no_path_of_one_leads_to_anothers_note(theirs: Held) -> None:
    """Nor does a search for its words, by any surface."""
    me = theirs.group.plain
    for call, fields in _asked(theirs):
        require_apart(theirs, _by_http(me, call, fields), (call, fields))


def _by_http(me: Client, call: str, fields: dict[str, Any]) -> httpx.Response:
    method, path = call.replace("{version}", "1").split()
    if method in {"GET", "DELETE"}:
        return me.call(method, path, params=fields)
    if method == "PUT":
        return me.put(fields["path"], "x")
    if method == "PATCH":
        return me.call(method, path, params={"path": fields.pop("path")}, json=fields)
    return me.call(method, path, json=fields)


def test_no_tool_of_one_opens_anothers_files(theirs: Held) -> None:
    """By the Model Context Protocol, with an agent's token; a search finds nothing either."""
    me = theirs.group.plain
    agent = theirs.group.people.token(me, "memory:read", "memory:write", "shared:write")
    for call, fields in _asked(theirs, chosen((), ROOTS)):
        tool = call.rpartition("/")[2]
        if tool in TOOLS:
            answer = _by_mcp(agent, tool, fields)
            assert answer.status_code == 200, (tool, answer.text)
            require_apart(theirs, answer, (tool, fields))
    require_apart(theirs, _by_mcp(agent, "memory_search", {"query": CANARY[:-1]}), "search")


def _by_mcp(client: Client, tool: str, given: dict[str, Any]) -> httpx.Response:
    body = {
        "jsonrpc": "2.0",
        "id": 1,
        "method": "tools/call",
        "params": {"name": tool, "arguments": given},
    }
    accept = {"Accept": "application/json, text/event-stream"}
    return client.service.client.post("/mcp", json=body, headers=client.headers | accept)
