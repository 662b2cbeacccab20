"""The shop's own entries at the desk: rights, the log, taking back, files."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import pytest

from agent_core.errors import ConfigMissing, InputRejected
from bot.desk.actors import AccessDenied, Actor, BadRequest, DoubleEntry, NotFound, Role
from bot.desk.desk import Desk
from bot.desk.knowledge import DeskKnowledge
from bot.desk.knowledge_views import EntryText, KnowledgeFile
from knowledge.embedded import EmbeddedKnowledge
from knowledge.entries import Entry
from storage.people import Audit
from tests.support.knowledge import open_knowledge
from tests.support.shop import Shop

RETURN = EntryText("怎么退货", "七天内可退", ("能退吗",), ("售后",))
SHEET = KnowledgeFile("faq.csv", "问题,答案\n怎么退货,十五天内可退\n几天发货,当天发货\n".encode())


@pytest.fixture
async def store(tmp_path: Path) -> AsyncIterator[EmbeddedKnowledge]:
    base = await open_knowledge(tmp_path / "knowledge.sqlite3")
    yield base
    await base.close()


@pytest.fixture
def kb(shop: Shop, store: EmbeddedKnowledge) -> DeskKnowledge:
    return Desk(replace(shop.desk.context, store=store)).kb


@pytest.fixture
async def owner(shop: Shop) -> Actor:
    return await shop.person(Role.OWNER, "Owner A")


@pytest.fixture
async def operator(shop: Shop) -> Actor:
    return await shop.person(Role.OPERATOR, "Operator A")


@pytest.fixture
async def viewer(shop: Shop) -> Actor:
    return await shop.person(Role.VIEWER, "Viewer A")


async def test_an_entry_is_dated_in_the_owner_s_time_zone(
    kb: DeskKnowledge, store: EmbeddedKnowledge, owner: Actor
) -> None:
    late = Entry(id="late", question="怎么退货", answer="七天内可退", created_at=datetime(2026, 3, 1, 20, tzinfo=UTC))
    await store.add(late)
    assert (await kb.entry(owner, "late")).created_at.strftime("%Y-%m-%d") == "2026-03-02"


class TestRights:
    async def test_a_viewer_looks_at_what_is_live(
        self, kb: DeskKnowledge, owner: Actor, operator: Actor, viewer: Actor
    ) -> None:
        live = await kb.add(owner, RETURN)
        waiting = await kb.add(operator, EntryText("退货地址", "见订单"))
        assert [found.entry.id for found in await kb.search(viewer, "退货")] == [live.id]
        assert {found.entry.id for found in await kb.search(operator, "退货")} == {live.id, waiting.id}
        assert (await kb.entry(viewer, live.id)).answer == "七天内可退"
        assert (await kb.stats(viewer)).entries.pending == 1
        newest = (await kb.stats(viewer)).entries.newest
        assert newest is not None
        assert str(newest.tzinfo) == "Asia/Shanghai"  # the owner's
        with pytest.raises(AccessDenied):
            await kb.entry(viewer, waiting.id)
        with pytest.raises(AccessDenied):
            await kb.pending(viewer)
        with pytest.raises(AccessDenied):
            await kb.add(viewer, RETURN)
        with pytest.raises(AccessDenied):
            await kb.approve(viewer, waiting.id)

    async def test_an_operator_keeps_what_waits(self, kb: DeskKnowledge, owner: Actor, operator: Actor) -> None:
        live = await kb.add(owner, RETURN)
        waiting = await kb.add(operator, EntryText("退货地址", "见订单"))
        assert (waiting.live, waiting.origin) == (False, "telegram:Operator A")
        assert (await kb.edit(operator, waiting.id, EntryText(answer="见包裹"))).answer == "见包裹"
        assert await kb.means(operator, "退货地址？") is not None
        with pytest.raises(AccessDenied):  # neither what they proposed nor what they edited
            await kb.approve(operator, waiting.id)
        assert (await kb.approve(owner, f"#{waiting.id}")).live
        with pytest.raises(AccessDenied):
            await kb.edit(operator, live.id, EntryText(answer="不能退"))
        with pytest.raises(AccessDenied):
            await kb.delete(operator, live.id)
        with pytest.raises(AccessDenied):
            await kb.allow_import(operator)
        with pytest.raises(AccessDenied):
            await kb.plan_import(operator, [SHEET])
        with pytest.raises(AccessDenied):
            await kb.carry_out(operator, [SHEET])
        with pytest.raises(AccessDenied):
            await kb.export(operator, "csv")
        assert (await kb.entry(owner, live.id)).answer == "七天内可退"

    async def test_it_is_all_in_the_log(self, shop: Shop, kb: DeskKnowledge, owner: Actor, viewer: Actor) -> None:
        entry = await kb.add(owner, RETURN)
        await kb.delete(owner, entry.id)
        with pytest.raises(AccessDenied):
            await kb.delete(viewer, entry.id)
        denied, deleted, added = (await Audit(shop.db).last(3))[:3]
        assert (added.command, added.detail["question"]) == ("kb add", "怎么退货")
        assert (deleted.command, deleted.detail["before"]["answer"], deleted.allowed) == (
            "kb delete",
            "七天内可退",
            True,
        )
        assert (denied.actor, denied.allowed, "before" in denied.detail) == (viewer.id, False, False)

    async def test_a_desk_without_a_store_says_so(self, shop: Shop, owner: Actor) -> None:
        with pytest.raises(ConfigMissing):
            await shop.desk.kb.search(owner, "退货")


class TestKeeping:
    async def test_asked_twice_with_one_key_is_one_entry(self, kb: DeskKnowledge, owner: Actor) -> None:
        first = await kb.add(owner, RETURN, key="telegram:7")
        assert await kb.add(owner, RETURN, key="telegram:7") == first
        assert (await kb.stats(owner)).entries.live == 1

    async def test_a_question_is_answered_by_one_entry(self, kb: DeskKnowledge, owner: Actor, operator: Actor) -> None:
        first = await kb.add(owner, RETURN)
        with pytest.raises(DoubleEntry, match=first.id):
            await kb.add(owner, EntryText("能退吗", "不能"))
        other = await kb.add(owner, EntryText("几天发货", "当天"))
        with pytest.raises(DoubleEntry, match=first.id):
            await kb.edit(owner, other.id, EntryText(aliases=("怎么退货",)))
        assert (await kb.entry(owner, other.id)).aliases == ()
        with pytest.raises(BadRequest, match="nothing to undo"):
            await kb.undo(owner, other.id)

    async def test_a_waiting_double_is_not_approved(
        self, kb: DeskKnowledge, store: EmbeddedKnowledge, owner: Actor
    ) -> None:
        first = await kb.add(owner, RETURN)
        waiting = await store.add(Entry(question="能退吗？", answer="可以", live=False))
        with pytest.raises(DoubleEntry, match=first.id):
            await kb.approve(owner, waiting.id)
        assert [record.id for record in await store.retrieve("怎么退货")] == [first.id]

    async def test_another_wording_goes_to_the_entry_that_it_means(
        self, kb: DeskKnowledge, store: EmbeddedKnowledge, owner: Actor
    ) -> None:
        first = await kb.add(owner, RETURN)
        wording = await store.add(
            Entry(question="可以退回去吗", answer=first.answer, live=False, alias_of=first.id, origin="person:A")
        )
        approved = await kb.approve(owner, wording.id)
        assert (approved.id, approved.aliases) == (first.id, ("能退吗", "可以退回去吗"))

    @pytest.mark.parametrize("entry_id", ["none", "#none", ""])
    async def test_what_is_not_there(self, kb: DeskKnowledge, owner: Actor, entry_id: str) -> None:
        for call in (kb.entry, kb.delete, kb.approve, kb.reject):
            with pytest.raises(NotFound):
                await call(owner, entry_id)
        with pytest.raises(NotFound):
            await kb.edit(owner, entry_id, EntryText(answer="x"))

    async def test_the_beginning_of_an_id_is_enough(
        self, kb: DeskKnowledge, store: EmbeddedKnowledge, owner: Actor
    ) -> None:
        for entry_id in ("abc1", "abd2", "ab"):
            await store.add(Entry(id=entry_id, question=f"问{entry_id}", answer="答", live=False))
        assert (await kb.approve(owner, "#abc")).id == "abc1"
        assert (await kb.edit(owner, "abd", EntryText(answer="又"))).id == "abd2"
        assert (await kb.reject(owner, "ab")).id == "ab"  # a whole id is no beginning
        assert (await kb.entry(owner, "#abc")).id == "abc1"
        for call in (kb.approve, kb.entry, kb.delete):
            with pytest.raises(BadRequest, match="Several"):
                await call(owner, "ab")
        with pytest.raises(NotFound):
            await kb.approve(owner, "x")
        with pytest.raises(NotFound):
            await kb.approve(owner, "#")

    async def test_what_is_live_is_not_rejected(self, kb: DeskKnowledge, owner: Actor) -> None:
        entry = await kb.add(owner, RETURN)
        with pytest.raises(BadRequest, match="live already"):
            await kb.reject(owner, entry.id)
        assert (await kb.entry(owner, entry.id)).live

    async def test_what_was_decided_is_told_with_who_did(
        self, kb: DeskKnowledge, store: EmbeddedKnowledge, owner: Actor, operator: Actor
    ) -> None:
        first = await kb.add(owner, RETURN)
        own = await kb.add(operator, EntryText("退货地址", "见订单"))
        wording = await store.add(Entry(question="退回去", answer=first.answer, live=False, alias_of=first.id))
        for entry in (own, wording):
            await kb.approve(owner, entry.id)
            with pytest.raises(BadRequest, match="approved by Owner A"):
                await kb.reject(operator, entry.id)
        other = await kb.add(operator, EntryText("几天到", "三天"))
        await kb.reject(operator, other.id)
        for call in (kb.approve, kb.reject):
            with pytest.raises(BadRequest, match="rejected by Operator A"):
                await call(owner, other.id)
        await kb.delete(owner, own.id)
        with pytest.raises(NotFound):
            await kb.reject(owner, own.id)

    async def test_blank_fields_are_refused(self, kb: DeskKnowledge, owner: Actor) -> None:
        with pytest.raises(InputRejected, match="answer"):
            await kb.add(owner, EntryText("怎么退货", " "))
        entry = await kb.add(owner, RETURN)
        with pytest.raises(InputRejected, match="question"):
            await kb.edit(owner, entry.id, EntryText(question=""))


class TestUndo:
    async def test_a_deletion_comes_back_after_a_restart(
        self, shop: Shop, kb: DeskKnowledge, store: EmbeddedKnowledge, owner: Actor
    ) -> None:
        entry = await kb.add(owner, RETURN)
        await kb.delete(owner, entry.id)
        assert await store.get(entry.id) is None
        again = Desk(replace(shop.desk.context, store=store)).kb
        assert await again.undo(owner, entry.id) == entry
        assert await store.get(entry.id) == entry
        with pytest.raises(BadRequest, match="nothing to undo"):
            await again.undo(owner, entry.id)

    async def test_an_edit_is_taken_back(self, kb: DeskKnowledge, owner: Actor) -> None:
        entry = await kb.add(owner, RETURN)
        await kb.edit(owner, entry.id, EntryText(answer="不能退", tags=()))
        assert await kb.undo(owner, entry.id) == entry

    async def test_a_rejection_is_taken_back_by_an_operator(self, kb: DeskKnowledge, operator: Actor) -> None:
        entry = await kb.add(operator, RETURN)
        await kb.reject(operator, entry.id)
        assert await kb.undo(operator, entry.id) == entry

    async def test_a_waiting_wording_with_a_new_answer_too(
        self, kb: DeskKnowledge, store: EmbeddedKnowledge, owner: Actor
    ) -> None:
        first = await kb.add(owner, RETURN)
        wording = await store.add(Entry(question="退回去", answer=first.answer, live=False, alias_of=first.id))
        await kb.edit(owner, wording.id, EntryText(answer="另一个"))
        assert (await kb.undo(owner, wording.id)).alias_of == first.id

    async def test_only_ones_own_newest_change(
        self, shop: Shop, kb: DeskKnowledge, owner: Actor, operator: Actor
    ) -> None:
        first = await kb.add(owner, RETURN)
        second = await kb.add(owner, EntryText("几天发货", "当天"))
        await kb.edit(owner, first.id, EntryText(answer="甲"))
        await kb.edit(owner, second.id, EntryText(answer="乙"))
        with pytest.raises(BadRequest, match="nothing to undo"):
            await kb.undo(owner, first.id)
        with pytest.raises(BadRequest, match="nothing to undo"):
            await kb.undo(operator, second.id)

    async def test_what_somebody_else_changed_since_stays(self, shop: Shop, kb: DeskKnowledge, owner: Actor) -> None:
        entry = await kb.add(owner, RETURN)
        await kb.edit(owner, entry.id, EntryText(answer="甲"))
        other = await shop.person(Role.OWNER, "Owner B")
        await kb.edit(other, entry.id, EntryText(answer="乙"))
        with pytest.raises(BadRequest, match="changed since"):
            await kb.undo(owner, entry.id)
        assert (await kb.entry(owner, entry.id)).answer == "乙"

    async def test_not_where_another_answers_that_now(
        self, kb: DeskKnowledge, store: EmbeddedKnowledge, owner: Actor
    ) -> None:
        entry = await kb.add(owner, RETURN)
        await kb.delete(owner, entry.id)
        other = await kb.add(owner, EntryText("能退吗", "不能"))
        with pytest.raises(DoubleEntry, match=other.id):
            await kb.undo(owner, entry.id)
        assert [one.id for one in await store.list()] == [other.id]
        await kb.delete(owner, other.id)  # somebody's newest change is another one now
        with pytest.raises(BadRequest, match="nothing to undo"):
            await kb.undo(owner, entry.id)


class TestAtOnce:
    """Two people, or two processes, at the same time: one question has one live entry."""

    async def test_two_add_the_same(self, kb: DeskKnowledge, store: EmbeddedKnowledge, owner: Actor) -> None:
        done = await asyncio.gather(*(kb.add(owner, RETURN) for _ in range(4)), return_exceptions=True)
        assert sum(isinstance(one, DoubleEntry) for one in done) == 3
        assert len(await store.list(live=True)) == 1

    async def test_two_waiting_ones_are_approved(
        self, kb: DeskKnowledge, store: EmbeddedKnowledge, owner: Actor, operator: Actor
    ) -> None:
        waiting = [await kb.add(operator, RETURN) for _ in range(3)]
        done = await asyncio.gather(*(kb.approve(owner, one.id) for one in waiting), return_exceptions=True)
        assert sum(isinstance(one, DoubleEntry) for one in done) == 2
        assert len(await store.list(live=True)) == 1

    async def test_two_are_edited_to_the_same(self, kb: DeskKnowledge, store: EmbeddedKnowledge, owner: Actor) -> None:
        entries = [await kb.add(owner, EntryText(f"问题{n}", "答")) for n in "甲乙丙"]
        same = EntryText("怎么退货")
        done = await asyncio.gather(*(kb.edit(owner, one.id, same) for one in entries), return_exceptions=True)
        assert sum(isinstance(one, DoubleEntry) for one in done) == 2
        assert sum(one.question == "怎么退货" for one in await store.list()) == 1

    async def test_one_is_taken_back_while_another_is_added(
        self, shop: Shop, kb: DeskKnowledge, store: EmbeddedKnowledge, owner: Actor
    ) -> None:
        other = await shop.person(Role.OWNER, "Owner B")
        for n in range(8):
            text = EntryText(f"怎么退第{n}件", "答")
            entry = await kb.add(owner, text)
            await kb.delete(owner, entry.id)
            calls = [kb.undo(owner, entry.id), *(kb.add(other, text) for _ in range(2))]
            done = await asyncio.gather(*calls, return_exceptions=True)
            assert sum(isinstance(one, DoubleEntry) for one in done) == 2
            assert len(await store.list(live=True)) == n + 1


class TestFiles:
    async def test_a_plan_writes_nothing_and_is_carried_out_as_it_was_shown(
        self, kb: DeskKnowledge, owner: Actor
    ) -> None:
        entry = await kb.add(owner, RETURN)
        view = await kb.plan_import(owner, [SHEET])
        assert ([one.entry.question for one in view.plan.added], len(view.plan.changed)) == (["几天发货"], 1)
        assert (await kb.stats(owner)).entries.live == 1
        assert (await kb.plan_import(owner, [SHEET])).mark == view.mark
        done = await kb.carry_out(owner, [SHEET], mark=view.mark)
        assert done.done
        assert (await kb.entry(owner, entry.id)).answer == "十五天内可退"
        assert (await kb.stats(owner)).entries.live == 2

    async def test_a_base_that_changed_meanwhile_is_planned_anew(self, kb: DeskKnowledge, owner: Actor) -> None:
        entry = await kb.add(owner, RETURN)
        view = await kb.plan_import(owner, [SHEET])
        await kb.edit(owner, entry.id, EntryText(answer="十四天内可退"))
        again = await kb.carry_out(owner, [SHEET], mark=view.mark)
        assert (again.done, again.mark == view.mark) == (False, False)
        assert (await kb.entry(owner, entry.id)).answer == "十四天内可退"
        assert (await kb.carry_out(owner, [SHEET], mark=again.mark)).done
        assert not (await kb.carry_out(owner, [SHEET], mark=again.mark)).done  # tapped twice

    async def test_what_doubles_between_two_files_is_seen(self, kb: DeskKnowledge, owner: Actor) -> None:
        for answer, doubles, unclear in (("当天发货", ["几天发货"], []), ("三天", [], ["当天发货", "三天"])):
            other = KnowledgeFile("more.csv", f"问题,答案\n几天发货,{answer}\n".encode())
            plan = (await kb.plan_import(owner, [SHEET, other])).plan
            assert [double.wording for double in plan.doubles] == doubles
            assert [one.answer for one in plan.unclear] == unclear

    @pytest.mark.parametrize("form", ["csv", "jsonl", "md", "xlsx"])
    async def test_an_export_comes_back_without_a_change(self, kb: DeskKnowledge, owner: Actor, form: str) -> None:
        await kb.add(owner, RETURN)
        file = await kb.export(owner, form)
        assert file.name.endswith(f".{form}")
        view = await kb.plan_import(owner, [file])
        assert (len(view.plan.same), view.plan.writes, len(view.plan.doubles)) == (1, 0, 0)

    async def test_a_form_that_is_none(self, kb: DeskKnowledge, owner: Actor) -> None:
        with pytest.raises(BadRequest, match="docx"):
            await kb.export(owner, "docx")


@pytest.mark.parametrize(
    ("provider", "used"), [("embedded", True), ("dify", False), ("embedded,dify", True), ("dify, embedded", True)]
)
async def test_whether_the_entries_answer_customers(
    shop: Shop, store: EmbeddedKnowledge, viewer: Actor, provider: str, used: bool
) -> None:
    house = replace(shop.desk.context, store=store, provider=provider)
    stats = await Desk(house).kb.stats(viewer)
    assert (stats.provider, stats.used) == (provider, used)
