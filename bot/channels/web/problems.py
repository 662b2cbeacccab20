"""Errors over HTTP: their status, and the body that the HTTP API gives them (RFC 9457, problem details)."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Literal

from aiohttp import web
from pydantic import BaseModel, Field, ValidationError

from agent_core.errors import (
    ConfigError,
    DeviceError,
    InputRejected,
    KnowledgeError,
    ModelError,
    PhonedeskError,
    RateLimited,
)
from bot.app.settings.loading import UNKNOWN, problems_of
from bot.channels.chat.command_names import for_programs
from bot.channels.chat.texts import Texts
from bot.desk.actors import AccessDenied, BadRequest, Conflict, NotFound
from scheduler.runs.lease import PhoneTakenOver

CONTENT_TYPE = "application/problem+json"
CHALLENGE = {"WWW-Authenticate": 'Bearer realm="phonedesk"'}  # goes with each 401
# The first that fits decides.
_STATUSES: tuple[tuple[type[PhonedeskError], int], ...] = (
    (AccessDenied, 403),
    (RateLimited, 429),
    (NotFound, 404),
    (Conflict, 409),
    (PhoneTakenOver, 409),
    (InputRejected, 400),
    (BadRequest, 400),
    (ConfigError, 503),
    (DeviceError, 503),
    (ModelError, 503),
    (KnowledgeError, 503),
)

# The field of a body that an error is about, by the error's key. Those of times begin with "schedule_".
_FIELDS: Mapping[str, str] = {
    "bad_schedule": "expression",
    "time_over": "expression",
    "regular_hours": "start",
    "regular_days": "days",
    "regular_every": "every",
    "bad_zone": "timezone",
    "bad_quiet": "quiet",
    "no_phone": "device",
    "sweep_nobody": "contacts",
    "no_contact_name": "contacts",
    "too_many_contacts": "contacts",
    "no_tag": "tags",
    "bad_name": "name",
    "contact_there": "name",
    "bad_number": "number",
    "bad_tag": "tags",
    "long_note": "note",
    "entry_there": "question",
}
_NOT_OF_TIMES = {"schedule_there", "schedule_changed"}


class Problem(BaseModel):
    """What went wrong.

    type: names the kind of error for programs; it never changes. title: what HTTP calls the status.
    detail: what is wrong and what to do, for people. field: the field of the request that it is about.
    """

    type: str = Field(examples=["desk.not_found"])
    title: str = Field(examples=["Not Found"])
    status: int = Field(ge=400, le=599)
    detail: str
    field: str = ""


def status_of(error: PhonedeskError) -> int:
    """Return the HTTP status of an error; 500 for one that is nobody's fault but ours."""
    return next((status for kind, status in _STATUSES if isinstance(error, kind)), 500)


def problem(
    status: int, kind: str, detail: str, *, field: str = "", headers: Mapping[str, str] | None = None
) -> web.Response:
    """Return an error as a response."""
    title = web.Response(status=status).reason or ""
    body = Problem(type=kind, title=title, status=status, detail=detail, field=field)
    return web.Response(
        text=body.model_dump_json(exclude_defaults=True), status=status, content_type=CONTENT_TYPE, headers=headers
    )


def problem_of(error: PhonedeskError, words: Texts | None = None, *, fields: Collection[str] = ()) -> web.Response:
    """Return one of our errors as a response: in the words of a person's language, or in English for programs.

    For programs its advice names commands of the terminal, not of the chat.
    fields: of the request's body, one of which the error may be about.
    """
    seconds = error.values.get("seconds") if isinstance(error, RateLimited) else None
    headers = {"Retry-After": str(seconds)} if seconds is not None else None
    said = words.error(error) if words is not None else for_programs(str(error))
    field = _field_of(error)
    named = f"body.{field}" if field in fields else ""
    return problem(status_of(error), error.kind, said, field=named, headers=headers)


def _field_of(error: PhonedeskError) -> str:
    """Return the field of a body that an error is about; "" if it is about none."""
    if error.key.startswith("schedule_") and error.key not in _NOT_OF_TIMES:
        return "expression"
    return _FIELDS.get(error.key, "")


def problem_of_input(
    error: ValidationError, place: Literal["body", "query", "path"], words: Texts | None = None
) -> web.Response:
    """Return the first thing that is wrong with a request as a response.

    words: of a person, whose page shows it beside the field; None for a program, which is told the field's name, too.
    """
    field, said = what_is_wrong(error)
    if words is not None:
        detail = _in_words(error, words)
    else:
        detail = f"{field}: {said}" if field else said
    return problem(400, "invalid_request", detail, field=f"{place}.{field}".rstrip("."))


def _in_words(error: ValidationError, words: Texts) -> str:
    """Return the first thing that is wrong in a person's language, as settings tell it."""
    first = problems_of(error)[0]
    if first.kind == UNKNOWN:
        return words.get("config.unknown_field")
    key = f"wrong.{first.kind}"
    is_known = words.find(key, "") and "error" not in first.values  # which is in the library's own words
    return words.get(key if is_known else "wrong.other", **first.values)


def what_is_wrong(error: ValidationError) -> tuple[str, str]:
    """Return the field of the first error, "" for the whole, and what is wrong with it."""
    first = error.errors(include_url=False, include_input=False, include_context=False)[0]
    said = "There is no such field." if first["type"] == "extra_forbidden" else first["msg"]
    return ".".join(str(part) for part in first["loc"]), said
