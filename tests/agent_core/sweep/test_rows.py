"""What the notifications of QQ and WeChat tell of who wrote, as a phone prints them."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from agent_core.apps.profile import AppProfile, profile
from agent_core.devices.adb.parse import parse_notifications
from agent_core.devices.base import Node, Notification
from agent_core.geometry import Box
from agent_core.perception.lists import ChatRow, with_preview
from agent_core.sweep import Aside
from agent_core.sweep.rows import FoundRow, Noted, noted, state_of, told_by, whole_name

QQ, WECHAT = profile("qq"), profile("wechat")


def dump(app: AppProfile, *said: tuple[str, str]) -> Sequence[Notification]:
    """These titles and texts as ``dumpsys notification --noredact`` prints them."""
    package = app.packages[0]
    records = [
        f"""    NotificationRecord(0x0a1b2c3d: pkg={package} user=UserHandle{{0}} id={number} tag=null importance=4 key=0|{package}|{number}|null|10123: Notification(channel=message shortcut=null contentView=null vibrate=null sound=null defaults=0x0 flags=0x18 color=0x00000000 vis=PRIVATE))
      uid=10123 userId=0
      key=0|{package}|{number}|null|10123
      extras={{
          android.title=String ({title})
          android.text=SpannableString ({text})
          android.showWhen=Boolean (true)
      }}
      mUpdateTimeMs=1772600000000
"""  # noqa: E501 - so it is printed
        for number, (title, text) in enumerate(said)
    ]
    return parse_notifications("Current Notification Manager state:\n  Notification List:\n" + "".join(records))


def of(app: AppProfile, title: str, text: str, known: Sequence[str] = ()) -> Noted:
    notes = dump(app, (title, text))
    assert [(note.title, note.text) for note in notes] == [(title, text)]
    return noted(notes, app, known=known)


@pytest.mark.parametrize(
    ("app", "title", "text", "name"),
    [
        (QQ, "小王", "在吗", "小王"),
        (QQ, "小王(2条新消息)", "在吗", "小王"),
        (QQ, "小王 (12条新消息)", "在吗", "小王"),
        (QQ, "[特别关心]小王", "在吗", "小王"),
        (QQ, "[特别关心]小王(2条新消息)", "在吗", "小王"),
        (QQ, "11", "[图片]", "11"),
        (QQ, "11(2)", "在吗", None),  # as groups are written, and no count of messages
        (WECHAT, "小王", "Hello", "小王"),
        (WECHAT, "小王", "[2条]小王: 在吗", "小王"),
        (WECHAT, "小王", "[2条]小王: 地址：北京", "小王"),
        (WECHAT, "a: b", "[2条]a: b: 在吗", "a: b"),
        (WECHAT, "Wang Wei", "[12条]Wang Wei: hi", "Wang Wei"),
    ],
)
def test_who_a_notification_names(app: AppProfile, title: str, text: str, name: str | None) -> None:
    assert list(of(app, title, text).contacts) == ([name] if name else [])


@pytest.mark.parametrize(
    ("app", "title", "text"),
    [
        (QQ, "售后服务(2条新消息)", "小李: 大家好"),
        (QQ, "售后服务", "[有人@我]小李: 在吗"),
        (WECHAT, "一家人", "小李: 大家好"),
        (WECHAT, "一家人", "[2条]小李: 大家好"),
        (WECHAT, "一家人", "[2条]Li Lei: hi"),
        (WECHAT, "小王", "[2条]小王二: 在吗"),  # names are compared whole
    ],
)
def test_a_group_is_no_contact(app: AppProfile, title: str, text: str) -> None:
    assert of(app, title, text) == Noted()
    found = FoundRow(app, ())
    found.add_notes(dump(app, (title, text)))
    assert [one.why for one in found.aside.values()] == [Aside.GROUP]
    assert found.waiting == {}


@pytest.mark.parametrize(
    ("app", "title", "text"),
    [
        (QQ, "QQ空间动态(共1条未读)", "小王赞了你的说说"),
        (QQ, "关联QQ号 (3条新消息)", "小王: 在吗"),
        (QQ, "QQ", "正在后台运行"),
        (WECHAT, "微信支付", "已支付￥1.00"),
    ],
)
def test_what_tells_of_no_customer(app: AppProfile, title: str, text: str) -> None:
    assert of(app, title, text) == Noted()


@pytest.mark.parametrize(
    ("app", "title", "text"),
    [
        (QQ, "QQ", "你收到了2条新消息"),
        (QQ, "你收到了2条新消息", ""),
        (QQ, "QQ", "有3个联系人给你发过来5条新消息"),
        (QQ, "[新的标记]小王", "在吗"),
        (QQ, "小王(3条语音消息)", "在吗"),
        (WECHAT, "微信", "你收到了一条消息"),
        (WECHAT, "微信(3条新消息)", "在吗"),
        (WECHAT, "小王", "[2条]在吗"),
    ],
)
def test_what_names_nobody_for_sure_leads_to_the_list(app: AppProfile, title: str, text: str) -> None:
    told = of(app, title, text)
    assert (dict(told.contacts), bool(told.nameless)) == ({}, True)
    found = FoundRow(app, ())
    found.add_notes(dump(app, (title, text)))
    assert (found.waiting, found.aside) == ({}, {})


def test_a_contact_that_is_known_may_be_called_as_a_form_is() -> None:
    assert list(of(QQ, "[VIP]小王", "在吗").contacts) == []
    assert list(of(QQ, "[VIP]小王", "在吗", known=["[VIP]小王"]).contacts) == ["[VIP]小王"]
    assert list(of(QQ, "[VIP]小王(2条新消息)", "在吗", known=["[VIP]小王"]).contacts) == ["[VIP]小王"]
    assert list(of(QQ, "11(2)", "在吗", known=["11(2)"]).contacts) == ["11(2)"]


def test_one_more_message_is_another_state() -> None:
    one, two = (of(WECHAT, "小王", f"[{count}条]小王: 在吗").contacts["小王"] for count in (2, 3))
    assert one != two


def test_the_words_without_what_the_app_puts_before_them() -> None:
    (note,) = dump(WECHAT, ("小王", "[2条]小王: 在吗"))
    row = told_by(note, WECHAT).row
    assert row is not None
    assert (row.name, row.unread, row.preview) == ("小王", 2, "在吗")


# Rows of the list


BOX = Box(0, 200, 1080, 390)


def row(name: str, preview: str, unread: int = 0, *, dot: bool = False, time: str = "09:30") -> ChatRow:
    return with_preview(ChatRow(name, BOX, unread, dot=dot, time=time), preview)


def test_a_dot_is_something_new() -> None:
    found = FoundRow(WECHAT, ())
    found.add_rows([row("小王", "在吗", dot=True), row("小李", "[3条]小李: 好", dot=True), row("老王", "好")], (), ())
    assert [(one.contact, one.unread) for one in found.waiting.values()] == [("小王", 1), ("小李", 3)]
    assert (list(found.seen), found.unread, found.dots) == (["老王"], 0, True)  # the tab does not count muted chats


def test_rows_that_are_no_chats_are_neither_seen_nor_waiting() -> None:
    found = FoundRow(WECHAT, ())
    found.add_rows([row("Windows 微信已登录", "", time=""), row("折叠置顶聊天", "", time="")], (), ())
    assert (found.waiting, found.seen, found.aside) == ({}, {}, {})


def test_our_own_draft_tells_nothing_of_the_contact() -> None:
    drafts = [row("小王", f"[草稿]{text}", 1) for text in ("小李: 您好", "您")]
    assert state_of(drafts[0]) == state_of(drafts[1])
    assert state_of(drafts[0]) != state_of(row("小王", "[草稿]您", 2))
    found = FoundRow(WECHAT, ())
    found.add_rows(drafts[:1], (), ())
    assert list(found.waiting) == ["小王"]


def test_a_row_that_names_its_contact_before_the_words_is_no_group() -> None:
    found = FoundRow(WECHAT, ())
    found.add_rows([row("小王", "[2条]小王: 在吗", 2), row("小李", "[2条]小王: 在吗", 2)], (), ())
    assert (list(found.waiting), list(found.aside)) == (["小王"], ["小李"])


def test_a_group_with_a_contacts_name_is_set_aside_and_the_contact_waits() -> None:
    found = FoundRow(WECHAT, ["小王"])
    found.add_rows([row("小王", "[有人@我]小李: 在吗", 2), row("小王", "能退吗", 1)], (), ())
    assert [one.why for one in found.aside.values()] == [Aside.GROUP]
    assert [(one.contact, one.unread) for one in found.waiting.values()] == [("小王", 1)]
    for targets in (None, ["小王"]):
        told = noted(dump(WECHAT, ("小王", "[2条]小李: 在吗")), WECHAT, known=["小王"], targets=targets)
        assert told == Noted()


def test_two_rows_of_one_name_that_wait_are_one_contact_in_another_state() -> None:
    found = FoundRow(WECHAT, ())
    found.add_rows([row("小王", "在吗", 2), row("小王", "能退吗", 1)], (), ())
    found.add_rows([row("小王", "能退吗", 1)], (), ())  # the last row of one page is the first of the next
    (both,) = found.waiting.values()
    alone = FoundRow(WECHAT, ())
    alone.add_rows([row("小王", "在吗", 2)], (), ())
    assert both.unread == 3
    assert both.state != alone.waiting["小王"].state


@pytest.mark.parametrize("name", ["小\u200b王", "小王\u3164"])
def test_who_looks_like_a_contact_and_is_not_called_so_is_set_aside(name: str) -> None:
    found = FoundRow(WECHAT, ["小王"])
    found.add_rows([row(name, "在吗", 2)], (), ())
    assert ([one.why for one in found.aside.values()], found.waiting) == ([Aside.LOOK_ALIKE], {})
    told = noted(dump(WECHAT, (name, "在吗")), WECHAT, known=["小王"], targets=["小王"])
    assert (dict(told.contacts), bool(told.nameless)) == ({}, True)  # the list of chats tells people


def test_a_description_of_a_row_gives_the_name_alone() -> None:
    start, full = "上海浦东新区张江高…", "上海浦东新区张江高科技园区"
    nodes = [
        Node(BOX, description=f"{full}, ,有2条未读,{full}见,14:05"),
        Node(Box(44, 230, 174, 360), description=f"{full}的资料卡"),
    ]
    assert whole_name(row(start, "在吗", 2), (), nodes, ()) == full
