"""Whole roots as a version of the program leaves them, kept to be migrated ever after.

python -m tests.support.schema_fixtures FOLDER

makes one with the code it finds: `root.tar.xz` and `versions.json`. How a kept one was made
stands in `tests/fixtures/README.md`.
"""

import asyncio
import json
import sys
import tarfile
import tempfile
from pathlib import Path
from typing import Any, Final

from app.bridge import layout, start
from app.bridge.accounts import api_tokens, secrets
from app.bridge.accounts.api_tokens import NewToken
from app.bridge.callers import Caller
from app.bridge.content import notes, reports
from app.bridge.strongroom import Strongroom
from app.owner import notes as owner_notes
from app.owner import secrets as owner_secrets
from app.owner import tree
from app.owner.notes import Condition
from app.owner.paths import SHARED_MEMORY, USER_MEMORY, PathRef
from app.owner.reports import NewReport
from app.project import PROJECT_FOLDER
from app.registry import supervision
from app.runtime import steps
from app.settings import Settings
from tests.support.rig import ACTOR, add, enter
from tests.support.rooms import CALL, CHEAP, open_room

FOLDER: Final = PROJECT_FOLDER / "tests" / "fixtures"
"""Where the kept ones are, as `schema_1` and so on."""
ENCRYPTED: Final = "ana"
PLAIN: Final = "ben"
SECRET: Final = b"what only ana knows"
_ROOT: Final = "root.tar.xz"
_FACTS: Final = "versions.json"


def kept() -> list[Path]:
    """The folders of the kept ones, by their number."""
    return sorted(FOLDER.glob("schema_*"), key=lambda folder: int(folder.name.split("_")[1]))


def facts_of(folder: Path) -> dict[str, Any]:
    """What is on record of one: the program's version, and each bucket's migrations."""
    facts: dict[str, Any] = json.loads((folder / _FACTS).read_text("utf-8"))
    return facts


def unpack(folder: Path, root: Path) -> Settings:
    """Lay a root out as it was left."""
    with tarfile.open(folder / _ROOT) as archive:
        # The first releases of Python 3.11 have no filters; the archive is this project's own.
        archive.extraction_filter = getattr(tarfile, "data_filter", None)
        archive.extractall(root)  # noqa: S202 - as said
    return Settings.model_validate({"root": root})


def make(folder: Path) -> None:
    """Make one with the present code."""
    with tempfile.TemporaryDirectory() as made:
        settings = Settings.model_validate({"root": Path(made)})
        fill(settings)
        for name in (".lock", ".workers.lock", ".stores.lock"):
            (settings.database / name).unlink(missing_ok=True)
        folder.mkdir(parents=True, exist_ok=True)
        with tarfile.open(folder / _ROOT, "w:xz") as archive:
            archive.add(settings.root, arcname=".")
    facts = {"program": steps.BUILD, "migrations": present()}
    (folder / _FACTS).write_text(json.dumps(facts, indent=1) + "\n", "utf-8")


def present() -> dict[str, dict[str, str]]:
    """Each bucket's migrations: number and checksum."""
    return {
        bucket.name: {str(each.number): each.checksum for each in bucket.migrations}
        for bucket in layout.SYSTEM_KIND.buckets
    }


def fill(settings: Settings) -> None:
    """Make a root with an encrypted and a plain member, and something of every kind."""
    start.prepare(settings, kdf_params=CHEAP)
    asyncio.run(_fill(settings))


async def _fill(settings: Settings) -> None:
    async with open_room(settings) as room:
        ana = (await add(room, ENCRYPTED, "admin")).account
        ben = (await add(room, PLAIN, encrypted=False)).account
        await secrets.set_secret(room, "instance", b"what the instance knows", ACTOR)
        await room.stores.registry.write(lambda tx: supervision.add(tx, ben.id, ana.id), ACTOR)
        for name in (ENCRYPTED, PLAIN):
            caller = await enter(room, name)
            await _write(room, caller)
            token = NewToken("program", ("memory:read",), "agent", True, None)  # noqa: FBT003 - is_agent
            await api_tokens.mint(room, caller, token, CALL)


async def _write(room: Strongroom, caller: Caller) -> None:
    for root in (USER_MEMORY, SHARED_MEMORY):
        for name, text in (("kept.md", "one"), ("kept.md", "two"), ("gone.md", "three")):
            await _put(room, caller, PathRef(root, f"{caller.user_id}/{name}"), text)
        await _remove(room, caller, PathRef(root, f"{caller.user_id}/gone.md"))
    for audience in ("owner", "admins"):
        new = NewReport("kind", "Title", "Body", "test", audience=audience)
        if audience == "owner" or caller.role_id == "admin":
            await reports.add(room, caller, CALL, new)
    store = room.stores.find(caller.user_id, caller.account.generation)
    assert store is not None
    await store.write(lambda tx: owner_secrets.set_secret(tx, "own", SECRET), ACTOR)


async def _put(room: Strongroom, caller: Caller, ref: PathRef, text: str) -> None:
    await notes.write(
        room,
        caller,
        CALL,
        ref,
        lambda tx: owner_notes.put_note(tx, ref.key, text, caller.author, Condition()),
    )


async def _remove(room: Strongroom, caller: Caller, ref: PathRef) -> None:
    await notes.write(
        room,
        caller,
        CALL,
        ref,
        lambda tx: tree.delete_note(
            tx,
            ref.key,
            condition=Condition(),
            purge=False,
            recursive=False,
            author=caller.author,
        ),
    )


if __name__ == "__main__":
    make(Path(sys.argv[1]))
