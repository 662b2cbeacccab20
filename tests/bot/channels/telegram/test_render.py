"""Whatever a card holds, Telegram takes it."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bot.channels.chat.cards import Button, Card, Line
from bot.channels.telegram import render
from bot.channels.telegram.outgoing import OutgoingMessage
from simulator.telegram.rules import checked_caption, checked_text, utf16
from tests.support.days import examples

TEXTS = st.text(st.characters(), max_size=300) | st.text("<>&\"'a字😀\n\r\0", max_size=5000)
LINES = st.builds(Line, TEXTS, st.text(max_size=100), st.sampled_from(["plain", "quote", "code"]))
CARDS = st.builds(Card, TEXTS, st.lists(LINES, max_size=60).map(tuple))


@pytest.mark.parametrize(("label", "said"), [("时间", "时间："), ("When", "When: "), ("/kb", "/kb ")])
def test_a_text_to_copy_has_its_label_as_any_other(label: str, said: str) -> None:
    card = Card("42", (Line("5m", label, "code"), Line("11", label)))
    assert render.to_html(card, 100) == f"<b>42</b>\n{said}<code>5m</code>\n{said}11"


@settings(max_examples=examples(150), deadline=None)
@given(CARDS)
def test_any_card_is_accepted_as_text_and_as_caption(card: Card) -> None:
    outgoing = render.outgoing(card)
    text, _ = checked_text(outgoing.text, "HTML")
    caption, _ = checked_caption(outgoing.caption, "HTML")
    outgoing.payload()
    text.encode()
    assert 1 <= utf16(caption) <= 1024


@given(st.text("<>&a字 \n", max_size=40).map(lambda text: text.strip()).filter(bool))
def test_what_was_meant_is_what_is_seen(words: str) -> None:
    text, _ = checked_text(render.to_html(Card("t", (Line(words, "l", "quote"), Line(words))), 4096), "HTML")
    assert text == f"t\nl\n{words}\n{words}"


def test_the_longest_line_gives_way() -> None:
    card = Card("title", (Line("QQ回复联系人11", "任务"), Line("想" * 3000, "思考", "quote"), Line("42 秒", "用时")))
    seen, _ = checked_text(render.to_html(card, 1024), "HTML")
    assert seen.startswith("title\n任务：QQ回复联系人11\n思考\n想想")
    assert seen.endswith("…\n用时：42 秒")
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
    outgoing = render.outgoing(card, thread_id="7", reply_to="5", kind="group")
    assert OutgoingMessage.model_validate(outgoing.payload()) == outgoing
    assert (outgoing.thread_id, outgoing.reply_to, outgoing.group) == (7, 5, True)


FAMILY = "\U0001f468\u200d\U0001f469\u200d\U0001f467\u200d\U0001f466"
SHOWN_AS_ONE = (FAMILY, "🇨🇳", "👍🏽", "1\ufe0f\u20e3", "❤\ufe0f")
CLUSTERS = st.lists(st.sampled_from([*SHOWN_AS_ONE, "e\u0301", "字", "a", " ", "\n", "。", "😀"]), max_size=400)


@settings(max_examples=examples(150), deadline=None)
@given(CLUSTERS, st.integers(30, 300))
def test_a_text_is_never_cut_through_a_character(clusters: list[str], limit: int) -> None:
    rest, pieces = "".join(clusters).strip(), []
    while rest:
        piece, rest = render.split(rest, limit)
        assert utf16(piece) <= limit
        pieces.append(piece)
    for whole in SHOWN_AS_ONE:
        assert sum(piece.count(whole) for piece in pieces) == "".join(clusters).count(whole)
    assert "".join("".join(pieces).split()) == "".join("".join(clusters).split())
    assert render.cut("".join(clusters), limit).count("\u200d") % 3 == 0


@settings(max_examples=examples(80), deadline=None)
@given(CARDS, st.booleans())
def test_a_card_that_is_too_long_is_whole_in_its_messages(card: Card, captioned: bool) -> None:
    messages = render.whole(card, render.MAX_CAPTION if captioned else render.MAX_TEXT)
    assert len(messages) <= render.MOST_PARTS
    shown = "".join(checked_text(message, "HTML")[0] for message in messages)
    if messages:
        for line in card.lines:
            assert "".join(render.clean(line.text).split()) in "".join(shown.split())


def test_a_long_card_goes_on_after_its_label() -> None:
    card = Card("标题", (Line("字" * 5000, "客户的话", "quote"), Line("<b>", "完")))
    first, second = render.whole(card, render.MAX_TEXT)
    assert first.startswith("<b>标题</b>\n客户的话\n<blockquote>字")
    assert first.endswith("字</blockquote>")
    assert second.startswith("<blockquote>字")
    assert second.endswith("&lt;b&gt;")
    assert render.whole(Card("x", (Line("字" * 40000),)), render.MAX_TEXT) == []  # too much to be read: it is cut
