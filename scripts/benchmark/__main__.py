"""Measure, and print the figures and the promises; python -m scripts.benchmark --help."""

import json
import tempfile
from pathlib import Path
from typing import Annotated, Final

import typer
from rich.console import Console
from rich.table import Table

from scripts.benchmark import cases, costs, record, remembering, telling, working
from scripts.benchmark.cases import Report
from scripts.benchmark.meter import Load
from scripts.benchmark.servers import pin_to_first_core, reference

CASES: Final = {
    "read": cases.read,
    "write": cases.write,
    "search": cases.search,
    "memory-search": remembering.remembering,
    "feed": record.feed,
    "tracking": record.tracking,
    "telling": telling.telling,
    "working": working.working,
    "driver": costs.driver,
    "memory": costs.memory,
}
"""Those that share one furnished room; the last ends it."""
SIGN_IN: Final = "sign-in"


def main(
    *,
    quick: Annotated[bool, typer.Option(help="Less of everything.")] = False,
    only: Annotated[
        list[str] | None, typer.Option(help=f"One of {', '.join([*CASES, SIGN_IN])}.")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="For programs.")] = False,
) -> None:
    """Measure what Strongroom costs against the bare framework and the bare driver."""
    wanted = frozenset(only or [*CASES, SIGN_IN])
    if unknown := wanted.difference(CASES, [SIGN_IN]):
        raise typer.BadParameter(", ".join(sorted(unknown)), param_hint="--only")
    effort = cases.QUICK if quick else cases.FULL
    report = Report()
    # The servers inherit the core; the load has the last one to itself.
    with tempfile.TemporaryDirectory() as folder, Load() as load:
        pin_to_first_core()
        shared = [run for name, run in CASES.items() if name in wanted]
        root = Path(folder, "cheap")
        root.mkdir()
        with reference() as plain:
            if shared:
                with cases.furnished(root, load, plain, effort, report) as bench:
                    for run in shared:
                        run(bench)
        if SIGN_IN in wanted:
            root = Path(folder, "true")
            root.mkdir()
            costs.sign_in(root, report, effort)
    costs.schema(report)
    if as_json:
        typer.echo(json.dumps(_to_dict(report), indent=2))
    else:
        _print(report)


def _to_dict(report: Report) -> dict[str, object]:
    aims = [{**aim._asdict(), "holds": aim.holds} for aim in report.aims]
    return {"figures": [found.to_dict() for found in report.figures], "aims": aims}


def _print(report: Report) -> None:
    figures = Table("case", title="Figures of this machine; only ratios travel")
    for name in ("connections", "requests/s", "p50 us", "p99 us", "CPU us", "errors"):
        figures.add_column(name, justify="right")
    for found in report.figures:
        figures.add_row(*(str(value) for value in found.to_dict().values()))
    aims = Table("promise", title="Promises")
    for name in ("measured", "bound", "holds"):
        aims.add_column(name, justify="right")
    for aim in report.aims:
        sign = ">=" if aim.at_least else "<="
        bound = f"{sign} {aim.bound:g} {aim.unit}"
        aims.add_row(aim.name, f"{aim.measured:.2f}", bound, "yes" if aim.holds else "NO")
    console = Console()
    console.print(figures, aims)


if __name__ == "__main__":
    typer.run(main)
