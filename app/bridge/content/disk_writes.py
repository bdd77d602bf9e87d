"""What callers write in shared folders and projects: each call, judged and then decided.

Others read there, so it needs the scope of a shared write, and an agent's write waits for its
member's decision where a rule of the group leaves it to a person.
"""

from collections.abc import Sequence
from functools import partial
from typing import Final

from app.bridge.callers import Call, Caller
from app.bridge.content import asking, disk, disk_asking, notes
from app.bridge.content.asking import Waiting
from app.bridge.content.disk_desk import Desk
from app.bridge.strongroom import Strongroom
from app.owner.edits import Edit
from app.owner.notes import Condition, Written
from app.owner.paths import PathRef
from app.owner.pending_writes import Wanted
from app.owner.tree import Moved

_TELLING: Final = frozenset({"append_file", "edit_file", "move_file"})
"""Writes whose answer tells the version of a text that was not all sent."""


async def put(  # noqa: PLR0913, PLR0917 - the parts of one write
    room: Strongroom, caller: Caller, call: Call, ref: PathRef, text: str, condition: Condition
) -> Written | Waiting:
    """Make a text or replace it; see `app.bridge.content.files` for this and what follows.

    Returns:
        What stands now; or what waits, as everywhere.
    """
    wanted = Wanted("write_file", ref, content=text)
    if (waits := await _asked(room, caller, call, wanted, condition)) is not None:
        return waits
    return await disk.write(
        room, caller, call, ref, lambda desk: desk.put(ref.key, text, condition)
    )


async def append(  # noqa: PLR0913, PLR0917 - likewise
    room: Strongroom, caller: Caller, call: Call, ref: PathRef, text: str, condition: Condition
) -> Written | Waiting:
    """Add a text on a line of its own, making the file when it is missing.

    Returns:
        What stands now; or what waits, as everywhere.
    """
    wanted = Wanted("append_file", ref, content=text)
    if (waits := await _asked(room, caller, call, wanted, condition)) is not None:
        return waits
    return await disk.write(
        room, caller, call, ref, lambda desk: desk.append(ref.key, text, condition)
    )


async def edit(  # noqa: PLR0913, PLR0917 - likewise
    room: Strongroom,
    caller: Caller,
    call: Call,
    ref: PathRef,
    edits: Sequence[Edit],
    condition: Condition,
) -> Written | Waiting:
    """Apply edits, all or none.

    Returns:
        What stands now; or what waits, as everywhere.
    """
    wanted = Wanted("edit_file", ref, edits=tuple(edits))
    if (waits := await _asked(room, caller, call, wanted, condition)) is not None:
        return waits
    return await disk.write(
        room,
        caller,
        call,
        ref,
        lambda desk: desk.edit(ref.key, edits, condition),
        judge=lambda desk: desk.require_there(ref.key),
    )


async def delete(  # noqa: PLR0913 - likewise
    room: Strongroom,
    caller: Caller,
    call: Call,
    ref: PathRef,
    condition: Condition,
    *,
    recursive: bool,
) -> int | Waiting:
    """Take a text away, or a folder with all that is in it; nothing of it is kept.

    Returns:
        How many texts; or what waits.
    """
    wanted = Wanted("delete_file", ref, recursive=recursive)
    if (waits := await _asked(room, caller, call, wanted, condition)) is not None:
        return waits
    work = partial(Desk.delete, key=ref.key, condition=condition, recursive=recursive)
    return await disk.write(room, caller, call, ref, work)


async def move(  # noqa: PLR0913, PLR0917 - likewise
    room: Strongroom,
    caller: Caller,
    call: Call,
    source: PathRef,
    target: PathRef,
    condition: Condition,
    *,
    recursive: bool,
) -> Sequence[Moved] | Waiting:
    """Move a text, or a folder with all that is in it, inside one root.

    Returns:
        Each text that moved, as it stands now; or what waits.
    """
    wanted = Wanted("move_file", source, to=target, recursive=recursive)
    if (waits := await _asked(room, caller, call, wanted, condition)) is not None:
        return waits
    work = partial(
        Desk.move, key=source.key, to=target.key, condition=condition, recursive=recursive
    )
    return await disk.write(room, caller, call, source, work)


async def _asked(
    room: Strongroom, caller: Caller, call: Call, wanted: Wanted, condition: Condition
) -> Waiting | None:
    """Refuse a credential that was not made for it, and have an agent's member asked.

    A version here is made of the text: whoever learns it can try out what the text is.

    Returns:
        What waits; None for what is to be done at once.

    Raises:
        NotPermittedError: It may not.
        DeniedByRuleError: A rule keeps agents from it.
    """
    notes.require_may_write(caller, wanted.ref)
    if wanted.tool in _TELLING or condition != Condition():
        notes.require_may_read(caller)
    if not caller.is_agent or await asking.action_of(room, caller, call, wanted) == "allow":
        return None
    rehearse = partial(disk_asking.rehearse, room, caller, call.once, wanted, condition)
    return await asking.ask(room, caller, call, wanted, rehearse)
