"""Private values with one random mark in them, sent everywhere and looked for everywhere."""

import base64
import itertools
import json
import secrets
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from app.web.rules import RULES
from tests.support.clients import Client
from tests.support.outside import regular_files
from tests.support.service import LiveService


class Marks:
    """Private values, each with the same mark in it."""

    def __init__(self) -> None:
        self.mark = "m" + secrets.token_hex(12)
        self._numbers = itertools.count()
        self.senders: list[str] = []

    def new(self, sender: str) -> str:
        """One more value, which a call is about to send."""
        self.senders.append(sender)
        return f"{self.mark}x{next(self._numbers)}x"

    def forms(self) -> list[bytes]:
        """The mark as it may stand in bytes."""
        return forms_of(self.mark)


def forms_of(text: str) -> list[bytes]:
    """A text in each encoding that needs no key: UTF-8 and 16, hex, base64 at any offset."""
    raw = text.encode()
    shifted = [base64.b64encode(b"\0" * n + raw)[4 * bool(n) : -4] for n in range(3)]
    return [
        raw,
        text.upper().encode(),
        text.encode("utf-16-le"),
        text.encode("utf-16-be"),
        raw.hex().encode(),
        raw.hex().upper().encode(),
        *(part.rstrip(b"=") for part in shifted),
    ]


class Outside:
    """All that can be looked through from outside the service."""

    def __init__(self, service: LiveService, temporary: Path) -> None:
        self.service = service
        self.temporary = temporary

    def where(self, *needles: bytes) -> list[str]:
        """Places that hold one of these bytes, with what stands around it."""
        return [
            f"{place}: {content[max(0, at - 40) : at + 60]!r}"
            for place, content in self.places()
            for needle in needles
            if (at := content.find(needle)) >= 0
        ]

    def places(self) -> Iterator[tuple[str, bytes]]:
        """Files of the root and the temporary folder, the log, the processes."""
        for path in regular_files(self.service.settings.root, self.temporary):
            yield str(path), path.read_bytes()
        yield "log", "".join(self.service.log).encode()
        for process in self._processes():
            for name in ("cmdline", "environ"):
                yield f"{process.name}/{name}", (process / name).read_bytes()

    def _processes(self) -> list[Path]:
        assert self.service.process is not None
        parent = str(self.service.process.pid)
        return [
            path
            for path in Path("/proc").iterdir()
            if path.name.isdigit() and _group_of(path) == parent
        ]


def _group_of(process: Path) -> str:
    """The process group; empty for one that has just ended."""
    try:
        return (process / "stat").read_text().rpartition(") ")[2].split()[2]
    except (FileNotFoundError, ProcessLookupError):
        return ""


class Sender:
    """Makes every call that changes something, with marks wherever a value is private."""

    def __init__(self, admin: Client, marks: Marks) -> None:
        self.admin = admin
        self.marks = marks
        self.called: set[str] = set()
        self.marked: set[tuple[str, str]] = set()
        """Routes and fields of their bodies in which a mark was sent."""
        self.secrets: list[str] = []
        """Tokens and codes that the service gave out."""
        self.headers: dict[str, str] = {}
        self.is_keyed = False
        """Whether each call is made twice, with a key of its own that is marked too."""

    def send(self, route: str, wanted: int, *, by_admin: bool = False, **more: Any) -> Any:  # noqa: ANN401 - JSON
        """Make one call; its answer."""
        self.called.add(route)
        for name, value in more.get("json", {}).items():
            if self.marks.mark in json.dumps({name: value}):
                self.marked.add((route, name))
        method, template = route.split()
        path = template.format(**more.pop("ids", {}))
        headers = {**(self.admin.headers if by_admin else self.headers), **more.pop("headers", {})}
        client = self.admin.service.client
        if self.is_keyed and method not in {"GET", "HEAD"} and RULES[route].repeats == "kept":
            headers["Idempotency-Key"] = self.mark(route)
            first = client.request(method, path, headers=headers, **more)
            assert first.status_code == wanted, (route, first.text)
        answer = client.request(method, path, headers=headers, **more)
        assert answer.status_code == wanted, (route, answer.text)
        is_json = answer.content and "json" in answer.headers["content-type"]
        return answer.json() if is_json else answer.text

    def needles(self) -> list[bytes]:
        """The mark, and the secrets given out, as they may stand in bytes."""
        found = self.marks.forms()
        for secret in self.secrets:
            last = secret.split("_", 3)[-1]  # of a token, its secret
            found += [last.encode(), last.replace("-", "").encode()]
        return found

    def mark(self, route: str = "") -> str:
        """One more private value."""
        return self.marks.new(route)

    def sign_in(self, username: str, password: str) -> None:
        """Begin a session."""
        made = self.send(
            "POST /api/session", 201, json={"username": username, "password": password}
        )
        self.secrets.append(made["token"])
        self.headers = {"Authorization": f"Bearer {made['token']}"}


def free_fields(spec: dict[str, Any]) -> set[tuple[str, str]]:
    """Routes that change something, and the fields of their bodies that take any text."""
    found = set()
    for path, methods in spec["paths"].items():
        for method, call in methods.items():
            content = call.get("requestBody", {}).get("content", {})
            schema = _resolved(spec, content.get("application/json", {}).get("schema", {}))
            found |= {
                (f"{method.upper()} {path}", name)
                for name, field in schema.get("properties", {}).items()
                if _takes_text(spec, field)
            }
    return found


def _resolved(spec: dict[str, Any], schema: dict[str, Any]) -> dict[str, Any]:
    name = schema.get("$ref", "").rpartition("/")[2]
    found: dict[str, Any] = spec["components"]["schemas"][name] if name else schema
    return found


def _takes_text(spec: dict[str, Any], field: dict[str, Any]) -> bool:
    field = _resolved(spec, field)
    parts = [*field.get("anyOf", []), *field.get("properties", {}).values()]
    parts += [field["items"]] if "items" in field else []
    is_text = field.get("type") == "string" and not field.keys() & {"enum", "format", "const"}
    is_map = bool(field.keys() & {"propertyNames", "patternProperties"})
    is_anything = not field.keys() & {"type", "anyOf", "enum", "const", "$ref"}
    return is_text or is_map or is_anything or any(_takes_text(spec, part) for part in parts)
