"""What a page of the console is made from, and the list of pages."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from aiohttp import web

from bot.app.server_names import CONSOLE
from bot.channels.web.console.texts import ConsoleTexts
from bot.desk.actors import Actor, Role
from bot.desk.desk import Desk


@dataclass(frozen=True, slots=True)
class Visit:
    """A person asks for a page. ``now`` is in UTC."""

    request: web.Request
    desk: Desk
    actor: Actor
    words: ConsoleTexts

    @property
    def now(self) -> datetime:
        return self.desk.context.db.now()

    def may(self, least: Role) -> bool:
        """Tell whether the person has this role, so that they are shown what it may do. The desk decides."""
        return self.actor.role.covers(least)

    def query(self, name: str) -> str:
        """Return a value of the query, "" if it is not given."""
        return self.request.query.get(name, "").strip()

    def cursor(self, name: str = "before") -> str:
        """Return the place in a list that the query names, "" for its beginning."""
        value = self.query(name)
        return value if value.isascii() and value.isdecimal() and len(value) <= 15 else ""


# What the template of a page is given.
Shown = Mapping[str, Any]
Build = Callable[[Visit], Awaitable[Shown]]


@dataclass(frozen=True, slots=True)
class Page:
    """A page. ``nav``: its place in the navigation; pages under another one have that one's."""

    path: str
    template: str
    nav: str
    build: Build


class Pages:
    """The pages of one subject."""

    def __init__(self, nav: str) -> None:
        self._nav = nav
        self._all: list[Page] = []

    def __iter__(self) -> Iterator[Page]:
        return iter(self._all)

    def page(self, path: str, template: str) -> Callable[[Build], Build]:
        """Add a page at ``path`` below the console, whose template gets what the function returns."""

        def added(build: Build) -> Build:
            self._all.append(Page(CONSOLE + path, template, self._nav, build))
            return build

        return added
