"""The registry's store: one face of system.db."""

from app.db.migrations import Bucket, load
from app.db.registry.tracking import TRACKED
from app.db.runtime.store import RuntimeReader, RuntimeStore, RuntimeTransactor

REGISTRY = Bucket("registry", load("app.db.registry"), TRACKED)
"""The bucket of what the group must know before anyone signs in."""


class RegistryReader(RuntimeReader):
    """Reads the registry."""

    __slots__ = ()


class RegistryTransactor(RuntimeTransactor, RegistryReader):
    """Reads and writes the registry, in one transaction."""

    __slots__ = ()


RegistryStore = RuntimeStore[RegistryReader, RegistryTransactor]
"""The registry, asynchronously."""
