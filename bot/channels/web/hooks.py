"""Incoming webhooks over HTTP: signed messages that start a run or answer a question.

A message is named by its ``webhook-id``. If it comes again, nothing is done twice: a run's request is stored under that
name, and a question takes one answer.
"""

from __future__ import annotations

from http import HTTPStatus
from typing import Annotated

import structlog
from aiohttp import hdrs, web
from pydantic import Field, ValidationError

from agent_core.errors import PhonedeskError
from bot.app.request_body import body_of
from bot.channels.web.api.operations import ApiCall, Line, Text, Wish
from bot.channels.web.api.questions import ApiNewAnswer, answer_question
from bot.channels.web.api.runs import ApiNewRun, start_run
from bot.channels.web.problems import problem, problem_of, problem_of_input
from bot.desk.desk import Desk
from bot.desk.incoming_webhooks import Sender
from bot.desk.webhook_messages import ID

PATH = "/hooks/{name}"
MAX_BODY = 64 * 1024  # bytes

log = structlog.get_logger(__name__)


class RunMessage(Wish):
    """A task in plain words. ``device``: a serial or a name; "" for the default one."""

    task: Annotated[Text, Field(min_length=1)]
    device: Line = ""


class AnswerMessage(Wish):
    """An answer to the question with this id: the value of one of its choices, or own words."""

    question: Annotated[Line, Field(min_length=1)]
    choice: Line = ""
    text: Text = ""


def add_hooks(app: web.Application, desk: Desk) -> None:
    """Serve incoming webhooks."""

    async def receive(request: web.Request) -> web.Response:
        try:
            body = await body_of(request, MAX_BODY)
            sender = await desk.incoming.sender(request.match_info["name"], request.headers, body)
            if sender is None:
                said = "This message is not signed by the secret of an incoming webhook of this name."
                return problem(HTTPStatus.UNAUTHORIZED, "unauthorized", said)
            done = await (_start(desk, sender, body) if sender.may == "run" else _answer(desk, sender, body))
        except ValidationError as error:
            return problem_of_input(error, "body")
        except PhonedeskError as error:
            return problem_of(error)
        except web.HTTPRequestEntityTooLarge as error:
            return problem(error.status, "too_large", f"The body is too large: at most {MAX_BODY} bytes.")
        except web.HTTPRequestTimeout as error:
            return problem(error.status, "too_slow", "The body took too long.")
        except Exception as error:
            log.exception("hook_failed", error=repr(error))
            said = "Something went wrong here. The log of the server says what."
            return problem(HTTPStatus.INTERNAL_SERVER_ERROR, "error", said)
        return web.json_response(done, headers={hdrs.CACHE_CONTROL: "no-store"})

    async def refuse(_: web.Request) -> web.Response:
        said = "This path is for POST."
        return problem(HTTPStatus.METHOD_NOT_ALLOWED, "method_not_allowed", said, headers={hdrs.ALLOW: "POST"})

    app.router.add_post(PATH, receive)
    app.router.add_route("*", PATH, refuse)


async def _start(desk: Desk, sender: Sender, body: bytes) -> dict[str, str]:
    wish = RunMessage.model_validate_json(body)
    call = ApiCall(desk, sender.actor, sender.key, key_header=ID)
    run = await start_run(call, ApiNewRun(task=wish.task, device=wish.device))
    return {"run": run.id}


async def _answer(desk: Desk, sender: Sender, body: bytes) -> dict[str, str]:
    wish = AnswerMessage.model_validate_json(body)
    answer = ApiNewAnswer(choice=wish.choice, text=wish.text)
    outcome = await answer_question(ApiCall(desk, sender.actor, sender.key), wish.question, answer)
    return {"question": wish.question, "answer": outcome.answer}
