"""Every call as every kind of caller: who is let through, and what the others are told."""

from collections.abc import Iterator
from typing import Final

import httpx
import pytest

from app.bridge.accounts.api_tokens import SCOPES
from app.web.rules import RULES
from tests.support.clients import Client, code_of
from tests.support.people import People, people_on
from tests.support.texts import PERSONS, ROOTS, TEXT_CALLS, ask_for_text, scopes_of

EVERYBODY: Final = "everybody"
SIGNED_IN: Final = "whoever is signed in"
PERSON: Final = "a person"
MANAGER: Final = "a person who administers"
OVERSEER: Final = "who administers, or their token for it"

# Written by hand from the specification, not from the table it is held against.
OPEN_TO: Final = {
    "GET /healthz": EVERYBODY,
    "GET /readyz": EVERYBODY,
    "GET /api/docs": EVERYBODY,
    "GET /api/openapi.json": EVERYBODY,
    "POST /api/setup": EVERYBODY,
    "POST /api/session": EVERYBODY,
    "POST /api/invitations/accept": EVERYBODY,
    "POST /api/recovery": EVERYBODY,
    "GET /api/session": SIGNED_IN,
    "DELETE /api/session": SIGNED_IN,
    "POST /api/session/unlock": PERSON,
    "POST /api/session/confirm": PERSON,
    "GET /api/sessions": PERSON,
    "DELETE /api/sessions": PERSON,
    "DELETE /api/sessions/{session_id}": PERSON,
    "GET /api/tokens": PERSON,
    "POST /api/tokens": PERSON,
    "DELETE /api/tokens/{token_id}": PERSON,
    "GET /api/me": "account",
    "PATCH /api/me": PERSON,
    "PUT /api/me/password": PERSON,
    "POST /api/me/recovery-code": PERSON,
    "POST /api/me/rotate": PERSON,
    "POST /api/me/lock": PERSON,
    "GET /api/me/access": PERSON,
    "GET /api/me/keys": PERSON,
    "DELETE /api/me/keys/{slot_id}": PERSON,
    "GET /api/file": "memory:read",
    "PUT /api/file": SIGNED_IN,
    "PATCH /api/file": "memory:read",
    "DELETE /api/file": SIGNED_IN,
    "POST /api/file/read": "memory:read",
    "POST /api/file/write": SIGNED_IN,
    "POST /api/file/append": SIGNED_IN,
    "POST /api/file/edit": "memory:read",
    "POST /api/file/delete": SIGNED_IN,
    "POST /api/file/move": SIGNED_IN,
    "POST /api/file/list": "memory:read",
    "POST /api/file/versions": "memory:read",
    "POST /api/file/restore": SIGNED_IN,
    "GET /api/files": "memory:read",
    "GET /api/file/versions": "memory:read",
    "GET /api/file/versions/{version}": "memory:read",
    "GET /api/file/diff": "memory:read",
    "POST /api/file/diff": "memory:read",
    "GET /api/search": "memory:read",
    "POST /api/search": "memory:read",
    "GET /api/tools": SIGNED_IN,
    "POST /api/tools/read_file": "memory:read",
    "POST /api/tools/write_file": SIGNED_IN,
    "POST /api/tools/append_file": SIGNED_IN,
    "POST /api/tools/edit_file": "memory:read",
    "POST /api/tools/insert_at_line": "memory:read",
    "POST /api/tools/replace_lines": "memory:read",
    "POST /api/tools/list_files": "memory:read",
    "POST /api/tools/search_file": "memory:read",
    "POST /api/tools/memory_search": "memory:read",
    "POST /api/tools/view": "memory:read",
    "POST /api/tools/create": SIGNED_IN,
    "POST /api/tools/str_replace": "memory:read",
    "POST /api/tools/insert": "memory:read",
    "POST /api/tools/delete": SIGNED_IN,
    "POST /api/tools/rename": SIGNED_IN,
    "POST /mcp": SIGNED_IN,
    "GET /api/shared-folders": "memory:read",
    "GET /api/admin/shared-folders": OVERSEER,
    "POST /api/admin/shared-folders": MANAGER,
    "GET /api/admin/shared-folders/{folder_id}": OVERSEER,
    "PATCH /api/admin/shared-folders/{folder_id}": MANAGER,
    "DELETE /api/admin/shared-folders/{folder_id}": MANAGER,
    "GET /api/admin/shared-folders/{folder_id}/members": OVERSEER,
    "PUT /api/admin/shared-folders/{folder_id}/members/{user_id}": MANAGER,
    "DELETE /api/admin/shared-folders/{folder_id}/members/{user_id}": MANAGER,
    "GET /api/projects": "memory:read",
    "POST /api/projects": PERSON,
    "GET /api/projects/{project_id}": "memory:read",
    "PATCH /api/projects/{project_id}": PERSON,
    "DELETE /api/projects/{project_id}": PERSON,
    "GET /api/projects/{project_id}/members": "memory:read",
    "PUT /api/projects/{project_id}/members/{user_id}": PERSON,
    "DELETE /api/projects/{project_id}/members/{user_id}": PERSON,
    "GET /api/memory/export": PERSON,
    "POST /api/memory/import": PERSON,
    "GET /api/context": "memory:read",
    "POST /api/context": "memory:read",
    "POST /api/prompt/render": "memory:read",
    "GET /api/approvals": PERSON,
    "GET /api/approvals/{approval_id}": "shared:write",
    "POST /api/approvals/{approval_id}/approve": PERSON,
    "POST /api/approvals/{approval_id}/reject": PERSON,
    "GET /api/admin/approvals": OVERSEER,
    "GET /api/admin/approval-rules": OVERSEER,
    "POST /api/admin/approval-rules": MANAGER,
    "GET /api/admin/approval-rules/{rule_id}": OVERSEER,
    "PATCH /api/admin/approval-rules/{rule_id}": MANAGER,
    "DELETE /api/admin/approval-rules/{rule_id}": MANAGER,
    "POST /api/reports": "reports:write",
    "GET /api/reports": "reports:read",
    "GET /api/reports/{home}/{report_id}": "reports:read",
    "POST /api/reports/{home}/{report_id}/read": "reports:read",
    "DELETE /api/reports/{home}/{report_id}": "reports:write",
    "GET /api/events": "events:read",
    "DELETE /api/events": PERSON,
    "GET /api/events/stream": "events:read",
    "GET /api/webhooks": PERSON,
    "POST /api/webhooks": PERSON,
    "GET /api/webhooks/{webhook_id}": PERSON,
    "PATCH /api/webhooks/{webhook_id}": PERSON,
    "DELETE /api/webhooks/{webhook_id}": PERSON,
    "POST /api/webhooks/{webhook_id}/secret": PERSON,
    "GET /api/webhooks/{webhook_id}/deliveries": PERSON,
    "POST /api/webhooks/{webhook_id}/deliveries/{delivery_id}/retry": PERSON,
    "GET /api/admin/deliveries": OVERSEER,
    "GET /api/admin/deliveries/{delivery_id}": OVERSEER,
    "POST /api/admin/deliveries/{delivery_id}/retry": MANAGER,
    "POST /api/admin/deliveries/{delivery_id}/cancel": MANAGER,
    "POST /api/admin/deliveries/{delivery_id}/release": MANAGER,
    "GET /api/admin/breakers": OVERSEER,
    "POST /api/admin/breakers/reset": MANAGER,
    "GET /api/admin/audit": OVERSEER,
    "GET /metrics": EVERYBODY,
    "POST /api/jobs": "jobs:work",
    "POST /api/jobs/claim": "jobs:work",
    "POST /api/jobs/{job_id}/heartbeat": "jobs:work",
    "POST /api/jobs/{job_id}/complete": "jobs:work",
    "POST /api/jobs/{job_id}/fail": "jobs:work",
    "POST /api/jobs/{job_id}/cancel": "jobs:work",
    "GET /api/jobs": "jobs:work",
    "GET /api/jobs/{job_id}": "jobs:work",
    "GET /api/admin/jobs": OVERSEER,
    "GET /api/admin/jobs/{job_id}": OVERSEER,
    "POST /api/admin/jobs/{job_id}/retry": MANAGER,
    "POST /api/admin/jobs/{job_id}/cancel": MANAGER,
    "DELETE /api/admin/jobs/{job_id}": MANAGER,
    "GET /api/schedules": "jobs:work",
    "POST /api/schedules": "jobs:work",
    "GET /api/schedules/{schedule_id}": "jobs:work",
    "PATCH /api/schedules/{schedule_id}": "jobs:work",
    "DELETE /api/schedules/{schedule_id}": "jobs:work",
    "GET /api/schedules/{schedule_id}/runs": "jobs:work",
    "POST /api/schedules/{schedule_id}/run": "jobs:work",
    "GET /api/admin/schedules": OVERSEER,
    "POST /api/admin/schedules": MANAGER,
    "GET /api/admin/schedules/{schedule_id}": OVERSEER,
    "PATCH /api/admin/schedules/{schedule_id}": MANAGER,
    "DELETE /api/admin/schedules/{schedule_id}": MANAGER,
    "GET /api/admin/schedules/{schedule_id}/runs": OVERSEER,
    "POST /api/admin/schedules/{schedule_id}/run": MANAGER,
    "GET /api/admin/flags": OVERSEER,
    "PUT /api/admin/flags/{name}": MANAGER,
    "DELETE /api/admin/flags/{name}": MANAGER,
    "GET /api/admin/flags/{name}/changes": OVERSEER,
    "PUT /api/blobs/{blob_id}": SIGNED_IN,
    "POST /api/blobs/{blob_id}/place": SIGNED_IN,
    "GET /api/blobs/{blob_id}": SIGNED_IN,
    "HEAD /api/blobs/{blob_id}": SIGNED_IN,
    "DELETE /api/blobs/{blob_id}": SIGNED_IN,
    "GET /api/blobs": SIGNED_IN,
    "POST /api/blobs/list": SIGNED_IN,
    "GET /api/admin/operations": OVERSEER,
    "POST /api/admin/operations/{key}/release": MANAGER,
    "GET /api/admin/fleet": OVERSEER,
    "GET /api/admin/stores": OVERSEER,
    "GET /api/admin/users": OVERSEER,
    "GET /api/admin/users/{user_id}": OVERSEER,
    "POST /api/admin/users": MANAGER,
    "PATCH /api/admin/users/{user_id}": MANAGER,
    "DELETE /api/admin/users/{user_id}": MANAGER,
    "GET /api/admin/invitations": OVERSEER,
    "POST /api/admin/invitations": MANAGER,
    "DELETE /api/admin/invitations/{invitation_id}": MANAGER,
    "GET /api/admin/roles": OVERSEER,
    "GET /api/admin/supervision": OVERSEER,
    "PUT /api/admin/supervision/{subject}/{supervisor}": MANAGER,
    "DELETE /api/admin/supervision/{subject}/{supervisor}": MANAGER,
}
"""Whom each call lets through; a scope's name stands for persons and tokens that have it."""

PLACES: Final = {"home": "own", "version": "1"}
NOBODY: Final = "01890000-0000-7000-8000-000000000000"
THROUGH: Final = 422


@pytest.fixture(scope="module")
def people(tmp_path_factory: pytest.TempPathFactory) -> Iterator[People]:
    """A group on a running service."""
    with people_on(tmp_path_factory.mktemp("root"), measured=True) as found:
        yield found


@pytest.fixture(scope="module")
def callers(people: People) -> dict[str, Client]:
    """Every kind of caller; a token's name is its scope."""
    found = {
        "anonymous": people.anonymous(),
        "member": people.member,
        "guest": people.add("gil", "guest"),
        "admin": people.admin,
        "forged": Client(people.service, "", "", {"Authorization": "Bearer sr_session_x_y"}),
        "basic": Client(people.service, "", "", {"Authorization": "Basic YW5hOmFuYQ=="}),
    }
    left = people.add("dee", "member")
    found["token of one who left"] = people.token(left, "memory:read")
    assert people.admin.call(
        "PATCH", f"/api/admin/users/{left.user_id}", json={"active": False}
    ).is_success
    found["one who left"] = left
    for scope in SCOPES:
        if scope != "admin":
            found[f"token {scope}"] = people.token(people.member, scope)
        found[f"admin's token {scope}"] = people.token(people.admin, scope)
    return found


def knock(client: Client, call: str) -> httpx.Response:
    """Make a call with something in it that no call takes, so that nothing is ever done."""
    method, template = call.split()
    path = template.format_map(
        {name: PLACES.get(name, NOBODY) for name in RULES_PLACES.get(template, ())}
    )
    if method in {"GET", "HEAD"}:
        return client.call(method, path, params={"no-such-parameter": "1"})
    if call in RAW:
        return client.call(method, path, params={"path": "user-memory/x", "nothing": "1"})
    return client.call(method, path, json={"no-such-field": 1})


MAKES: Final = "PUT /api/blobs/{blob_id}"
"""Whose id is the caller's to choose."""
RAW: Final = {
    "PUT /api/file",
    "PATCH /api/file",
    "DELETE /api/file",
    "POST /api/memory/import",
    MAKES,
}
RULES_PLACES: Final = {
    call.split()[1]: [part[1:-1] for part in call.split()[1].split("/") if part.startswith("{")]
    for call in RULES
}


def expected(caller: str, open_to: str) -> int:
    """The status by the words above."""
    if open_to == EVERYBODY:
        return THROUGH
    if caller in {"anonymous", "forged", "basic", "one who left", "token of one who left"}:
        return 401
    owner, _, scope = caller.rpartition("token ")
    is_admin = caller == "admin" or owner == "admin's "
    is_token = "token " in caller
    passes = {
        SIGNED_IN: True,
        PERSON: not is_token,
        MANAGER: is_admin and not is_token,
        OVERSEER: is_admin and (not is_token or scope == "admin"),
    }.get(open_to, not is_token or scope == open_to)
    return THROUGH if passes else 403


def test_the_table_has_every_call() -> None:
    """A new call must be given its callers here too."""
    assert sorted(OPEN_TO) == sorted(RULES)


# Two of these calls judge a token of their own before anything else.
@pytest.mark.parametrize("call", sorted(set(OPEN_TO) - {"POST /api/setup"}))
def test_every_call_lets_through_whom_it_should(call: str, callers: dict[str, Client]) -> None:
    """401 without a credential that holds, 403 where the route is closed, else the fields count."""
    seen = {caller: knock(client, call) for caller, client in callers.items()}
    told = {caller: answer.status_code for caller, answer in seen.items()}
    wanted = {caller: expected(caller, OPEN_TO[call]) for caller in callers}
    if call == "POST /api/invitations/accept":
        wanted = dict.fromkeys(callers, 401)
    assert told == wanted
    for caller, answer in seen.items():
        assert answer.headers["content-type"] == "application/problem+json", caller
        assert "no-such" not in answer.text, caller


@pytest.mark.parametrize(
    ("caller", "code"),
    [
        ("anonymous", "authentication_required"),
        ("forged", "invalid_credentials"),
        ("basic", "invalid_credentials"),
        ("one who left", "invalid_credentials"),
        ("token of one who left", "invalid_credentials"),
        ("member", "not_permitted"),
        ("guest", "not_permitted"),
        ("admin's token memory:read", "human_session_required"),
    ],
)
def test_a_refusal_says_which(caller: str, code: str, callers: dict[str, Client]) -> None:
    """By its code; and a 401 says how to come back."""
    answer = knock(callers[caller], "POST /api/admin/users")
    assert code_of(answer) == code
    assert (answer.headers.get("www-authenticate") == "Bearer") == (answer.status_code == 401)


WRITES: Final[dict[str, tuple[str, str, dict[str, object]]]] = {
    "PUT": ("PUT", "/api/file", {}),
    "write": ("POST", "/api/file/write", {"content": "x"}),
    "append": ("POST", "/api/file/append", {"content": "x"}),
    "move": ("POST", "/api/file/move", {}),
    "restore": ("POST", "/api/file/restore", {"version": 1}),
    "delete": ("POST", "/api/file/delete", {}),
}


def write(client: Client, name: str, root: str) -> int:
    """Try one of the writes in a root; the status."""
    method, path, body = WRITES[name]
    place = f"{root}/written.md"
    if method == "PUT":
        return client.put(place, "x").status_code
    where = {"from": place, "to": f"{root}/moved.md"} if name == "move" else {"path": place}
    return client.call(method, path, json={**where, **body}).status_code


@pytest.mark.parametrize("name", WRITES)
@pytest.mark.parametrize("scope", SCOPES)
def test_a_token_writes_only_where_its_scope_reaches(
    name: str, scope: str, callers: dict[str, Client]
) -> None:
    """`memory:write` the member's own memory, `shared:write` what others read, once decided."""
    agent = callers[f"admin's token {scope}"]
    assert (write(agent, name, "user-memory") == 403) == (scope != "memory:write")
    found = write(agent, name, "shared-memory")
    assert (found == 403) == (scope != "shared:write")
    assert found in {202, 403, 404}


@pytest.mark.parametrize("name", WRITES)
def test_a_program_of_the_member_may_write_what_others_read(name: str, people: People) -> None:
    """With `shared:write`, by a token that is no agent's; and then nothing of the member's own."""
    program = people.token(people.member, "shared:write", is_agent=False)
    assert write(program, name, "shared-memory") != 403
    assert write(program, name, "user-memory") == 403


def test_an_agent_publishes_nothing(people: People) -> None:
    """Not even an administrator's: its report can only be its member's own."""
    agent = people.token(people.admin, "reports:write", "reports:read")
    body = {"kind": "k", "title": "t", "body": "b", "produced_by": "agent"}
    assert agent.call("POST", "/api/reports", json=body).status_code == 201
    shared = agent.call("POST", "/api/reports", json={**body, "audience": "admins"})
    assert code_of(shared) == "not_permitted"
    made = people.admin.call("POST", "/api/reports", json={**body, "audience": "admins"})
    taken = agent.call("DELETE", f"/api/reports/group/{made.json()['id']}")
    assert code_of(taken) == "not_permitted"


def test_the_things_of_another_are_not_there(people: People) -> None:
    """By id or by path, an administrator finds no more of a member's own than anybody else."""
    mine = people.member
    assert mine.put("user-memory/private.md", "mine").is_success
    body = {"kind": "k", "title": "t", "body": "b", "produced_by": "p"}
    report = mine.call("POST", "/api/reports", json=body).json()["id"]
    session = mine.call("GET", "/api/session").json()["session"]["id"]
    token = mine.call("POST", "/api/tokens", json={"label": "x"}).json()["id"]
    key = mine.call("GET", "/api/me/keys").json()["items"][0]["id"]
    calls = [
        ("GET", "/api/file?path=user-memory/private.md"),
        ("GET", "/api/file/versions/1?path=user-memory/private.md"),
        ("DELETE", "/api/file?path=user-memory/private.md"),
        ("GET", f"/api/reports/own/{report}"),
        ("GET", f"/api/reports/group/{report}"),
        ("POST", f"/api/reports/own/{report}/read"),
        ("DELETE", f"/api/reports/own/{report}"),
        ("DELETE", f"/api/sessions/{session}"),
        ("DELETE", f"/api/tokens/{token}"),
        ("DELETE", f"/api/me/keys/{key}"),
    ]
    for stranger in (people.other, people.admin):
        for method, path in calls:
            answer = stranger.call(method, path)
            absent = stranger.call(method, path.replace(report, NOBODY).replace("private", "none"))
            assert answer.status_code == absent.status_code == 404, path
            assert code_of(answer) == code_of(absent) == "not_found", path
    assert mine.call("GET", f"/api/reports/own/{report}").is_success
    assert mine.call("GET", "/api/session").is_success


BODIES: Final[dict[str, dict[str, object]]] = {
    "PATCH /api/admin/approval-rules/{rule_id}": {"note": "x"},
    "PATCH /api/admin/shared-folders/{folder_id}": {"description": "x"},
    "PUT /api/admin/shared-folders/{folder_id}/members/{user_id}": {},
    "PATCH /api/projects/{project_id}": {"name": "x"},
    "PUT /api/projects/{project_id}/members/{user_id}": {},
    "PATCH /api/webhooks/{webhook_id}": {"enabled": True},
    "PATCH /api/schedules/{schedule_id}": {"enabled": True},
    "PATCH /api/admin/schedules/{schedule_id}": {"enabled": True},
    "POST /api/blobs/{blob_id}/place": {"name": "x"},
    "POST /api/jobs/{job_id}/heartbeat": {"generation": 1},
    "POST /api/jobs/{job_id}/complete": {"generation": 1},
    "POST /api/jobs/{job_id}/fail": {"generation": 1, "error": "x"},
    "POST /api/jobs/{job_id}/cancel": {},
}
"""What such a call needs to be read at all."""


@pytest.mark.parametrize("call", [call for call in sorted(RULES) if "_id}" in call])
def test_an_id_that_is_none_is_not_there(call: str, people: People) -> None:
    """What no id looks like names nothing: 404, as for an id of nobody."""
    method, template = call.split()
    for odd in (NOBODY, "x", "%00", "%ff%fe", "..%2f..", "'; DROP TABLE users; --", "\u00e9" * 99):
        if call == MAKES and odd == NOBODY:
            continue
        names = {name: PLACES.get(name, odd) for name in RULES_PLACES[template]}
        body = BODIES.get(call, {"active": True} if method == "PATCH" else None)
        more = {} if body is None else {"json": body}
        answer = people.admin.call(method, template.format_map(names), **more)
        assert answer.status_code == 404, odd
        assert method == "HEAD" or code_of(answer) == "not_found", odd


def test_every_call_on_texts_is_tried() -> None:
    """Whatever the rules have under these paths."""
    places = (
        "/api/file",
        "/api/search",
        "/api/context",
        "/api/prompt",
        "/api/tools",
        "/api/memory",
    )
    found = {call for call in RULES if call.split()[1].startswith(places)}
    assert found - PERSONS == TEXT_CALLS.keys()
    assert all(scopes_of(call, root) <= set(SCOPES) for call in TEXT_CALLS for root in ROOTS)


@pytest.mark.parametrize(
    "scopes",
    [
        *((scope,) for scope in SCOPES),
        ("memory:read", "memory:write"),
        ("memory:read", "shared:write"),
        ("memory:write", "shared:write"),
    ],
)
def test_a_token_reaches_texts_by_its_scopes_alone(scopes: tuple[str, ...], people: People) -> None:
    """Each call, in each root: refused without the scopes, and never for their want with them."""
    program = people.token(people.admin, *scopes, is_agent=False)
    asked = [(call, root) for call in TEXT_CALLS for root in ROOTS]
    told = {(call, root): ask_for_text(program, call, root) for call, root in asked}
    refused = {where for where, status in told.items() if status == 403}
    assert refused == {where for where in asked if not scopes_of(*where) <= set(scopes)}
    assert all(status < 500 for status in told.values())


def test_a_tokens_scopes_are_its_makers(people: People) -> None:
    """A token makes none; a person's may have all but what their role has not."""
    body = {"label": "t", "scopes": list(SCOPES)}
    assert people.admin.call("POST", "/api/tokens", json=body).status_code == 201
    assert people.member.call("POST", "/api/tokens", json=body).status_code == 403
    agent = people.token(people.admin, *SCOPES)
    made = agent.call("POST", "/api/tokens", json={"label": "t", "scopes": ["memory:read"]})
    assert code_of(made) == "human_session_required"
