"""Operations that run to their end."""

import asyncio

import pytest

from app import telemetry
from app.bridge.operations import Operations
from app.errors.stores import StoreBusyError


def test_a_cancelled_wait_cuts_nothing() -> None:
    """Who asked may go; the operation ends by itself, and a stop waits for it."""

    async def main() -> None:
        operations, go, done = Operations(), asyncio.Event(), asyncio.Event()

        async def work() -> None:
            await go.wait()
            done.set()

        waiting = asyncio.create_task(operations.run(work()))
        await asyncio.sleep(0)
        waiting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await waiting
        assert not done.is_set()
        go.set()
        await operations.settle()
        assert done.is_set()

    asyncio.run(main())


def test_an_operation_answers_who_waits() -> None:
    """With what it returns or raises."""

    async def main() -> None:
        operations = Operations()

        async def fine() -> int:
            return 7

        async def bad() -> int:
            raise LookupError

        assert await operations.run(fine()) == 7
        with pytest.raises(LookupError):
            await operations.run(bad())

    asyncio.run(main())


@pytest.mark.parametrize(
    ("error", "told"),
    [
        pytest.param(LookupError(), ["operation"], id="a fault is on record"),
        pytest.param(StoreBusyError(), [], id="a refusal is no fault"),
    ],
)
def test_how_an_operation_failed_is_not_lost_with_its_asker(
    error: Exception, told: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Once, by its name, as soon as it ends."""
    heard: list[str] = []
    monkeypatch.setattr(telemetry, "unexpected", lambda where, _error: heard.append(where))

    async def main() -> None:
        operations = Operations()

        async def bad() -> int:
            await asyncio.sleep(0)
            raise error

        waiting = asyncio.create_task(operations.run(bad()))
        await asyncio.sleep(0)
        waiting.cancel()
        await asyncio.gather(waiting, return_exceptions=True)
        await operations.settle()
        await asyncio.sleep(0)

    asyncio.run(main())
    assert heard == told
