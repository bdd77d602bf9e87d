"""Rows of the registry, as its statements give them."""

from typing import NamedTuple

from typing_extensions import override

from app.ids import DekId, InvitationId, RoleId, SessionId, SlotId, UserId


class AccountRow(NamedTuple):
    """One member. Secret columns are wraps and verifiers, useless without the member's secrets."""

    id: UserId
    username: str
    display_name: str | None
    role_id: RoleId
    encrypted: int
    kdf_params: str | None
    kdf_salt: bytes | None
    database_password: bytes | None
    password_hash: bytes | None
    dek_id: DekId | None
    file_salt: bytes | None
    password_is_temporary: int
    pending_dek_id: DekId | None
    pending_file_salt: bytes | None
    lock_number: int
    active: int
    store_state: str
    store_generation: int
    quota_bytes: int | None
    locale: str | None
    birthdate: str | None
    sex: str | None
    notes: str | None
    store_bytes: int | None
    last_unlocked_at: int | None
    created_at: int
    updated_at: int
    version: int

    @override
    def __repr__(self) -> str:
        return f"<AccountRow {self.id}>"  # wraps and verifiers stay out of every traceback


class FleetRow(NamedTuple):
    """One member's store, as it is known without opening it."""

    id: UserId
    username: str
    encrypted: int
    active: int
    store_state: str
    schema_version: str | None
    schema_check: str | None
    migration_failed: str | None
    store_bytes: int | None
    last_unlocked_at: int | None
    lock_number: int


class FleetCountRow(NamedTuple):
    """Stores that are alike."""

    encrypted: int
    schema_version: str | None
    schema_check: str | None
    migration_failed: str | None
    stores: int


class CredentialRow(NamedTuple):
    """A session with its member, store state and slot."""

    id: SessionId
    user_id: UserId
    kind: str
    is_cookie: int
    agent_id: str | None
    is_agent: int
    verifier: bytes
    slot_id: SlotId | None
    needs_store: int
    scopes: str
    ends_at: int
    last_seen_at: int
    password_checked_at: int | None
    revoked_at: int | None
    active: int
    role_id: RoleId
    encrypted: int
    dek_id: DekId | None
    file_salt: bytes | None
    lock_number: int
    store_state: str
    store_generation: int
    quota_bytes: int | None
    wrapped_dek: bytes | None
    slot_kind: str | None

    @override
    def __repr__(self) -> str:
        return f"<CredentialRow {self.id}>"  # wraps and verifiers stay out of every traceback


class QuickCredentialRow(NamedTuple):
    """As much of a `CredentialRow` as judging a read needs."""

    user_id: UserId
    kind: str
    is_cookie: int
    verifier: bytes
    needs_store: int
    scopes: str
    ends_at: int
    last_seen_at: int
    revoked_at: int | None
    active: int
    encrypted: int
    store_state: str
    store_generation: int
    wrapped_dek: bytes | None


class SessionRow(NamedTuple):
    """A session or token as its member sees it."""

    id: SessionId
    kind: str
    agent_id: str | None
    is_agent: int
    scopes: str
    label: str
    user_agent: str | None
    started_at: int
    ends_at: int
    last_seen_at: int
    slot_id: SlotId | None


class SlotRow(NamedTuple):
    """One way to a member's data key."""

    id: SlotId
    user_id: UserId
    kind: str
    dek_id: DekId
    wrapped_dek: bytes
    label: str
    expires_at: int | None
    last_used_at: int | None
    created_at: int

    @override
    def __repr__(self) -> str:
        return f"<SlotRow {self.id}>"  # wraps and verifiers stay out of every traceback


class DroppedSlotRow(NamedTuple):
    """A slot that was destroyed."""

    value: SlotId
    label: str
    kind: str


class AdoptedSlotRow(NamedTuple):
    """A slot of the new key; its label names the session it belongs to."""

    value: SlotId
    label: str
    kind: str


class GenerationRow(NamedTuple):
    """What every process watches of a member's store."""

    id: UserId
    store_state: str
    store_generation: int
    active: int


class InvitationRow(NamedTuple):
    """One invitation."""

    id: InvitationId
    verifier: bytes
    role_id: RoleId
    invited_by: UserId
    expires_at: int
    used_at: int | None
    created_at: int

    @override
    def __repr__(self) -> str:
        return f"<InvitationRow {self.id}>"  # wraps and verifiers stay out of every traceback


class RoleRow(NamedTuple):
    """One role."""

    id: RoleId
    label: str
    permission_group: str
    attrs: str
    created_at: int
    updated_at: int
    version: int


class SupervisionRow(NamedTuple):
    """One edge: the supervisor may read what is reported on the subject."""

    subject_user_id: UserId
    supervisor_user_id: UserId
    created_at: int


class ThrottleRow(NamedTuple):
    """One counter of failed attempts."""

    failures: int
    window_started_at: int
    next_allowed_at: int


class CountRow(NamedTuple):
    """One number."""

    value: int


class TextRow(NamedTuple):
    """One text."""

    value: str


class OptionalTextRow(NamedTuple):
    """One text, or none."""

    value: str | None


class WorkTimesRow(NamedTuple):
    """What waits for a member's store to be unlocked; times only, NULL for nothing."""

    work_waiting_since: int | None
    next_due_at: int | None


class KeyRow(NamedTuple):
    """One key of the throttle."""

    value: bytes


class FlagValueRow(NamedTuple):
    """The value of a switch that is not the default."""

    value: str
    """JSON."""
    version: int
    updated_at: int


class FlagRow(NamedTuple):
    """A switch that is not the default."""

    name: str
    value: str
    """JSON."""
    version: int
    updated_at: int


class FlagChangeRow(NamedTuple):
    """One change of a switch; None is the default, before or after."""

    id: str
    name: str
    before: str | None
    after: str | None
    changed_by: str
    changed_at: int


class SharedFolderRow(NamedTuple):
    """One folder of the group on the disk."""

    id: str
    folder_name: str
    folder_key: str
    description: str
    created_at: int
    updated_at: int
    version: int


class JoinedFolderRow(NamedTuple):
    """One such folder, as somebody sees it who is in it."""

    id: str
    folder_name: str
    folder_key: str
    description: str
    can_write: int


class ProjectRow(NamedTuple):
    """One project, as somebody sees it who is in it."""

    id: str
    owner_user_id: UserId
    owner: str
    owner_key: str
    name: str
    slug: str
    description: str
    run_context: str
    """JSON."""
    created_at: int
    updated_at: int
    version: int
    can_write: int


class RootMemberRow(NamedTuple):
    """One who is in a shared folder or a project."""

    user_id: UserId
    username: str
    can_write: int
    created_at: int


class DiskRootRow(NamedTuple):
    """Where a folder lies on the disk."""

    id: str
    kind: str
    """`shared` or `projects`."""


class JoinedRootRow(NamedTuple):
    """One folder on the disk, for somebody who is in it."""

    id: str
    kind: str
    """`shared` or `projects`."""
    place: str
    """What follows the kind in its paths."""
    owner_user_id: UserId | None
    """None: the group's."""
    can_write: int


class DiskFileRow(NamedTuple):
    """The last write to a path of such a folder."""

    content_version: int | None
    author: str
    created_at: int
    updated_at: int


class PendingFileRow(NamedTuple):
    """A write that is decided, and not yet done on the disk."""

    root_id: str
    path_digest: str
    pending: str
    """JSON."""
