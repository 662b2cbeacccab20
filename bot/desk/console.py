"""The console's log-in: links that begin a session, and who the holder of a session is."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from agent_core.errors import RateLimited
from agent_core.texts import Lang, language_of
from bot.desk.actors import AccessDenied, Actor, Role
from bot.desk.context import CONSOLE, TELEGRAM, DeskContext, DeskService
from bot.desk.pairing import Notebook
from bot.desk.people import actor_of
from storage.console_sessions import ConsoleSessions
from storage.people import People

TERMINAL = "terminal"  # the id of the owner at this machine
MAX_SECRET = 200  # characters; no secret is as long
WRONG_A_MINUTE = 30  # wrong codes; after that none is looked up for the rest of the minute


@dataclass(frozen=True, slots=True)
class ConsoleSession:
    """A session that was begun. ``secret`` proves it."""

    secret: str
    actor: Actor


class DeskConsole(DeskService):
    """The service for logging in to the console.

    A person is looked up at each request. If they are removed, or get another role, their sessions end.
    """

    def __init__(self, context: DeskContext) -> None:
        super().__init__(context)
        self._notebook = Notebook()
        self._wrong: list[datetime] = []

    async def link(self, actor: Actor) -> str:
        """Return a log-in link for this person. It can be used once, within ten minutes.

        The code is behind the #, which a browser sends to nobody.
        """
        await self._allow(actor, Role.VIEWER, "console link")
        code = await ConsoleSessions(self._db).add_link(actor.id, actor.lang)
        return f"{self.context.console_url}/login#{code}"

    async def log_in(self, code: str) -> ConsoleSession:
        """Begin a session by the code of a link. Raises AccessDenied if it is used, too old or wrong."""
        now = self._db.now()
        self._wrong = [at for at in self._wrong if now - at < timedelta(minutes=1)]
        if len(self._wrong) >= WRONG_A_MINUTE:
            said, advice = "There were too many wrong log-in links.", "Try again in a minute."
            raise RateLimited(said, advice=advice, key="console_limited", seconds=60)
        begun = await ConsoleSessions(self._db).begin(code) if len(code) <= MAX_SECRET else None
        actor = await self.actor_of(begun[0]) if begun is not None else None
        if begun is None or actor is None:
            self._wrong.append(now)
            if self._notebook.takes(CONSOLE, now):
                await self._audit.write(CONSOLE, CONSOLE, "console log-in", {"why": "wrong link"}, allowed=False)
            said = "This link was used, or is too old."
            raise AccessDenied(said, advice="Ask for a new one: `phonedesk console`.", key="console_link")
        await self._audit.write(actor.id, CONSOLE, "console log-in")
        return ConsoleSession(begun[0], actor)

    async def actor_of(self, secret: str) -> Actor | None:
        """Return the holder of a session; None if it has ended, or the person may not use the console any more.

        A person who is limited to certain chats may use it only if their own private chat is among them.
        """
        if not secret or len(secret) > MAX_SECRET:
            return None
        row = await ConsoleSessions(self._db).of(secret)
        if row is None:
            return None
        lang = language_of(row.lang)
        if row.actor == TERMINAL:
            return Actor(TERMINAL, CONSOLE, TERMINAL, TERMINAL, lang, Role.OWNER)
        person = await People(self._db).get(int(row.actor))
        if person is None:
            await ConsoleSessions(self._db).end(secret)  # so that it does not come back with the person
            return None
        actor = actor_of(person)
        if actor.chats and f"{TELEGRAM}:{actor.user_id}" not in actor.chats:
            return None
        return replace(actor, channel=CONSOLE, lang=lang, chats=())

    async def speak(self, secret: str, lang: Lang) -> None:
        """Set the language of a session's pages."""
        await ConsoleSessions(self._db).speak(secret, lang)

    async def log_out(self, secret: str) -> None:
        """End a session."""
        actor = await self.actor_of(secret)
        await ConsoleSessions(self._db).end(secret)
        if actor is not None:
            await self._audit.write(actor.id, CONSOLE, "console log-out")
