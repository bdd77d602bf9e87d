"""Every field of every call spoilt, one at a time: refused, never quoted back, never written."""

import itertools
import json
import re
from collections.abc import Iterator
from typing import Any, Final

import pytest

from app.bridge import layout
from app.clock import system_clock
from app.db import files
from app.settings import Settings
from app.web import mcp
from app.web.errors import CODES
from app.web.owner import files as notes
from app.web.owner import tools
from tests.support import outside
from tests.support.descriptions import DESCRIPTION
from tests.support.matrix import chosen
from tests.support.people import People, people_on
from tests.support.service import PASSWORD

CANARY: Final = "canary-5c0e7d"


@pytest.fixture(scope="module")
def people(tmp_path_factory: pytest.TempPathFactory) -> Iterator[People]:
    """A group on a running service."""
    with people_on(tmp_path_factory.mktemp("root")) as found:
        yield found


ID: Final = "01890000-0000-7000-8000-000000000000"
NOTE: Final = {"path": "user-memory/fuzzed.md"}
SCHEDULE: Final[dict[str, Any]] = {
    "title": "x",
    "cron": "0 0 1 1 *",
    "interval_s": None,
    "timezone": "UTC",
    "catch_up": "skip",
    "kind": "fuzzed",
    "description": "x",
    "prompt": "x",
    "agent_id": "x",
    "session_id": "x",
    "run_context": {"k": 1},
    "enabled": False,
    "single_run": True,
}
RULE: Final[dict[str, Any]] = {
    "tool_pattern": "@fs_write",
    "action": "require",
    "priority": 999_999,
    "path_pattern": "shared-memory/fuzzed/*",
    "agent_id": "a",
    "source": "tools",
    "group_id": "default",
    "note": "x",
}
GOOD: Final[dict[str, dict[str, Any]]] = {
    "POST /api/session": {"username": "x", "password": "x", "label": "", "cookie": False},
    "POST /api/session/unlock": {"password": "x"},
    "POST /api/session/confirm": {"password": "x"},
    "POST /api/recovery": {"username": "x", "recovery_code": "x", "new_password": "x"},
    "POST /api/tokens": {
        "label": "",
        "scopes": ["memory:read"],
        "agent_id": "a",
        "is_agent": True,
        "expires_at": "2999-01-01T00:00:00Z",
    },
    "PATCH /api/me": {"display_name": "x", "locale": "x"},
    "PUT /api/me/password": {
        "current_password": "x",
        "new_password": "x",
        "keep_sessions": True,
        "end_tokens": False,
        "rotate_key": False,
    },
    "POST /api/me/recovery-code": {"password": "x"},
    "POST /api/me/rotate": {"password": "x"},
    "PATCH /api/file": {"edits": [{"old": "a", "new": "b"}]},
    "POST /api/file/read": NOTE,
    "POST /api/file/write": {**NOTE, "content": "x"},
    "POST /api/file/append": {**NOTE, "content": "x"},
    "POST /api/file/edit": {**NOTE, "edits": [{"lines": [1, 2], "text": "b"}]},
    "POST /api/file/delete": {**NOTE, "purge": False, "recursive": False},
    "POST /api/file/move": {"from": NOTE["path"], "to": "user-memory/x.md", "recursive": False},
    "POST /api/file/list": {"path": "user-memory", "depth": 1},
    "POST /api/file/versions": {**NOTE, "version": 1, "cursor": "x", "limit": 1},
    "POST /api/file/restore": {**NOTE, "version": 1},
    "POST /api/file/diff": {**NOTE, "from": 1, "to": 1},
    "POST /api/blobs/{blob_id}/place": {"home": "own", "name": "x", "path": "user-memory/n.md"},
    "POST /api/blobs/list": {
        "home": "own",
        "path": "user-memory/n.md",
        "report": "x",
        "cursor": "x",
        "limit": 1,
    },
    "POST /api/search": {"q": "x", "scope": "all", "limit": 1},
    "POST /api/tools/read_file": {
        **NOTE,
        "first_line": 1,
        "last_line": 2,
        "numbered": True,
    },
    "POST /api/tools/write_file": {**NOTE, "content": "x", "if_version": 1},
    "POST /api/tools/append_file": {**NOTE, "content": "x", "if_version": 1},
    "POST /api/tools/edit_file": {**NOTE, "old_text": "a", "new_text": "b", "if_version": 1},
    "POST /api/tools/insert_at_line": {**NOTE, "line": 1, "text": "x", "if_version": 1},
    "POST /api/tools/replace_lines": {
        **NOTE,
        "first_line": 1,
        "last_line": 1,
        "text": "x",
        "if_version": 1,
    },
    "POST /api/tools/list_files": {"path": "user-memory", "depth": 1},
    "POST /api/tools/search_file": {**NOTE, "query": "a"},
    "POST /api/tools/memory_search": {"query": "x", "scope": "all", "limit": 1},
    "POST /api/tools/view": {"path": "/memories/fuzzed.md", "view_range": [1, 2]},
    "POST /api/tools/create": {"path": "/memories/fuzzed.md", "file_text": "x"},
    "POST /api/tools/str_replace": {
        "path": "/memories/fuzzed.md",
        "old_str": "absent",
        "new_str": "b",
    },
    "POST /api/tools/insert": {
        "path": "/memories/fuzzed.md",
        "insert_line": 1,
        "insert_text": "x",
    },
    "POST /api/tools/delete": {"path": "/memories/absent.md"},
    "POST /api/tools/rename": {"old_path": "/memories/absent.md", "new_path": "/memories/x.md"},
    "POST /mcp": {"jsonrpc": "2.0", "id": 1, "method": "ping", "params": {"x": 1}},
    "POST /api/context": {"inject": ["user-memory/n.md"]},
    "POST /api/prompt/render": {"template": "<!-- X -->", "values": {"X": "x"}},
    "POST /api/reports": {
        "kind": "k",
        "title": "t",
        "body": "b",
        "produced_by": "p",
        "summary": "s",
        "severity": "info",
        "audience": "owner",
        "subject_user_id": ID,
        "period_start": "2026-01-01T00:00:00Z",
        "period_end": "2026-01-01T00:00:00Z",
        "run_id": "r",
        "metadata": {"n": 1},
    },
    "POST /api/admin/users": {
        "username": "x",
        "password": "a fine long password",
        "role_id": "member",
        "encrypted": True,
        "display_name": "x",
    },
    "PATCH /api/admin/users/{user_id}": {
        "active": True,
        "role_id": "member",
        "display_name": "x",
        "locale": "x",
        "birthdate": "2000-01-01",
        "sex": "x",
        "notes": "x",
        "quota_bytes": 1,
        "password": "a fine long password",
    },
    "POST /api/admin/invitations": {"role_id": "member"},
    "POST /api/schedules": SCHEDULE,
    "PATCH /api/schedules/{schedule_id}": SCHEDULE,
    "POST /api/admin/schedules": SCHEDULE,
    "PATCH /api/admin/schedules/{schedule_id}": SCHEDULE,
    "PUT /api/admin/flags/{name}": {"value": True},
    "POST /api/admin/approval-rules": RULE,
    "PATCH /api/admin/approval-rules/{rule_id}": RULE,
    "POST /api/jobs": {
        "kind": "fuzzed",
        "payload": {"n": 1},
        "dedupe_key": "x",
        "run_at": "2999-01-01T00:00:00Z",
        "max_attempts": 1,
        "timeout_s": 1,
        "priority": 0,
        "home": "own",
    },
    "POST /api/jobs/claim": {"kinds": ["fuzzed"], "wait_s": 0, "home": "own"},
    "POST /api/jobs/{job_id}/heartbeat": {"generation": 1, "home": "own"},
    "POST /api/jobs/{job_id}/complete": {"generation": 1, "home": "own", "result": {}},
    "POST /api/jobs/{job_id}/fail": {
        "generation": 1,
        "home": "own",
        "error": "x",
        "permanent": False,
    },
    "POST /api/jobs/{job_id}/cancel": {"generation": 1, "home": "own"},
    "POST /api/webhooks": {
        "url": "https://127.0.0.1/",
        "event_types": ["memory_doc.*"],
        "include_content": False,
        "description": "x",
        "home": "own",
    },
    "PATCH /api/webhooks/{webhook_id}": {
        "url": "https://127.0.0.1/",
        "event_types": ["memory_doc.*"],
        "include_content": False,
        "enabled": True,
        "description": "x",
    },
    "POST /api/admin/breakers/reset": {"connection": "https://x:443"},
    "POST /api/admin/shared-folders": {"folder_name": "fuzzed", "description": "x"},
    "PATCH /api/admin/shared-folders/{folder_id}": {"folder_name": "x", "description": "x"},
    "PUT /api/admin/shared-folders/{folder_id}/members/{user_id}": {"can_write": True},
    "POST /api/projects": {
        "slug": "fuzzed",
        "name": "x",
        "description": "x",
        "run_context": {"k": 1},
    },
    "PATCH /api/projects/{project_id}": {
        "name": "x",
        "description": "x",
        "run_context": {"k": 1},
    },
    "PUT /api/projects/{project_id}/members/{user_id}": {"can_write": True},
}
"""A body for each call that has one, with every field it takes, so that one at a time is spoilt."""

DEFAULTS: Final = Settings()
LIMITS: Final = {
    **notes.body_limits(DEFAULTS),
    **tools.body_limits(DEFAULTS),
    **mcp.body_limits(DEFAULTS),
}
JSON_BYTES_MAX: Final = DEFAULTS.json_bytes_max
JUDGED_FIRST: Final = {"POST /api/setup", "POST /api/invitations/accept"}
"""Their tokens are judged before any field: see the tests of conventions."""

ODD: Final[tuple[Any, ...]] = (None, 7, -1, 1.5, 10**30, True, "", "x", [], ["x"], {}, {"x": 1})
FORBIDDEN: Final = ("a\0b", CANARY + "x" * 70_000)


def schema_of(label: str) -> dict[str, Any]:
    """The form of a call's JSON body."""
    method, path = label.split()
    content = DESCRIPTION["paths"][path][method.lower()]["requestBody"]["content"]
    found: dict[str, Any] = content["application/json"]["schema"]
    return resolved(found)


def resolved(schema: dict[str, Any]) -> dict[str, Any]:
    """A schema itself rather than a reference to it."""
    if "$ref" not in schema:
        return schema
    found: dict[str, Any] = DESCRIPTION["components"]["schemas"][schema["$ref"].rpartition("/")[2]]
    return found


KINDS: Final[dict[str, frozenset[type]]] = {
    "string": frozenset({str}),
    "integer": frozenset({int}),
    "number": frozenset({int, float}),
    "boolean": frozenset({bool}),
    "array": frozenset({list}),
    "object": frozenset({dict}),
    "null": frozenset({type(None)}),
}


def could_be_good(schema: dict[str, Any], value: object) -> bool:
    """Whether a value is of a type that a field may have; the rest is not judged here."""
    forms = [resolved(form) for form in schema.get("anyOf", [schema])]
    kinds = frozenset().union(*(KINDS[form["type"]] for form in forms if "type" in form))
    # What has no type may be anything that JSON can hold.
    takes_all = any(not form.keys() - {"title", "description"} for form in forms)
    return takes_all or type(value) in kinds


def spoilt(label: str) -> Iterator[tuple[str, bytes]]:
    """Bodies that are right but for one thing, and what that is."""
    good, schema = GOOD[label], schema_of(label)
    for name in schema["properties"]:
        for odd in ODD:
            if not could_be_good(schema["properties"][name], odd):
                yield f"{name}: {odd}", json.dumps({**good, name: odd}).encode()
        if isinstance(good.get(name), str):
            half = json.dumps({**good, name: "HALF"}).replace("HALF", f"{CANARY}\\ud83d")
            yield f"{name}: half a pair", half.encode()
            raw = json.dumps({**good, name: "RAW"}).encode().replace(b"RAW", b"\xc3\x28")
            yield f"{name}: no UTF-8", raw
    for name in schema.get("required", ()):
        yield f"no {name}", json.dumps({k: v for k, v in good.items() if k != name}).encode()
    yield "one more", json.dumps({**good, CANARY: 1}).encode()
    size = LIMITS.get(label.split()[1], JSON_BYTES_MAX)
    yield "too large", json.dumps({**good, "x": "x" * size}).encode()


def url_of(label: str) -> tuple[str, dict[str, str]]:
    """The path and query with which a call would get as far as its body."""
    path = re.sub(r"{\w+}", ID, label.split()[1])
    return path, dict(NOTE) if label == "PATCH /api/file" else {}


def marks(people: People) -> list[int]:
    """How many events and audited fields there are: the group's, and a member's own."""
    rows = outside.members(people.service.settings)
    key = outside.key_of(rows["ana"], PASSWORD)
    places = [
        (people.service.settings.system_file, None, layout.SYSTEM_KIND),
        (people.service.settings.user_file(rows["ana"].id), key, layout.MEMBER_KIND),
    ]
    counts = []
    for path, found, kind in places:
        handle = files.open_handle(path, found, kind, system_clock, reader=True)
        for table in ("sys_events", "sys_audit"):
            counts += [row[0] for row in handle.all(f"SELECT count(*) FROM {table}")]  # noqa: S608
        handle.close()
    return counts


def test_every_field_is_in_the_table() -> None:
    """A call that takes JSON is spoilt in each of its fields, or judged by its token first."""
    with_json = {
        f"{method.upper()} {path}"
        for path, item in DESCRIPTION["paths"].items()
        for method, operation in item.items()
        if "application/json" in operation.get("requestBody", {}).get("content", {})
    }
    assert with_json - JUDGED_FIRST == set(GOOD)
    for label, good in GOOD.items():
        assert set(good) <= set(schema_of(label)["properties"]), label


def require_refused(people: People, label: str, what: str, answer: Any) -> None:  # noqa: ANN401
    """A problem of ours that says nothing of what was sent."""
    assert 400 <= answer.status_code < 500, (label, what, answer.text)
    assert answer.headers["content-type"] == "application/problem+json", (label, what)
    if label.startswith("HEAD "):
        assert not answer.content, (label, what)
        return
    assert answer.json()["code"] in CODES, (label, what)
    assert CANARY not in answer.text, (label, what)
    assert people is not None


def test_no_field_can_be_spoilt_unnoticed(people: People) -> None:
    """A 4xx problem each time, by an administrator who may do everything; and nothing written."""
    people.admin.put("user-memory/fuzzed.md", "a\nb\n")
    before = marks(people)
    for label in chosen([*GOOD][::2], [*GOOD]):
        path, query = url_of(label)
        headers = people.admin.headers | {"content-type": "application/json"}
        for what, body in spoilt(label):
            answer = people.service.client.request(
                label.split()[0], path, params=query, content=body, headers=headers
            )
            require_refused(people, label, what, answer)
    assert marks(people) == before


class _Known(dict[str, str]):
    """Parts of a path; one that is not known stays."""

    def __missing__(self, name: str) -> str:
        return f"{{{name}}}"


def parameters() -> Iterator[tuple[str, str, dict[str, Any]]]:
    """Every query parameter of every call that is more than a text."""
    for path, item in DESCRIPTION["paths"].items():
        for method, operation in item.items():
            for parameter in operation.get("parameters", ()):
                if parameter["in"] == "query":
                    yield f"{method.upper()} {path}", parameter["name"], parameter["schema"]


TEXTS: Final = {
    "integer": ("x", "1.5", "", "true", "0x1", "-1", "9" * 40, "\u0661\u0662\u0663"),
    "boolean": ("x", "2", "", "None", "yesno"),
    "date-time": ("x", "0", "", "2026", "2026-01-01", "2026-01-01T00:00:00", "9" * 40),
    "enum": ("x", "", "OWN", "own "),
}


def test_no_parameter_can_be_spoilt_unnoticed(people: People) -> None:
    """Of another kind, of no encoding, there twice, or of no call; and nothing written."""
    before = marks(people)
    for label, name, schema in parameters():
        method, template = label.split()
        path = re.sub(r"{\w+}", ID, template.format_map(_Known(version="1", home="own")))
        forms = [resolved(form) for form in schema.get("anyOf", [schema])]
        kinds = [
            "enum" if "enum" in form else form.get("format", form.get("type")) for form in forms
        ]
        odd = [f"{name}={text}" for kind in kinds for text in TEXTS.get(str(kind), ())]
        odd += [
            f"{name}=%ff",
            f"{name}=x&{name}=x",
            f"{name}=x&{CANARY}=1",
            f"{name}={'x' * 30_000}",
        ]
        for query in odd:
            if query.endswith("x" * 30_000) and name == "q":
                continue
            answer = people.admin.call(method, f"{path}?{query}")
            require_refused(people, label, query[:60], answer)
    assert marks(people) == before


@pytest.mark.parametrize("name", ["username", "password"])
def test_a_name_or_password_of_any_form_is_one_that_does_not_hold(
    name: str, people: People
) -> None:
    """Signing in says so, and not which part was wrong."""
    for odd in ("", "\0", "x" * 4_000, "\u202e", "\ufdfa" * 1_000, "' OR 1=1 --", "\U0001f511"):
        body = {"username": f"nobody {len(odd)}", "password": "x", name: odd}
        answer = people.service.client.post("/api/session", json=body)
        assert (answer.status_code, answer.json()["code"]) == (401, "invalid_credentials")


def test_forbidden_texts_are_refused_wherever_they_would_be_kept(people: People) -> None:
    """NUL, and more than a field may hold."""
    kept = {
        "POST /api/tokens": ("label", "agent_id"),
        "PATCH /api/me": ("display_name", "locale"),
        "POST /api/file/write": ("path", "content"),
        "POST /api/reports": ("kind", "title", "body", "produced_by", "summary", "run_id"),
        "POST /api/admin/users": ("username", "display_name", "role_id"),
        "POST /api/admin/invitations": ("role_id",),
        "POST /api/jobs": ("kind", "dedupe_key"),
        "POST /api/schedules": ("title", "kind", "prompt", "agent_id", "timezone"),
    }
    long_ones = {"content", "body", "summary"}
    before = marks(people)
    for label, names in kept.items():
        for name, text in itertools.product(names, FORBIDDEN):
            if name in long_ones and text != FORBIDDEN[0]:
                continue
            path, _ = url_of(label)
            answer = people.admin.call(label.split()[0], path, json={**GOOD[label], name: text})
            require_refused(people, label, name, answer)
    assert marks(people) == before
