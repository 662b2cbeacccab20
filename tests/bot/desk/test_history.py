from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import pytest

from agent_core.session import WAITS_ELSEWHERE, Elsewhere, ReplyRecord, Session, Status
from bot.channels.chat.history import past_lines
from bot.channels.chat.run_cards import run_card
from bot.channels.chat.texts import texts
from bot.channels.cli.terminal.live import outcome_line
from bot.desk.actors import AccessDenied, BadRequest, NotFound, Role
from bot.desk.history_views import HistoryAsked
from bot.desk.views import RunStatus
from storage.events import Events
from storage.retention import Retention
from storage.runs import NewRun, Runs
from tests.bot.desk.past import past_run, screen
from tests.support.shop import Shop


async def test_the_newest_first_with_all_that_a_list_shows(shop: Shop) -> None:
    who = await shop.person(Role.VIEWER, "Desk A")
    assert (await shop.desk.history.runs(who, HistoryAsked())).runs == ()
    first = await past_run(shop.db, "打开设置", by=who.id, status="failed", message="没有网络")
    shop.clock.move(minutes=5)
    second = await past_run(shop.db, sent={"11": "七天内可退"}, schedule_id=4)
    page = await shop.desk.history.runs(who, HistoryAsked())
    assert [(run.number, run.id) for run in page.runs] == [(2, second), (1, first)]
    assert (page.total, page.older, page.newer) == (2, False, False)
    newest, oldest = page.runs
    assert (newest.status, newest.sent, newest.schedule_id) == (RunStatus.SUCCEEDED, (("11", "七天内可退"),), "4")
    assert (oldest.status, oldest.by, oldest.message, oldest.sent) == (RunStatus.FAILED, "Desk A", "没有网络", ())
    assert (oldest.phone, oldest.task) == ("S1", "打开设置")
    assert oldest.at == shop.clock.time - timedelta(minutes=5)
    assert oldest.at.utcoffset() == timedelta(hours=8)


async def test_an_answer_that_was_sent_once_for_two_messages_is_in_the_list_once(shop: Shop) -> None:
    who = await shop.person(Role.VIEWER, "Desk A")
    await past_run(shop.db, sent=[("11", "两天内发出"), ("11", "两天内发出"), ("11", "七天内可退")])
    [run] = (await shop.desk.history.runs(who, HistoryAsked())).runs
    assert run.sent == (("11", "两天内发出"), ("11", "七天内可退"))


@pytest.mark.parametrize(
    ("goes_on", "sent", "ended_as", "state"),
    [
        (True, False, "succeeded", "card.elsewhere"),
        (True, True, "succeeded", "card.succeeded"),
        (False, False, "failed", "card.waiting"),
        (False, True, "succeeded", "card.waiting"),
    ],
)
async def test_a_customer_left_to_an_older_run_reads_the_same_in_every_place(
    shop: Shop, goes_on: bool, sent: bool, ended_as: str, state: str
) -> None:
    who = await shop.person(Role.VIEWER)
    run_id = await past_run(shop.db, status=ended_as)
    replies = [ReplyRecord(contact="11", question="?", text="!", provenance="person", delivered=True)] if sent else []
    elsewhere = Elsewhere(run_id="older", goes_on=goes_on)
    session = Session(
        run_id=run_id,
        task="t",
        status=Status(ended_as),
        error_kind=WAITS_ELSEWHERE,
        elsewhere=elsewhere,
        replies=replies,
    )
    await Runs(shop.db).save_session(run_id, session.model_dump_json())
    (listed,) = (await shop.desk.history.runs(who, HistoryAsked())).runs
    for words in (texts("zh"), texts("en")):
        said = words.get(state)
        assert said in past_lines(listed, words)[0].text
        assert run_card((await shop.desk.history.replay(who)).run, words, now=shop.clock.time).title == said
        assert outcome_line(session, words).plain.startswith(said)


async def test_a_customer_left_to_a_run_that_is_over_is_not_waited_for(shop: Shop) -> None:
    who = await shop.person(Role.VIEWER)
    older = await past_run(shop.db, status="succeeded")
    run_id = await past_run(shop.db, status="failed")
    session = Session(
        run_id=run_id,
        task="t",
        status=Status.FAILED,
        error_kind=WAITS_ELSEWHERE,
        elsewhere=Elsewhere(run_id=older, goes_on=False),
    )
    await Runs(shop.db).save_session(run_id, session.model_dump_json())
    newest = (await shop.desk.history.runs(who, HistoryAsked())).runs[0]
    said = texts("zh").get("card.elsewhere_over")
    assert said in past_lines(newest, texts("zh"))[0].text
    assert run_card((await shop.desk.history.replay(who)).run, texts("zh"), now=shop.clock.time).title == said


async def test_what_can_be_asked_for(shop: Shop) -> None:
    who = await shop.person(Role.VIEWER)
    await past_run(shop.db, "打开设置", status="failed", message="没有网络", serial="S2")
    shop.clock.move(days=2)
    await past_run(shop.db, "QQ回复联系人11", sent={"11": "七天内可退"})
    await past_run(shop.db, "QQ回复联系人110", sent={"110": "100% 可以"})
    await past_run(shop.db, "看看有没有新消息", sent={"客户甲": "好的"})

    async def numbers(**asked: str) -> list[int]:
        page = await shop.desk.history.runs(who, HistoryAsked(**asked))
        assert page.total == len(page.runs)
        return [run.number for run in page.runs]

    assert await numbers(words="设置") == [1]
    assert await numbers(words="网络") == [1]
    assert await numbers(words="S2") == [1]
    assert await numbers(words="七天") == [2]
    assert await numbers(words="110") == [3]
    assert await numbers(words="客户甲") == [4]
    assert await numbers(words="客户") == []  # a contact by the whole name
    assert await numbers(words="0%") == [3]
    assert await numbers(contact="11") == [2]
    assert await numbers(status="failed") == [1]
    assert await numbers(since="today") == [4, 3, 2]
    assert await numbers(since="7d", status="failed") == [1]
    assert await numbers(until="1d") == [1]
    assert await numbers(words="nothing") == []
    with pytest.raises(BadRequest, match="soon"):
        await numbers(since="soon")
    with pytest.raises(BadRequest, match="odd"):
        await numbers(status="odd")


async def test_pages_in_both_directions(shop: Shop) -> None:
    who = await shop.person(Role.VIEWER)
    for number in range(1, 8):
        await Runs(shop.db).create(NewRun(f"任务 {number}" + (" 甲" if number % 2 else "")))
    log = shop.desk.history

    async def page(asked: HistoryAsked = HistoryAsked(), **at: int) -> tuple[list[int], bool, bool]:  # noqa: B008 - frozen
        found = await log.runs(who, asked, limit=3, **at)
        return [run.number for run in found.runs], found.newer, found.older

    assert await page() == ([7, 6, 5], False, True)
    assert await page(before=5) == ([4, 3, 2], True, True)
    assert await page(before=2) == ([1], True, False)
    assert await page(after=1) == ([4, 3, 2], True, True)
    assert await page(after=4) == ([7, 6, 5], False, True)
    odd = HistoryAsked(words="甲")
    assert await page(odd) == ([7, 5, 3], False, True)
    assert await page(odd, before=3) == ([1], True, False)


async def test_a_run_by_number_by_id_and_the_newest(shop: Shop) -> None:
    who = await shop.person(Role.VIEWER)
    with pytest.raises(NotFound, match="no runs yet"):
        await shop.desk.history.replay(who)
    first, second = await past_run(shop.db, "甲"), await past_run(shop.db, "乙", steps=2)
    for name in ("1", "#1", " ＃1 ", first, first.upper()):
        assert (await shop.desk.history.run(who, name)).id == first
    newest = await shop.desk.history.replay(who)
    assert (newest.run.id, newest.number, newest.pictures, newest.gone) == (second, 2, 2, False)
    assert [step.thinking for step in newest.steps] == ["想法 1", "想法 2"]
    for name in ("0", "3", "9" * 30, "nothing", "1 2", "-1", "一"):
        with pytest.raises(NotFound):
            await shop.desk.history.run(who, name)


async def test_who_is_limited_to_a_phone_sees_its_runs_alone(shop: Shop) -> None:
    who = replace(await shop.person(Role.VIEWER), phones=("S2",))
    await past_run(shop.db, serial="S1")
    mine = await past_run(shop.db, serial="S2")
    await past_run(shop.db, serial="S1")
    page = await shop.desk.history.runs(who, HistoryAsked())
    assert ([run.id for run in page.runs], page.total) == ([mine], 1)
    assert (await shop.desk.history.replay(who)).run.id == mine
    for look in (shop.desk.history.run, shop.desk.history.replay):
        with pytest.raises(AccessDenied):
            await look(who, "1")


async def test_the_pictures_in_their_order(shop: Shop) -> None:
    run_id = await past_run(shop.db, steps=3, sent={"11": "七天内可退"})
    film = await shop.desk.history.film(run_id, most=60)
    assert [frame.step.index if frame.step else frame.state for frame in film.frames] == [1, 2, 3, "sent"]
    assert film.frames[-1].picture == screen(101)  # not that of before
    assert (film.frames[-1].contact, film.frames[-1].text) == ("11", "七天内可退")
    assert (film.left_out, film.gone) == ((), ())
    short = await shop.desk.history.film(run_id, most=3)
    assert [frame.step.index if frame.step else frame.state for frame in short.frames] == [1, 3, "sent"]
    assert short.left_out == (2,)
    with pytest.raises(NotFound):
        await shop.desk.history.film("nothing", most=3)


async def test_pictures_that_are_not_kept_any_more(shop: Shop) -> None:
    who = await shop.person(Role.VIEWER)
    run_id = await past_run(shop.db, steps=3)
    bare = await past_run(shop.db, steps=0)
    shop.clock.move(days=31)
    assert await Retention(shop.db).events(shop.clock.time - timedelta(days=30)) > 0
    view = await shop.desk.history.replay(who, run_id)
    assert (view.pictures, view.gone, len(view.steps)) == (0, True, 3)
    assert (await shop.desk.history.film(run_id, most=60)).gone == (1, 2, 3)
    nothing = await shop.desk.history.replay(who, bare)
    assert (nothing.pictures, nothing.gone) == (0, False)  # there never were any


async def test_a_step_of_another_release_is_a_picture_without_words(shop: Shop) -> None:
    who = await shop.person(Role.VIEWER)
    run_id = await past_run(shop.db, steps=1)
    await Events(shop.db).append(run_id, "step", {"index": "odd"}, picture=screen(7))
    film = await shop.desk.history.film(run_id, most=60)
    assert [(frame.step is None, frame.picture == screen(7)) for frame in film.frames] == [(False, False), (True, True)]
    assert (await shop.desk.history.replay(who, run_id)).pictures == 2
