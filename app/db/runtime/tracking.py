"""What of the system tables is tracked: what people say, for the rest is the record itself."""

from app.db.triggers import Tracked

TRACKED: tuple[Tracked, ...] = (
    Tracked(
        table="sys_subscriptions",
        entity="subscription",
        key=("id",),
        fields=(
            "kind",
            "name",
            "event_types",
            "include_content",
            "enabled",
            "disabled_reason",
            "made_by",
        ),
        # An address may hold a secret of its own.
        content=("url", "description"),
        secret=("secret", "old_secret"),
        payload=("kind", "enabled", "made_by"),
    ),
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
