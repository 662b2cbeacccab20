"""What calls come to: priced by model, counted to the run in whose task they are made."""

from __future__ import annotations

import asyncio
import socket
from contextlib import ExitStack

import pytest
from PIL import Image

from agent_core.errors import ModelTimeout, ModelUnreachable
from agent_core.model.base import Usage
from agent_core.model.client import ChatModel
from agent_core.model.usage import Account, Meter, Price, Prices, charge_to, money, request_tokens
from agent_core.session import Session, Spent, StepRecord
from tests.support.model_server import Break, Chunks, Hang, Raw, Script, ScriptedModel, Status, Text

ASKED = [{"role": "user", "content": "做点什么"}]
CACHED = (
    'data: {"choices": [{"index": 0, "delta": {"content": "do(action=\\"Back\\")"}, "finish_reason": "stop"}]}\n\n'
    'data: {"choices": [], "usage": {"prompt_tokens": 1000, "completion_tokens": 10,'
    ' "prompt_tokens_details": {"cached_tokens": 600}}}\n\ndata: [DONE]\n\n'
)
ON_TOP = CACHED.replace('"prompt_tokens_details": {"cached_tokens": 600}', '"cached_tokens": 600')


def test_each_model_has_its_price_and_others_the_usual_one() -> None:
    prices = Prices({"Big": Price(10, 20, tokens_cached=1)}, Price(1, 2), "CNY")
    used = Usage(tokens_in=1_000_000, tokens_out=500_000, tokens_cached=400_000)
    assert prices.of("big", used) == pytest.approx(6 + 0.4 + 10)
    assert prices.of("small", used) == pytest.approx(2)  # what is cached costs as the rest where nothing else is said
    assert Prices({"big": Price(1, 1)}).of("small", used) is None
    assert (bool(Prices()), money(0.00042), money(0.0), money(1234.5)) == (False, "0.0004", "0.00", "1,234.50")


async def test_every_call_of_a_task_is_of_its_run() -> None:
    """Replies, pictures that were read, what broke off, what is cut; of another task nothing."""
    first, other = Spent(), Spent()
    script: list[Script] = [
        Text('do(action="Back")'),
        Text("4719"),
        Raw(CACHED, "text/event-stream"),
        Break(["do(", "action"]),
    ]
    async with ScriptedModel(
        [*script, Break(), Break(), Raw(ON_TOP, "text/event-stream"), Hang(["想"]), Text("x")]
    ) as server:
        meter = Meter(Prices({"scripted": Price(1, 2, 0.5)}, currency="CNY"))
        model = ChatModel(server.url, "scripted", timeout=5, meter=meter, sleep=lambda _: asyncio.sleep(0))

        async def run(spent: Spent, calls: int) -> None:
            charge_to(Account(spent))
            for _ in range(calls):
                await model.complete(ASKED)

        async def whole() -> None:
            await run(first, 1)
            await model.transcribe(Image.new("RGB", (8, 8)), "read")
            assert (first.calls, first.tokens_in, first.tokens_out, first.tokens) == (2, 200, 40, 240)
            done = await model.complete(ASKED)
            assert (done.usage.tokens_in, done.usage.tokens_cached, done.usage.guessed) == (1000, 600, False)
            assert first.cost == pytest.approx((2 * (100 + 2 * 20) + 400 + 300 + 20) / 1e6)
            with pytest.raises(ModelUnreachable):
                await model.complete(ASKED)
            assert (first.calls, first.tokens_in) == (4, 1200 + request_tokens(ASKED))  # guessed; the rest said nothing
            assert (await model.complete(ASKED)).usage.tokens_cached == 600  # as Moonshot says it
            first.calls -= 1
            cut = asyncio.create_task(model.complete(ASKED, on_thinking=None))
            while len(server.requests) < 8:
                await asyncio.sleep(0.005)
            await asyncio.sleep(0.05)
            cut.cancel()
            await asyncio.wait([cut])
            assert first.calls == 5

        await asyncio.gather(asyncio.create_task(whole()))
        await asyncio.create_task(run(other, 1))
        assert (first.calls, other.calls, other.currency) == (5, 1, "CNY")
        await model.close()


async def test_a_model_that_talks_on_is_paid_for_by_a_guess() -> None:
    spent = Spent()
    async with ScriptedModel([Chunks(['do(action="Back")', " 接下来", 30.0, "没有人要听"])]) as server:
        model = ChatModel(server.url, "scripted", timeout=5)
        charge_to(Account(spent))
        done = await model.complete(ASKED)
        await model.close()
    assert done.usage.guessed
    assert done.usage.total < 5  # the time of the call, not of the talk
    assert (spent.calls, spent.cost) == (1, None)
    assert spent.tokens_out > 5


async def test_a_picture_that_is_not_read_in_time_is_paid_for_by_a_guess() -> None:
    spent = Spent()
    async with ScriptedModel([Hang(headers_too=True)]) as server:
        model = ChatModel(server.url, "scripted", timeout=0.05, meter=Meter(), alone=False)
        charge_to(Account(spent))
        with pytest.raises(ModelTimeout):
            await model.transcribe(Image.new("RGB", (8, 8)), "read")
        await model.close()
    assert (spent.calls, spent.tokens_in > 0, spent.tokens_out) == (1, True, 3000)


async def test_what_was_not_sent_or_ended_by_the_endpoint_costs_nothing() -> None:
    """A server that takes no connection, and one that says that its own time is over."""
    spent = Spent()
    charge_to(Account(spent))
    with socket.socket() as deaf, ExitStack() as stack:
        deaf.bind(("127.0.0.1", 0))
        deaf.listen(0)
        for _ in range(4):  # nobody takes them: there is no room for one more
            waiting = stack.enter_context(socket.socket())
            waiting.setblocking(False)
            waiting.connect_ex(deaf.getsockname())
        async with ScriptedModel([Status(504, "upstream")]) as server:
            for url in (f"http://127.0.0.1:{deaf.getsockname()[1]}/v1", server.url):
                model = ChatModel(url, "scripted", timeout=0.3, meter=Meter(), alone=False)
                with pytest.raises(ModelTimeout):
                    await model.transcribe(Image.new("RGB", (8, 8)), "read")
                await model.close()
    assert (spent.calls, spent.tokens) == (0, 0)


def test_a_step_costs_what_was_spent_since_the_last_one() -> None:
    session = Session(run_id="r", task="t")
    assert session.new_cost is None
    session.spent.cost = 0.5
    session.steps = [StepRecord(index=1, cost=0.2), StepRecord(index=2)]
    assert session.new_cost == pytest.approx(0.3)
