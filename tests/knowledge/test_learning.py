"""What is learnt from what people answer."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from pathlib import Path

import pytest

from agent_core.errors import InputRejected
from agent_core.ports import AnswerEvent, Provenance, ReplyState
from knowledge.embedded import EmbeddedKnowledge
from knowledge.entries import Entry
from knowledge.learning import Learning, alike, wording_of
from knowledge.personal import is_personal, masked, personal_data
from tests.support.knowledge import open_knowledge


@pytest.fixture
async def base(tmp_path: Path) -> AsyncIterator[EmbeddedKnowledge]:
    base = await open_knowledge(tmp_path / "k.db")
    await base.add(Entry(id="ship", question="几天能发货", answer="两天内", aliases=("多久发货",)))
    yield base
    await base.close()


async def learn(
    base: EmbeddedKnowledge,
    words: str,
    answer: str = "",
    *,
    record: str = "",
    source: str = "",
    contact: str = "",
) -> Entry | None:
    return await Learning(base).from_reply(
        words=words,
        answer=answer,
        record_id=record,
        record_source=source,
        person="boss",
        contact=contact,
    )


@pytest.mark.parametrize(("provenance", "learnt"), [(Provenance.COMPOSED, False), (Provenance.PERSON, True)])
async def test_what_was_put_together_of_several_entries_is_no_wording_of_one(
    base: EmbeddedKnowledge, provenance: Provenance, learnt: bool
) -> None:
    event = AnswerEvent(
        1, "qq", "11", "你家有彩虹绳没", ReplyState.SENT, "绳", sent="9 元", provenance=provenance, person="boss"
    )
    assert bool(await Learning(base).from_answer(event)) is learnt


async def test_a_persons_own_text_waits_with_the_question(base: EmbeddedKnowledge) -> None:
    entry = await learn(base, "亲\n你家有彩虹绳没", "有的，\n9 元")
    assert entry is not None
    assert (entry.question, entry.answer, entry.live, entry.alias_of) == ("你家有彩虹绳没", "有的，\n9 元", False, "")
    assert entry.origin == "person:boss"
    assert await base.pending() == (entry,)
    assert not any(record.sure for record in await base.retrieve("你家有彩虹绳没"))
    from_words = await learn(base, "亲\n你家有紫绳没", "没有")
    assert from_words is not None
    assert from_words.question == "你家有紫绳没"


async def test_nothing_is_learnt_twice(base: EmbeddedKnowledge) -> None:
    assert await learn(base, "请问几天能发货呀", "两天内") is None  # it is live
    assert await learn(base, "多久发货", "两天内") is None  # by an alias
    other = await learn(base, "几天能发货", "三天")  # a person answers it differently: that is news
    assert other is not None
    assert await base.doubles(other) != ()
    assert await learn(base, "几天能发货呢", "三天") is None  # it waits already
    many = await asyncio.gather(*(learn(base, "有袋子吗", "有") for _ in range(8)))
    assert sum(entry is not None for entry in many) == 1


async def test_a_record_of_ours_learns_the_wording(base: EmbeddedKnowledge) -> None:
    entry = await learn(base, "啥时候寄", "两天内", record="ship", source="embedded:ship")
    assert entry is not None
    assert (entry.question, entry.answer, entry.alias_of, entry.live) == ("啥时候寄", "两天内", "ship", False)
    assert await learn(base, "亲，啥时候寄？", "两天内", record="ship", source="embedded:ship") is None
    assert await learn(base, "几天能发货啊", "两天内", record="ship", source="embedded:ship") is None
    assert (await base.approve(entry.id)).aliases == ("多久发货", "啥时候寄")
    assert await learn(base, "啥时候寄", "两天内", record="ship", source="embedded:ship") is None
    assert await learn(base, "什么时候能寄", "x", record="gone", source="embedded:gone") is None
    assert await base.pending() == ()


@pytest.mark.parametrize(
    ("words", "kept"),
    [
        ("亲，啥时候寄？谢谢", "啥时候寄？"),
        ("你好\n我前天买的\n啥时候寄呀", "我前天买的 啥时候寄呀"),
        ("我是月亮船，啥时候寄", "啥时候寄"),
        ("月亮船：啥时候寄", "啥时候寄"),
        ("啥时候寄，月亮船", "啥时候寄"),
        ("给月亮船啥时候寄", "给月亮船啥时候寄"),
        ("1.5米的啥时候寄", "1.5米的啥时候寄"),
    ],
)
def test_all_of_the_words_are_the_wording_but_politeness_and_the_name(words: str, kept: str) -> None:
    assert wording_of(words, "月亮船") == kept


@pytest.mark.parametrize("words", ["11，12号能到吗", "11 号能到吗", "11：30能到吗", "有9，10，11吗", "到11"])
def test_a_name_that_may_be_a_number_is_left_out_of_nothing(words: str) -> None:
    assert wording_of(words, "11") == words


@pytest.mark.parametrize(
    "words",
    [
        "单号SF1234567890啥时候寄",
        "寄到人民路12号行吗",
        "寄到3栋2单元501行吗",
        "收件人小明，啥时候寄",
        "我的验证码是 4821，啥时候寄",
        "卡号 6222021234567890 啥时候退",
        "月亮船的啥时候寄",
    ],
)
async def test_what_is_one_persons_is_no_wording(base: EmbeddedKnowledge, words: str) -> None:
    assert await learn(base, words, "两天内", record="ship", source="embedded:ship", contact="月亮船") is None
    assert await base.pending() == ()


async def test_a_wording_that_another_entry_has_by_now_is_refused(base: EmbeddedKnowledge) -> None:
    waiting = await learn(base, "啥时候寄", "两天内", record="ship", source="embedded:ship")
    assert waiting is not None
    await base.add(Entry(id="other", question="啥时候寄", answer="三天"))

    def refuse(doubles: Sequence[Entry]) -> None:
        raise InputRejected(f"{doubles[0].id} has it.")

    with pytest.raises(InputRejected, match="other has it"):
        await base.approve(waiting.id, refuse=refuse)
    assert await base.pending() == (waiting,)


async def test_a_record_of_another_provider_is_kept_with_its_text(base: EmbeddedKnowledge) -> None:
    entry = await learn(base, "保修多久", "一年", record="seg-1", source="dify:faq.csv")
    assert entry is not None
    assert (entry.question, entry.answer, entry.alias_of) == ("保修多久", "一年", "")
    assert await learn(base, "保修多久呢", "一年", record="seg-1", source="dify:faq.csv") is None


@pytest.mark.parametrize("words", ["在吗", "你好，谢谢！", "？？", "", "  \n", "13800138000", "a.b@shop.example"])
async def test_words_that_ask_nothing(base: EmbeddedKnowledge, words: str) -> None:
    assert await learn(base, words, "我在") is None
    assert await learn(base, words, "两天内", record="ship", source="embedded:ship") is None
    assert await base.pending() == ()


async def test_personal_data_is_not_kept_in_a_question(base: EmbeddedKnowledge) -> None:
    entry = await learn(
        base, "我是月亮船，订单20261120123456到哪了，电话138 0013 8000", "SF1234567890 已发", contact="月亮船"
    )
    assert entry is not None
    assert entry.question == "订单***到哪了，电话***"
    assert entry.answer == "SF1234567890 已发"
    assert personal_data(entry.answer) == ("SF1234567890",)
    used = await learn(base, "我手机13800138000，拆封用过的还能退货吗", "拆封用过的不能退。")
    assert used is not None
    assert used.question == "我手机***，拆封用过的还能退货吗"  # all that the answer depends on
    # Nobody asks with this number again.
    assert await learn(base, "单号SF1234567890到哪了", "x", record="ship", source="embedded:ship") is None


@pytest.mark.parametrize(
    "text",
    [
        "13800138000",
        "+86 138-0013-8000",
        "010-12345678",
        "400 800 8888",
        "１３８００１３８０００",
        "SF1234567890123",
        "DD20261120A77",
        "A1B2C3D4E5F6G7H8",
        "6222 0212 3456 7890",
        "shop+1@mail.shop.example",
        "wxid_ab12cd",
    ],
)
def test_what_is_masked(text: str) -> None:
    assert masked(f"我的{text}，谢谢") == "我的***，谢谢"
    assert len(personal_data(f"我的{text}，谢谢")) == 1


@pytest.mark.parametrize(
    "text",
    [
        "iPhone 13 14 15 16 都能用吗？",
        "iPhone15Pro256GB",
        "2026-11-20能到吗",
        "39.9到59.9元",
        "65W和100W",
        "买20 1000元",
        "@所有人",
        "5号能到吗",
        "一号楼的自提点几点关",
    ],
)
def test_what_is_not(text: str) -> None:
    assert masked(text) == text
    assert personal_data(text) == ()


async def test_what_is_too_long_to_be_kept(base: EmbeddedKnowledge) -> None:
    assert await learn(base, "怎么" * 400, "两天内", record="ship", source="embedded:ship") is None
    assert await learn(base, "怎么办", "x" * 4001) is None
    long = await learn(base, "怎么" * 400, "这样")
    assert long is not None
    assert len(long.question) == 500


def test_questions_about_amounts_are_nobodys_own() -> None:
    for text in ("iPhone 13 能用吗", "满39.9元包邮吗", "5号能到吗", "余额能退吗", "密码锁有吗", "65W和100W哪个好"):
        assert not is_personal(text)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("怎么退货", "亲，请问怎么退货呀？谢谢"),
        ("我昨天买的手机壳怎么退货", "我前天买的手机壳怎么退货"),
        ("1.5米的充电线有货吗", "请问1.5米的充电线有货吗"),
        ("How do I return the case that I bought yesterday?", "how do i return the case that i bought today"),
    ],
)
def test_they_ask_nearly_the_same(one: str, other: str) -> None:
    assert alike(one, other)
    assert alike(other, one)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("怎么退货", "怎么换货"),
        ("你家这个快充充电线1.5米的现在有货吗", "你家这个快充充电线15米的现在有货吗"),
        ("你家这个手机壳iPhone 15 Pro能不能用", "你家这个手机壳iPhone 15 Pro+能不能用"),
        ("how long does it take until order 12 is here", "how long does it take until order 13 is here"),
        ("能退吗", "不能退吗"),
        ("拆封了可以退货吗", "没拆封可以退货吗"),
        ("我昨天买的手机壳怎么退货", "我昨天买的手机壳怎么退货啊 已经寄走了"),
        ("我昨天买的手机壳可以自己来店里退吗", "我昨天买的手机壳需要自己来店里退吗"),
        ("我昨天买的手机壳要我寄给你们吗", "我昨天买的手机壳要你们寄给我吗"),
        ("你家这个透明手机壳iPhone 15 Pro能不能用", "你家这个透明手机壳iPhone 15 Max能不能用"),
        ("在吗", "在吗"),
        ("", "怎么退货"),
    ],
)
def test_they_do_not(one: str, other: str) -> None:
    assert not alike(one, other)
    assert not alike(other, one)
