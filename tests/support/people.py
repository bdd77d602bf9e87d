"""A small group on a running service: everybody who may call, once."""

import contextlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

from tests.support.clients import ADMIN, Client, add_member, first_admin
from tests.support.service import PASSWORD, LiveService


@dataclass(slots=True)
class People:
    """Who there is."""

    service: LiveService
    admin: Client
    """`ana`, the first administrator."""
    member: Client
    """`ben`."""
    other: Client
    """`cyd`, another member."""

    def anonymous(self) -> Client:
        """Whoever has not signed in."""
        return Client(self.service, "", "", {})

    def token(self, owner: Client, *scopes: str, is_agent: bool = True) -> Client:
        """An API token of a member, with these scopes."""
        body = {"label": "made for a test", "scopes": scopes, "is_agent": is_agent}
        made = owner.call("POST", "/api/tokens", json=body)
        assert made.status_code == 201, made.text
        headers = {"Authorization": f"Bearer {made.json()['token']}"}
        return Client(self.service, owner.username, "", headers, owner.user_id)

    def add(self, username: str, role_id: str) -> Client:
        """Another member, of this role."""
        body = {"username": username, "password": PASSWORD, "role_id": role_id, "encrypted": True}
        made = self.admin.call("POST", "/api/admin/users", json=body)
        assert made.status_code == 201, made.text
        user_id = made.json()["user"]["id"]
        return Client(self.service, username, PASSWORD, self.service.sign_in(username), user_id)


@contextlib.contextmanager
def people_on(
    root: Path, *, measured: bool = False, **chosen: float | str | None
) -> Iterator[People]:
    """Have the group on a running service; any setting may be chosen by name.

    In the end it is stopped in order.
    """
    with LiveService(root, measured=measured, **chosen) as service:  # type: ignore[arg-type] # settings by name alone
        public = service.settings.public_url
        if public is not None:
            service.client.headers["Host"] = urlsplit(public).netloc
        admin = first_admin(service)
        assert admin.username == ADMIN
        yield People(service, admin, add_member(admin, "ben"), add_member(admin, "cyd"))
        assert service.stop() == 0, service.log
