"""The generated parts of the documents, made from the code; run as a program it writes them."""

import ast
import inspect
import itertools
import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Final

from app.errors.root import StrongroomError
from app.figures import Figures
from app.settings import Settings
from app.web.errors import STATUS
from app.web.rules import RULES, Rule

ROOT: Final = Path(__file__).resolve().parents[2]
_BLOCK: Final = re.compile(r"<!-- made: ([a-z-]+) -->\n(.*?)<!-- end -->", re.DOTALL)
_COLUMN: Final = re.compile(
    r"^  ([a-z_]+) (?:TEXT|INTEGER|BLOB)\b[^\n]*?(?:-- (.+))?$", re.MULTILINE
)
_TABLE: Final = re.compile(r"^CREATE TABLE (\w+) \((.*?)^\)", re.MULTILINE | re.DOTALL)
_TOP: Final = ("app", "tests", "scripts")


def folders() -> str:
    """Each package and what its docstring says belongs there."""
    rows = ["| folder | what belongs there |", "|---|---|"]
    for package in sorted(ROOT.joinpath("app").rglob("__init__.py")):
        text = ast.get_docstring(ast.parse(package.read_text("utf-8"))) or ""
        sentence = " ".join(text.split())
        rows.append(f"| `{package.parent.relative_to(ROOT)}/` | {sentence} |")
    rows += [
        "| `database/` | Run-time data only; git-ignored but for its README. |",
        "| `scripts/` | Short shell programs, each with a line that says what it does. |",
        "| `tests/` | unit (mirrors app), integration, architecture, support. |",
    ]
    return "\n".join(rows)


def _words(rule: Rule) -> str:
    if rule.is_public:
        return "anybody"
    parts = []
    if rule.scope is None:
        parts.append("a person's session")
    elif rule.scope:
        parts.append(f"`{rule.scope}`")
    else:
        parts.append("whoever is signed in")
    if rule.is_recent:
        parts.append("password checked within minutes")
    if rule.capability:
        parts.append(f"capability `{rule.capability}`")
    return ", ".join(parts)


def calls() -> str:
    """Every call and what it asks of its caller."""
    rows = ["| call | open to |", "|---|---|"]
    rows += [f"| `{call}` | {_words(rule)} |" for call, rule in RULES.items()]
    return "\n".join(rows)


def _classes(parent: type[StrongroomError]) -> list[type[StrongroomError]]:
    return [parent, *(c for child in parent.__subclasses__() for c in _classes(child))]


def errors() -> str:
    """Every code an answer can carry, its status and its sentence."""
    sentences = {c.code: (c.__doc__ or "") for c in reversed(_classes(StrongroomError))}
    rows = ["| status | code | |", "|---|---|---|"]
    for code, status in sorted(STATUS.items(), key=lambda item: (item[1], item[0])):
        rows.append(f"| {status} | `{code}` | {sentences[code]} |")
    return "\n".join(rows)


def attribute_docstrings(kind: type) -> Mapping[str, str]:
    """What stands under each attribute in the body of a class.

    The program itself never asks: reading its own source would cost each start a tenth of
    a second.
    """
    (body,) = ast.parse(inspect.getsource(kind)).body
    assert isinstance(body, ast.ClassDef)
    found: dict[str, str] = {}
    for line, following in itertools.pairwise(body.body):
        match line, following:
            case ast.AnnAssign(target=ast.Name(name)), ast.Expr(ast.Constant(str(text))):
                found[name] = inspect.cleandoc(text).replace("\n", " ")
            case _:
                continue
    return found


def settings() -> str:
    """Every setting, its default and what it is."""
    rows = ["| name | default | |", "|---|---|---|"]
    meanings = {**attribute_docstrings(Figures), **attribute_docstrings(Settings)}
    for name, field in Settings.model_fields.items():
        default = "" if field.default_factory or name == "root" else f"`{field.default}`"
        rows.append(f"| `{name}` | {default} | {meanings[name]} |")
    return "\n".join(rows)


def commands() -> str:
    """Every command and what it does."""
    rows = ["| command | what it does |", "|---|---|"]
    for name, sentence in sorted(command_sentences().items()):
        rows.append(f"| `strongroom {name}` | {sentence} |")
    return "\n".join(rows)


def command_sentences() -> Mapping[str, str]:
    """The commands a person may type, with the first sentence of their help."""
    from typer.main import get_command  # noqa: PLC0415 - only here

    from app.cli import build  # noqa: PLC0415 - only here

    found: dict[str, str] = {}

    def walk(command: object, path: str) -> None:
        if getattr(command, "hidden", False):
            return
        children = getattr(command, "commands", None)
        if children is None:
            text = " ".join((getattr(command, "help", "") or "").split())
            found[path] = text.partition(". ")[0].rstrip(".") + "."
            return
        for name, child in children.items():
            walk(child, f"{path} {name}".strip())

    walk(get_command(build()), "")
    return found


def registry_columns() -> str:
    """Every column of the registry and what it can tell, from the comments in its migrations."""
    rows = ["| table | column | what it tells |", "|---|---|---|"]
    for file in sorted(ROOT.joinpath("app/db/registry/migrations").glob("*.sql")):
        for table, body in _TABLE.findall(file.read_text("utf-8")):
            for column, comment in _COLUMN.findall(body):
                rows.append(f"| {table} | {column} | {comment or _PLAIN.get(column, '')} |")
    return "\n".join(rows)


_PLAIN: Final = {
    "id": "names the row",
    "username": "the member's name",
    "display_name": "the name shown",
    "label": "a label, as its maker typed it",
    "version": "how often the row was edited",
}

MAKERS: Final[Mapping[str, Callable[[], str]]] = {
    "folders": folders,
    "calls": calls,
    "errors": errors,
    "settings": settings,
    "commands": commands,
    "registry-columns": registry_columns,
}


def renewed(text: str) -> str:
    """A document with every generated part made anew."""
    return _BLOCK.sub(
        lambda block: f"<!-- made: {block[1]} -->\n{MAKERS[block[1]]()}\n<!-- end -->", text
    )


DOCUMENTS: Final = ("README.md", "ARCHITECTURE.md", "SECURITY.md", "DECISIONS.md")

if __name__ == "__main__":
    for name in DOCUMENTS:
        path = ROOT / name
        path.write_text(renewed(path.read_text("utf-8")), "utf-8")
