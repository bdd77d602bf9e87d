"""Who may call what: one table, route to rule. A route without a rule cannot be served."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Final, Literal

from app.registry.roles import Capability


@dataclass(frozen=True, slots=True)
class Rule:
    """What a route asks of its caller."""

    scope: str | None = None
    """The scope a token needs, empty for any; None: no token will do, only a person's session."""
    needs_store: bool = False
    """Whether the credential must be able to open the caller's own store."""
    is_public: bool = False
    """Whether it is called before signing in."""
    is_recent: bool = False
    """Whether that password must have been checked within minutes."""
    capability: Capability | None = None
    """What the caller's role must hold."""
    repeats: Literal["kept", "unneeded", "refused"] = "kept"
    """What an `Idempotency-Key` does on an unsafe method: the answer is kept for whoever asks
    again; nothing, for the call only reads; it is refused, for a secret or lease comes or goes."""
    secret_field: str | None = None
    """An optional field of the body that is a secret: with it a key is refused."""
    takes_conditions: bool = False
    """Whether the call, on an unsafe method, holds `If-Match` and `If-None-Match` against what
    stands; any other refuses a request that has one of them."""

    def on_condition(self) -> "Rule":
        """The same for a call on what has a version."""
        return replace(self, takes_conditions=True)


PUBLIC: Final = Rule(is_public=True, repeats="refused")
ANYBODY: Final = Rule(scope="")
"""Whoever is signed in, by whatever credential."""
_PERSON: Final = Rule()
_PERSON_SECRET: Final = Rule(repeats="refused")
"""A secret comes or goes: such an answer is never kept."""
_READ: Final = Rule(scope="memory:read", repeats="unneeded")
_WRITE: Final = Rule(scope="").on_condition()
"""Writing: the path decides which scope, in `bridge.notes`."""
_EDIT: Final = Rule(scope="memory:read").on_condition()
"""Writing whose answer depends on the text that stands: the scope of its path, and this one."""
_MCP: Final = Rule(scope="", repeats="refused")
"""Each tool asks for its own scope; what it answers is an envelope that is never kept."""
_READ_REPORTS: Final = Rule(scope="reports:read")
_WRITE_REPORTS: Final = Rule(scope="reports:write")
_JOBS: Final = Rule(scope="jobs:work")
_CLAIM: Final = Rule(scope="jobs:work", repeats="refused")
"""The answer is a lease, which would be over when it is given again."""
_SCHEDULES: Final = Rule(scope="jobs:work", needs_store=True)
_OPERATE: Final = Rule(scope="admin", capability="operate")
_ACT_ON_JOB: Final = Rule(capability="operate")
_SET_WEBHOOK: Final = Rule(is_recent=True)
_WEBHOOK_SECRET: Final = Rule(is_recent=True, repeats="refused")
_EVENTS: Final = Rule(scope="events:read")
_SEES_FOLDERS: Final = Rule(scope="admin", capability="grants.manage")
_KEEPS_FOLDERS: Final = Rule(capability="grants.manage")
"""Who is in a shared folder reads what is in it: given as plugins and connectors are."""
_SEES_ROOTS: Final = Rule(scope="memory:read")
"""Folders on the disk, for who is in them; who is in them is for a person to say."""
_DECIDE: Final = Rule(needs_store=True, is_recent=True)
_SEES_RULES: Final = Rule(scope="admin", capability="config.manage")
_SET_RULE: Final = Rule(capability="config.manage")

_LISTS_BLOBS: Final = Rule(scope="", repeats="unneeded")
"""Reading files: what each hangs on decides which scope, in `bridge.blobs`."""
_CHANGE_USER: Final = Rule(capability="users.manage", secret_field="password")  # noqa: S106 - a name

RULES: Final[Mapping[str, Rule]] = {
    "GET /healthz": PUBLIC,
    "GET /readyz": PUBLIC,
    "GET /metrics": PUBLIC,
    "GET /api/docs": PUBLIC,
    "GET /api/openapi.json": PUBLIC,
    "POST /api/setup": PUBLIC,
    "POST /api/session": PUBLIC,
    "POST /api/invitations/accept": PUBLIC,
    "POST /api/recovery": PUBLIC,
    "GET /api/session": ANYBODY,
    "DELETE /api/session": ANYBODY,
    "POST /api/session/unlock": _PERSON_SECRET,
    "POST /api/session/confirm": _PERSON_SECRET,
    "GET /api/sessions": _PERSON,
    "DELETE /api/sessions": _PERSON,
    "DELETE /api/sessions/{session_id}": _PERSON,
    "GET /api/tokens": _PERSON,
    "POST /api/tokens": Rule(is_recent=True, repeats="refused"),
    "DELETE /api/tokens/{token_id}": _PERSON,
    "GET /api/me": Rule(scope="account"),
    "PATCH /api/me": _PERSON.on_condition(),
    "PUT /api/me/password": _PERSON_SECRET.on_condition(),
    "POST /api/me/recovery-code": _PERSON_SECRET,
    "POST /api/me/rotate": _PERSON_SECRET,
    "POST /api/me/lock": _PERSON,
    "GET /api/me/access": Rule(needs_store=True),
    "GET /api/me/keys": _PERSON,
    "DELETE /api/me/keys/{slot_id}": _PERSON,
    "GET /api/file": _READ,
    "PUT /api/file": _WRITE,
    "PATCH /api/file": _EDIT,
    "DELETE /api/file": _WRITE,
    "POST /api/file/read": _READ.on_condition(),
    "POST /api/file/write": _WRITE,
    "POST /api/file/append": _WRITE,
    "POST /api/file/edit": _EDIT,
    "POST /api/file/delete": _WRITE,
    "POST /api/file/move": _WRITE,
    "POST /api/file/list": _READ,
    "POST /api/file/versions": _READ,
    "POST /api/file/restore": _WRITE,
    "GET /api/files": _READ,
    "GET /api/file/versions": _READ,
    "GET /api/file/versions/{version}": _READ,
    "GET /api/file/diff": _READ,
    "POST /api/file/diff": _READ,
    "GET /api/search": _READ,
    "POST /api/search": _READ,
    "GET /api/tools": ANYBODY,
    "POST /api/tools/read_file": _READ.on_condition(),
    "POST /api/tools/write_file": _WRITE,
    "POST /api/tools/append_file": _WRITE,
    "POST /api/tools/edit_file": _EDIT,
    "POST /api/tools/insert_at_line": _EDIT,
    "POST /api/tools/replace_lines": _EDIT,
    "POST /api/tools/list_files": _READ,
    "POST /api/tools/search_file": _READ,
    "POST /api/tools/memory_search": _READ,
    "POST /api/tools/view": _READ.on_condition(),
    "POST /api/tools/create": _WRITE,
    "POST /api/tools/str_replace": _EDIT,
    "POST /api/tools/insert": _EDIT,
    "POST /api/tools/delete": _WRITE,
    "POST /api/tools/rename": _WRITE,
    "POST /mcp": _MCP,
    "GET /api/memory/export": Rule(needs_store=True, is_recent=True),
    "POST /api/memory/import": Rule(needs_store=True),
    "GET /api/context": _READ,
    "POST /api/context": _READ,
    "POST /api/prompt/render": _READ,
    "GET /api/approvals": Rule(needs_store=True),
    "GET /api/approvals/{approval_id}": Rule(scope="shared:write"),
    "POST /api/approvals/{approval_id}/approve": _DECIDE,
    "POST /api/approvals/{approval_id}/reject": _DECIDE,
    "GET /api/admin/approvals": _SEES_RULES,
    "GET /api/admin/approval-rules": _SEES_RULES,
    "POST /api/admin/approval-rules": _SET_RULE,
    "GET /api/admin/approval-rules/{rule_id}": _SEES_RULES,
    "PATCH /api/admin/approval-rules/{rule_id}": _SET_RULE.on_condition(),
    "DELETE /api/admin/approval-rules/{rule_id}": _SET_RULE.on_condition(),
    "POST /api/reports": _WRITE_REPORTS,
    "GET /api/reports": _READ_REPORTS,
    "GET /api/reports/{home}/{report_id}": _READ_REPORTS,
    "POST /api/reports/{home}/{report_id}/read": _READ_REPORTS,
    "DELETE /api/reports/{home}/{report_id}": _WRITE_REPORTS,
    "PUT /api/blobs/{blob_id}": _WRITE,
    "POST /api/blobs/{blob_id}/place": _WRITE,
    "GET /api/blobs/{blob_id}": ANYBODY,
    "HEAD /api/blobs/{blob_id}": ANYBODY,
    "DELETE /api/blobs/{blob_id}": _WRITE,
    "GET /api/blobs": ANYBODY,
    "POST /api/blobs/list": _LISTS_BLOBS,
    "GET /api/events": _EVENTS,
    "DELETE /api/events": _PERSON,
    "GET /api/events/stream": _EVENTS,
    "GET /api/admin/operations": _OPERATE,
    "POST /api/admin/operations/{key}/release": Rule(capability="operate"),
    "GET /api/admin/fleet": Rule(scope="admin", capability="operate"),
    "GET /api/admin/stores": Rule(scope="admin", capability="operate"),
    "GET /api/admin/audit": Rule(scope="admin", capability="audit.read"),
    "GET /api/admin/users": Rule(scope="admin", capability="users.read"),
    "GET /api/admin/users/{user_id}": Rule(scope="admin", capability="users.read"),
    "POST /api/admin/users": Rule(capability="users.manage", repeats="refused"),
    "PATCH /api/admin/users/{user_id}": _CHANGE_USER.on_condition(),
    "DELETE /api/admin/users/{user_id}": Rule(
        is_recent=True, capability="users.manage"
    ).on_condition(),
    "GET /api/admin/invitations": Rule(scope="admin", capability="users.read"),
    "POST /api/admin/invitations": Rule(capability="users.manage", repeats="refused"),
    "DELETE /api/admin/invitations/{invitation_id}": Rule(capability="users.manage"),
    "GET /api/admin/roles": Rule(scope="admin", capability="users.read"),
    "GET /api/admin/supervision": Rule(scope="admin", capability="supervision.manage"),
    "PUT /api/admin/supervision/{subject}/{supervisor}": Rule(capability="supervision.manage"),
    "DELETE /api/admin/supervision/{subject}/{supervisor}": Rule(capability="supervision.manage"),
    "POST /api/jobs": _JOBS,
    "POST /api/jobs/claim": _CLAIM,
    "POST /api/jobs/{job_id}/heartbeat": _JOBS.on_condition(),
    "POST /api/jobs/{job_id}/complete": _JOBS.on_condition(),
    "POST /api/jobs/{job_id}/fail": _JOBS.on_condition(),
    "POST /api/jobs/{job_id}/cancel": _JOBS.on_condition(),
    "GET /api/jobs": _JOBS,
    "GET /api/jobs/{job_id}": _JOBS,
    "GET /api/webhooks": _PERSON,
    "POST /api/webhooks": _WEBHOOK_SECRET,
    "GET /api/webhooks/{webhook_id}": _PERSON,
    "PATCH /api/webhooks/{webhook_id}": _SET_WEBHOOK.on_condition(),
    "DELETE /api/webhooks/{webhook_id}": _SET_WEBHOOK.on_condition(),
    "POST /api/webhooks/{webhook_id}/secret": _WEBHOOK_SECRET.on_condition(),
    "GET /api/webhooks/{webhook_id}/deliveries": _PERSON,
    "POST /api/webhooks/{webhook_id}/deliveries/{delivery_id}/retry": _SET_WEBHOOK.on_condition(),
    "GET /api/admin/deliveries": _OPERATE,
    "GET /api/admin/deliveries/{delivery_id}": _OPERATE,
    "POST /api/admin/deliveries/{delivery_id}/retry": _ACT_ON_JOB.on_condition(),
    "POST /api/admin/deliveries/{delivery_id}/cancel": _ACT_ON_JOB.on_condition(),
    "POST /api/admin/deliveries/{delivery_id}/release": _ACT_ON_JOB.on_condition(),
    "GET /api/admin/breakers": _OPERATE,
    "POST /api/admin/breakers/reset": _ACT_ON_JOB,
    "GET /api/admin/jobs": _OPERATE,
    "GET /api/admin/jobs/{job_id}": _OPERATE,
    "POST /api/admin/jobs/{job_id}/retry": _ACT_ON_JOB.on_condition(),
    "POST /api/admin/jobs/{job_id}/cancel": _ACT_ON_JOB.on_condition(),
    "DELETE /api/admin/jobs/{job_id}": _ACT_ON_JOB.on_condition(),
    "GET /api/schedules": _SCHEDULES,
    "POST /api/schedules": _SCHEDULES,
    "GET /api/schedules/{schedule_id}": _SCHEDULES,
    "PATCH /api/schedules/{schedule_id}": _SCHEDULES.on_condition(),
    "DELETE /api/schedules/{schedule_id}": _SCHEDULES.on_condition(),
    "GET /api/schedules/{schedule_id}/runs": _SCHEDULES,
    "POST /api/schedules/{schedule_id}/run": _SCHEDULES.on_condition(),
    "GET /api/admin/schedules": _OPERATE,
    "POST /api/admin/schedules": _ACT_ON_JOB,
    "GET /api/admin/schedules/{schedule_id}": _OPERATE,
    "PATCH /api/admin/schedules/{schedule_id}": _ACT_ON_JOB.on_condition(),
    "DELETE /api/admin/schedules/{schedule_id}": _ACT_ON_JOB.on_condition(),
    "GET /api/admin/schedules/{schedule_id}/runs": _OPERATE,
    "POST /api/admin/schedules/{schedule_id}/run": _ACT_ON_JOB.on_condition(),
    "GET /api/shared-folders": _SEES_ROOTS,
    "GET /api/admin/shared-folders": _SEES_FOLDERS,
    "POST /api/admin/shared-folders": _KEEPS_FOLDERS,
    "GET /api/admin/shared-folders/{folder_id}": _SEES_FOLDERS,
    "PATCH /api/admin/shared-folders/{folder_id}": _KEEPS_FOLDERS.on_condition(),
    "DELETE /api/admin/shared-folders/{folder_id}": _KEEPS_FOLDERS.on_condition(),
    "GET /api/admin/shared-folders/{folder_id}/members": _SEES_FOLDERS,
    "PUT /api/admin/shared-folders/{folder_id}/members/{user_id}": _KEEPS_FOLDERS,
    "DELETE /api/admin/shared-folders/{folder_id}/members/{user_id}": _KEEPS_FOLDERS,
    "GET /api/projects": _SEES_ROOTS,
    "POST /api/projects": _PERSON,
    "GET /api/projects/{project_id}": _SEES_ROOTS,
    "PATCH /api/projects/{project_id}": _PERSON.on_condition(),
    "DELETE /api/projects/{project_id}": _PERSON.on_condition(),
    "GET /api/projects/{project_id}/members": _SEES_ROOTS,
    "PUT /api/projects/{project_id}/members/{user_id}": _PERSON,
    "DELETE /api/projects/{project_id}/members/{user_id}": _PERSON,
    "GET /api/admin/flags": _OPERATE,
    "PUT /api/admin/flags/{name}": _ACT_ON_JOB.on_condition(),
    "DELETE /api/admin/flags/{name}": _ACT_ON_JOB.on_condition(),
    "GET /api/admin/flags/{name}/changes": _OPERATE,
}
"""Every route of the service, as `METHOD /template`."""


def methods_of(template: str) -> list[str]:
    """The methods that a path takes, in the order of the table."""
    return [route.split()[0] for route in RULES if route.split()[1] == template]
