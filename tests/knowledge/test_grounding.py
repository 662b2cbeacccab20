"""What code lets through of a composed reply."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from knowledge.grounding import problems

SHIPPING = "48小时内发货，默认发中通快递，满99元包邮，偏远地区补10元运费。"
RETURNS = "签收后七天内支持无理由退换货，退回运费由买家承担，包装要完好。"
CHARGER = "20W Type-C 充电器，支持 PD3.0，型号 AC-20W，详见 https://shop.example.com/ac20，保修12个月，售价¥59.9，不支持无线充电。"
ENGLISH = "We ship within 48 hours. Returns are free of charge within seven days if the box is not damaged."


@pytest.mark.parametrize(
    ("reply", "records"),
    [
        ("48小时内发货，签收后七天内支持无理由退换货。", [SHIPPING, RETURNS]),
        ("您好，默认发中通快递，满99元包邮；退回运费由买家承担哦", [SHIPPING, RETURNS]),
        ("签收后7天内支持无理由退换货", [RETURNS]),
        ("保修十二个月，售价59.90元", [CHARGER]),
        ("支持 PD3.0，详见 https://shop.example.com/ac20。", [CHARGER]),
        ("不支持无线充电，保修12个月", [CHARGER]),
        ("４８小时内发货", [SHIPPING]),
        ("Returns are free of charge within 7 days if the box is not damaged, and we ship within 48 hours.", [ENGLISH]),
    ],
)
def test_what_stands_in_the_records_is_let_through(reply: str, records: list[str]) -> None:
    assert problems(reply, records) == []


@pytest.mark.parametrize(
    ("reply", "records", "named"),
    [
        ("24小时内发货，默认发中通快递", [SHIPPING], "number"),
        ("8小时内发货，默认发中通快递", [SHIPPING], "number"),  # a part of 48
        ("48天内发货，默认发中通快递", [SHIPPING], "number"),  # the unit
        ("二十四小时内发货，默认发中通快递", [SHIPPING], "number"),
        ("满九十九块包邮，补一百元运费", [SHIPPING], "number"),
        ("满九折包邮", [SHIPPING], "number"),
        ("签收后三十天内支持无理由退换货", [RETURNS], "number"),
        ("签收后半年内支持无理由退换货", [RETURNS], "number"),
        ("保修12个月，售价￥9.9", [CHARGER], "number"),
        ("保修12年", [CHARGER], "number"),
        ("百分之五十运费由买家承担", [RETURNS], "number"),
        ("签收后七天内支持无理由退换货，截止2027年3月5日", [RETURNS], "number"),
        ("退回运费由买家承担，详询13800138000", [RETURNS], "number"),
        ("退回运费由买家承担 138 0013 8000", [RETURNS], "number"),
        ("We ship within two hours", [ENGLISH], "number"),
        ("We ship within 48 days", [ENGLISH], "number"),
        ("详见 https://shop.example.com/ac21", [CHARGER], "link"),
        ("详见 https://shop.example.com.evil.io/ac20", [CHARGER], "link"),
        ("默认发中通快递 evil.cn/x", [SHIPPING], "link"),
        ("默认发中通快递 a@b.com", [SHIPPING], "link"),
        ("型号 AC-30W，保修12个月", [CHARGER], "code"),
        ("满99元包邮，口令SAVE", [SHIPPING], "code"),
        ("满99元包邮，加微信", [SHIPPING], "risk"),
        ("满99元包邮，运费全额退款", [SHIPPING], "risk"),
        ("支持无线充电，保修12个月", [CHARGER], "clause"),
        ("签收后七天内不支持无理由退换货", [RETURNS], "clause"),
        ("Returns are free of charge if the box is damaged", [ENGLISH], "clause"),
        ("**48小时内发货**", [SHIPPING], "markdown"),
        ("- 48小时内发货\n- 默认发中通快递", [SHIPPING], "markdown"),
        ("默认发中通快递，可以吗", [SHIPPING], "question"),
        ("默认发中通快递？", [SHIPPING], "question"),
        ("默认发中通快递\u200b", [SHIPPING], "characters"),
        ("默认发中通快递🎁", [SHIPPING], "symbol"),
        ("您好，感谢您的咨询", [SHIPPING], "words"),
        ("老板跑路了大家快来维权", [SHIPPING], "words"),
        ("默认发中通快递，老板跑路了大家快来", [SHIPPING], "words"),
        ("默认发中通快递 обман", [SHIPPING], "words"),
        ("48小时内发货，默认发中通快递，满99元包邮，偏远地区补10元运费猫狗兔鸟", [SHIPPING * 2], "words"),
        ("We ship within 48 hours because pigs dance happily everywhere", [ENGLISH], "words"),
        ("发货" * 200, [SHIPPING * 20], "length"),
        ("默认发中通快递，默认发中通快递", ["默认发中通快递"], "length"),
        (" ", [SHIPPING], "empty"),
    ],
)
def test_what_does_not_is_named(reply: str, records: list[str], named: str) -> None:
    assert named in problems(reply, records)


@pytest.mark.parametrize(
    ("reply", "records"),
    [
        ("数据线39.9元一条。", ["数据线 19.9 元一条。", "充电头 39.9 元一个。"]),
        ("数据线，39.9元一个。", ["数据线 19.9 元一条。", "充电头 39.9 元一个。"]),
        ("A款 https://b.example.com/y 下单", ["A款 https://a.example.com/x 下单", "B款 https://b.example.com/y 下单"]),
        ("A款 39 元", ["A款 19 元，黑色", "B款 39 元，白色"]),
        ("退货运费由卖家承担。", ["退货运费由买家承担。质量问题运费由卖家承担。"]),
        (
            "我们默认发中通快递，退货运费由卖家承担。",
            ["默认发中通快递。", "退货运费由买家承担。质量问题运费由卖家承担。"],
        ),
        ("退回运费由卖家承担，包装要完好", [RETURNS]),
        ("Shipping is free within 7 days.", ["Shipping takes 7 days in any case.", "Returns are free within 9 days."]),
    ],
)
def test_a_clause_is_not_put_together_from_two_sentences(reply: str, records: list[str]) -> None:
    assert "clause" in problems(reply, records)


@pytest.mark.parametrize(
    ("reply", "records"),
    [
        ("数据线19.9元一条，充电头39.9元一个。", ["数据线 19.9 元一条。", "充电头 39.9 元一个。"]),
        ("A款 https://a.example.com/x 下单", ["A款 https://a.example.com/x 下单", "B款 https://b.example.com/y 下单"]),
        ("质量问题运费由卖家承担。", ["退货运费由买家承担。质量问题运费由卖家承担。"]),
        ("满1,000元包邮", ["满1,000元包邮，偏远地区除外。"]),
    ],
)
def test_clauses_of_several_records_are_let_through(reply: str, records: list[str]) -> None:
    assert problems(reply, records) == []


def in_words(number: int) -> str:
    """1–9999 in Chinese words."""
    digits, text, gap = "零一二三四五六七八九", "", False
    for power, name in ((1000, "千"), (100, "百"), (10, "十"), (1, "")):
        digit = number // power % 10
        if digit:
            text += ("零" if gap and text else "") + digits[digit] + name
            gap = False
        else:
            gap = True
    return text


WAYS = [
    str,
    in_words,
    lambda n: str(n).translate(str.maketrans("0123456789", "０１２３４５６７８９")),
    lambda n: f"{n}.0",
]


@given(st.integers(1, 9999), st.sampled_from(WAYS), st.sampled_from(["天", "元", "个月", "%", "折"]))
def test_no_other_number_gets_through_however_it_is_written(number: int, way: object, unit: str) -> None:
    reply = f"签收后{way(number)}{unit}内支持无理由退换货"  # type: ignore[operator]  # one of WAYS
    assert ("number" in problems(reply, [RETURNS])) is not (number == 7 and unit == "天")


@given(st.integers(1, 9999), st.sampled_from(WAYS), st.sampled_from(WAYS))
def test_a_number_is_the_same_however_it_is_written(number: int, way: object, other: object) -> None:
    known = f"签收后{way(number)}天内支持无理由退换货，退回运费由买家承担"  # type: ignore[operator]  # one of WAYS
    reply = f"签收后{other(number)}天内支持无理由退换货"  # type: ignore[operator]  # one of WAYS
    assert problems(reply, [known]) == []


@given(st.text(), st.text())
def test_any_text_is_judged(reply: str, record: str) -> None:
    assert isinstance(problems(reply, [record]), list)


@given(st.text(alphabet="退款加微信转账13800evil.cn点击链接http://送您红包。，", min_size=4, max_size=40))
def test_what_shares_nothing_with_the_records_never_gets_through(reply: str) -> None:
    assert problems(reply, ["默认发申通快速，偏远要补差"])


DENIALS = [
    ("生鲜不可以退货。", "生鲜可以退货。"),
    ("不能带上飞机，也不能托运。", "可以带上飞机，也可以托运。"),
    ("拆封后不支持退货，未拆封可以退货。", "拆封后可以退货。"),
    ("拆封后不支持退货，未拆封可以退货。", "未拆封不可以退货。"),
    ("没有现货，要等三天。", "有现货，要等三天。"),
    ("不用付运费，直接寄回。", "要付运费，直接寄回。"),
    ("机器无需安装，插电就用。", "机器需要安装，插电就用。"),
    ("不是正品可以退，请放心。", "是正品可以退，请放心。"),
    ("不支持开专票，可以开普票。", "支持开专票，可以开普票。"),
    ("会员购买不限次数。", "会员购买限次数。"),
    ("这件衣服别用热水洗。", "这件衣服用热水洗。"),
    ("未付款的订单可以取消。", "付款的订单可以取消。"),
    ("We do not ship abroad yet.", "We ship abroad yet."),
]


TURNED = [
    ("付款后48小时内发货。", "付款前48小时内发货。"),
    ("付款后48小时内发货。", "48小时内发货。"),
    ("7天内可以退货。", "可以退货。"),
    ("需要预约。", "可以预约。"),
    ("我们可以寄给您。", "您可以寄给我们。"),
    ("退货运费由您承担。", "退货运费由我们承担。"),
    ("如果拆封就收10元。", "拆封就收10元。"),
    ("只有新款包邮。", "新款包邮。"),
    ("We can send it to you.", "You can send it to us."),
    ("You must register.", "You can register."),
]


@pytest.mark.parametrize(("record", "turned"), TURNED)
def test_when_who_and_whether_it_must_be_stays_as_it_is(record: str, turned: str) -> None:
    assert problems(record, [record]) == []
    assert "clause" in problems(turned, [record, "谢谢光临，祝您生活愉快。"])
    assert "clause" in problems(record, [turned, "谢谢光临，祝您生活愉快。"])


@pytest.mark.parametrize(("record", "turned"), DENIALS)
def test_a_denial_is_neither_dropped_nor_turned_nor_made(record: str, turned: str) -> None:
    assert problems(record, [record]) == []
    assert problems(turned, [record, "谢谢光临，祝您生活愉快。"])
    assert problems(record, [turned, "谢谢光临，祝您生活愉快。"])
