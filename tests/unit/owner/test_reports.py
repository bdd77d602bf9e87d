"""Reports and who may read them."""

import math
from dataclasses import replace

import pytest

from app.clock import Millis
from app.errors.callers import NotFoundError
from app.errors.inputs import InvalidInputError
from app.ids import ReportId, UserId
from app.owner import reports
from app.owner.reports import (
    Audience,
    NewReport,
    ReportCursor,
    ReportFilter,
    ReportRights,
    add_report,
    find_report,
    list_reports,
    mark_read,
    may_read_report,
    remove_report,
)
from tests.support.stores import ANA, BEN, CYD, OwnerFile

_PLAIN = NewReport(kind="review", title="t", body="b", produced_by="test")
_ALL = ReportFilter()
_GONE = "01890000-0000-7000-8000-00000000ffff"


def _add(store: OwnerFile, new: NewReport = _PLAIN, producer: UserId = ANA) -> ReportId:
    store.clock.advance(1)
    with store.write() as tx:
        return add_report(tx, new, producer).id


def _rights(
    user_id: UserId, *, is_admin: bool = False, subjects: frozenset[UserId] = frozenset()
) -> ReportRights:
    return ReportRights(user_id, is_admin, subjects)


@pytest.mark.parametrize(
    ("audience", "rights", "may"),
    [
        pytest.param("admins", _rights(ANA), True, id="producer, for admins"),
        pytest.param("supervisors", _rights(ANA), True, id="producer, for supervisors"),
        pytest.param("owner", _rights(ANA), True, id="producer, for an owner"),
        pytest.param("admins", _rights(BEN), False, id="subject"),
        pytest.param("admins", _rights(BEN, is_admin=True), False, id="subject, an admin"),
        pytest.param(
            "supervisors",
            _rights(BEN, is_admin=True, subjects=frozenset({BEN})),
            False,
            id="subject, their own supervisor",
        ),
        pytest.param("admins", _rights(CYD, is_admin=True), True, id="admin, for admins"),
        pytest.param("admins", _rights(CYD), False, id="member, for admins"),
        pytest.param(
            "admins", _rights(CYD, subjects=frozenset({BEN})), False, id="supervisor, for admins"
        ),
        pytest.param("supervisors", _rights(CYD, subjects=frozenset({BEN})), True, id="supervisor"),
        pytest.param(
            "supervisors", _rights(CYD, subjects=frozenset({ANA})), False, id="of another"
        ),
        pytest.param("supervisors", _rights(CYD, is_admin=True), False, id="admin, no edge"),
        pytest.param("owner", _rights(CYD, is_admin=True), False, id="admin, for an owner"),
    ],
)
def test_rights_follow_audience_and_subject(
    store: OwnerFile, audience: Audience, rights: ReportRights, *, may: bool
) -> None:
    """The subject never reads, the producer always, then whom it is for."""
    new = replace(_PLAIN, audience=audience, subject_user_id=BEN)
    report = find_report(store.reader, _add(store, new))
    [listed] = list_reports(store.reader, _ALL, None, 5).items
    assert report is not None
    assert may_read_report(report, rights) is may
    assert may_read_report(listed, rights) is may


def test_a_producer_who_is_the_subject_is_refused(store: OwnerFile) -> None:
    """The subject is refused first, also of a report they wrote themselves."""
    new = replace(_PLAIN, audience="admins", subject_user_id=ANA)
    report = find_report(store.reader, _add(store, new))
    assert report is not None
    assert not may_read_report(report, _rights(ANA, is_admin=True))


def test_a_report_is_read_as_it_was_written(store: OwnerFile) -> None:
    """Every field comes back, with the time and unread."""
    new = NewReport(
        kind="weekly",
        title="Title",
        body="Body",
        produced_by="agent",
        summary="Short",
        severity="alert",
        audience="supervisors",
        subject_user_id=BEN,
        period_start=Millis(1),
        period_end=Millis(2),
        run_id="run",
        metadata={"notes": 3, "share": 0.5},
    )
    report = find_report(store.reader, _add(store, new))
    assert report is not None
    assert report[1:-1] == (
        *("weekly", "Title", "Short", "alert", BEN, "supervisors", 1, 2, "agent", ANA, "run"),
        *('{"notes": 3, "share": 0.5}', None, None, store.clock()),
    )
    assert report.body == "Body"


@pytest.mark.parametrize(
    "new",
    [
        pytest.param(replace(_PLAIN, audience="supervisors"), id="supervisors of nobody"),
        pytest.param(
            replace(_PLAIN, period_start=Millis(2), period_end=Millis(1)), id="reversed period"
        ),
        pytest.param(replace(_PLAIN, metadata={"n": math.nan}), id="no number"),
        pytest.param(replace(_PLAIN, kind="\x00"), id="NUL"),
        pytest.param(replace(_PLAIN, summary="\ud800"), id="surrogate"),
    ],
)
def test_a_report_that_makes_no_sense_is_refused(store: OwnerFile, new: NewReport) -> None:
    """What cannot be stored, or read by anybody, is an input error."""
    with pytest.raises(InvalidInputError):
        _add(store, new)
    assert list_reports(store.reader, _ALL, None, 5).items == []


def test_pages_neither_repeat_nor_skip(store: OwnerFile) -> None:
    """Pages run from the newest to the end, several of one millisecond included."""
    with store.write() as tx:
        made = [add_report(tx, _PLAIN, ANA).id for _ in range(5)]
    made += [_add(store) for _ in range(2)]
    listed: list[ReportId] = []
    page = list_reports(store.reader, _ALL, None, 3)
    while page.next:
        listed += [row.id for row in page.items]
        page = list_reports(store.reader, _ALL, page.next, 3)
    listed += [row.id for row in page.items]
    assert listed[:2] == made[:-3:-1]
    assert sorted(listed) == sorted(made)


@pytest.mark.parametrize(
    ("which", "titles"),
    [
        pytest.param(ReportFilter(), ["c", "b", "a"], id="all"),
        pytest.param(ReportFilter(kind="daily"), ["c", "a"], id="kind"),
        pytest.param(ReportFilter(unread=True), ["c", "b"], id="unread"),
        pytest.param(ReportFilter(subject=BEN), ["b"], id="subject"),
        pytest.param(ReportFilter(since=Millis(1_700_000_000_002)), ["c", "b"], id="since"),
        pytest.param(ReportFilter(kind="daily", unread=True), ["c"], id="two"),
    ],
)
def test_a_list_is_filtered(store: OwnerFile, which: ReportFilter, titles: list[str]) -> None:
    """Each filter narrows the list, and together they narrow it further."""
    first = _add(store, replace(_PLAIN, kind="daily", title="a"))
    _add(store, replace(_PLAIN, title="b", subject_user_id=BEN))
    _add(store, replace(_PLAIN, kind="daily", title="c"))
    with store.write() as tx:
        mark_read(tx, first, ANA)
    assert [row.title for row in list_reports(store.reader, which, None, 5).items] == titles


@pytest.mark.parametrize("batch", [1, 3, 200], ids=str)
def test_a_page_is_filled_with_what_may_be_read(
    store: OwnerFile, monkeypatch: pytest.MonkeyPatch, batch: int
) -> None:
    """Reports that the caller may not read shorten no page and show in no cursor."""
    monkeypatch.setattr(reports, "_BATCH", batch)
    hidden = replace(_PLAIN, audience="admins", subject_user_id=BEN, title="hidden")
    shown = replace(_PLAIN, audience="admins", title="shown")
    for _ in range(4):
        _add(store, shown)
        for _ in range(3):
            _add(store, hidden)
    rights = _rights(BEN, is_admin=True)

    def listed(before: ReportCursor | None) -> reports.ReportPage:
        return list_reports(store.reader, _ALL, before, 3, lambda row: may_read_report(row, rights))

    first = listed(None)
    assert [row.title for row in first.items] == ["shown"] * 3
    assert first.next == (first.items[-1].created_at, first.items[-1].id)
    last = listed(first.next)
    assert ([row.title for row in last.items], last.next) == (["shown"], None)


@pytest.mark.parametrize(
    ("which", "before"),
    [
        pytest.param(ReportFilter(kind="\ud800"), None, id="kind"),
        pytest.param(ReportFilter(subject=UserId("\x00")), None, id="subject"),
        pytest.param(_ALL, ReportCursor(1, ReportId("\ud800")), id="cursor"),
    ],
)
def test_a_filter_that_no_report_can_meet_is_refused(
    store: OwnerFile, which: ReportFilter, before: ReportCursor | None
) -> None:
    """Texts from outside are an input error where the driver would fail."""
    with pytest.raises(InvalidInputError):
        list_reports(store.reader, which, before, 5)


def test_the_first_reader_wins(store: OwnerFile) -> None:
    """A report is marked once; whoever comes later sees the first mark."""
    report_id = _add(store)
    with store.write() as tx:
        first = mark_read(tx, report_id, BEN)
    store.clock.advance(5)
    with store.write() as tx:
        assert mark_read(tx, report_id, CYD) == first
    assert first == (store.clock() - 5, BEN)
    assert store.rows("SELECT type FROM sys_events ORDER BY seq") == [
        ("report.created",),
        ("report.read",),
    ]


@pytest.mark.parametrize("report_id", [_GONE, "x", "\ud800"], ids=["gone", "no id", "surrogate"])
def test_a_report_that_is_not_there_is_not_found(store: OwnerFile, report_id: str) -> None:
    """Any text is either a report's id or not found."""
    assert find_report(store.reader, report_id) is None
    with pytest.raises(NotFoundError), store.write() as tx:
        mark_read(tx, report_id, ANA)
    with pytest.raises(NotFoundError), store.write() as tx:
        remove_report(tx, report_id)


def test_a_removed_report_is_gone(store: OwnerFile) -> None:
    """After removal it is neither read nor listed."""
    report_id = _add(store)
    with store.write() as tx:
        remove_report(tx, report_id)
    assert find_report(store.reader, report_id) is None
    assert list_reports(store.reader, _ALL, None, 5) == ([], None)
