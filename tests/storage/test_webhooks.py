"""Webhooks in both databases: each event becomes one message, and each message has one sender at a time."""

from __future__ import annotations

from datetime import timedelta

from storage.engine import Database
from storage.events import EventRow, Events
from storage.webhooks import CLAIM, PATIENCE, Attempt, Message, Webhooks
from tests.support.clock import Clock

FAILED, REFUSED, TAKEN = Attempt(500, 0.1), Attempt(400, 0.1), Attempt(200, 0.1)


def message(event: EventRow) -> Message:
    return Message(f"evt_{event.id}", event.kind, "{}")


async def test_two_processes_make_one_message_of_an_event(db: Database, other_db: Database) -> None:
    hook = await Webhooks(db).add("https://a.example/", ["step"], "whsec_")
    event = await Events(db).append("r", "step")
    assert await Webhooks(db).queue(hook, 0, message) == (event, 1)
    assert await Webhooks(other_db).queue(hook, 0, message) == (event, 0)
    other = await Events(db).append("r", "note")
    assert await Webhooks(db).queue(hook, event, message) == (other, 0)
    assert [row.message_id for row in await Webhooks(db).deliveries(hook.id)] == [f"evt_{event}"]
    assert await Webhooks(db).counts() == {(hook.id, "pending"): 1}


async def test_two_processes_send_a_message_once(db: Database, other_db: Database, clock: Clock) -> None:
    hooks, others = Webhooks(db), Webhooks(other_db)
    hook = await hooks.add("https://a.example/", ["step"], "whsec_")
    for _ in range(2):
        await Events(db).append("r", "step")
    await hooks.queue(hook, 0, message)
    taken = await hooks.take(hook.id)
    assert taken is not None
    assert taken.attempts == 1
    assert await others.take(hook.id) is None, "neither this one nor the one behind it"
    clock.move(seconds=CLAIM.total_seconds())
    again = await others.take(hook.id)
    assert again is not None
    assert (again.id, again.attempts) == (taken.id, 2)
    assert await hooks.end(taken, FAILED, again_at=clock.time) is None, "it is another's by now"
    ended = await others.end(again, TAKEN, again_at=clock.time)
    assert ended is not None
    assert (ended.state, ended.next_at) == ("delivered", None)
    following = await hooks.take(hook.id)
    assert following is not None
    await hooks.release(following)
    assert await hooks.next_time(hook.id) == clock.time


async def test_what_waits_for_what(db: Database, clock: Clock) -> None:
    hooks = Webhooks(db)
    hook = await hooks.add("https://a.example/", ["step"], "whsec_")
    for _ in range(3):
        await Events(db).append("r", "step")
    await hooks.queue(hook, 0, message)
    later = clock.time + timedelta(minutes=5)
    first = await hooks.take(hook.id)
    assert first is not None
    await hooks.end(first, REFUSED, again_at=later)
    second = await hooks.take(hook.id)
    assert second is not None
    assert second.id == first.id + 1, "a refused one is passed by"
    await hooks.end(second, FAILED, again_at=later + timedelta(minutes=5))
    assert await hooks.take(hook.id) is None, "one that failed is not"
    assert await hooks.next_time(hook.id) == later
    row = await hooks.get(hook.id)
    assert row is not None
    assert row.failures == 1
    clock.move(seconds=PATIENCE.total_seconds() + 1)
    first = await hooks.take(hook.id)
    assert first is not None
    await hooks.end(first, FAILED, again_at=clock.time)
    assert {row.state for row in await hooks.deliveries(hook.id)} == {"dead"}, "all are as old"
    assert await hooks.next_time(hook.id) is None
    assert (await hooks.remove(hook.id)) is not None
    assert await hooks.all() == []
