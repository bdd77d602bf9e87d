"""Jobs in real processes: each done once, and none lost when its process dies between two steps."""

import asyncio
from collections import Counter
from pathlib import Path
from typing import Any, Final

import httpx
import pytest

from app.runtime.jobs import Job
from tests.support.clients import Client, first_admin
from tests.support.matrix import chosen
from tests.support.rooms import open_room
from tests.support.service import LiveService
from tests.support.workshop import effects, ended, enqueue, job, reached

_POLL: Final[dict[str, Any]] = {"job_poll_s": 0.1, "job_lease_s": 1, "job_backoff_max_s": 1}

pytestmark = pytest.mark.timeout(180)


def enqueue_all(
    service: LiveService, orders: list[dict[str, Any]]
) -> tuple[list[Job], Counter[str]]:
    """Enqueue in the group's store from a process of one's own; the jobs once they are over."""

    async def main() -> tuple[list[Job], Counter[str]]:
        async with open_room(service.settings) as room:
            group = room.stores.group
            made = await asyncio.gather(*(enqueue(group, order) for order in orders))
            return [await ended(group, one) for one in made], await effects(group)

    return asyncio.run(main())


@pytest.mark.long
def test_two_workers_do_every_job_once(tmp_path: Path) -> None:
    """However many wait: each is claimed once and has one effect; long ones keep their claim."""
    with LiveService(tmp_path, workers=2, **_POLL) as service:
        count = chosen([50], [500])[0]
        orders: list[dict[str, Any]] = [{"how": "long"}, {"how": "long"}]
        found, written = enqueue_all(service, orders + [{} for _ in range(count)])
        assert {(one.status, one.attempts, one.generation) for one in found} == {("done", 1, 1)}
        assert written == dict.fromkeys((one.id for one in found), 1)
        assert service.stop() == 0


@pytest.mark.parametrize(
    ("point", "attempts"),
    chosen(
        [("job.ran", 2)],
        [("job.claimed", 2), ("job.ran", 2), ("job.marked", 1)],
    ),
)
def test_a_job_survives_its_process(tmp_path: Path, point: str, attempts: int) -> None:
    """Killed after the claim, after the handler, after the mark: same job, one effect."""
    with LiveService(tmp_path, **_POLL) as service:
        service.kill_once(point, everybody=False)
        [found], written = enqueue_all(service, [{}])
        assert (found.status, found.attempts) == ("done", attempts)
        assert written == {found.id: 1}
        if point == "job.marked":
            service.wait_for("worker_ended")


def post(client: Client, path: str, **body: Any) -> httpx.Response:  # noqa: ANN401 - as JSON
    """Send one call."""
    return client.call("POST", path, json=body)


@pytest.mark.long
def test_what_a_program_asked_survives_too(tmp_path: Path) -> None:
    """Killed after each commit: enqueued, claimed, completed; the program asks again."""
    with LiveService(tmp_path, **_POLL) as service:
        me = first_admin(service)
        made = {"kind": "mail", "payload": 1, "dedupe_key": "k"}

        def killed(point: str, path: str, **body: Any) -> None:  # noqa: ANN401 - as JSON
            service.kill_once(point, everybody=False)
            with pytest.raises(httpx.TransportError):
                post(me, path, **body)

        killed("job.enqueued", "/api/jobs", **made)
        again = post(me, "/api/jobs", **made)
        assert again.status_code == 200, again.text
        job_id = again.json()["id"]
        killed("job.claimed", "/api/jobs/claim", kinds=["mail"])
        held = post(me, "/api/jobs/claim", kinds=["mail"], wait_s=20).json()["job"]
        assert (held["id"], held["attempts"], held["generation"]) == (job_id, 2, 2)
        killed("job.marked", f"/api/jobs/{job_id}/complete", generation=2, result="sent")
        done = me.call("GET", f"/api/jobs/{job_id}").json()
        assert (done["status"], done["result"], done["attempts"]) == ("done", "sent", 2)


@pytest.mark.long
def test_a_stop_gives_running_jobs_back_and_ends_waits(tmp_path: Path) -> None:
    """At SIGTERM a long poll is answered at once, and what runs is not charged."""
    with LiveService(tmp_path, **(_POLL | {"job_lease_s": 300})) as service:
        me = first_admin(service)
        answers: list[httpx.Response] = []

        def wait() -> None:
            answers.append(post(me, "/api/jobs/claim", kinds=["none"], wait_s=30))

        async def main() -> Job:
            async with open_room(service.settings) as room:
                group = room.stores.group
                waiter = asyncio.create_task(asyncio.to_thread(wait))
                job_id = await enqueue(group, {"how": "wait"})
                await reached(group, job_id, lambda found: found.status == "running")
                assert await asyncio.to_thread(service.stop) == 0
                await waiter
                return await job(group, job_id)

        found = asyncio.run(main())
        assert (found.status, found.attempts, found.generation) == ("pending", 0, 1)
        assert [answer.json() for answer in answers] == [{"job": None}]
