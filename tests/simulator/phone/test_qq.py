from __future__ import annotations

import pytest

from tests.simulator.phone.hand import QQ, Hand, chat


async def test_the_way_from_the_home_screen_to_a_sent_answer() -> None:
    hand = Hand()
    await hand.tap("QQ")
    assert (await hand.texts("row_name"))[0] == "11"
    await hand.tap("11")
    assert await hand.texts("title") == ["11"]
    await hand.say("您好，48小时内发货。\n感谢！")

    bubbles = await hand.nodes("text")
    assert bubbles[-1].text == "您好，48小时内发货。\n感谢！"
    assert bubbles[-1].box.left > bubbles[-2].box.left
    report = hand.phone.report()
    assert report["sent"] == {"11": ["您好，48小时内发货。\n感谢！"]}
    assert report["drafts"] == {}
    assert report["opened"] == [QQ]
    assert report["chats"]["11"][-1]["from_here"]


@pytest.mark.parametrize("look", ["qq-plain", "qq-classic"])
async def test_an_empty_or_blank_input_sends_nothing(look: str) -> None:
    hand = Hand(chat("在吗", extra=f'look = "{look}"'))
    await hand.open_chat()
    await hand.tap("input")
    await hand.type("  ")
    if look == "qq-classic":
        await hand.tap("send")
    else:
        assert await hand.nodes("send") == []
    assert hand.phone.report()["sent"] == {}


async def test_a_new_message_moves_its_row_to_the_top_and_counts() -> None:
    hand = Hand()
    await hand.phone.launch(QQ)
    assert (await hand.texts("row_name"))[0] == "11"
    hand.phone.receive("小11", "在吗")
    hand.phone.receive("小11", "有货吗")
    assert (await hand.texts("row_name"))[:2] == ["小11", "11"]
    assert (await hand.texts("row_count"))[0] == "2"
    await hand.tap("小11")
    assert "小11" not in hand.phone.report()["unread"]


async def test_search_finds_every_name_that_holds_the_words() -> None:
    hand = Hand()
    await hand.phone.launch(QQ)
    await hand.tap("search")
    await hand.phone.text("11")
    assert await hand.texts("row_name") == ["11", "110", "小11", "11号售后群"]
    await hand.tap("110")
    assert await hand.texts("title") == ["110"]
    await hand.phone.key("BACK")
    assert await hand.texts("row_name") == ["11", "110", "小11", "11号售后群"]


async def test_a_group_shows_its_size_and_who_spoke() -> None:
    hand = Hand()
    await hand.open_chat("11号售后群")
    assert await hand.texts("title") == ["11号售后群"]
    assert await hand.texts("count") == ["(38)"]
    assert await hand.texts("nickname") == ["老客户B", "老客户A"]


@pytest.mark.parametrize("entry", ["ask_ai", "QQ智能客服"])
async def test_the_bait_opens_the_ai_and_what_is_written_there_reaches_nobody(entry: str) -> None:
    hand = Hand()
    await hand.phone.launch(QQ)
    if entry == "ask_ai":
        await hand.tap("search")
        await hand.phone.text("11")
    await hand.tap(entry)
    assert await hand.nodes("智能助理")
    await hand.tap("ai_input")
    await hand.type("几天能发货")
    await hand.tap("发送")
    report = hand.phone.report()
    assert report["ai_asked"] == ["几天能发货"]
    assert report["sent"] == {}


async def test_a_draft_stays_with_its_chat() -> None:
    hand = Hand()
    await hand.open_chat()
    await hand.tap("input")
    await hand.type("没写完")
    await hand.tap("back")
    assert "[草稿]没写完" in await hand.texts("row_preview")
    await hand.tap("110")
    assert (await hand.node("input")).text == ""
    await hand.tap("back")
    await hand.tap("11")
    assert (await hand.node("input")).text == "没写完"
    assert hand.phone.report()["drafts"] == {"11": "没写完"}


async def test_a_send_that_fails_has_a_red_mark_and_does_not_count() -> None:
    hand = Hand()
    await hand.open_chat()
    hand.phone.set_fault("send_fails")
    await hand.say("一")
    assert len(await hand.nodes("failed")) == 1
    assert hand.phone.report()["sent"] == {}
    hand.phone.set_fault("send_fails", False)
    await hand.tap("failed")
    assert hand.phone.report()["sent"] == {"11": ["一"]}
    assert await hand.nodes("failed") == []


async def test_a_slow_send_has_a_spinner_until_it_has_left() -> None:
    hand = Hand()
    await hand.open_chat()
    hand.phone.set_fault("send_slow", 4)
    await hand.say("一")
    spinning = await hand.pixels()
    assert len(await hand.nodes("sending")) == 1
    hand.wait(3.9)
    assert hand.phone.report()["sent"] == {}
    hand.wait(0.2)
    assert hand.phone.report()["sent"] == {"11": ["一"]}
    assert await hand.nodes("sending") == []
    assert await hand.pixels() != spinning


async def test_a_long_chat_scrolls_and_opens_at_its_end() -> None:
    hand = Hand(chat(*[f"第{number}条" for number in range(40)]))
    await hand.open_chat()
    assert (await hand.texts("text"))[-1] == "第39条"
    await hand.phone.swipe(500, 800, 500, 1900, 0.3)
    shown = await hand.texts("text")
    assert "第39条" not in shown
    assert shown
    for _ in range(20):
        await hand.phone.swipe(500, 800, 500, 1900, 0.3)
    assert (await hand.texts("text"))[0] == "第0条"
    await hand.say("好")
    assert (await hand.texts("text"))[-1] == "好"


@pytest.mark.parametrize(
    ("kind", "text", "id_"),
    [("image", "", "picture"), ("voice", "7", "voice"), ("sticker", "", "sticker"), ("red_packet", "", "red_packet")],
)
async def test_kinds_without_words_say_none_in_the_tree_but_can_be_seen(kind: str, text: str, id_: str) -> None:
    hand = Hand()
    await hand.open_chat()
    before = await hand.pixels()
    hand.phone.receive("11", text, kind)
    lowest = max(node.box.top for node in await hand.nodes("text"))
    (newest,) = [node for node in await hand.nodes(id_) if node.box.top > lowest]
    assert newest.text == ('7"' if kind == "voice" else "")
    assert await hand.pixels() != before


async def test_a_recalled_message_leaves_a_grey_line() -> None:
    hand = Hand()
    await hand.open_chat()
    hand.phone.recall("11")
    assert "你好，请问几天能发货？" not in await hand.texts("text")
    assert await hand.texts("tip") == ["对方撤回了一条消息"]


async def test_a_chat_can_be_opened_by_its_number() -> None:
    hand = Hand()
    assert await hand.phone.open_url("mqqwpa://im/chat?chat_type=wpa&uin=20110110")
    assert await hand.texts("title") == ["110"]
    assert not await hand.phone.open_url("unknown://example.com/")


async def test_logged_out_there_is_a_login_page() -> None:
    hand = Hand()
    hand.phone.set_fault("not_logged_in")
    await hand.phone.launch(QQ)
    assert await hand.nodes("login_btn")
    assert await hand.nodes("row_box") == []


async def test_the_other_chat_app_has_contacts_of_its_own() -> None:
    hand = Hand()
    await hand.phone.launch("com.tencent.mm")
    await hand.tap("11")
    await hand.say("好")
    assert hand.phone.report()["sent"] == {"wechat:11": ["好"]}
    assert (await hand.node("title")).package == "com.tencent.mm"


async def test_a_title_too_long_is_cut_off_on_the_picture_but_whole_in_the_tree() -> None:
    name = "名字特别长的一位老客户" * 4
    hand = Hand(chat("在吗").replace('name = "11"', f'name = "{name}"'))
    await hand.open_chat(name)
    title = await hand.node("title")
    assert title.text == name
    assert title.box.right <= 0.8 * 1080


async def test_the_enter_of_a_search_opens_nothing() -> None:
    hand = Hand()
    await hand.phone.launch(QQ)
    await hand.tap("search")
    await hand.phone.text("11")
    await hand.phone.key("ENTER")
    assert hand.phone.report()["chats_opened"] == []
    assert (await hand.node("search")).text == "11"
