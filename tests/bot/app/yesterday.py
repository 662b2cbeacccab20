"""A shop of which a digest has something to tell."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

import sqlalchemy as sa

from agent_core.ports import AnswerEvent, Event, ReplyState
from bot.app.database import open_database
from bot.app.settings.layers import Settings
from bot.desk.actors import Role
from bot.desk.people import new_code
from scheduler.runs.executor import StoredRuns
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
