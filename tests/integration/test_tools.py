"""Tools for agents over HTTP: one table, strict shapes, refusals that say what is valid."""

from collections.abc import Iterator
from typing import Any, Final

import httpx
import pytest
from anthropic.lib.tools import BetaAbstractMemoryTool
from anthropic.types.beta import (
    BetaMemoryTool20250818CreateCommand,
    BetaMemoryTool20250818DeleteCommand,
    BetaMemoryTool20250818InsertCommand,
    BetaMemoryTool20250818RenameCommand,
    BetaMemoryTool20250818StrReplaceCommand,
    BetaMemoryTool20250818ViewCommand,
)
from typing_extensions import override

from app.bridge.tools.table import TOOLS
from app.web.rules import RULES
from tests.support.clients import Client, add_member, code_of
from tests.support.people import People, people_on
from tests.support.problems import require_problem


@pytest.fixture(scope="module")
def people(tmp_path_factory: pytest.TempPathFactory) -> Iterator[People]:
    """A group on a running service."""
    root = tmp_path_factory.mktemp("tools")
    with people_on(root, measured=True, note_bytes_max=65_536) as found:
        yield found


@pytest.fixture(scope="module")
def me(people: People) -> Client:
    """A member."""
    return people.member


def use(client: Client, tool: str, **given: object) -> httpx.Response:
    """Use a tool."""
    return client.call("POST", f"/api/tools/{tool}", json=given)


def used(client: Client, tool: str, **given: object) -> dict[str, Any]:
    """Use a tool that does what it is asked; its answer."""
    answer = use(client, tool, **given)
    assert answer.status_code == 200, answer.text
    return dict(answer.json())


def refused(client: Client, tool: str, status: int, code: str, **given: object) -> str:
    """Use a tool that refuses; its sentence."""
    return str(require_problem(use(client, tool, **given), status, code)["detail"])


def test_each_tool_is_a_call_of_its_own() -> None:
    """With the scope that its table says."""
    for name, tool in TOOLS.items():
        rule = RULES[f"POST /api/tools/{name}"]
        assert rule.scope == ("memory:read" if tool.reads_only or tool.looks else ""), name
        assert rule.repeats == ("unneeded" if tool.reads_only else "kept"), name
    assert {call for call in RULES if call.startswith("POST /api/tools/")} == {
        f"POST /api/tools/{name}" for name in TOOLS
    }


def test_tools_are_listed_with_their_schemas(people: People, me: Client) -> None:
    """As far as the credential was made for them."""
    found = {tool["name"]: tool for tool in me.call("GET", "/api/tools").json()["items"]}
    assert set(found) == set(TOOLS)
    assert set(found["edit_file"]["input_schema"]["required"]) == {"path", "old_text", "new_text"}
    assert found["view"]["annotations"]["readOnlyHint"] is True
    assert found["delete"]["annotations"]["destructiveHint"] is True
    reader = people.token(me, "memory:read")
    names = {tool["name"] for tool in reader.call("GET", "/api/tools").json()["items"]}
    assert names == {name for name, tool in TOOLS.items() if tool.reads_only}
    assert people.token(me, "reports:read").call("GET", "/api/tools").json()["items"] == []


def test_a_file_is_written_read_and_edited(me: Client) -> None:
    """Each answer names the version that stands, and the one it took the place of."""
    path = "user-memory/work/plan.md"
    made = used(me, "write_file", path=path, content="one\ntwo\n")
    assert set(made) == {"output", "version"}
    again = used(me, "write_file", path=path, content="one\ntwo\nthree")
    assert again["replaced_version"] == made["version"]
    assert str(made["version"]) in again["output"]
    appended = used(me, "append_file", path=path, content="four")
    assert appended["replaced_version"] == again["version"]
    edited = used(me, "edit_file", path=path, old_text="two", new_text="2")
    used(me, "insert_at_line", path=path, line=1, text="zero")
    used(me, "replace_lines", path=path, first_line=4, last_line=5, text="3\n4")
    read = used(me, "read_file", path=path)
    assert read["output"] == "zero\none\n2\n3\n4"
    assert read["version"] == edited["version"] + 2
    assert used(me, "read_file", path=path, first_line=2, last_line=3)["output"] == "one\n2\n"
    part = used(me, "read_file", path=path, first_line=4, numbered=True)["output"]
    assert part == "     4\t3\n     5\t4"
    restored = me.call("POST", "/api/file/restore", json={"path": path, "version": made["version"]})
    assert restored.json()["replaced_version"] == read["version"]
    assert me.read(path) == "one\ntwo\n"


def test_files_are_listed_and_searched(me: Client) -> None:
    """A file, a folder, all notes."""
    used(me, "write_file", path="user-memory/list/a.md", content="A Heron stood\nby the water\n")
    used(me, "write_file", path="shared-memory/list/b.md", content="a heron of the group")
    found = used(me, "list_files", path="user-memory/list", depth=1)["output"]
    assert found == "27B\tuser-memory/list/a.md"
    assert "-\tuser-memory/list/" in used(me, "list_files")["output"].splitlines()
    hits = used(me, "search_file", path="user-memory/list/a.md", query="hERON")
    assert hits["output"] == "1: A Heron stood"
    none = used(me, "search_file", path="user-memory/list/a.md", query="stork")
    assert none["output"].startswith("No line")
    everywhere = used(me, "memory_search", query="heron")["output"].splitlines()
    assert {line.partition(":")[0] for line in everywhere} == {
        "user-memory/list/a.md",
        "shared-memory/list/b.md",
    }
    assert used(me, "memory_search", query='"' * 99 + "-*")["output"].startswith("No note")
    own = used(me, "memory_search", query="heron", scope="own", limit=1)["output"]
    assert own.startswith("user-memory/list/a.md:1:")


def test_a_refusal_says_what_is_valid(me: Client) -> None:
    """Which paths there are, which lines, which version; never a text."""
    path = "user-memory/advice/note.md"
    made = used(me, "write_file", path=path, content="secret line\nsecret line\nlast")
    assert path in refused(me, "read_file", 404, "not_found", path="user-memory/advice/nota.md")
    assert path in refused(me, "read_file", 404, "not_a_note", path="user-memory/advice")
    many = refused(me, "edit_file", 409, "many_matches", path=path, old_text="secret", new_text="")
    assert "lines: 1, 2" in many
    none = refused(me, "edit_file", 409, "no_match", path=path, old_text="absent", new_text="")
    assert "absent" not in none
    for text in (many, none):
        assert "secret" not in text
    lines = {"path": path, "first_line": 2, "last_line": 9, "text": ""}
    assert "[1, 3]" in refused(me, "replace_lines", 422, "invalid_input", **lines)
    assert "[1, 4]" in refused(
        me, "insert_at_line", 422, "invalid_input", path=path, line=9, text=""
    )
    stale = {"path": path, "content": "x", "if_version": made["version"] + 1}
    assert f"version {made['version']}" in refused(
        me, "write_file", 412, "version_conflict", **stale
    )
    gone = {"path": "user-memory/advice/none.md", "content": "x", "if_version": 1}
    assert "not there" in refused(me, "write_file", 412, "version_conflict", **gone)
    assert "user-memory/" in refused(me, "write_file", 404, "not_found", path="etc/x", content="")
    large = {"path": path, "content": "x" * 65_537}
    assert "65,536" in refused(me, "write_file", 413, "payload_too_large", **large)
    assert refused(me, "write_file", 422, "invalid_path", path="user-memory", content="")
    assert refused(me, "write_file", 409, "path_conflict", path=f"{path}/x.md", content="")
    assert refused(me, "write_file", 422, "invalid_request", path=path, content="x", more=1)
    used(me, "write_file", path=path, content="x", if_version=made["version"])


def test_a_condition_is_said_once(me: Client) -> None:
    """By `If-Match` or by `if_version`; both at once are refused."""
    path = "user-memory/conditions.md"
    made = used(me, "write_file", path=path, content="x")
    given = {"path": path, "content": "y"}
    stale = me.headers | {"If-Match": f'"{made["version"] + 1}"'}
    at = "/api/tools/write_file"
    answer = me.service.client.post(at, json=given, headers=stale)
    assert code_of(answer) == "version_conflict"
    shown = "/memories/conditions.md"
    for tool, read in (
        ("read_file", {"path": path}),
        ("search_file", {"path": path, "query": "x"}),
        ("view", {"path": shown}),
    ):
        answer = me.service.client.post(f"/api/tools/{tool}", json=read, headers=stale)
        assert code_of(answer) == "version_conflict", tool
    new = {"path": "/memories/conditions/new.md", "file_text": "x"}
    answer = me.service.client.post("/api/tools/create", json=new, headers=stale)
    assert code_of(answer) == "version_conflict"
    both = {**given, "if_version": made["version"]}
    assert code_of(me.service.client.post(at, json=both, headers=stale)) == "invalid_input"
    good = me.headers | {"If-Match": f'"{made["version"]}"'}
    answer = me.service.client.post(at, json=given, headers=good)
    assert answer.headers["etag"] == f'"{answer.json()["version"]}"'


def test_what_a_token_may_not_read_no_refusal_tells(people: People, me: Client) -> None:
    """A token that only writes learns of no path, no line and no text."""
    path = "user-memory/hidden/note.md"
    used(me, "write_file", path=path, content="hidden\nlines\n")
    writer = people.token(me, "memory:write", is_agent=True)
    for tool in ("read_file", "list_files", "view"):
        shown = path if tool != "view" else "/memories/hidden/note.md"
        assert refused(writer, tool, 403, "not_permitted", path=shown)
    gone = {"path": "/memories/hidden/nota.md"}
    assert "note.md" not in refused(writer, "delete", 404, "not_found", **gone)
    memory = "/memories/hidden/note.md"
    for tool, at, given in (
        ("edit_file", path, {"old_text": "hidden", "new_text": "hidden"}),
        ("insert_at_line", path, {"line": 99, "text": "x"}),
        ("replace_lines", path, {"first_line": 99, "last_line": 99, "text": "x"}),
        ("str_replace", memory, {"old_str": "hidden", "new_str": "hidden"}),
        ("insert", memory, {"insert_line": 99, "insert_text": "x"}),
    ):
        assert refused(writer, tool, 403, "not_permitted", path=at, **given)
    reader = people.token(me, "memory:read")
    assert refused(reader, "write_file", 403, "not_permitted", path=path, content="x")


def test_an_agents_shared_write_waits_for_its_member(people: People, me: Client) -> None:
    """202 that says so; nothing is written."""
    agent = people.token(me, "memory:read", "shared:write")
    path = "shared-memory/by-an-agent.md"
    answer = use(agent, "write_file", path=path, content="told by an agent")
    assert answer.status_code == 202, answer.text
    assert answer.json()["approval"]["id"] in answer.json()["output"]
    assert me.get(path).status_code == 404


class HttpMemory(BetaAbstractMemoryTool):
    """The public memory tool, as an agent's program has it, over this service."""

    def __init__(self, client: Client) -> None:
        super().__init__()
        self.client = client

    def _use(self, command: Any) -> str:  # noqa: ANN401 - any of the six
        given = command.model_dump(exclude={"command"}, exclude_none=True)
        answer = use(self.client, command.command, **given)
        return str(answer.json()["output" if answer.is_success else "detail"])

    @override
    def view(self, command: BetaMemoryTool20250818ViewCommand) -> str:
        return self._use(command)

    @override
    def create(self, command: BetaMemoryTool20250818CreateCommand) -> str:
        return self._use(command)

    @override
    def str_replace(self, command: BetaMemoryTool20250818StrReplaceCommand) -> str:
        return self._use(command)

    @override
    def insert(self, command: BetaMemoryTool20250818InsertCommand) -> str:
        return self._use(command)

    @override
    def delete(self, command: BetaMemoryTool20250818DeleteCommand) -> str:
        return self._use(command)

    @override
    def rename(self, command: BetaMemoryTool20250818RenameCommand) -> str:
        return self._use(command)


@pytest.fixture(scope="module")
def memory(people: People) -> HttpMemory:
    """An agent with nothing in its member's notes."""
    owner = add_member(people.admin, "mem")
    entries = owner.call("GET", "/api/files").json()["items"]
    for entry in entries:
        gone = {"path": entry["path"], "recursive": True}
        assert owner.call("POST", "/api/file/delete", json=gone).status_code == 204
    return HttpMemory(people.token(owner, "memory:read", "memory:write"))


LISTING: Final = (
    "Here're the files and directories up to 2 levels deep in {}, "
    "excluding hidden items and node_modules:\n"
)


def test_the_memory_tool_of_the_public_kit_works(memory: HttpMemory) -> None:
    """The six commands in the words of their contract."""

    def call(command: str, **given: object) -> str:
        return str(memory.call({"command": command, **given}))

    assert call("view", path="/memories") == LISTING.format("/memories") + "0B\t/memories"
    text = "one\ntwo\nthree\nfour\nfive\nsix\n"
    made = call("create", path="/memories/a/b/notes.md", file_text=text)
    assert made == "File created successfully at: /memories/a/b/notes.md"
    call("create", path="/memories/a/b/c/deep.md", file_text="x" * 1_536)
    call("create", path="/memories/.hidden/x.md", file_text="x")
    call("create", path="/memories/top.md", file_text="")
    assert call("create", path="/memories/top.md", file_text="y").endswith("already exists")
    assert call("view", path="/memories") == LISTING.format("/memories") + (
        "1.5K\t/memories\n1.5K\t/memories/a/\n1.5K\t/memories/a/b/\n0B\t/memories/top.md"
    )
    assert call("view", path="/memories/a/b/") == LISTING.format("/memories/a/b") + (
        "1.5K\t/memories/a/b\n1.5K\t/memories/a/b/c/\n1.5K\t/memories/a/b/c/deep.md\n"
        "28B\t/memories/a/b/notes.md"
    )
    head = "Here's the content of /memories/a/b/notes.md with line numbers:\n"
    at = {"path": "/memories/a/b/notes.md"}
    assert call("view", **at, view_range=[2, 3]) == f"{head}     2\ttwo\n     3\tthree"
    assert call("view", **at, view_range=[6, -1]) == f"{head}     6\tsix"
    assert "[1, 6]" in call("view", **at, view_range=[7, 9])
    assert "[1, 6]" in call("view", **at, view_range=[3, 2])
    edited = call("str_replace", **at, old_str="four\n", new_str="4\n4b\n")
    assert edited.startswith("The memory file has been edited.")
    assert edited.endswith(
        "\n     2\ttwo\n     3\tthree\n     4\t4\n     5\t4b\n     6\tfive\n     7\tsix"
    )
    assert call("insert", **at, insert_line=0, insert_text="zero") == (
        "The file /memories/a/b/notes.md has been edited."
    )
    call("insert", **at, insert_line=8, insert_text="end")
    assert call("view", **at, view_range=[8, 99]) == f"{head}     8\tsix\n     9\tend"
    assert "[0, 9]" in call("insert", **at, insert_line=10, insert_text="x")
    assert call("str_replace", **at, old_str="e\n", new_str="").endswith(
        "lines: 2, 4, 7. Please ensure it is unique"
    )
    assert "did not appear verbatim" in call("str_replace", **at, old_str="zz", new_str="")
    assert call("str_replace", path="/memories/a", old_str="x", new_str="y").startswith(
        "The path /memories/a is not a file."
    )
    moved = call("rename", old_path="/memories/a/b", new_path="/memories/c")
    assert moved == "Successfully renamed /memories/a/b to /memories/c"
    assert call("rename", old_path="/memories/c", new_path="/memories/top.md") == (
        "The destination /memories/top.md already exists"
    )
    assert call("rename", old_path="/memories/a/b", new_path="/memories/d").startswith(
        "The path /memories/a/b does not exist"
    )
    assert call("delete", path="/memories/c") == "Successfully deleted /memories/c"
    assert "/memories/top.md" in call("view", path="/memories/c")


@pytest.mark.parametrize(
    ("command", "given"),
    [
        ("delete", {"path": "/memories"}),
        ("delete", {"path": "/memories/x/../.."}),
        ("rename", {"old_path": "/memories/", "new_path": "/memories/x"}),
        ("rename", {"old_path": "/memories/x", "new_path": "/memories"}),
        ("create", {"path": "/memories/", "file_text": ""}),
    ],
)
def test_the_root_stays(memory: HttpMemory, command: str, given: dict[str, str]) -> None:
    """Under any spelling."""
    use(memory.client, "create", path="/memories/x", file_text="x")
    assert refused(memory.client, command, 422, "invalid_path", **given)


@pytest.mark.parametrize(
    "path", ["/memory", "memories2/x", "/shared-memory/x", "", "/", "/memoriesx", "../memories"]
)
def test_nothing_else_is_memory(memory: HttpMemory, path: str) -> None:
    """The first name alone decides."""
    assert "/memories" in refused(memory.client, "view", 404, "not_found", path=path)


def test_dots_stay_inside(memory: HttpMemory) -> None:
    """What would lead out of `/memories` ends in it."""
    use(memory.client, "create", path="/memories/inside.md", file_text="x")
    for path in ("/memories/../../inside.md", "memories\\..\\inside.md", "//memories/./inside.md"):
        found = used(memory.client, "view", path=path)["output"]
        assert found.startswith("Here's the content of /memories/inside.md")
