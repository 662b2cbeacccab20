"""Defines how often each kind of error is retried. Anything that may have taken effect is checked before a retry.

Actions on a phone follow the row of ``ActionFailed``, and only if certainly nothing was done (see ``acting``).

The waits of one call add up to at most 10 s, except for ``Retry-After``.
"""

from __future__ import annotations

import math
from collections.abc import Awaitable, Callable
from typing import TypeVar

import structlog

from agent_core import errors

log = structlog.get_logger(__name__)

Sleep = Callable[[float], Awaitable[None]]


# Seconds before the second, third … try. The first class of the error's method resolution order that is listed decides.
RETRIES: dict[type[BaseException], tuple[float, ...]] = {
    errors.ConfigError: (),
    errors.DeviceOffline: (1, 2, 4),
    errors.DeviceUnauthorized: (),
    errors.AppNotFound: (),
    errors.InputDenied: (),
    errors.ScreenOff: (),
    errors.LeaseLost: (),
    errors.DeviceError: (1, 2),
    errors.ModelTimeout: (2, 4),
    errors.ModelUnreachable: (2, 4),
    errors.ModelSpent: (),
    errors.ModelQuota: (2, 4),
    errors.ModelError: (),
    errors.ActionFailed: (1,),
    errors.ActionError: (),
    errors.SecurityError: (),
    errors.KnowledgeUnreachable: (1, 2),
    errors.KnowledgeError: (),
}


def delays_for(error: BaseException) -> tuple[float, ...]:
    """Return the delays of the nearest class of ``error`` in the table; () for no retries."""
    return next((RETRIES[cls] for cls in type(error).__mro__ if cls in RETRIES), ())


T = TypeVar("T")


async def with_retries(
    call: Callable[[], Awaitable[T]],
    *,
    sleep: Sleep,
    patience: Callable[[], float] = lambda: math.inf,
) -> T:
    """Call ``call`` and retry it by the table. Only for calls that are safe to repeat.

    patience: returns the seconds that may be waited now; before a longer pause the error is raised instead.

    An error that was already retried further down is not retried here, so retries do not multiply. If an error has an
    attribute ``retry_after`` (seconds, or None), that delay replaces the table's.
    """
    tries = 0
    while True:
        try:
            return await call()
        except errors.PhonedeskError as error:
            delays = delays_for(error)
            if tries >= len(delays) or error.retried:
                error.retried = True
                raise
            asked: float | None = getattr(error, "retry_after", None)
            wait = delays[tries] if asked is None else asked
            if wait > patience():
                error.retried = True
                raise
            if isinstance(error, errors.DeviceError):  # it may last: whoever looks on is told why nothing happens
                log.warning("phone_tried_again", error=str(error), kind=error.kind, seconds=wait)
            await sleep(wait)
            tries += 1
