"""Subscribers to a live service's events, as programs write them: they come back when cut off."""

import asyncio
import json
from collections.abc import Mapping
from typing import Any, Final

import httpx

from tests.support.service import LiveService

_PAUSE_S: Final = 0.05
_TIMEOUT_S: Final = 60


class Subscriber:
    """Follows a log, hangs up every so often, and goes on where it was."""

    def __init__(
        self,
        service: LiveService,
        headers: Mapping[str, str],
        hang_up_after: int,
        home: str = "own",
    ) -> None:
        self.seen: list[dict[str, Any]] = []
        """Every event that came, in the order of its coming."""
        self.calls = 0
        """How often it connected."""
        self._service = service
        self._headers = dict(headers)
        self._hang_up_after = hang_up_after
        self._home = home

    @property
    def seqs(self) -> list[int]:
        """The places of what came."""
        return [event["seq"] for event in self.seen]

    async def follow(self) -> None:
        """Until it is cancelled."""
        async with httpx.AsyncClient(timeout=_TIMEOUT_S, trust_env=False) as client:
            while True:
                try:
                    await self._call(client)
                except httpx.HTTPError:
                    # The server is away for a while.
                    await asyncio.sleep(_PAUSE_S)

    async def _call(self, client: httpx.AsyncClient) -> None:
        headers = self._headers
        if self.seen:
            headers = {**headers, "Last-Event-ID": self.seen[-1]["cursor"]}
        url = f"{str(self._service.client.base_url).rstrip('/')}/api/events/stream"
        params = {"home": self._home}
        async with client.stream("GET", url, headers=headers, params=params) as answer:
            if answer.status_code in {502, 503}:
                await asyncio.sleep(_PAUSE_S)
                return
            assert answer.status_code == 200, await answer.aread()
            self.calls += 1
            count = 0
            async for line in answer.aiter_lines():
                if line.startswith("data: {"):
                    self.seen.append(json.loads(line.removeprefix("data: ")))
                    count += 1
                    if count == self._hang_up_after:
                        return
