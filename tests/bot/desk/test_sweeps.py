"""Sweeps at the desk: started by who may, shown as one, stopped as one, silent where nothing happened."""

from __future__ import annotations

from dataclasses import replace
from io import StringIO
from zoneinfo import ZoneInfo

import pytest

from agent_core.errors import InputRejected
from agent_core.loop.tasks import TaskRules
from agent_core.ports import AnswerEvent, MessageKey, ReplyState
from agent_core.session import WAITS_ELSEWHERE, Session
from bot.channels.chat.digest import digest_card
from bot.channels.chat.history import past_lines
from bot.channels.chat.run_cards import started_by
from bot.channels.chat.schedules import schedule_lines
from bot.channels.chat.sweeps import sweep_card
from bot.channels.chat.texts import texts
from bot.channels.cli.terminal.activity import Activity
from bot.channels.cli.terminal.console import Console
from bot.desk.actors import AccessDenied, Actor, BadRequest, NotFound, Role
from bot.desk.history_views import HistoryAsked
from bot.desk.schedules_views import RegularChange, ScheduleWish, SweepChange, SweepWhom
from bot.desk.views import RunStatus, RunView
from bot.tools.replay.words import no_steps, outcome_of
from scheduler.runs.human import StoredHuman
from scheduler.sweeps.order import QUIET_HOURS, SweepOrder
from storage.answers import Answers
from storage.contacts import Contacts, NewContact
from storage.events import Events
from storage.ledger import StoredLedger
from storage.runs import NewRun, Runs
from storage.sweeps import NewSweep, NewSwept, Sweeps, SweptApp
from tests.support.shop import CHAT, PHONE, QUESTION, Shop

PLACE = SweptApp(PHONE, "qq")


async def looked(shop: Shop, sweep: str, *contacts: str, **details: object) -> list[str]:
    """The sweep's attempt has looked, and has begun runs for these; their ids."""
    await Runs(shop.db).begin_attempt(sweep, 1, serial=PHONE)
    new = NewSweep(PLACE, "read", contacts=5, calls=2, details={"aside": [], "left": [], "quiet": [], **details})
    start = [
        NewSwept(one, "s", 1, NewRun(f"QQ回复联系人{one}", PHONE, options={"contact": one}, parent_id=sweep))
        for one in contacts
    ]
    runs = await Sweeps(shop.db).looked(sweep, 1, new, start)
    assert runs is not None
    if runs:
        await Runs(shop.db).park_attempt(sweep, 1)
    else:
        await Runs(shop.db).end_attempt(sweep, 1, status="succeeded")
    return runs


async def view(shop: Shop, run_id: str) -> RunView:
    found = await shop.desk.runs.get(run_id)
    assert found is not None
    return found


async def started(shop: Shop, who: Actor, words: str = "") -> RunView:
    return await shop.desk.sweeps.start(who, words, chat=CHAT, serial=PHONE)


async def scheduled(shop: Shop) -> str:
    """By the clock."""
    run_id = await Runs(shop.db).create(
        NewRun("巡检", PHONE, options={"kind": "sweep"}, schedule_id=1, planned_at=shop.clock.time)
    )
    shop.clock.move(minutes=5)
    assert run_id is not None
    return run_id


async def test_who_may_start_one_and_what_cannot_be_read(shop: Shop) -> None:
    owner, operator = await shop.person(Role.OWNER), await shop.person(Role.OPERATOR)
    with pytest.raises(BadRequest, match="#vip"):
        await started(shop, operator, "11 #vip")  # no contact has it: it would find nobody for ever
    await Contacts(shop.db).add(NewContact("qq", "a", tags=["vip"]))
    made = await started(shop, operator, "11 #vip")
    assert (made.task, made.status, made.sweep is not None) == ("sweep 11 #vip", RunStatus.QUEUED, True)
    with pytest.raises(AccessDenied):
        await started(shop, await shop.person(Role.VIEWER))
    with pytest.raises(InputRejected):
        await started(shop, owner, "unread 11")
    again = await shop.desk.sweeps.start(owner, "", chat=CHAT, key="k")
    assert (await shop.desk.sweeps.start(owner, "", chat=CHAT, key="k")).id == again.id


async def test_a_run_for_several_or_everybody_is_a_sweep_and_one_for_nobody_is_refused(shop: Shop) -> None:
    operator = await shop.person(Role.OPERATOR)
    for task, names in (("QQ回复11和12", ("11", "12")), ("QQ 智能客服回复", ()), ("巡检 11", ("11",))):
        made = await shop.desk.runs.start(operator, task, chat=CHAT, serial=PHONE)
        row = await Runs(shop.db).get(made.id)
        assert row is not None
        assert (made.task, made.sweep is not None) == (task, True)
        assert SweepOrder.of(row.options) == SweepOrder(names)
    one = await shop.desk.runs.start(operator, "QQ回复11", chat=CHAT, serial=PHONE)
    careful = await shop.desk.runs.start(operator, "QQ回复11和12", chat=CHAT, serial=PHONE, rules=TaskRules("careful"))
    assert (one.sweep, careful.sweep) == (None, None)
    with pytest.raises(InputRejected) as caught:
        await shop.desk.runs.start(operator, "QQ回复刚才那个客户", chat=CHAT, serial=PHONE)
    assert caught.value.key == "reply_whom"


async def test_one_view_tells_every_contact(shop: Shop) -> None:
    who = await shop.person(Role.OWNER)
    sweep = (await started(shop, who)).id
    runs = await looked(
        shop, sweep, "a", "b", "c", "d", "e", "w", "g", "s", left=[["f", "cooling"]], aside=[["g群", "group"]]
    )
    assert (await view(shop, sweep)).status is RunStatus.RUNNING
    for run_id, status, message in (
        (runs[0], "succeeded", ""),
        (runs[1], "failed", "boom"),
        (runs[2], "stopped", QUIET_HOURS),
        (runs[5], "failed", "another run asks about them"),
        (runs[6], "succeeded", "another run goes on with them"),
        (runs[7], "succeeded", "skipped by a person"),
    ):
        await Runs(shop.db).begin_attempt(run_id, 1, serial=PHONE)
        await Runs(shop.db).end_attempt(run_id, 1, status=status, message=message)
    await Answers(shop.db).tell(runs[7], AnswerEvent(9, "qq", "s", "几天发货", ReplyState.SKIPPED))
    await Runs(shop.db).begin_attempt(runs[3], 1, serial=PHONE)
    await StoredHuman(shop.db, hold_seconds=0).ask(Session(run_id=runs[3], task="x"), QUESTION)
    await Runs(shop.db).park_attempt(runs[3], 1)
    for run_id in runs[5:7]:
        await Events(shop.db).append(run_id, "outcome", {"error_kind": WAITS_ELSEWHERE})
    await StoredLedger(shop.db).open(MessageKey(PHONE, "qq", "w", "print"), run_id=runs[3], question="几天能发货")
    mark = (await Sweeps(shop.db).marks(PLACE))["w"]
    assert (mark.run_status, mark.run_error, mark.waits) == ("failed", WAITS_ELSEWHERE, True)
    shown = await view(shop, sweep)
    assert shown.sweep is not None
    (listed,) = [run for run in (await shop.desk.history.runs(who, HistoryAsked())).runs if run.id == sweep]
    assert past_lines(listed, texts("zh"), whole=True)[1].text == (
        "sweep\n看过了，不用回复：a · 没有回成：b · 到了静默时段，没有开始：c · 等人回答：d、w · 排队：e"
        " · 较早的任务会继续回复：g · 已跳过：s"
    )
    assert outcome_of(shown, texts("en"))[1:] == [
        "Answered a moment ago: f",
        "Looks like a group, not answered: g群",
    ]
    assert {one.contact: one.state for one in shown.sweep.contacts} == {
        "a": "nothing",
        "b": "failed",
        "c": "quiet",
        "d": "asked",
        "e": "waiting",
        "w": "asked",
        "g": "elsewhere",
        "s": "skipped",
    }
    card = sweep_card(shown, shown.sweep, texts("zh"), now=shop.clock.time)
    said = "\n".join(f"{line.label}：{line.text}" for line in card.lines)
    for words in (
        "b：没有回成 · boom",
        "c：到了静默时段",
        "刚刚回复过：f",
        "g：较早的任务会继续",
        "看起来是群，没有回复：g群",
    ):
        assert words in said
    assert [button.action for row in card.buttons for button in row] == [f"stop:{sweep}"]
    # Its contacts are not listed beside it, and only people are waited for once the last one has ended.
    assert [run.id for run in (await shop.desk.status(who)).runs] == [sweep]
    await Runs(shop.db).begin_attempt(runs[4], 1, serial=PHONE)
    await Runs(shop.db).end_attempt(runs[4], 1, status="succeeded")
    assert (await view(shop, sweep)).status is RunStatus.WAITING
    await shop.desk.runs.stop(who)  # what they began, not the contact
    assert (await view(shop, sweep)).status is RunStatus.STOPPED
    assert (await view(shop, runs[3])).stopped_by == who.name


async def test_by_the_clock_nothing_is_told_where_nothing_happened(shop: Shop) -> None:
    async def silent(run_id: str) -> bool:
        sweep = (await view(shop, run_id)).sweep
        assert sweep is not None
        return sweep.silent

    nothing = await scheduled(shop)
    assert await silent(nothing)  # before it has looked
    await looked(shop, nothing, left=[["f", "settled"]], aside=[["QQ团队", "service"]])
    assert await silent(nothing)
    some = await scheduled(shop)
    await looked(shop, some, "a")
    assert not await silent(some)
    unnamed = await scheduled(shop)
    await looked(shop, unnamed, aside=[["上海浦东…", "cut_off"]])
    assert not await silent(unnamed)
    given_up = []
    for left in ([["f", "given_up"]], [["f", "given_up"]], [["f", "given_up"], ["g", "given_up"]]):
        given_up.append(await scheduled(shop))
        await looked(shop, given_up[-1], left=left)
    assert [await silent(run_id) for run_id in given_up] == [False, True, False]  # each once
    not_found = await scheduled(shop)
    await Runs(shop.db).begin_attempt(not_found, 1, serial=PHONE)
    await Sweeps(shop.db).looked(not_found, 1, NewSweep(PLACE, "read", contacts=1, calls=2), ())
    await Runs(shop.db).end_attempt(not_found, 1, status="succeeded", message="Not found: 12.")
    assert not await silent(not_found)
    failed = [await scheduled(shop) for _ in range(2)]
    for run_id in failed:
        await Runs(shop.db).begin_attempt(run_id, 1, serial=PHONE)
        await Runs(shop.db).end_attempt(run_id, 1, status="failed", message="The list cannot be read.")
    assert [await silent(run_id) for run_id in failed] == [False, True]  # said once
    by_hand = (await started(shop, await shop.person(Role.OWNER))).id
    await looked(shop, by_hand)
    assert not await silent(by_hand)


async def test_contacts_whom_nobody_knows_stand_in_the_list_the_digest_and_the_terminal(shop: Shop) -> None:
    owner = await shop.person(Role.OWNER)
    made = await shop.desk.schedules.add(owner, "every 5m", "QQ回复11和12", chat=CHAT)
    run = await shop.desk.schedules.run(owner, made.id, chat=CHAT)
    await Runs(shop.db).begin_attempt(run.id, 1, serial=PHONE)
    details = {"quiet": ["11", "12"], "unknown": ["12"]}
    await Sweeps(shop.db).looked(run.id, 1, NewSweep(PLACE, "read", contacts=2, calls=2, details=details), ())
    await Runs(shop.db).end_attempt(run.id, 1, status="succeeded", message="Not found: 12.")
    shown, listed = await view(shop, run.id), await shop.desk.schedules.get(owner, made.id)
    digest = await shop.desk.digest.look(owner, "today")
    assert shown.sweep is not None
    assert not shown.sweep.silent
    for lang, said in (("zh", "没有找到"), ("en", "not found")):
        words = texts(lang)
        assert said in sweep_card(shown, shown.sweep, words, now=shop.clock.time).title
        (last,) = [line.text for line in schedule_lines(listed, words) if line.label == words.get("schedule.last")]
        assert last.lower().endswith(f"{said}{words.get('common.colon')}12")
        assert (words.get("digest.not_found"), "12") in [
            (line.label, line.text) for line in (await digest_card(digest, words)).lines
        ]
    told = StringIO()
    console = Console(file=told, width=200)
    activity = Activity(shop.desk, console, texts("en"), ZoneInfo("Asia/Shanghai"))
    for row in await Events(shop.db).after(0, run_id=run.id):
        await activity._show(row)
    assert told.getvalue().count("Not found: 12.") == 1


async def test_a_schedule_whose_task_is_a_sweep_is_one(shop: Shop) -> None:
    owner = await shop.person(Role.OWNER)
    made = await shop.desk.schedules.add(owner, "every 5m", "巡检 11", chat=CHAT)
    assert made.kind == "sweep"
    changed = await shop.desk.schedules.edit(owner, made.id, task="QQ回复联系人11")
    assert changed.kind == "sweep"  # of one contact
    changed = await shop.desk.schedules.edit(owner, made.id, task="打开QQ")
    assert changed.kind == "run"
    with pytest.raises(BadRequest, match="#viip"):
        await shop.desk.schedules.add(owner, "every 5m", "巡检 #viip", chat=CHAT)
    with pytest.raises(BadRequest, match="#viip"):
        await shop.desk.schedules.edit(owner, made.id, task="巡检 #viip")


async def test_of_a_regular_sweep_what_a_change_does_not_name_stays(shop: Shop) -> None:
    owner, edit = await shop.person(Role.OWNER), shop.desk.sweeps.edit
    for app, name in (("qq", "a"), ("wechat", "b")):
        await Contacts(shop.db).add(NewContact(app, name, tags=["vip"]))
    wish = ScheduleWish(PHONE, quiet="12:00-13:00")
    made = await shop.desk.sweeps.schedule(
        owner, SweepWhom("qq", names=("a",), tags=("vip",)), "工作日 9:00-18:00 每5分钟", wish=wish
    )

    async def changed(change: SweepChange, **more: str) -> tuple[SweepOrder | None, str]:
        view = await edit(owner, made.id, change, wish=ScheduleWish(**more))  # type: ignore[arg-type]  # texts only
        return view.sweep, view.expression

    same = (SweepOrder(("a",), ("vip",)), "工作日 9:00-18:00 每5分钟")
    assert await changed(SweepChange(regular=RegularChange(minutes=5, days=(1, 2, 3, 4, 5)))) == same
    assert await changed(SweepChange(), quiet="") == same
    assert await changed(SweepChange(regular=RegularChange(minutes=10))) == (
        same[0], "every 10m 09:00-18:00 * * 1,2,3,4,5",
    )  # fmt: skip
    assert await changed(SweepChange(expression="每天9点")) == (same[0], "每天9点")
    assert (await changed(SweepChange(tags=())))[0] == SweepOrder(("a",))
    assert (await changed(SweepChange("wechat", tags=("vip",))))[0] == SweepOrder((), ("vip",), "wechat")
    assert (await changed(SweepChange(everybody=True)))[0] == SweepOrder(app="wechat")
    assert (await changed(SweepChange(names=("b",))))[0] == SweepOrder(("b",), app="wechat")
    view = await shop.desk.schedules.get(owner, made.id)
    assert (view.task, view.serial, view.quiet, view.means) == ("sweep WeChat b", PHONE, "", "0 9 * * *")
    for change, key in (
        (SweepChange("qq"), "sweep_nobody"),
        (SweepChange(tags=("none",)), "no_tag"),
        (SweepChange(regular=RegularChange(start="09:00", end="18:00")), "regular_every"),
    ):
        with pytest.raises(BadRequest) as refused:
            await edit(owner, made.id, change)
        assert refused.value.key == key
    assert await shop.desk.schedules.undo(owner, made.id) == replace(
        view, task="sweep WeChat unread", sweep=SweepOrder(app="wechat")
    )


async def test_what_is_no_sweep_is_not_changed_as_one(shop: Shop) -> None:
    owner = await shop.person(Role.OWNER)
    made = await shop.desk.schedules.add(owner, "every 5m", "打开设置", chat=CHAT)
    with pytest.raises(NotFound) as refused:
        await shop.desk.sweeps.edit(owner, made.id, SweepChange(everybody=True))
    assert refused.value.key == "no_sweep"
    with pytest.raises(AccessDenied):
        await shop.desk.sweeps.edit(await shop.person(Role.OPERATOR), made.id, SweepChange(everybody=True))


@pytest.mark.parametrize(
    ("task", "contact"),
    [
        ("QQ回复联系人11", "11"),
        ("reply to Tom on QQ", "Tom"),
        ("QQ回复11和12", ""),
        ("巡检 11", ""),
        ("QQ回复所有未读", ""),
    ],
)
async def test_a_schedule_for_one_contact_knows_whom_it_answers(shop: Shop, task: str, contact: str) -> None:
    new = NewRun(task, PHONE, options={"kind": "sweep"}, schedule_id=1, planned_at=shop.db.now())
    run_id = await Runs(shop.db).create(new)
    assert run_id is not None
    shown = await view(shop, run_id)
    assert shown.sweep is not None
    assert shown.sweep.reply_to == contact


async def test_the_reply_that_a_tick_started_stands_for_it_in_the_history(shop: Shop) -> None:
    who = await shop.person(Role.OWNER)
    tick = await scheduled(shop)
    (reply,) = await looked(shop, tick, "11")
    for state in ("under way", "over"):
        page = await shop.desk.history.runs(who, HistoryAsked())
        assert ([(run.number, run.id) for run in page.runs], page.total) == ([(2, reply)], 1), state
        assert "定时任务 #1" in past_lines(page.runs[0], texts("zh"))[0].text
        if state == "under way":
            await Runs(shop.db).begin_attempt(reply, 1, serial=PHONE)
            await Runs(shop.db).end_attempt(reply, 1, status="succeeded")
    assert started_by(await view(shop, reply), texts("en")) == "schedule #1"
    assert (await shop.desk.history.replay(who, "1")).run.id == tick  # it can be opened as before


async def test_a_run_that_took_no_step_says_why(shop: Shop) -> None:
    who = await shop.person(Role.OWNER)
    run = await shop.desk.runs.start(who, "打开设置", chat=CHAT, serial=PHONE)
    assert no_steps(await view(shop, run.id), texts("en")) == "There are no steps yet."
    await shop.desk.runs.stop(who, run.id)
    assert no_steps(await view(shop, run.id), texts("zh")) == "没有执行任何步骤：还没开始就结束了。"


async def test_a_tick_in_the_quiet_hours_has_not_looked(shop: Shop) -> None:
    tick = await scheduled(shop)
    await Runs(shop.db).begin_attempt(tick, 1, serial=PHONE)
    await Runs(shop.db).end_attempt(tick, 1, status="succeeded", message=QUIET_HOURS)
    shown = await view(shop, tick)
    assert shown.sweep is not None
    assert sweep_card(shown, shown.sweep, texts("en"), now=shop.clock.time).title == "Sweep not begun: quiet hours"
    assert outcome_of(shown, texts("en")) == ["Sweep not begun: quiet hours"]
