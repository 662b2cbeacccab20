"""The chat page from every source, on a virtual phone in every state of its tree."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest
from PIL import Image, ImageDraw

from agent_core.devices.base import Frame
from agent_core.errors import ModelUnreachable
from agent_core.geometry import Box
from agent_core.model.base import Completion, OnThinking
from agent_core.perception import transcribe
from agent_core.perception.compare import Match, compare, ends_with, fingerprint, same_message, without_count
from agent_core.perception.ocr import OcrEngine
from agent_core.perception.reader import ScreenReader
from agent_core.perception.readings import BubbleKind, BubbleState, ChatScreen, Doubt, DoubtKind, Side, Source
from agent_core.perception.tree import TreeHealth
from simulator.phone.apps.looks import LOOKS
from simulator.phone.phone import VirtualPhone
from simulator.phone.scenario import MessagePart
from simulator.phone.world import Kind, MessageState, Sign
from tests.support.drawing import draw
from tests.support.ocr import needs_ocr

from .support import LONG, NOON, QQ, QQ_PACKAGE, image, look, me, open_chat, scenario, them

OCR = OcrEngine()
IDS = LOOKS["qq-plain"].ids
BY_PICTURE = ScreenReader(ocr=OCR, model=None, sources=[Source.OCR])
BY_BOTH = ScreenReader(ocr=OCR, model=None)
BY_TREE = ScreenReader(ocr=None, model=None)

TALK = (them("在吗？", 4000), me("在的，请讲", 3900), them("几天能发货？", 100), them("发顺丰还是中通", 90))


async def chat(reader: ScreenReader, phone: VirtualPhone) -> ChatScreen | None:
    seen = await look(phone)
    return await reader.chat(seen.frame, seen.nodes, QQ)


async def sure_chat(reader: ScreenReader, phone: VirtualPhone) -> ChatScreen:
    found = await chat(reader, phone)
    assert found is not None
    assert found.sure, found.doubts
    return found


READERS = [
    pytest.param(BY_TREE, id="tree"),
    pytest.param(BY_BOTH, id="both", marks=needs_ocr),
    pytest.param(BY_PICTURE, id="picture", marks=needs_ocr),
]


@pytest.mark.parametrize("reader", READERS)
@pytest.mark.parametrize("size", [(1080, 2400), (720, 1600), (1080, 1920)])
async def test_a_chat_is_read_whole(reader: ScreenReader, size: tuple[int, int]) -> None:
    found = await sure_chat(reader, await open_chat(scenario(*TALK, size=size)))
    assert found.title == "11"
    assert [(b.side, b.text) for b in found.bubbles] == [
        (Side.THEM, "在吗？"),
        (Side.ME, "在的，请讲"),
        (Side.THEM, "几天能发货？"),
        (Side.THEM, "发顺丰还是中通"),
    ]
    assert [b.text for b in found.question] == ["几天能发货？", "发顺丰还是中通"]
    assert found.draft == ""


@pytest.mark.parametrize("reader", READERS)
async def test_send_point_and_input_box_are_where_taps_work(reader: ScreenReader) -> None:
    phone = await open_chat(scenario(*TALK))
    found = await sure_chat(reader, phone)
    assert found.input_box is not None
    await phone.tap(found.input_box.center.x, found.input_box.center.y)
    assert phone.keyboard_shown()
    await phone.text("hello")
    typed = await sure_chat(reader, phone)
    assert typed.draft == "hello"
    assert typed.send_point is not None
    assert typed.send_point.y < 0.7 * phone.size[1]  # above the keyboard
    await phone.tap(typed.send_point.x, typed.send_point.y)
    sent = await sure_chat(reader, phone)
    assert sent.draft == ""
    assert sent.newest is not None
    assert (sent.newest.side, sent.newest.text, sent.newest.state) == (Side.ME, "hello", BubbleState.OK)


@pytest.mark.rotating(parts=3)
@pytest.mark.parametrize("reader", READERS)
@pytest.mark.parametrize("name", ["11", "110", "小11", "老客户A", "1"])
async def test_similar_names_are_told_apart(reader: ScreenReader, name: str) -> None:
    found = await sure_chat(reader, await open_chat(scenario(them("你好"), name=name)))
    assert found.title == name


@pytest.mark.parametrize("reader", READERS)
async def test_in_a_group_the_counter_is_in_the_title_and_names_are_no_words(reader: ScreenReader) -> None:
    world = scenario(
        them("公告看到了", 90, sender="老客户B"),
        them("大家用得怎么样？", 80, sender="老客户A"),
        me("很好", 70),
        members=38,
    )
    found = await chat(reader, await open_chat(world))
    assert found is not None
    assert (without_count(found.title), found.group) == ("11", True)
    assert [(b.side, b.text) for b in found.bubbles] == [
        (Side.THEM, "公告看到了"),
        (Side.THEM, "大家用得怎么样？"),
        (Side.ME, "很好"),
    ]


@pytest.mark.parametrize("reader", READERS)
async def test_long_answers_are_joined_and_what_the_edge_cuts_of_old_ones_is_left_out(reader: ScreenReader) -> None:
    world = scenario(them("旧的", 900), *(me(LONG, 500 - i) for i in range(3)), them("收到，谢谢", 10))
    found = await sure_chat(reader, await open_chat(world))
    assert [compare(b.text, LONG) for b in found.bubbles[:-1]] == [Match.EXACT] * (len(found.bubbles) - 1)
    assert len(found.bubbles) >= 2
    assert "invoice ABC-2024 with" in found.bubbles[-2].text


@pytest.mark.parametrize("reader", READERS)
async def test_states_and_times_and_recalled_messages(reader: ScreenReader) -> None:
    world = scenario(
        them("好的", 4000),
        me("第一条", 3000, MessageState.FAILED),
        me("第二条", 2000, MessageState.SENDING),
        image(Kind.RECALLED, 10),
    )
    found = await sure_chat(reader, await open_chat(world))
    assert [(b.text, b.state) for b in found.bubbles] == [
        ("好的", BubbleState.OK),
        ("第一条", BubbleState.FAILED),
        ("第二条", BubbleState.SENDING),
    ]


@pytest.mark.parametrize("reader", READERS)
async def test_kinds_of_messages(reader: ScreenReader) -> None:
    world = scenario(
        image(Kind.IMAGE, 90),
        image(Kind.STICKER, 80),
        image(Kind.VOICE, 70, "7"),
        image(Kind.RED_PACKET, 60),
        them("这个多少钱？", 50, kind=Kind.QUOTE, quoted="新款杯子上架了"),
    )
    found = await sure_chat(reader, await open_chat(world))
    assert [b.kind for b in found.bubbles] == [
        BubbleKind.IMAGE,
        BubbleKind.STICKER,
        BubbleKind.VOICE,
        BubbleKind.RED_PACKET,
        BubbleKind.TEXT,
    ]
    assert found.bubbles[-1].text == "这个多少钱？"
    assert {b.side for b in found.bubbles} == {Side.THEM}


@pytest.mark.parametrize("reader", READERS)
async def test_a_long_draft_makes_the_input_grow(reader: ScreenReader) -> None:
    phone = await open_chat(scenario(them("你好"), draft=LONG), typing=True)
    found = await sure_chat(reader, phone)
    assert found.draft is not None
    assert found.input_box is not None
    assert ends_with(LONG, found.draft)
    assert len(found.draft) > 60
    assert found.input_box.height > 200


@pytest.mark.parametrize("reader", READERS[1:])
async def test_an_empty_chat_is_a_chat(reader: ScreenReader) -> None:
    found = await sure_chat(reader, await open_chat(scenario()))
    assert (found.title, found.bubbles, found.draft) == ("11", (), "")


@needs_ocr
async def test_tree_and_picture_give_the_same_fingerprint() -> None:
    phone = await open_chat(scenario(*TALK, image(Kind.VOICE, 30, "7"), them("谢谢😀", 20)))
    prints = [fingerprint(await sure_chat(reader, phone)) for reader in (BY_TREE, BY_PICTURE)]
    assert prints[0] == prints[1]
    await phone.tap(400, 2216)  # the keyboard hides the upper messages
    assert same_message(prints[0], fingerprint(await sure_chat(BY_PICTURE, phone))) is not Match.DIFFERENT


@needs_ocr
@pytest.mark.parametrize("mode", ["no_texts", "empty"])
async def test_a_tree_that_says_nothing_is_no_hindrance(mode: str) -> None:
    phone = await open_chat(scenario(*TALK))
    phone.set_tree(mode)
    found = await sure_chat(BY_BOTH, phone)
    assert found.source is Source.OCR
    assert found.bubbles[-1].text == "发顺丰还是中通"


@pytest.mark.parametrize("reader", READERS[:2])
async def test_a_stale_tree_is_not_believed_where_a_message_came(reader: ScreenReader) -> None:
    phone = await open_chat(scenario(*TALK))
    await look(phone)
    phone.set_tree("stale")
    phone.receive("11", "那运费谁出？")
    found = await chat(reader, phone)
    assert found is not None
    assert not found.sure
    assert {doubt.kind for doubt in found.doubts} & {DoubtKind.NEWER, DoubtKind.ELSEWHERE, DoubtKind.MESSAGES_DIFFER}


@needs_ocr
async def test_a_stale_tree_of_another_chat_shows_in_the_title() -> None:
    phone = await open_chat(scenario(them("别的事情", 9000)))
    seen = await look(phone)
    await phone.open_url("mqqwpa://im/chat?chat_type=wpa&uin=1002")  # the same words, under another name
    now = await look(phone)
    found = await BY_BOTH.chat(now.frame, seen.nodes, QQ)
    assert found is not None
    assert not found.sure
    assert Doubt(DoubtKind.TITLES_DIFFER, "11", "另一位") in found.doubts


@needs_ocr
@pytest.mark.parametrize(("before", "after"), [("11", "110"), ("11", "11号店"), ("小11", "11")])
async def test_a_stale_tree_of_a_similar_name_is_not_believed(before: str, after: str) -> None:
    old = await look(await open_chat(scenario(them("好"), name=before)))
    new = await look(await open_chat(scenario(them("好"), name=after)))
    found = await BY_BOTH.chat(new.frame, old.nodes, QQ)
    assert found is not None
    assert not found.sure


@needs_ocr
async def test_a_stale_tree_whose_words_begin_the_new_ones_is_not_believed() -> None:
    old = await look(await open_chat(scenario(them("可以退"))))
    new = await look(await open_chat(scenario(them("可以退换吗"))))
    found = await BY_BOTH.chat(new.frame, old.nodes, QQ)
    assert found is not None
    assert not found.sure
    assert Doubt(DoubtKind.MESSAGES_DIFFER, "可以退", "可以退换吗") in found.doubts


@needs_ocr
async def test_a_stale_draft_is_told() -> None:
    phone = await open_chat(scenario(them("你好")), typing=True)
    before = await look(phone)
    await phone.text("price 25")
    now = await look(phone)
    found = await BY_BOTH.chat(now.frame, before.nodes, QQ)
    assert found is not None
    assert not found.sure
    assert Doubt(DoubtKind.INPUTS_DIFFER, "", "price 25") in found.doubts


@pytest.mark.rotating(parts=3)
@needs_ocr
@pytest.mark.parametrize("name", ["l1", "I1", "11😀", "O0", "1 1", "11 0", "A B", "张 三", "店主 11"])
async def test_a_name_that_is_read_as_another_is_not_sure(name: str) -> None:
    found = await chat(BY_PICTURE, await open_chat(scenario(them("你好"), name=name)))
    assert found is not None
    assert found.title == name or not found.sure


@needs_ocr
async def test_where_the_edge_cuts_what_is_asked_the_picture_alone_is_not_sure() -> None:
    world = scenario(*(them(f"第{i}个问题是这样的，{LONG}", 900 - i) for i in range(5)))
    found = await chat(BY_PICTURE, await open_chat(world))
    assert found is not None
    assert not found.sure
    assert Doubt(DoubtKind.ABOVE) in found.doubts


@pytest.mark.parametrize("reader", READERS)
async def test_other_pages_are_no_chat(reader: ScreenReader) -> None:
    phone = await open_chat(scenario(*TALK))
    phone.set_fault("popup")
    assert await chat(reader, phone) is None
    phone.set_fault("popup", "")
    await phone.open_shade(True)
    assert await chat(reader, phone) is None
    await phone.open_shade(False)
    await phone.key("BACK")
    assert await chat(reader, phone) is None  # the list
    await phone.key("HOME")
    assert await chat(reader, phone) is None
    await phone.launch("com.android.settings")
    assert await chat(reader, phone) is None


@needs_ocr
async def test_readings_come_from_the_best_source() -> None:
    phone = await open_chat(scenario(*TALK))
    seen = await look(phone)
    assert BY_BOTH.health(seen.nodes, seen.frame) is TreeHealth.FULL
    assert {r.source for r in await BY_BOTH.readings(seen.frame, seen.nodes)} == {Source.TREE}
    by_picture = await BY_BOTH.readings(seen.frame, None)
    assert {r.source for r in by_picture} == {Source.OCR}
    assert {"11", "几天能发货？", "发顺丰还是中通"} <= {r.text for r in by_picture}
    assert await BY_TREE.readings(seen.frame, None) == []


@pytest.mark.rotating(parts=3)
@pytest.mark.parametrize("reader", READERS)
async def test_rows_of_the_list_have_exact_names_and_counts(reader: ScreenReader) -> None:
    phone = VirtualPhone(clock=lambda: NOON)
    await phone.launch(QQ_PACKAGE)
    seen = await look(phone)
    rows = await reader.rows(seen.frame, seen.nodes)
    assert [(row.name, row.unread) for row in rows] == [
        ("11", 1),
        ("QQ智能客服", 1),
        ("11号售后群", 1),
        ("110", 0),
        ("小11", 0),
        ("老客户A", 0),
    ]
    assert rows[0].preview == "你好，请问几天能发货？"
    await phone.tap(rows[3].box.center.x, rows[3].box.center.y)
    assert (await sure_chat(reader, phone)).title == "110"


@pytest.mark.rotating(parts=3)
@pytest.mark.parametrize("reader", READERS)
async def test_rows_of_a_search_are_no_keys_and_no_search_box(reader: ScreenReader) -> None:
    phone = VirtualPhone(clock=lambda: NOON)
    await phone.launch(QQ_PACKAGE)
    entry = next(node for node in await phone.tree() if node.resource_id.endswith("et_search_keyword"))
    await phone.tap(entry.box.center.x, entry.box.center.y)
    await phone.text("11")
    seen = await look(phone)
    rows = await reader.rows(seen.frame, seen.nodes)
    assert [row.name for row in rows] == ["11", "110", "小11", "11号售后群"]


# A model as the reader


class Reciter:
    """A model's endpoint that gives one prepared answer for each instruction, and keeps the crops it was given."""

    name = "reciter"

    def __init__(self, answers: dict[str, str | Exception]) -> None:
        self.answers = answers
        self.crops: dict[str, Image.Image] = {}
        self.asked: list[str] = []

    async def complete(
        self, messages: Sequence[dict[str, Any]], *, on_thinking: OnThinking | None = None
    ) -> Completion:
        raise ModelUnreachable("only transcribes")

    async def ask(self, messages: Sequence[dict[str, Any]]) -> Completion:
        raise ModelUnreachable("only transcribes")

    async def transcribe(self, picture: Image.Image, instruction: str) -> str:
        self.crops[instruction] = picture
        self.asked.append(instruction)
        answer = self.answers[instruction]
        if isinstance(answer, Exception):
            raise answer
        return answer

    async def close(self) -> None:
        return None


ANSWERS: dict[str, str | Exception] = {
    transcribe.TITLE: '```json\n{"title": "11"}\n```',
    transcribe.MESSAGES: (
        '{"side":"left","text":"几天能发货？"}\n{"side":"right","text":"48小时\\n内"}\n{"side":"left","text":"[图片]"}'
    ),
    transcribe.DRAFT: '<|begin_of_box|>{"draft": "说点什么…"}<|end_of_box|>',
    transcribe.BUTTON: '{"button":"发送"}',
}


RECITED = (them("几天能发货？", 60), me("48小时内", 50), image(Kind.IMAGE, 40))


async def test_without_tree_and_ocr_the_model_writes_down_crops_and_the_picture_says_where() -> None:
    model = Reciter({**ANSWERS, transcribe.DRAFT: '<|begin_of_box|>{"draft": "好的"}<|end_of_box|>'})
    seen = await look(await open_chat(scenario(*RECITED, draft="好的"), typing=True))
    found = await ScreenReader(ocr=None, model=model).chat(seen.frame, None, QQ)
    assert found is not None
    assert (found.title, found.draft, found.source, found.sure) == ("11", "好的", Source.MODEL, True)
    assert [(b.side, b.text, b.kind) for b in found.bubbles] == [
        (Side.THEM, "几天能发货？", BubbleKind.TEXT),
        (Side.ME, "48小时\n内", BubbleKind.TEXT),
        (Side.THEM, "", BubbleKind.IMAGE),
    ]
    for node, bubble in zip(
        [n for n in seen.nodes if n.resource_id.rpartition("/")[2] in (IDS.text, IDS.picture)],
        found.bubbles,
        strict=True,
    ):
        assert bubble.box is not None
        assert _close(bubble.box, node.box)
    send = next(node for node in seen.nodes if node.resource_id.endswith(f"/{IDS.send}")).box
    assert found.send_point is not None
    assert send.contains(found.send_point)
    field = next(node for node in seen.nodes if node.resource_id.endswith(f"/{IDS.input}")).box
    assert found.input_box is not None
    assert _close(found.input_box, field)
    assert model.crops[transcribe.DRAFT].height < 2 * field.height  # the input, not the keyboard
    assert model.crops[transcribe.TITLE].height < 200


async def test_what_has_not_changed_is_not_sent_to_the_model_again(monkeypatch: pytest.MonkeyPatch) -> None:
    model = Reciter({**ANSWERS, transcribe.MESSAGES: "?"})
    frame = (await look(await open_chat(scenario(*RECITED), typing=True))).frame
    reader = ScreenReader(ocr=None, model=model)
    await reader.chat(frame, None, QQ)
    first, model.asked = model.asked, []
    assert len(first) > 2
    model.answers = ANSWERS
    found = await reader.chat(frame, None, QQ)
    assert found is not None
    assert (found.title, len(found.bubbles), model.asked) == ("11", 3, [transcribe.MESSAGES])  # what it could not read
    assert await reader.chat(frame, None, QQ) == found
    assert len(model.asked) == 1
    monkeypatch.setattr(transcribe, "FRESH_SECONDS", 0.0)
    await reader.chat(frame, None, QQ)
    assert len(model.asked) == 1 + len(first)


def _close(one: Box, other: Box) -> bool:
    return all(abs(a - b) <= 6 for a, b in zip(one.as_tuple(), other.as_tuple(), strict=True))


@pytest.mark.parametrize(
    ("instruction", "answer"),
    [
        (transcribe.MESSAGES, '{"side":"left","text":"几天'),
        (transcribe.MESSAGES, '好的，内容如下：\n{"side":"left","text":"几天能发货"}'),
        (transcribe.MESSAGES, '{"side":"middle","text":"几天能发货"}'),
        (transcribe.MESSAGES, '{"side":"left","text":"几天能发货","sure":true}'),
        (transcribe.MESSAGES, ""),
        (transcribe.DRAFT, "空"),
        (transcribe.DRAFT, ModelUnreachable("down")),
    ],
)
async def test_a_transcription_that_is_not_in_the_form_is_not_sure(instruction: str, answer: str | Exception) -> None:
    seen = await look(await open_chat(scenario(*RECITED)))
    model = Reciter({**ANSWERS, instruction: answer})
    found = await ScreenReader(ocr=None, model=model).chat(seen.frame, None, QQ)
    assert found is not None
    assert not found.sure
    assert found.doubts


@pytest.mark.parametrize(
    "written",
    [
        '{"side":"left","text":"几天能发货？"}\n{"side":"right","text":"48小时内"}',  # one left out
        '{"side":"right","text":"几天能发货？"}\n{"side":"right","text":"48"}\n{"side":"left","text":"[图片]"}',
        '{"empty":true}',
    ],
)
async def test_messages_that_do_not_stand_in_the_picture_are_not_sure(written: str) -> None:
    seen = await look(await open_chat(scenario(*RECITED)))
    model = Reciter({**ANSWERS, transcribe.MESSAGES: written})
    found = await ScreenReader(ocr=None, model=model).chat(seen.frame, None, QQ)
    assert found is not None
    assert not found.sure
    assert Doubt(DoubtKind.MODEL_OTHERS) in found.doubts


async def test_a_button_that_says_something_else_is_not_send() -> None:
    seen = await look(await open_chat(scenario(*RECITED)))
    model = Reciter({**ANSWERS, transcribe.BUTTON: '{"button":"问AI"}'})
    found = await ScreenReader(ocr=None, model=model).chat(seen.frame, None, QQ)
    assert found is not None
    assert found.send_point is None


async def test_a_red_mark_stands_in_the_picture_not_in_the_words() -> None:
    talk = (them("几天能发货？", 50), me("48小时内", 40, MessageState.FAILED))
    seen = await look(await open_chat(scenario(*talk)))
    lines = '{"side":"left","text":"几天能发货？"}\n{"side":"right","text":"48小时内"}'
    found = await ScreenReader(ocr=None, model=Reciter({**ANSWERS, transcribe.MESSAGES: lines})).chat(
        seen.frame, None, QQ
    )
    assert found is not None
    assert found.newest is not None
    assert found.newest.state is BubbleState.FAILED


@pytest.mark.parametrize("answer", ['{"title": ""}', "没有", ModelUnreachable("down")])
async def test_without_a_title_there_is_no_chat(answer: str | Exception) -> None:
    seen = await look(await open_chat(scenario(*RECITED)))
    model = Reciter({**ANSWERS, transcribe.TITLE: answer})
    assert await ScreenReader(ocr=None, model=model).chat(seen.frame, None, QQ) is None


async def test_the_model_is_not_asked_where_the_tree_says_it() -> None:
    seen = await look(await open_chat(scenario(*TALK)))
    model = Reciter({})
    found = await ScreenReader(ocr=None, model=model).chat(seen.frame, seen.nodes, QQ)
    assert found is not None
    assert found.source is Source.TREE
    assert model.crops == {}


async def test_sources_can_be_limited() -> None:
    seen = await look(await open_chat(scenario(*TALK)))
    reader = ScreenReader(ocr=None, model=Reciter(ANSWERS), sources=[Source.MODEL])
    found = await reader.chat(seen.frame, seen.nodes, QQ)
    assert found is not None
    assert found.source is Source.MODEL


# What the shapes leave in doubt, whatever a model writes


async def recited(look_of: str, name: str, *said: MessagePart, written: str, **more: Any) -> ChatScreen:
    drawn = draw(look_of, name, said, **more)
    answers = {**ANSWERS, transcribe.TITLE: f'{{"title":"{name}"}}', transcribe.MESSAGES: written}
    model = Reciter({**answers, transcribe.DRAFT: '{"draft":""}', transcribe.BUTTON: '{"button":""}'})
    found = await ScreenReader(ocr=None, model=model).chat(Frame(drawn.image, written, 0.0), None, QQ)
    assert found is not None
    return found


async def test_a_picture_whose_letters_a_model_writes_down_is_no_text() -> None:
    """A screenshot of an order shows letters; the shapes tell that it is a picture."""
    said = (them("在吗", 60), image(Kind.IMAGE, 40))
    right = await recited(
        "qq-plain", "小王", *said, written='{"side":"left","text":"在吗"}\n{"side":"left","text":"[图片]"}'
    )
    assert right.sure, right.doubts
    wrong = await recited(
        "qq-plain", "小王", *said, written='{"side":"left","text":"在吗"}\n{"side":"left","text":"订单号 2025"}'
    )
    assert not wrong.sure
    assert wrong.doubts == (Doubt(DoubtKind.MESSAGE, "订单号 2025"),)
    assert [bubble.sure for bubble in wrong.bubbles] == [True, False]


async def test_above_our_own_answer_it_does_not_matter() -> None:
    said = (image(Kind.IMAGE, 60), me("好", 50), them("在吗", 40))
    written = '{"side":"left","text":"订单号"}\n{"side":"right","text":"好"}\n{"side":"left","text":"在吗"}'
    assert (await recited("qq-plain", "小王", *said, written=written)).sure


async def test_a_sign_in_the_header_stays_a_doubt_of_the_title() -> None:
    found = await recited("qq-plain", "小王", them("在吗"), written='{"side":"left","text":"在吗"}', signs=[Sign.FIRE])
    assert found.title_sure is found.sure
    plain = await recited("qq-plain", "小王😀", them("在吗"), written='{"side":"left","text":"在吗"}')
    assert not plain.title_sure
    assert DoubtKind.TITLE_MORE in {doubt.kind for doubt in plain.doubts}


async def test_what_is_unknown_on_the_page_stays_a_doubt() -> None:
    drawn = draw("qq-plain", "小王", [them("在吗", 60)])
    box = drawn.truth.bubbles[0].box
    assert box is not None
    low = box.bottom + 200
    ImageDraw.Draw(drawn.image).ellipse((300, low, 420, low + 120), fill="#8844cc")
    answers = {**ANSWERS, transcribe.TITLE: '{"title":"小王"}', transcribe.MESSAGES: '{"side":"left","text":"在吗"}'}
    model = Reciter({**answers, transcribe.DRAFT: '{"draft":""}', transcribe.BUTTON: '{"button":""}'})
    found = await ScreenReader(ocr=None, model=model).chat(Frame(drawn.image, "unknown", 0.0), None, QQ)
    assert found is not None
    assert not found.sure
    assert DoubtKind.UNKNOWN_PART in {doubt.kind for doubt in found.doubts}
