"""A store of ten thousand notes of 2 KB: searched beside plain FTS5, listed, taken along."""

import contextlib
import tracemalloc
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from itertools import count
from pathlib import Path
from typing import Final

from app.bridge import layout
from app.bridge.content.archive_writing import write_archive
from app.clock import system_clock
from app.crypto.keys import Key
from app.db import files, sqlite
from app.db.context import Actor
from app.db.owner.store import OwnerReader, OwnerTransactor
from app.db.spool import Spool
from app.db.sqlite import Connection, RawKey, Value
from app.owner import folders, identity, notes
from app.owner.search import search
from app.owner.search_query import build_match
from scripts.benchmark.cases import Bench
from scripts.benchmark.costs import loop
from scripts.benchmark.meter import Figures

_ACTOR: Final = Actor("human", "bench", "bench")
_NOTE_BYTES: Final = 2_048
_WORDS: Final = 5_000
_TOPICS: Final = 97
_TURNS: Final = 1 << 32
_BATCH: Final = 8
"""Notes of one commit: an index made of few large ones would be quicker than any real one."""
_HITS: Final = 10
_SEARCH_MS_MAX: Final = 5.0
_OVER_PLAIN_MAX: Final = 1.2
_MIB: Final = 1 << 20
_TABLE: Final = "CREATE TABLE notes (id INTEGER PRIMARY KEY, path TEXT UNIQUE, content TEXT)"
_INDEX: Final = (
    "CREATE VIRTUAL TABLE words USING fts5 (path, content, content = 'notes', "
    "content_rowid = 'id', tokenize = 'unicode61 remove_diacritics 2')"
)
_SEARCH_PLAIN: Final = (
    "SELECT n.path, n.content FROM (SELECT rowid, rank FROM words WHERE words MATCH :match "
    "AND rank MATCH 'bm25(4.0, 1.0)' ORDER BY rank LIMIT :limit) AS h "
    "JOIN notes AS n ON n.id = h.rowid ORDER BY h.rank"
)
_QUERIES: Final = [f"topic{n} word{n + 60}" for n in range(_TOPICS)]

Text = tuple[str, str]
"""Path and content."""


def remembering(bench: Bench) -> None:
    """(s): two words in one store, the same in plain FTS5; and what all notes take in memory."""
    texts = list(_texts(bench.effort.notes))
    folder = bench.room.settings.database
    with _ours(folder / "notes.bench", texts) as reader, _plain(folder, texts) as plain:
        figures = [Figures("s: search many notes", 1), Figures("s: plain FTS5", 1)]
        works = [_asking(lambda q: search(reader, q, _HITS)), _asking(lambda q: _find(plain, q))]
        for _ in range(bench.effort.rounds):
            for each, work in zip(figures, works, strict=True):
                loop(each, work, bench.effort.round_s)
        bench.report.figures += figures
        ours, theirs = figures
        p50 = ours.percentile(50) / 1_000
        bench.aim("search of many notes, p50", p50, _SEARCH_MS_MAX, at_least=False, unit="ms")
        cost = 1 / ours.ratio_to(theirs)
        bench.aim("search / plain FTS5", cost, _OVER_PLAIN_MAX, at_least=False)
        listed = _peak(lambda: folders.list_files(reader, "", 2))
        bench.aim("memory of listing them", listed, 32, at_least=False, unit="MiB")
        taken = _peak(lambda: _export(reader, folder))
        bench.aim("memory of their archive", taken, 32, at_least=False, unit="MiB")


def _texts(number: int) -> Iterator[Text]:
    """Notes whose words are as common as words are: few often, most hardly ever."""
    turns = count()
    for n in range(number):
        words = [f"topic{n % _TOPICS}"]
        size = 0
        while size < _NOTE_BYTES:
            # Knuth's multiplier spreads what is counted evenly; the power makes few of it many.
            part = (next(turns) * 2_654_435_761 % _TURNS + 1) / _TURNS
            word = f"word{min(int(part**-1.7), _WORDS)}"
            words.append(word)
            size += len(word) + 1
        yield f"{n % 50}/{n}.md", " ".join(words)[:_NOTE_BYTES]


@contextlib.contextmanager
def _ours(path: Path, texts: Sequence[Text]) -> Iterator[OwnerReader]:
    key = Key(bytes(range(32)))
    files.create(path, key, layout.MEMBER_KIND, system_clock, _own)
    kind, clock = layout.MEMBER_KIND, system_clock
    with closing(files.open_handle(path, key, kind, clock, reader=False)) as writer:
        writer.actor = _ACTOR
        tx, condition = OwnerTransactor(writer), notes.Condition()
        for at in range(0, len(texts), _BATCH):
            writer.all("BEGIN IMMEDIATE")
            for note, text in texts[at : at + _BATCH]:
                notes.put_note(tx, note, text, "bench", condition)
            writer.all("COMMIT")
    with closing(files.open_handle(path, key, kind, clock, reader=True)) as reader:
        yield OwnerReader(reader)
    files.remove(path)


def _own(connection: Connection) -> None:
    identity.set_identity(OwnerTransactor(connection), "bench", None)


@contextlib.contextmanager
def _plain(folder: Path, texts: Sequence[Text]) -> Iterator[Connection]:
    """The driver's own, under a key as well, with nothing of ours."""
    path = folder / "plain.bench"
    key = RawKey(Key(bytes(range(32))).sqlcipher_raw())
    with closing(sqlite.create(path, key, application_id=1, clock=system_clock)) as connection:
        connection.all(_TABLE)
        connection.all(_INDEX)
        for at in range(0, len(texts), _BATCH):
            connection.all("BEGIN IMMEDIATE")
            for number, (note, text) in enumerate(texts[at : at + _BATCH], at):
                values: dict[str, Value] = {"id": number, "path": note, "content": text}
                connection.all("INSERT INTO notes VALUES (:id, :path, :content)", values)
                connection.all(
                    "INSERT INTO words (rowid, path, content) VALUES (:id, :path, :content)", values
                )
            connection.all("COMMIT")
        yield connection
    files.remove(path)


def _find(plain: Connection, q: str) -> object:
    return plain.all(_SEARCH_PLAIN, {"match": build_match(q), "limit": _HITS})


def _asking(ask: Callable[[str], object]) -> Callable[[], object]:
    """Ask the next of the queries at each call."""
    turns = count()
    return lambda: ask(_QUERIES[next(turns) % len(_QUERIES)])


def _export(reader: OwnerReader, folder: Path) -> None:
    with Spool(folder) as out, Spool(folder) as rows:
        write_archive(reader, out, rows, system_clock())
        out.finish()


def _peak(work: Callable[[], object]) -> float:
    """MiB that something has in use at most, beside what was in use before."""
    tracemalloc.start()
    try:
        work()
        return tracemalloc.get_traced_memory()[1] / _MIB
    finally:
        tracemalloc.stop()
