"""Logging in to the console and out of it, and its language, over HTTP."""

from __future__ import annotations

from http import HTTPStatus
from typing import Annotated, Literal

from aiohttp import hdrs, web
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from agent_core.errors import PhonedeskError
from agent_core.texts import Lang, language_of
from bot.app.request_body import body_of
from bot.app.server_names import CONSOLE, ServerNames
from bot.channels.web.callers import COOKIE, COOKIE_SECONDS, forged, refusal_of_page, secret_of
from bot.channels.web.console.texts import ConsoleTexts, console_texts
from bot.channels.web.problems import problem_of, problem_of_input
from bot.desk.console import MAX_SECRET
from bot.desk.desk import Desk

LOGIN = CONSOLE + "/login"
MOST_BODY = 1000  # bytes, of a log-in or a change of language


class _Login(BaseModel):
    model_config = ConfigDict(extra="forbid")
    code: Annotated[str, Field(min_length=1, max_length=MAX_SECRET)]


class _Language(BaseModel):
    model_config = ConfigDict(extra="forbid")
    lang: Literal["zh", "en"]


def spoken(request: web.Request, usual: Lang) -> ConsoleTexts:
    """Return the texts for a stranger: in the language that their browser prefers, else in ``usual``."""
    preferred = request.headers.get(hdrs.ACCEPT_LANGUAGE, "").partition(",")[0].partition(";")[0].strip()
    return console_texts(usual if preferred in ("", "*") else language_of(preferred))


class Sessions:
    """The requests that begin, change and end a session. Each must come from a script of the console."""

    def __init__(self, desk: Desk, names: ServerNames, lang: Lang) -> None:
        self._desk = desk
        self._names = names
        self._lang = lang

    def add_routes(self, app: web.Application) -> None:
        app.router.add_post(LOGIN, self._log_in)
        app.router.add_post(CONSOLE + "/logout", self._log_out)
        app.router.add_post(CONSOLE + "/language", self._speak)

    def _refusal(self, request: web.Request) -> web.Response | None:
        return refusal_of_page(request, self._names) or forged(request, self._names)

    async def _log_in(self, request: web.Request) -> web.Response:
        if (refusal := self._refusal(request)) is not None:
            return refusal
        try:
            login = _Login.model_validate_json(await body_of(request, MOST_BODY))
        except ValidationError as error:
            return problem_of_input(error, "body", spoken(request, self._lang))
        try:
            begun = await self._desk.console.log_in(login.code, spoken(request, self._lang).lang)
        except PhonedeskError as error:
            return problem_of(error, spoken(request, self._lang))
        response = web.json_response({"name": begun.actor.name})
        response.set_cookie(
            COOKIE,
            begun.secret,
            max_age=COOKIE_SECONDS,
            httponly=True,
            samesite="Strict",
            # The browser says how it reaches us, also through a proxy that speaks plain HTTP with us.
            secure=self._names.is_secret(request.headers.get(hdrs.ORIGIN, "")),
        )
        return response

    async def _log_out(self, request: web.Request) -> web.Response:
        if (refusal := self._refusal(request)) is not None:
            return refusal
        await self._desk.console.log_out(secret_of(request))
        response = web.json_response({})
        response.del_cookie(COOKIE, httponly=True, samesite="Strict")
        return response

    async def _speak(self, request: web.Request) -> web.Response:
        if (refusal := self._refusal(request)) is not None:
            return refusal
        try:
            lang = _Language.model_validate_json(await body_of(request, MOST_BODY)).lang
        except ValidationError as error:
            return problem_of_input(error, "body", spoken(request, self._lang))
        if await self._desk.console.actor_of(secret_of(request)) is None:
            return web.json_response({}, status=HTTPStatus.UNAUTHORIZED)
        await self._desk.console.speak(secret_of(request), lang)
        return web.json_response({})
