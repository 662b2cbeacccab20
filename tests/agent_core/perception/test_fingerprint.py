from __future__ import annotations

import pytest

from agent_core.apps.profile import profile
from agent_core.devices.base import Frame
from agent_core.perception.chat import read_chat
from agent_core.perception.compare import Match, fingerprint, same_message
from agent_core.perception.ocr import OcrEngine
from agent_core.perception.readings import Bubble, BubbleKind, ChatScreen, Side, Source
from simulator.phone.scenario import MessagePart
from simulator.phone.world import Kind
from tests.support.drawing import draw
from tests.support.ocr import needs_ocr


def chat(*lines: str, source: Source = Source.TREE) -> ChatScreen:
    """``>`` begins a line of ours."""
    bubbles = tuple(Bubble(Side.ME, line[1:]) if line.startswith(">") else Bubble(Side.THEM, line) for line in lines)
    return ChatScreen(title="11", bubbles=bubbles, draft="", source=source)


OLD = ("在吗？", ">在的", "这款多少钱", ">128 元")


def test_the_same_page_read_in_another_way_is_the_same_message() -> None:
    tree = fingerprint(chat(*OLD, "几天能发货？", "发顺丰吗"))
    ocr = fingerprint(chat("在吗?", ">在的", "这款多少钱", ">l28元", "几天能发货 ?", "发顺丰吗。", source=Source.OCR))
    assert tree == ocr
    assert same_message(tree, ocr) is Match.EXACT


def test_other_words_are_another_message() -> None:
    assert fingerprint(chat(*OLD, "几天能发货？")) != fingerprint(chat(*OLD, "几天能到货？"))


def test_the_same_words_asked_again_are_a_new_message() -> None:
    first = fingerprint(chat(*OLD, "几天能发货？"))
    again = fingerprint(chat(*OLD, "几天能发货？", ">48小时内", "几天能发货？"))
    assert first != again
    assert same_message(first, again) is Match.DIFFERENT


def test_a_page_that_shows_less_above_is_nearly_the_same() -> None:
    whole = fingerprint(chat(*OLD, "几天能发货？"))
    shorter = fingerprint(chat(*OLD[2:], "几天能发货？"))
    assert same_message(whole, shorter) is Match.NEARLY


def test_one_more_message_is_another_cluster_but_the_single_message_stays() -> None:
    before, after = chat(*OLD, "几天能发货？"), chat(*OLD, "几天能发货？", "在吗")
    assert fingerprint(before) != fingerprint(after)
    assert fingerprint(before, 4) == fingerprint(after, 4)


def test_nothing_asked_is_no_fingerprint() -> None:
    assert fingerprint(chat(*OLD)) == ""
    assert fingerprint(chat()) == ""
    with pytest.raises(IndexError):
        fingerprint(chat(*OLD), 9)


def test_what_has_no_words_is_told_by_its_kind() -> None:
    def one(kind: BubbleKind, text: str) -> str:
        return fingerprint(ChatScreen("11", (Bubble(Side.THEM, text, None, kind),), "", Source.OCR))

    assert one(BubbleKind.VOICE, '7"') == one(BubbleKind.VOICE, "语音7秒") != one(BubbleKind.VOICE, "语音8秒")
    assert one(BubbleKind.IMAGE, "") == one(BubbleKind.STICKER, "")
    assert one(BubbleKind.IMAGE, "") != one(BubbleKind.RED_PACKET, "")


def test_a_voice_message_stays_the_same_when_its_words_are_written_down() -> None:
    def voice(text: str, seconds: int | None) -> str:
        bubble = Bubble(Side.THEM, text, kind=BubbleKind.VOICE, seconds=seconds)
        return fingerprint(ChatScreen("11", (bubble,), "", Source.OCR))

    plain = voice("16″", 16)
    assert voice("今天3点到，一共2件", 16) == plain
    assert voice("语音16秒", None) == plain == voice('16"\n今天3点到', None)
    assert voice("今天3点到", 3) != plain


@needs_ocr
async def test_a_transcript_below_a_voice_message_is_seen_and_changes_nothing() -> None:
    prints = []
    for transcript in ("", "今天3点到，一共2件"):
        said = MessagePart(kind=Kind.VOICE, text="16", transcript=transcript, ago=60)
        drawn = draw("wechat-light", "小王", [said])
        seen = await read_chat(OcrEngine(), Frame(drawn.image, transcript, 0.0), profile("wechat"))
        assert seen is not None
        assert (seen.question[0].kind, seen.question[0].seconds) == (BubbleKind.VOICE, 16)
        assert ("3点" in seen.question[0].text) is bool(transcript)
        prints.append(fingerprint(seen))
    assert prints[0] == prints[1]
