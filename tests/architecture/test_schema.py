"""The schema as files show it, and as large as a connection may find it."""

from pathlib import Path

import pytest

from app.db.owner.store import OWNER
from app.db.runtime.store import RUNTIME
from tests.support.schema_files import made_by, schema_files

_MEMBER_SCHEMA_MAX = 80 * 1024


@pytest.mark.parametrize(
    ("path", "text"),
    [pytest.param(path, text, id=path.parent.name) for path, text in schema_files().items()],
)
def test_schema_files_show_what_the_migrations_make(path: Path, text: str) -> None:
    """`schema.sql` is what a new store has; scripts/schema writes it anew."""
    assert path.read_text("utf-8") == text


def test_a_members_schema_is_quick_to_parse() -> None:
    """SQLite parses a member's whole schema at every opening, 22 us a KiB."""
    assert sum(map(len, made_by(RUNTIME, OWNER).values())) < _MEMBER_SCHEMA_MAX
