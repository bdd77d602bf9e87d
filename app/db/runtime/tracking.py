"""What of the system tables is tracked: what people say, for the rest is the record itself."""

from app.db.triggers import Tracked

TRACKED: tuple[Tracked, ...] = (
    Tracked(
        table="sys_schedules",
        entity="schedule",
        key=("id",),
        # With the version, for what a schedule is for stands in another table.
        fields=("cron", "interval_s", "timezone", "kind", "catch_up", "enabled", "version"),
        content=("name",),
        payload=("enabled", "version"),
    ),
)
