"""Reading the body of a request with bounds of size and time."""

from __future__ import annotations

import asyncio

from aiohttp import web

SECONDS = 10.0  # for the whole body


async def body_of(request: web.Request, most: int, seconds: float = SECONDS) -> bytes:
    """Return the whole body.

    Raises HTTPRequestEntityTooLarge (413) if it has more than ``most`` bytes, and HTTPRequestTimeout (408) if it takes
    longer than ``seconds``, or the client leaves before its end.
    """
    if (request.content_length or 0) > most:
        raise web.HTTPRequestEntityTooLarge(most, request.content_length or 0)
    body = bytearray()
    try:
        async with asyncio.timeout(seconds):
            async for chunk in request.content.iter_any():
                body += chunk
                if len(body) > most:
                    raise web.HTTPRequestEntityTooLarge(most, len(body))
    except (TimeoutError, ConnectionResetError):
        raise web.HTTPRequestTimeout from None
    return bytes(body)
