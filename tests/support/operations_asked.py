"""What an agent asks to write and its member decides, as clients do, and what a kill must leave."""

from dataclasses import dataclass, field
from typing import Any

import httpx
from typing_extensions import override

from tests.support.clients import Client
from tests.support.operations import TEXT, Operation


@dataclass
class Request(Operation):
    """An agent asks to write where others read."""

    agent: Client = field(init=False)

    @property
    def path(self) -> str:
        """Where."""
        return f"shared-memory/of-{self.name}.md"

    @override
    def prepare(self) -> None:
        """A member with an agent."""
        super().prepare()
        body = {"scopes": ["shared:write"], "agent_id": "scribe"}
        made = self.member.call("POST", "/api/tokens", json=body)
        headers = {"Authorization": f"Bearer {made.json()['token']}"}
        self.agent = Client(self.service, self.name, "", headers, self.member.user_id)

    @override
    def act(self) -> httpx.Response:
        """Ask."""
        return self.agent.put(self.path, TEXT)

    def listed(self) -> list[dict[str, Any]]:
        """What the member finds."""
        found = self.member.sign_in().call("GET", "/api/approvals")
        assert found.status_code == 200, found.text
        items: list[dict[str, Any]] = found.json()["items"]
        return items

    def shared(self) -> str | None:
        """What all find there."""
        found = self.admin.get(self.path)
        return found.text if found.is_success else None

    @override
    def check(self, *, done: bool) -> None:
        """It waits, once; nothing is written, and the member can have it done."""
        assert done
        [one] = self.listed()
        assert (one["status"], one["path"], one["text"]) == ("pending", self.path, TEXT)
        assert self.shared() is None
        decided = self.member.call("POST", f"/api/approvals/{one['id']}/approve")
        assert decided.json() == {"status": "done"}
        assert self.shared() == TEXT


@dataclass
class Approval(Request):
    """The member says yes."""

    waits: str = ""

    @override
    def prepare(self) -> None:
        """What waits."""
        super().prepare()
        asked = super().act()
        assert asked.status_code == 202, asked.text
        self.waits = asked.json()["approval"]["id"]

    @override
    def act(self) -> httpx.Response:
        """Have it done."""
        return self.member.call("POST", f"/api/approvals/{self.waits}/approve")

    @override
    def check(self, *, done: bool) -> None:
        """Done once, or waiting as before; in the end the text is there in one version."""
        [one] = self.listed()
        assert (one["status"], one["text"]) == (("done", None) if done else ("pending", TEXT))
        assert self.shared() == (TEXT if done else None)
        again = self.act()
        assert again.status_code == (409 if done else 200), again.text
        assert self.shared() == TEXT
        more = {"params": {"path": self.path}}
        assert len(self.admin.call("GET", "/api/file/versions", **more).json()["items"]) == 1


@dataclass
class Refusal(Approval):
    """The member says no."""

    @override
    def act(self) -> httpx.Response:
        """Refuse it."""
        return self.member.call("POST", f"/api/approvals/{self.waits}/reject")

    @override
    def check(self, *, done: bool) -> None:
        """It holds, and what waited is gone."""
        assert done
        [one] = self.listed()
        assert (one["status"], one["text"]) == ("rejected", None)
        assert self.act().status_code == 409
        assert self.shared() is None
