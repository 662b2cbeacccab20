from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent_core.perception.compare import (
    Likeness,
    Match,
    compare,
    contains,
    differences,
    ends_with,
    likeness,
    normalise,
    same_name,
    tells_status,
)


@pytest.mark.parametrize(
    ("left", "right"),
    [
        ("你好，请问几天能发货？", "你好,请问几天能发货?"),
        ("ＡＢＣ－２０２４（新）", "ABC-2024(新)"),
        ("第一行\n第二行", "第一行第二行"),
        ("好\u200b的 \u3000吗", "好的吗"),
        ("“七天”无理由—退货。", '"七天"无理由-退货.'),
    ],
)
def test_the_same_text_in_other_signs_is_exact(left: str, right: str) -> None:
    assert compare(left, right) is Match.EXACT


def test_case_and_words_stay() -> None:
    assert normalise("ABC abc 退货") == "ABCabc退货"


def test_look_alikes_and_signs_are_nearly() -> None:
    assert compare("型号 l0O", "型号 100") is Match.NEARLY
    assert compare("好的，谢谢！", "好的谢谢") is Match.NEARLY


def test_a_slip_in_a_long_text_is_nearly_and_more_is_allowed_where_the_reader_was_not_certain() -> None:
    whole = "请把商品和配件以及发票一起放进原来的盒子里再寄回给我们谢谢"
    assert compare(whole, whole.replace("盒", "合")) is Match.NEARLY
    two_slips = whole.replace("盒", "合").replace("票", "漂")
    assert compare(whole, two_slips, confidence=0.99) is Match.DIFFERENT
    assert compare(whole, two_slips, confidence=0.8) is Match.NEARLY


@pytest.mark.parametrize(
    ("left", "right"),
    [
        ("一共 128 元", "一共 129 元"),
        ("好的", "不好"),
        ("可以退", "不可以退"),
        ("在收到货后7天内提交申请就可以退货退款", "在收到货后15天内提交申请就可以退货退款"),
    ],
)
def test_other_numbers_and_other_short_words_are_different(left: str, right: str) -> None:
    assert compare(left, right, confidence=0.7) is Match.DIFFERENT


def test_a_line_is_found_in_its_text_and_the_end_of_a_draft_in_the_whole() -> None:
    whole = "您好，我们支持七天无理由退货，请保持商品完好。电话400-123-4567，谢谢！"
    assert contains(whole, "七天无理由退货，请保待商品完好", confidence=0.8)
    assert contains(whole, "！")
    assert not contains(whole, "支持三十天无理由退货")
    assert ends_with(whole, "电话400-123-4567,谢谢!")
    assert not ends_with(whole, "电话400-123-4568,谢谢!")
    assert not ends_with(whole, "您好，我们支持七天")


@pytest.mark.parametrize(
    ("seen", "wanted", "group", "same"),
    [
        ("11", "11", False, True),
        (" 11 ", "11", False, True),
        ("１１", "11", False, False),
        ("某某（店）", "某某(店)", False, False),
        ("11", "110", False, False),
        ("110", "11", False, False),
        ("小11", "11", False, False),
        ("11号售后群", "11", True, False),
        ("11(2)", "11", False, False),
        ("11(2)", "11", True, True),
        ("11（38）", "11", True, True),
        ("11(老客户)", "11", True, False),
        ("11(2)", "11(2)", False, True),
        ("11 手机在线", "11", False, True),
        ("11\n对方正在输入...", "11", False, True),
        ("11 - 4G在线", "11", False, True),
        ("11 Wi-Fi在线", "11", False, True),
        ("11\n手机在线 - WiFi", "11", False, True),
        ("11在线", "11", False, False),
        ("11 在线客服", "11", False, False),
        ("11（在线代购）", "11", False, False),
        ("11(在线)", "11", False, False),
        ("11|忙碌小店", "11", False, False),
        ("11 不离开", "11", False, False),
        ("在线", "在线", False, True),
        ("l1", "11", False, False),
        ("Desk B", "bob", False, False),
        ("王 小明", "王 小明", False, True),
        ("", "", False, False),
        ("11", "", False, False),
    ],
)
def test_names_are_compared_whole(seen: str, wanted: str, group: bool, same: bool) -> None:
    assert same_name(seen, wanted, group=group) is same


@pytest.mark.parametrize(
    ("seen", "wanted"),
    [
        ("1\u200b1", "11"),  # zero width space
        ("11\ufeff", "11"),
        ("小\u00ad明", "小明"),  # soft hyphen
        ("11\u034f", "11"),  # a combining mark that draws nothing
        ("小明\u3164", "小明"),  # Hangul filler
        ("11\U000e0061", "11"),  # a tag
        ("１１", "11"),
        ("ＡＢ", "AB"),
        ("某某（店）", "某某(店)"),
        ("l1", "11"),
        ("ⅠⅠ", "11"),
        ("Аnna", "Anna"),  # Cyrillic
        ("Αnna", "Anna"),  # Greek
        ("Tirn", "Tim"),
        ("王土", "王士"),
        ("1\u200b1 手机在线", "11"),
    ],
)
def test_a_name_in_other_letters_that_look_the_same_is_alike_and_never_the_same(seen: str, wanted: str) -> None:
    assert likeness(seen, wanted) is likeness(wanted, seen.removesuffix(" 手机在线")) is Likeness.ALIKE
    assert not same_name(seen, wanted)
    assert likeness(seen, seen) is Likeness.SAME


@pytest.mark.parametrize(
    ("seen", "wanted"), [("1\u03081", "11"), ("1 1", "11"), ("bob", "Bob"), ("小11", "11"), ("\u200b", "11"), ("", "")]
)
def test_a_name_that_looks_different_is_another(seen: str, wanted: str) -> None:
    assert likeness(seen, wanted) is Likeness.OTHER


def test_letters_that_are_composed_or_not_are_the_same() -> None:
    assert same_name("Ame\u0301lie", "Amélie")


def test_a_picture_does_not_tell_how_wide_a_sign_is_but_letters_are() -> None:
    assert same_name("某某(店)", "某某（店）", drawn=True)
    assert likeness("１１", "11", drawn=True) is Likeness.ALIKE


def test_how_two_names_differ_is_told_letter_by_letter() -> None:
    assert differences("1\u200b1", "11") == "∅ → U+200B ZERO WIDTH SPACE"
    assert differences("Аnna", "Anna") == "“A” U+0041 LATIN CAPITAL LETTER A → “А” U+0410 CYRILLIC CAPITAL LETTER A"


@pytest.mark.parametrize(
    ("title", "tells"),
    [
        ("11", False),
        ("11\n手机在线", False),
        ("11 手机在线", True),
        ("11-在线", True),
        ("11 在线客服", False),
        ("在线", False),
    ],
)
def test_a_status_in_the_line_of_the_name_is_told(title: str, tells: bool) -> None:
    assert tells_status(title) is tells


@given(st.text(max_size=40))
def test_normalising_twice_is_normalising_once_and_a_text_is_itself(text: str) -> None:
    assert normalise(normalise(text)) == normalise(text)
    assert compare(text, text) is Match.EXACT


@given(st.text(alphabet="01l小 (", min_size=1, max_size=6), st.text(alphabet="01l小 (", min_size=1, max_size=6))
def test_only_blanks_may_differ_between_equal_names(left: str, right: str) -> None:
    if same_name(left, right):
        assert left.split() == right.split()
