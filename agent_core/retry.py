"""How often what is tried again. Retries never repeat what may have taken effect without looking first.

Acts on a phone go by the row of ``ActionFailed``, and only where it is sure that nothing was done (see ``acting``).

The waits of one call come to 10 s at most, ``Retry-After`` excepted.
"""

from __future__ import annotations

import asyncio
import math
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import TypeVar

from agent_core import errors

Sleep = Callable[[float], Awaitable[None]]


@dataclass(frozen=True)
class RetryRule:
    """``delays`` in seconds before the second, third … try."""

    delays: tuple[float, ...] = ()


# The first class of an error's method resolution order that stands here decides.
RETRIES: dict[type[BaseException], RetryRule] = {
    errors.ConfigError: RetryRule(),
    errors.DeviceOffline: RetryRule((1, 2, 4)),
    errors.DeviceUnauthorized: RetryRule(),
    errors.AppNotFound: RetryRule(),
    errors.InputDenied: RetryRule(),
    errors.ScreenOff: RetryRule(),
    errors.LeaseLost: RetryRule(),
    errors.DeviceError: RetryRule((1, 2)),
    errors.ModelTimeout: RetryRule((2, 4)),
    errors.ModelUnreachable: RetryRule((2, 4)),
    errors.ModelSpent: RetryRule(),
    errors.ModelQuota: RetryRule((2, 4)),
    errors.ModelError: RetryRule(),
    errors.ActionFailed: RetryRule((1,)),
    errors.ActionError: RetryRule(),
    errors.SecurityError: RetryRule(),
    errors.KnowledgeUnreachable: RetryRule((1, 2)),
    errors.KnowledgeError: RetryRule(),
}


def rule_for(error: BaseException) -> RetryRule:
    """The rule of the nearest class of ``error`` in the table; none for a stranger."""
    for cls in type(error).__mro__:
        if cls in RETRIES:
            return RETRIES[cls]
    return RetryRule()


T = TypeVar("T")


async def with_retries(
    call: Callable[[], Awaitable[T]],
    *,
    sleep: Sleep = asyncio.sleep,
    patience: Callable[[], float] = lambda: math.inf,
) -> T:
    """Run ``call`` and try again by the table. Only for calls that are safe to repeat.

    A pause that is longer than ``patience`` (seconds) at that moment is not made: the error is raised.

    What was tried again further down is not tried again here: retries do not multiply.

    An error with an attribute ``retry_after`` (seconds, or None) is waited for that long instead of the table's delay.
    """
    tries = 0
    while True:
        try:
            return await call()
        except errors.PhonedeskError as error:
            delays = rule_for(error).delays
            if tries >= len(delays) or error.retried:
                error.retried = True
                raise
            asked: float | None = getattr(error, "retry_after", None)
            wait = delays[tries] if asked is None else asked
            if wait > patience():
                error.retried = True
                raise
            await sleep(wait)
            tries += 1
