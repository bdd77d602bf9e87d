"""The command line as real processes: alone on a root, and beside a running server."""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from app.bridge import start
from app.project import PROJECT_FOLDER
from app.settings import Settings
from tests.support.rooms import CHEAP
from tests.support.service import PASSWORD, LiveService

pytestmark = pytest.mark.timeout(120)


@pytest.fixture(autouse=True)
def _root(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("STRONGROOM_ROOT", str(tmp_path))


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LiveService]:
    """Two workers on a root with an administrator, `ana`."""
    with LiveService(tmp_path_factory.mktemp("running"), workers=2) as live:
        live.set_up()
        yield live


@pytest.fixture
def service(running: LiveService, monkeypatch: pytest.MonkeyPatch) -> LiveService:
    """The one that all share, as the root of every command."""
    monkeypatch.setenv("STRONGROOM_ROOT", str(running.settings.root))
    return running


def _strongroom(*words: str, typed: str = "", code: int = 0) -> subprocess.CompletedProcess[str]:
    ended = subprocess.run(  # noqa: S603 - the program under test
        [sys.executable, "-m", "app", *words],
        cwd=PROJECT_FOLDER,
        input=typed,
        capture_output=True,
        text=True,
        check=False,
    )
    assert ended.returncode == code, (ended.stdout, ended.stderr)
    assert "Traceback" not in ended.stderr
    return ended


def _ask(*words: str, typed: str = "", code: int = 0) -> Any:  # noqa: ANN401 - what JSON can hold
    return json.loads(_strongroom(*words, "--json", typed=typed, code=code).stdout)


def _add(name: str, *words: str) -> str:
    typed = f"{PASSWORD}\n"
    answer = _ask("user", "add", name, "--password-stdin", *words, typed=typed)
    return str(answer["user"]["id"])


@pytest.fixture
def alone(tmp_path: Path) -> Iterator[LiveService]:
    """One like it, to be killed and stopped."""
    with LiveService(tmp_path, workers=2) as live:
        live.set_up()
        yield live


def test_a_root_from_nothing_to_nothing(tmp_path: Path) -> None:
    """Prepared, filled, looked at and emptied without any server."""
    assert _strongroom("user", "list", code=3).stdout == ""
    made = _ask("init")
    assert made["made"] == [str(tmp_path / "instance.key"), str(tmp_path / "database/system.db")]
    assert (tmp_path / "instance.key").stat().st_mode & 0o777 == 0o600
    ana = _add("ana", "--role", "admin")
    ben = _add("ben", "--plain")
    assert [user["id"] for user in _ask("user", "list")["users"]] == [ana, ben]
    assert "Findings: 0." in _strongroom("check").stdout
    _strongroom("user", "erase", "ana", "--yes", code=3)
    _strongroom("user", "erase", "ben", "--yes")
    (tmp_path / "database" / f"{ana}.db").unlink()
    assert f"{ana}.db" in _strongroom("check", code=1).stdout
    assert PASSWORD.encode() not in b"".join(
        path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()
    )


@pytest.mark.long
@pytest.mark.parametrize(
    ("command", "code", "says"),
    [
        pytest.param("user erase x <&-", 2, "Nobody can be asked here", id="no input"),
        pytest.param("user add x --password-stdin <&-", 2, "12 to 1,024", id="no password"),
        pytest.param("user list <&- >&- 2>&-", 0, "", id="no stream"),
        pytest.param("user list >/dev/full", 3, "cannot be written: No space", id="a full disk"),
    ],
)
def test_a_closed_stream_is_met_in_words(
    service: LiveService, command: str, code: int, says: str
) -> None:
    """What cannot be asked, read or told."""
    assert service.process is not None
    ended = subprocess.run(  # noqa: S602 - of this test
        f"exec {sys.executable} -m app {command}",
        shell=True,
        cwd=PROJECT_FOLDER,
        capture_output=True,
        text=True,
        check=False,
    )
    assert (ended.returncode, ended.stdout) == (code, "")
    assert says in ended.stderr
    assert "unexpected" not in ended.stderr


def test_a_member_made_beside_the_server_can_sign_in(service: LiveService) -> None:
    """The running server makes them, and knows them at once."""
    ben = _add("ben")
    headers = service.sign_in("ben")
    who = service.client.get("/api/session", headers=headers).json()
    assert (who["user"]["id"], who["user"]["password_is_temporary"]) == (ben, True)
    assert ben in {user["id"] for user in _ask("user", "list")["users"]}
    checked = _ask("check")
    assert sum(checked["encrypted_stores"].values()) >= checked["never_unlocked_stores"] >= 1
    assert all(PASSWORD not in line for line in service.log)


def test_an_administrator_made_here_ends_set_up(tmp_path: Path) -> None:
    """The setup token goes in that step, and set-up answers that it is over."""
    with LiveService(tmp_path) as service:
        token = service.settings.setup_token_file.read_text().strip()
        _add("ana", "--role", "admin")
        assert not service.settings.setup_token_file.exists()
        body = {"setup_token": token, "username": "eve", "password": PASSWORD}
        answer = service.client.post("/api/setup", json=body)
        assert (answer.status_code, answer.json()["code"]) == (409, "already_set_up")


def test_deactivation_is_now_in_every_worker(service: LiveService) -> None:
    """When the command returns no session holds, whichever worker is asked."""
    _add("cyd")
    headers = service.sign_in("cyd")
    for place in range(4):
        path = {"path": f"user-memory/{place}.md"}
        written = service.client.put("/api/file", params=path, content="x", headers=headers)
        assert written.status_code == 201
    _strongroom("user", "deactivate", "cyd")
    for _ in range(4):
        assert service.client.get("/api/session", headers=headers).status_code == 401


def test_a_locked_store_is_opened_again_by_its_session(service: LiveService) -> None:
    """Locking closes the store and ends no session."""
    headers = service.sign_in()
    path = {"path": "user-memory/a.md"}
    service.client.put("/api/file", params=path, content="kept", headers=headers)
    assert _ask("lock", "ana")["user"]["store_state"] == "open"
    assert service.client.get("/api/file", params=path, headers=headers).text == "kept"


def test_notes_go_out_and_come_in_beside_the_server(service: LiveService, tmp_path: Path) -> None:
    """By the worker that has the socket; the sessions of the member's own go on."""
    _add("eva")
    headers = service.sign_in("eva")
    path = {"path": "user-memory/a.md"}
    service.client.put("/api/file", params=path, content="kept", headers=headers)
    archive = str(tmp_path / "notes.zip")
    words = (archive, "--password-stdin")
    assert _ask("export", "eva", *words, typed=PASSWORD)["notes"] == 3
    service.client.delete("/api/file", params=path, headers=headers)
    assert _ask("import", "eva", *words, typed=PASSWORD) == {"written": 1, "unchanged": 2}
    assert service.client.get("/api/file", params=path, headers=headers).text == "kept"
    assert all(PASSWORD not in line for line in service.log)


def test_an_erased_member_is_gone_everywhere(service: LiveService) -> None:
    """Their sessions end, their file is gone, their name is free."""
    dan = _add("dan")
    headers = service.sign_in("dan")
    assert _ask("user", "erase", "dan", "--yes")["receipt"]["user_id"] == dan
    assert service.client.get("/api/session", headers=headers).status_code == 401
    assert not list(service.database.glob(f"{dan}*"))
    assert _add("dan") != dan


@pytest.mark.usefixtures("service")
def test_refusals_of_the_server_reach_the_operator() -> None:
    """With the code they have everywhere."""
    refused = _ask("user", "deactivate", "ana", code=3)
    assert refused["error"]["code"] == "last_administrator"
    refused = _ask("lock", "nobody", code=3)
    assert refused["error"]["code"] == "not_found"
    refused = _ask("user", "add", "x", "--password-stdin", typed="short", code=2)
    assert refused["error"]["code"] == "weak_password"
    assert "Another process serves this root." in _strongroom("init", code=3).stderr


@pytest.mark.long
def test_another_worker_takes_the_socket_over(alone: LiveService) -> None:
    """The leader killed, commands are answered within a moment, while the other still serves."""
    _strongroom("lock", "ana")
    assert alone.settings.control_socket.stat().st_mode & 0o777 == 0o600
    workers = {json.loads(line)["worker_pid"] for line in alone.log if "worker_started" in line}
    for worker in workers:  # one of them leads
        os.kill(worker, signal.SIGKILL)
        alone.wait_for("worker_started")
        _add(f"m{worker}")


@pytest.mark.long
def test_a_socket_is_gone_after_a_clean_stop(alone: LiveService) -> None:
    """And after a kill a stale one stands in nobody's way."""
    _strongroom("lock", "ana")
    assert alone.settings.control_socket.exists()
    assert alone.stop() == 0
    assert not alone.settings.control_socket.exists()
    alone.start()
    _add("ben")
    alone.kill()
    assert alone.settings.control_socket.exists()
    _add("cyd")


@pytest.mark.long
def test_a_sign_up_that_was_killed_is_undone_by_the_next_command(tmp_path: Path) -> None:
    """The command line repairs a root before it changes it, as a server does."""
    with LiveService(tmp_path, kill_at="sign_up.file_made") as service:
        refused = _ask("user", "add", "ben", "--password-stdin", typed=PASSWORD, code=3)
        assert "look whether it was done" in refused["error"]["detail"]
        service.kill()
    assert len(list((tmp_path / "database").glob("*-*.db"))) == 1
    _add("ben")
    assert len(list((tmp_path / "database").glob("*-*.db"))) == 1
    assert _ask("check")["findings"] == []


@pytest.mark.long
def test_idle_stores_are_locked(tmp_path: Path) -> None:
    """What nobody uses is closed, and the next call of the session opens it again."""
    with LiveService(tmp_path, idle_lock_s=1) as service:
        service.set_up()
        headers = service.sign_in()
        path = {"path": "user-memory/a.md"}
        service.client.put("/api/file", params=path, content="kept", headers=headers)
        # A WAL beside the file says that somebody has it open.
        (member,) = service.database.glob("*-*.db")
        wal = member.with_name(f"{member.name}-wal")
        assert wal.exists()
        while wal.exists():
            assert service.client.get("/healthz").status_code == 200
        assert service.client.get("/api/file", params=path, headers=headers).text == "kept"


@pytest.mark.long
def test_a_command_beside_a_prepared_root_costs_what_the_root_costs(tmp_path: Path) -> None:
    """A member made without a server can sign in at one that derives at another cost."""
    start.prepare(Settings(root=tmp_path), kdf_params=CHEAP)
    _add("ana", "--role", "admin")
    with LiveService(tmp_path) as service:
        service.sign_in()
