"""What keeps a record from being the answer, told from all of the customer's words."""

from __future__ import annotations

import pytest

from agent_core.ports import Record
from agent_core.sureness.fit import asks_for, misfit

SHIP = Record("ship", "付款后48小时内发出。", "几天能发货", aliases=("多久寄出",))
TWO = Record("two", "买2件就包邮的。", "买2件包邮吗")
PRO = Record("pro", "这款壳39元。", "15 Pro的壳多少钱")
PLANE = Record("plane", "可以随身带，不能托运。", "充电宝能带上飞机吗")
BACK = Record("back", "支持的，七天内可以退。", "能退货吗")
NEW = Record("new", "一年内直接给您免费换新的。", "充电宝坏了能换新的吗")


@pytest.mark.parametrize(
    ("words", "record"),
    [
        ("亲，几天能发货呀？", SHIP),
        ("多久寄出呢", SHIP),
        ("你们一般什么时候可以发货", SHIP),
        ("请问付款后多久发出", SHIP),
        ("买两件包邮不", TWO),
        ("iPhone在吗", Record("x", "在。", "iphone在吗")),
        ("这个充电宝可不可以带上飞机", PLANE),
        ("移动电源能带上飞机吗", PLANE),
        ("可以退货吗", BACK),
        ("退货行不行", BACK),
    ],
)
def test_what_asks_for_no_more_and_no_less_fits(words: str, record: Record) -> None:
    assert misfit(words, record) == ""


@pytest.mark.parametrize(
    ("words", "record"),
    [
        ("买3件包邮吗", TWO),
        ("买2箱包邮吗", TWO),
        ("包邮吗", TWO),
        ("15 Pro Max的壳多少钱", PRO),
        ("15 Pro➕的壳多少钱", PRO),
        ("15的壳多少钱", PRO),
        ("不能带上飞机吗", PLANE),
        ("充电宝和カメラ能带上飞机吗", PLANE),
        ("已经拆封用过半个月了还能退货吗", BACK),
        ("退货了吗", BACK),
        ("怎么退货", BACK),
        ("退货运费谁出", BACK),
        ("能换货吗", BACK),
        ("能退货吗，拆封的呢", BACK),
        ("如果能退货我就买", BACK),
        ("只能退货吗", BACK),
        ("除了新疆几天能发货", SHIP),
        ("发货了吗", SHIP),
        ("几天能发货\n不用回了", SHIP),
        ("充电宝是我自己摔裂的\n能换新的吗？", NEW),
        ("充电宝能换成新的数据线吗", NEW),
        ("", SHIP),
        ("在吗", SHIP),
    ],
)
def test_what_asks_for_something_else_does_not(words: str, record: Record) -> None:
    assert not asks_for(words, record)
    assert misfit(words, record)


def test_the_order_of_what_is_exchanged_counts() -> None:
    red = Record("red", "可以换的。", "红色能换蓝色吗")
    assert misfit("蓝色能换红色吗", red)
    assert misfit("13换15吗", Record("n", "可以。", "15换13吗"))


def test_a_passage_without_a_question_has_to_hold_all_that_is_asked() -> None:
    passage = Record("p", "现货订单在付款后48小时内发货，偏远地区补10元运费。")
    assert misfit("偏远地区要补运费吗", passage) == ""
    assert misfit("海外要补运费吗", passage)
    assert misfit("24小时内发货吗", passage)
    assert misfit("不补运费吗", passage)
