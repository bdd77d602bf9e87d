"""Counts for a monitor: summed over the workers, for whoever may read them, and nothing private."""

import re
import socket
from pathlib import Path
from typing import Final

import httpx
import pytest

from tests.support.clients import add_member, code_of, first_admin
from tests.support.service import LiveService

_LINE: Final = re.compile(r"^(strongroom_\w+)(?:\{(.*)\})? ([0-9.e+-]+)$", re.MULTILINE)


def free_port() -> int:
    """A port that nobody has just now."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


def read(text: str) -> dict[tuple[str, str], float]:
    """The counts of an exposition, by name and labels."""
    return {(name, labels): float(value) for name, labels, value in _LINE.findall(text)}


@pytest.mark.long
def test_counts_are_sums_over_the_workers_and_tell_nothing_private(tmp_path: Path) -> None:
    """At an address of their own; labels are templates, statuses, codes, registered kinds."""
    address = f"127.0.0.1:{free_port()}"
    with LiveService(tmp_path, workers=2, measured=True, metrics_address=address) as service:
        admin = first_admin(service)
        ben = add_member(admin, "ben")
        assert ben.put("user-memory/private-name.md", "x").status_code == 201
        for _ in range(20):
            # A client of its own each time, so that both workers have some.
            with httpx.Client(base_url=service.client.base_url, trust_env=False) as client:
                kind = {"path": "user-memory/private-name.md"}
                assert client.get("/api/file", params=kind, headers=ben.headers).status_code == 200
                assert client.get("/no/such/private-path").status_code == 404
        made = {"kind": "private-kind", "payload": 1}
        assert ben.call("POST", "/api/jobs", json=made).status_code == 201
        job = ben.call("POST", "/api/jobs/claim", json={"kinds": ["private-kind"]}).json()["job"]
        done = ben.call("POST", f"/api/jobs/{job['id']}/complete", json={"generation": 1})
        assert done.status_code == 200
        with httpx.Client(trust_env=False, timeout=30) as monitor:
            text = monitor.get(f"http://{address}/metrics").text
            assert monitor.get(f"http://{address}/other").status_code == 404
            assert monitor.post(f"http://{address}/metrics").status_code == 404
        counts = read(text)
        name = "strongroom_http_requests_total"
        assert counts[name, 'code="",route="GET /api/file",status="200"'] == 20
        assert counts[name, 'code="not_found",route="GET unrouted",status="404"'] == 20
        assert counts["strongroom_jobs_total", 'kind="outside",result="done"'] == 1
        assert counts["strongroom_jobs_waiting", ""] == 0
        assert "private" not in text
        assert code_of(admin.call("GET", "/metrics")) == "not_found"
        assert service.stop() == 0, service.log


@pytest.mark.long
def test_the_token_of_the_file_opens_the_counts_beside_the_api(tmp_path: Path) -> None:
    """Read anew at each call; a member's credential is none."""
    file = tmp_path / "metrics.token"
    root = tmp_path / "root"
    root.mkdir()
    with LiveService(root, metrics_token_file=str(file)) as service:
        admin = first_admin(service)

        def ask(token: str | None) -> httpx.Response:
            headers = {} if token is None else {"authorization": f"Bearer {token}"}
            return service.client.get("/metrics", headers=headers)

        assert code_of(ask("a-token")) == "invalid_credentials"
        file.write_text("")
        assert code_of(ask("anything")) == "invalid_credentials"
        file.write_text("a-token\n")
        assert code_of(ask(None)) == "authentication_required"
        assert code_of(ask("another")) == "invalid_credentials"
        assert code_of(admin.call("GET", "/metrics")) == "invalid_credentials"
        found = ask("a-token")
        assert found.headers["content-type"].startswith("text/plain; version=0.0.4")
        route = 'route="GET /metrics",status="401"'
        for code, count in (("invalid_credentials", 4), ("authentication_required", 1)):
            labels = f'code="{code}",{route}'
            assert read(found.text)["strongroom_http_requests_total", labels] == count
        file.write_text("b-token")
        assert code_of(ask("a-token")) == "invalid_credentials"


def test_nothing_is_counted_unless_somebody_may_read_it(tmp_path: Path) -> None:
    """By default there are no metrics."""
    with LiveService(tmp_path) as service:
        assert code_of(service.client.get("/metrics")) == "not_found"
        assert not service.settings.metrics_folder.exists()
