"""A migration that is cut at one of its statements, by an error or with its whole process.

python -m tests.support.interrupted PATH INDEX

brings a plain member's store of the first version to the present one, and kills itself
before the statement of that number.
"""

import os
import signal
import sys
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

from typing_extensions import override

from app.bridge import layout
from app.clock import system_clock
from app.crypto.keys import Key
from app.db import files, migrations
from app.db.sqlite import Connection, Params, Row


class CutError(Exception):
    """What the test lets go wrong."""


class Watched(Connection):
    """A handle that tells each statement's number before it runs it."""

    __slots__ = ("_count", "_tell")

    def __init__(self, connection: Connection, tell: Callable[[int], None]) -> None:
        super().__init__(connection._raw, connection.path, system_clock)
        self._tell = tell
        self._count = 0

    @property
    def count(self) -> int:
        """How many statements there were."""
        return self._count

    @override
    def all(self, sql: str, params: Params = {}) -> list[Row]:  # noqa: B006 - never changed
        """Run one, if nothing is to happen before it; what ends a failure always runs."""
        if not sql.startswith(("ROLLBACK", "PRAGMA")):
            self._count += 1
            self._tell(self._count)
        return super().all(sql, params)


def migrate(path: Path, key: Key | None, tell: Callable[[int], None]) -> int:
    """Bring a member's store to the present version; how many statements that took."""
    kind = layout.MEMBER_KIND
    with closing(files.open_maintenance(path, key, kind, system_clock)) as connection:
        watched = Watched(connection, tell)
        migrations.apply(watched, kind.buckets, system_clock())
        return watched.count


def main(path: Path, index: int) -> None:
    """Be killed amid a migration."""

    def tell(number: int) -> None:
        if number == index:
            os.kill(os.getpid(), signal.SIGKILL)

    migrate(path, None, tell)


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]))
