"""`strongroom migrate`: what can be brought to the present version without a member's key."""

from collections.abc import Callable
from typing import Any

import typer
from pydantic import JsonValue

from app.cli import control, supervisor
from app.cli.terminal import AsJson, Root, counting, show_json, telling_errors
from app.settings import Settings


def migrate(root: Root = None, as_json: AsJson = False) -> None:  # noqa: FBT002 - an option
    """Bring system.db and every plain store to the present version now.

    Encrypted stores wait for their next unlock; those whose migration failed before are tried
    again then. Each store is copied beside itself first. Ends with 1 when one of them fails.
    """
    with telling_errors(as_json=as_json):
        settings = Settings.load(root=root)
        with counting("Migrating", as_json=as_json) as progress:
            # Without a server this takes its place, and like its start migrates system.db.
            fleet: dict[str, Any] = control.perform(settings, "migrate.begin", {})
            answer = _migrate_all(settings, progress, fleet)
    if as_json:
        show_json(answer)
    else:
        _show_lines(answer)
    if answer["failed"]:
        raise typer.Exit(supervisor.EXIT_FOUND)


def _migrate_all(
    settings: Settings, progress: Callable[[int, int], None], fleet: dict[str, Any]
) -> dict[str, Any]:
    stores = fleet["stores"]
    done, migrated, failed = 0, 0, list[Any]()
    after: JsonValue = ""
    progress(0, stores)
    while after is not None:
        batch: dict[str, Any] = control.perform(settings, "migrate.next", {"after": after})
        done += batch["done"]
        migrated += batch["migrated"]
        failed += batch["failed"]
        after = batch["next"]
        progress(done, max(done, stores))
    return {
        "version": fleet["present"],
        "migrated": migrated,
        "failed": failed,
        "encrypted_stores": fleet["encrypted"],
        "waiting_stores": fleet["waiting_encrypted"],
        "tried_again": fleet["forgotten"],
    }


def _show_lines(answer: dict[str, Any]) -> None:
    for failure in answer["failed"]:
        typer.echo(f"{failure['user_id']}: {failure['code']}.")
    typer.echo(f"Plain stores brought to version {answer['version']}: {answer['migrated']}.")
    waiting = answer["waiting_stores"]
    if waiting:
        typer.echo(f"Encrypted stores that wait for their next unlock: {waiting}.")
