"""What statements on a guarded handle may touch.

The numbers are SQLite's action codes (https://sqlite.org/c3ref/c_alter_table.html).
"""

from collections.abc import Callable
from typing import Final

Authorizer = Callable[[int, str | None, str | None, str | None, str | None], int]
"""Takes action, its two details, the database's name and the trigger's; answers 0 or 1."""

_OK: Final = 0
_DENY: Final = 1
_ROWS: Final = frozenset({9, 18, 20, 23})  # delete, insert, read, update
_PRAGMA: Final = 19
_FUNCTION: Final = 31
_FILES: Final = frozenset({24, 25})  # attach, detach
_SCHEMA: Final = frozenset({*range(1, 9), *range(10, 18), *range(26, 31)})  # create to reindex
_FREE_PRAGMAS: Final = frozenset(
    {
        "data_version",
        "freelist_count",
        "page_count",
        "page_size",
        "table_info",
        "table_list",
        "wal_checkpoint",
    }
)
"""FTS5 reads data_version, the drift check names of tables, the quota the pages in use; the writer
checkpoints."""


def authorizer(denied_tables: frozenset[str]) -> Authorizer:
    """Admit ordinary statements; refuse ATTACH, schema changes, pragmas and the named tables.

    Args:
        denied_tables: Their names in lower case, as every migration writes them.

    Returns:
        A judge for one handle's statements.
    """

    def judge(
        action: int, first: str | None, second: str | None, _database: str | None, _by: str | None
    ) -> int:
        if action in _ROWS:
            # Of a table whose columns nobody reads SQLite gives the name as the statement has it.
            return _DENY if first is not None and first.lower() in denied_tables else _OK
        if action in _FILES or action in _SCHEMA:
            return _DENY
        if action == _PRAGMA:
            return _OK if first in _FREE_PRAGMAS else _DENY
        if action == _FUNCTION:
            return _DENY if second == "load_extension" else _OK
        return _OK

    return judge
