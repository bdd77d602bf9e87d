"""Requests for shared folders, projects and the texts in them, ready to be repeated."""

from typing import Final

from tests.support.clients import Client
from tests.support.repeats import TEXT, Cases, Group, Request, number, put

_FOLDERS: Final = "/api/admin/shared-folders"
_PROJECTS: Final = "/api/projects"


def _made(client: Client, path: str, body: dict[str, object]) -> str:
    made = client.call("POST", path, json=body)
    assert made.status_code == 201, made.text
    return str(made.json()["id"])


def _folder(group: Group) -> str:
    """The path of a folder that is there."""
    return f"{_FOLDERS}/{_made(group.people.admin, _FOLDERS, {'folder_name': f'f {number()}'})}"


def _project(group: Group) -> str:
    """The path of a project that is there."""
    body: dict[str, object] = {"slug": f"p{number()}", "name": "Plan"}
    return f"{_PROJECTS}/{_made(group.plain, _PROJECTS, body)}"


def _in_project(group: Group) -> str:
    """The path of a text in a project of the plain member's."""
    made = group.plain.call("GET", _project(group)).json()
    return f"{made['path']}/a/b.md"


def _text(group: Group) -> str:
    """The path of one that is there."""
    path = _in_project(group)
    group.plain.put(path, TEXT).raise_for_status()
    return path


def _add_folder(group: Group) -> Request:
    body = {"folder_name": f"folder {number()}", "description": "d"}
    return Request(group.people.admin, "POST", _FOLDERS, {"json": body})


def _patch_folder(group: Group) -> Request:
    return Request(group.people.admin, "PATCH", _folder(group), {"json": {"description": "new"}})


def _remove_folder(group: Group) -> Request:
    return Request(group.people.admin, "DELETE", _folder(group))


def _let_in(group: Group) -> Request:
    path = f"{_folder(group)}/members/{group.plain.user_id}"
    return Request(group.people.admin, "PUT", path, {"json": {"can_write": True}})


def _take_out(group: Group) -> Request:
    request = _let_in(group)
    request.send(None).raise_for_status()
    return Request(request.client, "DELETE", request.path)


def _add_project(group: Group) -> Request:
    body = {"slug": f"q{number()}", "name": "Q", "run_context": {"a": [1]}}
    return Request(group.plain, "POST", _PROJECTS, {"json": body})


def _patch_project(group: Group) -> Request:
    body = {"name": "New", "run_context": {"b": 2}}
    return Request(group.plain, "PATCH", _project(group), {"json": body})


def _remove_project(group: Group) -> Request:
    return Request(group.plain, "DELETE", _project(group))


def _let_into_project(group: Group) -> Request:
    path = f"{_project(group)}/members/{group.people.member.user_id}"
    return Request(group.plain, "PUT", path, {"json": {"can_write": False}})


def _take_out_of_project(group: Group) -> Request:
    request = _let_into_project(group)
    request.send(None).raise_for_status()
    return Request(request.client, "DELETE", request.path)


def _put_on_disk(group: Group) -> Request:
    return put(group.plain, _in_project(group))


def _append_on_disk(group: Group) -> Request:
    body = {"path": _text(group), "content": "more"}
    return Request(group.plain, "POST", "/api/file/append", {"json": body})


def _edit_on_disk(group: Group) -> Request:
    more = {"params": {"path": _text(group)}, "json": {"edits": [{"old": "one", "new": "three"}]}}
    return Request(group.plain, "PATCH", "/api/file", more)


def _move_on_disk(group: Group) -> Request:
    path = _text(group)
    body = {"from": path, "to": f"{path}.moved"}
    return Request(group.plain, "POST", "/api/file/move", {"json": body})


def _delete_on_disk(group: Group) -> Request:
    folder = _text(group).rpartition("/")[0]
    return Request(
        group.plain, "DELETE", "/api/file", {"params": {"path": folder, "recursive": "true"}}
    )


CASES: Final[Cases] = (
    ("POST /api/admin/shared-folders", _add_folder),
    ("PATCH /api/admin/shared-folders/{folder_id}", _patch_folder),
    ("DELETE /api/admin/shared-folders/{folder_id}", _remove_folder),
    ("PUT /api/admin/shared-folders/{folder_id}/members/{user_id}", _let_in),
    ("DELETE /api/admin/shared-folders/{folder_id}/members/{user_id}", _take_out),
    ("POST /api/projects", _add_project),
    ("PATCH /api/projects/{project_id}", _patch_project),
    ("DELETE /api/projects/{project_id}", _remove_project),
    ("PUT /api/projects/{project_id}/members/{user_id}", _let_into_project),
    ("DELETE /api/projects/{project_id}/members/{user_id}", _take_out_of_project),
    ("PUT /api/file", _put_on_disk),
    ("POST /api/file/append", _append_on_disk),
    ("PATCH /api/file", _edit_on_disk),
    ("POST /api/file/move", _move_on_disk),
    ("DELETE /api/file", _delete_on_disk),
)
"""Of each call on them that changes something."""
