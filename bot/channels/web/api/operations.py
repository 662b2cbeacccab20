"""What an operation of the API is, how a function becomes one, and the bases of what it takes and answers.

The signature says all: a parameter that stands in the path is taken from it, ``query`` and ``body`` are pydantic models
that the request is checked against, and the return type is what is answered.

    runs = Operations("runs")

    @runs.post("/runs/{run_id}/stop", Role.OPERATOR)
    async def stop_run(call: ApiCall, run_id: str) -> Run:
        \"""Stop a run.\"""
"""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable, Iterator
from dataclasses import dataclass
from typing import Annotated, Any, Literal, Self, TypeVar, get_type_hints

from pydantic import AfterValidator, BaseModel, ConfigDict, Field

from bot.channels.web.app import API
from bot.desk.actors import Actor, Role
from bot.desk.desk import Desk
from bot.desk.views import EventBatches

LONGEST_KEY = 200  # characters of an Idempotency-Key

Function = TypeVar("Function", bound=Callable[..., Awaitable[Any]])
Verb = Literal["GET", "POST", "PUT", "PATCH", "DELETE"]


@dataclass(frozen=True, slots=True)
class ApiCall:
    """A request.

    key: names it, see ``Desk``; "" if the client sent none in ``key_header``.
    last_event: its ``Last-Event-ID``; None if it sent none.
    """

    desk: Desk
    actor: Actor
    key: str = ""
    last_event: int | None = None
    key_header: str = "Idempotency-Key"


@dataclass(frozen=True, slots=True)
class JpegPicture:
    """A screen as JPEG."""

    jpeg: bytes


@dataclass(frozen=True, slots=True)
class Stream:
    """Events that are answered as server-sent events, until the client leaves."""

    events: EventBatches


@dataclass(frozen=True, slots=True)
class Operation:
    """An operation. ``least``: the role that the desk asks of the actor, for the documentation; the desk checks it.

    returns: a model, JpegPicture, or Stream. once: takes an ``Idempotency-Key``.
    """

    verb: Verb
    path: str
    least: Role
    subject: str
    function: Callable[..., Awaitable[Any]]
    status: int
    once: bool
    in_path: tuple[str, ...]
    query: type[BaseModel] | None
    body: type[BaseModel] | None
    returns: type[Any]

    @property
    def name(self) -> str:
        """The operation's id."""
        return self.function.__name__

    @property
    def summary(self) -> str:
        return inspect.getdoc(self.function).partition("\n")[0]  # type: ignore[union-attr]

    @property
    def description(self) -> str:
        return " ".join(inspect.getdoc(self.function).partition("\n")[2].split())  # type: ignore[union-attr]


class Operations:
    """The operations of one subject."""

    def __init__(self, subject: str) -> None:
        self._subject = subject
        self._all: list[Operation] = []

    def __iter__(self) -> Iterator[Operation]:
        return iter(self._all)

    def get(self, path: str, least: Role = Role.VIEWER) -> Callable[[Function], Function]:
        return self._add("GET", path, least)

    def post(self, path: str, least: Role, *, status: int = 200, once: bool = False) -> Callable[[Function], Function]:
        """``status``: 201 if something is made. ``once``: requests with the same ``Idempotency-Key`` count as one."""
        return self._add("POST", path, least, status=status, once=once)

    def put(self, path: str, least: Role) -> Callable[[Function], Function]:
        return self._add("PUT", path, least)

    def patch(self, path: str, least: Role) -> Callable[[Function], Function]:
        return self._add("PATCH", path, least)

    def delete(self, path: str, least: Role) -> Callable[[Function], Function]:
        return self._add("DELETE", path, least)

    def _add(
        self, verb: Verb, path: str, least: Role, *, status: int = 200, once: bool = False
    ) -> Callable[[Function], Function]:
        def added(function: Function) -> Function:
            hints = get_type_hints(function)
            returns = hints.pop("return")
            in_path = tuple(name for name in hints if f"{{{name}}}" in path)
            self._all.append(
                Operation(
                    verb,
                    API + path,
                    least,
                    self._subject,
                    function,
                    status,
                    once,
                    in_path,
                    hints.get("query"),
                    hints.get("body"),
                    returns,
                )
            )
            return function

        return added


# What the models of the subjects have in common -----------------------------------------------------------------------

# Times are ISO 8601 with their offset. An empty text stands for *none*.
MOST_LISTED = 100


def _no_nul(text: str) -> str:
    if "\0" in text:
        raise ValueError("The character U+0000 is not allowed.")
    return text


Text = Annotated[str, AfterValidator(_no_nul), Field(max_length=10_000)]
Line = Annotated[str, AfterValidator(_no_nul), Field(max_length=500)]
Lines = Annotated[list[Line], Field(max_length=100)]
ClockTime = Annotated[str, Field(pattern=r"^(([01][0-9]|2[0-3]):[0-5][0-9])?$", examples=["09:00"])]


class Wish(BaseModel):
    """Base of what a client sends: a field that nobody knows is an error, never ignored."""

    model_config = ConfigDict(extra="forbid")


class Shown(BaseModel):
    """Base of what is answered: read from a view of the desk by its names."""

    model_config = ConfigDict(from_attributes=True, serialize_by_alias=False)

    @classmethod
    def of(cls, view: object) -> Self:
        return cls.model_validate(view)


class Paged(Wish):
    """A page of a list."""

    cursor: Annotated[str, Field(pattern=r"^([0-9]{1,15})?$", description="`next` of the page before.")] = ""
    limit: Annotated[int, Field(ge=1, le=MOST_LISTED)] = 20

    @property
    def before(self) -> int | None:
        """The number that the page ends before; None for the first page."""
        return int(self.cursor) if self.cursor else None
