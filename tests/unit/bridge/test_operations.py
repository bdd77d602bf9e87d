"""Operations that run to their end."""

import asyncio

import pytest

from app.bridge.operations import Operations


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
    """With what it returns or raises; one that failed with nobody waiting is no one's error."""

    async def main() -> None:
        operations = Operations()

        async def fine() -> int:
            return 7

        async def bad() -> int:
            await asyncio.sleep(0)
            raise LookupError

        assert await operations.run(fine()) == 7
        with pytest.raises(LookupError):
            await operations.run(bad())
        waiting = asyncio.create_task(operations.run(bad()))
        await asyncio.sleep(0)
        waiting.cancel()
        await asyncio.gather(waiting, return_exceptions=True)
        await operations.settle()
        await operations.settle()

    asyncio.run(main())
