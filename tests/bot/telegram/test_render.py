"""Whatever a card holds, Telegram takes it."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bot.chat.cards import Button, Card, Line
from bot.telegram import render
from bot.telegram.fake.rules import checked_caption, checked_text, utf16
from bot.telegram.parcel import Parcel

TEXTS = st.text(st.characters(), max_size=300) | st.text("<>&\"'a字😀\n\r\0", max_size=5000)
LINES = st.builds(Line, TEXTS, st.text(max_size=100), st.sampled_from(["plain", "quote", "code"]))
CARDS = st.builds(Card, TEXTS, st.lists(LINES, max_size=60).map(tuple))


@settings(max_examples=150, deadline=None)
@given(CARDS)
def test_any_card_is_accepted_as_text_and_as_caption(card: Card) -> None:
    parcel = render.parcel(card)
    text, _ = checked_text(parcel.text, "HTML")
    caption, _ = checked_caption(parcel.caption, "HTML")
    parcel.payload()
    text.encode()
    assert 1 <= utf16(caption) <= 1024


@given(st.text("<>&a字 \n", max_size=40).map(lambda text: text.strip()).filter(bool))
def test_what_was_meant_is_what_is_seen(words: str) -> None:
    text, _ = checked_text(render.to_html(Card("t", (Line(words, "l", "quote"), Line(words))), 4096), "HTML")
    assert text == f"t\nl\n{words}\n{words}"


def test_the_longest_line_gives_way() -> None:
    card = Card("title", (Line("QQ回复联系人11", "任务"), Line("想" * 3000, "思考", "quote"), Line("42 秒", "用时")))
    seen, _ = checked_text(render.to_html(card, 1024), "HTML")
    assert seen.startswith("title\n任务: QQ回复联系人11\n思考\n想想")
    assert seen.endswith("…\n用时: 42 秒")
    assert 1000 < utf16(seen) <= 1024


def test_a_cut_never_halves_a_character() -> None:
    assert render.cut("😀😀😀", 4) == "😀…"
    assert render.cut("😀😀", 4) == "😀😀"
    assert render.cut("abc", 0) == ""


def test_buttons() -> None:
    (row,) = render.keyboard(Card("t", (), None, ((Button("q:1:0", "x" * 200, "danger"), Button("字" * 21, " ")),)))
    assert [(key.data, key.style) for key in row] == [("q:1:0", "danger"), ("字" * 21, "")]
    assert [key.label for key in row] == ["x" * 63 + "…", "…"]
    with pytest.raises(ValueError, match="64 bytes"):
        render.keyboard(Card("t", (), None, ((Button("字" * 22, "x"),),)))


def test_a_parcel_survives_the_store() -> None:
    card = Card("t", (Line("<b>"),), b"\xff\xd8jpeg\x00", ((Button("go", "Go", "success"),),))
    parcel = render.parcel(card, thread_id="7", reply_to="5", kind="group")
    assert Parcel.model_validate(parcel.payload()) == parcel
    assert (parcel.thread_id, parcel.reply_to, parcel.group) == (7, 5, True)
