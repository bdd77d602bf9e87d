"""Which registry tables leave events and audit rows, and how each field is recorded."""

from app.db.triggers import Tracked, Transition

TRACKED = (
    Tracked(
        table="users",
        entity="user",
        key=("id",),
        fields=(
            "username",
            "display_name",
            "role_id",
            "encrypted",
            "kdf_params",
            "dek_id",
            "password_is_temporary",
            "active",
            "quota_bytes",
            "locale",
            "birthdate",
            "sex",
        ),
        content=("notes",),
        secret=("database_password", "password_hash"),
        payload=("username", "role_id", "active"),
        member="id",
    ),
    Tracked(
        table="roles",
        entity="role",
        key=("id",),
        fields=("label", "permission_group", "attrs"),
        payload=("label",),
    ),
    Tracked(
        table="role_capabilities",
        entity="role_capability",
        key=("role_id", "capability"),
        fields=("role_id", "capability"),
    ),
    Tracked(
        table="tool_permission_groups",
        entity="tool_permission_group",
        key=("id",),
        fields=("name", "description"),
    ),
    Tracked(
        table="key_slots",
        entity="key_slot",
        key=("id",),
        fields=("user_id", "kind", "dek_id", "label", "expires_at", "revoked_at"),
        secret=("wrapped_dek",),
        payload=("user_id", "kind"),
        member="user_id",
    ),
    Tracked(
        table="sessions",
        entity="session",
        key=("id",),
        fields=("user_id", "kind", "agent_id", "is_agent", "scopes", "ends_at", "revoked_at"),
        payload=("user_id", "kind", "agent_id"),
        transitions=(Transition("revoked_at", "session.revoked"),),
        member="user_id",
    ),
    Tracked(
        table="invitations",
        entity="invitation",
        key=("id",),
        fields=("role_id", "invited_by", "expires_at", "used_at"),
        payload=("role_id", "invited_by"),
        transitions=(Transition("used_at", "invitation.used"),),
    ),
    Tracked(
        table="supervision",
        entity="supervision",
        key=("subject_user_id", "supervisor_user_id"),
        fields=("subject_user_id", "supervisor_user_id"),
        payload=("subject_user_id", "supervisor_user_id"),
        member="subject_user_id",
    ),
    Tracked(
        table="flags", entity="flag", key=("name",), fields=("value",), payload=("name", "value")
    ),
    Tracked(table="config", entity="config", key=("key",), fields=("value",), payload=("key",)),
)
