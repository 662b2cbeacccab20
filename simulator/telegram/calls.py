"""From an HTTP request to one of aiogram's method classes, or to a refusal.

The classes are generated from the Bot API's documentation by others, so the accepted calls do not depend on the library
that the bot uses. Telegram itself ignores unknown parameters; here they are refused, because they are always a mistake.
"""

from __future__ import annotations

import json
import types
import typing
from collections.abc import AsyncGenerator
from dataclasses import dataclass, field
from typing import Any

import aiogram.methods
from aiogram.client.default import Default
from aiogram.methods.base import TelegramMethod
from aiogram.types import InputFile
from aiogram.types.base import TelegramObject
from aiohttp import web
from pydantic import BaseModel, ValidationError

from simulator.telegram.rules import MAX_UPLOAD_BYTES, ApiError, refuse


class Upload(InputFile):
    """A file that came with the request."""

    def __init__(self, data: bytes, filename: str, mime: str) -> None:
        super().__init__(filename=filename)
        self.data = data
        self.mime = mime

    async def read(self, bot: object) -> AsyncGenerator[bytes, None]:
        yield self.data


METHODS: dict[str, type[TelegramMethod[Any]]] = {
    cls.__api_method__.lower(): cls
    for name in aiogram.methods.__all__
    if isinstance(cls := getattr(aiogram.methods, name), type)
    and issubclass(cls, TelegramMethod)
    and isinstance(getattr(cls, "__api_method__", None), str)
}


@dataclass
class Call:
    """A checked call: ``name`` as the documentation writes it, ``method`` with its parameters, ``files`` by name."""

    name: str
    method: TelegramMethod[Any]
    files: dict[str, Upload] = field(default_factory=dict)

    def get(self, name: str) -> Any:
        """Return a parameter's value; None if it was left out."""
        value = getattr(self.method, name, None)
        return None if isinstance(value, Default) else value


async def read_call(request: web.Request, name: str) -> Call:
    """Read a call. Raises ApiError if Telegram would refuse the request before it reads its subject."""
    cls = METHODS.get(name.lower())
    if cls is None:
        raise ApiError(404, "Not Found: method not found")
    values, files = await _read_values(request)
    parameters: dict[str, object] = {}
    for key, value in values.items():
        if key not in cls.model_fields:
            raise refuse(f'unknown parameter "{key}" of {cls.__api_method__}')
        parameters[key] = _decoded(key, value, cls.model_fields[key].annotation)
    parameters |= {key: upload for key, upload in files.items() if key in cls.model_fields}
    try:
        method = cls.model_validate(parameters)
    except ValidationError as error:
        raise _complaint(error) from None
    _refuse_unknown(method, cls.__api_method__)
    return Call(cls.__api_method__, method, files)


async def _read_values(request: web.Request) -> tuple[dict[str, object], dict[str, Upload]]:
    values: dict[str, object] = dict(request.query)
    files: dict[str, Upload] = {}
    if request.method == "GET" or not request.can_read_body:
        return values, files
    if request.content_type == "application/json":
        try:
            body = json.loads(await request.text())
        except ValueError:
            raise refuse("can't parse JSON object") from None
        if not isinstance(body, dict):
            raise refuse("expected an Object in the request body")
        return values | body, files
    if request.content_type not in {"application/x-www-form-urlencoded", "multipart/form-data"}:
        raise refuse(f"unsupported content type {request.content_type}")
    for key, value in (await request.post()).items():
        if isinstance(value, web.FileField):
            data = value.file.read()
            if len(data) > MAX_UPLOAD_BYTES:
                raise ApiError(413, "Request Entity Too Large")
            files[key] = Upload(data, value.filename or key, value.content_type)
        else:
            values[key] = value
    return values, files


def _leaves(annotation: object) -> set[object]:
    """Return the plain types and containers that a parameter may be."""
    origin = typing.get_origin(annotation)
    if origin in {typing.Union, types.UnionType}:
        return set().union(*(_leaves(part) for part in typing.get_args(annotation)))
    if origin is typing.Annotated:
        return _leaves(typing.get_args(annotation)[0])
    return {origin or annotation}


def _decoded(key: str, value: object, annotation: object) -> object:
    """Decode a value of a form, which holds only text: objects and lists are JSON in it."""
    if not isinstance(value, str):
        return value
    leaves = _leaves(annotation)
    structured = any(
        leaf in {list, dict} or (isinstance(leaf, type) and issubclass(leaf, TelegramObject)) for leaf in leaves
    )
    if not structured:
        return value
    try:
        return json.loads(value)
    except ValueError:
        if str in leaves:
            return value
        raise refuse(f"can't parse {key} JSON object") from None


def _complaint(error: ValidationError) -> ApiError:
    first = error.errors(include_url=False)[0]
    where = ".".join(str(part) for part in first["loc"][:1]) or "parameters"
    if first["type"] == "missing" and len(first["loc"]) == 1:
        return refuse({"text": "message text is empty"}.get(where, f"{where} is empty"))
    return refuse(f'can\'t parse parameter "{where}": {first["msg"]}')


def _refuse_unknown(value: object, where: str) -> None:
    """Refuse fields that no class knows, however deep."""
    if isinstance(value, BaseModel):
        for key in value.model_extra or {}:
            raise refuse(f'unknown field "{key}" in {where}')
        for key in value.model_fields_set:
            _refuse_unknown(getattr(value, key), f"{where}.{key}")
    elif isinstance(value, list | tuple):
        for item in value:
            _refuse_unknown(item, where)
