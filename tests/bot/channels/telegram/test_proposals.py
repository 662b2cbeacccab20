"""What was learnt from an answer, on the question's own card, as it looks in Telegram."""

from __future__ import annotations

import pytest

from agent_core.loop.questions import no_sure_answer
from agent_core.ports import AnswerEvent, Event, Record, ReplyState
from agent_core.session import GateState, Planned, Session
from bot.desk.actors import Role
from knowledge.entries import Entry
from knowledge.learning import Learning
from scheduler.runs.executor import StoredRuns
from scheduler.runs.human import StoredHuman
from simulator.telegram import FakeUser
from storage.runs import NewRun, Runs
from tests.bot.channels.telegram.shop import Shop
from tests.support.telegram import picture

LONG = "两天内发货，节假日顺延。" * 300  # the longest answer that an entry may have, nearly
RECORDS = tuple(
    Record(f"e{number}", LONG + str(number), f"几天能发货 {number}", 0.6, source=f"embedded:e{number}")
    for number in range(3)
)


async def asked(at: Shop, user: FakeUser) -> Session:
    """A run of this person asks what to answer."""
    chat = {"channel": "telegram", "chat_id": str(user.id), "thread_id": "", "kind": "private"}
    run_id = await Runs(at.db).create(NewRun("QQ回复联系人11", "S1", options={"lang": "zh"}, chat=chat))
    assert run_id is not None
    await Runs(at.db).begin_attempt(run_id, 1, serial="S1")
    session = Session(run_id=run_id, task="t", serial="S1", gate=GateState(contact="11"))
    planned = Planned(ledger_id=1, fingerprint="f", asked="亲，啥时候寄", cluster=["亲，啥时候寄"], query="啥时候寄")
    question = no_sure_answer(session, planned, RECORDS)
    await StoredHuman(at.db, hold_seconds=0).ask(session, question, picture=picture())
    await Runs(at.db).park_attempt(run_id, 1)
    return session


async def sent(at: Shop, session: Session, person: str) -> None:
    event = AnswerEvent(
        1,
        "qq",
        "11",
        "亲，啥时候寄",
        ReplyState.SENT,
        query="啥时候寄",
        sent=RECORDS[0].text,
        provenance="knowledge",
        record_id="e0",
        record_source="embedded:e0",
        person=person,
    )
    await StoredRuns(at.db, learn=Learning(at.store).from_answer).event(session.run_id, Event("answer", event.data()))


@pytest.mark.parametrize("role", [Role.OWNER, Role.OPERATOR])
async def test_it_is_offered_on_the_card_that_was_answered(tg_shop: Shop, role: Role) -> None:
    for record in RECORDS:
        await tg_shop.store.add(Entry(id=record.id, question=record.question, answer=record.text))
    if role is not Role.OWNER:
        await tg_shop.person(10, Role.OWNER)
    person = await tg_shop.person(11, role)
    async with tg_shop.adapter():
        await person.send("/whoami")
        await person.sees(lambda chat: chat.saying("账号")[0])
        session = await asked(tg_shop, person)
        card = await person.sees(lambda chat: next((m for m in chat.from_bot if "自己写" in str(m.buttons)), None))
        assert card is not None
        told = "".join(message.words for message in person.chat.from_bot)
        assert all(f"候选 {number}（有点像）" in told for number in (1, 2, 3))
        await person.tap(card, "1. 几天能发货 0")
        await person.sees(lambda chat: "已回答" in card.words)
        assert card.buttons == []
        await sent(tg_shop, session, "Person 11")
        await person.sees(lambda chat: "客户已收到" in card.words)
        assert "啥时候寄" in card.words
        if role is Role.OPERATOR:
            assert "管理员通过以后" in card.words
            assert card.buttons == []
            return
        assert card.buttons == [["是", "否"]]
        await person.tap(card, "是")
        await person.sees(lambda chat: "以后这样问也这样答（#e0）" in card.words)
        assert card.buttons == []
    entry = await tg_shop.store.get("e0")
    assert entry is not None
    assert entry.aliases == ("啥时候寄",)
