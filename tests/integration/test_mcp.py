"""The tools over the Model Context Protocol, by its official client."""

from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from typing import Any, Final, Literal

import httpx
import httpx2
import pytest
from mcp import Client as McpClient
from mcp.client.streamable_http import streamable_http_client
from mcp.shared.exceptions import MCPError
from mcp_types import CallToolResult, TextContent

from app.bridge.tools.table import TOOLS
from tests.support import matrix
from tests.support.clients import Client, code_of
from tests.support.people import People, people_on
from tests.support.problems import require_problem

PING: Final = {"jsonrpc": "2.0", "id": 1, "method": "ping"}
Era = Literal["legacy", "auto"]


@pytest.fixture(scope="module")
def people(tmp_path_factory: pytest.TempPathFactory) -> Iterator[People]:
    """A group on a running service; in the full matrix of two workers."""
    [workers] = matrix.chosen([1], [2])
    with people_on(tmp_path_factory.mktemp("mcp"), workers=workers, measured=True) as found:
        yield found


@pytest.fixture(scope="module")
def anyio_backend() -> str:
    """The service's own."""
    return "asyncio"


@asynccontextmanager
async def connected(client: Client, era: Era = "auto") -> AsyncIterator[McpClient]:
    """The official client, with a credential of one of ours."""
    async with (
        httpx2.AsyncClient(headers=client.headers, timeout=60, trust_env=False) as http,
        McpClient(
            streamable_http_client(
                f"{client.service.client.base_url.join('/mcp')}", http_client=http
            ),
            mode=era,
        ) as found,
    ):
        yield found


def text_of(result: CallToolResult) -> str:
    """What a result says."""
    [block] = result.content
    assert isinstance(block, TextContent)
    return block.text


async def used(client: McpClient, tool: str, **given: Any) -> dict[str, Any]:  # noqa: ANN401 - JSON
    """Use a tool that does what it is asked; its facts."""
    result = await client.call_tool(tool, given)
    assert not result.is_error, text_of(result)
    assert result.structured_content["output"] == text_of(result)
    return dict(result.structured_content)


async def refused(client: McpClient, tool: str, **given: Any) -> tuple[str, str]:  # noqa: ANN401 - JSON
    """Use a tool that refuses; code and sentence."""
    result = await client.call_tool(tool, given)
    assert result.is_error
    facts = result.structured_content
    assert facts["detail"] in text_of(result)
    return facts["code"], facts["detail"]


@pytest.mark.anyio
@pytest.mark.parametrize("era", ["legacy", "auto"])
async def test_the_official_client_writes_and_reads(people: People, era: Era) -> None:
    """By the protocol of before and by the present one, whichever worker answers."""
    agent = people.token(people.member, "memory:read", "memory:write")
    path = f"user-memory/mcp/{era}.md"
    async with connected(agent, era) as client:
        listed = {tool.name: tool for tool in (await client.list_tools()).tools}
        assert set(listed) == set(TOOLS)
        hints = listed["write_file"].annotations
        assert hints is not None
        assert (hints.read_only_hint, hints.destructive_hint, hints.idempotent_hint) == (
            False,
            True,
            True,
        )
        made = await used(client, "write_file", path=path, content="one\n")
        again = await used(client, "append_file", path=path, content="two")
        assert again["replaced_version"] == made["version"]
        for _ in range(4):
            read = await used(client, "read_file", path=path)
            assert (read["output"], read["version"]) == ("one\ntwo", again["version"])
        viewed = await used(client, "view", path=f"/memories/mcp/{era}.md")
        assert viewed["output"].endswith("     2\ttwo")
    assert people.member.read(path) == "one\ntwo"


@pytest.mark.anyio
async def test_a_refusal_is_a_result_that_says_what_is_valid(people: People) -> None:
    """With the code that HTTP gives; nothing that was sent comes back but a path."""
    agent = people.token(people.member, "memory:read", "memory:write", "shared:write")
    path = "user-memory/refusals/note.md"
    async with connected(agent) as client:
        await used(client, "write_file", path=path, content="a\na\n")
        code, detail = await refused(client, "read_file", path="user-memory/refusals/nota.md")
        assert (code, path in detail) == ("not_found", True)
        code, detail = await refused(client, "edit_file", path=path, old_text="a", new_text="b")
        assert (code, "lines: 1, 2" in detail) == ("many_matches", True)
        result = await client.call_tool("edit_file", {"path": path, "canary-1": "canary-2"})
        assert result.structured_content["code"] == "invalid_request"
        assert "canary" not in text_of(result)
        assert {item["kind"] for item in result.structured_content["errors"]} == {
            "missing",
            "extra_forbidden",
        }
        with pytest.raises(MCPError, match="no such tool"):
            await client.call_tool("no_such_tool", {})
        waits = await used(client, "write_file", path="shared-memory/mcp.md", content="x")
        assert waits["approval"]["id"] in waits["output"]


@pytest.mark.anyio
async def test_a_token_uses_what_it_was_made_for(people: People) -> None:
    """And sees nothing else."""
    reader = people.token(people.member, "memory:read")
    async with connected(reader) as client:
        names = {tool.name for tool in (await client.list_tools()).tools}
        assert names == {name for name, tool in TOOLS.items() if tool.reads_only}
        with pytest.raises(MCPError, match="no such tool"):
            await client.call_tool("write_file", {"path": "user-memory/x", "content": "x"})


def speak(client: Client, message: object = PING, **headers: str) -> httpx.Response:
    """Send one message; underscores in headers' names stand for dashes."""
    more = {name.replace("_", "-"): text for name, text in headers.items()}
    return client.service.client.post("/mcp", json=message, headers=client.headers | more)


def test_a_message_needs_a_credential(people: People) -> None:
    """As every call does, and by the same code."""
    require_problem(speak(people.anonymous()), 401, "authentication_required")
    forged = Client(people.service, "", "", {"Authorization": "Bearer sr_token_x_y"})
    answer = speak(forged)
    require_problem(answer, 401, "invalid_credentials")
    assert answer.headers["www-authenticate"] == "Bearer"
    ended = people.token(people.member, "memory:read")
    assert speak(ended).json()["result"] == {}
    token_id = people.member.call("GET", "/api/tokens").json()["items"]
    for each in token_id:
        if each["label"] == "made for a test":
            people.member.call("DELETE", f"/api/tokens/{each['id']}")
    require_problem(speak(ended), 401, "invalid_credentials")


def test_a_page_elsewhere_is_refused(people: People) -> None:
    """By its origin, and by a name that was made to point here."""
    me = people.member
    assert speak(me).is_success
    host = me.service.client.base_url.netloc.decode()
    assert speak(me, Origin=f"http://{host}").is_success
    for origin in ("https://evil.example", "null", f"https://{host}"):
        require_problem(speak(me, Origin=origin), 403, "cross_site_request")
    for name in ("evil.example", f"evil.example:{me.service.client.base_url.port}", "[", ""):
        require_problem(speak(me, Host=name), 421, "misdirected_request")
    for name in ("localhost:1", "[::1]:1", "127.0.0.1"):
        assert speak(me, Host=name).is_success


@pytest.mark.parametrize(
    "message",
    [
        [PING],
        {},
        {"jsonrpc": "2.0", "id": 1, "result": {}},
        {**PING, "method": 1},
        {**PING, "id": 1.5},
        {**PING, "canary-7f3a91": 1},
        {**PING, "jsonrpc": "1.0"},
    ],
)
def test_what_is_no_message_is_refused(people: People, message: object) -> None:
    """As a malformed body is anywhere."""
    require_problem(speak(people.member, message), 422, "invalid_request")


def test_the_rest_of_the_protocol_is_answered_in_its_form(people: People) -> None:
    """Notifications, unknown methods, other versions, other forms of an answer."""
    me = people.member
    note = {"jsonrpc": "2.0", "method": "notifications/initialized"}
    assert speak(me, note).status_code == 202
    unknown = speak(me, {**PING, "method": "nothing/at-all"}).json()
    assert unknown["error"] == {"code": -32601, "message": "Method not found"}
    assert speak(me, Mcp_Protocol_Version="1999-01-01").status_code == 400
    assert code_of(speak(me, Accept="text/html")) == "not_acceptable"
    for method in ("GET", "DELETE"):
        assert me.call(method, "/mcp").status_code == 405
    answer = speak(me)
    assert answer.headers["x-request-id"]
    assert "mcp-session-id" not in answer.headers


def test_a_message_may_carry_a_note_and_no_more(people: People) -> None:
    """Its limit is that of every body that carries one."""
    given = {"path": "user-memory/large.md", "content": "x" * 4_194_304}
    call = {**PING, "method": "tools/call", "params": {"name": "write_file", "arguments": given}}
    assert not speak(people.member, call).json()["result"].get("isError")
    call["params"] = {"name": "write_file", "arguments": {**given, "content": "x" * 9_500_000}}
    require_problem(speak(people.member, call), 413, "payload_too_large")


def test_nothing_of_a_call_is_logged(people: People) -> None:
    """Neither by us nor by the kit."""
    log = "".join(people.service.log)
    assert "user-memory" not in log
    assert "mcp.server" not in log
