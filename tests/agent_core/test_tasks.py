from __future__ import annotations

import pytest

from agent_core.errors import InputRejected
from agent_core.loop.tasks import MAX_TASK, TaskRules, check_rules, check_task


@pytest.mark.parametrize(
    ("task", "checked"),
    [
        (" QQ回复联系人11\n", "QQ回复联系人11"),
        ("one\ntwo\tthree", "one\ntwo\tthree"),
        ("one\r\ntwo", "one\ntwo"),
        ("😀 x", "😀 x"),
        ("a" * MAX_TASK, "a" * MAX_TASK),
        (" " * 5000 + "a", "a"),
    ],
)
def test_a_task(task: str, checked: str) -> None:
    assert check_task(task) == checked


@pytest.mark.parametrize(
    "task",
    [
        "",
        " \n\t ",
        "\u3000",
        "\u200b",
        "a" * (MAX_TASK + 1),
        "a\x00b",
        "a\x1b[2Jb",
        "a\x7f",
        "a\x85b",
        "a\udcffb",
        "a\rb",
    ],
)
def test_what_is_none(task: str) -> None:
    with pytest.raises(InputRejected) as caught:
        check_task(task)
    assert caught.value.advice


@pytest.mark.parametrize(
    "task",
    [
        "不要打开微信",
        "别再打开微信",
        "Do not open WeChat",
        "打开微信，再看QQ",
        "open WeChat after qq",
        "进入设置，打开通知",
    ],
)
def test_an_app_that_is_named_beside_the_allowed_one(task: str) -> None:
    assert check_rules(task, TaskRules(apps=("com.tencent.mobileqq",)))


@pytest.mark.parametrize("task", ["打开微信", "open WeChat", "不要打开设置，打开微信"])
def test_an_app_to_open_that_is_none_of_the_allowed(task: str) -> None:
    with pytest.raises(InputRejected) as caught:
        check_rules(task, TaskRules(apps=("QQ",)))
    assert caught.value.key == "other_app_named"


@pytest.mark.parametrize(
    "task",
    [
        "回复联系人11",
        "请回复联系人张三的问题",
        "回复11",
        "回复11、12",
        "给张三回复",
        "回复所有人",
        "智能客服回复",
        "reply to contact 11",
        "reply to 11",
        "reply to 11 and 12",
        "please write back to Anna",
        "reply to everyone",
        "auto-reply",
        "回答11",
        "请回答11的问题",
        "回11",
        "answer 11",
        "please answer 11's question",
        "answer 11 and 12",
    ],
)
def test_an_answer_in_no_app_is_asked_about(task: str) -> None:
    with pytest.raises(InputRejected) as caught:
        check_rules(task, TaskRules())
    assert caught.value.key == "reply_where"
    assert check_rules(task, TaskRules(policy="careful"))


@pytest.mark.parametrize(
    "task",
    [
        "回复微博评论",
        "看看联系人11有没有回复",
        "整理联系人",
        "回复邮件",
        "打开闲鱼，回复买家",
        "回复我现在的电量",
        "回答问题",
        "回答3道题",
        "answer 12 questions",
        "answer 11 by mail",
        "respond to the email",
        "reply to 11 in the shop app",
        "reply with the battery's level",
        "open the shop app and reply to 11",
        "answer the phone",
        "do not reply to 11",
    ],
)
def test_what_only_looks_like_one(task: str) -> None:
    assert check_rules(task, TaskRules()) == TaskRules()
