"""Forms of schedules, in requests and answers; a member's and the group's are alike."""

import json
from typing import Annotated, Any, Final, Literal

from pydantic import Field, JsonValue

from app.bridge.work.schedules import KIND, NewSchedule, Past, Planned
from app.owner.scheduled_jobs import Task
from app.runtime.timing import Timing
from app.web.shapes import Body, Identifier, Line, Name, Text, time_or_none

CatchUp = Literal["skip", "once", "all"]
INTERVAL_MAX_S: Final = 10 * 366 * 86_400
Cron = Annotated[Line, Field(min_length=1, max_length=200)]
Interval = Annotated[int, Field(ge=1, le=INTERVAL_MAX_S)]
Zone = Annotated[Line, Field(min_length=1, max_length=64)]
Kind = Annotated[Name, Field(max_length=100)]
Words = Annotated[Text, Field(max_length=16_384)]
Context = Annotated[dict[str, JsonValue], Field(max_length=100)]


class ScheduleBody(Body):
    """A schedule to be made: with a cron expression of five fields, or an interval in seconds."""

    title: Name
    cron: Cron | None = None
    interval_s: Interval | None = None
    timezone: Zone = "UTC"
    catch_up: CatchUp = "once"
    kind: Kind = KIND
    description: Words | None = None
    prompt: Words | None = None
    agent_id: Identifier | None = None
    session_id: Identifier | None = None
    run_context: Context | None = None
    enabled: bool = True
    single_run: bool = False

    def new(self) -> NewSchedule:
        """As the bridge takes it."""
        return NewSchedule(
            task=Task(
                title=self.title,
                description=self.description,
                prompt=self.prompt,
                agent_id=self.agent_id,
                session_id=self.session_id,
                run_context=self.run_context,
            ),
            timing=Timing(self.cron, self.interval_s, self.timezone),
            kind=self.kind,
            catch_up=self.catch_up,
            enabled=self.enabled,
            single_run=self.single_run,
        )


class SchedulePatch(Body):
    """What of a schedule is said anew; a field left out stays.

    A cron expression takes the place of an interval, and the reverse.
    """

    title: Name = ""
    cron: Cron | None = None
    interval_s: Interval | None = None
    timezone: Zone = ""
    catch_up: CatchUp = "once"
    kind: Kind = ""
    description: Words | None = None
    prompt: Words | None = None
    agent_id: Identifier | None = None
    session_id: Identifier | None = None
    run_context: Context | None = None
    enabled: bool = True
    single_run: bool = False


def schedule(planned: Planned) -> dict[str, Any]:
    """A schedule as every answer gives it."""
    row, job = planned
    return {
        "id": row.id,
        "title": job.title,
        "description": job.description,
        "cron": row.cron,
        "interval_s": row.interval_s,
        "timezone": row.timezone,
        "catch_up": row.catch_up,
        "kind": row.kind,
        "prompt": job.prompt,
        "agent_id": job.agent_id,
        "session_id": job.session_id,
        "run_context": None if job.run_context is None else json.loads(job.run_context),
        "enabled": bool(row.enabled),
        "single_run": bool(row.single_run),
        "next_due_at": time_or_none(row.next_due_at),
        "last_due_at": time_or_none(row.last_due_at),
        "last_run_at": time_or_none(job.last_run_at),
        "running_since": time_or_none(job.running_since),
        "running_session_id": job.running_session_id,
        "created_at": time_or_none(row.created_at),
        "updated_at": time_or_none(row.updated_at),
        "version": row.version,
    }


def past(item: Past) -> dict[str, Any]:
    """What became of a tick, or of a row of skips, and how its run ended."""
    run, ending = item
    return {
        "due_at": time_or_none(run.due_at),
        "last_due_at": time_or_none(run.last_due_at),
        "ticks": run.ticks,
        "by_hand": bool(run.by_hand),
        "outcome": run.outcome,
        "reason": run.reason,
        "ticked_at": time_or_none(run.ticked_at),
        "job_id": run.job_id,
        "job_status": run.job_status,
        "attempts": run.attempts,
        "run": None
        if ending is None
        else {
            "session_id": ending.session_id,
            "started_at": time_or_none(ending.started_at),
            "completed_at": time_or_none(ending.completed_at),
            "duration_ms": ending.duration_ms,
            "status": ending.status or "running",
            "final_response": ending.final_response,
            "error": ending.error,
        },
    }
