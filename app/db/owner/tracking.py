"""Which owner tables leave events and audit rows, and how each field is recorded."""

from app.db.triggers import Tracked, Transition

_REPORT = (
    "(SELECT json_object('audience', r.audience, 'subject_user_id', r.subject_user_id, "
    "'producer_user_id', r.producer_user_id) FROM reports AS r WHERE r.id = {row}.report_id)"
)

TRACKED = (
    Tracked(
        table="memory_docs",
        entity="memory_doc",
        key=("id",),
        fields=("path", "version"),
        content=("content",),
        payload=("path", "version", "size_bytes", "author"),
        audience="'members'",
    ),
    Tracked(
        table="reports",
        entity="report",
        key=("id",),
        fields=("kind", "severity", "subject_user_id", "audience", "produced_by", "read_at"),
        content=("title", "body"),
        # With whom it is about and whose it is, so that rights to the event outlive the report.
        payload=("kind", "severity", "audience", "subject_user_id", "producer_user_id"),
        transitions=(Transition("read_at", "report.read"),),
        audience="CASE {row}.audience WHEN 'supervisors' THEN 'supervisors' ELSE 'admins' END",
    ),
    Tracked(table="secrets", entity="secret", key=("key",), fields=("version",), secret=("value",)),
    Tracked(
        table="user_config",
        entity="user_config",
        key=("key",),
        fields=("version",),
        content=("value",),
        payload=("key",),
    ),
    Tracked(
        table="blobs",
        entity="blob",
        key=("id",),
        fields=("media_type", "doc_id", "report_id"),
        content=("name",),
        payload=("doc_id", "report_id", "author"),
        # Whom its report is about and whose it is; so what hangs on a report goes before it.
        facts=(("report", _REPORT),),
        # Of what hangs on a report nobody is told who could not be told of the report.
        audience="iif({row}.report_id IS NULL, 'members', 'supervisors')",
    ),
)
