"""Every call that reads or writes texts by their path, and which scope it asks for where."""

from collections.abc import Mapping
from typing import Final

from app.web.rules import RULES
from tests.support.clients import Client

AT: Final = {"path": "{root}/scoped.md"}
MEMORY_AT: Final = {"path": "/memories/scoped.md"}
TEXT_CALLS: Final[Mapping[str, Mapping[str, object]]] = {
    "GET /api/file": AT,
    "PUT /api/file": AT,
    "PATCH /api/file": {**AT, "edits": [{"old": "x", "new": "y"}]},
    "DELETE /api/file": AT,
    "POST /api/file/read": AT,
    "POST /api/file/write": {**AT, "content": "x"},
    "POST /api/file/append": {**AT, "content": "x"},
    "POST /api/file/edit": {**AT, "edits": [{"old": "x", "new": "y"}]},
    "POST /api/file/delete": AT,
    "POST /api/file/move": {"from": "{root}/scoped.md", "to": "{root}/moved.md"},
    "POST /api/file/list": {"path": "{root}"},
    "POST /api/file/versions": AT,
    "POST /api/file/restore": {**AT, "version": 1},
    "POST /api/file/diff": {**AT, "from": 1},
    "GET /api/files": {"path": "{root}"},
    "GET /api/file/versions": AT,
    "GET /api/file/versions/{version}": AT,
    "GET /api/file/diff": {**AT, "from": 1},
    "GET /api/search": {"q": "x"},
    "POST /api/search": {"q": "x"},
    "GET /api/context": {"inject": ["{root}/scoped.md"]},
    "POST /api/context": {"inject": ["{root}/scoped.md"]},
    "POST /api/prompt/render": {"template": "x"},
    "POST /api/tools/read_file": AT,
    "POST /api/tools/write_file": {**AT, "content": "x"},
    "POST /api/tools/append_file": {**AT, "content": "x"},
    "POST /api/tools/edit_file": {**AT, "old_text": "x", "new_text": "y"},
    "POST /api/tools/insert_at_line": {**AT, "line": 1, "text": "x"},
    "POST /api/tools/replace_lines": {**AT, "first_line": 1, "last_line": 1, "text": "x"},
    "POST /api/tools/list_files": {"path": "{root}"},
    "POST /api/tools/search_file": {**AT, "query": "x"},
    "POST /api/tools/memory_search": {"query": "x"},
    "POST /api/tools/view": MEMORY_AT,
    "POST /api/tools/create": {**MEMORY_AT, "file_text": "x"},
    "POST /api/tools/str_replace": {**MEMORY_AT, "old_str": "x", "new_str": "y"},
    "POST /api/tools/insert": {**MEMORY_AT, "insert_line": 0, "insert_text": "x"},
    "POST /api/tools/delete": MEMORY_AT,
    "POST /api/tools/rename": {"old_path": "/memories/scoped.md", "new_path": "/memories/m.md"},
}
"""Every call that reads or writes texts by their path, and what it is asked."""
ROOTS: Final = ("user-memory", "shared-memory", "shared/none", "projects/ana/none")
DIGESTS_TOLD: Final = ("/append", "/append_file", "/move")
"""Writes on the disk that tell the version, a digest, of a text that was not all sent."""
PERSONS: Final = {"GET /api/memory/export", "POST /api/memory/import", "GET /api/tools"}
"""Texts without a path: a person's; and the tools' own descriptions."""


def in_root(value: object, root: str) -> object:
    """What is asked, of one root."""
    if isinstance(value, str):
        return value.replace("{root}", root)
    return [in_root(item, root) for item in value] if isinstance(value, list) else value


def ask_for_text(client: Client, call: str, root: str) -> int:
    """Make one of these calls; the status."""
    method, path = call.replace("{version}", "1").split()
    fields = {name: in_root(value, root) for name, value in TEXT_CALLS[call].items()}
    if method in {"GET", "DELETE"}:
        return client.call(method, path, params=fields).status_code
    if method == "PUT":
        return client.put(str(fields["path"]), "x").status_code
    if method == "PATCH":
        at = {"path": fields.pop("path")}
        return client.call(method, path, params=at, json=fields).status_code
    return client.call(method, path, json=fields).status_code


def scopes_of(call: str, root: str) -> set[str]:
    """Those that a call asks for there."""
    rule = RULES[call]
    found = {rule.scope} if rule.scope else set()
    if rule.repeats == "unneeded" or call.startswith("GET "):
        return found
    is_own = root == "user-memory" or "/memories" in str(TEXT_CALLS[call])
    if not is_own and root != "shared-memory" and call.endswith(DIGESTS_TOLD):
        found.add("memory:read")
    return found | {"memory:write" if is_own else "shared:write"}
