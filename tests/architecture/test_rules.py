"""Rules that no tool checks: who opens files, who speaks, how the tree and the schema read.

Each rule is a function that names what breaks it. The program's own tree must break none,
and a table of deliberate violations shows that the function would see it.
"""

import ast
import re
import subprocess
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Final

import pytest

from app.db import migrations, sqlite
from app.db.migrations import Bucket
from app.db.owner.store import OWNER, OWNER_FUNCTIONS
from app.db.registry.store import REGISTRY
from app.db.runtime.store import RUNTIME
from tests.support.probes import NOW, clock

_ROOT: Final = Path(__file__).resolve().parents[2]
_APP: Final = _ROOT / "app"

_LINES_MAX: Final = 400


def _sources() -> dict[str, str]:
    """Every module of the program, by its path from the root."""
    return {
        path.relative_to(_ROOT).as_posix(): path.read_text("utf-8")
        for path in sorted(_APP.rglob("*.py"))
    }


# -- files are opened in few places ------------------------------------------------------------

_OPENERS: Final = {
    ("app/db/files.py", "read_salt"): "the start of a store's file, before any handle exists",
    ("app/db/files.py", "_sync"): "a folder, or a copy that no handle has open",
    ("app/db/files.py", "remove"): "a folder that stands in a store's place",
    ("app/db/sqlite.py", "create"): "O_EXCL: the file did not exist a moment before",
    ("app/db/blobs.py", "__init__"): "O_EXCL: a file beside the stores that is being made",
    ("app/db/blobs.py", "read"): "a file beside the stores, which SQLite never has open",
    ("app/db/blobs.py", "remove_folder"): "a folder of those",
    ("app/db/disk_tree.py", "_hold"): "by its inode alone, without a part in locks",
    ("app/db/disk_tree.py", "_read_held"): "what was found so to be a file of one name",
    ("app/db/disk_tree.py", "descend"): "a folder",
    ("app/db/disk_tree.py", "open_database"): "the folder of all run-time data",
    ("app/db/disk_steps.py", "stage"): "O_EXCL: a text that is being made",
    ("app/db/disk_steps.py", "_unlink_tree"): "a folder that was removed",
    ("app/db/spool.py", "__init__"): "a file without a name, of its own",
    ("app/db/spool.py", "read_at"): "the same",
    ("app/db/spool.py", "load"): "an archive that its member has on this box",
    ("app/db/spool.py", "save"): "O_EXCL: one that is being made",
    ("app/db/file_lock.py", "open_lock_file"): "the files of locks",
    ("app/db/driver_errors.py", "_out_of_descriptors"): "/dev/null, to see whether any opens",
    ("app/db/queries.py", "load"): "the program's own .sql files",
    ("app/db/migrations.py", "load"): "the program's own .sql files",
}
"""Who among the stores opens a file, and which. None is a store's that SQLite may have open:
closing any descriptor of it would drop SQLite's locks, and acknowledged writes with them."""

_READERS: Final = frozenset({"read_text", "read_bytes", "write_text", "write_bytes", "touch"})
_MODULES: Final = frozenset({"shutil", "mmap", "tempfile", "fileinput"})


def openings(source: str) -> list[tuple[str, int]]:
    """Function and line of everything that opens or copies a file."""
    tree = ast.parse(source)
    awaited = {node.value for node in ast.walk(tree) if isinstance(node, ast.Await)}
    return [
        (function, node.lineno)
        for function, node in _calls(tree)
        if node not in awaited and _opens(node.func)
    ]


def _opens(function: ast.expr) -> bool:
    if isinstance(function, ast.Name):
        return function.id == "open"
    if not isinstance(function, ast.Attribute):
        return False
    if isinstance(function.value, ast.Name) and function.value.id in _MODULES:
        return True
    return function.attr in _READERS | {"open", "copyfile", "sendfile"}


def _calls(tree: ast.AST, inside: str = "") -> Iterator[tuple[str, ast.Call]]:
    """Every call, with the name of the function it stands in."""
    for node in ast.iter_child_nodes(tree):
        name = inside
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            name = node.name
        if isinstance(node, ast.Call):
            yield inside, node
        yield from _calls(node, name)


def test_no_module_opens_a_file_but_those_that_are_named() -> None:
    """And every name on the list is still needed."""
    found = {
        (path, function) for path, source in _sources().items() for function, _ in openings(source)
    }
    folders = ("app/db/", "app/owner/", "app/registry/", "app/runtime/")
    assert {place for place in found if place[0].startswith(folders)} == _OPENERS.keys()


def test_nothing_outside_the_stores_opens_a_stores_file() -> None:
    """What else opens files names none of a store."""
    naming = re.compile(r"system_file|user_file|\.db\b")
    for path, source in _sources().items():
        if path.startswith("app/db/"):
            continue
        lines = source.splitlines()
        opened = [lines[line - 1] for _, line in openings(source)]
        assert not [line for line in opened if naming.search(line)], path


@pytest.mark.parametrize(
    "source",
    [
        "open(path)",
        "def f():\n    with open(path, 'rb') as file: pass",
        "path.open('rb')",
        "path.read_bytes()",
        "settings.user_file(x).read_bytes()",
        "os.open(path, os.O_RDONLY)",
        "io.open(path)",
        "shutil.copy(path, other)",
        "mmap.mmap(fd, 0)",
        "os.sendfile(a, b, 0, 9)",
        "path.touch()",
        "path.write_bytes(b'')",
    ],
)
def test_an_opening_is_caught(source: str) -> None:
    """However it is written."""
    assert openings(source)


def test_a_store_that_is_opened_is_no_file_that_is_opened() -> None:
    """`await stores.open(...)` unlocks a member's store."""
    assert openings("async def f():\n    await stores.open(account, key)") == []


# -- who speaks, who reads the environment -----------------------------------------------------


def imports_of(source: str, names: frozenset[str]) -> list[str]:
    """Which of these modules are imported."""
    found: list[str] = []
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            found += [alias.name for alias in node.names]
        if isinstance(node, ast.ImportFrom) and node.module:
            found.append(node.module)
    return [name for name in found if name.split(".")[0] in names]


_VOICES: Final = frozenset({"logging", "structlog", "loguru", "syslog", "warnings"})


def test_only_telemetry_logs() -> None:
    """One function an event, so that no row and no secret is ever in a line."""
    speakers = {path for path, source in _sources().items() if imports_of(source, _VOICES)}
    assert speakers == {"app/telemetry.py"}


def environment_of(source: str) -> list[int]:
    """Lines that read or change the environment."""
    wanted = {"environ", "environb", "getenv", "putenv", "unsetenv"}
    return [
        node.lineno
        for node in ast.walk(ast.parse(source))
        if (isinstance(node, ast.Attribute) and node.attr in wanted)
        or (isinstance(node, ast.ImportFrom) and {a.name for a in node.names} & wanted)
    ]


def test_only_settings_reads_the_environment() -> None:
    """What can be chosen is one class."""
    readers = {path for path, source in _sources().items() if environment_of(source)}
    assert readers == {"app/settings.py"}


_BREACHES: Final[list[tuple[Callable[[str], object], str]]] = [
    (lambda source: imports_of(source, _VOICES), "import logging"),
    (lambda source: imports_of(source, _VOICES), "from logging import getLogger"),
    (lambda source: imports_of(source, _VOICES), "def f():\n    import logging.handlers"),
    (environment_of, "import os\nos.environ['X']"),
    (environment_of, "import os\nos.getenv('X')"),
    (environment_of, "from os import environ"),
]


@pytest.mark.parametrize(("rule", "source"), _BREACHES)
def test_a_second_voice_or_reader_is_caught(rule: Callable[[str], object], source: str) -> None:
    """However it is written."""
    assert rule(source)


# -- how the tree reads ------------------------------------------------------------------------

_ENTRIES: Final = {"app/cli/__init__.py": "the command `strongroom`"}


def beyond_docstring(source: str) -> list[str]:
    """What a package's `__init__` holds beside its docstring, or that it has none."""
    tree = ast.parse(source)
    if ast.get_docstring(tree) is None:
        return ["no docstring"]
    return [type(node).__name__ for node in tree.body[1:]]


def test_a_package_says_what_belongs_in_it_and_holds_nothing() -> None:
    """Every folder of modules is a package with a docstring."""
    folders = {path.parent for path in _APP.rglob("*.py")}
    for folder in folders:
        name = (folder / "__init__.py").relative_to(_ROOT).as_posix()
        if name not in _ENTRIES:
            assert beyond_docstring((_ROOT / name).read_text("utf-8")) == [], name


@pytest.mark.parametrize("source", ["", '"""Text."""\nimport app', "import app", "X = 1"])
def test_a_package_that_holds_something_is_caught(source: str) -> None:
    """Or one without its docstring."""
    assert beyond_docstring(source)


def test_a_module_is_read_in_one_sitting() -> None:
    """At most 400 lines."""
    lengths = {path: source.count("\n") for path, source in _sources().items()}
    assert {p: n for p, n in lengths.items() if n > _LINES_MAX} == {}


_VAGUE: Final = frozenset(
    {"utils", "util", "helpers", "helper", "common", "base", "manager", "misc"}
)


def vague_words(path: str) -> set[str]:
    """Words in a module's or folder's name that say nothing of what is in it."""
    return {word for part in Path(path).with_suffix("").parts for word in part.split("_")} & _VAGUE


def test_modules_are_named_for_what_they_hold() -> None:
    """Data files that name their kind aside."""
    tracked = [path for path in _tracked() if path.endswith(".py")]
    assert {path for path in tracked if vague_words(path)} == set()
    assert vague_words("app/db/base.py") == {"base"}
    assert vague_words("app/web_utils/x.py") == {"utils"}


# The words are put together here, so that this file does not break its own rule.
_FORBIDDEN: Final = re.compile(
    "|".join(
        (
            rf"\b{'TO' + 'DO'}\b",
            rf"\b{'FIX' + 'ME'}\b",
            rf"\b{'pypi'}\.org",
            rf"{'files.python' + 'hosted'}",
            rf"{'/wo' + 'rk/'}(?:main|shared)",
        )
    )
)


def _tracked() -> list[str]:
    """Every file of the repository, and those about to be."""
    done = subprocess.run(
        ["git", "ls-files", "--cached", "--others", "--exclude-standard"],  # noqa: S607 - as in PATH
        check=True,
        capture_output=True,
        text=True,
        cwd=_ROOT,
    )
    return [path for path in done.stdout.splitlines() if (_ROOT / path).is_file()]


def forbidden(text: str) -> list[str]:
    """Words that no file of the repository holds."""
    return _FORBIDDEN.findall(text)


def test_no_file_holds_a_forbidden_word() -> None:
    """Nothing is left to do, and nothing speaks of where it was made."""
    found = {
        path: forbidden((_ROOT / path).read_text("utf-8", errors="replace")) for path in _tracked()
    }
    assert {path: words for path, words in found.items() if words} == {}


@pytest.mark.parametrize(
    "text", ["# " + "TO" + "DO later", "FIX" + "ME", "https://pypi" + ".org/x", "/wo" + "rk/main/x"]
)
def test_a_forbidden_word_is_caught(text: str) -> None:
    """Anywhere in a line."""
    assert forbidden(text)


# -- how the schema reads ----------------------------------------------------------------------

_TABLE: Final = re.compile(
    r"((?:^--[^\n]*\n)*)^CREATE TABLE (\w+) \((.*?)^\)", re.MULTILINE | re.DOTALL
)
_COLUMN: Final = re.compile(
    r"^  ([a-z_]+) (TEXT|INTEGER|BLOB)\b(.*?)(?=^  [a-zA-Z]|\Z)", re.MULTILINE | re.DOTALL
)
_TIME: Final = re.compile(r"(?:^|_)(?:at|since|through|start|end)$")


def unexplained(sql: str) -> list[str]:
    """Tables and columns of a migration whose meaning nobody wrote down.

    A table has a sentence before it or a comment at a column; a time says its unit; bytes say
    what they are; an id without a reference says whose it is.
    """
    found = []
    for before, table, body in _TABLE.findall(sql):
        if not before and "--" not in body:
            found.append(table)
        for column, kind, rest in _COLUMN.findall(body):
            comment = rest.partition("--")[2]
            if kind == "INTEGER" and _TIME.search(column):
                is_told = "unix milliseconds UTC" in comment
            elif kind == "BLOB":
                is_told = bool(comment)
            elif column.endswith("_id"):
                is_told = bool(comment) or "REFERENCES" in rest
            else:
                continue
            found += [] if is_told else [f"{table}.{column}"]
    return found


@pytest.mark.parametrize("bucket", [RUNTIME, REGISTRY, OWNER], ids=lambda bucket: bucket.name)
def test_every_table_is_explained(bucket: Bucket) -> None:
    """Where it is made."""
    scripts = [migration.sql for migration in bucket.migrations]
    assert [name for sql in scripts for name in unexplained(sql)] == []
    assert any(_TABLE.search(sql) for sql in scripts)


@pytest.mark.parametrize(
    ("sql", "name"),
    [
        ("CREATE TABLE odd (\n  name TEXT\n) STRICT;", "odd"),
        (
            "-- Odd.\nCREATE TABLE odd (\n  read_at INTEGER,\n  a TEXT -- a\n) STRICT;",
            "odd.read_at",
        ),
        ("-- Odd.\nCREATE TABLE odd (\n  seen_at INTEGER -- when\n) STRICT;", "odd.seen_at"),
        ("-- Odd.\nCREATE TABLE odd (\n  verifier BLOB\n) STRICT;", "odd.verifier"),
        ("-- Odd.\nCREATE TABLE odd (\n  user_id TEXT NOT NULL\n) STRICT;", "odd.user_id"),
    ],
)
def test_a_table_without_its_meaning_is_caught(sql: str, name: str) -> None:
    """By its name."""
    assert unexplained(sql) == [name]


@pytest.mark.parametrize("bucket", [RUNTIME, REGISTRY, OWNER], ids=lambda bucket: bucket.name)
def test_a_declaration_names_columns_that_are_there(bucket: Bucket) -> None:
    """Every tracked table of the bucket, with its key, fields, payload and transitions."""
    buckets = (RUNTIME,) if bucket is RUNTIME else (RUNTIME, bucket)
    with closing(sqlite.in_memory(clock)) as connection:
        connection.register(OWNER_FUNCTIONS)
        migrations.apply(connection, buckets, NOW)
        for item in bucket.tracked:
            rows = connection.all(f"SELECT name FROM pragma_table_info('{item.table}')")  # noqa: S608 - from the declaration
            columns = {name for (name,) in rows}
            moved = {each.column for each in item.transitions}
            assert {*item.key, *item.watched, *item.payload, *moved} <= columns, item.table
            assert not set(item.payload) & {*item.content, *item.secret}, item.table
    entities = [item.entity for item in bucket.tracked]
    assert len(entities) == len(set(entities))


def test_every_table_with_a_secret_says_so() -> None:
    """Columns that hold wraps and verifiers of passwords are declared secret where tracked."""
    secrets = {
        f"{item.table}.{column}"
        for item in (*REGISTRY.tracked, *OWNER.tracked)
        for column in item.secret
    }
    assert {
        "users.database_password",
        "users.password_hash",
        "key_slots.wrapped_dek",
        "secrets.value",
    } <= secrets
