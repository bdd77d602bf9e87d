"""What an encrypted member sends is nowhere in clear: not in a file, the log, an answer, a process.

Every private value sent holds one random mark, so that one search finds any of them; a
number after it tells which call let it out.
"""

import io
import re
import zipfile
from collections import defaultdict
from collections.abc import Iterator
from typing import Any, Final

import pytest

from app.web.rules import RULES
from tests.support.clients import ENDLESS, Client, add_member, first_admin
from tests.support.marks import Marks, Outside, Sender, free_fields
from tests.support.outside import members
from tests.support.service import PASSWORD, LiveService

MAGIC: Final = b"SQLite format 3\0"
UNSAFE: Final = {route for route in RULES if route.split()[0] not in {"GET", "HEAD"}}

GROUPS_SCHEDULE: Final = {
    "title",
    "cron",
    "timezone",
    "kind",
    "description",
    "prompt",
    "agent_id",
    "session_id",
}
RULE: Final = {"tool_pattern", "path_pattern", "agent_id", "group_id", "note"}
LANDS_IN_THE_GROUP: Final = {
    "POST /api/setup": {"username", "display_name"},
    "POST /api/session": {"username", "label", "User-Agent"},
    "POST /api/invitations/accept": {"username", "display_name"},
    "POST /api/recovery": {"username"},
    "PATCH /api/me": {"display_name", "locale"},
    "POST /api/tokens": {"label", "agent_id", "scopes"},
    "POST /api/admin/users": {"username", "display_name", "role_id"},
    "PATCH /api/admin/users/{user_id}": {
        "birthdate",
        "display_name",
        "locale",
        "notes",
        "role_id",
        "sex",
    },
    "POST /api/admin/invitations": {"role_id"},
    "POST /api/admin/schedules": GROUPS_SCHEDULE,
    "PATCH /api/admin/schedules/{schedule_id}": GROUPS_SCHEDULE,
    "PUT /api/admin/flags/{name}": {"value"},
    "POST /api/admin/shared-folders": {"folder_name", "description"},
    "PATCH /api/admin/shared-folders/{folder_id}": {"folder_name", "description"},
    "POST /api/projects": {"slug", "name", "description"},
    "PATCH /api/projects/{project_id}": {"name", "description"},
    "POST /api/admin/approval-rules": RULE,
    "PATCH /api/admin/approval-rules/{rule_id}": RULE,
}
"""By design: what all must know before anybody signs in. So do notes under `shared-memory/`,
and reports to `admins` and `supervisors`. Every other field of every call is private."""


@pytest.fixture(scope="module")
def outside(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Outside]:
    """A running service whose temporary files would lie in a folder of their own."""
    temporary = tmp_path_factory.mktemp("temporary")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("TMPDIR", str(temporary))
        patch.setenv("SQLITE_TMPDIR", str(temporary))
        with LiveService(tmp_path_factory.mktemp("secrecy")) as service:
            yield Outside(service, temporary)


@pytest.fixture(scope="module")
def admin(outside: Outside) -> Client:
    """The first administrator."""
    return first_admin(outside.service)


def _account(sender: Sender, password: str) -> str:
    """From a temporary password to one of the member's own; that, and their id, for later."""
    body: dict[str, Any] = {"username": "mira", "password": password, "role_id": "member"}
    user = sender.send("POST /api/admin/users", 201, by_admin=True, json=body)["user"]
    wrong = {"username": "mira", "password": sender.mark("wrong password")}
    sender.send("POST /api/session", 401, json=wrong)
    body = {"setup_token": sender.mark("setup token"), "password": sender.mark("set-up")}
    sender.send("POST /api/setup", 409, json=body)
    sender.sign_in("mira", password)
    own = sender.mark("own password")
    body = {"current_password": password, "new_password": own}
    made = sender.send("PUT /api/me/password", 200, json=body)
    sender.secrets.append(made["recovery_code"])
    sender.send("PATCH /api/me", 200, json={"display_name": "Mira"})
    sender.send("POST /api/session/confirm", 204, json={"password": own})
    sender.send("POST /api/session/unlock", 204, json={"password": own})
    sender.send("POST /api/session/unlock", 401, json={"recovery_code": sender.mark("code")})
    body = {"username": "mira", "recovery_code": sender.mark("code"), "new_password": own}
    sender.send("POST /api/recovery", 401, json=body)
    made = sender.send("POST /api/me/recovery-code", 200, json={"password": own})
    sender.secrets.append(made["recovery_code"])
    made = sender.send("POST /api/me/rotate", 200, json={"password": own})
    sender.secrets.append(made["recovery_code"])
    body = {"username": "mira", "recovery_code": made["recovery_code"]}
    body["new_password"] = own = sender.mark("recovered password")
    sender.secrets.append(sender.send("POST /api/recovery", 200, json=body)["recovery_code"])
    sender.sign_in("mira", own)
    sender.marks.senders.append(str(user["id"]))
    return own


def _notes(sender: Sender) -> None:
    """Every call on notes; what is left in the end has versions of all of it."""
    note, other = (f"user-memory/{sender.mark('path')}.md" for _ in range(2))
    text = {"content-type": "text/markdown"}
    at = {"path": note}
    sender.send("PUT /api/file", 201, params=at, content=sender.mark("PUT"), headers=text)
    sender.send("POST /api/file/append", 200, params=at, content=sender.mark(), headers=text)
    line = sender.mark("append")
    sender.send("POST /api/file/append", 200, json={"path": note, "content": line})
    edit: dict[str, Any] = {"old": line, "new": sender.mark("edit")}
    sender.send("PATCH /api/file", 200, params=at, json={"edits": [edit]})
    edit = {"insert_at_line": 1, "text": sender.mark("edit")}
    sender.send("POST /api/file/edit", 200, json={"path": note, "edits": [edit]})
    body = {"path": other, "content": sender.mark("write")}
    sender.send("POST /api/file/write", 201, json=body)
    target = f"user-memory/{sender.mark('folder')}/{sender.mark('name')}.md"
    sender.send("POST /api/file/move", 200, json={"from": other, "to": target})
    sender.send("POST /api/file/restore", 201, json={"path": other, "version": 1})
    sender.send("POST /api/file/delete", 204, json={"path": other})
    sender.send("DELETE /api/file", 204, params={"path": target, "purge": True})
    for route in ("GET /api/file", "GET /api/file/versions"):
        sender.send(route, 200, params=at)
    sender.send("GET /api/files", 404, params=at)
    for route in ("POST /api/file/read", "POST /api/file/versions"):
        sender.send(route, 200, json=at)
    sender.send("POST /api/file/versions", 422, json={**at, "cursor": sender.mark("cursor")})
    sender.send("POST /api/file/list", 404, json={"path": f"user-memory/{sender.mark()}"})
    sender.send("POST /api/file/diff", 200, json={**at, "from": 1})
    blob = {"blob_id": "01890000-0000-4000-8000-00000000000a"}
    named = {**at, "name": sender.mark("name")}
    kind = {"content-type": "text/plain"}
    for content in (sender.mark("blob") * 10_000, sender.mark("a blob that goes")):
        sender.send(
            "PUT /api/blobs/{blob_id}",
            201,
            ids=blob,
            params=named,
            content=content.encode(),
            headers=kind,
        )
        sender.send("GET /api/blobs/{blob_id}", 200, ids=blob)
        if "goes" not in content:
            blob = {"blob_id": "01890000-0000-4000-8000-00000000000b"}
    sender.send("DELETE /api/blobs/{blob_id}", 204, ids=blob)
    placed = {"blob_id": "01890000-0000-4000-8000-00000000000c"}
    sender.send("PUT /api/blobs/{blob_id}", 201, ids=placed, content=b"x", headers=kind)
    sender.send("POST /api/blobs/{blob_id}/place", 200, ids=placed, json=named)
    lost = {"report": sender.mark("report")}
    sender.send("POST /api/blobs/{blob_id}/place", 404, ids=placed, json=lost)
    sender.send("POST /api/blobs/list", 200, json=at)
    lost = {"report": sender.mark("report"), "cursor": sender.mark("cursor")}
    sender.send("POST /api/blobs/list", 422, json=lost)
    sender.send("GET /api/search", 200, params={"q": sender.mark("search")})
    sender.send("POST /api/search", 200, json={"q": line})


def _copies(sender: Sender) -> None:
    """What goes into prompts and archives."""
    note = f"user-memory/{sender.mark('path')}.md"
    asked = {"inject": [note, f"user-memory/{sender.mark('absent')}"]}
    sender.send("GET /api/context", 200, params=asked)
    sender.send("POST /api/context", 200, json=asked)
    archive = io.BytesIO()
    with zipfile.ZipFile(archive, "w") as out:
        out.writestr(f"{sender.mark('entry')}.md", sender.mark("imported") * 9_000)
    zipped = {"content-type": "application/zip"}
    for raw, wanted in ((archive.getvalue(), 200), (sender.mark("no archive").encode(), 422)):
        sender.send("POST /api/memory/import", wanted, content=raw, headers=zipped)
    sender.send("GET /api/memory/export", 200)
    filled: dict[str, Any] = {"template": sender.mark(), "values": {"OWN": sender.mark()}}
    sender.send("POST /api/prompt/render", 200, json=filled)
    filled["values"] = {f"{sender.mark()} no key": sender.mark()}
    sender.send("POST /api/prompt/render", 422, json=filled)


def _tools(sender: Sender) -> None:
    """Every tool on a note of its own, in every field."""

    def send(tool: str, **given: object) -> None:
        sender.send(f"POST /api/tools/{tool}", 200, json=given)

    name, line = f"{sender.mark('name')}.md", sender.mark("line")
    at = {"path": f"user-memory/{name}"}
    send("write_file", **at, content=line)
    send("append_file", **at, content=sender.mark("append"))
    send("edit_file", **at, old_text=line, new_text=sender.mark("edit"))
    send("insert_at_line", **at, line=1, text=sender.mark("insert"))
    send("replace_lines", **at, first_line=1, last_line=1, text=sender.mark("replace"))
    send("read_file", **at)
    lost = {"path": f"user-memory/{sender.mark('folder')}"}
    sender.send("POST /api/tools/list_files", 404, json=lost)
    send("search_file", **at, query=sender.mark("query"))
    send("memory_search", query=sender.mark("query"))
    at = {"path": f"/memories/{sender.mark('made')}/{name}"}
    send("create", **at, file_text=line)
    send("view", **at)
    send("str_replace", **at, old_str=line, new_str=sender.mark("replace"))
    send("insert", **at, insert_line=1, insert_text=sender.mark("insert"))
    moved = f"/memories/{sender.mark('moved')}.md"
    send("rename", old_path=at["path"], new_path=moved)
    send("delete", path=moved)
    message = {"jsonrpc": "2.0", "id": sender.mark("id"), "method": sender.mark("method")}
    params: dict[str, Any] = {sender.mark("name"): sender.mark("value")}
    sender.send("POST /mcp", 200, json={**message, "params": params})
    params = {"name": "view", "arguments": {"path": moved}}
    message["method"] = "tools/call"
    sender.send("POST /mcp", 200, json={**message, "params": params})


def _events(sender: Sender) -> None:
    """The member's own log, by types of their making; then pruned."""
    kind = f"{sender.mark('type').lower()}.*"
    sender.send("GET /api/events", 200, params={"types": kind})
    sender.send("GET /api/events", 422, params={"after": sender.mark("cursor")})
    sender.send("DELETE /api/events", 200, params={"before": "2000-01-01T00:00:00Z"})


def _webhooks(sender: Sender) -> None:
    """One of the member's own, in every field; nothing is ever owed to it."""

    def fields() -> dict[str, Any]:
        return {
            "url": f"https://1.1.1.1/{sender.mark('url')}",
            "event_types": [f"{sender.mark('type').lower()}.*"],
            "description": sender.mark("description"),
        }

    sender.send("POST /api/webhooks", 422, json={**fields(), "url": sender.mark("url")})
    made = sender.send("POST /api/webhooks", 201, json=fields())
    ids = {"webhook_id": made["id"], "delivery_id": made["id"]}
    sender.secrets.append(made["secret"])
    sender.send("PATCH /api/webhooks/{webhook_id}", 200, ids=ids, json=fields())
    made = sender.send("POST /api/webhooks/{webhook_id}/secret", 200, ids=ids)
    sender.secrets.append(made["secret"])
    sender.send("GET /api/webhooks/{webhook_id}/deliveries", 200, ids=ids)
    route = "POST /api/webhooks/{webhook_id}/deliveries/{delivery_id}/retry"
    sender.is_keyed = False
    sender.send(route, 404, ids=ids)
    for act in ("retry", "cancel", "release"):
        route = f"POST /api/admin/deliveries/{{delivery_id}}/{act}"
        sender.send(route, 404, by_admin=True, ids=ids)
    body = {"connection": sender.mark("connection")}
    sender.send("POST /api/admin/breakers/reset", 404, by_admin=True, json=body)
    sender.is_keyed = True
    gone = sender.send("POST /api/webhooks", 201, json=fields())
    ids = {"webhook_id": gone["id"]}
    sender.secrets.append(gone["secret"])
    sender.send("DELETE /api/webhooks/{webhook_id}", 204, ids=ids)


def _jobs(sender: Sender) -> None:
    """The member's own, in every field; operators act on the group's by their ids."""
    kind = sender.mark("kind")

    def fields() -> dict[str, Any]:
        return {"kind": kind, "payload": {sender.mark("payload"): sender.mark("payload")}}

    def claimed() -> tuple[dict[str, str], dict[str, Any]]:
        asked = {"kinds": [kind], "wait_s": 0}
        job = sender.send("POST /api/jobs/claim", 200, json=asked)["job"]
        return {"job_id": job["id"]}, {"generation": job["generation"]}

    named = {"dedupe_key": sender.mark("dedupe")}
    made = sender.send("POST /api/jobs", 201, json={**fields(), **named})
    route = "POST /api/jobs/{job_id}"
    sender.send(f"{route}/cancel", 200, ids={"job_id": made["id"]}, json={})
    for _ in range(2):
        sender.send("POST /api/jobs", 201, json=fields())
    ids, held = claimed()
    sender.send(f"{route}/heartbeat", 200, ids=ids, json=held)
    told = {"error": sender.mark("error"), "permanent": True}
    sender.send(f"{route}/fail", 200, ids=ids, json={**held, **told})
    ids, held = claimed()
    result = {"result": {"said": sender.mark("result")}}
    sender.send(f"{route}/complete", 200, ids=ids, json={**held, **result})
    sender.is_keyed = False
    route = "/api/admin/jobs/{job_id}"
    for act in (f"POST {route}/retry", f"POST {route}/cancel", f"DELETE {route}"):
        sender.send(act, 404, by_admin=True, ids=ids)
    sender.is_keyed = True


def _schedules(sender: Sender) -> None:
    """The member's own, in every field; the group's are for all to see, and so are flags."""

    def fields() -> dict[str, Any]:
        names = ("title", "kind", "description", "prompt", "agent_id", "session_id")
        return {name: sender.mark(name) for name in names}

    made = sender.send("POST /api/schedules", 201, json={**fields(), "interval_s": 86_400})
    ids = {"schedule_id": made["id"]}
    route = "PATCH /api/schedules/{schedule_id}"
    sender.send(route, 200, ids=ids, json=fields())
    for name in ("cron", "timezone"):
        wrong = {name: sender.mark(name)}
        sender.send(route, 422, ids=ids, json=wrong)
        sender.send("POST /api/schedules", 422, json={"title": "x", **wrong})
    sender.send("POST /api/schedules/{schedule_id}/run", 202, ids=ids)
    sender.send("GET /api/schedules/{schedule_id}/runs", 200, ids=ids)
    gone = sender.send("POST /api/schedules", 201, json={**fields(), "interval_s": 86_400})
    sender.send("DELETE /api/schedules/{schedule_id}", 204, ids={"schedule_id": gone["id"]})
    sender.is_keyed = False
    of_all = {"title": "For all", "interval_s": 86_400}
    made = sender.send("POST /api/admin/schedules", 201, by_admin=True, json=of_all)
    ids = {"schedule_id": made["id"]}
    route = "/api/admin/schedules/{schedule_id}"
    sender.send(f"PATCH {route}", 200, by_admin=True, ids=ids, json={"enabled": False})
    sender.send(f"POST {route}/run", 202, by_admin=True, ids=ids)
    sender.send(f"DELETE {route}", 204, by_admin=True, ids=ids)
    route, ids = "/api/admin/flags/{name}", {"name": "jobs_outside"}
    sender.send(f"PUT {route}", 200, by_admin=True, ids=ids, json={"value": True})
    sender.send(f"DELETE {route}", 200, by_admin=True, ids=ids)
    sender.is_keyed = True


def _approvals(sender: Sender) -> None:
    """What an agent asks to write where others read, and its member refuses."""
    scopes = ["memory:write", "shared:write"]
    made = sender.send("POST /api/tokens", 201, json={"scopes": scopes, "agent_id": "scribe"})
    sender.secrets.append(made["token"])
    agent = {"Authorization": f"Bearer {made['token']}"}
    body = {"path": f"shared-memory/{sender.mark('path')}", "content": sender.mark("pending")}
    asked = sender.send("POST /api/file/write", 202, json=body, headers=agent)["approval"]
    ids = {"approval_id": asked["id"]}
    [waits] = sender.send("GET /api/approvals", 200)["items"]
    assert (waits["path"], waits["text"]) == (body["path"], body["content"])
    sender.send("GET /api/approvals/{approval_id}", 200, ids=ids)
    sender.send("POST /api/approvals/{approval_id}/reject", 200, ids=ids)
    sender.send("POST /api/approvals/{approval_id}/approve", 409, ids=ids)
    body["path"] = f"shared-memory/{sender.mark('path')}"
    sender.send("POST /api/file/append", 202, json=body, headers=agent)
    rule = {"tool_pattern": "*", "action": "require", "priority": 999_999}
    route = "/api/admin/approval-rules"
    made = sender.send(f"POST {route}", 201, by_admin=True, json=rule)
    route, ids = f"{route}/{{rule_id}}", {"rule_id": made["id"]}
    sender.send(f"PATCH {route}", 200, by_admin=True, ids=ids, json={"priority": 1_000})
    sender.send(f"DELETE {route}", 204, by_admin=True, ids=ids)


def _reports(sender: Sender) -> None:
    """A report of the member's own, in every field."""
    words = ("kind", "title", "body", "produced_by", "summary", "run_id")
    body: dict[str, Any] = {name: sender.mark(name) for name in words}
    body["metadata"] = {sender.mark("metadata"): 1}
    body["subject_user_id"] = sender.mark("subject")
    kept = sender.send("POST /api/reports", 201, json=body)
    gone = sender.send("POST /api/reports", 201, json=body)
    ids = {"home": "own", "report_id": kept["id"]}
    sender.send("POST /api/reports/{home}/{report_id}/read", 200, ids=ids)
    ids = {"home": "own", "report_id": gone["id"]}
    sender.send("DELETE /api/reports/{home}/{report_id}", 204, ids=ids)
    sender.send("GET /api/reports", 200, params={"kind": body["kind"]})


def _credentials(sender: Sender, password: str) -> None:
    """Sessions and tokens made and ended; the last call is a sign-out."""
    made = [
        sender.send("POST /api/tokens", 201, json={"scopes": ["memory:read"]}) for _ in range(2)
    ]
    sender.secrets += [each["token"] for each in made]
    sender.send("DELETE /api/tokens/{token_id}", 204, ids={"token_id": made[0]["id"]})
    keys = sender.send("GET /api/me/keys", 200)["items"]
    slot = next(key for key in keys if key["kind"] == "token")
    sender.send("DELETE /api/me/keys/{slot_id}", 204, ids={"slot_id": slot["id"]})
    first = sender.headers
    sender.sign_in("mira", password)
    sender.sign_in("mira", password)
    listed = sender.send("GET /api/sessions", 200)["items"]
    ended = next(each for each in listed if not each["current"])
    sender.send("DELETE /api/sessions/{session_id}", 204, ids={"session_id": ended["id"]})
    sender.send("DELETE /api/sessions", 204, params={"others": True})
    sender.send("POST /api/me/lock", 204)
    sender.send("GET /api/session", 401, headers=first)
    sender.send("DELETE /api/session", 204)


def _folders(sender: Sender) -> None:
    """Shared folders and projects: what others are told of them is by design not private."""
    # The keys of such requests stand where the folders are named, with the group.
    sender.is_keyed = False
    admin_id = sender.admin.user_id
    path = "/api/admin/shared-folders"
    body: dict[str, Any] = {"folder_name": "team"}
    made = sender.send(f"POST {path}", 201, by_admin=True, json=body)
    ids = {"folder_id": made["id"], "user_id": admin_id}
    path += "/{folder_id}"
    body = {"description": "d"}
    sender.send(f"PATCH {path}", 200, by_admin=True, ids=ids, json=body)
    sender.send(f"PUT {path}/members/{{user_id}}", 204, by_admin=True, ids=ids, json={})
    sender.send(f"DELETE {path}/members/{{user_id}}", 204, by_admin=True, ids=ids)
    sender.send(f"DELETE {path}", 204, by_admin=True, ids=ids)
    body = {"slug": "plan", "name": "n"}
    made = sender.send("POST /api/projects", 201, json=body)
    ids = {"project_id": made["id"], "user_id": admin_id}
    path = "/api/projects/{project_id}"
    sender.send(f"PATCH {path}", 200, ids=ids, json={"name": "m"})
    sender.send(f"PUT {path}/members/{{user_id}}", 204, ids=ids, json={})
    sender.send(f"DELETE {path}/members/{{user_id}}", 204, ids=ids)
    sender.send(f"DELETE {path}", 204, ids=ids)


def _administration(sender: Sender) -> None:
    """What an administrator does to others, whose passwords are private as well."""
    json_of = {"role_id": "member"}
    made = sender.send("POST /api/admin/invitations", 201, by_admin=True, json=json_of)
    body = {"token": made["token"], "username": "ivo", "password": sender.mark("invited")}
    ivo = sender.send("POST /api/invitations/accept", 201, json=body)
    sender.secrets += [made["token"], ivo["recovery_code"]]
    body["token"] = sender.mark("invitation")
    sender.send("POST /api/invitations/accept", 401, json=body)
    made = sender.send("POST /api/admin/invitations", 201, by_admin=True, json=json_of)
    ids = {"invitation_id": made["id"]}
    sender.send("DELETE /api/admin/invitations/{invitation_id}", 204, by_admin=True, ids=ids)
    plain: dict[str, Any] = {
        "username": "pia",
        "password": PASSWORD,
        "role_id": "member",
        "encrypted": False,
    }
    pia = sender.send("POST /api/admin/users", 201, by_admin=True, json=plain)["user"]
    body = {"password": sender.mark("password of a plain member")}
    ids = {"user_id": pia["id"]}
    sender.send("PATCH /api/admin/users/{user_id}", 200, by_admin=True, ids=ids, json=body)
    ids = {"user_id": ivo["user"]["id"]}
    sender.send("PATCH /api/admin/users/{user_id}", 409, by_admin=True, ids=ids, json=body)
    route = "POST /api/admin/operations/{key}/release"
    sender.send(route, 404, by_admin=True, ids={"key": sender.mark("key")})
    edge = {"subject": pia["id"], "supervisor": ivo["user"]["id"]}
    for method in ("PUT", "DELETE"):
        route = f"{method} /api/admin/supervision/{{subject}}/{{supervisor}}"
        sender.send(route, 204, by_admin=True, ids=edge)
    sender.send("DELETE /api/admin/users/{user_id}", 200, by_admin=True, ids=ids)


def _answers_to(admin: Client, user_id: str) -> Iterator[tuple[str, str]]:
    """Everything an administrator can read."""
    ids = defaultdict(lambda: user_id, {"home": "group", "version": "1"})
    for route in (route for route in RULES.keys() - ENDLESS if route.startswith("GET ")):
        path = route.removeprefix("GET ").format_map(ids)
        for params in ({}, {"path": "user-memory"}, {"q": "m"}, {"home": "group"}):
            answer = admin.call("GET", path, params=params)
            yield f"{route} {params}", answer.text + str(answer.headers)


def test_what_is_private_is_found_nowhere(outside: Outside, admin: Client) -> None:
    """No private value gets out of the member's store, through any call that changes something."""
    sender = Sender(admin, Marks())
    password = _account(sender, sender.mark("temporary password"))
    user_id = sender.marks.senders[-1]
    sender.is_keyed = True
    _notes(sender)
    _tools(sender)
    _copies(sender)
    _events(sender)
    _webhooks(sender)
    _jobs(sender)
    _schedules(sender)
    _reports(sender)
    _folders(sender)
    sender.is_keyed = False
    _approvals(sender)
    _credentials(sender, password)
    _administration(sender)
    assert outside.where(*sender.needles()) == []
    assert sender.marks.mark not in "".join(found for _, found in _answers_to(admin, user_id))
    # Nothing was forgotten: every such call was made, with a mark in every field for any text.
    assert sender.called >= UNSAFE, UNSAFE - sender.called
    spec = outside.service.client.get("/api/openapi.json").json()
    public = {(route, name) for route, names in LANDS_IN_THE_GROUP.items() for name in names}
    assert free_fields(spec) - public == sender.marked
    assert public - free_fields(spec) <= {("POST /api/session", "User-Agent")}


PLACES: Final = ("query", "header", "body", "json", "path", "credential")


def _misplaced(place: str, value: str) -> dict[str, Any]:
    match place:
        case "query":
            return {"params": {value: value, "path": f"user-memory/{value}"}}
        case "header":
            return {"headers": {f"X-{value}": value, "If-Match": value, "Cookie": value}}
        case "body":
            return {"content": f'{{"{value}": {value}'.encode()}
        case "json":
            return {"json": {value: value, "path": f"{value}\0", "password": [value]}}
        case "credential":
            return {"headers": {"Authorization": f"Bearer sr_session_{value}_{value}"}}
        case _:
            return {}


@pytest.mark.parametrize("place", PLACES)
def test_what_is_refused_leaves_no_trace_and_never_comes_back(
    outside: Outside, admin: Client, place: str
) -> None:
    """Whatever is sent to any route and refused stands in no file, no log and no answer."""
    marks = Marks()
    for route in RULES.keys() - ENDLESS:
        method, template = route.split()
        value = marks.new(route)
        named = value if place == "path" else "nothing"
        ids = dict.fromkeys(re.findall(r"{(\w+)}", template), named)
        sent = _misplaced(place, value)
        headers = {**admin.headers, **sent.pop("headers", {})}
        path = template.format(**ids)
        answer = outside.service.client.request(method, path, headers=headers, **sent)
        if route == "DELETE /api/session":
            admin.sign_in()
        if place == "credential" and not RULES[route].is_public:
            assert answer.status_code == 401, (route, answer.text)
        assert answer.status_code < 500, (route, answer.text)
        assert marks.mark not in answer.text + str(answer.headers), route
    assert outside.where(*marks.forms()) == []


def test_a_cleartext_member_has_a_plain_file_and_is_nowhere_else(
    outside: Outside, admin: Client
) -> None:
    """What a member without encryption writes stands in their own file alone."""
    marks = Marks()
    paul = add_member(admin, "paul", encrypted=False)
    assert paul.put("user-memory/n.md", marks.new("note")).status_code == 201
    file = outside.service.settings.user_file(members(outside.service.settings)["paul"].id)
    assert file.read_bytes()[: len(MAGIC)] == MAGIC
    places = [place.partition(":")[0] for place in outside.where(marks.mark.encode())]
    assert places
    assert all(place.startswith(str(file)) for place in places)


@pytest.mark.parametrize("root", ["user-memory", "shared-memory"])
def test_what_was_purged_is_gone_when_it_is_answered(
    outside: Outside, admin: Client, root: str
) -> None:
    """From the plain file, its index and its log alike."""
    marks = Marks()
    pia = add_member(admin, f"pia-{root}", encrypted=False)
    for text in ("one", "two"):
        assert pia.put(f"{root}/gone.md", marks.new(text)).status_code in {200, 201}
    assert outside.where(marks.mark.encode())
    purged = pia.call("DELETE", "/api/file", params={"path": f"{root}/gone.md", "purge": "true"})
    assert purged.status_code == 204
    assert outside.where(marks.mark.encode()) == []


def test_an_encrypted_file_does_not_look_like_a_database(outside: Outside, admin: Client) -> None:
    """Of a member's file nothing but its size can be told."""
    uma = add_member(admin, "uma")
    assert uma.put("user-memory/n.md", "word " * 1000).status_code == 201
    assert uma.call("POST", "/api/me/lock").status_code == 204
    content = outside.service.settings.user_file(members(outside.service.settings)["uma"].id)
    raw = content.read_bytes()
    assert b"SQLite" not in raw
    assert b"CREATE TABLE" not in raw
    assert max(raw.count(value) for value in range(256)) < 2 * len(raw) / 256
