"""The fence of types: mypy rejects a call on the wrong store, and SQL that no file holds."""

import ast
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from textwrap import indent
from typing import Final

import pytest

_ROOT: Final = Path(__file__).resolve().parents[2]

_HEAD: Final = """
from app.db.context import Actor
from app.db.owner import statements as owner_sql
from app.db.owner.store import OwnerReader, OwnerStore, OwnerTransactor
from app.db.queries import Statement
from app.db.registry import statements as registry_sql
from app.db.registry.store import RegistryReader, RegistryStore, RegistryTransactor
from app.db.runtime.store import RuntimeReader, RuntimeTransactor
from app.ids import SessionId, UserId


def read_registry(reader: RegistryReader) -> int: return 1
def write_registry(tx: RegistryTransactor) -> int: return 1
def read_owner(reader: OwnerReader) -> int: return 1
def write_owner(tx: OwnerTransactor) -> int: return 1
def read_any(reader: RuntimeReader) -> int: return 1


async def use(
    registry: RegistryStore, owner: OwnerStore, reader: RegistryReader, note_reader: OwnerReader,
    tx: RegistryTransactor, note_tx: OwnerTransactor, any_tx: RuntimeTransactor, actor: Actor,
    user_id: UserId, session_id: SessionId,
) -> None:
"""

_SOUND: Final = """
read_registry(reader)
read_registry(tx)
write_registry(tx)
read_owner(note_tx)
read_any(note_reader)
read_any(reader)
await registry.read(read_registry)
await registry.write(write_registry, actor)
await owner.write(write_owner, actor)
found = await registry.one(registry_sql.FIND_ACCOUNT, user_id=user_id)
if found is not None:
    name: str = found.username
"""

_UNSOUND: Final = [
    pytest.param("read_registry(note_reader)", "arg-type", id="owner's reader in the registry"),
    pytest.param("read_owner(reader)", "arg-type", id="registry's reader in a store"),
    pytest.param("write_owner(tx)", "arg-type", id="registry's transaction in a store"),
    pytest.param("write_registry(note_tx)", "arg-type", id="store's transaction in the registry"),
    pytest.param("write_owner(any_tx)", "arg-type", id="any transaction in a store"),
    pytest.param("write_owner(note_reader)", "arg-type", id="reader that should write"),
    pytest.param("note_reader.run(owner_sql.ADD_NOTE)", "attr-defined", id="reader that writes"),
    pytest.param("await owner.read(read_registry)", "arg-type", id="registry's work on a store"),
    pytest.param("await registry.write(write_owner, actor)", "arg-type", id="store's work there"),
    pytest.param("await owner.read(write_owner)", "arg-type", id="writing work as reading"),
    pytest.param('reader.one("SELECT 1")', "arg-type", id="text for a statement"),
    pytest.param('tx.run(f"DELETE FROM {user_id}")', "arg-type", id="built text"),
    pytest.param('await owner.one("SELECT 1")', "arg-type", id="text on the loop"),
    pytest.param(
        "found = reader.one(registry_sql.FIND_ACCOUNT, user_id=user_id)\nfound.username",
        "union-attr",
        id="row that may be absent",
    ),
    pytest.param(
        "rows = reader.all(registry_sql.LIST_ROLES)\nrows[0].absent", "attr-defined", id="no column"
    ),
    pytest.param("other: UserId = session_id", "assignment", id="another kind of id"),
    pytest.param('other: UserId = "x"', "assignment", id="bare text for an id"),
]


@pytest.fixture(scope="module")
def errors(tmp_path_factory: pytest.TempPathFactory) -> Mapping[str, list[str]]:
    """What mypy, set as for the project, says of each piece of code; one run for all."""
    folder = tmp_path_factory.mktemp("types")
    bodies = [_SOUND, *(str(case.values[0]) for case in _UNSOUND)]
    for number, body in enumerate(bodies):
        text = _HEAD + indent(body.strip(), "    ") + "\n"
        (folder / f"snippet_{number}.py").write_text(text)
    done = subprocess.run(  # noqa: S603 - the project's own tool
        [
            *(sys.executable, "-m", "mypy", *map(str, sorted(folder.glob("*.py")))),
            f"--config-file={_ROOT / 'pyproject.toml'}",
            f"--cache-dir={folder / 'cache'}",
            "--no-error-summary",
        ],
        check=False,
        capture_output=True,
        text=True,
        cwd=_ROOT,
    )
    assert done.returncode == 1, done.stderr
    lines = done.stdout.splitlines()
    return {
        body: [line for line in lines if f"snippet_{number}.py" in line and "error" in line]
        for number, body in enumerate(bodies)
    }


def test_code_that_keeps_to_its_store_is_accepted(errors: Mapping[str, list[str]]) -> None:
    """A transactor reads as well; either bucket's reader is one of the system tables."""
    assert errors[_SOUND] == []


@pytest.mark.parametrize(("body", "code"), _UNSOUND)
def test_code_on_the_wrong_store_is_rejected(
    errors: Mapping[str, list[str]], body: str, code: str
) -> None:
    """By its type, before it ever runs."""
    assert any(f"[{code}]" in line for line in errors[body])


def constructions(source: str) -> list[int]:
    """Lines that make a Statement by hand."""
    return [
        node.lineno
        for node in ast.walk(ast.parse(source))
        if isinstance(node, ast.Call)
        and (
            (isinstance(node.func, ast.Name) and node.func.id == "Statement")
            or (isinstance(node.func, ast.Attribute) and node.func.attr == "Statement")
            or (isinstance(node.func, ast.Subscript) and "Statement" in ast.unparse(node.func))
        )
    ]


def test_statements_are_made_where_files_are_read() -> None:
    """And nowhere else in the program."""
    makers = {
        path.relative_to(_ROOT).as_posix()
        for path in (_ROOT / "app").rglob("*.py")
        if constructions(path.read_text("utf-8"))
    }
    assert makers == {"app/db/queries.py"}


@pytest.mark.parametrize(
    "source",
    [
        'Statement("x", "SELECT 1", Row, {})',
        'queries.Statement("x", "SELECT 1", Row, {})',
        'Statement[Row]("x", "SELECT 1", Row, {})',
    ],
)
def test_a_statement_made_by_hand_is_caught(source: str) -> None:
    """However it is written."""
    assert constructions(source) == [1]
