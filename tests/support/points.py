"""Named points at which other matrices than that of `test_kill` end the program."""

from typing import Final

REPEATED: Final = frozenset({"once.acted", "once.answered", "close.taken", "close.written"})
"""Of requests that come again: `test_idempotency_kill`."""

JOBS: Final = frozenset({"job.enqueued", "job.claimed", "job.ran", "job.marked"})
"""Between the durable steps of a job: `test_jobs_kill`."""

DELIVERIES: Final = frozenset({"delivery.claimed", "delivery.sent", "delivery.marked"})
"""Between the durable steps of a delivery: `test_webhooks_kill`."""

MIGRATED: Final = {
    "migrate.taken": False,
    "migrate.begun": False,
    "migrate.copied": False,
    "migrate.applying": False,
    "migrate.applied": True,
    "migrate.ended": True,
    "migrate.done": True,
}
"""Of a store that is brought to the present version, and whether it is when killed there:
`test_migration`."""
STARTED: Final = {"start.copied": False, "start.applying": False, "start.applied": True}
"""The same of system.db, at the start."""

SWEPT: Final = frozenset({"sweep.rows_removed"})
"""Of files that nobody holds: `test_file_folders`."""

SETTLED: Final = frozenset({"schedule.written", "schedule.due", "schedule.settled"})
"""Of a tick and its job: `test_schedules`."""

KEPT_SMALL: Final = frozenset(
    {"housekeeping.taken", "housekeeping.batch", "housekeeping.completed"}
)
"""Of a round that keeps a store small: `test_housekeeping`."""

ON_DISK: Final = frozenset({"disk.decided", "disk.done", "root.row_removed"})
"""Of a write in a shared folder or project, and of its removal: `test_disk_cut`."""

ASKED: Final = {"approval.kept": True, "approval.told": True}
APPROVED: Final = {
    "approve.begun": False,
    "approve.written": True,
    "approve.ended": True,
    "approve.forgotten": True,
}
REFUSED: Final = {"reject.decided": True, "reject.forgotten": True}
"""Of what an agent asks to write and its member decides, and whether that is done when killed
there: `test_approvals_cut`, and in `test_kill` the long way."""

ELSEWHERE: Final = (
    SETTLED
    | KEPT_SMALL
    | SWEPT
    | REPEATED
    | JOBS
    | DELIVERIES
    | ON_DISK
    | ASKED.keys()
    | APPROVED.keys()
    | REFUSED.keys()
    | MIGRATED.keys()
    | STARTED.keys()
)
"""All of them."""
