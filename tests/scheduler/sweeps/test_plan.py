"""Who of those that wait is answered, and in which order."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from agent_core.errors import InputRejected
from agent_core.policies import reply_task
from agent_core.session import WAITS_ELSEWHERE
from agent_core.sweep import IN_CHAT, LookOutcome, UnreadLook, Waiting
from agent_core.texts import Lang
from scheduler.sweeps.order import MOST_NAMES, SweepOrder, kind_of, read_order, read_task, reply_to, task_of
from scheduler.sweeps.plan import BLIND, Left, Rules, plan
from storage.runs import FAILED, QUEUED, STOPPED, SUCCEEDED, WAITING
from storage.sweeps import MarkRow

NOW = datetime(2026, 3, 1, 9, tzinfo=UTC)
RULES = Rules(NOW, timedelta(seconds=60))
ASKED = Rules(NOW, timedelta(seconds=60), asked=True)


def seen(*names: str, state: str = "s1") -> UnreadLook:
    return UnreadLook(LookOutcome.READ, tuple(Waiting(name, state) for name in names))


def ago(seconds: float) -> datetime:
    return NOW - timedelta(seconds=seconds)


def mark(**known: object) -> dict[str, MarkRow]:
    return {"11": MarkRow("11", **{"state": "s1", "run_id": "r1", "run_started": True, **known})}  # type: ignore[arg-type]


def test_who_has_waited_longest_is_the_first() -> None:
    marks = {
        "a": MarkRow("a", waiting_since=ago(10)),
        "b": MarkRow("b", waiting_since=ago(500)),
        "c": MarkRow("c", waiting_since=ago(900), answered_at=ago(100)),  # answered since; writes again
    }
    assert [one.contact for one in plan(seen("new", "a", "c", "b"), None, marks, RULES).start] == [
        "b",
        "a",
        "new",
        "c",
    ]


@pytest.mark.parametrize(
    ("known", "why"),
    [
        ({"run_status": QUEUED}, Left.AT_WORK),
        ({"run_status": WAITING, "run_due": True}, Left.AT_WORK),
        ({"run_status": WAITING}, Left.ASKED),
        ({"run_status": WAITING, "state": "s0"}, None),  # they have written again
        ({"run_status": SUCCEEDED, "run_ended_at": ago(5)}, Left.COOLING),
        ({"run_status": SUCCEEDED, "run_ended_at": ago(5), "state": "s0"}, None),
        ({"run_status": SUCCEEDED, "run_ended_at": ago(500)}, Left.SETTLED),
        ({"run_status": SUCCEEDED, "run_ended_at": ago(500), "answered_at": ago(30)}, Left.COOLING),
        ({"run_status": SUCCEEDED, "run_ended_at": ago(500), "state": ""}, None),  # was read in between
        ({"run_status": STOPPED, "run_ended_at": ago(500)}, Left.STOPPED),
        ({"run_status": STOPPED, "run_ended_at": ago(500), "answered_at": ago(510)}, Left.SETTLED),
        ({"run_status": STOPPED, "run_ended_at": ago(5), "run_started": False}, None),  # quiet hours, or the line
        ({"run_status": FAILED, "run_ended_at": ago(500), "tries": 1}, None),
        ({"run_status": FAILED, "run_ended_at": ago(5), "tries": 1}, Left.COOLING),
        ({"run_status": FAILED, "run_ended_at": ago(500), "tries": 3}, Left.GIVEN_UP),
        ({"run_status": FAILED, "run_ended_at": ago(3601), "tries": 3}, None),
        ({"run_status": FAILED, "run_ended_at": ago(3601), "tries": 4}, Left.GIVEN_UP),
        ({"run_status": FAILED, "run_ended_at": ago(99999), "tries": 7}, Left.GIVEN_UP),
        ({"run_status": FAILED, "run_ended_at": ago(500), "tries": 3, "run_error": "model.unreachable"}, Left.LATER),
        ({"run_status": FAILED, "run_ended_at": ago(901), "tries": 9, "run_error": "model.unreachable"}, None),
        ({"run_status": FAILED, "run_ended_at": ago(901), "tries": 3, "run_error": "model.refused"}, Left.GIVEN_UP),
        # Cut short: something was left.
        ({"run_status": SUCCEEDED, "run_ended_at": ago(500), "tries": 1, "run_error": "model.limit"}, None),
        ({"run_status": WAITING, "run_held": True, "state": "s0"}, Left.ASKED),  # parked by a person
        # Another run has their question: looked into again as soon as nobody is asked any more.
        ({"run_status": FAILED, "run_error": WAITS_ELSEWHERE, "run_ended_at": ago(5000), "waits": True}, Left.ASKED),
        ({"run_status": FAILED, "run_error": WAITS_ELSEWHERE, "run_ended_at": ago(5000), "waits": False}, None),
        ({"run_status": SUCCEEDED, "run_error": WAITS_ELSEWHERE, "run_ended_at": ago(5000), "waits": False}, None),
    ],
)
def test_why_somebody_is_left(known: dict[str, object], why: Left | None) -> None:
    made = plan(seen("11"), None, mark(**known), RULES)
    assert [left for _, left in made.left] == ([] if why is None else [why])
    assert len(made.start) == (why is None)


def test_a_person_who_asks_gets_another_look_but_never_a_second_run() -> None:
    for status in (SUCCEEDED, STOPPED, FAILED):
        assert len(plan(seen("11"), None, mark(run_status=status, run_ended_at=NOW, tries=9), ASKED).start) == 1
    for status in (QUEUED, WAITING):
        assert plan(seen("11"), None, mark(run_status=status), ASKED).start == ()


def test_what_stands_in_the_open_chat_is_what_the_person_was_asked_about() -> None:
    asked = mark(run_status=WAITING)
    assert plan(seen("11", state=f"{IN_CHAT}x"), None, asked, RULES).start == ()
    asked = mark(run_status=WAITING, state=f"{IN_CHAT}w")
    assert len(plan(seen("11", state=f"{IN_CHAT}x"), None, asked, RULES).start) == 1
    done = mark(run_status=SUCCEEDED, run_ended_at=ago(5))
    assert len(plan(seen("11", state=f"{IN_CHAT}x"), None, done, RULES).start) == 1  # it may have come since


def test_whose_run_failed_is_owed_an_answer_though_nothing_is_unread() -> None:
    failed = {"run_status": FAILED, "run_ended_at": ago(500), "tries": 1, "state": ""}
    (one,) = plan(seen(), None, mark(**failed), RULES).start
    assert (one.contact, one.tries) == ("11", 2)
    assert plan(seen(), ["12"], mark(**failed), RULES).start == ()
    assert plan(seen(), None, mark(**{**failed, "tries": 3}), RULES).start == ()
    assert plan(seen(), None, mark(**failed, answered_at=ago(100)), RULES).start == ()  # by somebody else


def test_who_was_given_up_is_told_of_though_nothing_is_unread() -> None:
    failed = mark(run_status=FAILED, run_ended_at=ago(500), tries=3)
    assert plan(seen(), None, failed, RULES).left == (("11", Left.GIVEN_UP),)


def test_what_was_away_does_not_use_up_the_tries() -> None:
    (one,) = plan(
        seen("11"), None, mark(run_status=FAILED, run_ended_at=ago(901), tries=3, run_error="device.offline"), RULES
    ).start
    assert one.tries == 3


@pytest.mark.parametrize(
    ("known", "owed"),
    [
        ({"run_id": ""}, True),  # the sweep that left the chat was stopped, or failed
        ({"run_status": STOPPED, "run_started": False}, True),  # its run was not begun: quiet hours
        ({"run_status": STOPPED, "run_started": True}, False),
        ({"run_status": STOPPED, "run_started": False, "state": "s1"}, False),  # a person has read it
        ({"run_id": "", "waiting_since": ago(9), "answered_at": ago(5)}, False),
    ],
)
def test_who_wrote_into_the_open_chat_is_owed_an_answer(known: dict[str, object], owed: bool) -> None:
    made = plan(seen(), None, mark(**{"state": f"{IN_CHAT}x", "run_ended_at": ago(500), **known}), RULES)
    assert len(made.start) == owed


def test_the_same_words_again_within_the_minute_are_a_new_message() -> None:
    """A run looked into the chat, so the mark was gone; a list with a lasting mark is not looked into for ever."""
    unread = UnreadLook(LookOutcome.READ, (Waiting("11", "s1", 1, 1),))
    done = {"run_status": SUCCEEDED, "run_ended_at": ago(500)}
    (one,) = plan(unread, None, mark(**done, tries=1), RULES).start
    assert one.tries == 2
    assert plan(unread, None, mark(**done, tries=3), RULES).left == (("11", Left.SETTLED),)


def test_whose_run_was_stopped_is_told_of_though_nothing_is_unread() -> None:
    stopped = ["11", "12", "13"]
    everybody = plan(seen("12"), None, {}, RULES).without_stopped(stopped, None)
    assert [one.contact for one in everybody.start] == ["12"], "they have written again"
    assert everybody.left == (("11", Left.STOPPED), ("13", Left.STOPPED))
    named = plan(seen(), ["11", "14"], {}, RULES).without_stopped(stopped, ["11", "14"])
    assert (named.left, named.quiet) == ((("11", Left.STOPPED),), ("14",))


def test_only_who_is_meant() -> None:
    made = plan(seen("11", "12"), ["12", "13"], {}, RULES)
    assert ([one.contact for one in made.start], made.quiet) == (["12"], ("13",))


def test_where_nothing_can_be_read_who_was_named_is_looked_into() -> None:
    blind = UnreadLook(LookOutcome.UNREADABLE, (Waiting("12", "s1"),))
    assert [one.contact for one in plan(blind, ["11", "12"], {}, RULES).start] == ["12", "11"]
    assert [one.contact for one in plan(blind, None, {}, RULES).start] == ["12"]
    again = mark(run_status=SUCCEEDED, run_ended_at=ago(500), state=BLIND)
    assert [one.contact for one in plan(blind, ["11"], again, RULES).start] == ["11"]


@pytest.mark.parametrize(
    ("text", "order"),
    [
        ("", SweepOrder()),
        ("未读", SweepOrder()),
        ("unread", SweepOrder()),
        ("11、小王，#老客户", SweepOrder(("11", "小王"), ("老客户",))),
        ('"Old customer A" 11', SweepOrder(("Old customer A", "11"))),
        ("微信 11", SweepOrder(("11",), (), "wechat")),
        ("QQ", SweepOrder()),
        ("“微信” 11", SweepOrder(("微信", "11"))),
    ],
)
def test_an_order_as_people_write_it(text: str, order: SweepOrder) -> None:
    assert read_order(text) == order
    assert SweepOrder.of(order.data()) == order


def test_a_task_that_is_a_sweep() -> None:
    assert read_task("巡检 11") == read_task("扫一遍：11") == read_task("/sweep 11") == SweepOrder(("11",))
    assert read_task("巡检") == SweepOrder()
    assert [kind_of(task) for task in ("巡检", "QQ回复联系人11", "巡检员今天来吗")] == ["sweep", "sweep", "run"]
    with pytest.raises(InputRejected):
        read_order("未读 11")
    with pytest.raises(InputRejected):
        read_order(" ".join(f"n{number}" for number in range(51)))


@pytest.mark.parametrize("name", ["11", "小王", "Old customer A", "我的小店", "王先生的店", "张三然后", "c:d"])
def test_the_task_names_exactly_the_contact(name: str) -> None:
    order = SweepOrder()
    task = reply_to(name, order.profile, "zh")
    assert task is not None
    read = reply_task(task)
    assert read is not None
    assert read.contacts == (name,)
    assert read_order(f'"{name}"').names == (name,)
    assert reply_to("a“b”c", order.profile, "en") is None


@pytest.mark.parametrize("lang", ["zh", "en"])
@pytest.mark.parametrize(
    "order",
    [
        SweepOrder(),
        SweepOrder(app="wechat"),
        SweepOrder(("11", "小王"), ("vip", "老客户")),
        SweepOrder(("Anna Li", "未读", "#x", "QQ", "all"), app="wechat"),
        SweepOrder(("微信",)),
        SweepOrder(("O'Neil",)),
        SweepOrder(tuple(f"n{number}" for number in range(MOST_NAMES))),
    ],
)
def test_a_sweep_is_written_as_it_is_read(order: SweepOrder, lang: Lang) -> None:
    assert read_task(task_of(order, lang)) == order


@pytest.mark.parametrize(
    ("order", "named"),
    [
        (SweepOrder(("11", 'say "x"')), 'say "x"'),
        (SweepOrder(("11",), ("two words",)), "two words"),
        (SweepOrder(tuple(f"n{number}" for number in range(MOST_NAMES + 1))), str(MOST_NAMES)),
    ],
)
def test_a_sweep_that_cannot_be_written_is_refused(order: SweepOrder, named: str) -> None:
    with pytest.raises(InputRejected, match=named):
        task_of(order, "en")
