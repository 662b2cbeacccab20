"""Calls of a model, tried again by the table of ``agent_core.retry``."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TypeVar

from agent_core.errors import ModelError, ModelLimit
from agent_core.retry import Sleep, with_retries

T = TypeVar("T")


async def tried(
    call: Callable[[], Awaitable[T]],
    *,
    sleep: Sleep,
    patience: Callable[[], float],
    failed: Callable[[ModelError], None],
) -> T:
    """``call`` with its retries. A pause that is longer than ``patience`` (seconds) at that moment is not made.

    ``failed`` is told of each try that failed; a limit of ours is none.
    """
    last: ModelError | None = None

    async def once() -> T:
        nonlocal last
        try:
            return await call()
        except ModelError as error:
            last = error
            if not isinstance(error, ModelLimit):
                failed(error)
            raise

    async def pause(seconds: float) -> None:
        if seconds > patience() and last is not None:
            last.retried = True
            raise last
        await sleep(seconds)

    return await with_retries(once, sleep=pause)
