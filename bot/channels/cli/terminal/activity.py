"""Shows a server's activity at its terminal: a line for each run that begins or ends, each answer and question."""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from zoneinfo import ZoneInfo

import structlog

from agent_core.lru import keep_newest
from bot.channels.chat.digest import alert_card
from bot.channels.chat.questions import question_title
from bot.channels.chat.run_cards import state_of
from bot.channels.chat.texts import Texts
from bot.channels.cli.terminal.console import Console, Text
from bot.channels.cli.terminal.live import ended
from bot.desk.desk import Desk
from bot.desk.views import RunStatus
from storage.engine import MISSED_SECONDS
from storage.events import EventLogReader, EventRow, Events
from storage.failures import is_away
from storage.history import History
from storage.runs import FAILED, STOPPED, SUCCEEDED

log = structlog.get_logger(__name__)

REMEMBERED = 200  # runs whose end was shown
_STYLES = {"succeeded": "green", "failed": "red", "stopped": "yellow"}


class Activity:
    """The events of the log on ``console``, with the time in ``zone``.

    Runs that found nothing to do, such as sweeps without new messages, are not shown: no agent carried them out.

    has_bot: whether questions can be answered in Telegram, too.
    """

    def __init__(self, desk: Desk, console: Console, words: Texts, zone: ZoneInfo, *, has_bot: bool = False) -> None:
        self._desk = desk
        self._console = console
        self._words = words
        self._zone = zone
        self._has_bot = has_bot
        self._over: OrderedDict[str, None] = OrderedDict()  # runs whose end was shown

    async def follow(self) -> None:
        """Print the events from now on, until cancelled, and then those that are left; nothing while the database is
        away.
        """
        db, reader = self._desk.context.db, None
        try:
            while True:
                try:
                    if reader is None:
                        reader = EventLogReader(db, await Events(db).newest())
                    await self._print(reader)
                except Exception as error:
                    if not is_away(error):
                        raise
                    await asyncio.sleep(MISSED_SECONDS)
        finally:
            if reader is not None:
                await self._print_rest(reader)

    async def _print(self, reader: EventLogReader, *, seconds: float = MISSED_SECONDS) -> bool:
        """Print what comes, or is there, and return whether anything was."""
        rows = await reader.more(seconds=seconds)
        for row in rows:
            await self._try_to_show(row)
            reader.position = row.id
        return bool(rows)

    async def _print_rest(self, reader: EventLogReader) -> None:
        try:
            while await self._print(reader, seconds=0):
                pass
        except Exception as error:
            if not is_away(error):
                raise

    async def _try_to_show(self, row: EventRow) -> None:
        try:
            await self._show(row)
        except Exception as error:  # one event must not end the others; logged, nothing is swallowed
            if is_away(error):
                raise
            log.exception("activity_failed", kind=row.kind, event_id=row.id)

    async def _show(self, row: EventRow) -> None:
        words, data = self._words, row.data
        match row.kind:
            case "started":
                run = await self._desk.runs.get(row.run_id)
                phone = (run.phone if run else "") or str(data["serial"])
                await self._say(row, words.get("activity.began", task=data["task"], phone=phone), "bold")
            case "reply" if data.get("delivered"):
                await self._say(row, words.get("activity.replied", contact=data["contact"]), "green")
            case "question":
                await self._say_question(row, str(data["id"]))
            case "answered":
                await self._say(row, words.get("activity.answered", by=words.person(str(data["by"]))), "")
            case "outcome":
                await self._say_end(row, str(data["status"]), str(data["message"]))
            case "status" if data["status"] in (FAILED, STOPPED) and row.run_id not in self._over:
                await self._say_end(row, str(data["status"]), str(data["message"]))  # it ended in the queue
            case "status" if data["status"] == SUCCEEDED and row.run_id not in self._over:
                await self._say_sweep(row)
            case "paired":
                role = words.get(f"role.{data['role']}")
                await self._say(row, words.get("activity.paired", name=data["name"], role=role), "green")
            case "alert":
                alert = await self._desk.digest.alert(data)
                await self._say(row, alert_card(alert, words).title, "yellow")

    async def _say_question(self, row: EventRow, question_id: str) -> None:
        view = await self._desk.questions.get(question_id)
        if view is None or not view.open:
            return
        contact = str(view.question.data.get("contact") or "")
        title = question_title(view.question, self._words)
        what = " · ".join(part for part in (title, contact) if part)
        key = "activity.asks_there_too" if self._has_bot else "activity.asks"
        await self._say(
            row, self._words.get(key, what=what, id=view.id, console=self._desk.context.console_url), "bold yellow"
        )

    async def _say_end(self, row: EventRow, status: str, message: str) -> None:
        keep_newest(self._over, row.run_id, None, REMEMBERED)
        run = await self._desk.runs.get(row.run_id)
        if status == FAILED and run is not None and run.sweep is not None and run.sweep.silent:
            return  # it failed like the one before
        left_to = run.left_to if run is not None else ""
        said = ended(
            state_of(RunStatus(status), left_to=left_to), self._words.typed(message.partition("\n")[0]), self._words
        )
        await self._say(row, said, "yellow" if left_to else _STYLES.get(status, ""))

    async def _say_sweep(self, row: EventRow) -> None:
        """Show a sweep's own message, such as the names that it did not find."""
        run = await self._desk.runs.get(row.run_id)
        if run is not None and run.sweep is not None and run.message and not run.sweep.silent:
            await self._say(row, ended(state_of(run.status), run.message, self._words), "yellow")

    async def _say(self, row: EventRow, said: str, style: str) -> None:
        number = f"#{await History(self._desk.context.db).number_of(row.run_id)} " if row.run_id else ""
        at = row.created_at.astimezone(self._zone)
        self._console.print(Text(f"{at:%H:%M:%S}  {number}{said}", style), soft_wrap=True)
