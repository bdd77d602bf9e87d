"""Reports in the home their audience names: the caller's own store, or the group's."""

from collections.abc import Callable
from typing import Literal, TypeVar

from app.bridge.access import quota_of, with_own
from app.bridge.callers import Call, Caller
from app.bridge.strongroom import Strongroom
from app.db.owner.rows import ReportMetaRow, ReportRow
from app.db.owner.store import OwnerReader, OwnerTransactor
from app.db.registry import statements as sql
from app.errors.callers import NotFoundError, NotPermittedError
from app.errors.inputs import InvalidInputError
from app.owner import reports
from app.owner.reports import NewReport, ReportRights
from app.registry import roles, supervision

T = TypeVar("T")
Home = Literal["own", "group"]


async def rights_of(room: Strongroom, caller: Caller) -> ReportRights:
    """What of the group's reports the caller may read, as of now."""
    subjects = await room.stores.registry.read(
        lambda reader: supervision.subjects_of(reader, caller.user_id)
    )
    return ReportRights(
        user_id=caller.user_id,
        is_admin=caller.role_id == roles.ADMIN,
        subjects=subjects,
    )


async def add(
    room: Strongroom, caller: Caller, call: Call, new: NewReport
) -> tuple[Home, ReportRow]:
    """Write a report into the home its audience names.

    Returns:
        Which that was, and the report.

    Raises:
        NotPermittedError: The group's reports need the capability `reports.publish`, and
            an agent's token cannot write what others read.
        InvalidInputError: `supervisors` without a subject, or a subject who is nobody.
        QuotaExceededError: The home has no room for it.
    """
    home: Home = "own" if new.audience == "owner" else "group"

    def work(tx: OwnerTransactor) -> tuple[Home, ReportRow]:
        return home, reports.add_report(tx, new, caller.user_id)

    if home == "group":
        await _require_publisher(room, caller, new)
    return await write(room, caller, call, home, work, adds_bytes=new.size_bytes)


async def _require_publisher(room: Strongroom, caller: Caller, new: NewReport) -> None:
    registry = room.stores.registry
    may = await registry.read(lambda r: roles.holds(r, caller.role_id, "reports.publish"))
    if not may or caller.is_agent:
        raise NotPermittedError
    subject = new.subject_user_id
    if subject is None:
        if new.audience == "supervisors":
            raise InvalidInputError(field="subject_user_id")
        return
    found = await registry.one(sql.FIND_ACCOUNT, user_id=subject)
    if found is None:
        raise InvalidInputError(field="subject_user_id")


def require_may_change(caller: Caller, home: Home) -> None:
    """Refuse an agent's token where others read: what it cannot write it cannot mark or remove.

    Raises:
        NotPermittedError: It is one.
    """
    if home == "group" and caller.is_agent:
        raise NotPermittedError


async def read(
    room: Strongroom, caller: Caller, call: Call, home: Home, work: Callable[[OwnerReader], T]
) -> T:
    """Read in one home."""
    if home == "group":
        return await room.stores.group.read(work)
    return await with_own(room, caller, call, lambda store: store.read(work))


async def write(  # noqa: PLR0913 - the parts of one write
    room: Strongroom,
    caller: Caller,
    call: Call,
    home: Home,
    work: Callable[[OwnerTransactor], T],
    *,
    adds_bytes: int | None = None,
    judge: Callable[[OwnerReader], object] | None = None,
) -> T:
    """Write in one home.

    Args:
        room: The service.
        caller: Who writes.
        call: The request.
        home: Where.
        work: What; one transaction.
        adds_bytes: How much it adds at least; None for what a full store must take.
        judge: Refuses to give a kept answer again; None when there is no reason to.

    Returns:
        What the work returned.

    Raises:
        QuotaExceededError: The home has no room for it; nothing was written.
    """
    actor, once = caller.actor(call), call.judged(judge).once
    quota = quota_of(room, caller, is_group=home == "group")

    def held(tx: OwnerTransactor) -> T:
        return quota.hold(tx, work, adds_bytes)

    if home == "group":
        return await room.stores.group.write(held, actor, once=once)
    return await with_own(room, caller, call, lambda store: store.write(held, actor, once=once))


May = Callable[[ReportMetaRow | ReportRow], bool]
"""Whether the caller may see a report."""


async def visible(room: Strongroom, caller: Caller, home: Home) -> May:
    """What a caller may see of a home: all of their own, of the group's by the one rule."""
    if home == "own":
        return lambda _report: True
    rights = await rights_of(room, caller)
    return lambda report: reports.may_read_report(report, rights)


def get(reader: OwnerReader, report_id: str, may: May) -> ReportRow:
    """One report.

    Returns:
        Its row, with the body.

    Raises:
        NotFoundError: There is none, or none for this caller.
    """
    row = reports.find_report(reader, report_id)
    if row is None or not may(row):
        raise NotFoundError
    return row
