"""Members: their names, profiles and the rules about administrators."""

import re
import unicodedata
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Final

from app.clock import Millis
from app.db.registry import statements as sql
from app.db.registry.rows import AccountRow
from app.db.registry.store import RegistryReader, RegistryTransactor
from app.errors.callers import NotFoundError, NotPermittedError
from app.errors.conflicts import (
    ConstraintError,
    LastAdministratorError,
    UsernameTakenError,
    VersionConflictError,
)
from app.errors.inputs import InvalidInputError, InvalidUsernameError
from app.ids import NAME_MAX, DekId, RoleId, UserId, is_component, name_key

USERNAME_MAX: Final = NAME_MAX
ADMIN: Final = RoleId("admin")
PROFILE_FIELDS: Final = frozenset(
    {"active", "role_id", "display_name", "locale", "birthdate", "sex", "notes", "quota_bytes"}
)
"""What an administrator may set of a member."""
_REFUSED_CATEGORIES: Final = frozenset({"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"})
_SURROGATE: Final = re.compile("[\ud800-\udfff]")

Account = AccountRow
"""One member, as the registry knows them."""


@dataclass(frozen=True, slots=True, repr=False)
class NewAccount:
    """A member about to become real; wraps and verifiers as `users` keeps them."""

    id: UserId
    username: str
    role_id: RoleId
    lock_number: int
    display_name: str | None = None
    kdf_params: str | None = None
    kdf_salt: bytes | None = None
    database_password: bytes | None = None
    password_hash: bytes | None = None
    dek_id: DekId | None = None
    file_salt: bytes | None = None
    is_temporary: bool = False

    @property
    def encrypted(self) -> bool:
        """Whether the member's file is under a key."""
        return self.database_password is not None


def username_key(username: str) -> str:
    """The form in which two spellings of one name are equal: NFKC and case-folded.

    Returns:
        Any text for a name that nobody can have; no row has it.
    """
    return name_key(username)


def require_username(username: str) -> None:
    """Refuse a name that could mislead or not be typed.

    Raises:
        InvalidUsernameError: Its length, a control or format character, a slash of either kind,
            outer spaces, or folded it is not one component of a path.
    """
    if not 1 <= len(username) <= USERNAME_MAX:
        raise InvalidUsernameError
    key = username_key(username)
    if (
        "/" in username
        or "\\" in username
        or username != username.strip()
        or key != key.strip()
        or any(unicodedata.category(c) in _REFUSED_CATEGORIES for c in username + key)
        or not is_component(key)
    ):
        raise InvalidUsernameError


def find_by_name(reader: RegistryReader, username: str) -> AccountRow | None:
    """The member of this name in any spelling; None for nobody."""
    if _SURROGATE.search(username):
        return None  # no database holds such a text
    return reader.one(sql.FIND_ACCOUNT_BY_NAME, username_key=username_key(username))


def get(reader: RegistryReader, user_id: str) -> AccountRow:
    """One member.

    Returns:
        Their row.

    Raises:
        NotFoundError: Nobody has this id.
    """
    account = reader.one(sql.FIND_ACCOUNT, user_id=user_id)
    if account is None:
        raise NotFoundError
    return account


def may_sign_in(account: AccountRow) -> bool:
    """Whether a credential of this member can hold at all."""
    return bool(account.active) and account.store_state != "erasing"


def list_page(reader: RegistryReader, after: str, limit: int) -> list[AccountRow]:
    """Members in the order of their making, after a given id; `""` is before the first."""
    return reader.all(sql.LIST_ACCOUNTS, after=after, limit=limit)


def require_free_name(reader: RegistryReader, username: str) -> None:
    """Refuse a name somebody has.

    Raises:
        UsernameTakenError: In this or an equal spelling.
    """
    if find_by_name(reader, username) is not None:
        raise UsernameTakenError


def require_role(reader: RegistryReader, role_id: str) -> None:
    """Refuse a role that is not there.

    Raises:
        InvalidInputError: No such role.
    """
    if reader.one(sql.FIND_ROLE, role_id=role_id) is None:
        raise InvalidInputError(field="role_id")


def take_lock_number(tx: RegistryTransactor) -> int:
    """A number that no store had before, nor will again."""
    (row,) = tx.run(sql.ADD_LOCK_NUMBER)
    tx.run(sql.REMOVE_LOCK_NUMBER, number=row.value)
    return row.value


def add(tx: RegistryTransactor, new: NewAccount) -> AccountRow:
    """Make the member real.

    Returns:
        Their row.

    Raises:
        UsernameTakenError: Somebody took the name meanwhile.
    """
    try:
        tx.run(
            sql.ADD_ACCOUNT,
            id=new.id,
            username=new.username,
            username_key=username_key(new.username),
            display_name=new.display_name,
            role_id=new.role_id,
            encrypted=int(new.encrypted),
            kdf_params=new.kdf_params,
            kdf_salt=new.kdf_salt,
            database_password=new.database_password,
            password_hash=new.password_hash,
            dek_id=new.dek_id,
            file_salt=new.file_salt,
            password_is_temporary=int(new.is_temporary),
            lock_number=new.lock_number,
            now=tx.now_ms,
        )
    except ConstraintError as error:
        if error.kind == "SQLITE_CONSTRAINT_UNIQUE":
            raise UsernameTakenError from error
        raise
    return get(tx, new.id)


def set_profile(
    tx: RegistryTransactor,
    user_id: str,
    changes: Mapping[str, Any],
    *,
    may_grant_admin: bool,
    match: frozenset[int] | None = None,
) -> AccountRow:
    """Change what an administrator may set; fields not named stay.

    Args:
        tx: The registry's transaction.
        user_id: Whose.
        changes: Values by the names of `PROFILE_FIELDS`.
        may_grant_admin: Whether administrators may be made and changed.
        match: Versions of which one must stand; None for any.

    Returns:
        The member as they are now.

    Raises:
        NotFoundError: Nobody has this id.
        InvalidInputError: No such role, or a birthdate that is no past date.
        NotPermittedError: Only an administrator makes or changes administrators.
        LastAdministratorError: Nobody would be left to administer.
        VersionConflictError: Another version stands.
    """
    account = get(tx, user_id)
    if match is not None and account.version not in match:
        raise VersionConflictError(account.version)
    wanted = {name: changes.get(name, getattr(account, name)) for name in PROFILE_FIELDS}
    require_role(tx, wanted["role_id"])
    require_past_date(wanted["birthdate"], tx.now_ms)
    touches_admin = ADMIN in {account.role_id, wanted["role_id"]}
    if touches_admin and not may_grant_admin:
        raise NotPermittedError
    if account.role_id == ADMIN and (wanted["role_id"] != ADMIN or not wanted["active"]):
        require_other_administrator(tx, account)
    wanted["active"] = int(bool(wanted["active"]))
    if all(getattr(account, name) == value for name, value in wanted.items()):
        return account  # nothing changed, so no version and no event
    changed = tx.run(
        sql.SET_PROFILE, user_id=user_id, version=account.version, now=tx.now_ms, **wanted
    )
    if len(changed) != 1:
        raise VersionConflictError
    return get(tx, user_id)


def require_past_date(text: str | None, now_ms: Millis) -> None:
    """Refuse what is no calendar date, or one to come.

    Raises:
        InvalidInputError: It is not `YYYY-MM-DD`, no real day, or in the future.
    """
    if text is None:
        return
    try:
        day = datetime.strptime(text, "%Y-%m-%d").replace(tzinfo=UTC)
    except ValueError as error:
        raise InvalidInputError(field="birthdate") from error
    if day.date().isoformat() != text or day.timestamp() * 1000 > now_ms:
        raise InvalidInputError(field="birthdate")


def require_other_administrator(reader: RegistryReader, account: AccountRow) -> None:
    """Refuse to take the last active administrator away.

    Raises:
        LastAdministratorError: There is no other.
    """
    if account.role_id != ADMIN or not account.active:
        return
    others = reader.one(sql.COUNT_ADMINISTRATORS, user_id=account.id)
    if others is None or others.value == 0:
        raise LastAdministratorError
