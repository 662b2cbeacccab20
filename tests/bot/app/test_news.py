"""The whole server: a digest that was due while it was off goes out once, however often it starts."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from functools import partial
from zoneinfo import ZoneInfo

import pytest
import sqlalchemy as sa

from agent_core.ports import AnswerEvent, Event, ReplyState
from bot.app.database import open_database
from bot.app.server import server
from bot.app.settings.layers import Settings
from bot.app.settings.sections import DigestSettings, TelegramSettings
from bot.desk.actors import Role
from bot.desk.people import new_code
from bot.tools.demo.world import demo_world
from scheduler.runs.store import StoredRuns
from simulator.telegram import Chat, FakeTelegram
from storage.people import People
from storage.runs import NewRun, Runs
from storage.tables import answers, people

ZONE = "Asia/Shanghai"


async def what_was_yesterday(settings: Settings) -> None:
    """An owner, and two answers: whatever the time is now, one of them is in what the digest tells of."""
    db = await open_database(settings)
    code = await new_code(db, Role.OWNER, created_by="test")
    await People(db).pair(code, telegram_id=11, name="Anna")
    run_id = await Runs(db).create(NewRun("QQ回复联系人11", begun=True))
    assert run_id is not None
    await Runs(db).end_attempt(run_id, 1, status="succeeded")
    now = datetime.now(UTC)
    noon = datetime.now(ZoneInfo(ZONE)).replace(hour=12, minute=0) - timedelta(days=1)
    for number in (1, 2):
        event = AnswerEvent(number, "qq", "11", "几天发货", ReplyState.SENT, sent="三天", provenance="knowledge")
        await StoredRuns(db).event(run_id, Event("answer", event.data()))
    async with db.write() as connection:
        await connection.execute(sa.update(people).values(paired_at=now - timedelta(days=9)))
        for number, when in ((1, noon), (2, now - timedelta(hours=3))):
            await connection.execute(sa.update(answers).where(answers.c.ledger_id == number).values(created_at=when))
    await db.close()


def _told_of_themselves(chat: Chat, times: int) -> bool:
    return len(chat.saying("语言：")) == times


@pytest.mark.device
async def test_a_digest_that_was_missed_goes_out_once() -> None:
    due = datetime.now(ZoneInfo(ZONE)) - timedelta(hours=1)
    async with FakeTelegram() as tg, demo_world() as world:
        telegram = TelegramSettings(token=tg.token, api_base_url=tg.url.removesuffix("/bot"))
        changes = {"telegram": telegram, "digest": DigestSettings(daily=f"{due:%H:%M}", weekly="off"), "timezone": ZONE}
        settings = world.settings.model_copy(update=changes)
        await what_was_yesterday(settings)
        owner = tg.user(11, "Anna", "zh")
        await owner.send("/start")
        for times in (1, 2):
            async with server(settings):
                await owner.sees(lambda chat: chat.saying("每日小结")[0])
                await owner.send("/whoami")  # when that is answered, what came before is written down as sent
                await owner.sees(partial(_told_of_themselves, times=times))
        (digest,) = owner.chat.saying("每日小结")
        assert "（100%）" in digest.words
        assert digest.photo is not None
