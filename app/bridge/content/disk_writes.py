"""What callers write in shared folders and projects: each call, judged and then decided.

Others read there, so it needs the scope of a shared write. An agent's write that a rule of the
group leaves to a person is refused.
"""

from collections.abc import Sequence
from functools import partial

from app.bridge.callers import Call, Caller
from app.bridge.content import asking, disk, notes
from app.bridge.content.disk_desk import Desk
from app.bridge.strongroom import Strongroom
from app.errors.callers import NotPermittedError
from app.owner.edits import Edit
from app.owner.notes import Condition, Written
from app.owner.paths import PathRef
from app.owner.pending_writes import Wanted
from app.owner.tree import Moved


async def put(  # noqa: PLR0913, PLR0917 - the parts of one write
    room: Strongroom, caller: Caller, call: Call, ref: PathRef, text: str, condition: Condition
) -> Written:
    """Make a text or replace it; see `app.bridge.content.files` for this and what follows.

    Returns:
        What stands now.
    """
    wanted = Wanted("write_file", ref, content=text)
    await _require_may(room, caller, call, wanted)
    return await disk.write(
        room, caller, call, ref, lambda desk: desk.put(ref.key, text, condition)
    )


async def append(  # noqa: PLR0913, PLR0917 - likewise
    room: Strongroom, caller: Caller, call: Call, ref: PathRef, text: str, condition: Condition
) -> Written:
    """Add a text on a line of its own, making the file when it is missing.

    Returns:
        What stands now.
    """
    wanted = Wanted("append_file", ref, content=text)
    await _require_may(room, caller, call, wanted)
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
) -> Written:
    """Apply edits, all or none.

    Returns:
        What stands now.
    """
    wanted = Wanted("edit_file", ref, edits=tuple(edits))
    await _require_may(room, caller, call, wanted)
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
) -> int:
    """Take a text away, or a folder with all that is in it; nothing of it is kept.

    Returns:
        How many texts.
    """
    wanted = Wanted("delete_file", ref, recursive=recursive)
    await _require_may(room, caller, call, wanted)
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
) -> Sequence[Moved]:
    """Move a text, or a folder with all that is in it, inside one root.

    Returns:
        Each text that moved, as it stands now.
    """
    wanted = Wanted("move_file", source, to=target, recursive=recursive)
    await _require_may(room, caller, call, wanted)
    work = partial(
        Desk.move, key=source.key, to=target.key, condition=condition, recursive=recursive
    )
    return await disk.write(room, caller, call, source, work)


async def _require_may(room: Strongroom, caller: Caller, call: Call, wanted: Wanted) -> None:
    """Refuse a credential that was not made for it, and an agent whose member would decide.

    Raises:
        NotPermittedError: It may not.
    """
    notes.require_may_write(caller, wanted.ref)
    if caller.is_agent and await asking.action_of(room, caller, call, wanted) != "allow":
        raise NotPermittedError
