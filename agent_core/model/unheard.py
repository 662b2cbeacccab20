"""Calls that are given up before their answer has come: the endpoint may have done, and charges for, all of it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import Any

import httpx2
import openai

from agent_core.model.base import Usage
from agent_core.model.tokens import request_tokens
from agent_core.model.usage import Meter

CONNECTING = 0.9  # of the time for an answer: what has no connection by then was sent to nobody
_NOT_SENT = (httpx2.ConnectTimeout, httpx2.PoolTimeout, httpx2.WriteTimeout)


def time_limits(seconds: float) -> httpx2.Timeout:
    """For a client each of whose calls is bounded by ``seconds`` as a whole, or longer."""
    return httpx2.Timeout(seconds, connect=CONNECTING * seconds, pool=CONNECTING * seconds)


@asynccontextmanager
async def counted_unheard(meter: Meter, name: str, sent: Sequence[Mapping[str, Any]], most: int) -> AsyncIterator[None]:
    """Around a call whose answer is ``most`` tokens long at most: where our own time limit or a cancel ends it after it
    was sent, it is counted by a guess from above. What an endpoint says of its own time limits costs nothing.
    """
    try:
        yield
    except (TimeoutError, openai.APITimeoutError, httpx2.TimeoutException, asyncio.CancelledError) as error:
        if not isinstance(error, _NOT_SENT) and not isinstance(error.__cause__, _NOT_SENT):
            guess = Usage(tokens_in=request_tokens(sent), tokens_out=most, guessed=True)
            await meter.count(name, guess)
        raise
