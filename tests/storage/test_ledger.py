from __future__ import annotations

import asyncio
from typing import cast

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from agent_core.errors import LeaseLost
from agent_core.ports import LedgerConflict, MessageKey, Provenance, ReplyState
from storage.engine import Database
from storage.ledger import StoredLedger
from storage.runs import NewRun, Runs
from tests.support.clock import Clock

KEY = MessageKey("phone", "qq", "11", "f1")
STATES = list(ReplyState)


async def test_a_message_has_one_row(db: Database, other_db: Database) -> None:
    assert await StoredLedger(db).find(KEY) is None
    rows = await asyncio.gather(
        *(
            StoredLedger(one).open(KEY, run_id=f"r{index}", question="在吗？")
            for index, one in enumerate([db, other_db] * 3)
        )
    )
    assert len({row.id for row in rows}) == 1
    assert await StoredLedger(db).find(KEY) == rows[0]
    other = await StoredLedger(db).open(MessageKey("phone", "qq", "11", "f2"), run_id="r", question="在吗？")
    assert other.id != rows[0].id


async def test_the_way_of_a_reply(db: Database) -> None:
    ledger = StoredLedger(db)
    row = await ledger.open(KEY, run_id="r1", question="怎么退货？")
    row = await ledger.plan(
        row.id,
        run_id="r2",
        text="七天内可退。",
        provenance=Provenance.KNOWLEDGE,
        record_id="k1",
        record_source="faq",
        score=0.9,
    )
    assert (row.state, row.text, row.run_id, row.score) == ("planned", "七天内可退。", "r2", 0.9)
    row = await ledger.advance(row.id, ReplyState.TYPING, expected=[ReplyState.PLANNED])
    assert [one.id for one in await ledger.unfinished("phone")] == [row.id]
    await ledger.advance(row.id, ReplyState.SENDING, expected=[ReplyState.TYPING])
    with pytest.raises(LedgerConflict, match="sending"):
        await ledger.plan(row.id, run_id="r3", text="other", provenance=Provenance.PERSON)
    await ledger.advance(row.id, ReplyState.SENT, expected=[ReplyState.SENDING])
    with pytest.raises(LedgerConflict):
        await ledger.advance(row.id, ReplyState.SENDING, expected=[ReplyState.TYPING, ReplyState.PLANNED])
    assert await ledger.unfinished("phone") == []
    found = await ledger.find(KEY)
    assert found is not None
    assert (found.state, found.run_id) == ("sent", "r2")
    with pytest.raises(LedgerConflict):
        await ledger.advance(999, ReplyState.SENT, expected=[ReplyState.SENDING])
    with pytest.raises(ValueError, match="gone"):
        await ledger.advance(row.id, cast("ReplyState", "gone"), expected=[ReplyState.SENT])


async def test_of_two_that_send_only_one_may(db: Database, other_db: Database) -> None:
    row = await StoredLedger(db).open(KEY, run_id="r", question="q")
    await StoredLedger(db).advance(row.id, ReplyState.TYPING, expected=[ReplyState.PLANNED])
    results = await asyncio.gather(
        *(
            StoredLedger(one).advance(row.id, ReplyState.SENDING, expected=[ReplyState.TYPING])
            for one in [db, other_db] * 3
        ),
        return_exceptions=True,
    )
    assert sum(isinstance(result, LedgerConflict) for result in results) == 5


@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    moves=st.lists(
        st.tuples(st.sampled_from(STATES), st.lists(st.sampled_from(STATES), max_size=3), st.booleans()), max_size=12
    )
)
async def test_nothing_that_was_sent_is_planned_again(
    db: Database, moves: list[tuple[ReplyState, list[ReplyState], bool]]
) -> None:
    """Whatever is tried, a row that says sent is only moved by who expects it to be sent, and never planned."""
    ledger = StoredLedger(db)
    row = await ledger.open(MessageKey("phone", "qq", "11", repr(moves)), run_id="r", question="q")
    state = row.state
    for target, expected, plan in moves:
        try:
            if plan:
                await ledger.plan(row.id, run_id="r", text="t", provenance=Provenance.PERSON)
                assert state not in (ReplyState.SENT, ReplyState.SENDING, ReplyState.UNKNOWN)
                state = ReplyState.PLANNED
            else:
                await ledger.advance(row.id, target, expected=expected)
                assert state in expected
                state = target
        except LedgerConflict:
            pass
        found = await ledger.find(MessageKey("phone", "qq", "11", repr(moves)))
        assert found is not None
        assert found.state == state


async def test_the_parts_of_a_long_answer(db: Database) -> None:
    ledger = StoredLedger(db)
    row = await ledger.open(KEY, run_id="r", question="q", cluster=["q", "快"], app_version="9.1")
    assert (row.cluster, row.parts, row.part, row.app_version) == (("q", "快"), (), 0, "9.1")
    row = await ledger.plan(row.id, run_id="r", text="ab", provenance=Provenance.KNOWLEDGE, parts=["a", "b"])
    with pytest.raises(LedgerConflict):
        await ledger.next_part(row.id, part=0)  # nothing is on its way
    await ledger.advance(row.id, ReplyState.SENDING, expected=[ReplyState.PLANNED])
    row = await ledger.next_part(row.id, part=0)
    assert (row.state, row.part, row.parts) == ("planned", 1, ("a", "b"))
    await ledger.advance(row.id, ReplyState.SENDING, expected=[ReplyState.PLANNED])
    with pytest.raises(LedgerConflict):
        await ledger.next_part(row.id, part=0)  # by whoever saw the first one late
    with pytest.raises(LedgerConflict):
        await ledger.plan(row.id, run_id="r", text="other", provenance=Provenance.PERSON)  # a part of it has left


async def test_a_version_is_known_once_a_reply_arrived_in_it(db: Database) -> None:
    ledger = StoredLedger(db)
    row = await ledger.open(KEY, run_id="r", question="q", app_version="9.1")
    serial = KEY.serial
    assert not await ledger.version_known(serial, "qq", "9.1")
    await ledger.advance(row.id, ReplyState.SENT, expected=[ReplyState.PLANNED])
    assert await ledger.version_known(serial, "qq", "9.1")
    assert (serial, "qq", "9.1") in await ledger.known_versions()
    assert (serial, "qq", "9.2") not in await ledger.known_versions()
    assert not await ledger.version_known(serial, "qq", "9.2")
    assert not await ledger.version_known(serial, "wechat", "9.1")
    assert not await ledger.version_known("another phone", "qq", "9.1"), "nobody has looked at that one"


async def test_a_row_that_another_run_asks_a_person_about(db: Database) -> None:
    runs = Runs(db)
    asking = await runs.create(NewRun("QQ回复联系人11", "phone"))
    assert asking is not None
    row = await StoredLedger(db).open(KEY, run_id=asking, question="q")
    assert await StoredLedger(db).claim(row.id, "a run that is over")
    assert await StoredLedger(db).claim(row.id, asking)  # it has not opened the row, and has it all the same
    await runs.begin_attempt(asking, 1, serial="phone")
    await runs.park_attempt(asking, 1)
    assert not await StoredLedger(db).claim(row.id, "another")
    assert await StoredLedger(db).claim(row.id, asking)


async def test_an_attempt_whose_turn_is_over_moves_no_row(db: Database) -> None:
    runs = Runs(db)
    run_id = await runs.create(NewRun("QQ回复联系人11", "phone"))
    assert run_id is not None
    await runs.begin_attempt(run_id, 1, serial="phone")
    first, second = StoredLedger(db, run_id=run_id, attempt=1), StoredLedger(db, run_id=run_id, attempt=2)
    row = await first.open(KEY, run_id=run_id, question="q")
    await first.plan(row.id, run_id=run_id, text="ab", provenance=Provenance.KNOWLEDGE, parts=["a", "b"])
    await first.advance(row.id, ReplyState.SENDING, expected=[ReplyState.PLANNED])
    await runs.interrupt_attempt(run_id, 1)
    await runs.begin_attempt(run_id, 2, serial="phone")
    with pytest.raises(LeaseLost):
        await first.next_part(row.id, part=0)
    with pytest.raises(LeaseLost):
        await first.advance(row.id, ReplyState.UNKNOWN, expected=[ReplyState.SENDING])
    with pytest.raises(LeaseLost):
        await first.open(MessageKey("phone", "qq", "11", "another"), run_id=run_id, question="q")
    with pytest.raises(LeaseLost):
        await first.claim(row.id, run_id)
    assert (await second.next_part(row.id, part=0)).part == 1
    with pytest.raises(LeaseLost):
        await first.plan(row.id, run_id=run_id, text="c", provenance=Provenance.KNOWLEDGE)


@pytest.mark.parametrize("end", [ReplyState.SENT, ReplyState.SKIPPED, None])
async def test_a_stop_leaves_nobody_whom_a_later_run_has_served(
    db: Database, clock: Clock, end: ReplyState | None
) -> None:
    ledger, before = StoredLedger(db), clock.time
    stopped = await Runs(db).create(NewRun("QQ回复联系人11", "phone"))
    later = await Runs(db).create(NewRun("QQ回复联系人11", "phone"))
    assert stopped is not None
    assert later is not None
    await ledger.open(KEY, run_id=stopped, question="在吗？")
    clock.move(minutes=1)
    await Runs(db).request_stop(stopped, by="x")
    assert await ledger.left_open([stopped, later]) == {stopped: "11"}
    clock.move(minutes=1)
    row = await ledger.open(MessageKey("phone", "qq", "11", "f2"), run_id=later, question="在吗？我想退货")
    if end is ReplyState.SENT:
        for was, now in ((ReplyState.PLANNED, ReplyState.SENDING), (ReplyState.SENDING, end)):
            await ledger.advance(row.id, now, expected=[was])
    elif end is ReplyState.SKIPPED:
        await ledger.advance(row.id, end, expected=[ReplyState.PLANNED])
    assert await ledger.left_by_stop("phone", "qq", since=before) == ([] if end else ["11"])
    assert await ledger.left_by_stop("phone", "qq", since=clock.time) == []
