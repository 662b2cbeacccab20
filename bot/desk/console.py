"""The console's log-in: links that begin a session, and who the holder of a session is."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from agent_core.errors import RateLimited
from agent_core.texts import Lang, language_of
from bot.desk.actors import AccessDenied, Actor, NotFound, Role
from bot.desk.context import CONSOLE, DeskContext, DeskService
from bot.desk.people import DeskPeople
from bot.desk.request_limits import Notebook
from bot.desk.team_views import PersonView
from storage.console_sessions import ConsoleSessions, SessionRow

LINK_FOR_HOURS = 24  # that a link which an owner makes for somebody can be used
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

    def __init__(self, context: DeskContext, people: DeskPeople) -> None:
        super().__init__(context)
        self._people = people
        self._notebook = Notebook()
        self._wrong: list[datetime] = []

    async def link(self, actor: Actor) -> str:
        """Return a log-in link for this person. It can be used once, within ten minutes."""
        await self._allow(actor, Role.VIEWER, "console link")
        return self.context.log_in_link(await ConsoleSessions(self._db).add_link(actor.id, actor.lang))

    async def link_for(self, actor: Actor, person: PersonView) -> str:
        """Return a log-in link for somebody else, for an owner. It can be used once, within a day.

        Raises NotFound if they may not use the console.
        """
        await self._allow(actor, Role.OWNER, "console link", person=f"#{person.id}")
        member = await self._people.actor(CONSOLE, person.id)
        if member is None:
            said, advice = f"{person.name} may not use the console.", "Lift the limit to certain chats first."
            raise NotFound(said, advice=advice, key="not_in_console", name=person.name)
        lifetime = timedelta(hours=LINK_FOR_HOURS)
        return self.context.log_in_link(await ConsoleSessions(self._db).add_link(member.id, member.lang, lifetime))

    async def log_in(self, code: str, lang: Lang = "zh") -> ConsoleSession:
        """Begin a session by the code of a link, or of an invitation, which makes its person a member.

        lang: the language of a new member. Raises AccessDenied if the code is used, too old or wrong.
        """
        now = self._db.now()
        self._wrong = [at for at in self._wrong if now - at < timedelta(minutes=1)]
        if len(self._wrong) >= WRONG_A_MINUTE:
            said, advice = "There were too many wrong log-in links.", "Try again in a minute."
            raise RateLimited(said, advice=advice, key="console_limited", seconds=60)
        begun = await self._begin(code, lang) if len(code) <= MAX_SECRET else None
        actor = await self.actor_of(begun[0]) if begun is not None else None
        if begun is None or actor is None:
            self._wrong.append(now)
            if self._notebook.takes(CONSOLE, now):
                await self._audit.write(CONSOLE, CONSOLE, "console log-in", {"why": "wrong link"}, allowed=False)
            said = "This link was used, or is too old."
            raise AccessDenied(said, advice="Ask an owner for a new one.", key="console_link")
        await self._audit.write(actor.id, CONSOLE, "console log-in")
        return ConsoleSession(begun[0], actor)

    async def _begin(self, code: str, lang: Lang) -> tuple[str, SessionRow] | None:
        sessions = ConsoleSessions(self._db)
        begun = await sessions.begin(code)
        if begun is None and (member := await self._people.join(code, lang)) is not None:
            begun = await sessions.begin(await sessions.add_link(member.id, lang))
        return begun

    async def actor_of(self, secret: str) -> Actor | None:
        """Return the holder of a session; None if it has ended, or the person may not use the console any more."""
        if not secret or len(secret) > MAX_SECRET:
            return None
        row = await ConsoleSessions(self._db).of(secret)
        if row is None:
            return None
        actor = await self._people.actor(CONSOLE, row.actor)
        return replace(actor, lang=language_of(row.lang)) if actor is not None else None

    async def speak(self, secret: str, lang: Lang) -> None:
        """Set the language of a session's pages."""
        await ConsoleSessions(self._db).speak(secret, lang)

    async def log_out(self, secret: str) -> None:
        """End a session."""
        actor = await self.actor_of(secret)
        await ConsoleSessions(self._db).end(secret)
        if actor is not None:
            await self._audit.write(actor.id, CONSOLE, "console log-out")
