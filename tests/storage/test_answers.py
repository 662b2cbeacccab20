"""The answer log over both databases."""

from __future__ import annotations

import asyncio
from dataclasses import asdict, replace
from typing import Any

import pytest

from agent_core.ports import AnswerEvent, Record, ReplyState
from storage.answers import AnswerFilter, Answers
from storage.engine import Database
from storage.events import Events
from storage.runs import NewRun, Runs
from tests.support.clock import Clock

RECORDS = [Record("k1", "七天内可退。", score=0.91)]
KEPT = [{**asdict(record), "aliases": []} for record in RECORDS]  # as JSON has them
READ = AnswerEvent(7, "qq", "11", "怎么退货100%？", ReplyState.PLANNED, query="怎么退货", records=RECORDS)
SENT = AnswerEvent(
    7, "qq", "11", "怎么退货100%？", ReplyState.SENT, sent="七天内可退。", provenance="knowledge", record_id="k1",
    record_source="embedded:k1", score=0.91,
)  # fmt: skip


async def run_in(db: Database) -> str:
    run_id = await Runs(db).create(NewRun("QQ回复联系人11", "phone-a", begun=True))
    assert run_id is not None
    return run_id


async def tell(db: Database, told: AnswerEvent, run_id: str = "r1", **more: Any) -> int:
    return (await Answers(db).tell(run_id, told, **more)).id


async def asked(
    db: Database, clock: Clock, number: int, contact: str, question: str, state: ReplyState, **more: Any
) -> int:
    """One more question, a minute later."""
    clock.move(minutes=1)
    return await tell(db, AnswerEvent(number, "qq", contact, question, state, **more))


async def test_one_row_a_question_and_nothing_is_lost(db: Database, clock: Clock) -> None:
    run_id = await run_in(db)
    await tell(db, READ, run_id, picture=b"before")
    clock.move(seconds=5)
    await tell(db, SENT, run_id, picture=b"after")
    [row] = await Answers(db).find()
    assert (row.run_id, row.serial, row.app, row.contact, row.ledger_id) == (run_id, "phone-a", "qq", "11", 7)
    assert (row.query, row.records) == ("怎么退货", KEPT)  # of the first event
    assert (row.state, row.sent, row.provenance, row.record_id, row.score) == (
        "sent",
        "七天内可退。",
        "knowledge",
        "k1",
        0.91,
    )
    assert (row.updated_at - row.created_at).total_seconds() == 5
    assert row.before_picture_id is not None
    assert row.after_picture_id is not None
    assert await Events(db).picture(row.before_picture_id) == b"before"
    assert await Events(db).picture(row.after_picture_id) == b"after"
    assert [event.kind for event in await Events(db).after(0, run_id=run_id)][-2:] == ["answer", "answer"]


async def test_told_again_it_changes_nothing(db: Database, clock: Clock) -> None:
    await tell(db, READ, picture=b"before")
    await tell(db, SENT, picture=b"after")
    [row] = await Answers(db).find()
    clock.move(hours=1)
    for told in (SENT, READ, SENT):  # an attempt after a restart
        await tell(db, told, "another run", picture=b"later")
    assert await Answers(db).find() == [row]


async def test_told_by_two_processes_at_once_it_is_one_row(db: Database, other_db: Database) -> None:
    await asyncio.gather(*(tell(one, told) for one in (db, other_db) for told in (READ, SENT)))
    [row] = await Answers(db).find()
    assert (row.state, row.sent) == ("sent", "七天内可退。")


async def test_another_text_brings_its_own_source(db: Database) -> None:
    """A record was chosen, the chat changed, and a person wrote the answer: nothing of the record stays."""
    await tell(db, replace(SENT, state=ReplyState.PLANNED, records=RECORDS))
    await tell(db, AnswerEvent(7, "qq", "11", "q", ReplyState.SENT, sent="好的", provenance="person", person="Desk A"))
    [row] = await Answers(db).find()
    assert (row.sent, row.provenance, row.person) == ("好的", "person", "Desk A")
    assert (row.record_id, row.record_source, row.score) == ("", "", None)
    assert row.records == KEPT


async def test_the_picture_before_is_the_first_one(db: Database) -> None:
    await tell(db, replace(READ, query=""))
    await tell(db, READ, picture=b"first")
    await tell(db, READ, picture=b"second")
    [row] = await Answers(db).find()
    assert (row.query, row.after_picture_id) == ("怎么退货", None)
    assert row.before_picture_id is not None
    assert await Events(db).picture(row.before_picture_id) == b"first"


async def test_the_picture_after_is_that_of_the_present_state(db: Database) -> None:
    await tell(db, replace(SENT, state=ReplyState.UNKNOWN), picture=b"doubtful")
    await tell(db, SENT, picture=b"arrived")
    await tell(db, SENT)
    [row] = await Answers(db).find()
    assert row.after_picture_id is not None
    assert await Events(db).picture(row.after_picture_id) == b"arrived"


async def test_a_row_and_its_event_or_neither(db: Database) -> None:
    broken = replace(READ, question=None)  # type: ignore[arg-type]  # what the table refuses
    with pytest.raises(Exception, match=r"(?i)null"):
        await tell(db, broken, picture=b"x")
    assert await Answers(db).find() == []
    assert await Events(db).after(0) == []


async def test_filters(db: Database, clock: Clock) -> None:
    sent = await asked(
        db, clock, 1, "11", "怎么退货100%？", ReplyState.SENT, sent="七天内可退。", provenance="knowledge"
    )
    skipped = await asked(db, clock, 2, "12", "能刻字吗", ReplyState.SKIPPED)
    own = await asked(
        db, clock, 3, "11", "几点关门", ReplyState.SENT, sent="八点", provenance="person", person="Desk A"
    )
    chosen = await asked(db, clock, 4, "13", "运费", ReplyState.SENT, sent="包邮", provenance="person", record_id="k9")
    since = clock()
    left = await asked(db, clock, 5, "13", "在吗", ReplyState.PLANNED)
    log = Answers(db)

    async def found(**wanted: Any) -> list[int]:
        rows = [row.id for row in await log.find(AnswerFilter(**wanted))]
        assert await log.count(AnswerFilter(**wanted)) == len(rows)
        return rows

    assert await found() == [left, chosen, own, skipped, sent]
    assert await found(contact="11") == [own, sent]
    assert await found(text="100%") == [sent]
    assert await found(text="可退") == [sent]
    assert await found(text="_") == []
    assert await found(since=since) == [left, chosen]
    assert await found(until=since) == [own, skipped, sent]
    assert await found(state="skipped") == [skipped]
    assert await found(provenance="person") == [chosen, own]
    assert await found(missed=True) == [own, skipped]
    assert await found(unanswered=True) == [skipped]
    run_id = await Runs(db).create(NewRun("QQ回复联系人11", "phone"))
    assert run_id is not None
    stopped = await tell(db, AnswerEvent(6, "qq", "14", "在吗", ReplyState.PLANNED), run_id)
    assert await found(unanswered=True) == [skipped]
    await Runs(db).request_stop(run_id)
    assert await found(unanswered=True) == [stopped, skipped], "nobody is at it any more"
    clock.move(hours=1, seconds=1)
    assert await found(unanswered=True) == [stopped, left, skipped]
    assert await found(app="qq", run_id="r1", contact="13") == [left, chosen]
    assert await found(serial="elsewhere") == []
    await log.rate(own, -1, by="5")
    assert await found(rating=-1) == [own]
    assert await log.is_contact("11")
    assert not await log.is_contact("1")


async def test_pages(db: Database, clock: Clock) -> None:
    rows = [await asked(db, clock, number, "11", f"q{number}", ReplyState.SKIPPED) for number in range(5)]
    log = Answers(db)
    assert [row.id for row in await log.find(limit=2)] == rows[:2:-1]
    assert [row.id for row in await log.find(before_id=rows[3], limit=2)] == [rows[2], rows[1]]
    assert [row.id for row in await log.find(after_id=rows[0], limit=2)] == [rows[2], rows[1]]


async def test_rating(db: Database, clock: Clock) -> None:
    log = Answers(db)
    answer = await tell(db, SENT)

    async def rated() -> tuple[int, str, bool]:
        row = await log.get(answer)
        assert row is not None
        assert row.rated_at in (None, clock())
        return row.rating, row.rated_by, row.rated_at is not None

    assert await log.rate(answer, 1, by="5", toggle=True, key="tap-1")
    assert await rated() == (1, "5", True)
    assert await log.rate(answer, 1, by="5", toggle=True, key="tap-1")  # the same tap, handed in again
    assert await rated() == (1, "5", True)
    assert await log.rate(answer, -1, by="6", toggle=True)
    assert await rated() == (-1, "6", True)
    assert await log.rate(answer, -1, by="6", toggle=True, key="tap-2")
    assert await rated() == (0, "", False)
    for _ in range(2):
        assert await log.rate(answer, 1, by="6")
    assert await rated() == (1, "6", True)
    assert await log.rate(answer, 0, by="6")
    assert await rated() == (0, "", False)
    assert not await log.rate(999, 1, by="6")
    with pytest.raises(ValueError, match="rating"):
        await log.rate(answer, 5, by="6")


async def test_a_rating_stays_when_the_answer_is_told_of_again(db: Database) -> None:
    answer = await tell(db, replace(SENT, state=ReplyState.UNKNOWN))
    await Answers(db).rate(answer, 1, by="5")
    await tell(db, SENT)
    row = await Answers(db).get(answer)
    assert row is not None
    assert (row.state, row.rating, row.rated_by) == ("sent", 1, "5")
