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
    """Run ``call`` with its retries; ``patience`` as in ``with_retries``.

    ``failed`` is told of each try that failed; a limit of ours is none.
    """

    async def once() -> T:
        try:
            return await call()
        except ModelError as error:
            if not isinstance(error, ModelLimit):
                failed(error)
            raise

    return await with_retries(once, sleep=sleep, patience=patience)
