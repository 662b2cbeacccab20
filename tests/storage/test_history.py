"""Runs as they are looked back at, on every database."""

from __future__ import annotations

from agent_core.ports import AnswerEvent, ReplyState
from storage.answers import Answers
from storage.engine import Database
from storage.history import History, HistoryFilter, SentText
from storage.runs import NewRun, Runs


async def test_numbers_pages_and_what_was_sent(db: Database) -> None:
    log = History(db)
    assert (await log.find(HistoryFilter()), await log.count(HistoryFilter())) == ([], 0)
    ids = [await Runs(db).create(NewRun(f"任务 {number}", f"S{number % 2}")) for number in range(1, 6)]
    await Answers(db).tell(ids[2] or "", AnswerEvent(1, "qq", "11", "几天发货", ReplyState.SENT, sent="三天"))

    async def numbers(wanted: HistoryFilter, before: int | None = None, after: int | None = None) -> list[int]:
        return [run.number for run in await log.find(wanted, before=before, after=after, limit=2)]

    assert await numbers(HistoryFilter()) == [5, 4]
    assert await numbers(HistoryFilter(), before=4) == [3, 2]
    assert await numbers(HistoryFilter(), after=1) == [3, 2]
    odd = HistoryFilter(serials=("S1",))
    assert (await numbers(odd, before=5), await log.count(odd)) == ([3, 1], 3)
    assert await numbers(HistoryFilter(words="发货", statuses=("queued",))) == [3]
    assert await numbers(HistoryFilter(contact="11")) == [3]
    assert [await log.id_of(number) for number in (0, 1, 5, 6, -1)] == [None, ids[0], ids[4], None, None]
    assert await log.number_of(ids[3] or "") == 4
    assert await log.sent_by([run_id or "" for run_id in ids]) == {ids[2]: (SentText("11", "三天"),)}
    (newest, _) = await log.find(HistoryFilter(), limit=2)
    assert (newest.row.id, newest.row.task, newest.row.created_at) == (ids[4], "任务 5", db.now())
