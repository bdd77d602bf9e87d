"""Named statements, loaded from `.sql` files: the only SQL the program runs on stores.

A file holds blocks of this form, one statement each:

    -- name: find_note
    -- The note at a path, or nothing.
    -- inline: one row by unique key, no big column
    SELECT ...

A block is a name, at least one sentence and one statement; `load` refuses any other.
`-- inline: why` marks a statement that may run on the event loop; `-- scan: why` one
that may read a whole table. Both need their reason. A bare parameter after LIMIT has SQLite
prepare the statement anew at each run, for a plan of its value; it is written `LIMIT +:limit`.
"""

import re
from collections.abc import Callable, Mapping
from importlib import resources
from typing import Any, Final, Generic, NamedTuple, TypeVar, cast

from typing_extensions import override

RowT_co = TypeVar("RowT_co", bound=tuple[Any, ...], covariant=True)

_BLOCK: Final = re.compile(r"^(?=-- name:)", re.MULTILINE)
_HEAD: Final = re.compile(r"-- name: ([a-z][a-z0-9_]*)\n((?:-- .+\n)+)")
_MARK: Final = re.compile(r"^-- (inline|scan): (.+)$", re.MULTILINE)
_REFUSED: Final = re.compile(
    r"\bOR\s+REPLACE\b|\bREPLACE\s+INTO\b|\b(?:LIMIT|OFFSET)\s*:|;|\?|--", re.IGNORECASE
)


class NoRow(NamedTuple):
    """The row of a statement that gives none."""


class Statement(Generic[RowT_co]):
    """One named statement and the type of its rows. Made by `load` alone."""

    __slots__ = ("inline", "make", "name", "row", "scan", "sql")

    def __init__(self, name: str, sql: str, row: type[RowT_co], marks: Mapping[str, str]) -> None:
        self.name = name
        self.sql = sql
        self.row = row
        """A NamedTuple whose fields are the result's columns."""
        self.make: Callable[[tuple[Any, ...]], RowT_co] = cast("Any", row)._make
        self.inline = marks.get("inline")
        """Why it may run on the event loop; None when it may not."""
        self.scan = marks.get("scan")
        """Why it may read a whole table; None when it may not."""

    @override
    def __repr__(self) -> str:
        return f"<Statement {self.name}>"


class Block(NamedTuple):
    """One statement as its file has it."""

    name: str
    sql: str
    marks: Mapping[str, str]
    """`inline` and `scan`, with their reasons, as far as they are there."""


class StatementSet:
    """The statements of one bucket, bound one by one to the type of their rows."""

    def __init__(self, blocks: Mapping[str, Block]) -> None:
        self._blocks = blocks
        self.bound: dict[str, Statement[tuple[Any, ...]]] = {}
        """Those bound so far, by name."""

    @property
    def names(self) -> frozenset[str]:
        """Every name the files define."""
        return frozenset(self._blocks)

    def bind(self, name: str, row: type[RowT_co]) -> Statement[RowT_co]:
        """Take the statement of this name, and say what its rows are.

        Args:
            name: As in its file.
            row: A NamedTuple with a field a column.

        Returns:
            What readers and transactors run.

        Raises:
            KeyError: No file defines it.
        """
        block = self._blocks[name]
        statement = Statement(name, block.sql, row, block.marks)
        self.bound[name] = statement
        return statement

    def bind_command(self, name: str) -> Statement[NoRow]:
        """Take a statement that gives no rows."""
        return self.bind(name, NoRow)


def load(package: str) -> StatementSet:
    """Read every `queries/*.sql` of a bucket's package.

    Returns:
        Its statements, none bound yet.

    Raises:
        ValueError: A name is there twice, or a block is not well made.
    """
    blocks: dict[str, Block] = {}
    folder = resources.files(package) / "queries"
    for file in sorted(folder.iterdir(), key=lambda item: item.name):
        for block in parse(file.read_text("utf-8")):
            if block.name in blocks:
                message = f"two statements are named {block.name}"
                raise ValueError(message)
            blocks[block.name] = block
    return StatementSet(blocks)


def parse(text: str) -> list[Block]:
    """Take one file apart.

    Returns:
        Its blocks, in order.

    Raises:
        ValueError: Something stands before the first block, or one of them has no name, no
            sentence, not exactly one statement, `OR REPLACE`, which skips delete triggers,
            a bare parameter after LIMIT, or a parameter without a name.
    """
    before, *blocks = _BLOCK.split(text)
    if before.strip():
        message = "a file of queries begins with `-- name:`"
        raise ValueError(message)
    return [_parse_block(block) for block in blocks]


def _parse_block(text: str) -> Block:
    head = _HEAD.match(text)
    if head is None or not _MARK.sub("", head[2]).strip():
        message = f"a block has a name and a sentence, not {text.splitlines()[:2]}"
        raise ValueError(message)
    name, comment = head.groups()
    sql = text[head.end() :].strip().removesuffix(";")
    found = _REFUSED.search(sql)
    if found is not None or not sql:
        message = f"{name} is not one plain statement: {found[0] if found else 'empty'}"
        raise ValueError(message)
    return Block(name, sql, dict(_MARK.findall(comment)))
