"""Search over HTTP: any text is a query, and each caller finds their own and the group's."""

from collections.abc import Iterator

import pytest

from tests.support.clients import Client
from tests.support.people import People, people_on

TEXT = 'The multi-agent run, it\'s C++ at 50% for @me: a.b (NEAR) "quoted phrase" 日本語 café'


@pytest.fixture(scope="module")
def people(tmp_path_factory: pytest.TempPathFactory) -> Iterator[People]:
    """A group with a few notes."""
    with people_on(tmp_path_factory.mktemp("root")) as found:
        assert found.member.put("user-memory/mine.md", f"first line\n{TEXT}\n").is_success
        assert found.other.put("user-memory/theirs.md", TEXT).is_success
        assert found.other.put("shared-memory/all.md", f"{TEXT} everybody").is_success
        yield found


def hits(client: Client, q: str, **more: str | int) -> list[str]:
    """The paths found, by both forms of the call, which agree."""
    plain = client.call("GET", "/api/search", params={"q": q, **more})
    assert plain.status_code == 200, (q, plain.text)
    by_body = client.call("POST", "/api/search", json={"q": q, **more})
    assert by_body.json() == plain.json()
    return [item["path"] for item in plain.json()["items"]]


@pytest.mark.parametrize(
    "q",
    [
        "multi-agent",
        "it's",
        "C++",
        "50%",
        "@me",
        "a.b",
        "NEAR",
        '"quoted phrase"',
        "run multi",
        "日本語",
        "本語",
        "cafe",
        "CAFÉ",
        "quo",
        "cafe\u0301",
    ],
)
def test_what_was_written_is_found(q: str, people: People) -> None:
    """In one's own memory and the group's, and in nobody else's."""
    assert set(hits(people.member, q)) == {"user-memory/mine.md", "shared-memory/all.md"}
    assert hits(people.admin, q) == ["shared-memory/all.md"]


def test_a_query_may_be_as_long_as_a_body(people: People) -> None:
    """No field bounds it; only its beginning counts."""
    long = "run " * 200_000
    found = people.admin.call("POST", "/api/search", json={"q": long})
    assert [item["path"] for item in found.json()["items"]] == ["shared-memory/all.md"]
    told = people.admin.call("POST", "/api/tools/memory_search", json={"query": long})
    assert "shared-memory/all.md" in told.json()["output"]


@pytest.mark.parametrize(
    "q",
    [
        "",
        " ",
        '"',
        '"""',
        "AND",
        "a AND",
        "OR NOT",
        "(",
        "*",
        "^",
        "-",
        "col:val",
        "\0",
        "\x1b",
        "x" * 5_000,
        "x " * 500,
        "'; DROP TABLE memory_docs; --",
        "NEAR(a b, 2)",
        "{a}",
        "\ufffe",
    ],
    ids=repr,
)
def test_any_text_is_a_query(q: str, people: People) -> None:
    """Whatever it looks like to a parser."""
    hits(people.member, q)


def test_a_phrase_is_found_in_its_order(people: People) -> None:
    """Words alone in any."""
    assert hits(people.member, '"phrase quoted"') == []
    assert hits(people.member, "phrase quoted")


def test_a_scope_says_where_to_look(people: People) -> None:
    """The caller's own, the group's, or both."""
    assert hits(people.member, "café", scope="own") == ["user-memory/mine.md"]
    assert hits(people.member, "café", scope="shared") == ["shared-memory/all.md"]
    assert len(hits(people.member, "café", scope="all", limit=1)) == 1


def test_a_hit_says_where_it_is(people: People) -> None:
    """Path, line, a snippet around it, and how good it is."""
    found = people.member.call("GET", "/api/search", params={"q": "café", "scope": "own"})
    [item] = found.json()["items"]
    assert set(item) == {"path", "line", "snippet", "score", "updated_at"}
    assert item["line"] == 2
    assert "café" in item["snippet"]


def test_a_note_is_found_by_its_present_text(people: People) -> None:
    """From the write on that made it, and not a moment after it is gone."""
    me = people.member
    me.put("user-memory/x.md", "aardvark")
    assert hits(me, "aardvark") == ["user-memory/x.md"]
    me.put("user-memory/x.md", "wombat")
    assert hits(me, "aardvark") == []
    assert hits(me, "wombat") == ["user-memory/x.md"]
    body = {"from": "user-memory/x.md", "to": "user-memory/y.md"}
    me.call("POST", "/api/file/move", json=body)
    assert hits(me, "wombat") == ["user-memory/y.md"]
    me.call("DELETE", "/api/file", params={"path": "user-memory/y.md"})
    assert hits(me, "wombat") == []
