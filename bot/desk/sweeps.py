"""Sweeps: start one."""

from __future__ import annotations

from agent_core.loop.tasks import check_task
from bot.desk.actors import Actor, BadRequest, ChatRef
from bot.desk.context import DeskContext, DeskService
from bot.desk.runs import DeskRuns
from bot.desk.views import RunView
from scheduler.sweeps.attempt import no_tag, unknown_tags
from scheduler.sweeps.order import WORDS, SweepOrder, read_order
from storage.engine import Database

_WORD = {"zh": WORDS[0], "en": WORDS[-1]}


class DeskSweeps(DeskService):
    def __init__(self, context: DeskContext, runs: DeskRuns) -> None:
        super().__init__(context)
        self._runs = runs

    async def start(
        self, actor: Actor, words: str, *, chat: ChatRef, serial: str | None = None, key: str = ""
    ) -> RunView:
        """Queue a sweep of the contacts, ``#tags`` or ``未读`` in ``words``.

        Raises InputRejected if the words cannot be read, BadRequest if no contact has a tag.
        """
        order = read_order(words)
        await check_tags(self._db, order)
        task = check_task(f"{_WORD[actor.lang]} {words}")
        return await self._runs.submit(actor, "sweep", task, chat=chat, serial=serial, options=order.data(), key=key)


async def check_tags(db: Database, order: SweepOrder) -> None:
    """Raise BadRequest if a tag was written that no contact has: such a sweep would find nobody for ever."""
    if unknown := await unknown_tags(db, order):
        error = no_tag(unknown)
        raise BadRequest(error.message, advice=error.advice, key=error.key, **error.values)
