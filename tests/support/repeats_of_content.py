"""Requests for notes, reports and files, ready to be repeated."""

import io
import zipfile
from dataclasses import replace
from typing import Final

from app.clock import system_clock
from app.ids import new_uuid7
from tests.support.repeats import (
    TEXT,
    Build,
    Cases,
    Group,
    Request,
    append,
    group_report,
    note,
    number,
    post,
    put,
    report_body,
)


def _put(group: Group) -> Request:
    return put(group.plain, f"user-memory/put-{number()}.md")


def _put_shared(group: Group) -> Request:
    return put(group.plain, f"shared-memory/put-{number()}.md")


def _patch(group: Group) -> Request:
    edits = {"edits": [{"old": "one", "new": "three"}]}
    more = {"params": {"path": note(group.plain)}, "json": edits}
    return Request(group.plain, "PATCH", "/api/file", more)


def _delete(group: Group) -> Request:
    more = {"params": {"path": note(group.plain), "purge": "true"}}
    return Request(group.plain, "DELETE", "/api/file", more)


def _write(group: Group) -> Request:
    body = {"path": f"user-memory/written-{number()}.md", "content": TEXT}
    return post(group, "/api/file/write", body)


def _append(group: Group) -> Request:
    return post(group, "/api/file/append", {"path": note(group.plain), "content": "more"})


def _append_raw(group: Group) -> Request:
    return append(group.plain, note(group.plain))


def _edit(group: Group) -> Request:
    edits = [{"insert_at_line": 1, "text": "zero"}]
    return post(group, "/api/file/edit", {"path": note(group.plain), "edits": edits})


def _delete_by_body(group: Group) -> Request:
    return post(group, "/api/file/delete", {"path": note(group.plain)})


def _move(group: Group) -> Request:
    body = {"from": note(group.plain), "to": f"user-memory/moved-{number()}.md"}
    return post(group, "/api/file/move", body)


def _restore(group: Group) -> Request:
    path = note(group.plain)
    made = group.plain.get(path).headers["etag"].strip('"')
    group.plain.put(path, "changed").raise_for_status()
    return post(group, "/api/file/restore", {"path": path, "version": int(made)})


def _asked(group: Group) -> str:
    agent = group.people.token(group.plain, "shared:write")
    asked = agent.put(f"shared-memory/asked-{number()}.md", TEXT)
    return str(asked.json()["approval"]["id"])


def _ask(group: Group) -> Request:
    agent = group.people.token(group.plain, "shared:write")
    return put(agent, f"shared-memory/asked-{number()}.md")


def _approve(group: Group) -> Request:
    return Request(group.plain, "POST", f"/api/approvals/{_asked(group)}/approve")


def _reject(group: Group) -> Request:
    return Request(group.plain, "POST", f"/api/approvals/{_asked(group)}/reject")


def _report(group: Group) -> Request:
    return post(group, "/api/reports", report_body("owner"))


def _report_to_admins(group: Group) -> Request:
    return group_report(group.people.admin)


def _mark(group: Group) -> Request:
    made = _report(group).send(None).json()
    return Request(group.plain, "POST", f"/api/reports/own/{made['id']}/read")


def _remove_report(group: Group) -> Request:
    made = _report_to_admins(group).send(None).json()
    return Request(group.people.admin, "DELETE", f"/api/reports/group/{made['id']}")


def _blob(group: Group) -> Request:
    path = f"/api/blobs/{new_uuid7(system_clock())}"
    return Request(group.plain, "PUT", path, {"content": b"bytes" * 9})


def _place_blob(group: Group) -> Request:
    made = _blob(group)
    made.send(None).raise_for_status()
    named = {"json": {"name": "name.txt"}}
    return Request(group.plain, "POST", f"{made.path}/place", named)


def _remove_blob(group: Group) -> Request:
    made = _blob(group)
    made.send(None).raise_for_status()
    return Request(group.plain, "DELETE", made.path)


def _import(group: Group) -> Request:
    archive = io.BytesIO()
    with zipfile.ZipFile(archive, "w") as out:
        out.writestr(f"imported-{number()}.md", TEXT)
    headers = {**group.plain.headers, "Content-Type": "application/zip"}
    sender = replace(group.plain, headers=headers)
    return Request(sender, "POST", "/api/memory/import", {"content": archive.getvalue()})


def _with_tool(tool: str, *, under_memories: bool = False, **given: object) -> Build:
    """A tool used on a note that is there; its `path` is as the tool knows it."""

    def build(group: Group) -> Request:
        path = note(group.plain)
        shown = path.replace("user-memory", "/memories") if under_memories else path
        return post(group, f"/api/tools/{tool}", {"path": shown, **given})

    return build


def _create(group: Group) -> Request:
    body = {"path": f"/memories/made-{number()}.md", "file_text": TEXT}
    return post(group, "/api/tools/create", body)


def _rename(group: Group) -> Request:
    old = note(group.plain).replace("user-memory", "/memories")
    body = {"old_path": old, "new_path": f"/memories/renamed-{number()}.md"}
    return post(group, "/api/tools/rename", body)


_TOOLS: Final[Cases] = (
    ("POST /api/tools/write_file", _with_tool("write_file", content="new")),
    ("POST /api/tools/append_file", _with_tool("append_file", content="new")),
    ("POST /api/tools/edit_file", _with_tool("edit_file", old_text="one", new_text="1")),
    ("POST /api/tools/insert_at_line", _with_tool("insert_at_line", line=1, text="new")),
    (
        "POST /api/tools/replace_lines",
        _with_tool("replace_lines", first_line=1, last_line=2, text="new"),
    ),
    ("POST /api/tools/create", _create),
    (
        "POST /api/tools/str_replace",
        _with_tool("str_replace", under_memories=True, old_str="one", new_str="1"),
    ),
    (
        "POST /api/tools/insert",
        _with_tool("insert", under_memories=True, insert_line=0, insert_text="new"),
    ),
    ("POST /api/tools/delete", _with_tool("delete", under_memories=True)),
    ("POST /api/tools/rename", _rename),
)

CASES: Final[Cases] = (
    ("PUT /api/file", _put),
    ("PUT /api/file", _put_shared),
    ("PATCH /api/file", _patch),
    ("DELETE /api/file", _delete),
    ("POST /api/file/write", _write),
    ("POST /api/file/append", _append),
    ("POST /api/file/append", _append_raw),
    ("POST /api/file/edit", _edit),
    ("POST /api/file/delete", _delete_by_body),
    ("POST /api/file/move", _move),
    ("POST /api/file/restore", _restore),
    ("PUT /api/file", _ask),
    ("POST /api/approvals/{approval_id}/approve", _approve),
    ("POST /api/approvals/{approval_id}/reject", _reject),
    ("POST /api/memory/import", _import),
    ("POST /api/reports", _report),
    ("POST /api/reports", _report_to_admins),
    ("POST /api/reports/{home}/{report_id}/read", _mark),
    ("DELETE /api/reports/{home}/{report_id}", _remove_report),
    ("PUT /api/blobs/{blob_id}", _blob),
    ("POST /api/blobs/{blob_id}/place", _place_blob),
    ("DELETE /api/blobs/{blob_id}", _remove_blob),
    *_TOOLS,
)
