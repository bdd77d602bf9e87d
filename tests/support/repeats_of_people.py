"""Requests about accounts, sessions and administration, ready to be repeated."""

from typing import Final

from tests.support.clients import Client
from tests.support.repeats import Cases, Group, Request, erase, number, patch_user
from tests.support.service import PASSWORD


def _end_others(group: Group) -> Request:
    group.service.sign_in("pia")
    return Request(group.plain, "DELETE", "/api/sessions", {"params": {"others": "true"}})


def _end_session(group: Group) -> Request:
    body = {"username": "pia", "password": PASSWORD}
    made = group.service.client.post("/api/session", json=body).json()
    return Request(group.plain, "DELETE", f"/api/sessions/{made['session']['id']}")


def _token(client: Client, **more: object) -> str:
    made = client.call("POST", "/api/tokens", json={"label": "test", **more})
    assert made.status_code == 201, made.text
    return str(made.json()["id"])


def _end_token(group: Group) -> Request:
    return Request(group.plain, "DELETE", f"/api/tokens/{_token(group.plain)}")


def _remove_key(group: Group) -> Request:
    member = group.people.member
    before = {key["id"] for key in member.call("GET", "/api/me/keys").json()["items"]}
    _token(member)
    [added] = [
        key["id"]
        for key in member.call("GET", "/api/me/keys").json()["items"]
        if key["id"] not in before
    ]
    return Request(member, "DELETE", f"/api/me/keys/{added}")


def _profile(group: Group) -> Request:
    return Request(group.plain, "PATCH", "/api/me", {"json": {"display_name": f"P {number()}"}})


def _lock(group: Group) -> Request:
    return Request(group.plain, "POST", "/api/me/lock")


def _patch_user(group: Group) -> Request:
    return patch_user(group.people.admin, group.plain.user_id, notes=f"N {number()}")


def _deactivate(group: Group) -> Request:
    return patch_user(group.people.admin, group.leaver().user_id, active=False)


def _erase(group: Group) -> Request:
    return erase(group.people.admin, group.leaver().user_id)


def _take_back(group: Group) -> Request:
    admin = group.people.admin
    made = admin.call("POST", "/api/admin/invitations", json={"role_id": "member"}).json()
    return Request(admin, "DELETE", f"/api/admin/invitations/{made['id']}")


def _edge(group: Group) -> str:
    return f"/api/admin/supervision/{group.leaver().user_id}/{group.plain.user_id}"


def _connect(group: Group) -> Request:
    return Request(group.people.admin, "PUT", _edge(group))


def _disconnect(group: Group) -> Request:
    request = _connect(group)
    request.send(None).raise_for_status()
    return Request(request.client, "DELETE", request.path)


CASES: Final[Cases] = (
    ("DELETE /api/sessions", _end_others),
    ("DELETE /api/sessions/{session_id}", _end_session),
    ("DELETE /api/tokens/{token_id}", _end_token),
    ("PATCH /api/me", _profile),
    ("POST /api/me/lock", _lock),
    ("DELETE /api/me/keys/{slot_id}", _remove_key),
    ("PATCH /api/admin/users/{user_id}", _patch_user),
    ("PATCH /api/admin/users/{user_id}", _deactivate),
    ("DELETE /api/admin/users/{user_id}", _erase),
    ("DELETE /api/admin/invitations/{invitation_id}", _take_back),
    ("PUT /api/admin/supervision/{subject}/{supervisor}", _connect),
    ("DELETE /api/admin/supervision/{subject}/{supervisor}", _disconnect),
)
ENDS_ITSELF: Final = frozenset({"DELETE /api/session"})
"""After it the credential opens nothing, so that no answer is ever given again."""
