"""Members' stores as the registry knows them: their versions, and what was found of them.

All of it is a mirror, as of each store's last opening; the truth is in the file.
"""

from dataclasses import dataclass, field

from app.db.registry import statements as sql
from app.db.registry.rows import FleetCountRow, FleetRow
from app.db.registry.store import RegistryReader, RegistryTransactor
from app.ids import UserId

Store = FleetRow
"""One member's store, as it is known without opening it."""


@dataclass(slots=True)
class Fleet:
    """How many members' stores are in which condition; one may count in several."""

    stores: int = 0
    encrypted: int = 0
    versions: dict[str, int] = field(default_factory=dict)
    """By version, as `8.4`: one number a bucket."""
    unknown: int = 0
    """Never opened yet."""
    waiting: int = 0
    """Of another version than the present; their next opening brings them to it."""
    waiting_encrypted: int = 0
    """Those of them that only their members can open."""
    drifted: int = 0
    """With another schema than the migrations make."""
    failed: int = 0
    """Whose migration failed; they are as they were, and are not opened."""


def count(reader: RegistryReader, present: str) -> Fleet:
    """Count the stores, of which each is to have the present version."""
    fleet = Fleet()
    for row in reader.all(sql.COUNT_FLEET):
        _add(fleet, row, present)
    return fleet


def _add(fleet: Fleet, row: FleetCountRow, present: str) -> None:
    fleet.stores += row.stores
    fleet.encrypted += row.stores * row.encrypted
    if row.schema_version is None:
        fleet.unknown += row.stores
    else:
        fleet.versions[row.schema_version] = fleet.versions.get(row.schema_version, 0) + row.stores
        waiting = row.stores * (row.schema_version != present)
        fleet.waiting += waiting
        fleet.waiting_encrypted += waiting * row.encrypted
    fleet.drifted += row.stores * (row.schema_check == "drift")
    fleet.failed += row.stores * (row.migration_failed is not None)


def list_page(reader: RegistryReader, after: str, limit: int) -> list[Store]:
    """Stores in order of their members' making, after the one of an id; empty for the first."""
    return reader.all(sql.LIST_FLEET, after=after, limit=limit)


def forget_failures(tx: RegistryTransactor) -> list[UserId]:
    """Let every store whose migration failed be tried again; whose they are."""
    return [UserId(row.value) for row in tx.run(sql.FORGET_FAILED_MIGRATIONS)]
