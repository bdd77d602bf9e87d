"""Commands that only read, as forms: done by a running server, or from outside without one.

From outside nothing is taken and nothing is prepared; what is under a key stays unread.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Generic

from pydantic import JsonValue
from typing_extensions import override

from app.bridge.arguments import (
    Answer,
    Arguments,
    ArgumentsT,
    InHome,
    find_user,
    parse,
    read_user,
)
from app.bridge.reading import reading, reading_group, reading_member
from app.bridge.strongroom import Strongroom, account_of
from app.db.owner.store import OwnerReader, OwnerStore
from app.db.registry.store import RegistryReader
from app.errors.stores import StoreLockedError
from app.settings import Settings


async def store_of(room: Strongroom, user: str | None) -> OwnerStore:
    """The group's store, or a member's as far as this process can work in it.

    Args:
        room: The service.
        user: Whose, by name or id; None for the group's.

    Returns:
        The store.

    Raises:
        NotFoundError: There is no such member.
        StoreLockedError: It is encrypted, and its member has not unlocked it here.
    """
    if user is None:
        return room.stores.group
    account = await find_user(room, user)
    found = room.stores.find(account.id, account.store_generation)
    if found is not None:
        return found
    if account.encrypted:
        raise StoreLockedError
    store, _ = await room.stores.open(account_of(account), lambda: None)
    return store


class Look(ABC):
    """A command that only reads."""

    @abstractmethod
    async def __call__(self, room: Strongroom, arguments: Mapping[str, JsonValue]) -> Answer:
        """Read as the running service."""

    @abstractmethod
    def from_outside(self, settings: Settings, arguments: Mapping[str, JsonValue]) -> Answer:
        """Read the files of a root, whether or not it is served.

        Raises:
            ArgumentError: It cannot take these arguments.
            UnreadableRootError: There is no root, or not this program's to read.
            StoreLockedError: The store is under a key.
            StrongroomError: What else stands in the way.
        """


@dataclass(frozen=True, slots=True)
class RegistryLook(Look, Generic[ArgumentsT]):
    """Reads the registry."""

    model: type[ArgumentsT]
    look: Callable[[RegistryReader, ArgumentsT], Answer]

    @override
    async def __call__(self, room: Strongroom, arguments: Mapping[str, JsonValue]) -> Answer:
        asked = parse(self.model, arguments)
        return await room.stores.registry.read(lambda reader: self.look(reader, asked))

    @override
    def from_outside(self, settings: Settings, arguments: Mapping[str, JsonValue]) -> Answer:
        asked = parse(self.model, arguments)
        with reading(settings) as reader:
            return self.look(reader, asked)


@dataclass(frozen=True, slots=True)
class StoreLook(Look, Generic[ArgumentsT]):
    """Reads the group's own store, or that of the member whom the arguments name."""

    model: type[ArgumentsT]
    look: Callable[[OwnerReader, ArgumentsT], Answer]

    @override
    async def __call__(self, room: Strongroom, arguments: Mapping[str, JsonValue]) -> Answer:
        asked = parse(self.model, arguments)
        store = await store_of(room, _user_of(asked))
        return await store.read(lambda reader: self.look(reader, asked))

    @override
    def from_outside(self, settings: Settings, arguments: Mapping[str, JsonValue]) -> Answer:
        asked = parse(self.model, arguments)
        user = _user_of(asked)
        if user is None:
            with reading_group(settings) as reader:
                return self.look(reader, asked)
        with reading_member(settings, lambda registry: read_user(registry, user)) as reader:
            return self.look(reader, asked)


def _user_of(asked: Arguments) -> str | None:
    return asked.user if isinstance(asked, InHome) else None
