"""Who asks over HTTP: a program by its key, or a person's browser by the cookie of its session."""

from __future__ import annotations

from http import HTTPStatus
from urllib.parse import urlsplit

from aiohttp import hdrs, web

from bot.app.server_names import ServerNames
from bot.channels.web.problems import problem
from bot.desk.actors import Actor
from bot.desk.desk import Desk
from bot.desk.keys import actor_of_key

COOKIE = "phonedesk_session"
COOKIE_SECONDS = 400 * 24 * 3600  # as long as browsers keep one; the session ends by itself, see storage
REQUESTED_BY = "X-Requested-By"
_LOOKS = ("GET", "HEAD")


async def caller_of(request: web.Request, desk: Desk) -> Actor | None:
    """Return who asks: the actor of the key in the Authorization header, and only without one that of the cookie.

    None if the key or the session is not known, or there is neither.
    """
    if header := request.headers.get(hdrs.AUTHORIZATION, ""):
        return await actor_of_key(desk.context.db, header)
    return await desk.console.actor_of(secret_of(request))


def secret_of(request: web.Request) -> str:
    """Return the secret of the session in the cookie, "" if there is none."""
    return request.cookies.get(COOKIE, "")


def refusal_of_page(request: web.Request, names: ServerNames) -> web.Response | None:
    """Return the answer to a page that may not ask this: one of a foreign origin, or a forged request.

    A browser sends the cookie by itself. So if a request with a cookie changes something, a script of ours must have
    sent it.
    """
    origin = request.headers.get(hdrs.ORIGIN)
    if origin is not None and not names.trusts_page_of(origin):
        return problem(HTTPStatus.FORBIDDEN, "foreign_origin", names.refusal(origin)["message"])
    if request.method in _LOOKS or hdrs.AUTHORIZATION in request.headers or not secret_of(request):
        return None
    return forged(request, names)


def forged(request: web.Request, names: ServerNames) -> web.Response | None:
    """Return the answer to a changing request that no script of ours has sent.

    A cookie is the same for all ports of a host, so SameSite does not tell our pages from those of another server on
    this machine. Sec-Fetch-Site or Origin do, and no page of another origin can send our header: its browser would ask
    first, and nothing here permits it.
    """
    site = request.headers.get("Sec-Fetch-Site")
    if site is not None:
        is_own = site == "same-origin"
    else:
        origin = request.headers.get(hdrs.ORIGIN, "")
        is_own = urlsplit(origin).netloc == request.headers.get(hdrs.HOST) or bool(origin and origin == names.public)
    if is_own and request.headers.get(REQUESTED_BY) == "console":
        return None
    said = f"A browser's request must come from a page of this server, with the header {REQUESTED_BY}: console."
    return problem(HTTPStatus.FORBIDDEN, "forged", said)
