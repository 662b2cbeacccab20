"""The answer log as the desk shows it: rights, pages, thumbs, and what the knowledge base had no answer to."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from typing import Any
from zoneinfo import ZoneInfo

import pytest

from agent_core.ports import AnswerEvent, Event, Record, ReplyState
from agent_core.session import ReplyRecord, Session
from bot.desk.actors import AccessDenied, BadRequest, NotFound, Role
from bot.desk.answers import moment
from bot.desk.views import AnswersAsked
from scheduler.runs.executor import StoredRuns
from storage.answers import Answers
from storage.people import Audit
from storage.runs import NewRun, Runs
from tests.support.shop import PHONE, Shop

SHANGHAI = ZoneInfo("Asia/Shanghai")
RECORD = Record("r7", "七天内可退", "退货", 0.91, sure=True, source="embedded:r7")
SENT = AnswerEvent(
    1, "qq", "11", "怎么退货？", ReplyState.SENT, "退货", [RECORD], "七天内可退", "knowledge", "r7", "embedded:r7", 0.91
)


async def run_in(shop: Shop) -> str:
    run_id = await Runs(shop.db).create(NewRun("QQ回复联系人11", PHONE, begun=True))
    assert run_id is not None
    return run_id


async def tell(shop: Shop, event: AnswerEvent, run_id: str = "r1", picture: bytes | None = None) -> str:
    """The id of the answer."""
    await StoredRuns(shop.db).event(run_id, Event("answer", event.data()), picture=picture)
    rows = await Answers(shop.db).find()
    return next(str(row.id) for row in rows if row.ledger_id == event.ledger_id)


async def asked(shop: Shop, question: str, state: str = "skipped", contact: str = "11", **more: Any) -> str:
    shop.clock.move(minutes=1)
    number = await Answers(shop.db).count() + 1
    return await tell(shop, AnswerEvent(number, "qq", contact, question, ReplyState(state), **more))


async def test_an_answer_in_full(shop: Shop) -> None:
    viewer = await shop.person(Role.VIEWER)
    run_id = await run_in(shop)
    await tell(shop, replace(SENT, state=ReplyState.PLANNED, sent="", provenance=""), run_id, b"before")
    answer_id = await tell(shop, replace(SENT, records=None), run_id, b"after")
    view = await shop.desk.answers.get(viewer, f"#{answer_id}")
    assert (view.run_id, view.serial, view.app, view.contact) == (run_id, PHONE, "qq", "11")
    assert (view.question, view.query, view.records) == ("怎么退货？", "退货", (RECORD,))
    assert (view.sent, view.provenance, view.record_id, view.score) == ("七天内可退", "knowledge", "r7", 0.91)
    assert (view.state, view.rating, view.rated_by, view.before, view.after) == ("sent", 0, "", True, True)
    assert view.asked_at.isoformat() == "2026-03-01T17:00:00+08:00"
    assert await shop.desk.answers.pictures(viewer, answer_id) == (b"before", b"after")
    assert (await shop.desk.answers.find(viewer, AnswersAsked())).answers == (view,)
    for unknown in ("999", "x", "", "9" * 30):
        with pytest.raises(NotFound):
            await shop.desk.answers.get(viewer, unknown)


async def test_pages_back_and_forth(shop: Shop) -> None:
    viewer = await shop.person(Role.VIEWER)
    ids = [await asked(shop, f"问题{number}") for number in range(5)]

    async def page(**at: str) -> tuple[list[str], bool, bool, int]:
        found = await shop.desk.answers.find(viewer, AnswersAsked(), limit=2, **at)
        return [answer.id for answer in found.answers], found.newer, found.older, found.total

    assert await page() == ([ids[4], ids[3]], False, True, 5)
    assert await page(before=ids[3]) == ([ids[2], ids[1]], True, True, 5)
    assert await page(before=ids[1]) == ([ids[0]], True, False, 5)
    assert await page(after=ids[0]) == ([ids[2], ids[1]], True, True, 5)
    assert await page(after=ids[2]) == ([ids[4], ids[3]], False, True, 5)


async def test_words_are_a_contact_or_a_text(shop: Shop) -> None:
    viewer = await shop.person(Role.VIEWER)
    of_contact = await asked(shop, "几点关门", contact="11")
    of_text = await asked(shop, "11号发货吗", contact="12")

    async def found(**given: Any) -> list[str]:
        return [answer.id for answer in (await shop.desk.answers.find(viewer, AnswersAsked(**given))).answers]

    assert await found(words="11") == [of_contact]
    assert await found(words="11号") == [of_text]
    assert await found(text="11") == [of_text]
    assert await found(contact="12") == [of_text]
    assert await found(state="sent") == []
    assert await found(unanswered=True) == [of_text, of_contact]
    shop.clock.move(seconds=1)
    assert await found(since="1m") == [of_text]
    assert await found(until="2026-02-28") == []
    assert await found(until="2026-03-01") == [of_text, of_contact]
    for wrong in ({"since": "soon"}, {"until": "2026-13-01"}, {"state": "gone"}, {"provenance": "model"}):
        with pytest.raises(BadRequest):
            await found(**wrong)


NOW = datetime(2026, 3, 1, 17, 30, tzinfo=UTC)  # the 2nd, 1:30, in Shanghai


@pytest.mark.parametrize(
    ("text", "start", "end"),
    [
        ("90m", "2026-03-02T00:00:00+08:00", "2026-03-02T00:00:00+08:00"),
        ("12H", "2026-03-01T13:30:00+08:00", "2026-03-01T13:30:00+08:00"),
        ("7d", "2026-02-23T01:30:00+08:00", "2026-02-23T01:30:00+08:00"),
        ("2w", "2026-02-16T01:30:00+08:00", "2026-02-16T01:30:00+08:00"),
        ("today", "2026-03-02T00:00:00+08:00", "2026-03-03T00:00:00+08:00"),
        ("yesterday", "2026-03-01T00:00:00+08:00", "2026-03-02T00:00:00+08:00"),
        ("week", "2026-02-23T00:00:00+08:00", "2026-02-24T00:00:00+08:00"),
        ("2026-02-01", "2026-02-01T00:00:00+08:00", "2026-02-02T00:00:00+08:00"),
        (" 2026-02-01 18:30 ", "2026-02-01T18:30:00+08:00", "2026-02-01T18:30:00+08:00"),
        ("2026-02-01T18:30Z", "2026-02-02T02:30:00+08:00", "2026-02-02T02:30:00+08:00"),
    ],
)
def test_times_are_the_owners(text: str, start: str, end: str) -> None:
    assert moment(text, NOW, SHANGHAI).astimezone(SHANGHAI).isoformat() == start
    assert moment(text, NOW, SHANGHAI, end=True).astimezone(SHANGHAI).isoformat() == end


@pytest.mark.parametrize("text", ["", "d", "7y", "99999d", "2026-2-1", "0001-01-01", "9999-12-31", "١d"])
def test_what_is_no_time(text: str) -> None:
    with pytest.raises(BadRequest, match="no time"):
        moment(text, NOW, SHANGHAI)


async def test_thumbs(shop: Shop) -> None:
    owner = await shop.person(Role.OWNER, "Desk Owner")
    first, second = await shop.person(Role.OPERATOR, "Desk A"), await shop.person(Role.OPERATOR, "Desk B")
    answer_id = await tell(shop, SENT)
    view = await shop.desk.answers.rate(first, answer_id, 1, key="tap-1")
    assert (view.rating, view.rated_by, view.rated_at) == (1, "Desk A", shop.clock().astimezone(SHANGHAI))
    assert (await shop.desk.answers.rate(first, answer_id, 1, key="tap-1")).rating == 1  # handed in again
    with pytest.raises(AccessDenied, match="Somebody else"):
        await shop.desk.answers.rate(second, answer_id, -1)
    view = await shop.desk.answers.rate(first, answer_id, -1)
    assert (view.rating, view.rated_by) == (-1, "Desk A")
    assert (await shop.desk.answers.rate(owner, answer_id, 1)).rated_by == "Desk Owner"
    assert (await shop.desk.answers.rate(owner, answer_id, 1)).rating == 0
    view = await shop.desk.answers.rate(second, answer_id, -1, toggle=False)
    assert (await shop.desk.answers.rate(second, answer_id, -1, toggle=False)).rating == -1
    assert view.rated_by == "Desk B"
    with pytest.raises(BadRequest):
        await shop.desk.answers.rate(owner, answer_id, 2)
    with pytest.raises(NotFound):
        await shop.desk.answers.rate(owner, "999", 1)
    rated = [row for row in await Audit(shop.db).last() if row.command == "answers rate"]
    assert rated[-1].detail == {"answer": answer_id, "rating": 1}
    assert rated[-1].actor == first.id


async def test_a_viewer_looks_and_does_not_rate(shop: Shop) -> None:
    await shop.person(Role.OWNER)
    viewer = await shop.person(Role.VIEWER)
    answer_id = await tell(shop, SENT)
    await shop.desk.answers.unanswered(viewer)
    with pytest.raises(AccessDenied):
        await shop.desk.answers.rate(viewer, answer_id, 1)
    assert (await shop.desk.answers.get(viewer, answer_id)).rating == 0
    assert (await Audit(shop.db).last())[1].allowed is False


async def test_what_had_no_answer_is_grouped_by_what_was_meant(shop: Shop) -> None:
    viewer = await shop.person(Role.VIEWER)
    await asked(shop, "你好，请问能刻字吗？", contact="11")
    await asked(shop, "运费多少", state="sent", provenance="person", person="Desk A", sent="包邮")
    await asked(shop, "能刻字", state="failed", contact="12")
    await asked(shop, "几点关门", state="sent", provenance="knowledge", sent="八点", record_id="k")
    newest = await asked(shop, "能刻字么", contact="11")
    await asked(shop, "？？", contact="13")
    groups = await shop.desk.answers.unanswered(viewer)
    assert [(group.example, group.count, group.contacts, group.answer) for group in groups] == [
        ("能刻字么", 3, ("11", "12"), ""),
        ("？？", 1, ("13",), ""),
        ("运费多少", 1, ("11",), "包邮"),
    ]
    assert groups[0].answer_id == newest
    assert groups[0].newest == (await shop.desk.answers.get(viewer, newest)).asked_at
    shop.clock.move(days=31)
    assert await shop.desk.answers.unanswered(viewer) == []
    assert len(await shop.desk.answers.unanswered(viewer, "60d")) == 3


async def test_a_run_shows_what_it_sent(shop: Shop) -> None:
    run_id = await run_in(shop)
    session = Session(run_id=run_id, task="t")
    session.replies.append(ReplyRecord(contact="11", question="q", text="七天内可退", provenance="knowledge"))
    await StoredRuns(shop.db).save(session)
    first = await tell(shop, SENT, run_id)
    await tell(shop, replace(SENT, ledger_id=2, state=ReplyState.SKIPPED), run_id)
    second = await tell(shop, replace(SENT, ledger_id=3), run_id)
    await tell(shop, replace(SENT, ledger_id=4), "another")
    run = await shop.desk.runs.get(run_id)
    assert run is not None
    assert [answer.id for answer in run.answers] == [first, second]
