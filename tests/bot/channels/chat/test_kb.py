"""/kb as a conversation, over a real desk and a real store."""

from __future__ import annotations

import itertools
from collections.abc import AsyncIterator
from dataclasses import dataclass, replace
from pathlib import Path

import pytest
import sqlalchemy as sa

from agent_core.session import Choice, Question, QuestionKind
from bot.channels.chat import questions
from bot.channels.chat.conversation import Conversation
from bot.channels.chat.kb import LONG_IMPORT
from bot.channels.chat.kb_cards import import_card
from bot.channels.chat.texts import LANGUAGES, Lang, texts
from bot.channels.chat.turn import Outgoing
from bot.channels.telegram import render
from bot.desk.actors import ChatRef, MessageRef, Role
from bot.desk.desk import Desk
from bot.desk.knowledge_views import ImportView
from bot.desk.views import QuestionView
from knowledge.embedded import EmbeddedKnowledge
from knowledge.entries import Entry
from knowledge.importing.plan import EntryChange, ImportPlan
from storage.people import People
from tests.bot.channels.chat.sender import Drawer, Sender
from tests.support.knowledge import OwnKnowledge, open_knowledge
from tests.support.shop import Shop

SHEET = "问题,答案\n怎么退货,十五天内可退\n几天发货,当天发货\n,没有问题\n".encode()
REFUSED = "CREATE TRIGGER t BEFORE INSERT ON knowledge_entries BEGIN SELECT RAISE(ABORT, 'disk full'); END"


@pytest.fixture
async def store(tmp_path: Path) -> AsyncIterator[OwnKnowledge]:
    base = await open_knowledge(tmp_path / "knowledge.sqlite3")
    yield base
    await base.close()


@pytest.fixture
def drawer() -> Drawer:
    return Drawer()


@dataclass
class KnowledgeShop:
    shop: Shop
    desk: Desk
    drawer: Drawer

    async def sender(self, role: Role, name: str, lang: str = "zh") -> Sender:
        actor = await self.shop.person(role, name)
        await People(self.shop.db).update(int(actor.id), lang=lang)
        conversation = Conversation(self.desk, bot_name="desk_bot", files=self.drawer)
        return Sender(conversation, actor, self.drawer, lang)


@pytest.fixture
def desk(shop: Shop, store: EmbeddedKnowledge, drawer: Drawer) -> KnowledgeShop:
    return KnowledgeShop(shop, Desk(replace(shop.desk.context, store=store)), drawer)


@pytest.fixture
async def owner(desk: KnowledgeShop) -> Sender:
    return await desk.sender(Role.OWNER, "Owner A")


@pytest.fixture
async def operator(desk: KnowledgeShop, owner: Sender) -> Sender:
    return await desk.sender(Role.OPERATOR, "Operator A", "en")


@pytest.fixture
async def viewer(desk: KnowledgeShop, owner: Sender) -> Sender:
    return await desk.sender(Role.VIEWER, "Viewer A")


async def add(store: EmbeddedKnowledge, **fields: object) -> Entry:
    return await store.add(Entry.model_validate({"question": "怎么退货", "answer": "七天内可退", **fields}))


class TestLooking:
    async def test_alone_it_tells_numbers_and_what_can_be_done(
        self, owner: Sender, operator: Sender, viewer: Sender
    ) -> None:
        said = await owner.say("/kb")
        assert "0 条可用" in said
        assert "知识库还是空的" in said
        assert "/kb 导入: 导入表格" in said
        assert "/kb 删除" not in await operator.say("/kb")
        assert "/kb pending: see what waits, edit or reject it" in await operator.say("知识库")
        assert "/kb 添加" not in (await viewer.say("/kb")).replace("用 /kb 添加 问题", "")

    async def test_a_provider_that_does_not_use_them_is_told(
        self, desk: KnowledgeShop, store: EmbeddedKnowledge
    ) -> None:
        desk.desk = Desk(replace(desk.shop.desk.context, store=store, provider="dify"))
        sender = await desk.sender(Role.OWNER, "Owner B")
        assert "PHONEDESK_KNOWLEDGE__PROVIDER=embedded,dify" in await sender.say("/kb 统计")

    @pytest.mark.parametrize("words", ["/kb search 退货", "/kb 搜索 退货", "/kb 退货", "/知识库 退货", "知识库 “退货”"])
    async def test_search(self, store: EmbeddedKnowledge, viewer: Sender, words: str) -> None:
        entry = await add(store)
        await add(store, question="能退货吗", live=False)
        assert await viewer.say(words) == f"“退货”找到 1 条\n#{entry.id}: 怎么退货\n七天内可退\n[#{entry.id}]"
        said = await viewer.tap(entry.id)
        assert said == f"#{entry.id}\n问题: 怎么退货\n答案: 七天内可退"

    async def test_nothing_found(self, viewer: Sender) -> None:
        assert "没有和“发票”足够接近的条目。" in await viewer.say("/kb 发票")

    async def test_a_long_list_is_paged(self, store: EmbeddedKnowledge, viewer: Sender) -> None:
        for number in range(12):
            await add(store, question=f"退货问题{number}", id=f"e{number}")
        first = await viewer.say("/kb 退货")
        assert "第 1 页，共 3 页" in first
        second = await viewer.tap("下一页")
        assert "第 2 页，共 3 页" in second
        assert viewer.last is not None
        assert viewer.last.replaces is not None
        third = await viewer.tap("下一页")
        ids = [f"#e{number}:" in first + second + third for number in range(12)]
        assert all(ids)
        assert "第 2 页" in await viewer.tap("上一页")

    async def test_a_page_whose_question_is_gone(self, viewer: Sender) -> None:
        assert "找不到原来的消息了" in await viewer.press("kb:found:1")
        assert "找不到原来的消息了" in await viewer.press("kb:nonsense:1")


class TestKeeping:
    async def test_an_owner_adds_edits_deletes_and_takes_it_back(self, store: EmbeddedKnowledge, owner: Sender) -> None:
        said = await owner.say("/kb add 怎么退货 | 七天内可退 | 能退吗")
        (entry,) = await store.list()
        assert f"已添加 #{entry.id}" in said
        assert f"/kb 修改 {entry.id} 答案：七天内可退" in said
        assert (entry.aliases, entry.live) == (("能退吗",), True)
        assert "已修改" in await owner.say(f"/kb 修改 {entry.id} 答案：十五天内可退\n标签：售后")
        changed = await store.get(entry.id)
        assert changed is not None
        assert (changed.answer, changed.tags) == ("十五天内可退", ("售后",))
        assert "已恢复" in await owner.tap("撤销")
        assert await store.get(entry.id) == entry
        said = await owner.say(f"/kb 修改 {entry.id} 加相似问：退货流程 | 好退吗\n删相似问：能退吗")
        assert "相似问: 退货流程 | 好退吗" in said
        assert "原来的相似问: 能退吗" in said
        changed = await store.get(entry.id)
        assert changed is not None
        assert changed.aliases == ("退货流程", "好退吗")
        assert "已恢复" in await owner.tap("撤销")
        assert "没有“x”这个相似问" in await owner.say(f"/kb 修改 {entry.id} remove alias: x")
        assert f"要删除 #{entry.id} 吗？" in await owner.say(f"/kb delete {entry.id}")
        assert await store.get(entry.id) == entry
        assert "已删除" in await owner.tap("删除")
        assert await store.list() == ()
        assert "已恢复" in await owner.tap("撤销")
        assert await store.list() == (entry,)

    async def test_an_entry_is_edited_by_its_question(self, store: EmbeddedKnowledge, owner: Sender) -> None:
        await owner.say("/kb add How do I return it? | Within seven days.")
        await owner.say("/kb add How do I return a gift? | As anything else.")
        assert "已修改" in await owner.say("/kb edit how do I return it answer: Within fifteen days.")
        assert {one.answer for one in await store.list()} == {"Within fifteen days.", "As anything else."}
        said = await owner.say("/kb edit do I return answer: Never.")
        assert said.startswith("有几条的问题里都有“do I return”。")
        assert all(f"{one.id} {one.question}" in said for one in await store.list())
        assert "As anything else." in await owner.say("/kb edit a gift")  # shown, with the line to copy

    async def test_changing_ones_mind(self, store: EmbeddedKnowledge, owner: Sender) -> None:
        entry = await add(store)
        await owner.say(f"/kb 删除 {entry.id}")
        assert "什么也没有改" in await owner.tap("取消")
        assert await store.list() == (entry,)

    async def test_the_same_message_handed_in_again_adds_once(self, store: EmbeddedKnowledge, owner: Sender) -> None:
        await owner.say("/kb add 怎么退货 | 七天内可退")
        owner.numbers = itertools.count(1)
        await owner.say("/kb add 怎么退货 | 七天内可退")
        assert len(await store.list()) == 1

    async def test_a_double_is_told_with_the_entry_to_change(self, store: EmbeddedKnowledge, owner: Sender) -> None:
        entry = await add(store)
        said = await owner.say("/kb add 怎么退货？ | 不能退")
        assert "知识库里已经有这个问题了。" in said
        assert f"/kb 修改 {entry.id}" in said

    async def test_an_operators_entry_waits(self, store: EmbeddedKnowledge, owner: Sender, operator: Sender) -> None:
        said = await operator.say("/kb add\nQ: 怎么退货\nA: 七天内可退")
        assert "waits for approval" in said
        assert "[Approve]" not in said
        (entry,) = await store.pending()
        listed = await operator.say("/kb pending")
        assert "[Reject 1]" in listed
        assert "[Approve 1]" not in listed
        assert "An owner approves it" in listed
        assert "You may not do this" in await operator.say(f"/kb approve #{entry.id}")
        assert "You may not do this" in await operator.press(f"kb:ok:0:{entry.id}")
        assert "[通过 1]" in await owner.say("/kb 待审")
        assert "已通过" in await owner.say(f"/kb approve #{entry.id}")
        assert "You may not do this" in await operator.say(f"/kb edit {entry.id} answer: no")
        assert "You may not do this" in await operator.say(f"/kb delete {entry.id}")
        assert "You may not do this" in await operator.press(f"kb:delete:{entry.id}")
        assert (await store.list())[0].answer == "七天内可退"

    @pytest.mark.parametrize(
        ("written", "said"),
        [
            ("/kb add 怎么退货", "例如：/kb 添加"),
            ("/kb edit", "/kb 修改 a1b2"),
            ("/kb edit e1 新的答案", "/kb 修改 a1b2"),
            ("/kb delete", "/kb 删除 a1b2"),
            ("/kb 通过", "/kb 通过 a1b2"),
            ("/kb reject", "/kb 拒绝 a1b2"),
            ("/kb export", "csv jsonl md xlsx"),
            ("/kb export xlsx", "知识库还是空的"),
            ("/kb import", "最大 10 MB"),
            ("/kb pending", "没有待审的条目"),
            ("/kb delete nobody", "没有条目 #nobody"),
        ],
    )
    async def test_what_is_missing_is_told_with_an_example(self, owner: Sender, written: str, said: str) -> None:
        assert said in await owner.say(written)

    async def test_an_entry_with_a_long_id_is_deleted_on_the_command_line(
        self, store: EmbeddedKnowledge, owner: Sender
    ) -> None:
        entry = await add(store, id="x" * 64)
        assert f"phonedesk kb delete {entry.id}" in await owner.say(f"/kb delete {entry.id}")
        assert "怎么退货" in await owner.say("/kb 退货")

    async def test_the_line_to_copy_is_never_cut(self, store: EmbeddedKnowledge, owner: Sender) -> None:
        for length in (1200, 1201, 4000):
            aliases = tuple(f"{n}" + "字" * 480 for n in range(8))
            await add(store, id=f"e{length}", question="问" * 500, answer="答" * length, aliases=aliases)
            await owner.say(f"/kb edit e{length}")
            assert owner.last is not None
            copied = owner.last.card.lines[-1].text
            assert copied == f"/kb 修改 e{length} 答案：" + "答" * (length if length == 1200 else 0)
            assert f"<code>{copied}</code>" in render.outgoing(owner.last.card).text


class TestPending:
    async def test_what_was_learnt_says_where_it_came_from(self, store: EmbeddedKnowledge, owner: Sender) -> None:
        first = await add(store, id="e1")
        await add(store, id="p1", question="能开发票吗", answer="可以，请留下税号", live=False, origin="person:小组A")
        await add(store, id="p2", question="退回去行吗", live=False, alias_of="e1", origin="person:小组A")
        said = await owner.say("/kb pending")
        assert "待审的条目：2 条" in said
        assert "来源: 小组A 回答客户时写的" in said
        assert "作为这一条的相似问: 怎么退货" in said
        assert "来源: 小组A 给客户选了这条答案" in said
        assert "[通过 1]\n[修改 1]\n[拒绝 1]\n[通过 2]" in said
        assert "待审的条目：1 条" in await owner.tap("通过 2")
        assert owner.toast == "已通过 #e1"
        changed = await store.get(first.id)
        assert changed is not None
        assert changed.aliases == ("退回去行吗",)
        assert "/kb 修改 p1 答案：可以，请留下税号" in await owner.tap("修改 1")
        await owner.say("/kb edit p1 答案：可以开")
        assert (await store.pending())[0].answer == "可以开"

    async def test_a_rejection_can_be_taken_back(self, store: EmbeddedKnowledge, operator: Sender) -> None:
        await add(store, id="p1", live=False)
        await operator.say("/kb 待审")
        assert "Nothing waits for approval." in await operator.tap("Reject 1")
        assert await store.pending() == ()
        assert "is back" in await operator.tap("Undo")
        assert [entry.id for entry in await store.pending()] == ["p1"]

    async def test_many_are_paged(self, store: EmbeddedKnowledge, owner: Sender) -> None:
        for number in range(7):
            await add(store, id=f"p{number}", question=f"问题{number}", live=False)
        assert "第 1 页，共 3 页" in await owner.say("/kb pending")
        assert "#p3" in await owner.tap("下一页")
        await owner.tap("通过 4")
        assert "第 2 页，共 2 页" in "\n".join(line.text for line in owner.last.card.lines)  # type: ignore[union-attr]  # said

    async def test_personal_data_is_pointed_at(self, store: EmbeddedKnowledge, owner: Sender) -> None:
        await add(store, answer="请打 13812345678", live=False)
        assert "13812345678。请先修改再通过" in await owner.say("/kb pending")

    async def test_the_card_of_a_question_says_where_the_answer_is_kept(self, desk: KnowledgeShop) -> None:
        view = _question("我们下周到货", ("skip", "跳过"))
        card = questions.question_card(view, texts("zh"))
        assert card.lines[-1].text == "送达客户以后，这个回答会成为待审条目：/kb 待审"
        skipped = questions.question_card(replace(view, answer="skip"), texts("zh"))
        assert "pending" not in skipped.lines[-1].text


class TestImport:
    async def test_a_file_is_shown_first_and_then_imported(self, store: EmbeddedKnowledge, owner: Sender) -> None:
        await add(store, id="e1")
        said = await owner.send("faq.csv", SHEET)
        assert "导入 faq.csv：预览，还没有写入" in said
        assert "新增 1 条，修改 1 条" in said
        assert "新增: 几天发货" in said
        assert "修改: 怎么退货" in said
        assert "不能导入: faq.csv" in said
        assert len(await store.list()) == 1
        assert "已导入 faq.csv\n新增 1 条，修改 1 条" in await owner.tap("导入")
        assert [entry.answer for entry in await store.list()] == ["十五天内可退", "当天发货"]
        assert owner.last is not None
        assert owner.last.card.buttons == ()

    async def test_a_restart_between_forgets_nothing(
        self, desk: KnowledgeShop, store: EmbeddedKnowledge, owner: Sender
    ) -> None:
        await owner.send("faq.csv", SHEET, "/kb import")
        owner.conversation = Conversation(desk.desk, files=desk.drawer)
        assert "已导入" in await owner.tap("导入")
        assert len(await store.list()) == 2

    async def test_a_base_that_changed_meanwhile_is_shown_again(self, store: EmbeddedKnowledge, owner: Sender) -> None:
        await add(store, id="e1")
        await owner.send("faq.csv", SHEET)
        await store.edit("e1", answer="十四天内可退")
        said = await owner.tap("导入")
        assert "知识库在这期间变了" in said
        assert (await store.list())[0].answer == "十四天内可退"
        assert "已导入" in await owner.tap("导入")
        assert (await store.list())[0].answer == "十五天内可退"

    async def test_doubles_are_left_out_or_replaced_as_one_likes(self, store: EmbeddedKnowledge, owner: Sender) -> None:
        await add(store, id="e1", aliases=("能退吗",))
        said = await owner.send("faq.csv", "问题,答案\n能退吗,可以\n".encode())
        assert "重复 1 处" in said
        assert "[导入，重复的用新的替换]" in said
        assert "已导入" in await owner.tap("替换")
        assert "可以" in [entry.answer for entry in await store.list()]

    async def test_rows_that_contradict_each_other_are_told_row_by_row(
        self, store: EmbeddedKnowledge, owner: Sender
    ) -> None:
        table = "问题,答案\n几天发货,两天\n请问几天发货,三天\n保修,一年\n".encode()
        said = await owner.send("faq.csv", table)
        assert "新增 1 条，修改 0 条，不变 0 条\n回答不一致 2 行\n" in said
        assert "faq.csv 第 2 行：“几天发货” → 两天（不同于 faq.csv 第 3 行）\n" in said
        assert "faq.csv 第 3 行：“请问几天发货” → 三天（不同于 faq.csv 第 2 行）" in said
        assert "回答不一致的都不导入" in await owner.tap("导入")
        assert [entry.question for entry in await store.list()] == ["保修"]
        await owner.send("faq.csv", table)
        told = await owner.tap("替换")
        assert "而且回答不同\n  这一行：三天\n  faq.csv 第 2 行：两天" in told
        assert {entry.answer for entry in await store.list()} == {"一年", "三天"}

    async def test_more_rows_that_are_left_out_than_a_card_holds_come_as_a_file(self, owner: Sender) -> None:
        rows = "".join(f"问题{n},\n" for n in range(30))
        said = await owner.send("faq.csv", f"问题,答案\n{rows}保修,一年\n".encode())
        assert "…… 还有 25 个" in said
        assert owner.last is not None
        assert owner.last.card.document is not None
        listed = owner.last.card.document.data.decode().strip().split("\n")
        assert (listed[0], len(listed)) == ("不能导入", 31)
        assert listed[30] == "faq.csv 第 31 行：没有答案"

    async def test_a_long_import_shows_how_far_it_is_in_place_of_its_buttons(
        self, desk: KnowledgeShop, store: EmbeddedKnowledge, owner: Sender
    ) -> None:
        told: list[Outgoing] = []

        async def show(message: Outgoing) -> None:
            told.append(message)

        owner.conversation = Conversation(desk.desk, files=desk.drawer, show=show)
        short, long = (
            "问题,答案\n" + "".join(f"第{n}款多重,{n}克\n" for n in range(count)) for count in (20, LONG_IMPORT)
        )
        await owner.send("short.csv", short.encode())
        assert "已导入" in await owner.tap("导入")
        assert told == []  # it is over before anybody would read it
        await owner.send("long.csv", long.encode())
        assert "已导入" in await owner.tap("导入")
        assert told[0].card.title == "正在导入 long.csv"
        assert told[0].card.lines[0].text == "正在和知识库比对 1,000 行"
        assert told[0].card.buttons == ()
        assert told[0].replaces == MessageRef(owner.chat, "900")
        assert len(await store.list()) == LONG_IMPORT

    async def test_a_long_import_that_fails_does_not_go_on_saying_that_it_is_under_way(
        self, desk: KnowledgeShop, store: OwnKnowledge, owner: Sender
    ) -> None:
        told: list[Outgoing] = []

        async def show(message: Outgoing) -> None:
            told.append(message)

        owner.conversation = Conversation(desk.desk, files=desk.drawer, show=show)
        rows = "".join(f"第{n}款多重,{n}克\n" for n in range(LONG_IMPORT))
        await owner.send("long.csv", f"问题,答案\n{rows}".encode())

        async with store.db.write() as connection:
            await connection.execute(sa.text(REFUSED))
        await owner.tap("导入")
        assert told[-1].card.title == "没有导入 long.csv"
        assert await store.list() == ()

    async def test_cancelled(self, store: EmbeddedKnowledge, owner: Sender) -> None:
        await owner.send("faq.csv", SHEET)
        assert "什么也没有改" in await owner.tap("取消")
        assert await store.list() == ()

    async def test_what_is_no_table_is_told(self, owner: Sender) -> None:
        said = await owner.send("faq.exe", b"MZ\x00\x01")
        assert said.startswith("faq.exe 这种文件不能导入。")
        assert "faq.exe" in said

    async def test_the_message_with_the_file_is_gone(self, owner: Sender) -> None:
        await owner.send("faq.csv", SHEET)
        owner.answered = None
        assert "找不到原来的文件了" in await owner.tap("导入")

    async def test_nobody_elses_file_is_opened(
        self, drawer: Drawer, operator: Sender, viewer: Sender, store: EmbeddedKnowledge
    ) -> None:
        for sender, words in ((operator, "only an owner"), (viewer, "只有管理员可以导入文件")):
            assert words in await sender.send("faq.csv", SHEET)
            assert sender.last is not None
            assert sender.last.once == f"kb-document:telegram:{sender.actor.user_id}"
            assert words in await sender.send("faq.csv", SHEET, "/kb import")
            assert sender.last.once
        stranger = replace(viewer, actor=replace(viewer.actor, user_id="999"))
        assert "只服务于已配对的成员" in await stranger.send("faq.csv", SHEET)
        assert stranger.last is not None
        assert stranger.last.once == "stranger:telegram:999"
        assert drawer.fetched == []
        await viewer.press("kb:import:skip:0")
        assert drawer.fetched == []

    async def test_in_a_group_only_with_the_command(self, drawer: Drawer, owner: Sender) -> None:
        owner.chat = ChatRef("telegram", "-100", "", "group")
        assert await owner.send("faq.csv", SHEET) == ""
        assert await owner.send("faq.csv", SHEET, "look at this") == ""
        assert "预览" in await owner.send("faq.csv", SHEET, "/kb import")

    @pytest.mark.parametrize("form", ["csv", "xlsx", "jsonl", "md"])
    async def test_an_export_comes_back(self, store: EmbeddedKnowledge, owner: Sender, form: str) -> None:
        await add(store)
        assert "知识库导出" in await owner.say(f"/kb 导出 {form}")
        assert owner.last is not None
        file = owner.last.card.document
        assert file is not None
        assert "没有可以导入的内容" in await owner.send(file.name, file.data)


def _question(answer: str, *choices: tuple[str, str]) -> QuestionView:
    question = Question(
        id="q1",
        kind=QuestionKind.NO_SURE_ANSWER,
        text="到货了吗",
        choices=[Choice(value=value, label=label) for value, label in choices],
        free_text=True,
    )
    return QuestionView("q1", "r1", question, open=False, answer=answer, by="A")


class TestImportCard:
    """What a change changes is told before it is done."""

    @pytest.fixture
    def view(self) -> ImportView:
        old = Entry(id="a", question="怎么退货", answer="甲" * 200 + "七天", aliases=("能退吗", "学来的"), tags=("x",))
        new = old.model_copy(update={"answer": "甲" * 200 + "十天", "aliases": ("能退吗", "可退吗"), "tags": ("y",)})
        plan = ImportPlan("f.csv", (), (), (EntryChange("f.csv, row 2", old, new),), (), (), ())
        return ImportView(plan, "m")

    @pytest.mark.parametrize("lang", LANGUAGES)
    def test_each_field_and_what_is_lost(self, view: ImportView, lang: Lang) -> None:
        card = import_card(view, texts(lang))
        told = "\n".join(line.text for line in card.lines)
        assert "怎么退货" in told
        assert "#a" not in told, "people know an entry by its question"
        assert "甲七天 → …" in told
        assert "甲十天" in told
        assert "-学来的 +可退吗" in told
        assert "-x +y" in told
        assert "能退吗" not in told
        assert texts(lang).get("kb.import_loses", count=1) in told
        assert "怎么退货: 学来的" in told
        done = "\n".join(line.text for line in import_card(replace(view, done=True), texts(lang)).lines)
        assert texts(lang).get("kb.import_lost", count=1) in done
        assert max(len(line) for line in told.split("\n")) < 200

    def test_what_stays_is_not_told(self, view: ImportView) -> None:
        change = view.plan.changed[0]
        only = replace(change, new=change.old.model_copy(update={"aliases": (*change.old.aliases, "退吗")}))
        told = "\n".join(
            line.text
            for line in import_card(replace(view, plan=replace(view.plan, changed=(only,))), texts("zh")).lines
        )
        assert "+退吗" in told
        assert "→" not in told
        assert "删" not in told
        assert "保留" not in told

    @pytest.mark.parametrize("lang", LANGUAGES)
    def test_what_is_kept_is_told_if_the_answer_changes(self, view: ImportView, lang: Lang) -> None:
        change = view.plan.changed[0]
        kept = replace(change, new=change.new.model_copy(update={"aliases": change.old.aliases}), kept=("学来的",))
        card = import_card(replace(view, plan=replace(view.plan, changed=(kept,))), texts(lang))
        told = "\n".join(line.text for line in card.lines)
        assert texts(lang).get("kb.import_kept", count=1) in told
        assert texts(lang).get("kb.kept_aliases") in told
        assert "学来的" in told
        same = replace(kept, new=kept.new.model_copy(update={"answer": change.old.answer}))
        card = import_card(replace(view, plan=replace(view.plan, changed=(same,))), texts(lang))
        assert "学来的" not in "\n".join(line.text for line in card.lines)
