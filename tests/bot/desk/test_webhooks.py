"""Webhooks: what is sent, in which order, and what becomes of failures."""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator
from datetime import datetime, timedelta
from pathlib import Path

import pytest

from agent_core.errors import InputRejected
from bot.channels.chat.digest import alert_card
from bot.channels.chat.texts import texts
from bot.desk import webhooks as desk_webhooks
from bot.desk.actors import AccessDenied, Actor, BadRequest, Conflict, NotFound, Role
from bot.desk.webhook_client import TargetRules, WebhookClient
from bot.desk.webhook_messages import MOST_DETAILS, message_of
from bot.desk.webhooks_views import KINDS
from scheduler.jobs.housekeeping import Housekeeping
from storage.events import Events
from storage.webhooks import CLAIM, WAITED, Webhooks
from tests.support.shop import Shop
from tests.support.webhook_receiver import Receiver, Reply, receiver

ALLOWED = TargetRules(("127.0.0.0/8",))


class Hooked:
    """A shop with one webhook, whose turns the test makes itself."""

    def __init__(self, shop: Shop, owner: Actor, to: Receiver) -> None:
        self.shop, self.owner, self.to = shop, owner, to
        self.desk = shop.desk.webhooks
        self.id = 0
        self.seen = 0

    async def happens(self, kind: str = "question", **data: object) -> int:
        return await Events(self.shop.db).append("r1", kind, data)

    async def turns(self, count: int = 100) -> datetime | None:
        """Make turns until nothing is due. Return when more is."""
        for _ in range(count):
            self.seen, again = await self.desk.turn(self.id, self.seen)
            if again is None or again > self.shop.db.now():
                return again
        return again

    async def states(self) -> list[tuple[str, int]]:
        rows = await Webhooks(self.shop.db).deliveries(self.id)
        return [(row.state, row.attempts) for row in reversed(rows)]


@pytest.fixture
async def hooked(shop: Shop) -> AsyncIterator[Hooked]:
    shop.desk.context.webhook_client = WebhookClient(ALLOWED, seconds=5)
    async with receiver(shop.db.now) as to:
        owner = await shop.person(Role.OWNER)
        made = Hooked(shop, owner, to)
        await made.happens(text="before the webhook")
        to.secret, view = await shop.desk.webhooks.add(owner, to.url, ["question", "outcome"])
        made.id = view.id
        yield made
        assert to.wrong == []


async def test_events_of_its_kinds_are_sent_in_order_from_when_it_was_added(hooked: Hooked) -> None:
    first = await hooked.happens(text="能定制刻字吗")
    await hooked.happens("step")
    second = await hooked.happens("outcome", status="succeeded")
    assert await hooked.turns() is None
    assert [one.id for one in hooked.to.taken] == [f"evt_{first}", f"evt_{second}"]
    payload = hooked.to.taken[0].payload
    assert payload["type"] == "question"
    assert datetime.fromisoformat(payload["timestamp"]) == hooked.shop.db.now()
    assert payload["data"] == {
        "id": first, "run": "r1", "details": {"text": "能定制刻字吗"}, "picture": False, "cut": False,
    }  # fmt: skip
    hooked.seen = 0  # as after a restart
    assert await hooked.turns() is None
    assert len(hooked.to.tried) == 2


async def test_a_burst_of_events_is_sent_in_order(hooked: Hooked) -> None:
    sent = [await hooked.happens(number=number) for number in range(230)]
    await hooked.turns(1000)
    assert [one.id for one in hooked.to.taken] == [f"evt_{number}" for number in sent]


async def test_a_failure_holds_up_the_later_ones_with_growing_pauses(
    hooked: Hooked, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(desk_webhooks, "JITTER", 0.0)
    hooked.to.replies = [Reply(500, body=b"x" * 5000), Reply(302, {"Location": "http://127.0.0.1:1/"}), Reply(404)]
    first, second = [await hooked.happens(number=number) for number in range(2)]
    for pause in (5, 30, 120):
        again = await hooked.turns()
        assert again is not None
        assert (again - hooked.shop.db.now()).total_seconds() == pause
        assert {one.id for one in hooked.to.tried} == {f"evt_{first}"}
        (view,) = await hooked.desk.all(hooked.owner)
        assert (view.state, view.waiting) == ("failing", 2)
        hooked.shop.clock.time = again
    assert await hooked.turns() is None
    assert [one.id for one in hooked.to.taken] == [f"evt_{first}", f"evt_{second}"]
    newest, oldest = await hooked.desk.deliveries(hooked.owner, hooked.id)
    assert (oldest.state, oldest.attempts, oldest.status, oldest.next_at) == ("delivered", 4, 204, None)
    assert newest.attempts == 1
    assert (await hooked.desk.all(hooked.owner))[0].state == "active"


async def test_the_beginning_of_an_answer_is_kept(hooked: Hooked) -> None:
    hooked.to.replies = [Reply(500, body="坏".encode() * 5000)]
    await hooked.happens()
    await hooked.turns()
    (view,) = await hooked.desk.deliveries(hooked.owner, hooked.id)
    assert view.answer.startswith("坏坏")
    assert len(view.answer.encode()) <= 1100
    assert view.seconds is not None


async def test_a_message_that_is_refused_holds_up_no_other(hooked: Hooked) -> None:
    hooked.to.replies = [Reply(422)]
    first, second = [await hooked.happens(number=number) for number in range(2)]
    again = await hooked.turns()
    assert [one.id for one in hooked.to.taken] == [f"evt_{second}"]
    assert again is not None
    hooked.shop.clock.time = again
    await hooked.turns()
    assert [one.id for one in hooked.to.taken] == [f"evt_{second}", f"evt_{first}"]


async def test_retry_after_is_honoured(hooked: Hooked) -> None:
    hooked.to.replies = [Reply(429, {"Retry-After": "900"}), Reply(503, {"Retry-After": "soon"})]
    await hooked.happens()
    again = await hooked.turns()
    assert again is not None
    assert again - hooked.shop.db.now() == timedelta(seconds=900)
    hooked.shop.clock.time = again
    again = await hooked.turns()
    assert again is not None
    assert again - hooked.shop.db.now() <= timedelta(seconds=36), "what cannot be read counts for nothing"


async def test_after_a_day_it_is_given_up_told_and_can_be_sent_again(hooked: Hooked) -> None:
    hooked.to.replies = [Reply(500) for _ in range(100)]
    began = hooked.shop.db.now()
    first, second = await hooked.happens(number=1), await hooked.happens(number=2)
    while (again := await hooked.turns()) is not None:
        hooked.shop.clock.time = again
    assert timedelta(hours=24) <= hooked.shop.db.now() - began < timedelta(hours=25)
    assert 10 < len(hooked.to.tried) < 40
    assert [state for state, _ in await hooked.states()] == ["dead", "dead"], "the second is as old"
    (alert,) = [row for row in await Events(hooked.shop.db).after(0) if row.kind == "alert"]
    card = alert_card(await hooked.shop.desk.digest.alert(alert.data), texts("en"))
    assert f"Webhook {hooked.id}: " in card.title
    assert "HTTP 500" in str(card.lines)
    dead = await hooked.desk.deliveries(hooked.owner, hooked.id, state="dead")
    assert [(one.error, one.status) for one in dead] == [(WAITED, None), ("", 500)]
    hooked.to.replies.clear()
    with pytest.raises(NotFound):
        await hooked.desk.retry(hooked.owner, hooked.id, 999)
    assert (await hooked.desk.retry(hooked.owner, hooked.id, dead[1].id)).state == "pending"
    await hooked.turns()
    assert [one.id for one in hooked.to.taken] == [f"evt_{first}"]
    with pytest.raises(NotFound):
        await hooked.desk.retry(hooked.owner, hooked.id, dead[1].id)
    assert second


async def test_410_disables_it_and_a_test_that_gets_through_enables_it(hooked: Hooked) -> None:
    hooked.to.replies = [Reply(410)]
    await hooked.happens(number=1)
    await hooked.happens(number=2)
    assert await hooked.turns() is None
    (view,) = await hooked.desk.all(hooked.owner)
    assert (view.state, view.dead, view.waiting) == ("disabled", 2, 0)
    assert await hooked.desk.hooks() == []
    await hooked.happens(number=3)
    assert await hooked.turns() is None
    assert len(hooked.to.tried) == 1
    dead = await hooked.desk.deliveries(hooked.owner, hooked.id, state="dead")
    with pytest.raises(Conflict):
        await hooked.desk.retry(hooked.owner, hooked.id, dead[0].id)
    hooked.to.replies = [Reply(500)]
    assert (await hooked.desk.test(hooked.owner, hooked.id)).state == "dead"
    assert (await hooked.desk.all(hooked.owner))[0].state == "disabled"
    assert (await hooked.desk.test(hooked.owner, hooked.id)).state == "delivered"
    now = await hooked.happens(number=4)
    await hooked.turns()
    assert [one.type for one in hooked.to.taken] == ["test", "question"]
    assert hooked.to.taken[-1].id == f"evt_{now}", "what happened meanwhile is not sent"


async def test_both_secrets_sign_for_a_day_after_a_rotation(hooked: Hooked) -> None:
    old = hooked.to.secret
    new, view = await hooked.desk.rotate(hooked.owner, hooked.id)
    assert view.old_secret_until == hooked.shop.db.now() + timedelta(hours=24)
    for secret in (old, new):
        hooked.to.secret = secret
        await hooked.happens()
        await hooked.turns()
        assert len(hooked.to.taken[-1].signatures) == 2
    hooked.shop.clock.time = hooked.shop.db.now() + timedelta(hours=24)
    await hooked.happens()
    await hooked.turns()
    assert len(hooked.to.taken[-1].signatures) == 1
    assert (await hooked.desk.all(hooked.owner))[0].old_secret_until is None


async def test_an_attempt_that_was_cut_off_is_made_again(hooked: Hooked) -> None:
    hooked.to.replies = [Reply(until=asyncio.Event())]
    event = await hooked.happens()
    turning = asyncio.create_task(hooked.desk.turn(hooked.id, 0))
    await hooked.to.until(1)
    turning.cancel()
    with pytest.raises(asyncio.CancelledError):
        await turning
    await hooked.turns()
    assert [one.id for one in hooked.to.tried] == [f"evt_{event}"] * 2
    # A killed process gives nothing back: then its claim runs out.
    await hooked.happens()
    hooked.seen, _ = await hooked.desk.turn(hooked.id, hooked.seen)
    last = await hooked.happens()
    hook = await Webhooks(hooked.shop.db).get(hooked.id)
    assert hook is not None
    await Webhooks(hooked.shop.db).queue(hook, hooked.seen, message_of)
    assert await Webhooks(hooked.shop.db).take(hooked.id) is not None
    assert await hooked.turns() == hooked.shop.db.now() + CLAIM
    hooked.shop.clock.time = hooked.shop.db.now() + CLAIM
    await hooked.turns()
    assert hooked.to.taken[-1].id == f"evt_{last}"


async def test_no_answer_in_time_is_a_failure(hooked: Hooked) -> None:
    hooked.shop.desk.context.webhook_client = WebhookClient(ALLOWED, seconds=0.2)
    hooked.to.replies = [Reply(until=asyncio.Event())]
    await hooked.happens()
    await hooked.turns()
    (view,) = await hooked.desk.deliveries(hooked.owner, hooked.id)
    assert (view.state, view.status, view.error) == ("pending", None, "no answer within 0.2 s")


async def test_the_address_is_checked_again_at_each_attempt(hooked: Hooked) -> None:
    hooked.shop.desk.context.webhook_client.rules = TargetRules()
    await hooked.happens()
    await hooked.turns()
    assert hooked.to.tried == []
    (view,) = await hooked.desk.deliveries(hooked.owner, hooked.id)
    assert "private network" in view.error


async def test_large_details_are_left_out(hooked: Hooked) -> None:
    await hooked.happens(text="字" * (MOST_DETAILS // 3))
    await hooked.turns()
    data = hooked.to.taken[0].payload["data"]
    assert (data["cut"], data["details"]) == (True, {})


async def test_what_cannot_be_added(hooked: Hooked) -> None:
    for kinds in ([], ["questions"], ["question", "*"]):
        with pytest.raises(BadRequest) as refused:
            await hooked.desk.add(hooked.owner, hooked.to.url, kinds)
        assert refused.value.key == "not_one_of"
        assert str(refused.value.values["known"]) == ", ".join(KINDS)
    with pytest.raises(InputRejected):
        await hooked.desk.add(hooked.owner, "https://192.168.1.1/", ["question"])
    with pytest.raises(BadRequest):
        await hooked.desk.add(hooked.owner, "https://no-such-name.invalid/", ["question"])
    for role in (Role.VIEWER, Role.OPERATOR):
        other = await hooked.shop.person(role)
        for call in (
            hooked.desk.add(other, hooked.to.url, ["question"]), hooked.desk.all(other),
            hooked.desk.remove(other, hooked.id), hooked.desk.rotate(other, hooked.id),
            hooked.desk.test(other, hooked.id), hooked.desk.deliveries(other, hooked.id),
            hooked.desk.retry(other, hooked.id, 1),
        ):  # fmt: skip
            with pytest.raises(AccessDenied):
                await call
    assert len(await hooked.desk.all(hooked.owner)) == 1


async def test_a_removed_webhook_leaves_nothing(hooked: Hooked) -> None:
    hooked.to.replies = [Reply(500)]
    await hooked.happens()
    await hooked.turns()
    await hooked.desk.remove(hooked.owner, hooked.id)
    assert await hooked.turns() is None
    assert await Webhooks(hooked.shop.db).deliveries(hooked.id) == []
    assert await Events(hooked.shop.db).position(f"webhook:{hooked.id}") == 0
    for call in (hooked.desk.remove, hooked.desk.rotate, hooked.desk.test, hooked.desk.deliveries):
        with pytest.raises(NotFound):
            await call(hooked.owner, hooked.id)


async def test_old_deliveries_are_deleted_but_not_those_that_wait(hooked: Hooked) -> None:
    await hooked.happens()
    await hooked.turns()
    hooked.to.replies = [Reply(500)]
    await hooked.happens()
    await hooked.turns()
    hooked.shop.clock.time = hooked.shop.db.now() + timedelta(days=31)
    gone = await Housekeeping(hooked.shop.db, keep=timedelta(days=30)).once()
    assert gone["webhook_deliveries"] == 1
    assert [state for state, _ in await hooked.states()] == ["pending"]


def test_no_secret_is_shown_by_a_row() -> None:
    from storage.webhooks import WebhookRow

    now = datetime(2026, 11, 24)  # noqa: DTZ001 - any
    assert "whsec_" not in repr(WebhookRow("whsec_1", "whsec_2", None, 1, "u", [], 0, None, "", now))


def test_every_kind_of_event_that_is_written_can_be_sent_and_is_described() -> None:
    root = Path(__file__).parents[3]
    writers = (
        r"""append_event\(\s*connection,\s*(?:self\._)?db,\s*[^,]+,\s*"(\w+)\"""",
        r"""_events?\.append\([^,]+,\s*"(\w+)\"""",
        r"""Events\(self\._db\)\.append\([^,]+,\s*"(\w+)\"""",
        r"""events\.append\(session\.run_id,\s*"(\w+)\"""",
        r"""self\._event\(\s*"(\w+)\"""",
        r"""self\._tell\(connection,\s*[^,]+,\s*"(\w+)\"""",
        r"""return "(\w+)", \{"c""",  # a plan's
        r"""Event\(\s*"(\w+)\"""",
    )
    sources = [
        path.read_text()
        for part in ("agent_core", "bot", "scheduler", "storage")
        for path in (root / part).rglob("*.py")
    ]
    written = {kind for text in sources for writer in writers for kind in re.findall(writer, text)}
    assert {"step", "question", "status", "outcome", "alert", "tool_call", "closed", "reminder"} <= written, "it looks"
    assert written <= set(KINDS)
    for page in ("webhooks.md", "webhooks.zh-CN.md"):
        text = (root / "docs/how-to" / page).read_text(encoding="utf-8")
        table = text.split("| --- | --- |")[1].split("\n\n")[0]
        assert set(re.findall(r"`(\w+)`", table)) == set(KINDS), page
