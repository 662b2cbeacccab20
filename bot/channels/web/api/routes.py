"""Serves the operations: who asks, what they ask for, and the answer or the problem."""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, Iterable
from http import HTTPStatus

import structlog
from aiohttp import hdrs, web
from aiohttp.typedefs import Handler
from pydantic import BaseModel, ValidationError

from agent_core.errors import PhonedeskError
from bot.app.request_body import body_of
from bot.app.server_names import ServerNames
from bot.channels.chat.texts import Texts, texts
from bot.channels.web.api import (
    answers,
    contacts,
    devices,
    events,
    keys,
    knowledge,
    people,
    questions,
    runs,
    schedules,
    statistics,
    sweeps,
    webhooks,
)
from bot.channels.web.api.events import HEARTBEAT_SECONDS, EventStreams
from bot.channels.web.api.openapi import document
from bot.channels.web.api.operations import LONGEST_KEY, ApiCall, JpegPicture, Operation, Stream
from bot.channels.web.app import API as API_PATH
from bot.channels.web.app import MAX_BODY
from bot.channels.web.callers import caller_of, refusal_of_page
from bot.channels.web.problems import CHALLENGE, problem, problem_of, problem_of_input
from bot.desk.actors import Actor
from bot.desk.context import API, CONSOLE
from bot.desk.desk import Desk
from bot.desk.request_limits import Notebook
from storage.engine import Database
from storage.people import Audit

log = structlog.get_logger(__name__)

OPERATIONS: tuple[Operation, ...] = tuple(
    operation
    for subject in (
        runs,
        questions,
        answers,
        schedules,
        sweeps,
        devices,
        contacts,
        knowledge,
        events,
        keys,
        people,
        webhooks,
        statistics,
    )
    for operation in subject.operations
)
_EVENT_ID = re.compile(r"[0-9]{1,18}")
Answer = Callable[[web.Request, Actor], Awaitable[web.StreamResponse]]


def add_api(
    app: web.Application, desk: Desk, db: Database, names: ServerNames, *, heartbeat: float = HEARTBEAT_SECONDS
) -> None:
    """Serve the API and its OpenAPI document.

    names: the hosts whose pages may call it. heartbeat: seconds between two signs of life in a stream of events.
    """
    streams = EventStreams(desk, heartbeat=heartbeat)
    app.on_shutdown.append(streams.end)
    described = document(OPERATIONS)

    async def describe(_: web.Request, __: Actor) -> web.StreamResponse:
        return web.json_response(described)

    async def nowhere(_: web.Request, __: Actor) -> web.StreamResponse:
        raise web.HTTPNotFound

    known = _Known(desk, db, names)
    app.router.add_get("/openapi.json", known.only(describe))
    for operation in OPERATIONS:
        answer = _answering(operation, desk, streams)
        app.router.add_route(operation.verb, operation.path, known.only(answer, body=operation.body))
    for path, verbs in _verbs_of(OPERATIONS).items():
        app.router.add_route("*", path, known.only(_other_verb(verbs)))
    app.router.add_route("*", API_PATH + "/{_:.*}", known.only(nowhere))


def _verbs_of(operations: Iterable[Operation]) -> dict[str, list[str]]:
    verbs: dict[str, list[str]] = {}
    for operation in operations:
        verbs.setdefault(operation.path, []).append(operation.verb)
    return verbs


def _other_verb(verbs: list[str]) -> Answer:
    async def refuse(request: web.Request, _: Actor) -> web.StreamResponse:
        raise web.HTTPMethodNotAllowed(request.method, sorted(verbs))

    return refuse


class _Known:
    """Lets those with an API key in. Nobody else learns anything, not even which paths there are."""

    def __init__(self, desk: Desk, db: Database, names: ServerNames) -> None:
        self._desk = desk
        self._db = db
        self._names = names
        self._audit = Audit(db)
        self._notebook = Notebook()

    def only(self, answer: Answer, *, body: type[BaseModel] | None = None) -> Handler:
        """Return the handler of what is for known callers.

        body: what a request takes, so that an error can name its field.
        """

        async def handled(request: web.Request) -> web.StreamResponse:
            try:
                return await self._answered(request, answer, body)
            except ValidationError:
                raise
            except PhonedeskError as error:
                return problem_of(error)
            except web.HTTPException as error:
                return _refusal(error)
            except Exception as error:
                log.exception("api_failed", path=request.path, error=repr(error))
                said = "Something went wrong here. The log of the server says what."
                return problem(HTTPStatus.INTERNAL_SERVER_ERROR, "error", said)

        return handled

    async def _answered(self, request: web.Request, answer: Answer, body: type[BaseModel] | None) -> web.StreamResponse:
        if (refusal := refusal_of_page(request, self._names)) is not None:
            return refusal
        header = request.headers.get(hdrs.AUTHORIZATION, "")
        actor = await caller_of(request, self._desk)
        if actor is None:
            if header and self._notebook.takes(API, self._db.now()):
                await self._audit.write(API, API, "api key", {"why": "unknown key"}, allowed=False)
            said = "This API key is not known: it is wrong, or was removed." if header else "An API key is needed."
            return problem(HTTPStatus.UNAUTHORIZED, "unauthorized", said, headers=CHALLENGE)
        words = _words_of(actor)
        try:
            return await answer(request, actor)
        except PhonedeskError as error:
            return problem_of(error, words, fields=body.model_fields if body is not None else ())
        except web.HTTPException as error:
            return _refusal(error, words)


def _words_of(actor: Actor) -> Texts | None:
    """Return the words of a person at the console; None for a program, which is answered in English."""
    return texts(actor.lang) if actor.channel == CONSOLE else None


def _refusal(error: web.HTTPException, words: Texts | None = None) -> web.Response:
    """Return what aiohttp or our reading of a body has refused, as a problem.

    words: as in ``problem_of``.
    """
    kinds = {404: "no_such_path", 405: "method_not_allowed", 408: "too_slow", 413: "too_large"}
    said = {
        404: "There is no such path. /openapi.json has all of them.",
        405: "This path is not for this method.",
        408: "The body took too long.",
        413: f"The body is too large: at most {MAX_BODY} bytes.",
    }
    headers = {str(hdrs.ALLOW): error.headers[hdrs.ALLOW]} if hdrs.ALLOW in error.headers else None
    detail = said.get(error.status, error.reason)
    if words is not None:
        detail = words.get("request.too_large", most=MAX_BODY) if error.status == 413 else words.get("request.refused")
    return problem(error.status, kinds.get(error.status, "refused"), detail, headers=headers)


def _answering(operation: Operation, desk: Desk, streams: EventStreams) -> Answer:
    """Return the handler of an operation."""

    async def answer(request: web.Request, actor: Actor) -> web.StreamResponse:
        wanted: dict[str, object] = {name: request.match_info[name] for name in operation.in_path}
        if operation.query is not None:
            try:
                wanted["query"] = _read_query(operation.query, request)
            except ValidationError as error:
                return problem_of_input(error, "query", _words_of(actor))
        elif request.query:
            return problem(400, "invalid_request", "This path takes no query.", field="query")
        if operation.body is not None:
            try:
                wanted["body"] = operation.body.model_validate_json(await body_of(request, MAX_BODY))
            except ValidationError as error:
                return problem_of_input(error, "body", _words_of(actor))
        key = request.headers.get("Idempotency-Key", "") if operation.once else ""
        if len(key) > LONGEST_KEY:
            said = f"An Idempotency-Key has at most {LONGEST_KEY} characters."
            return problem(400, "invalid_request", said, field="Idempotency-Key")
        named = f"{actor.id}:{operation.name}:{key}" if key else ""
        last = request.headers.get("Last-Event-ID", "") if operation.returns is Stream else ""
        if last and not _EVENT_ID.fullmatch(last):
            return problem(400, "invalid_request", "A Last-Event-ID is the id of an event.", field="Last-Event-ID")
        call = ApiCall(desk, actor, named, int(last) if last else None)
        answered = await operation.function(call, **wanted)
        if isinstance(answered, Stream):
            return await streams.answer(request, answered.events)
        if isinstance(answered, JpegPicture):
            headers = {hdrs.CACHE_CONTROL: "no-store", "X-Content-Type-Options": "nosniff"}
            return web.Response(body=answered.jpeg, content_type="image/jpeg", headers=headers)
        return web.Response(
            text=answered.model_dump_json(), status=operation.status, content_type="application/json",
            headers={hdrs.CACHE_CONTROL: "no-store"},
        )  # fmt: skip

    return answer


def _read_query(query: type[BaseModel], request: web.Request) -> BaseModel:
    """Return the query as its model. A name that is given several times is a list, and an error where none is meant."""
    given = {name: request.query.getall(name) for name in request.query}
    return query.model_validate({name: values[0] if len(values) == 1 else values for name, values in given.items()})
