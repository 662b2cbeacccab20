"""What is asked in a customer's newest messages, and how a long answer is cut."""

from __future__ import annotations

import random
from dataclasses import replace

import pytest

from agent_core.perception.readings import Bubble, BubbleKind, ChatScreen, Side, Source
from agent_core.reply.asked import asked_in, comes_from, query_for
from agent_core.reply.match import same_cluster
from agent_core.reply.planning import in_parts


def them(text: str, kind: BubbleKind = BubbleKind.TEXT) -> Bubble:
    return Bubble(Side.THEM, text, kind=kind)


def me(text: str) -> Bubble:
    return Bubble(Side.ME, text)


def page(*bubbles: Bubble) -> ChatScreen:
    return ChatScreen("11", bubbles, "", Source.TREE)


def words(*bubbles: Bubble) -> list[str]:
    return [asked.words for asked in asked_in(page(*bubbles), "zh")]


def test_each_message_that_asks_is_a_question() -> None:
    assert words(them("旧的问题？"), me("答"), them("几天能发货？"), them("能开发票吗？")) == [
        "几天能发货？",
        "能开发票吗？",
    ]


def test_what_asks_nothing_belongs_to_the_question_before_or_to_the_first() -> None:
    assert words(them("我上周买的杯子"), them("几天能发货？"), them("急用")) == ["我上周买的杯子\n几天能发货？\n急用"]


def test_messages_that_ask_nothing_are_one_question() -> None:
    assert words(them("我要十件"), them("红色的")) == ["我要十件\n红色的"]


def test_several_questions_in_one_message_are_several() -> None:
    assert words(them("你好，在吗？几天能发货？可以开发票吗？谢谢")) == ["几天能发货？", "可以开发票吗？"]
    many = "".join(f"第{n}个怎么用？" for n in range(6))
    assert words(them(many)) == [many]  # so many are for one person to read


@pytest.mark.parametrize("kind", [k for k in BubbleKind if k not in (BubbleKind.TEXT, BubbleKind.STICKER)])
def test_what_cannot_be_read_belongs_to_the_question_that_it_stands_beside(kind: BubbleKind) -> None:
    sign = them("", kind)
    for bubbles in ((them("能换新的吗？"), sign), (sign, them("能换新的吗？"))):
        (asked,) = asked_in(page(me("您好"), *bubbles), "zh")
        assert (asked.readable, asked.whole) == (True, False)
        assert "能换新的吗？" in asked.words.split("\n")
        assert "[" in asked.words
    (alone,) = asked_in(page(them("能换新的吗？"), me("您好"), sign), "zh")
    assert (alone.readable, alone.whole) == (False, False)
    answered = asked_in(page(sign, me("您好"), them("能换新的吗？")), "zh")
    assert [(one.words, one.whole) for one in answered] == [("能换新的吗？", True)]
    two = asked_in(page(them("几天能发货？"), them("能换新的吗？"), sign), "zh")
    assert [one.whole for one in two] == [True, False]


def test_what_a_message_quotes_belongs_to_its_words() -> None:
    quoting = replace(them("能退吗？几天到账？"), quoted="定制刻字的那款")
    (asked,) = asked_in(page(me("您好"), quoting), "zh")
    assert asked.words == "能退吗？几天到账？\n[引用 定制刻字的那款]"
    assert not asked.whole
    (said,) = asked_in(page(them("能退吗？"), replace(them("这个"), quoted="定制刻字的那款")), "zh")
    assert not said.whole


def test_a_sticker_beside_words_says_nothing_and_alone_it_is_all_there_is() -> None:
    sticker = them("", BubbleKind.STICKER)
    assert words(them("能开发票吗？"), sticker) == ["能开发票吗？"]
    assert asked_in(page(them("能开发票吗？"), sticker), "zh")[0].whole
    assert words(sticker) == ["[表情]"]


def test_a_question_is_known_again_when_more_is_written_below() -> None:
    before, question = me("您好"), them("几天能发货？")
    alone = asked_in(page(before, question), "zh")[0]
    with_more = asked_in(page(before, question, them("能开发票吗？"), them("急用")), "zh")[0]
    assert alone.fingerprint == with_more.fingerprint
    assert len({one.fingerprint for one in asked_in(page(them("几天到？能退吗？"), them("几天到？")), "zh")}) == 3


def test_the_query_that_a_question_gives_itself() -> None:
    assert query_for("我上周买的杯子\n你好，请问几天能发货？谢谢") == "几天能发货？"
    assert query_for("我要十件") == "我要十件"


@pytest.mark.parametrize(
    ("query", "said", "fits"),
    [
        ("几天能发货", "你好，请问几天能发货？", True),
        ("发货时间", "你好，请问几天能发货？", False),
        ("保修多久", "几天能发货？", False),
        ("灯不亮了", "买的台灯用了两天，灯不亮了", True),
    ],
)
def test_a_query_is_made_of_the_customers_words(query: str, said: str, fits: bool) -> None:
    assert comes_from(query, said) is fits


def test_ours_below_the_messages() -> None:
    asked = ["几天能发货？", "能开发票吗？"]
    both = [them(text) for text in asked]
    assert same_cluster(asked, "tree", page(*both, me("两天")), ["两天"])
    assert same_cluster(asked, "tree", page(me("两天")), ["两天"])  # pushed out of sight
    assert not same_cluster(asked, "tree", page(*both, me("两天"), them("好的")), ["两天"])
    assert not same_cluster(asked, "tree", page(*both, me("两天"), me("同事的话")), ["两天"])
    assert not same_cluster(asked, "tree", page(*both), ["两天"])
    assert not same_cluster(asked, "tree", page(me("您好"), both[1], me("两天")), ["两天"])  # one was taken back
    assert not same_cluster(asked, "tree", page(), ["两天"])


# Parts ------------------------------------------------------------------------------------------------------------


def test_a_short_text_is_one_part() -> None:
    assert in_parts("两天内发货。", 100) == []


def test_parts_end_with_sentences() -> None:
    text = "现货48小时内发出。偏远地区要3到5天；节假日顺延！退货请联系我们。"
    assert in_parts(text, 24) == ["现货48小时内发出。偏远地区要3到5天；", "节假日顺延！退货请联系我们。"]


def test_parts_that_would_be_equal_are_not_cut() -> None:
    assert in_parts("请稍等一下。" * 10, 6) == []


@pytest.mark.parametrize("seed", range(50))
def test_parts_are_the_text(seed: int) -> None:
    chance = random.Random(seed)
    text = "".join(
        chance.choice("发货退款价格，。！？；\n 0123456789ab、") for _ in range(chance.randint(1, 900))
    ).strip()
    most = chance.randint(10, 200)
    parts = in_parts(text, most)
    if parts:
        assert all(0 < len(part) <= most for part in parts)
        assert "".join("".join(parts).split()) == "".join(text.split())
