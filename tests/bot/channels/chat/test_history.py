"""Runs that were, in the chat, over the real desk."""

from __future__ import annotations

from datetime import timedelta

import pytest

from bot.channels.chat.cards import ReplayOrder
from bot.channels.chat.history import media_card, ranges, read_asking, read_replay
from bot.channels.chat.texts import texts
from bot.desk.actors import Role
from bot.desk.history_views import HistoryAsked
from storage.events import Events
from storage.retention import Retention
from storage.runs import NewRun, Runs
from tests.bot.channels.chat.member import Member, member
from tests.bot.desk.past import past_run, screen
from tests.support.shop import Shop


@pytest.fixture
async def viewer(shop: Shop) -> Member:
    await member(shop, Role.OWNER)
    return await member(shop, Role.VIEWER, "Desk A")


@pytest.mark.parametrize(
    ("rest", "asked"),
    [
        ("", HistoryAsked()),
        ("今天", HistoryAsked(since="today")),
        ("Week failed", HistoryAsked(since="week", status="failed")),
        ("失败 7天", HistoryAsked(since="7d", status="failed")),
        ("昨天 成功", HistoryAsked(since="yesterday", until="yesterday", status="succeeded")),
        ("2026-11-01", HistoryAsked(since="2026-11-01")),
        ("联系人 11", HistoryAsked(contact="11")),
        ("联系人：退货 失败", HistoryAsked(contact="退货", status="failed")),
        ("退货 多久 12h", HistoryAsked(words="退货 多久", since="12h")),
    ],
)
def test_what_can_be_asked_for(rest: str, asked: HistoryAsked) -> None:
    assert read_asking(rest) == asked


@pytest.mark.parametrize(
    ("rest", "read"),
    [
        ("", ("", "gif")),
        ("12", ("12", "gif")),
        ("#12 相册", ("#12", "album")),
        ("sheet 12", ("12", "sheet")),
        ("拼图", ("", "sheet")),
        ("1jb5x9q4zkm2f", ("1jb5x9q4zkm2f", "gif")),
    ],
)
def test_which_replay_is_meant(rest: str, read: object) -> None:
    assert read_replay(rest) == read


def test_steps_in_few_words() -> None:
    assert ranges([1, 2, 3, 7, 9, 10]) == "1–3, 7, 9–10"
    assert ranges([]) == ""


async def test_nothing_yet(viewer: Member) -> None:
    for words in ("/history", "历史"):
        assert "还没有执行过任务" in await viewer.say(words)
        assert viewer.buttons == []
    assert "没有符合条件" in await viewer.say("/history 失败")
    assert "还没有执行过任务。" in await viewer.say("回放")
    assert "没有任务 7" in await viewer.say("/replay 7")


async def test_a_list_tells_when_how_where_who_and_what_was_sent(shop: Shop, viewer: Member) -> None:
    await past_run(shop.db, "打开设置", status="failed", message="没有网络", by=viewer.actor.id)
    await past_run(shop.db, sent={"11": "七天内可退", "12": "三天", "13": "能", "14": "好"}, schedule_id=4)
    said = await viewer.say("历史")
    assert "共 2 次" in said
    assert said.index("#2") < said.index("#1")
    local = (shop.clock.time + timedelta(hours=8)).strftime("%m-%d %H:%M")
    assert f"{local} · ❌ 失败 · S1 · Desk A · 0 秒" in said
    assert "打开设置\n没有网络" in said
    assert "✅ 已完成 · S1 · 定时任务 #4" in said
    assert "QQ回复联系人11\n→ 11：七天内可退\n→ 12：三天\n还发送了 2 条" in said
    assert [button.label for button in viewer.buttons] == ["#2", "#1"]
    opened = await viewer.tap(viewer.action("#1"))
    assert "❌ 失败" in opened
    assert "打开设置" in opened
    assert [button.label for button in viewer.buttons] == ["🎬 回放"]
    for number in ("1", "#1"):
        assert await viewer.say(f"/history {number}") == opened
    assert "#2" in await viewer.say("/history 11"), "there is no such run: the contact"


async def test_pages_keep_what_was_asked_for(shop: Shop, viewer: Member) -> None:
    for number in range(1, 14):
        await Runs(shop.db).create(NewRun(f"任务 {number}"))
    await viewer.say("/history 任务 排队")
    assert [button.label for button in viewer.buttons] == [f"#{n}" for n in range(13, 3, -1)] + ["更早的 »"]
    await viewer.tap(viewer.action("更早"))
    assert viewer.said.messages[0].replaces is not None
    assert [button.label for button in viewer.buttons] == ["#3", "#2", "#1", "« 更新的"]
    await viewer.tap(viewer.action("更新"))
    assert "更早的 »" in [button.label for button in viewer.buttons]
    long = "历史：任务 " + "今天 " * 20  # too long for a button
    await viewer.say(long)
    older = viewer.action("更早")
    assert older.endswith(":~")
    await viewer.tap(older, subject=long)
    assert [button.label for button in viewer.buttons] == ["#3", "#2", "#1", "« 更新的"]
    for odd in ("history:b12:~", "history:x:", "history::", "history:b:失败"):
        await viewer.tap(odd)
        assert (viewer.said.messages, viewer.said.alert) == ((), True)


async def test_a_replay_is_ordered_not_made(shop: Shop, viewer: Member) -> None:
    """Whoever taps Stop meanwhile is heard at once: the film is the channel's to make."""
    run_id = await past_run(shop.db)
    await viewer.say("/replay 1 相册")
    (message,) = viewer.said.messages
    assert message.card.film == ReplayOrder(run_id, "album", "zh")
    assert message.reply_to == "5"
    await viewer.tap(f"replay:{run_id}")
    assert viewer.said.messages[0].card.film == ReplayOrder(run_id, "gif", "zh")
    assert "正在制作" in viewer.said.toast


async def test_a_run_without_pictures(shop: Shop, viewer: Member) -> None:
    await past_run(shop.db, steps=0)
    assert "任务 #1 没有画面" in await viewer.say("/replay")
    run_id = await past_run(shop.db)
    shop.clock.move(days=40)
    await Retention(shop.db).events(shop.clock.time - timedelta(days=30))
    assert "已按保存期限删除" in await viewer.say("/replay 2")
    await viewer.tap(f"replay:{run_id}")
    assert viewer.said.alert
    assert "已按保存期限删除" in viewer.said.toast
    assert viewer.said.messages == ()
    card = await media_card(shop.desk.history, ReplayOrder(run_id, "gif", "zh"))  # gone since it was ordered
    assert "已按保存期限删除" in card.title
    assert card.animation is None


@pytest.mark.slow
async def test_the_film_and_what_is_not_in_it(shop: Shop) -> None:
    run_id = await past_run(shop.db, steps=70, size=(27, 60))
    card = await media_card(shop.desk.history, ReplayOrder(run_id, "gif", "en"))
    assert card.animation is not None
    assert (card.title, card.animation.name) == ("🎬 Replay #1", "run-1.gif")
    assert card.animation.data.startswith(b"GIF89a")
    said = [line.text for line in card.lines]
    assert said[0] == "QQ回复联系人11"
    assert said[-1].startswith("Steps left out: 4, 11, ")
    many = await media_card(
        shop.desk.history, ReplayOrder(await past_run(shop.db, steps=200, size=(27, 60)), "gif", "en")
    )
    assert "spread evenly: 140 are left out" in many.lines[-1].text
    album = await media_card(shop.desk.history, ReplayOrder(run_id, "album", "zh"))
    assert (len(album.album), album.animation, album.picture) == (10, None, None)
    assert "没有放进来的步骤：2–8、10–15" in album.lines[-1].text
    sheet = await media_card(shop.desk.history, ReplayOrder(run_id, "sheet", "zh"))
    assert sheet.picture is not None
    one = await media_card(shop.desk.history, ReplayOrder(await past_run(shop.db, steps=1), "gif", "zh"))
    assert one.picture is not None
    assert "只有一个画面。" in [line.text for line in one.lines]


async def test_what_stands_below_the_pictures(shop: Shop) -> None:
    from bot.channels.chat.history import shots_of

    run_id = await past_run(shop.db, steps=2, sent={"11": "七天内可退"})
    await Events(shop.db).append(
        run_id, "question", {"id": "q", "kind": "interact", "text": "哪一个？"}, picture=screen(9)
    )
    shots = shots_of(await shop.desk.history.film(run_id, most=60), texts("zh"))
    assert [(shot.title, shot.words, shot.label) for shot in shots] == [
        ("1/2 点击 (500, 1)", "想法 1", "1"),
        ("2/2 点击 (500, 2)", "想法 2", "2"),
        ("✅ 已发送 · 11", "七天内可退", ""),
        ("❓ 需要你来选择", "哪一个？", ""),
    ]


async def test_a_viewer_may_look_and_a_stranger_not(shop: Shop, viewer: Member) -> None:
    await past_run(shop.db)
    assert "共 1 次" in await viewer.say("/history")
