"""What is dropped of a question, and what never is."""

from __future__ import annotations

import pytest

from agent_core.reply.sureness.plain import is_politeness, stripped


@pytest.mark.parametrize(
    ("text", "left"),
    [
        ("你好，请问几天能发货？", "几天能发货"),
        ("亲，包邮吗？谢谢", "包邮"),
        ("好的，请问单件包邮吗", "单件包邮"),
        ("老板，电话多少", "电话多少"),
        ("老板 麻烦问下 几天发货呢", "几天发货"),
        ("在吗\n包邮吗\n谢谢啦😊", "包邮"),
        ("Hi! Thank you, is it free?", "isitfree"),
        ("S23 + 多少钱", "s23+多少钱"),
        ("S23➕多少钱", "s23+多少钱"),
        ("打 5 % 折吗", "打5%折"),
        ("１．５ 米", "1.5米"),
    ],
)
def test_politeness_and_plain_marks_are_dropped(text: str, left: str) -> None:
    assert stripped(text) == left


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("老板电话", "电话"),
        ("客服几点上班", "几点上班"),
        ("联系老板", "联系"),
        ("亲子装有吗", "子装有吗"),
        ("S23➕有膜吗", "S23有膜吗"),
        ("Pro + 有货吗", "Pro 有货吗"),
        ("体重<50斤穿多大", "体重50斤穿多大"),
        ("≥3件打折吗", "≤3件打折吗"),
        ("$99包邮吗", "¥99包邮吗"),
        ("5 %的折扣", "5的折扣"),
        ("5-6天", "56天"),
        ("-10度能用吗", "10度能用吗"),
        ("- 10度能用吗", "10度能用吗"),
        ("~ 5天到吗", "5天到吗"),
        ("什么时候能到 收到", "什么时候能到"),
        ("能退吗\n好的", "能退吗"),
        ("能退吗 没事了", "能退吗"),
        ("怎么说谢谢", "怎么说"),
        ("①号线", "②号线"),
    ],
)
def test_nothing_else_is(one: str, other: str) -> None:
    assert stripped(one) != stripped(other)


@pytest.mark.parametrize("text", ["", "？？", "在吗", "你好，在吗？谢谢！", "好的 收到", "👍", "***"])
def test_what_says_nothing(text: str) -> None:
    assert is_politeness(text)


@pytest.mark.parametrize("text", ["不用了", "算了", "没事了", "我自己摔的", "电话", "+1"])
def test_what_says_something(text: str) -> None:
    assert not is_politeness(text)
