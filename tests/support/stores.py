"""Owner stores for tests: real files with real migrations, written without threads."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from app.clock import Millis
from app.db import migrations, sqlite
from app.db.authorizer import authorizer
from app.db.context import Actor
from app.db.owner.store import (
    MEMBER_BUCKETS,
    OWNER_FILE,
    OWNER_FUNCTIONS,
    OwnerReader,
    OwnerTransactor,
)
from app.db.sqlite import RawKey, Row
from app.ids import DekId, UserId
from app.owner.identity import set_identity

ANA: Final = UserId("01890000-0000-7000-8000-000000000001")
BEN: Final = UserId("01890000-0000-7000-8000-000000000002")
CYD: Final = UserId("01890000-0000-7000-8000-000000000003")

KEY: Final = RawKey(f"x'{'5a' * 32}'")
DEK: Final = DekId("dek-of-tests")
ACTOR: Final = Actor(kind="human", sub=ANA, action="test")


class MovedClock:
    """A clock that stands still until it is moved."""

    def __init__(self, now_ms: int = 1_700_000_000_000) -> None:
        self.now_ms = now_ms

    def __call__(self) -> Millis:
        """The time it stands at."""
        return Millis(self.now_ms)

    def advance(self, ms: int) -> None:
        """Let time pass."""
        self.now_ms += ms


class OwnerFile:
    """One owner's store, encrypted unless said, under the authorizer that the program uses."""

    def __init__(
        self, path: Path, *, encrypted: bool = True, owner_id: str = ANA, clock: MovedClock
    ) -> None:
        self.path = path
        self.clock = clock
        self.connection = sqlite.create(
            path, KEY if encrypted else None, application_id=OWNER_FILE, clock=clock
        )
        self.connection.register(OWNER_FUNCTIONS)
        migrations.apply(self.connection, MEMBER_BUCKETS, clock())
        self.connection.guard(authorizer(frozenset()))
        self.reader = OwnerReader(self.connection)
        with self.write() as tx:
            set_identity(tx, owner_id, DEK if encrypted else None)

    @contextmanager
    def write(self, actor: Actor = ACTOR) -> Iterator[OwnerTransactor]:
        """One transaction: committed at the end of the block, undone by an error."""
        self.connection.all("BEGIN IMMEDIATE")
        self.connection.actor = actor
        try:
            yield OwnerTransactor(self.connection)
        except BaseException:
            self.connection.all("ROLLBACK")
            raise
        else:
            self.connection.all("COMMIT")
        finally:
            self.connection.actor = None

    def rows(self, sql: str) -> list[Row]:
        """Look inside."""
        return self.connection.all(sql)

    def check(self) -> None:
        """Fail if the search index and the notes have drifted apart."""
        with self.write():
            self.rows(
                "INSERT INTO memory_docs_fts (memory_docs_fts, rank) VALUES ('integrity-check', 1)"
            )

    def close(self) -> None:
        """Let the file go."""
        self.connection.close()


@contextmanager
def owner_file(folder: Path, *, encrypted: bool = True, owner_id: str = ANA) -> Iterator[OwnerFile]:
    """Make an owner's store in a folder and close it at the end of the block."""
    store = OwnerFile(
        folder / "owner.db", encrypted=encrypted, owner_id=owner_id, clock=MovedClock()
    )
    try:
        yield store
    finally:
        store.close()
