"""What must not be had by a slip, by a forged tap, or without the right to it."""

from __future__ import annotations

from dataclasses import replace

import pytest

from agent_core.devices.base import DeviceEntry
from agent_core.errors import DeviceOffline
from agent_core.session import QuestionKind
from bot.channels.chat.conversation import Conversation
from bot.channels.chat.turn import Incoming, Person
from bot.desk.actors import ChatRef, MessageRef, Role
from bot.desk.desk import Desk
from bot.desk.request_limits import NOTED_OF_ONE, WRONG_OF_ONE
from storage.people import Audit, People
from storage.runs import NewRun, Runs
from tests.bot.channels.chat.member import member
from tests.support.shop import CHAT, PHONE, Shop
from tests.support.stage import Stage
from tests.support.talker import Talker, shown, talker


@pytest.mark.parametrize("word", ["here", "这里", "本群"])
async def test_nobody_is_limited_to_the_owners_own_chat(shop: Shop, word: str) -> None:
    owner = await member(shop, Role.OWNER)
    anna = await member(shop, Role.OPERATOR, "Anna")
    assert "请在要限制的群里发这条命令" in await owner.say(f"/people limit #{anna.actor.id} chat {word}")
    row = await People(shop.db).get(int(anna.actor.id))
    assert row is not None
    assert not row.chats


async def test_a_stranger_who_goes_on_guessing_is_told_once_and_noted_little(shop: Shop) -> None:
    talk = Conversation(shop.desk)

    async def guess(number: int) -> str:
        incoming = Incoming("text", Person("7", "G", "zh"), ChatRef("telegram", "7"), f"k{number}", "/start x")
        return shown(await talk.handle(incoming))

    said = [await guess(number) for number in range(WRONG_OF_ONE + 40)]
    assert len([words for words in said if words]) == WRONG_OF_ONE + 1
    assert len(await Audit(shop.db).refused(100)) <= NOTED_OF_ONE + 1
    shop.clock.move(minutes=15)
    assert "配对码不对" in await guess(900)


async def test_the_phones_with_what_runs_and_what_waits(stage: Stage, wang: Talker) -> None:
    stage.attached.append(DeviceEntry("S2", "offline", "Mi"))
    await wang.say("/run 第一个")
    await stage.begin(await stage.newest())
    await wang.say("/run 第二个")
    said = (await wang.say("设备")).split("\n")
    assert said[:5] == [
        "手机",
        "Pixel: 空闲",
        "序列号: S1",
        "正在做: ▶️ 执行中 · 第一个 · 第 0 步",
        "排队: 1 个，下一个：第二个",
    ]
    assert said[5:] == ["Mi: 离线", "序列号: S2"]
    assert await wang.say("/devices") == await wang.say("手机") == "\n".join(said)


async def test_a_digest_that_has_ended_is_off(shop: Shop) -> None:
    chief, anna = await shop.person(Role.OWNER), await shop.person(Role.OPERATOR, "Anna")
    on = await shop.desk.digest.switch(anna, CHAT, daily=True)
    assert (on.daily, on.weekly) == (True, False)
    await People(shop.db).update(int(anna.id), role="viewer")
    off = await shop.desk.digest.setting(chief, CHAT)
    assert (off.daily, off.weekly) == (False, False)
    again = await shop.desk.digest.switch(chief, CHAT, weekly=True)
    assert (again.daily, again.weekly) == (False, True)
    await People(shop.db).remove(int(anna.id))
    assert (await shop.desk.digest.setting(chief, CHAT)).weekly


async def test_the_second_kind_leaves_the_first_ones_sight_alone(shop: Shop) -> None:
    chief, anna = await shop.person(Role.OWNER), await shop.person(Role.OPERATOR, "Anna")
    await People(shop.db).limit(int(anna.id), serials=[PHONE])
    await shop.desk.digest.switch(anna, CHAT, daily=True)
    await shop.desk.digest.switch(chief, CHAT, weekly=True)
    (chat,) = [chat for chat in await shop.desk.digest.chats() if chat.key == CHAT.key]
    assert (chat.person_id, set(chat.kinds), tuple(chat.serials)) == (int(anna.id), {"daily", "weekly"}, (PHONE,))


async def test_a_question_is_not_shown_to_who_may_not_answer(stage: Stage, wang: Talker) -> None:
    await wang.say("/run QQ回复联系人11")
    question = await stage.ask(
        await stage.newest(), QuestionKind.NO_SURE_ANSWER, ("yes", "秘密选项"), text="客户的秘密", free_text=False
    )
    viewer = talker(stage.desk, "13", "Zhao")
    await viewer.say("/start 1234")
    await stage.desk.questions.set_card(question, MessageRef(viewer.chat, "50"))
    said = await viewer.say("随便", reply_to=MessageRef(viewer.chat, "50"))
    in_group = talker(stage.desk, "13", "Zhao", group=True)
    said += await in_group.tap(f"own:{question}")
    assert "秘密" not in said
    assert said.count("没有权限") == 2


async def tapped(who: Talker, action: str, *buttons: str) -> tuple[str, bool]:
    """What is said, and whether it takes the place of the card."""
    incoming = Incoming(
        "button", who.person, who.chat, f"forged-{action}", action=action, message_id="9",
        reply_to=MessageRef(who.chat, "77"), subject="某事", buttons=buttons,
    )  # fmt: skip
    said = await who.conversation.handle(incoming)
    return shown(said), any(message.replaces for message in said.messages)


async def test_a_made_up_tap_overwrites_no_card(stage: Stage, wang: Talker) -> None:
    assert await tapped(wang, "no", "stop:run1") == ("(找不到原来的消息了，请用 /run 再发一次。)", False)
    assert await tapped(wang, "go", "stop:run1") == ("(找不到原来的消息了，请用 /run 再发一次。)", False)
    assert await stage.runs() == []
    assert [row.command for row in await Audit(stage.db).refused(5)] == ["forged", "forged"]
    assert (await tapped(wang, "no", "go", "no"))[1]
    viewer = talker(stage.desk, "13", "Zhao")
    await viewer.say("/start 1234")
    said, over = await tapped(viewer, "no", "go", "no")
    assert "没有权限" in said
    assert not over


async def test_cards_of_the_subjects_are_kept_from_made_up_taps(shop: Shop) -> None:
    owner = await member(shop, Role.OWNER)
    await owner.tap("people:list", buttons=("stop:1",), message_id="9")
    assert [message.replaces for message in owner.said.messages] == [None]
    await owner.tap("people:list", buttons=("people:list",), message_id="9")
    assert owner.said.messages[0].replaces is not None


async def test_runs_are_stopped_and_held_by_the_number_of_the_list(shop: Shop) -> None:
    owner = await member(shop, Role.OWNER)
    ids = [await Runs(shop.db).create(NewRun(f"任务{n}", PHONE)) for n in (1, 2, 3)]
    assert "任务1" in await owner.say("/hold 1")
    assert "任务1" in await owner.say("/resume 1")
    assert "任务2" in await owner.say("/stop #2")
    rows = [await Runs(shop.db).get(str(run_id)) for run_id in ids]
    assert [row is not None and (row.final or row.stop_requested) for row in rows] == [False, True, False]


async def test_stop_and_hold_are_never_too_much(shop: Shop) -> None:
    """However often the person asked before; and who taps anything else learns why nothing comes of it."""
    shop.desk.context.pace.per_minute = 1
    operator = await member(shop, Role.OPERATOR)
    ids = [str(await Runs(shop.db).create(NewRun(f"任务{n}", PHONE, requested_by=operator.actor.id))) for n in (1, 2)]
    said = [await operator.say("/whoami") for _ in range(3)]
    assert "太频繁了" in said[1]
    assert said[2] == ""
    await operator.tap(f"hold:{ids[0]}")
    assert "太频繁了" not in operator.said.toast
    await operator.tap(f"stop:{ids[0]}")
    assert "任务2" in await operator.say("停止")
    rows = [await Runs(shop.db).get(run_id) for run_id in ids]
    assert [row is not None and row.status for row in rows] == ["stopped", "stopped"]
    await operator.tap("resume:x")
    assert "太频繁了" in operator.said.toast


async def test_stop_in_a_phones_place_asks_no_phone(shop: Shop) -> None:
    async def dead() -> list[DeviceEntry]:
        raise DeviceOffline("adb does not answer")

    boss = await member(shop, Role.OWNER)
    run_id = str(await Runs(shop.db).create(NewRun("任务", PHONE)))
    talk = Conversation(Desk(replace(shop.desk.context, entries=dead, glance=dead)))
    place = ChatRef("telegram", "-5", "9", "group")
    said = await talk.handle(Incoming("text", Person(boss.actor.user_id, "B"), place, "k1", "/stop", phone=PHONE))
    row = await Runs(shop.db).get(run_id)
    assert row is not None
    assert row.status == "stopped", shown(said)


async def test_stop_in_answer_to_a_card_means_its_run(shop: Shop) -> None:
    boss = await member(shop, Role.OWNER)
    ids = [str(await Runs(shop.db).create(NewRun(f"任务{n}", PHONE, requested_by=boss.actor.id))) for n in (1, 2)]
    card = MessageRef(ChatRef("telegram", boss.actor.user_id), "40")
    await shop.desk.runs.set_card(ids[0], card)
    for number, words in enumerate(("/hold", "停止")):
        talk = Incoming("reply", Person(boss.actor.user_id, "B"), card.chat, f"k{number}", words, reply_to=card)
        assert "任务1" in shown(await Conversation(shop.desk).handle(talk))
    rows = [await Runs(shop.db).get(run_id) for run_id in ids]
    assert [row is not None and row.final for row in rows] == [True, False]
    assert "没有任务 99999" in await boss.say("/stop 99999")
