from __future__ import annotations

import asyncio
from dataclasses import fields

import pytest
import sqlalchemy as sa
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from agent_core import ports
from storage import ledger as stored
from storage.engine import Database
from storage.ledger import SENT, STATES, Ledger, LedgerConflict
from storage.legs import LegOver
from storage.runs import NewRun, Runs
from storage.tables import replies

KEY = ("phone", "qq", "11", "f1")


async def test_shapes_are_those_of_the_port() -> None:
    assert [f.name for f in fields(stored.LedgerRow)] == [f.name for f in fields(ports.LedgerRow)]
    assert [f.name for f in fields(stored.MessageKey)] == [f.name for f in fields(ports.MessageKey)]
    assert sorted(STATES) == sorted(ports.ReplyState)


async def test_a_message_has_one_row(db: Database, other_db: Database) -> None:
    assert await Ledger(db).find(*KEY) is None
    rows = await asyncio.gather(
        *(Ledger(one).open(*KEY, run_id=f"r{index}", question="在吗？") for index, one in enumerate([db, other_db] * 3))
    )
    assert len({row.id for row in rows}) == 1
    assert await Ledger(db).find(*KEY) == rows[0]
    other = await Ledger(db).open("phone", "qq", "11", "f2", run_id="r", question="在吗？")
    assert other.id != rows[0].id


async def test_the_way_of_a_reply(db: Database) -> None:
    ledger = Ledger(db)
    row = await ledger.open(*KEY, run_id="r1", question="怎么退货？")
    row = await ledger.plan(
        row.id, run_id="r2", text="七天内可退。", provenance="knowledge", record_id="k1", record_source="faq", score=0.9
    )
    assert (row.state, row.text, row.run_id, row.score) == ("planned", "七天内可退。", "r2", 0.9)
    row = await ledger.advance(row.id, "typing", expected=["planned"])
    assert [one.id for one in await ledger.unfinished("phone")] == [row.id]
    await ledger.advance(row.id, "sending", expected=["typing"])
    with pytest.raises(LedgerConflict, match="sending"):
        await ledger.plan(row.id, run_id="r3", text="other", provenance="person")
    await ledger.advance(row.id, "sent", expected=["sending"])
    with pytest.raises(LedgerConflict):
        await ledger.advance(row.id, "sending", expected=["typing", "planned"])
    assert await ledger.unfinished("phone") == []
    found = await ledger.find(*KEY)
    assert found is not None
    assert (found.state, found.run_id) == ("sent", "r2")
    with pytest.raises(LedgerConflict):
        await ledger.advance(999, "sent", expected=["sending"])
    with pytest.raises(ValueError, match="state"):
        await ledger.advance(row.id, "gone", expected=["sent"])


async def test_of_two_that_send_only_one_may(db: Database, other_db: Database) -> None:
    row = await Ledger(db).open(*KEY, run_id="r", question="q")
    await Ledger(db).advance(row.id, "typing", expected=["planned"])
    results = await asyncio.gather(
        *(Ledger(one).advance(row.id, "sending", expected=["typing"]) for one in [db, other_db] * 3),
        return_exceptions=True,
    )
    assert sum(isinstance(result, LedgerConflict) for result in results) == 5


@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    moves=st.lists(
        st.tuples(st.sampled_from(STATES), st.lists(st.sampled_from(STATES), max_size=3), st.booleans()), max_size=12
    )
)
async def test_nothing_that_was_sent_is_planned_again(db: Database, moves: list[tuple[str, list[str], bool]]) -> None:
    """Whatever is tried, a row that says sent is only moved by who expects it to be sent, and never planned."""
    ledger = Ledger(db)
    row = await ledger.open("phone", "qq", "11", repr(moves), run_id="r", question="q")
    state = row.state
    for target, expected, plan in moves:
        try:
            if plan:
                await ledger.plan(row.id, run_id="r", text="t", provenance="person")
                assert state not in (SENT, "sending", "unknown")
                state = "planned"
            else:
                await ledger.advance(row.id, target, expected=expected)
                assert state in expected
                state = target
        except LedgerConflict:
            pass
        found = await ledger.find("phone", "qq", "11", repr(moves))
        assert found is not None
        assert found.state == state


async def test_the_parts_of_a_long_answer(db: Database) -> None:
    ledger = Ledger(db)
    row = await ledger.open(*KEY, run_id="r", question="q", cluster=["q", "快"], app_version="9.1")
    assert (row.cluster, row.parts, row.part, row.app_version) == (("q", "快"), (), 0, "9.1")
    row = await ledger.plan(row.id, run_id="r", text="ab", provenance="knowledge", parts=["a", "b"])
    with pytest.raises(LedgerConflict):
        await ledger.next_part(row.id, part=0)  # nothing is on its way
    await ledger.advance(row.id, "sending", expected=["planned"])
    row = await ledger.next_part(row.id, part=0)
    assert (row.state, row.part, row.parts) == ("planned", 1, ("a", "b"))
    await ledger.advance(row.id, "sending", expected=["planned"])
    with pytest.raises(LedgerConflict):
        await ledger.next_part(row.id, part=0)  # by whoever saw the first one late
    with pytest.raises(LedgerConflict):
        await ledger.plan(row.id, run_id="r", text="other", provenance="person")  # a part of it has left


async def test_a_version_is_known_once_a_reply_arrived_in_it(db: Database) -> None:
    ledger = Ledger(db)
    row = await ledger.open(*KEY, run_id="r", question="q", app_version="9.1")
    serial = KEY[0]
    assert not await ledger.version_known(serial, "qq", "9.1")
    await ledger.advance(row.id, "sent", expected=["planned"])
    assert await ledger.version_known(serial, "qq", "9.1")
    assert not await ledger.version_known(serial, "qq", "9.2")
    assert not await ledger.version_known(serial, "wechat", "9.1")
    assert not await ledger.version_known("another phone", "qq", "9.1"), "nobody has looked at that one"


async def test_a_row_that_another_run_asks_a_person_about(db: Database) -> None:
    runs = Runs(db)
    asking = await runs.create(NewRun("QQ回复联系人11", "phone"))
    assert asking is not None
    row = await Ledger(db).open(*KEY, run_id=asking, question="q")
    assert await Ledger(db).claim(row.id, "a run that is over")
    assert await Ledger(db).claim(row.id, asking)  # it has not opened the row, and has it all the same
    await runs.begin_leg(asking, 1, serial="phone")
    await runs.wait_leg(asking, 1)
    assert not await Ledger(db).claim(row.id, "another")
    assert await Ledger(db).claim(row.id, asking)


async def test_a_row_that_counts_more_parts_than_there_are_has_been_sent(db: Database) -> None:
    """As earlier releases may have left it: two legs counted the last part."""
    ledger = Ledger(db)
    row = await ledger.open(*KEY, run_id="r", question="q")
    await ledger.plan(row.id, run_id="r", text="ab", provenance="knowledge", parts=["a", "b"])
    async with db.write() as connection:
        await connection.execute(sa.update(replies).values(part=2))
    found = await ledger.find(*KEY)
    assert found is not None
    assert (found.state, found.part) == ("sent", 1)


async def test_a_leg_whose_turn_is_over_moves_no_row(db: Database) -> None:
    runs = Runs(db)
    run_id = await runs.create(NewRun("QQ回复联系人11", "phone"))
    assert run_id is not None
    await runs.begin_leg(run_id, 1, serial="phone")
    first, second = Ledger(db, run_id=run_id, leg=1), Ledger(db, run_id=run_id, leg=2)
    row = await first.open(*KEY, run_id=run_id, question="q")
    await first.plan(row.id, run_id=run_id, text="ab", provenance="knowledge", parts=["a", "b"])
    await first.advance(row.id, "sending", expected=["planned"])
    await runs.interrupt_leg(run_id, 1)
    await runs.begin_leg(run_id, 2, serial="phone")
    with pytest.raises(LegOver):
        await first.next_part(row.id, part=0)
    with pytest.raises(LegOver):
        await first.advance(row.id, "unknown", expected=["sending"])
    with pytest.raises(LegOver):
        await first.open("phone", "qq", "11", "another", run_id=run_id, question="q")
    with pytest.raises(LegOver):
        await first.claim(row.id, run_id)
    assert (await second.next_part(row.id, part=0)).part == 1
    with pytest.raises(LegOver):
        await first.plan(row.id, run_id=run_id, text="c", provenance="knowledge")
