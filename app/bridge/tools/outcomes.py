"""How what a write did is told."""

from collections.abc import Callable

from app.bridge.tools.toolbox import Answer
from app.owner.notes import Written


def telling(words: str, *, of_versions: bool = False) -> Callable[[Written], Answer]:
    """What tells of a write that left one text.

    Args:
        words: What was done.
        of_versions: Whether the words are to say which version can be brought back; the facts
            of the answer always do.

    Returns:
        It, with the version that stands and the one that it replaced.
    """

    def tell(outcome: Written) -> Answer:
        replaced = outcome.replaced_version
        more = f" Version {replaced} is kept and can be restored."
        shown = f"{words}{more}" if of_versions and replaced is not None else words
        return Answer(shown, outcome.note.version, replaced)

    return tell
