"""The OpenAPI document (version 3.1), made from the operations."""

from __future__ import annotations

import re
from collections.abc import Iterable
from http import HTTPStatus
from typing import Any

from pydantic import BaseModel
from pydantic.json_schema import models_json_schema

from bot.app.release import NAME
from bot.channels.web.api.operations import LONGEST_KEY, JpegPicture, Operation, Stream
from bot.channels.web.problems import CONTENT_TYPE, Problem
from bot.desk.webhook_messages import ID, SIGNATURE, TIMESTAMP, WebhookPayload

ABOUT = "The desk over HTTP. `phonedesk keys add` makes a key; its role and its phones are its rights."
VERSION = "1"  # of the API; what a client of it relies on stays
REF = "#/components/schemas/{model}"
# What may go wrong with any operation: the request, the key, the rights, the name of the server, the pace, a part that
# is away.
EVERYWHERE = (400, 401, 403, 404, 421, 429, 503)
OF_A_BODY = (408, 413)
CONFLICT = 409
KEY = "key"

Json = dict[str, Any]


def document(operations: Iterable[Operation]) -> Json:
    """Return the document as plain data."""
    operations = list(operations)
    schemas = _schemas(operations)
    paths: dict[str, Json] = {}
    for operation in operations:
        paths.setdefault(operation.path, {})[operation.verb.lower()] = _described(operation, schemas)
    return {
        "openapi": "3.1.0",
        "info": {
            "title": NAME,
            "version": VERSION,
            "description": ABOUT,
        },
        "servers": [{"url": "/"}],
        "security": [{KEY: []}],
        "paths": paths,
        "webhooks": {"event": {"post": _of_webhook()}},
        "components": {
            "schemas": schemas,
            "responses": _all_problems(),
            "securitySchemes": {KEY: {"type": "http", "scheme": "bearer"}},
        },
    }


def _schemas(operations: Iterable[Operation]) -> Json:
    """Return the schemas of all models, by name."""
    inputs = {model for each in operations for model in (each.body, each.query) if model is not None}
    outputs = {each.returns for each in operations if issubclass(each.returns, BaseModel)} | {Problem, WebhookPayload}
    wanted = [(model, "validation") for model in inputs] + [(model, "serialization") for model in outputs]
    wanted.sort(key=lambda each: each[0].__name__)
    _, schema = models_json_schema(wanted, ref_template=REF)  # type: ignore[arg-type]
    return dict(sorted(schema["$defs"].items()))


def _described(operation: Operation, schemas: Json) -> Json:
    parameters: list[Json] = [
        {"name": name, "in": "path", "required": True, "schema": {"type": "string", "minLength": 1}}
        for name in re.findall(r"{(\w+)}", operation.path)
    ]
    if operation.query is not None:
        parameters += _of_query(schemas[operation.query.__name__])
    if operation.once:
        said = "Names the request. If it is repeated with the same key, nothing is done twice."
        schema: Json = {"type": "string", "maxLength": LONGEST_KEY}
        parameters.append({"name": "Idempotency-Key", "in": "header", "description": said, "schema": schema})
    if operation.returns is Stream:
        said = "The id of the last event that the client has: the stream goes on after it, as with `after`."
        schema = {"type": "string", "pattern": "^([0-9]{1,18})?$"}
        parameters.append({"name": "Last-Event-ID", "in": "header", "description": said, "schema": schema})
    described: Json = {
        "operationId": operation.name,
        "tags": [operation.subject],
        "summary": operation.summary.rstrip("."),
        "x-role": operation.least.value,
        "responses": {str(operation.status): _answered(operation.returns)} | _problems(operation),
    }
    if operation.description:
        described["description"] = operation.description
    if parameters:
        described["parameters"] = parameters
    if operation.body is not None:
        schema = {"$ref": REF.format(model=operation.body.__name__)}
        described["requestBody"] = {"required": True, "content": {"application/json": {"schema": schema}}}
    return described


def _of_webhook() -> Json:
    """Return the description of what webhooks are sent."""
    string: Json = {"type": "string"}
    about = {
        ID: "Names the message: the same at every attempt.",
        TIMESTAMP: "When the attempt was made, in seconds since 1970.",
        SIGNATURE: "`v1,` and the base64 of an HMAC-SHA256 over `id.timestamp.body`; one for each secret, with spaces.",
    }
    content = {"application/json": {"schema": {"$ref": REF.format(model=WebhookPayload.__name__)}}}
    return {
        "summary": "An event is sent to a webhook",
        "security": [],
        "parameters": [
            {"name": name, "in": "header", "required": True, "description": said, "schema": string}
            for name, said in about.items()
        ],
        "requestBody": {"required": True, "content": content},
        "responses": {"2XX": {"description": "Taken. Anything else is tried again; 410 disables the webhook."}},
    }


def _of_query(schema: Json) -> list[Json]:
    """Return a query's model as parameters."""
    return [
        {
            "name": name,
            "in": "query",
            "required": name in schema.get("required", ()),
            "schema": {key: value for key, value in each.items() if key not in {"title", "description"}},
        }
        | ({"description": each["description"]} if "description" in each else {})
        for name, each in schema["properties"].items()
    ]


def _answered(returns: type[Any]) -> Json:
    if returns is JpegPicture:
        content: Json = {"image/jpeg": {"schema": {"type": "string", "format": "binary"}}}
        return {"description": "A picture.", "content": content}
    if returns is Stream:
        return {
            "description": "Server-sent events: `id`, `event` (the kind) and `data` (an ApiEvent).",
            "content": {"text/event-stream": {"schema": {"type": "string"}}},
        }
    schema = {"$ref": REF.format(model=returns.__name__)}
    return {"description": "Done.", "content": {"application/json": {"schema": schema}}}


def _problems(operation: Operation) -> Json:
    statuses = [*EVERYWHERE, *(OF_A_BODY if operation.body is not None else ())]
    if operation.verb != "GET":
        statuses.append(CONFLICT)
    return {str(each): {"$ref": f"#/components/responses/{each}"} for each in sorted(statuses)}


def _all_problems() -> Json:
    content = {CONTENT_TYPE: {"schema": {"$ref": REF.format(model=Problem.__name__)}}}
    statuses = sorted((*EVERYWHERE, *OF_A_BODY, CONFLICT))
    return {str(each): {"description": HTTPStatus(each).phrase + ".", "content": content} for each in statuses}
