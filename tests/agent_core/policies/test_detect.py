"""Which tasks are reply tasks, and for whom."""

from __future__ import annotations

import pytest

from agent_core.errors import InputRejected
from agent_core.loop.tasks import NO_RULES, TaskRules, check_rules
from agent_core.policies.detect import app_without_replies, reply_task
from tests.agent_core.policies.phrasings import PHRASINGS


@pytest.mark.parametrize("task", PHRASINGS)
def test_a_phrase_means_what_people_mean_by_it(task: str) -> None:
    if PHRASINGS[task] == "?":
        with pytest.raises(InputRejected, match="Whom to answer"):
            reply_task(task)
        return
    found = reply_task(task)
    assert PHRASINGS[task] == ("-" if found is None else f"{found.profile.key}:{','.join(found.contacts) or '*'}")


@pytest.mark.parametrize(
    ("task", "contact"),
    [
        ("QQ回复联系人11", "11"),
        ("QQ 回复 联系人 11", "11"),
        ("qq回复联系人11的问题", "11"),
        ("打开QQ，回复联系人11，然后结束", "11"),
        ("QQ智能客服", ""),
        ("用 QQ 的 GET_KNOWLEDGE_DATA 处理联系人110", "110"),
        ("QQ联系人小11", "小11"),
        ("QQ回复联系人：11", "11"),
        ("Reply to contact 11 on QQ", "11"),
        ("answer the newest question in qq", ""),
        ("QQ回复联系人“某某的店”", "某某的店"),
        ("手机QQ回复联系人11", "11"),
        ("QQ回复联系人11并说谢谢", "11"),
        ("QQ回复联系人11然后结束", "11"),
        ("QQ回复联系人“小王并发货”", "小王并发货"),
        ("QQ回复联系人“再回首”", "再回首"),
        ("QQ回复联系人“然后呢”，然后结束", "然后呢"),
        ("QQ回复联系人再回首", "再回首"),
        ("QQ回复联系人我的小店", "我的小店"),
        ("QQ回复联系人我的小店然后结束", "我的小店"),
    ],
)
def test_the_gate_is_on(task: str, contact: str) -> None:
    found = reply_task(task)
    assert found is not None
    assert found.profile.key == "qq"
    assert found.contact == contact


@pytest.mark.parametrize(
    "task",
    ["打开微博", "打开QQ看看动态", "用QQ音乐播放一首歌", "回复联系人11", "查一下 qqwry 的用法并回复", "截图"],
)
def test_the_gate_is_off(task: str) -> None:
    assert reply_task(task) is None


@pytest.mark.parametrize(
    ("task", "app"),
    [
        ("微信回复联系人11", "wechat"),
        ("WeChat: reply to contact 11", "wechat"),
        ("微信回复联系人11，不要打开QQ", "wechat"),
        ("QQ回复联系人11，他也在微信", "qq"),
        ("用QQ回复联系人11关于QQ音乐的问题", "qq"),
    ],
)
def test_of_several_apps_the_one_named_first(task: str, app: str) -> None:
    found = reply_task(task)
    assert found is not None
    assert found.profile.key == app


@pytest.mark.parametrize("task", ["企业微信回复联系人11", "QQ邮箱回复联系人11", "WeChat Work reply to contact 11"])
def test_an_apps_name_inside_anothers_is_none(task: str) -> None:
    assert reply_task(task) is None


def test_a_command_can_say_that_it_is_a_reply() -> None:
    assert reply_task("去QQ看看11") is None
    found = reply_task("去QQ看看联系人11", certain=True)
    assert found is not None
    assert found.contact == "11"
    assert reply_task("去看看11", certain=True) is None


def test_a_name_in_quotes_may_hold_anything() -> None:
    found = reply_task('QQ回复联系人"A 的 店，分店"')
    assert found is not None
    assert found.contact == "A 的 店，分店"


@pytest.mark.parametrize(
    ("task", "contact"),
    [
        ("QQ回复联系人11的小店", "11的小店"),
        ("QQ回复联系人11的小店的问题", "11的小店"),
        ("QQ回复联系人11的问题", "11"),
        ("QQ回复联系人小王并发货", "小王并发货"),
        ("QQ回复联系人小王并发货说谢谢", "小王并发货"),
        ("QQ回复联系人王 小明", "王 小明"),
        ("QQ回复联系人A 1", "A 1"),
        ("QQ回复联系人A 11", "A 11"),  # A 1 is another one
        ("QQ回复联系人小店铺", "小店铺"),  # as is 小店
        ("QQ回复联系人“11”的小店", "11"),
    ],
)
def test_a_known_contact_that_stands_there_is_taken_whole(task: str, contact: str) -> None:
    found = reply_task(task, ["11", "11的小店", "小王", "小王并发货", "王 小明", "A 1", "小店"])
    assert found is not None
    assert found.contact == contact


@pytest.mark.parametrize(
    ("task", "app"),
    [
        ("reply to 11 on WhatsApp", "WhatsApp"),
        ("WhatsApp: reply to Anna", "WhatsApp"),
        ("reply to everyone on WhatsApp", "WhatsApp"),
        ("Open WhatsApp and reply to Anna", "WhatsApp"),
        ("淘宝回复张三", "淘宝"),
        ("帮我在淘宝上回复张三", "淘宝"),
        ("打开闲鱼，回复买家小王", "闲鱼"),
        ("答复钉钉上的李四", "钉钉"),
        ("企业微信回复联系人11", "企业微信"),
        ("回复支付宝里联系人11", "支付宝"),
        ("淘定回复联系人11", "淘定"),  # no app is called so: nobody is to be answered by chance in another one
        ("在淘定上回复11", "淘定"),
        ("回复11 在淘定", "淘定"),
        ("打开淘定，然后回复联系人11", "淘定"),
        ("QQQ回复11", "QQQ"),
        ("reply to 11 on Taobo", "Taobo"),
        ("reply to contact 11 in Taobo", "Taobo"),
        ("open Taobo and reply to contact 11", "Taobo"),
    ],
)
def test_an_order_to_answer_in_an_app_without_replies_is_refused_at_once(task: str, app: str) -> None:
    assert app_without_replies(task) == app
    with pytest.raises(InputRejected) as caught:
        check_rules(task, NO_RULES)
    assert (caught.value.key, caught.value.values["app"]) == ("reply_app_unknown", app)
    assert str(caught.value.values["known"]) == "QQ, WeChat"
    assert check_rules(task, TaskRules("careful"))


@pytest.mark.parametrize(
    "task",
    [
        "打开微博，回复评论",
        "在小红书回复张三的评论",
        "打开B站，回复弹幕",
        "打开淘宝，回复“谢谢”",
        "淘宝回复客服",
        "WhatsApp reply to the driver",
        "打开微博，看看有没有人回复",
        "在淘宝搜索手机壳，回复我价格",
        "打开淘宝，回到首页",
        "打开百度地图回家",
        "打开短信，回复10086",
        "reply to Anna on Gmail",
        "reply to the comment on 小红书",
        "search WhatsApp and answer the call",
        "在知乎回答问题",
        "收到后回复1",
        "收到短信回复1",
        "在弹窗里回复1",
        "reply 1 on time",
        *(task for task, means in PHRASINGS.items() if means not in "-?"),
    ],
)
def test_other_tasks_in_such_an_app_are_no_order_to_answer(task: str) -> None:
    assert app_without_replies(task) == ""
    check_rules(task, NO_RULES)
