"""The body of a request to us: bounded in bytes and in time."""

from __future__ import annotations

import asyncio

from aiohttp import web

SECONDS = 10.0  # for the whole body


async def body_of(request: web.Request, most: int, seconds: float = SECONDS) -> bytes:
    """Read it. Raises HTTPRequestEntityTooLarge (413) over ``most`` bytes, HTTPRequestTimeout (408) if it is slow."""
    if (request.content_length or 0) > most:
        raise web.HTTPRequestEntityTooLarge(most, request.content_length or 0)
    body = bytearray()
    try:
        async with asyncio.timeout(seconds):
            async for chunk in request.content.iter_any():
                body += chunk
                if len(body) > most:
                    raise web.HTTPRequestEntityTooLarge(most, len(body))
    except TimeoutError:
        raise web.HTTPRequestTimeout from None
    return bytes(body)
