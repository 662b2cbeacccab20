"""Keeps Telegram's list of commands up to date: the commands that each person may use, in their language."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Mapping
from dataclasses import dataclass

import structlog
from telegram import (
    Bot,
    BotCommand,
    BotCommandScope,
    BotCommandScopeAllGroupChats,
    BotCommandScopeAllPrivateChats,
    BotCommandScopeChat,
)
from telegram.error import BadRequest, Forbidden, TelegramError

from bot.channels.chat import manual
from bot.channels.chat.manual import Commands
from bot.channels.chat.texts import LANGUAGES, Lang
from bot.channels.telegram.options import TelegramOptions
from bot.channels.telegram.updates import CHANNEL
from bot.desk.actors import Actor, Role
from bot.desk.desk import Desk

log = structlog.get_logger(__name__)

LOOK_AGAIN = 60.0  # seconds until changes by another process are noticed
FALLBACK: Lang = "en"  # for all languages that are not ours


@dataclass(frozen=True, slots=True)
class MenuScope:
    """The people that see a list.

    person: the list is for this person's private chat; else for all private chats, or all groups.
    lang: "" is for everybody without a list in their language.
    """

    person: int = 0
    groups: bool = False
    lang: str = ""

    @property
    def scope(self) -> BotCommandScope:
        if self.person:
            return BotCommandScopeChat(self.person)
        return BotCommandScopeAllGroupChats() if self.groups else BotCommandScopeAllPrivateChats()


def wanted(members: list[Actor], *, plans: bool) -> dict[MenuScope, Commands]:
    """Return the list for each place; ``plans`` as for ``commands.usable``.

    Strangers see an operator's list: it reveals nothing, and a person who pairs has it at once.
    """
    lists: dict[MenuScope, Commands] = {}
    for groups in (False, True):
        for lang in LANGUAGES:
            lists[MenuScope(groups=groups, lang=lang)] = manual.listed(Role.OPERATOR, lang, plans=plans, groups=groups)
        lists[MenuScope(groups=groups)] = manual.listed(Role.OPERATOR, FALLBACK, plans=plans, groups=groups)
    for member in members:
        if member.user_id.isdecimal():
            lists[MenuScope(int(member.user_id))] = manual.listed(member.role, member.lang, plans=plans)
    return lists


class Menu:
    def __init__(self, bot: Bot, desk: Desk, options: TelegramOptions) -> None:
        self._bot = bot
        self._desk = desk
        self._options = options
        self._shown: dict[MenuScope, Commands] = {}
        self._look = asyncio.Event()

    def look(self) -> None:
        """Check the lists again, because somebody may have come, gone, or changed."""
        self._look.set()

    async def run(self) -> None:
        """Keep the lists up to date for ever."""
        failures = 0
        while True:
            self._look.clear()
            wait = LOOK_AGAIN
            try:
                members = list(await self._desk.people.members(CHANNEL))
                await self._bring_up_to_date(wanted(members, plans=self._desk.plans.ready))
                failures = 0
            except TelegramError as error:
                failures += 1
                wait = self._options.wait_after(failures)
                log.warning("telegram_menu_not_sent", error=self._options.safe(error), again_in=wait)
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(wait):
                    await self._look.wait()

    async def _bring_up_to_date(self, lists: Mapping[MenuScope, Commands]) -> None:
        for place, names in lists.items():
            if self._shown.get(place) == names:
                continue
            try:
                if place in self._shown or await self._at_telegram(place) != names:
                    await self._send(place, names)
            except (BadRequest, Forbidden) as error:  # they have blocked us, or never wrote: not again until it changes
                if not place.person:
                    raise
                log.info("telegram_menu_refused", person=place.person, error=self._options.safe(error))
            self._shown[place] = names
        for place in [place for place in self._shown if place not in lists]:
            with contextlib.suppress(BadRequest, Forbidden):
                await self._bot.delete_my_commands(place.scope, place.lang or None)
            del self._shown[place]

    async def _at_telegram(self, place: MenuScope) -> Commands:
        """Return Telegram's current list; empty if its answer is not a list, so that ours is sent."""
        try:
            there = await self._bot.get_my_commands(place.scope, place.lang or None)
        except (TypeError, AttributeError, KeyError) as error:
            log.warning("telegram_menu_unreadable", error=self._options.safe(error))
            return ()
        return tuple((command.command, command.description) for command in there)

    async def _send(self, place: MenuScope, names: Commands) -> None:
        shown = [BotCommand(name, description) for name, description in names]
        await self._bot.set_my_commands(shown, place.scope, place.lang or None)
