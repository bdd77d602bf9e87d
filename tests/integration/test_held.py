"""A request whose body is held back is judged by what its caller may do when it is there."""

from collections.abc import Callable, Iterator
from itertools import count
from typing import Any, Final, NamedTuple

import httpx
import pytest

from tests.support.clients import Client, add_member, code_of, first_admin
from tests.support.matrix import chosen
from tests.support.service import PASSWORD, LiveService

_BLOB: Final = "01890000-0000-7000-8000-00000000abcd"
_SCOPES: Final = ["memory:read", "memory:write", "shared:write"]
_numbers: Final = count()


class Held(NamedTuple):
    """A request."""

    method: str
    path: str
    body: bytes
    kind: str = "application/json"

    def send(self, client: Client, meanwhile: Callable[[], object]) -> httpx.Response:
        """Send all but the last byte, do something, and send that."""

        def pieces() -> Iterator[bytes]:
            yield self.body[:-1]
            meanwhile()
            yield self.body[-1:]

        url = client.service.client.base_url.join(self.path.format(self=client.user_id))
        headers = client.headers | {"content-type": self.kind}
        with httpx.Client(trust_env=False, timeout=60) as held:
            return held.request(self.method, url, content=pieces(), headers=headers)


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LiveService]:
    """Running, with two workers."""
    with LiveService(tmp_path_factory.mktemp("held"), workers=2) as live:
        yield live


@pytest.fixture(scope="module")
def admin(service: LiveService) -> Client:
    """The first administrator."""
    return first_admin(service)


def _member(admin: Client) -> Client:
    return add_member(admin, f"member-{next(_numbers)}")


def _change(admin: Client, who: Client, **fields: Any) -> None:  # noqa: ANN401 - as JSON
    changed = admin.call("PATCH", f"/api/admin/users/{who.user_id}", json=fields)
    assert changed.status_code == 200


_NEW: Final = (
    b'{"username": "eve", "password": "a fine long password", "role_id": "admin", '
    b'"encrypted": false}'
)


@pytest.mark.parametrize(
    "held",
    [
        pytest.param(Held("POST", "/api/admin/users", _NEW), id="make a member"),
        pytest.param(Held("POST", "/api/admin/invitations", b'{"role_id": "admin"}'), id="invite"),
        pytest.param(Held("PATCH", "/api/admin/users/{self}", b'{"active": true}'), id="return"),
    ],
)
@pytest.mark.parametrize(
    ("loss", "status", "code"),
    [
        pytest.param({"active": False}, 401, "invalid_credentials", id="deactivated"),
        pytest.param({"role_id": "member"}, 403, "not_permitted", id="demoted"),
    ],
)
def test_an_administrator_who_is_none_any_more_does_nothing(
    admin: Client, held: Held, loss: dict[str, Any], status: int, code: str
) -> None:
    """Deactivated or demoted while the last byte was on its way."""
    second = _member(admin)
    _change(admin, second, role_id="admin")
    answer = held.send(second, lambda: _change(admin, second, **loss))
    assert (answer.status_code, code_of(answer)) == (status, code)
    users = admin.call("GET", "/api/admin/users", params={"limit": 200}).json()["items"]
    assert "eve" not in {each["username"] for each in users}
    [found] = [each for each in users if each["id"] == second.user_id]
    assert found["active"] == loss.get("active", True)
    assert admin.call("GET", "/api/admin/invitations").json()["items"] == []


@pytest.mark.parametrize(
    "held",
    [
        pytest.param(
            Held("PUT", "/api/file?path=user-memory/n.md", b"late", "text/markdown"), id="own note"
        ),
        pytest.param(
            Held("PUT", "/api/file?path=shared-memory/n.md", b"late", "text/markdown"),
            id="the group's",
        ),
        pytest.param(Held("POST", "/api/file/read", b'{"path": "user-memory/n.md"}'), id="a read"),
        pytest.param(Held("POST", "/api/search", b'{"q": "before"}'), id="a search"),
        pytest.param(Held("PUT", f"/api/blobs/{_BLOB}?name=a", b"late", "text/plain"), id="a file"),
    ],
)
@pytest.mark.parametrize(
    "way", chosen(["token revoked"], ["signed out", "deactivated", "token revoked"])
)
def test_who_lost_the_credential_is_told_nothing_and_writes_nothing(
    admin: Client, held: Held, way: str
) -> None:
    """Whatever the call, as soon as the credential's end is answered."""
    member = caller = _member(admin)
    assert member.put("user-memory/n.md", "before").status_code == 201
    token: dict[str, Any] = {}
    if way == "token revoked":
        asked = {"label": "t", "scopes": _SCOPES}
        token = member.call("POST", "/api/tokens", json=asked).json()
        headers = {"Authorization": f"Bearer {token['token']}"}
        caller = Client(member.service, member.username, PASSWORD, headers)

    def lose() -> None:
        if way == "deactivated":
            _change(admin, member, active=False)
        else:
            path = f"/api/tokens/{token['id']}" if token else "/api/session"
            assert member.call("DELETE", path).status_code == 204

    answer = held.send(caller, lose)
    # Whose store is being closed at the moment when it is needed is told that before.
    closing = {"store_busy"} if way == "deactivated" else set()
    assert code_of(answer) in {"invalid_credentials"} | closing
    assert b"before" not in answer.content
    if token:
        assert member.read("user-memory/n.md") == "before"
    assert admin.get("shared-memory/n.md").status_code == 404


def test_who_keeps_every_right_may_take_their_time(admin: Client) -> None:
    """To be slow is no fault."""
    member = _member(admin)
    held = Held("PUT", "/api/file?path=user-memory/n.md", b"late", "text/markdown")
    assert held.send(member, lambda: admin.get("user-memory/x.md")).status_code == 201
    assert member.read("user-memory/n.md") == "late"
