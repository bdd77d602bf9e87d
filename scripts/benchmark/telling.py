"""How fast what is owed to a webhook is sent: claimed, posted to this box, marked."""

import asyncio
import tempfile
import time
from pathlib import Path
from typing import Final

from pydantic import JsonValue

from app.bridge import commands, start
from app.bridge.notifications import deliveries as words
from app.bridge.strongroom import Strongroom
from app.crypto import signatures
from app.crypto.kdf import KdfParams
from app.db.context import system_actor
from app.db.owner.store import OwnerTransactor
from app.owner import notes
from app.runtime import deliveries, subscriptions
from app.runtime.subscriptions import NewWebhook
from app.settings import Settings
from app.worker.deliveries import Deliveries
from scripts.benchmark.cases import Bench
from scripts.benchmark.meter import Figures

_ACTOR: Final = system_actor("bench")
_OWED: Final = 200
_CHEAP: Final = KdfParams(memory_kib=64, time_cost=1)
_ANSWER: Final = b"HTTP/1.1 204 No Content\r\ncontent-length: 0\r\nconnection: close\r\n\r\n"
_LOOK_S: Final = 0.02


def telling(bench: Bench) -> None:
    """(w): a webhook on this box is told of notes, from one store."""
    figures = Figures("w: a delivery to this box", 1)
    with tempfile.TemporaryDirectory() as folder:
        settings = Settings(root=Path(folder), webhook_networks=("127.0.0.0/8",))
        start.prepare(settings, kdf_params=_CHEAP)
        asyncio.run(_measure(settings, figures, bench.effort.rounds))
    bench.report.figures.append(figures)


async def _measure(settings: Settings, figures: Figures, rounds: int) -> None:
    server = await asyncio.start_server(_take, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    async with server, start.running(settings, kdf_params=_CHEAP) as room:
        url = f"http://127.0.0.1:{port}/"
        new: dict[str, JsonValue] = {
            "username": "bench",
            "password": "a fine long password",
            "encrypted": False,
        }
        made = await commands.perform(room, "user.add", new)
        user = made["user"]
        maker = str(user["id"]) if isinstance(user, dict) else ""
        await room.stores.group.write(lambda tx: _subscribe(tx, room, url, maker), _ACTOR)
        for turn in range(rounds):
            await room.stores.group.write(lambda tx, turn=turn: _owe(tx, turn), _ACTOR)  # type: ignore[misc] # one for each
            await _round(room, figures)


async def _take(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    await reader.readuntil(b"\r\n\r\n")
    writer.write(_ANSWER)
    await writer.drain()
    writer.close()
    await writer.wait_closed()


def _subscribe(tx: OwnerTransactor, room: Strongroom, url: str, maker: str) -> None:
    webhook_id = tx.new_id()
    secret = words.kept_secret(room, webhook_id, signatures.new_secret(), is_under_key=False)
    new = NewWebhook(url, ["memory_doc.*"], include_content=False, description=None)
    subscriptions.add_webhook(tx, new, webhook_id, secret, maker, 9)


def _owe(tx: OwnerTransactor, turn: int) -> None:
    for number in range(_OWED):
        notes.put_note(tx, f"{turn}/{number}.md", "x", "bench", notes.Condition())


async def _round(room: Strongroom, figures: Figures) -> None:
    """Send all that is owed; a figure is one delivery's share."""
    began, spent = time.perf_counter(), time.process_time()
    sender = Deliveries(room, ())
    loop = asyncio.create_task(sender.run())
    group = room.stores.group
    while await group.watch(lambda reader: deliveries.next_due_at(reader, 1)):  # noqa: ASYNC110 - as a client would
        await asyncio.sleep(_LOOK_S)
    took = time.perf_counter() - began
    await sender.close()
    await loop
    figures.micros.append(int(took / _OWED * 1e6))
    figures.rates.append(_OWED / took)
    figures.cpu_us.append((time.process_time() - spent) / _OWED * 1e6)
