"""Models in order, over real HTTP: who is asked when one fails, in whose form, and when the first is asked again."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from PIL import Image

from agent_core import errors
from agent_core.loop.thinking import in_words
from agent_core.model.base import Completion, Request
from agent_core.model.client import ChatModel
from agent_core.model.fallback import Fallbacks, Mind
from agent_core.model.profile import ModelProfile, model_profile
from agent_core.model.prompt import build_messages
from agent_core.model.usage import Meter
from agent_core.session import Session, StepRecord
from agent_core.texts import Lang
from bot.channels.chat.run_cards import error_lines
from bot.channels.chat.texts import texts
from tests.support.model_server import Script, ScriptedModel, Status, Text, Whole

TAP = '<think>点</think><answer>do(action="Tap", element=[1,2])</answer>'
JSON = '{"action": "Tap", "arguments": {"element": [1, 2]}}'
DOWN = Status(401, "no")
REFUSED = Status(400, "Content Exists Risk", "invalid_request_error")
PICTURE = Image.new("RGB", (8, 8), "white")


class Clock:
    now = 100.0

    def __call__(self) -> float:
        return self.now


def request(step: int = 0, steps: list[StepRecord] | None = None) -> Request:
    state = Session(run_id="r", task=f"QQ回复联系人{step}", steps=steps or [])

    def write(profile: ModelProfile) -> list[dict[str, Any]]:
        return build_messages(state, current_app="QQ", picture=None, elements=None, profile=None, model=profile)

    return Request(write, model_profile("autoglm-phone"))


class Told(Meter):
    """What models failed with, and who stood in for whom."""

    def __init__(self) -> None:
        super().__init__()
        self.told: list[tuple[str, str]] = []

    def failed(self, model: str, error: errors.ModelError) -> None:
        self.told.append((model, error.kind))

    def stood_in(self, model: str, instead_of: str) -> None:
        self.told.append((model, f"for {instead_of}"))


class Two:
    """A first model in the AutoGLM form, and one that is asked with tools."""

    def __init__(self, first: list[Script], second: list[Script], meter: Meter | None = None) -> None:
        self.servers = ScriptedModel(first, repeat_last=True), ScriptedModel(second, repeat_last=True)
        self.meter = meter or Told()
        self.waited: list[float] = []
        self.clock = Clock()

    async def __aenter__(self) -> Two:
        minds = []
        for server, name, profile in zip(self.servers, ("first", "second"), ("autoglm-phone", "general"), strict=True):
            await server.__aenter__()
            own = model_profile(profile)
            minds.append(
                Mind(
                    ChatModel(
                        server.url,
                        name,
                        timeout=5,
                        dialect=own.dialect,
                        alone=False,
                        meter=self.meter,
                        sleep=_at_once,
                    ),
                    own,
                )
            )
        self.model = Fallbacks(minds, again_after=60, meter=self.meter, clock=self.clock, sleep=self._wait)
        return self

    async def _wait(self, seconds: float) -> None:
        self.waited.append(seconds)

    async def __aexit__(self, *_: object) -> None:
        await self.model.close()
        for server in self.servers:
            await server.__aexit__()

    @property
    def asked(self) -> tuple[int, int]:
        return len(self.servers[0].requests), len(self.servers[1].requests)


async def _at_once(seconds: float) -> None:
    return None


async def test_the_next_is_asked_in_the_same_call_and_in_its_own_form() -> None:
    async with Two([DOWN, DOWN, TAP], [JSON]) as two:
        done = await two.model.complete(request())
        assert (done.model, done.instead_of, done.text) == ("second", "model.auth", JSON)
        assert done.profile == model_profile("general")
        prompts = [server.requests[0]["messages"][0]["content"] for server in two.servers]
        assert "<answer>" in prompts[0]
        assert "<answer>" not in prompts[1]
        assert (await two.model.complete(request(1))).instead_of == "model.auth"
        assert isinstance(two.meter, Told)
        assert two.meter.told == [("first", "model.auth"), *[("second", "for first")] * 2]
        assert two.asked == (1, 2)  # what has just failed is not asked at each step
        two.clock.now += 61
        assert (await two.model.complete(request(2))).model == "second"  # it fails once more
        two.clock.now += 61
        assert (await two.model.complete(request(3))).model == "second"  # twice as long after the second failure
        two.clock.now += 61
        done = await two.model.complete(request(4))
        assert (done.model, done.instead_of, done.profile) == ("first", "", None)
        assert two.asked == (3, 4)


@pytest.mark.parametrize(("wanted", "seconds"), [("inf", 60), ("300", 300), ("9999999", 3600)])
async def test_one_that_is_asked_too_often_rests_as_long_as_it_wants_but_not_for_ever(
    wanted: str, seconds: float
) -> None:
    async with Two([Status(429, headers={"Retry-After": wanted}), TAP], [JSON]) as two:
        assert (await two.model.complete(request())).model == "second"
        assert two.asked == (1, 1)  # at once
        two.clock.now += seconds - 1
        assert (await two.model.complete(request(1))).model == "second"
        two.clock.now += 2
        assert (await two.model.complete(request(2))).model == "first"


async def test_where_no_other_answers_it_is_waited_for_as_it_wants_if_that_is_short() -> None:
    def busy(wanted: str) -> Status:
        return Status(429, headers={"Retry-After": wanted})

    spent = Status(429, "pay", "insufficient_quota")
    async with Two([busy("9"), busy("11")], [spent]) as two:
        with pytest.raises(errors.ModelQuota, match="pay"):
            await two.model.complete(request())
        assert two.asked == (2, 1)
        assert two.waited == [9]


async def test_where_all_fail_it_is_the_error_of_the_first_with_the_others() -> None:
    async with Two([Status(429, "slow down")], [REFUSED]) as two:
        with pytest.raises(errors.ModelQuota, match=r"slow down.*others failed.*second.*Content Exists Risk"):
            await two.model.complete(request())
        with pytest.raises(errors.ModelQuota):
            await two.model.complete(request())
        assert two.asked == (4, 1)  # resting models are asked where nothing else is left; refused content never again


async def test_another_provider_is_asked_what_one_refuses_and_the_same_is_not_sent_there_again() -> None:
    async with Two([REFUSED, TAP], [JSON]) as two:
        assert (await two.model.complete(request())).instead_of == "model.refused"
        assert (await two.model.complete(request())).model == "second"
        assert two.asked == (1, 2)
        assert (await two.model.complete(request(1))).model == "first"  # it does not rest: that was about one content


@pytest.mark.parametrize(("lang", "said"), [("zh", "服务商拒绝了这次的内容"), ("en", "refused this content")])
async def test_a_refusal_is_told_in_the_language_of_the_run_with_what_to_do(lang: Lang, said: str) -> None:
    async with Two([REFUSED], [DOWN]) as two:
        with pytest.raises(errors.ModelRefused) as caught:
            await two.model.complete(request())
    told = in_words(caught.value, lang)
    assert isinstance(told, errors.ModelRefused)
    assert said in told.message
    assert {"zh": "备用模型也没有成功", "en": "others failed"}[lang] in told.message
    words = texts(lang)
    assert "PHONEDESK_MODEL__FALLBACKS" in " ".join(error_lines(told.kind, words))
    # One without a text of its own is told by its kind, which is not said twice then.
    told = in_words(errors.ModelQuota("HTTP 429"), lang)
    assert told.message.startswith(words.get("error.model.quota").rstrip("。."))
    assert "HTTP 429" in told.message
    assert error_lines(told.kind, words, str(told)) == []
    assert in_words(errors.ModelError("x"), lang).message == "x"


async def test_one_that_is_not_there_is_tried_once_and_retries_are_left_for_where_no_other_answers() -> None:
    away = Status(503)
    async with Two([away], [away, away, JSON, away, away, away]) as two:
        assert (await two.model.complete(request())).instead_of == "model.unreachable"
        assert two.asked == (3, 3)  # in turn
        two.clock.now += 61
        with pytest.raises(errors.ModelUnreachable):
            await two.model.complete(request(1))
        assert two.asked == (6, 6)


async def test_what_rests_is_tried_by_one_call_and_longer_each_time() -> None:
    asked: list[int] = []
    given = asyncio.Event()

    async def answer(model: int) -> Completion:
        asked.append(model)
        if model == 0:
            await given.wait()
            raise errors.ModelTimeout("t")
        return Completion("x", model="second")

    async with Two([TAP], [JSON]) as two:
        for model, mind in enumerate(two.model._minds):
            mind.model.complete = lambda *_, model=model, **__: answer(model)  # type: ignore[method-assign]
        for seconds in (0, 61, 121, 241, 481, 601):  # 60 s, twice as long each time, ten minutes at most
            two.clock.now += seconds
            asked.clear()
            given.clear()
            calls = [asyncio.create_task(two.model.complete(request())) for _ in range(10)]
            while len(asked) < 10:
                await asyncio.sleep(0)
            two.clock.now += 1  # all of those at once count as one failure
            given.set()
            await asyncio.gather(*calls)
            assert asked.count(0) == (10 if seconds == 0 else 1)
            two.clock.now -= 1
            assert (await two.model.complete(request())).instead_of == "model.timeout"
            assert asked.count(0) == (10 if seconds == 0 else 1)


async def test_a_picture_that_one_cannot_read_tells_nothing_of_its_actions() -> None:
    async with Two([Whole(""), TAP], [Text("4719")]) as two:
        assert await two.model.transcribe(PICTURE, "read") == "4719"
        assert (await two.model.complete(request())).model == "first"
        assert await two.model.transcribe(PICTURE, "read") == 'do(action="Tap", element=[1,2])'


async def test_a_limit_of_ours_holds_for_all() -> None:
    class Full(Meter):
        async def admit(self, model: str) -> None:
            raise errors.ModelLimit("full", key="day_calls")

    async with Two([TAP], [JSON], Full()) as two:
        with pytest.raises(errors.ModelLimit):
            await two.model.complete(request())
        assert two.asked == (0, 0)
        assert await two.model.transcribe(PICTURE, "read") == 'do(action="Tap", element=[1,2])'  # never refused


async def test_pictures_are_read_by_those_that_see() -> None:
    async with Two([DOWN], [Text("4719")]) as two:
        assert await two.model.transcribe(PICTURE, "read") == "4719"
        blind = Mind(two.model._minds[0].model, model_profile("text-only"))
        seeing = Fallbacks([blind, two.model._minds[1]])
        assert await seeing.transcribe(PICTURE, "read") == "4719"
        assert two.asked == (1, 2)
        with pytest.raises(errors.ModelFormat, match="without vision"):
            await Fallbacks([blind]).transcribe(PICTURE, "read")


def test_the_step_of_another_model_is_told_in_the_form_of_the_one_that_is_asked() -> None:
    step = StepRecord(
        index=1, thinking="想", reply=JSON, asked={"kind": "tap", "element": (1, 2)}, form="json", package="p"
    )
    told = request(steps=[step])[2]["content"]
    assert told == TAP.replace("点", "想")
    plain = request(steps=[step.model_copy(update={"form": "autoglm"})])[2]["content"]
    assert JSON in plain
