"""The `schema.sql` of each bucket, as its migrations make it; run as a program it writes them."""

from collections.abc import Mapping
from contextlib import closing
from pathlib import Path
from typing import Final

from app.clock import Millis
from app.db import migrations, sqlite
from app.db.migrations import Bucket
from app.db.owner.store import OWNER, OWNER_FUNCTIONS
from app.db.registry.store import REGISTRY
from app.db.runtime.store import RUNTIME

_ROOT: Final = Path(__file__).resolve().parents[2]
_HEAD: Final = "-- Made by scripts/schema from the migrations; a test holds the two equal."


def made_by(*buckets: Bucket) -> Mapping[str, str]:
    """What these buckets' migrations make in an empty file: kind and name, and the SQL."""
    with closing(sqlite.in_memory(lambda: Millis(0))) as connection:
        connection.register(OWNER_FUNCTIONS)
        migrations.apply(connection, buckets, Millis(0))
        return migrations.schema(connection)


def schema_files() -> Mapping[Path, str]:
    """Where each bucket's `schema.sql` lies, and what must stand in it."""
    runtime = made_by(RUNTIME)
    texts = {}
    for bucket in (RUNTIME, REGISTRY, OWNER):
        made = runtime if bucket is RUNTIME else made_by(RUNTIME, bucket)
        own = [sql for name, sql in made.items() if bucket is RUNTIME or name not in runtime]
        path = _ROOT / "app" / "db" / bucket.name / "schema.sql"
        texts[path] = "\n\n".join([_HEAD, *(f"{sql};" for sql in own)]) + "\n"
    return texts


if __name__ == "__main__":
    for file, content in schema_files().items():
        file.write_text(content, "utf-8")
