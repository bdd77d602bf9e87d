"""What can carry text out of a member's own store, and what keeps an agent from doing so.

Every call that changes something stands in one of two tables: it can put what its caller
knows where others find it, and then something stands between an agent and that; or what it is
told stays with the member, and then why. A call in neither cannot be added: a test walks the
service's description, the tools, and the kinds of the program's own jobs.
"""

from collections.abc import Mapping
from typing import Final, Literal

Guard = Literal["approval", "closed", "scope", "person"]
"""What keeps an agent from it: its member decides what others will read (`approval`); it is
closed to agents where others read, whatever their scopes (`closed`); it needs a scope that no
token has by default (`scope`); no token can make it (`person`)."""

DEFAULT_SCOPES: Final = frozenset({"memory:read"})
"""Of a token whose maker names none."""

CARRIES_OUT: Final[Mapping[str, Guard]] = {
    # Texts, wherever their path says.
    "PUT /api/file": "approval",
    "PATCH /api/file": "approval",
    "DELETE /api/file": "approval",
    "POST /api/file/write": "approval",
    "POST /api/file/append": "approval",
    "POST /api/file/edit": "approval",
    "POST /api/file/delete": "approval",
    "POST /api/file/move": "approval",
    "POST /api/file/restore": "approval",
    # The same by the names that agents know.
    "POST /api/tools/write_file": "approval",
    "POST /api/tools/append_file": "approval",
    "POST /api/tools/edit_file": "approval",
    "POST /api/tools/insert_at_line": "approval",
    "POST /api/tools/replace_lines": "approval",
    "POST /mcp": "approval",
    # Reports and files to the group: there is no way to ask for it.
    "POST /api/reports": "closed",
    "DELETE /api/reports/{home}/{report_id}": "closed",
    "PUT /api/blobs/{blob_id}": "closed",
    "POST /api/blobs/{blob_id}/place": "closed",
    "DELETE /api/blobs/{blob_id}": "closed",
    # Jobs of the group, which administrators alone make and others work on.
    "POST /api/jobs": "scope",
    "POST /api/jobs/claim": "scope",
    "POST /api/jobs/{job_id}/heartbeat": "scope",
    "POST /api/jobs/{job_id}/complete": "scope",
    "POST /api/jobs/{job_id}/fail": "scope",
    "POST /api/jobs/{job_id}/cancel": "scope",
    # What tells the world outside, and what all members see.
    "POST /api/webhooks": "person",
    "PATCH /api/webhooks/{webhook_id}": "person",
    "POST /api/webhooks/{webhook_id}/deliveries/{delivery_id}/retry": "person",
    "PATCH /api/me": "person",
    "POST /api/tokens": "person",
    "POST /api/approvals/{approval_id}/approve": "person",
    "POST /api/projects": "person",
    "PATCH /api/projects/{project_id}": "person",
    "PUT /api/projects/{project_id}/members/{user_id}": "person",
    # What administrators write is the group's.
    "POST /api/admin/users": "person",
    "PATCH /api/admin/users/{user_id}": "person",
    "POST /api/admin/invitations": "person",
    "POST /api/admin/approval-rules": "person",
    "PATCH /api/admin/approval-rules/{rule_id}": "person",
    "POST /api/admin/schedules": "person",
    "PATCH /api/admin/schedules/{schedule_id}": "person",
    "POST /api/admin/schedules/{schedule_id}/run": "person",
    "POST /api/admin/shared-folders": "person",
    "PATCH /api/admin/shared-folders/{folder_id}": "person",
    "PUT /api/admin/flags/{name}": "person",
}
"""Calls that can, and their guard."""

_ANSWERS: Final = "it changes nothing, and answers its caller alone"
_OWN: Final = "what it writes is in the member's own store"
_CREDENTIALS: Final = "credentials and ways in, of which others find out nothing"
_NAMES: Final = "it names something that is there, and brings no text"

STAYS: Final[Mapping[str, str]] = {
    "POST /api/setup": _CREDENTIALS,
    "POST /api/session": _CREDENTIALS,
    "DELETE /api/session": _CREDENTIALS,
    "POST /api/session/unlock": _CREDENTIALS,
    "POST /api/session/confirm": _CREDENTIALS,
    "POST /api/invitations/accept": _CREDENTIALS,
    "POST /api/recovery": _CREDENTIALS,
    "DELETE /api/sessions": _CREDENTIALS,
    "DELETE /api/sessions/{session_id}": _CREDENTIALS,
    "DELETE /api/tokens/{token_id}": _CREDENTIALS,
    "PUT /api/me/password": _CREDENTIALS,
    "POST /api/me/recovery-code": _CREDENTIALS,
    "POST /api/me/rotate": _CREDENTIALS,
    "POST /api/me/lock": _CREDENTIALS,
    "DELETE /api/me/keys/{slot_id}": _CREDENTIALS,
    "POST /api/file/read": _ANSWERS,
    "POST /api/file/list": _ANSWERS,
    "POST /api/file/versions": _ANSWERS,
    "POST /api/file/diff": _ANSWERS,
    "POST /api/search": _ANSWERS,
    "POST /api/context": _ANSWERS,
    "POST /api/prompt/render": _ANSWERS,
    "POST /api/blobs/list": _ANSWERS,
    "POST /api/tools/read_file": _ANSWERS,
    "POST /api/tools/list_files": _ANSWERS,
    "POST /api/tools/search_file": _ANSWERS,
    "POST /api/tools/memory_search": _ANSWERS,
    "POST /api/tools/view": _ANSWERS,
    "POST /api/tools/create": _OWN,
    "POST /api/tools/str_replace": _OWN,
    "POST /api/tools/insert": _OWN,
    "POST /api/tools/delete": _OWN,
    "POST /api/tools/rename": _OWN,
    "POST /api/memory/import": _OWN,
    "POST /api/schedules": _OWN,
    "PATCH /api/schedules/{schedule_id}": _OWN,
    "DELETE /api/schedules/{schedule_id}": _OWN,
    "POST /api/schedules/{schedule_id}/run": _OWN,
    "POST /api/approvals/{approval_id}/reject": _NAMES,
    "POST /api/reports/{home}/{report_id}/read": _NAMES,
    "DELETE /api/events": _NAMES,
    "DELETE /api/webhooks/{webhook_id}": _NAMES,
    "POST /api/webhooks/{webhook_id}/secret": _NAMES,
    "DELETE /api/projects/{project_id}": _NAMES,
    "DELETE /api/projects/{project_id}/members/{user_id}": _NAMES,
    "POST /api/admin/operations/{key}/release": _NAMES,
    "DELETE /api/admin/users/{user_id}": _NAMES,
    "DELETE /api/admin/invitations/{invitation_id}": _NAMES,
    "PUT /api/admin/supervision/{subject}/{supervisor}": _NAMES,
    "DELETE /api/admin/supervision/{subject}/{supervisor}": _NAMES,
    "DELETE /api/admin/approval-rules/{rule_id}": _NAMES,
    "POST /api/admin/deliveries/{delivery_id}/retry": _NAMES,
    "POST /api/admin/deliveries/{delivery_id}/cancel": _NAMES,
    "POST /api/admin/deliveries/{delivery_id}/release": _NAMES,
    "POST /api/admin/breakers/reset": _NAMES,
    "POST /api/admin/jobs/{job_id}/retry": _NAMES,
    "POST /api/admin/jobs/{job_id}/cancel": _NAMES,
    "DELETE /api/admin/jobs/{job_id}": _NAMES,
    "DELETE /api/admin/schedules/{schedule_id}": _NAMES,
    "DELETE /api/admin/shared-folders/{folder_id}": _NAMES,
    "PUT /api/admin/shared-folders/{folder_id}/members/{user_id}": _NAMES,
    "DELETE /api/admin/shared-folders/{folder_id}/members/{user_id}": _NAMES,
    "DELETE /api/admin/flags/{name}": _NAMES,
}
"""Calls that cannot, and why."""

JOB_KINDS: Final[Mapping[str, str]] = {
    "strongroom.verify_record": "it looks through the record of changes and keeps counts",
}
"""Kinds of the program's own jobs, and why none of them carries text out."""
