"""Which record is sent without a person looking at it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import pytest

from agent_core.ports import Chosen, Record
from agent_core.reply.choosing import asks_for, decide, misfit, sure_record

WORDS = "亲，几天能发货呀？谢谢"
SHIP = Record("ship", "付款后48小时内发出。", "几天能发货", score=0.4)
PRESALE = Record("presale", "预售的15天内发出。", "预售的几天能发货", score=0.4)
SOON = Record("ship", "付款后48小时内发出。", "几天能发货", aliases=("多久寄出",))
TWO = Record("two", "买2件就包邮的。", "买2件包邮吗")
PRO = Record("pro", "这款壳39元。", "15 Pro的壳多少钱")
PLANE = Record("plane", "可以随身带，不能托运。", "充电宝能带上飞机吗")
BACK = Record("back", "支持的，七天内可以退。", "能退货吗")
NEW = Record("new", "一年内直接给您免费换新的。", "充电宝坏了能换新的吗")


@dataclass
class Picks:
    """A chooser that takes the record with this number, whatever it says."""

    number: int
    asked: list[str] = field(default_factory=list)

    async def choose(self, words: str, query: str, records: Sequence[Record]) -> Chosen | None:
        self.asked.append(words)
        return Chosen(records[self.number].text, records[self.number])


def record(text: str, *, sure: bool = True, score: float | None = None) -> Record:
    return Record(id=text, text=text, sure=sure, score=score)


def test_the_best_one_if_the_provider_is_sure() -> None:
    best, other = record("a", score=0.9), record("b", score=0.8)
    assert sure_record([best, other]) == best
    assert sure_record([record("a", sure=False, score=0.9), other]) is None
    assert sure_record([]) is None
    assert sure_record([record("  ", score=1.0)]) is None


def test_without_scores_records_that_contradict_each_other_are_not_sure() -> None:
    assert sure_record([record("a"), record("b")]) is None
    assert sure_record([record("a"), record("a")]) == record("a")
    assert sure_record([record("a"), record("b", sure=False)]) == record("a")


async def test_the_very_words_need_no_score_and_no_chooser() -> None:
    chooser = Picks(0)
    chosen = await decide(chooser, WORDS, "发货", [PRESALE, SHIP])
    assert chosen == Chosen(SHIP.text, SHIP)
    assert chooser.asked == []
    as_alias = replace(PRESALE, aliases=("几天能发货？",))
    assert await decide(None, WORDS, "发货", [as_alias]) == Chosen(PRESALE.text, as_alias)


async def test_the_very_words_of_two_records_are_for_a_person() -> None:
    assert await decide(Picks(0), WORDS, "发货", [SHIP, replace(SHIP, id="other", text="三天内。")]) is None
    assert await decide(None, WORDS, "发货", [SHIP, replace(SHIP, id="twin")]) is not None


@pytest.mark.parametrize("words", ["预售的几天能发货", "几天能发货\n我要旧款", "不能发货吗", "20件几天能发货"])
async def test_neither_a_score_nor_a_pick_makes_a_record_fit_other_words(words: str) -> None:
    assert await decide(None, words, "几天能发货", [replace(SHIP, sure=True, score=0.99)]) is None
    assert await decide(Picks(0), words, "几天能发货", [SHIP]) is None


async def test_what_a_score_or_a_chooser_finds_is_sent_if_nothing_is_left_open() -> None:
    words = "什么时候能发货"
    assert await decide(None, words, words, [SHIP]) is None
    sure = replace(SHIP, sure=True)
    assert await decide(None, words, words, [sure]) == Chosen(SHIP.text, sure)
    assert await decide(Picks(1), words, words, [PRESALE, SHIP]) == Chosen(SHIP.text, SHIP)


async def test_another_record_that_answers_as_well_makes_a_pick_unsure() -> None:
    words = "什么时候能发货"
    rival = Record("rival", "三天内发出。", "多久能发货", score=0.39)
    assert await decide(Picks(0), words, words, [SHIP, rival]) is None
    assert await decide(Picks(0), words, words, [SHIP, replace(rival, text=SHIP.text)]) is not None


async def test_a_composed_reply_needs_all_words_in_its_records() -> None:
    @dataclass
    class Composes:
        async def choose(self, words: str, query: str, records: Sequence[Record]) -> Chosen | None:
            return Chosen("付款后48小时内发出，可以开发票。", records[0], composed=True, sources=tuple(records))

    both = [SHIP, Record("bill", "可以开发票。", "能开发票吗")]
    assert await decide(Composes(), "几天能发货，能开发票吗", "发货", both) is not None
    assert await decide(Composes(), "几天能发货，能开专票吗", "发货", both) is None


@pytest.mark.parametrize(
    ("words", "record"),
    [
        ("亲，几天能发货呀？", SOON),
        ("多久寄出呢", SOON),
        ("什么时候可以发货", SOON),
        ("请问付款后多久发出", SOON),
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
        ("除了新疆几天能发货", SOON),
        ("发货了吗", SOON),
        ("几天能发货\n不用回了", SOON),
        ("充电宝是我自己摔裂的\n能换新的吗？", NEW),
        ("充电宝能换成新的数据线吗", NEW),
        ("", SOON),
        ("在吗", SOON),
    ],
)
def test_what_asks_for_something_else_does_not(words: str, record: Record) -> None:
    assert not asks_for(words, record)
    assert misfit(words, record)


@pytest.mark.parametrize(
    ("words", "question"),
    [
        # what may be, must be, or is
        ("需要预约吗", "可以预约吗"),
        ("冰箱需要自己安装吗", "冰箱可以自己安装吗"),
        ("能不退货吗", "不能退货吗"),
        ("哪个颜色好看", "有哪些颜色"),
        ("这款面膜好吗", "有面膜吗"),
        ("must I register", "can I register"),
        # who does it, and to whom
        ("退货运费是我出吗", "退货运费是你们出吗"),
        ("你们会打电话给我吗", "我能给你们打电话吗"),
        ("老板电话是多少", "电话是多少"),
        ("老板 电话是多少", "电话是多少"),
        ("can you call me", "can I call you"),
        # the order
        ("买壳送手机吗", "买手机送壳吗"),
        ("买2件壳送膜吗", "买壳送2件膜吗"),
        ("北京发上海几天", "上海发北京几天"),
        ("孩子能带大人吗", "大人能带孩子吗"),
        ("苹果手机能用安卓充电器吗", "安卓手机能用苹果充电器吗"),
        ("茶花有吗", "有花茶吗"),
        ("B款可以换成A款吗", "A款能换成B款吗"),
        ("蓝色能换红色吗", "红色能换蓝色吗"),
        ("13换15吗", "15换13吗"),
        ("15+ Pro有吗", "15 Pro+有吗"),
        ("付款后发货前能改吗", "付款前发货后能改吗"),
        ("exchange red for blue", "exchange blue for red"),
        ("不送充电器送数据线吗", "送充电器不送数据线吗"),
        # what is measured
        ("数据线有多重", "数据线有多长"),
        ("数据线多宽", "数据线多长"),
        ("数据线有几根", "数据线多长"),
        ("一箱几斤", "一箱几瓶"),
        ("耳机怎么样", "耳机怎么办"),
        ("几点发货", "几天发货"),
        ("保修什么时候", "保修多久"),
        # a verb that is asked as "X不X", and a denial at the end
        ("退不退货呀", "有货吗"),
        ("发没发货", "有货吗"),
        ("发没发货", "发货吗"),
        ("送不送货", "有货吗"),
        ("粘不粘锅", "有锅吗"),
        ("脱不脱毛", "是毛的吗"),
        ("保修卡没有", "有保修卡吗"),
        ("can't I return it", "can I return it"),
        # what is said behind the question, and signs with blanks
        ("什么时候能到\n收到", "什么时候能到"),
        ("能退吗\n知道了", "能退吗"),
        ("- 10度能用吗", "10度能用吗"),
        ("~ 5天到吗", "5天到吗"),
    ],
)
def test_one_word_or_its_place_makes_another_question(words: str, question: str) -> None:
    for asked, wanted in ((words, question), (question, words)):
        record = Record("r", "是的亲。", wanted)
        assert not asks_for(asked, record)
        assert misfit(asked, record)


@pytest.mark.parametrize(
    ("words", "question"),
    [
        ("大概几天能发货", "几天能发货"),
        ("退不退货呀", "退货吗"),
        ("发没发货", "已经发货吗"),
        ("S23膜有没有", "S23膜有吗"),
        ("有货没有", "有货吗"),
        ("数据线多长", "数据线有多长"),
        ("¥99包邮吗", "99元包邮吗"),
        ("零下18度能用吗", "-18℃能用吗"),
        ("小孩给换吗", "小孩可以换吗"),
    ],
)
def test_words_of_one_meaning_make_no_other_question(words: str, question: str) -> None:
    assert misfit(words, Record("r", "是的亲。", question)) == ""


PASSAGE = "现货订单在付款后48小时内发货，偏远地区补10元运费。签收后7天内可以退货，付款后可以改地址，满200便宜10元。"


@pytest.mark.parametrize(
    "words",
    [
        *("偏远地区补运费吗", "付款后可以改地址吗", "可以退货吗", "签收后7天内可以退货吗"),
        *("满200便宜多少钱", "偏远地区补多少钱"),
    ],
)
def test_a_clause_of_a_passage_has_to_say_all_that_is_asked(words: str) -> None:
    assert misfit(words, Record("p", PASSAGE)) == ""


@pytest.mark.parametrize(
    "words",
    [
        *("在吗", "好的", "客服", "多少钱", "怎么办", "什么时候", "可以吗", "能给我吗", "退货", "我要退货"),
        "偏远地区补运费",
        *("海外要补运费吗", "24小时内发货吗", "不补运费吗", "付款前能改地址吗", "签收后能改地址吗", "15天内可以退货吗"),
        *("7天后可以退货吗", "需要退货吗", "满300便宜吗", "满200便宜多少个", "为什么补运费", "退货了吗", "谁补运费"),
        *("偏远地区要补运费吗", "偏远地区可以退货吗", "能退货吗，拆封的呢", "你们补运费吗", "运费补偏远地区吗"),
    ],
)
def test_nothing_else_is_sure_of_a_passage(words: str) -> None:
    assert misfit(words, Record("p", PASSAGE))
