"""The real program, killed at every named point of every operation that spans files."""

import itertools
import re
import signal
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import httpx
import pytest
from typing_extensions import override

from app.project import PROJECT_FOLDER
from tests.support.clients import Client, code_of, first_admin
from tests.support.matrix import chosen
from tests.support.operations import (
    NOTE,
    TEXT,
    Erasure,
    FirstChange,
    Import,
    Invitation,
    Operation,
    PasswordChange,
    Recovery,
    Rotation,
    SignUp,
    Upload,
)
from tests.support.operations_asked import Approval, Refusal, Request
from tests.support.outside import eventually, faults
from tests.support.points import APPROVED, ASKED, ELSEWHERE, REFUSED
from tests.support.service import PASSWORD, LiveService

SIGN_UP: Final = {
    "sign_up.numbered": False,
    "sign_up.begun": False,
    "sign_up.filling": False,
    "sign_up.file_made": False,
    "sign_up.done": True,
}
"""Each point, and whether the operation is done, rather than undone, when killed there."""
SET_UP: Final = {"set_up.token_removed": True}
PASSWORD_CHANGE: Final = {
    "password.wrapped": False,
    "password.written": True,
    "password.checkpointed": True,
}
ROTATION: Final = {
    "rotate.planned": False,
    "rotate.taken": False,
    "rotate.begun": False,
    "rotate.amending": False,
    "rotate.copied": False,
    "rotate.recorded": False,
    "rotate.exchanged": True,
    "rotate.switched": True,
    "rotate.done": True,
}
RECOVERY: Final = {"recovery.done": True}
ERASURE: Final = {
    "erase.taken": False,
    "erase.begun": True,
    "erase.file_removed": True,
    "erase.blobs_removed": True,
    "erase.row_removed": True,
    "erase.done": True,
}

UPLOAD: Final = {"blob.arrived": False, "blob.kept": True}
IMPORT: Final = {"import.verified": False, "import.written": True}


@dataclass(frozen=True)
class Case:
    """One kind of operation, killed at one point."""

    kind: type[Operation]
    point: str
    done: bool
    encrypted: bool = True

    @override
    def __str__(self) -> str:
        kind = self.kind.__name__ if self.encrypted else f"Plain{self.kind.__name__}"
        return f"{kind}-{self.point}"


def _cases(kind: type[Operation], points: Mapping[str, bool], encrypted: bool = True) -> list[Case]:  # noqa: FBT001, FBT002 - a column of the table below
    return [Case(kind, point, done, encrypted) for point, done in points.items()]


EACH: Final = [
    *_cases(SignUp, SIGN_UP),
    *_cases(PasswordChange, PASSWORD_CHANGE),
    *_cases(Rotation, ROTATION),
    *_cases(Recovery, RECOVERY),
    *_cases(Erasure, ERASURE),
    *_cases(Upload, UPLOAD),
    *_cases(Import, IMPORT),
]
"""Every point of every operation but set-up, once."""
LONG: Final = [
    *EACH,
    *_cases(Invitation, SIGN_UP),
    *_cases(SignUp, SIGN_UP, encrypted=False),
    *_cases(PasswordChange, PASSWORD_CHANGE, encrypted=False),
    *_cases(FirstChange, ROTATION),
    *_cases(Recovery, ROTATION),
    *_cases(Erasure, ERASURE, encrypted=False),
    *_cases(Upload, UPLOAD, encrypted=False),
    *_cases(Import, IMPORT, encrypted=False),
    *_cases(Request, ASKED),
    *_cases(Approval, APPROVED),
    *_cases(Approval, APPROVED, encrypted=False),
    *_cases(Refusal, REFUSED),
]
NUMBERS: Final = itertools.count()


@pytest.fixture(scope="module", params=chosen([1], [1, 2]), ids=lambda count: f"{count}w")
def admin(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Client]:
    """The first administrator of a running service."""
    with LiveService(tmp_path_factory.mktemp("kill"), workers=request.param) as service:
        yield first_admin(service)


@pytest.fixture(scope="module", params=chosen([2], [1, 2]), ids=lambda count: f"{count}w")
def admin_of_workers(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Client]:
    """The same, where workers are killed and the server lives on."""
    with LiveService(tmp_path_factory.mktemp("worker"), workers=request.param) as service:
        yield first_admin(service)


def _begin(admin: Client, case: Case) -> Operation:
    operation = case.kind(admin, f"member-{next(NUMBERS)}", case.encrypted)
    operation.prepare()
    if case.kind is Erasure:
        admin.call("POST", "/api/session/confirm", json={"password": PASSWORD})
    return operation


@pytest.mark.parametrize("case", chosen(EACH, LONG), ids=str)
def test_after_a_power_cut_the_next_start_leaves_nothing_half_made(
    admin: Client, case: Case
) -> None:
    """Killed at a named point, an operation is done or undone before anybody is served."""
    operation = _begin(admin, case)
    admin.service.kill_once(case.point, everybody=True)
    with pytest.raises(httpx.TransportError):
        operation.act()
    admin.service.kill()
    admin.service.start()
    assert faults(admin.service.settings, serving=True) == []
    operation.check(done=case.done)
    assert faults(admin.service.settings, serving=True) == []


AMONG: Final = [
    Case(SignUp, "sign_up.file_made", done=False),
    Case(Rotation, "rotate.exchanged", done=True),
    Case(Erasure, "erase.file_removed", done=True),
]


@pytest.mark.parametrize("case", chosen(AMONG[1:2], LONG), ids=str)
def test_a_worker_that_is_killed_leaves_nothing_that_needs_a_restart(
    admin_of_workers: Client, case: Case
) -> None:
    """Killed alone, a worker is replaced, and what it left is settled within seconds."""
    service = admin_of_workers.service
    operation = _begin(admin_of_workers, case)
    service.kill_once(case.point, everybody=False)
    with pytest.raises(httpx.TransportError):
        operation.act()
    assert eventually(lambda: faults(service.settings, serving=True), lambda found: not found) == []
    assert service.wait_for("worker_ended")["code"] == -signal.SIGKILL
    operation.check(done=case.done)
    assert faults(service.settings, serving=True) == []


def _set_up(service: LiveService) -> httpx.Response:
    token = service.settings.setup_token_file.read_text().strip()
    body = {"setup_token": token, "username": "ana", "password": PASSWORD}
    return service.client.post("/api/setup", json=body)


UNDONE: Final = [point for point, done in SIGN_UP.items() if not done]


@pytest.mark.parametrize(
    "points",
    chosen([["set_up.token_removed"]], [["sign_up.done"], [*UNDONE, "set_up.token_removed"]]),
    ids=lambda points: points[-1],
)
def test_set_up_killed_is_offered_again_until_there_is_an_administrator(
    tmp_path: Path, points: list[str]
) -> None:
    """Undone, set-up has a token again; done, it has none, and the administrator signs in."""
    root = tmp_path / "root"
    root.mkdir()
    with LiveService(root) as service:
        for point in points:
            service.kill_once(point, everybody=True)
            with pytest.raises(httpx.TransportError):
                _set_up(service)
            service.kill()
            service.start()
            assert faults(service.settings, serving=True) == []
        again = service.client.post("/api/setup", json={"setup_token": "any"})
        assert code_of(again) == "already_set_up"
        ana = Client(service, "ana", PASSWORD, service.sign_in("ana"))
        assert ana.put(NOTE, TEXT).status_code == 201
        assert service.stop() == 0
        assert faults(service.settings, serving=False) == []


def test_every_named_point_is_in_the_matrix() -> None:
    """No point is named in the program that nobody is killed at, nor the other way round."""
    sources = (PROJECT_FOLDER / "app").rglob("*.py")
    named = {
        point
        for source in sources
        for point in re.findall(r'\breach\("(.+?)"\)', source.read_text())
    }
    assert named == {case.point for case in EACH} | SET_UP.keys() | ELSEWHERE
