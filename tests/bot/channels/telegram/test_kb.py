"""/kb through the whole channel: a real desk and store behind it, the stand-in server before it."""

from __future__ import annotations

import asyncio
import io

import openpyxl
import pytest
from openpyxl.worksheet.worksheet import Worksheet

from bot.channels.chat.cards import Card, Document
from bot.channels.telegram import render
from bot.desk.actors import Role
from knowledge.entries import Entry
from storage.messages import OutboxTable
from tests.bot.channels.telegram.shop import Shop


def sheet(*rows: tuple[str, ...]) -> bytes:
    book = openpyxl.Workbook()
    page = book.active
    assert isinstance(page, Worksheet)
    for row in rows:
        page.append(row)
    out = io.BytesIO()
    book.save(out)
    return out.getvalue()


XLSX = sheet(("问题", "答案", "相似问"), ("怎么退货", "七天内可退", "能退吗"), ("几天发货", "当天", ""))


async def test_an_xlsx_is_shown_imported_and_exported(tg_shop: Shop) -> None:
    owner = await tg_shop.person(11, Role.OWNER)
    async with tg_shop.adapter():
        await owner.send_file(XLSX, "客服问答.xlsx")
        plan = await owner.sees(lambda chat: chat.saying("预览，还没有写入")[0])
        assert "新增 2 条" in plan.text
        assert await tg_shop.store.count() == 0
        toast = await owner.tap(plan, "导入")
        assert toast.text == "已导入 客服问答.xlsx"
        await owner.sees(lambda chat: plan.text.startswith("已导入") and not plan.buttons)
        assert [entry.origin for entry in await tg_shop.store.list()] == ["import:客服问答.xlsx"] * 2
        await owner.send("/kb export xlsx")
        sent = await owner.sees(lambda chat: chat.saying("知识库导出")[0])
        assert sent.content.media == "document"
        assert sent.content.file is not None
        assert sent.content.file.name.endswith(".xlsx")
        page = openpyxl.load_workbook(io.BytesIO(sent.file or b"")).active
        assert isinstance(page, Worksheet)
        assert "七天内可退" in str(list(page.iter_rows(values_only=True)))


async def test_a_plan_survives_a_restart_and_is_shown_again_where_the_base_changed(tg_shop: Shop) -> None:
    owner = await tg_shop.person(11, Role.OWNER)
    async with tg_shop.adapter():
        await owner.send_file(XLSX, "faq.xlsx", caption="/kb import")
        plan = await owner.sees(lambda chat: chat.saying("预览")[0])
    await tg_shop.store.add(Entry(id="e1", question="几天发货", answer="三天"))
    async with tg_shop.adapter():
        toast = await owner.tap(plan, "导入")
        assert "变了" in toast.text
        await owner.sees(lambda chat: "修改 1 条" in plan.text)
        entry = await tg_shop.store.get("e1")
        assert entry is not None
        assert entry.answer == "三天"
        assert "已导入" in (await owner.tap(plan, "导入")).text
        assert await tg_shop.store.count() == 2


async def test_two_taps_import_once(tg_shop: Shop) -> None:
    owner = await tg_shop.person(11, Role.OWNER)
    async with tg_shop.adapter():
        await owner.send_file(XLSX, "faq.xlsx")
        plan = await owner.sees(lambda chat: chat.saying("预览")[0])
        await asyncio.gather(owner.tap(plan, "导入"), owner.tap(plan, "导入"))
        await owner.sees(lambda chat: not plan.buttons)
        assert await tg_shop.store.count() == 2


@pytest.mark.parametrize(("role", "words"), [(Role.VIEWER, "只有管理员"), (None, "只服务于已配对的成员")])
async def test_others_documents_are_refused_once_and_never_fetched(
    tg_shop: Shop, role: Role | None, words: str
) -> None:
    person = await tg_shop.person(12, role) if role else tg_shop.tg.user(12, "Person 12", "zh")
    async with tg_shop.adapter():
        for name in ("a.xlsx", "b.xlsx"):
            await person.send_file(XLSX, name)
        await person.send("/whoami" if role else "/start nothing")
        await person.sees(lambda chat: len(chat.from_bot) >= 2)
        assert len(person.chat.saying(words)) == 1
    assert not [call for call in tg_shop.tg.world.calls if call.method == "getFile"]
    assert await tg_shop.store.count() == 0


async def test_a_file_that_is_too_large_is_told(tg_shop: Shop) -> None:
    owner = await tg_shop.person(11, Role.OWNER)
    async with tg_shop.adapter():
        await owner.send_file(b"x" * 10_000_001, "large.csv")
        said = await owner.sees(lambda chat: chat.from_bot[0])
        assert "large.csv" in said.text
        assert "超过 10 MB" in said.text
    assert not [call for call in tg_shop.tg.world.calls if call.method == "getFile"]


async def test_a_deleted_entry_comes_back_after_a_restart(tg_shop: Shop) -> None:
    owner = await tg_shop.person(11, Role.OWNER, "en")
    entry = await tg_shop.store.add(Entry(id="e1", question="Can I return it?", answer="Within seven days."))
    async with tg_shop.adapter():
        await owner.send("/kb delete e1")
        card = await owner.sees(lambda chat: chat.saying("Delete #e1?")[0])
        await owner.tap(card, "Delete")
        await owner.sees(lambda chat: card.text.startswith("Deleted #e1"))
        assert await tg_shop.store.count() == 0
    async with tg_shop.adapter():
        assert (await owner.tap(card, "Undo")).text == "#e1 is back as it was"
    assert await tg_shop.store.get("e1") == entry


async def test_a_document_never_takes_the_place_of_a_message(tg_shop: Shop) -> None:
    owner = await tg_shop.person(11, Role.OWNER)
    async with tg_shop.adapter():
        await owner.send("/kb")
        card = await owner.sees(lambda chat: chat.from_bot[0])
        outgoing = render.outgoing(Card("t", document=Document("a.csv", XLSX)))
        await OutboxTable(tg_shop.db).put("11", outgoing.model_copy(update={"edit": card.id}).payload())
        sent = await owner.sees(lambda chat: [message for message in chat.from_bot if message.file][-1])
        assert (sent.id == card.id, card.file, sent.caption) == (False, None, "t")
