"""Serves the console: its pages for those who are logged in, its files, and the headers that protect them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from http import HTTPStatus
from pathlib import Path
from typing import Any
from urllib.parse import quote

import aiohttp_jinja2
import jinja2
import structlog
from aiohttp import hdrs, web
from aiohttp.typedefs import Handler

from agent_core.errors import PhonedeskError
from agent_core.texts import Lang
from bot.app.release import program
from bot.app.server_names import CONSOLE, ServerNames
from bot.channels.web.api.events import HEARTBEAT_SECONDS
from bot.channels.web.app import CONSOLE_PAGE
from bot.channels.web.callers import secret_of
from bot.channels.web.console import chat, customers, knowledge, schedules, statistics, team, work
from bot.channels.web.console.session import LOGIN, Sessions, spoken
from bot.channels.web.console.texts import ConsoleTexts, console_texts
from bot.channels.web.console.visit import Page, Visit
from bot.channels.web.problems import status_of
from bot.desk.actors import Actor, Role
from bot.desk.desk import Desk

log = structlog.get_logger(__name__)

HERE = Path(__file__).parent
PAGES: tuple[Page, ...] = tuple(
    page
    for pages in (
        work.overview,
        chat.chat,
        work.questions,
        work.history,
        customers.answers,
        statistics.statistics,
        knowledge.knowledge,
        schedules.schedules,
        customers.contacts,
        team.people,
        team.settings,
        team.audit,
    )
    for page in pages
)
NAVIGATION: tuple[tuple[str, str, Role], ...] = (
    ("overview", CONSOLE, Role.VIEWER),
    ("chat", f"{CONSOLE}/chat", Role.VIEWER),
    ("questions", f"{CONSOLE}/questions", Role.VIEWER),
    ("history", f"{CONSOLE}/runs", Role.VIEWER),
    ("answers", f"{CONSOLE}/answers", Role.VIEWER),
    ("statistics", f"{CONSOLE}/statistics", Role.VIEWER),
    ("knowledge", f"{CONSOLE}/knowledge", Role.VIEWER),
    ("schedules", f"{CONSOLE}/schedules", Role.VIEWER),
    ("contacts", f"{CONSOLE}/contacts", Role.OPERATOR),
    ("people", f"{CONSOLE}/people", Role.OWNER),
    ("settings", f"{CONSOLE}/settings", Role.OWNER),
    ("audit", f"{CONSOLE}/audit", Role.OWNER),
)
HEADERS = {
    "Content-Security-Policy": (
        "default-src 'self'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'; object-src 'none'"
    ),
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
}


def add_console(
    app: web.Application,
    desk: Desk,
    names: ServerNames,
    lang: Lang = "zh",
    *,
    heartbeat: float = HEARTBEAT_SECONDS,
) -> None:
    """Serve the console.

    names: the hosts whose pages may ask it. lang: the owner's language, for browsers that prefer none.
    heartbeat: seconds between two signs of life in a stream of events.
    """
    aiohttp_jinja2.setup(
        app,
        loader=jinja2.FileSystemLoader(HERE / "templates"),
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        filters={"path": partial(quote, safe="")},  # a part of a path: a slash in a name is no separator
    )
    app.on_response_prepare.append(_protect)
    Sessions(desk, names, lang).add_routes(app)
    chat.ConsoleChat(desk, names, heartbeat=heartbeat).add_to(app)
    console = _Console(desk, lang)
    app.router.add_get(LOGIN, console.log_in)
    for page in PAGES:
        app.router.add_get(page.path, console.shown(page), name=CONSOLE_PAGE if page.path == CONSOLE else None)
    app.router.add_static(f"{CONSOLE}/static", HERE / "static")
    app.router.add_get(CONSOLE + "/{_:.*}", console.shown(Page("", "", "", _nowhere)))


async def _nowhere(visit: Visit) -> Mapping[str, Any]:
    raise web.HTTPNotFound


async def _protect(request: web.Request, response: web.StreamResponse) -> None:
    """Add the headers that keep foreign scripts, frames and caches away."""
    if request.path == CONSOLE or request.path.startswith(f"{CONSOLE}/"):
        response.headers.update(HEADERS)
        is_file = request.path.startswith(f"{CONSOLE}/static/")
        response.headers[hdrs.CACHE_CONTROL] = "no-cache" if is_file else "no-store"


class _Console:
    def __init__(self, desk: Desk, lang: Lang) -> None:
        self._desk = desk
        self._lang = lang

    async def log_in(self, request: web.Request) -> web.Response:
        """Show how to get a link. The link's code is behind the #, so that it is in no log; a script sends it."""
        actor = await self._desk.console.actor_of(secret_of(request))
        words = console_texts(actor.lang) if actor is not None else spoken(request, self._lang)
        return self._render("login.html", request, words, actor, {"program": program()})

    def shown(self, page: Page) -> Handler:
        """Return the handler of a page. Whoever is not logged in gets the log-in page."""

        async def handler(request: web.Request) -> web.StreamResponse:
            actor = await self._desk.console.actor_of(secret_of(request))
            if actor is None:
                raise web.HTTPSeeOther(LOGIN)
            words = console_texts(actor.lang)
            try:
                shown = await page.build(Visit(request, self._desk, replace(actor, looks=True), words))
                return self._render(page.template, request, words, actor, {"nav": page.nav, **shown})
            except web.HTTPNotFound:
                return self._failed(request, words, actor, HTTPStatus.NOT_FOUND, words.own("page.not_found"))
            except PhonedeskError as error:
                return self._failed(request, words, actor, status_of(error), words.error(error))
            except Exception as error:
                log.exception("console_failed", path=request.path, error=repr(error))
                return self._failed(request, words, actor, 500, words.own("page.error"))

        return handler

    def _failed(self, request: web.Request, words: ConsoleTexts, actor: Actor, status: int, said: str) -> web.Response:
        return self._render("failed.html", request, words, actor, {"said": said}, status)

    def _render(
        self,
        template: str,
        request: web.Request,
        words: ConsoleTexts,
        actor: Actor | None,
        shown: Mapping[str, Any],
        status: int = HTTPStatus.OK,
    ) -> web.Response:
        navigation = NAVIGATION if actor is not None else ()
        context = {
            "nav": "",
            "t": words.own,
            "colon": words.get("common.colon"),
            "chat": words.get,
            "person": words.person,
            "operation": words.operation,
            "lang": words.lang,
            "me": actor,
            "my_role": words.get(f"role.{actor.role.value}") if actor is not None else "",
            "my_name": words.person(actor.name) if actor is not None else "",
            "navigation": [(key, path) for key, path, least in navigation if actor and actor.role.covers(least)],
            "console": CONSOLE,
            **shown,
        }
        return aiohttp_jinja2.render_template(template, request, context, status=status)
