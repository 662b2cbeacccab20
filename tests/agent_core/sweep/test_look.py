"""Cheap looks at a virtual phone, by real adb: what they find, and what they cost."""

from __future__ import annotations

import pytest

from agent_core.apps.profile import profile
from agent_core.devices.base import Key
from agent_core.errors import LeaseLost
from agent_core.geometry import Box, Point
from agent_core.perception.lists import ChatRow, with_preview
from agent_core.perception.observer import TreeUse
from agent_core.perception.reader import ScreenReader
from agent_core.sweep import Aside, ListMemory, LookOutcome, UnreadLook, look_for_unread
from agent_core.sweep.result import SetAside
from agent_core.sweep.rows import FoundRow, aside_of, whole_name
from simulator.phone.scenario import ContactPart, MessagePart, Scenario
from tests.support.lab import OCR, QQ, Lab, lab

QQ_APP = profile("qq")
WAYS: list[TreeUse] = ["auto", "off"]


async def look(at: Lab, tree: TreeUse, before: ListMemory | None = None, **more: object) -> UnreadLook:
    """A look with the tree alone, or with pictures alone."""
    reader = ScreenReader(ocr=OCR if tree == "off" else None, model=None)
    return await look_for_unread(at.device, reader, QQ_APP, before=before, tree=tree, **more)  # type: ignore[arg-type]


def names(seen: UnreadLook) -> list[str]:
    return [one.contact for one in seen.waiting]


def many(count: int, unread: range) -> Scenario:
    """So many contacts; the higher the number, the longer ago they wrote."""
    return Scenario(
        contacts=[
            ContactPart(
                name=f"客户{n:02d}",
                history=[MessagePart(text=f"第{n:02d}个问题", ago=60.0 * (n + 1), unread=n in unread)],
            )
            for n in range(count)
        ]
    )


@pytest.mark.rotating(parts=2)
@pytest.mark.parametrize("tree", WAYS)
async def test_an_idle_look_costs_two_calls_and_reads_nothing(tree: TreeUse) -> None:
    async with lab() as at:
        first = await look(at, tree)  # from the home screen: the app is brought to its list
        assert (first.outcome, names(first)) == (LookOutcome.READ, ["11"])
        assert {one.name: one.why for one in first.aside} == {
            "QQ智能客服": Aside.SERVICE,
            "11号售后群": Aside.GROUP,
        }
        assert {"110", "小11", "老客户A"} <= set(first.seen)
        assert first.memory is not None
        kept = ListMemory.of(first.memory.data())
        again = await look(at, tree, kept)
        assert (again.outcome, again.calls, again.waiting) == (LookOutcome.UNCHANGED, 2, first.waiting)
        # With nothing remembered, on the list already: the picture, the notifications, the tree where there is one.
        anew = await look(at, tree)
        assert (anew.outcome, anew.calls) == (LookOutcome.READ, 3 if tree == "auto" else 2)
        assert at.phone.report()["chats_opened"] == []
        at.phone.receive("老客户A", "再问一下")
        changed = await look(at, tree, kept)
        assert names(changed) == ["11", "老客户A"]  # who has waited longest is the first
        assert changed.calls <= 3
        state = {one.contact: one.state for one in changed.waiting}
        assert state["11"] == first.waiting[0].state
        at.phone.receive("老客户A", "还在吗")
        later = {one.contact: one.state for one in (await look(at, tree, changed.memory)).waiting}
        assert (later["11"], later["老客户A"] == state["老客户A"]) == (state["11"], False)


@pytest.mark.rotating(parts=2)
@pytest.mark.parametrize("tree", WAYS)
async def test_an_open_chat_is_left_and_what_came_into_it_is_seen(tree: TreeUse) -> None:
    async with lab() as at:
        await at.phone.launch(QQ)
        await at.open_chat_by_url()
        at.phone.receive("11", "那邮费呢？")  # read by the app, by no person
        seen = await look(at, tree)
        assert names(seen) == ["11"]
        assert at.phone.report()["unread"].get("11") is None
        at.phone.colleague("11", "邮费8元")
        await at.open_chat_by_url()
        assert names(await look(at, tree)) == []


async def test_more_than_a_page_is_read_as_far_as_the_app_counts() -> None:
    async with lab(many(30, range(3, 17))) as at:
        seen = await look(at, "auto")
        assert names(seen) == [f"客户{n:02d}" for n in reversed(range(3, 17))]
        assert 2 <= seen.pages <= 3
        again = await look(at, "auto", seen.memory)  # it stands where it stood
        assert (again.outcome, again.calls) == (LookOutcome.UNCHANGED, 2)


async def test_a_list_that_a_person_has_scrolled_is_read_from_its_beginning() -> None:
    async with lab(many(30, range(1))) as at:
        await look(at, "auto")
        for _ in range(2):
            await at.device.swipe(Point(540, 1900), Point(540, 700))
        assert names(await look(at, "auto")) == ["客户00"]


async def test_a_name_that_is_cut_off_is_taken_whole_from_elsewhere() -> None:
    long = "上海浦东新区张江高科技园区老客户王先生的采购部门联系人"
    scenario = Scenario(contacts=[ContactPart(name=long, history=[MessagePart(text="在吗", ago=60, unread=True)])])
    async with lab(scenario) as at:
        assert names(await look(at, "auto")) == [long]  # the tree describes the row
        assert names(await look(at, "off")) == [long]  # its notification names it


def test_a_name_that_is_cut_off_is_never_guessed() -> None:
    cut = ChatRow("上海浦东新区张江高…", Box(0, 200, 1080, 368), 1, "在吗")
    one, two = "上海浦东新区张江高科技园区", "上海浦东新区张江高速公路"
    assert whole_name(cut, [one], (), ()) == one
    assert whole_name(cut, [one, two], (), ()) is None
    assert whole_name(cut, [], (), ()) is None
    found = FoundRow(QQ_APP, [])
    found.add_rows([cut], (), ())
    assert [(one.name, one.why) for one in found.aside.values()] == [(cut.name, Aside.CUT_OFF)]
    assert found.waiting == {}


@pytest.mark.parametrize(
    ("preview", "known", "why"),
    [
        ("老客户A：大家用得怎么样？", (), Aside.GROUP),
        ("[有人@我] 店主在吗", (), Aside.GROUP),
        ("价格：100元吗", ("小王",), None),  # a contact of the list is one person, whatever they write
        ("今天 10:30 能到吗", (), None),
        ("你好，请问几天能发货？", (), None),
        ("明天10:30能发货吗？", (), None),
        ("12:30之前能到吗", (), None),
        ("https://shop.example/100012.html 有货吗", (), None),
        ("订单号：20261121", (), None),
        ("收货地址：北京市朝阳区1号", (), None),
        ("尺码:L 有吗", (), None),
        ("你好：几天能发货", (), None),
    ],
)
def test_a_row_that_tells_who_wrote_is_a_group(preview: str, known: tuple[str, ...], why: Aside | None) -> None:
    row = with_preview(ChatRow("小王", Box(0, 200, 1080, 368), 1), preview)
    assert aside_of(row, "小王", known, QQ_APP) is why


@pytest.mark.parametrize(
    ("called", "why"), [("李卫群", None), ("张群", None), ("老客户群", Aside.GROUP), ("卖家(2)", Aside.GROUP)]
)
def test_a_person_may_be_called_as_a_group_is(called: str, why: Aside | None) -> None:
    row = ChatRow(called, Box(0, 200, 1080, 368), 1, "在吗")
    assert aside_of(row, called, (), QQ_APP) is why
    assert aside_of(row, called, (), QQ_APP, people=[called]) is None  # runs have seen to them before


def test_who_is_a_group_by_one_weak_sign_is_told_of_again_when_the_same_writes_again() -> None:
    def aside(preview: str, called: str = "一家人") -> SetAside:
        found = FoundRow(QQ_APP, [])
        found.add_rows([ChatRow(called, Box(0, 200, 1080, 368), 1, preview)], (), ())
        return found.aside[called]

    first = aside("小王：在吗")
    assert aside("小王：在吗").told_by(first)
    assert not aside("小王：还在吗").told_by(first)
    assert aside("小李：大家好").told_by(first)  # another one writes there: a group indeed
    assert aside("小王：还在吗", "售后服务群").told_by(aside("小王：在吗", "售后服务群"))


async def test_nothing_that_reads_says_so_and_notifications_are_still_heard() -> None:
    async with lab() as at:
        await at.phone.launch(QQ)
        at.phone.receive("老客户A", "在吗")
        blind = ScreenReader(ocr=None, model=None)
        seen = await look_for_unread(at.device, blind, QQ_APP, tree="off")
        assert (seen.outcome, names(seen), seen.memory) == (LookOutcome.UNREADABLE, ["11", "老客户A"], None)


@pytest.mark.rotating(parts=2)
@pytest.mark.parametrize("mode", ["no_texts", "empty", "failing", "stale"])
async def test_a_tree_that_tells_nothing_is_not_asked_again(mode: str) -> None:
    async with lab() as at:
        await at.open_chat()
        at.phone.set_tree(mode)
        reader = ScreenReader(ocr=OCR, model=None)
        at.phone.receive("老客户A", "在吗")
        seen = await look_for_unread(at.device, reader, QQ_APP)
        assert "老客户A" in names(seen)
        if mode == "stale":
            return
        assert seen.memory is not None
        assert seen.memory.no_tree
        at.phone.receive("110", "在吗")
        again = await look_for_unread(at.device, reader, QQ_APP, before=seen.memory)
        assert ("110" in names(again), again.calls) == (True, 2)


async def test_a_login_page_is_no_list() -> None:
    async with lab() as at:
        at.phone.set_fault("not_logged_in")
        seen = await look(at, "auto")
        assert (seen.outcome, names(seen)) == (LookOutcome.NO_LIST, ["11"])  # its notification is there
        assert at.phone.report()["typed"] == []


@pytest.mark.parametrize("page", ["contacts", "search", "shade", "other app", "asleep"])
async def test_the_way_to_the_list_from_anywhere(page: str) -> None:
    async with lab() as at:
        await at.phone.launch(QQ)
        match page:
            case "contacts":
                await _tap(at, "联系人")
            case "search":
                await _tap(at, "搜索")
            case "shade":
                await at.phone.open_shade(True)
            case "other app":
                await at.phone.launch("com.android.settings")
            case _:
                at.phone.set_fault("asleep")
        assert names(await look(at, "auto")) == ["11"]
        assert at.phone.report()["chats_opened"] == []


async def _tap(at: Lab, text: str) -> None:
    (node, *_) = [node for node in await at.device.tree() if node.text == text]
    await at.device.tap(node.box.center)


async def test_without_the_lease_nothing_is_touched() -> None:
    class Lost:
        async def check(self) -> None:
            raise LeaseLost("gone")

    async with lab() as at:
        await at.device.key(Key.HOME)
        before = len(at.phone.report()["actions"])
        with pytest.raises(LeaseLost):
            await look(at, "auto", lease=Lost())
        assert len(at.phone.report()["actions"]) == before
